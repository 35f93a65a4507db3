"""Matches that are undecided at a known end: one of their gaps can end behind it, where more events may be.

Where a gap ends is where times of the match's events are, so that it ends behind a tick is a condition on
these times. A match is undecided if the query with the conditions of one of its gaps has it, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from uncertain_cep.plan.components import PlannedComponent
from uncertain_cep.plan.derived import once_a_plan
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.once_a_row import once_a_row
from uncertain_cep.plan.time_bounds import bound_predicates, whole_sum
from uncertain_cep.query.time_conditions import FAR, TimeCondition, TimeReference, bounds_in_ticks
from uncertain_cep.query.typed import (
    Apply,
    Column,
    Constant,
    TypedExpression,
    columns_in,
    speaks_of_each_event,
    variables_of,
)
from uncertain_cep.timeline.domain import TimeDomain

__all__ = ["GapEnd", "ends_behind", "undecided_plan"]


@dataclass(frozen=True, slots=True)
class GapEnd:
    """When a gap ends behind a tick: if all these conditions on a match hold."""

    times: tuple[TimeCondition, ...]
    conditions: tuple[TypedExpression, ...]
    """Conditions on attributes alone."""
    is_trailing: bool
    """Whether the gap ends with the window, and not with an event."""
    reading: frozenset[str] | None
    """The negated variables of the only reading that has the gap; None if there is one reading."""


def ends_behind(plan: EvaluationPlan, end: int) -> tuple[GapEnd, ...]:
    """Return when each gap of the negations of an OR-free plan can end behind a tick.

    A gap ends with its last tick: the one before the event behind it, or that of the window, and no later
    than the conditions on the negated event's time allow, which alone end one beside a set. An event that
    lasts is known once it has ended: conditions on its begin end no gap, unless its length is bound. Those of
    selection strategies end with events, the last of them with the last event.
    """
    readings: list[frozenset[str] | None] = [None]
    if plan.terms:
        readings = [term.negated for term in plan.terms if term.is_reading]
    gaps: dict[GapEnd, None] = {}
    not_last = {number for group in plan.negated_groups for number in group[:-1]}
    for number, negation in enumerate(plan.negations):
        if number in not_last:
            # Events of a group that all are known forbid only before an unknown one of its last component.
            continue
        negated = negation.component.variable
        for reading in readings:
            if reading is None or negated in reading:
                gap = _end_of(plan, number, end, reading)
                if gap is not None:
                    gaps[gap] = None
    return tuple(gaps)


def _end_of(plan: EvaluationPlan, number: int, end: int, reading: frozenset[str] | None) -> GapEnd | None:
    """Return when the gap of a negation ends behind a tick; None if it never does."""
    negated = plan.negations[number].component.variable
    events, is_trailing = _ended_by(plan, number)
    first_tick = end + 2 - (plan.window if is_trailing else 0)
    times = [_at_least(event, first_tick) for event in events]
    conditions: list[TypedExpression] = []
    longest = _longest(plan, negated)
    for condition in plan.bound.times:
        times_of_it = [reference for reference in condition.references if reference.variable == negated]
        # Of an event that nobody knows the attributes may be anything.
        if len(times_of_it) != 1 or any(column.variable == negated for column in condition.columns):
            continue
        is_upper = condition.later.variable == negated
        if condition.comparison not in (("<", "<=", "=") if is_upper else (">", ">=", "=")):
            continue
        # What lasts is known once it has ended.
        last = end - longest if times_of_it[0].part == "begin" else end
        if last <= -FAR:
            continue
        strictly = condition.comparison in ("<", ">")
        other = condition.earlier if is_upper else condition.later
        if other is not None:
            times.append(_cut(condition, other, last, is_upper=is_upper, strictly=strictly))
        elif condition.is_literal:
            if bounds_in_ticks(condition, None, (), plan.domain.tick_nanoseconds)[1] <= last:
                return None
        else:
            conditions.append(_reaches(condition, last, plan.domain, strictly=strictly))
    return GapEnd(tuple(dict.fromkeys(times)), tuple(conditions), is_trailing, reading)


def _longest(plan: EvaluationPlan, negated: str) -> int:
    """Return how long a negated event can last by conditions on its length alone; 2 FAR: any time."""
    longest = 2 * FAR
    for condition in plan.bound.times:
        earlier, later = condition.earlier, condition.later
        if earlier is None or not earlier.variable == later.variable == negated or not condition.is_literal:
            continue
        low, high = map(int, bounds_in_ticks(condition, None, (), plan.domain.tick_nanoseconds))
        if (earlier.part, later.part) == ("begin", "end"):
            longest = min(longest, high if high < FAR else longest)
        elif (earlier.part, later.part) == ("end", "begin"):
            longest = min(longest, -low if low > -FAR else longest)
    return longest


def _ended_by(plan: EvaluationPlan, number: int) -> tuple[list[TimeReference], bool]:
    """Return the events that a negation's gap ends with, or whose window it ends with, and which it is.

    Beside a set there are none, and it can end as late as one at an end.
    """
    parts, order = plan.components, plan.order
    if order is None:
        after = plan.negations[number].after
        is_trailing = after == len(parts)
        part = parts[0 if is_trailing else after]
        return [TimeReference(part.variable, "first" if part.kleene else "single")], is_trailing
    gap = order.gaps[number]
    if gap.place == "beside":
        return [], True
    is_trailing = gap.place == "trailing"
    # The earliest of several events is as late as all of them are.
    chosen = [
        part for j, part in enumerate(parts) if (not order.before[j] if is_trailing else gap.before >> j & 1)
    ]
    return [TimeReference(part.variable, "current" if part.kleene else "single") for part in chosen], (
        is_trailing
    )


def _at_least(event: TimeReference, tick: int) -> TimeCondition:
    return TimeCondition(event, None, ">=", tick, 0)


def _cut(
    condition: TimeCondition, event: TimeReference, end: int, *, is_upper: bool, strictly: bool
) -> TimeCondition:
    """Return when a bound on the distance of a negated event from another one lets it be behind a tick."""
    sign = -1 if is_upper else 1
    numbers = condition.numbers
    if numbers is not None and is_upper:
        numbers = Apply("negate", (numbers,), numbers.kind)
    return TimeCondition(
        event,
        None,
        ">" if strictly else ">=",
        end + 1 + sign * condition.ticks,
        sign * condition.nanoseconds,
        numbers,
        tuple((sign * moment_sign, moment) for moment_sign, moment in condition.moments),
    )


def _reaches(condition: TimeCondition, end: int, domain: TimeDomain, *, strictly: bool) -> TypedExpression:
    """Return when the time of attributes that a negated event is not behind is behind a tick itself."""
    tick = 1 if domain.unit == "tick" and not condition.moments else domain.tick_nanoseconds
    assert tick is not None
    limit = Constant((end + 1) * tick, "int")
    return Apply("greater" if strictly else "greater_equal", (whole_sum(condition, tick), limit), "bool")


@once_a_plan
def _schema_of_rows(plan: EvaluationPlan) -> pa.Schema:
    """Return the columns of a result that has numbers of rows for ids, and nothing but them and ranges."""
    kept: list[pa.Field] = []
    lists = {part.variable: part.kleene for part in plan.components}
    for field in (plan.counted or plan).output_schema:
        if field.name in lists:
            whole = pa.int64()
            kept.append(pa.field(field.name, pa.list_(whole) if lists[field.name] else whole))
        elif field.name in (*plan.partition_attributes, "range_lower", "range_upper"):
            kept.append(field)
    return pa.schema(kept)


def undecided_plan(plan: EvaluationPlan, gap: GapEnd, row: str, straddled: int | None) -> EvaluationPlan:
    """Return the plan whose matches are those of an OR-free plan of which a gap can end behind a tick.

    Parameters
    ----------
    gap : GapEnd
        One of those of :func:`ends_behind`.
    row : str
        The column with the numbers of the rows, which the plan gives for ids.
    straddled : int or None
        Leave out matches whose event that ends the gap cannot be before this tick.
    """
    schema = _schema_of_rows(plan)
    plan = plan if gap.reading is None else _reading(plan, gap.reading)
    bound, names, domain = plan.bound, plan.names, plan.domain
    implied = [
        predicate for condition in gap.times for predicate in bound_predicates(condition, names, domain)
    ]
    implied += gap.conditions
    if straddled is not None:
        implied.append(_may_be_before(plan, gap.times[0].later, straddled))
    local: dict[str, list[TypedExpression]] = {part.variable: [] for part in plan.components}
    joined = []
    for predicate in implied:
        mentioned = variables_of(predicate)
        if len(mentioned) == 1 and all(map(speaks_of_each_event, columns_in(predicate))):
            local[next(iter(mentioned))].append(predicate)
        else:
            joined.append(once_a_row(predicate))
    query = replace(
        bound.query, min_confidence=None, having=None, order_by_confidence=False, order_by=(), limit=None,
        non_overlapping=False, expected_count=None,
    )  # fmt: skip
    return replace(
        plan,
        bound=replace(
            bound, query=query, times=(*bound.times, *gap.times), returns=(), by=(), every=None, days=None
        ),
        names=replace(names, id=row),
        components=tuple(
            replace(part, local=(*part.local, *local[part.variable])) for part in plan.components
        ),
        joined=(*plan.joined, *joined),
        required_columns=(*plan.required_columns, row),
        output_schema=schema,
        evaluation="query_order",
        confidence=False,
        approximate=None,
        counted=None,
        planner="auto",
        tree=None,
        having=None,
        sort_keys=(),
        unnamed_keys=(),
        known_until=None,
    )


def _may_be_before(plan: EvaluationPlan, event: TimeReference, tick: int) -> TypedExpression:
    is_ticks = plan.domain.unit == "tick"
    limit = tick if is_ticks else tick * (plan.domain.tick_nanoseconds or 1)
    kind: Any = "int" if is_ticks else "time"
    lower = Column(event.variable, plan.names.lower, kind, event.element)
    return Apply("less", (lower, Constant(limit, kind)), "bool")


def _reading(plan: EvaluationPlan, negated: frozenset[str]) -> EvaluationPlan:
    """Return the plan of a reading alone, by the negations that it has."""
    kept = [n for n, negation in enumerate(plan.negations) if negation.component.variable in negated]
    absent = {negation.component.variable for negation in plan.negations} - negated
    bound, order = plan.bound, plan.order

    def without(part: PlannedComponent | Any) -> bool:
        return part.variable not in absent

    return replace(
        plan,
        bound=replace(
            bound,
            components=tuple(filter(without, bound.components)),
            predicates=tuple(
                predicate for predicate in bound.predicates if not variables_of(predicate) & absent
            ),
            times=tuple(condition for condition in bound.times if not condition.variables & absent),
            terms=(),
        ),
        negations=tuple(plan.negations[n] for n in kept),
        joined=tuple(predicate for predicate in plan.joined if not variables_of(predicate) & absent),
        split_keys=tuple(replace(key, negated=_kept(key.negated, kept)) for key in plan.split_keys),
        order=None if order is None else replace(order, gaps=tuple(order.gaps[n] for n in kept)),
    )


def _kept(names: tuple[str | None, ...], kept: list[int]) -> tuple[str | None, ...]:
    return tuple(names[n] for n in kept) if names else names
