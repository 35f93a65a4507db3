"""At least n events of a set, SEQ(AND(A{n,} a[]), B b): RETURN PROBABILITY counts pairs of one of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from uncertain_cep.errors import Fault
from uncertain_cep.query.syntax import (
    Aggregate,
    Attribute,
    Component,
    Conjunction,
    CountedEvents,
    Expression,
    Pattern,
    Query,
    Sequence,
    Time,
    expressions_in,
)
from uncertain_cep.query.walks import with_leaves

__all__ = ["as_pairs", "counted_faults", "counted_set", "with_plus"]


def counted_set(pattern: Pattern) -> tuple[Component, Component, bool] | None:
    """Return the component of a set that takes n events or more, the other one, and whether that is first.

    None if the pattern has another form.
    """
    if not isinstance(pattern, Sequence) or len(pattern.items) != 2:
        return None
    for place, item in enumerate(pattern.items):
        other = pattern.items[1 - place]
        if not isinstance(item, Conjunction) or len(item.items) != 1 or not isinstance(other, Component):
            continue
        (component,) = item.items
        if (
            isinstance(component, Component)
            and component.kleene
            and component.least >= 1
            and (component.least > 1 or component.most is not None)
            and not (component.negated or other.negated or other.kleene)
            and other.least == 1
        ):
            return component, other, place == 1
    return None


def with_plus(pattern: Pattern) -> Pattern:
    """Return a pattern of that form with ``+`` in place of ``{n,}``."""
    form = counted_set(pattern)
    assert form is not None
    assert isinstance(pattern, Sequence)
    component = replace(form[0], least=1, most=None)
    items = tuple(
        replace(item, items=(component,)) if isinstance(item, Conjunction) else item for item in pattern.items
    )
    return replace(pattern, items=items)


def counted_faults(query: Query) -> Iterator[Fault]:
    """Yield a fault for each thing that cannot be asked of events that are counted."""
    form = counted_set(query.pattern)
    clause = query.probability
    if form is None or clause is None:
        return
    name = form[0].variable
    counting = f"{name} stands for at least {form[0].least} events, which are counted: "
    if clause.at_least > 1:
        yield Fault(f"{counting}leave out OF AT LEAST", clause.position.line, clause.position.column)
    for expression in query.where:
        for part in expressions_in(expression):
            if isinstance(part, Aggregate | Time) and part.variable == name:
                yield Fault(
                    f"{counting}conditions are of single events, such as {name}[i].x = {form[1].variable}.x",
                    part.position.line,
                    part.position.column,
                )


def as_pairs(query: Query) -> Query:
    """Return a query whose matches are pairs of one event that is counted and the other one.

    Unchanged if it counts no events.
    """
    form = counted_set(query.pattern)
    if form is None or query.probability is None:
        return query
    component, anchor, is_behind = form
    single = replace(component, kleene=False, least=1, most=1)
    counted = CountedEvents(component.variable, anchor.variable, component.least, is_behind)
    pair = (anchor, single) if is_behind else (single, anchor)

    def changed(leaf: Expression) -> Expression:
        if isinstance(leaf, Attribute) and leaf.variable == single.variable:
            return replace(leaf, index=None)
        return leaf

    listed = tuple(
        replace(part, kleene=False) if part.name == single.variable else part
        for part in query.strategy_variables
    )
    return replace(
        query,
        pattern=Sequence(pair, query.pattern.position),
        where=tuple(with_leaves(part, changed) for part in query.where),
        strategy_variables=listed,
        probability=replace(query.probability, counted=counted),
    )
