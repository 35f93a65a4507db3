"""Strategies of single gaps, as negations of what must not be in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uncertain_cep.query.syntax import Component, Pattern, Query
from uncertain_cep.query.syntax import Sequence as Series
from uncertain_cep.query.time_conditions import TimeCondition
from uncertain_cep.query.typed import TypedExpression, variables_of, with_variable
from uncertain_cep.query.walks import components_of

__all__ = ["NamedGaps", "named_gaps"]


@dataclass(frozen=True, slots=True)
class NamedGaps:
    """A pattern with a negation in each gap that has a strategy, and their predicates, on times as well.

    Of those negations ``contiguous`` have no predicates, and of these ``untied`` not even the partition.
    """

    pattern: Pattern
    predicates: tuple[TypedExpression, ...]
    times: tuple[TimeCondition, ...]
    contiguous: frozenset[str]
    untied: frozenset[str]


def named_gaps(
    query: Query, predicates: Sequence[TypedExpression], times: Sequence[TimeCondition]
) -> NamedGaps:
    """Return the pattern of a checked query, and what its gaps add to some predicates and time conditions.

    ``skip_till_next_match(a, b)`` forbids every event that b could have been: of its types, and with all
    conditions met that mention b and otherwise only what comes before it. Contiguity forbids every event, of
    the partition or of the stream.
    """
    strategies = {gap: strategy.strategy for strategy in query.gap_strategies for gap in strategy.gaps}
    if not strategies or not isinstance(query.pattern, Series):
        return NamedGaps(query.pattern, (), (), frozenset(), frozenset())
    items: list[Pattern] = []
    added: list[TypedExpression] = []
    added_times: list[TimeCondition] = []
    contiguous: dict[str, str] = {}
    variables: list[str] = []
    for component in components_of(query.pattern):
        name = component.variable
        strategy = strategies.get((variables[-1], name)) if variables and not component.negated else None
        if strategy not in (None, "skip_till_any_match"):
            absent = f"{strategy}({variables[-1]}, {name})"
            is_next = strategy == "skip_till_next_match"
            types = component.types if is_next else ()
            items.append(Component(types, absent, False, True, component.position))
            if is_next:
                conditions = [
                    condition
                    for condition in predicates
                    if name in variables_of(condition) <= {*variables, name}
                ]
                added += [with_variable(condition, name, absent) for condition in conditions]
                added_times += [
                    condition.of_another(name, absent)
                    for condition in times
                    if name in condition.variables <= {*variables, name}
                ]
            else:
                contiguous[absent] = str(strategy)
        items.append(component)
        if not component.negated:
            variables.append(name)
    untied = frozenset(name for name, strategy in contiguous.items() if strategy == "strict_contiguity")
    pattern = replace(query.pattern, items=tuple(items))
    return NamedGaps(pattern, tuple(added), tuple(added_times), frozenset(contiguous), untied)
