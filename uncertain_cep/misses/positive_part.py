"""A branch of a query without what forbids events: its positive components and their conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.syntax import Component, Pattern
from uncertain_cep.query.time_conditions import TimeCondition
from uncertain_cep.query.typed import TypedExpression, variables_of

__all__ = ["positive_part", "with_later_ends", "with_predicates"]


def positive_part(branch: BoundQuery, window: int) -> BoundQuery:
    """Return a branch without negations and with every strategy skip till any match."""
    absent = {part.variable for part in branch.components if part.negated}
    query = replace(branch.query, strategy="skip_till_any_match", gap_strategies=(), strategy_variables=())
    return replace(
        branch,
        query=query,
        components=tuple(part for part in branch.components if not part.negated),
        predicates=tuple(part for part in branch.predicates if not variables_of(part) & absent),
        times=tuple(part for part in branch.times if not part.variables & absent),
        pattern=_without_negated(branch.pattern),
        returns=(),
        terms=(),
        gaps=None,
        window=window,
    )


def _without_negated(pattern: Pattern) -> Pattern:
    if isinstance(pattern, Component):
        return pattern
    items = [
        _without_negated(item) for item in pattern.items if not (isinstance(item, Component) and item.negated)
    ]
    return replace(pattern, items=tuple(items))


def with_predicates(
    branch: BoundQuery, predicates: Sequence[TypedExpression], equivalences: Sequence[str] = ()
) -> BoundQuery:
    """Return a branch with other predicates, and other attributes that all events agree on."""
    return replace(branch, predicates=tuple(predicates), equivalences=tuple(equivalences))


def with_later_ends(branch: BoundQuery, ticks: int) -> BoundQuery:
    """Return a branch whose conditions that a single time is at most something allow so many ticks more."""
    times: list[TimeCondition] = []
    for condition in branch.times:
        if condition.earlier is not None or condition.comparison in (">", ">="):
            times.append(condition)
            continue
        if condition.comparison == "=":
            times.append(replace(condition, comparison=">="))
            condition = replace(condition, comparison="<=")
        times.append(replace(condition, ticks=condition.ticks + ticks))
    return replace(branch, times=tuple(times))
