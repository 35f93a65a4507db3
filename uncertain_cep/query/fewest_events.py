"""Fewer events in place of repeated and optional ones, where the probability of a match is the same.

Under skip till any match, without negations and with conditions on single elements, a match of several
events of ``C+`` is also one of the first of them alone: order and window ask no more, and it begins when the
other one does. So ``C+`` may be read as ``C``, ``C{n,m}`` as ``C{n}``, and ``C?`` and ``C*`` as left out,
unless buckets ask for the first time of what is left out. Signatures are then those of n events, and not of
all sets. That does not hold for numbers of matches, nor where elements are compared or added up.
"""

from __future__ import annotations

from dataclasses import replace

from uncertain_cep.query.syntax import (
    Aggregate,
    Attribute,
    Component,
    Expression,
    Pattern,
    Query,
    Sequence,
    Time,
    expressions_in,
)
from uncertain_cep.query.walks import with_leaves

__all__ = ["fewest_events"]


def fewest_events(query: Query) -> Query:
    """Return a query for groups with fewer events where that has the same probabilities."""
    clause, pattern = query.probability, query.pattern
    if clause is None or clause.at_least > 1 or not isinstance(pattern, Sequence):
        return query
    if query.strategy != "skip_till_any_match" or query.gap_strategies:
        return query
    components = [item for item in pattern.items if isinstance(item, Component)]
    if len(components) < len(pattern.items) or any(item.negated for item in components):
        return query
    kept_as_it_is = _compared(query) | {group.variable or group.name for group in clause.by}
    items: list[Pattern] = []
    left_out, single = set(), set()
    for item in components:
        if item.variable in kept_as_it_is or (not item.kleene and item.least):
            items.append(item)
        elif item.least > 1:
            items.append(replace(item, most=item.least))
        elif item.least == 1:
            single.add(item.variable)
            items.append(replace(item, kleene=False, most=1))
        elif clause.every is None:
            left_out.add(item.variable)
        else:
            items.append(item)
    if not items or (items == list(components)):
        return query
    return _with_items(query, tuple(items), left_out, single)


def _compared(query: Query) -> set[str]:
    """Return the variables of which conditions mention more than an element each."""
    return {
        part.variable
        for condition in query.where
        for part in expressions_in(condition)
        if isinstance(part, Aggregate)
        or (isinstance(part, Attribute | Time) and part.index not in (None, "current"))
    }


def _with_items(query: Query, items: tuple[Pattern, ...], left_out: set[str], single: set[str]) -> Query:
    """Return a query of other components, without conditions on some variables, and with some single."""
    clause, pattern = query.probability, query.pattern
    assert clause is not None
    assert isinstance(pattern, Sequence)

    def changed(leaf: Expression) -> Expression:
        if isinstance(leaf, Attribute | Time) and leaf.variable in single:
            return replace(leaf, index=None)
        return leaf

    def mentions(condition: Expression) -> bool:
        parts = [part for part in expressions_in(condition) if isinstance(part, Attribute | Time)]
        return any(part.variable in left_out for part in parts)

    return replace(
        query,
        pattern=replace(pattern, items=items),
        where=tuple(with_leaves(part, changed) for part in query.where if not mentions(part)),
        strategy_variables=tuple(
            replace(variable, kleene=False) if variable.name in single else variable
            for variable in query.strategy_variables
            if variable.name not in left_out
        ),
        probability=replace(clause, reads_fewer=True),
    )
