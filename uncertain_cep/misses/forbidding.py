"""Events that forbid a choice: in every world they are in a gap that must stay free of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.timed.bounds import UNBOUND
from eventbased.gaps.gap_events import MatchEvents
from uncertain_cep.candidates.event_times import event_times
from uncertain_cep.candidates.existence import as_evaluated, existence
from uncertain_cep.candidates.layout import laid_out
from uncertain_cep.candidates.own_times import times_of
from uncertain_cep.candidates.selection import select
from uncertain_cep.candidates.sequenced import sequenced
from uncertain_cep.candidates.span_times import with_ends
from uncertain_cep.config.tuning import BOXES_AT_ONCE
from uncertain_cep.executor import ticks_of
from uncertain_cep.misses.choice_times import ChoiceTimes
from uncertain_cep.misses.difference_bounds import Constraint, least_move, positive_cycle
from uncertain_cep.misses.questions import ROW
from uncertain_cep.misses.reasons import Move, Reason
from uncertain_cep.misses.span_ends import Side
from uncertain_cep.misses.time_reasons import length_move, move_of_row
from uncertain_cep.operators.context import ExecutionContext, TiedEvents
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plurals import listed
from uncertain_cep.results.boxes import BoxedSearch
from uncertain_cep.results.display import plain_text
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.shapes import Rule, Shape
from uncertain_cep.weighers.templates import OTHER, OTHER_END

__all__ = ["MOST_TRIED", "Forbidding", "forbidding_reasons"]

MOST_TRIED: Final = 4096
"""Systems of constraints that are tried for the events of one choice together."""

_LONG: Final = 2**40
"""Ticks of a window beyond which no more of it is looked at than the table is long."""

Alternative = tuple[Constraint, ...]
"""Constraints each of which keeps an event out of a span."""


@dataclass(frozen=True, slots=True)
class Forbidding:
    """An event that may forbid a choice.

    Attributes
    ----------
    row : int
    rules : tuple of str
        What forbids it.
    ways_out : tuple of Alternative
        For each span that forbids it the constraints one of which has to hold, on the nodes of a choice and
        the one behind them.
    """

    row: int
    rules: tuple[str, ...]
    ways_out: tuple[Alternative, ...]


def forbidding_reasons(times: ChoiceTimes) -> list[Reason]:
    """Return the reasons why other events forbid a choice whose times are possible; none if they need not.

    Of the readings of alternative negations the one with fewest reasons is told.
    """
    readings = [
        _reasons_of_reading(times, list(_certain(times, reading))) for reading in _readings(times.branch)
    ]
    return min(readings, key=len) if all(readings) else []


def _readings(branch: EvaluationPlan) -> list[frozenset[str] | None]:
    """Return the negations of each reading of a branch; None for all."""
    readings = [term.negated for term in branch.terms if term.is_reading]
    return [*readings] or [None]


def _certain(times: ChoiceTimes, reading: frozenset[str] | None) -> Iterator[Forbidding]:
    """Yield the events that happened for certain and may forbid a choice by the rules of a reading."""
    for event in _forbidding(times, reading):
        if times.question.probability[event.row] >= 1.0:
            yield event


def _reasons_of_reading(times: ChoiceTimes, events: list[Forbidding]) -> list[Reason]:
    alone = [reason for event in events if (reason := _alone(times, event)) is not None]
    if alone:
        return sorted(alone, key=lambda reason: -(reason.ticks or 0))
    group = _smallest_group(times, events)
    if not group:
        return []
    ids = tuple(times.question.id_of(event.row) for event in group)
    rules = listed(list(dict.fromkeys(rule for event in group for rule in event.rules)))
    shown = listed([plain_text(id) for id in ids])
    text = f"{rules}: together the events {shown} leave no world, though each alone leaves some"
    return [Reason("forbidden", rules, (), ids, text)]


def _constraints_of(times: ChoiceTimes, event: Forbidding, node: int) -> list[Constraint]:
    """Return the bounds of the time of an event beside a choice, and those of its clock."""
    events = times.events
    clock = events.clock_of(event.row)
    constraints = _bounds_of(times, event.row, node, times.node_of_clock(event.row))
    if clock >= 0 and clock not in times.clocks:
        constraints += events.of_clock(times.node_of(clock), clock)
    return constraints


def _bounds_of(times: ChoiceTimes, row: int, node: int, node_of_clock: int) -> list[Constraint]:
    """Return the bounds of an event beside a choice: its end, if it lasts, is the node behind."""
    events = times.events
    if not events.lasts(row):
        return [*events.constraints(node, row, node_of_clock)]
    return [
        *events.constraints(node, row, node_of_clock, "begin"),
        *events.constraints(node + 1, row, node_of_clock, "end"),
        *events.of_length(node, node + 1, row),
    ]


def _alone(times: ChoiceTimes, event: Forbidding) -> Reason | None:
    """Return the reason that one event forbids a choice in every world; None if it does not."""
    question = times.question
    # The next free node is that of its clock, if no event of the choice has it.
    node = times.nodes + 1
    base = [*times.constraints, *_constraints_of(times, event, node)]
    bounds = [k for k, part in enumerate(base) if part.event >= node]
    nodes = node + 1 + times.events.lasts(event.row)
    moves: dict[int, int] = {}
    for chosen in product(*event.ways_out):
        constraints = [
            *base,
            *(_placed(part, node, lasts=nodes > node + 1) for part in chosen),
        ]
        if not positive_cycle(constraints, nodes):
            return None
        for bound in bounds:
            ticks = least_move(constraints, nodes, (bound,))
            if ticks is not None:
                moves[bound] = min(ticks, moves.get(bound, ticks))
    id = question.id_of(event.row)
    ticks = min(moves.values(), default=None)
    what = listed(list(event.rules))
    amounts: list[Move] = [
        _move_of(times, event.row, base[bound], amount, is_end=base[bound].event > node)
        for bound, amount in sorted(moves.items(), key=lambda item: item[1])
    ]
    return Reason(
        "forbidden", what, (), (id,), f"{what}: the event {plain_text(id)} is there in every world", ticks,
        question.duration(ticks), tuple(amounts),
    )  # fmt: skip


def _move_of(times: ChoiceTimes, row: int, bound: Constraint, ticks: int, *, is_end: bool) -> Move:
    """Return the move of a bound of an event beside a choice."""
    name = plain_text(times.question.id_of(row))
    if bound.kind in ("shortest", "longest"):
        return length_move(times, row, name, bound.kind, ticks)
    side: Side = "" if not times.events.lasts(row) else "end" if is_end else "begin"
    return move_of_row(times, row, name, "earlier" if bound.kind == "lower" else "later", ticks, side)


_BESIDE: Final = -7
"""Stands for the node of an event beside a choice until it has one."""
_END_BESIDE: Final = -8
"""Stands for that of its end."""


def _placed(part: Constraint, node: int, *, lasts: bool) -> Constraint:
    """Return a constraint with the nodes of an event beside a choice: one behind the other if it lasts."""
    nodes = {_BESIDE: node, _END_BESIDE: node + lasts}
    return replace(
        part, later=nodes.get(part.later, part.later), earlier=nodes.get(part.earlier, part.earlier)
    )


def _smallest_group(times: ChoiceTimes, events: Sequence[Forbidding]) -> list[Forbidding]:
    """Return events that together leave no world, none of which can be left out; empty if all leave some."""
    if not events or _can_all_stay_out(times, events) is not False:
        return []
    group = list(events)
    for event in events:
        fewer = [other for other in group if other is not event]
        if fewer and _can_all_stay_out(times, fewer) is False:
            group = fewer
    return group


def _can_all_stay_out(times: ChoiceTimes, events: Sequence[Forbidding]) -> bool | None:
    """Return whether some world has all events outside their spans; None if too many ways are open."""
    clocks = dict.fromkeys(
        clock
        for event in events
        if (clock := times.events.clock_of(event.row)) >= 0 and clock not in times.clocks
    )
    node_of_clock = {clock: times.nodes + k for k, clock in enumerate(clocks)}
    first = times.nodes + len(clocks)
    base = list(times.constraints)
    for clock, node in node_of_clock.items():
        base += times.events.of_clock(node, clock)
    spans: list[Alternative] = []
    node = first
    for event in events:
        lasts, clock = times.events.lasts(event.row), times.events.clock_of(event.row)
        at = node_of_clock.get(clock, times.node_of_clock(event.row))
        base += _bounds_of(times, event.row, node, at)
        spans += [tuple(_placed(part, node, lasts=lasts) for part in ways) for ways in event.ways_out]
        node += 1 + lasts
    return _search(base, spans, node)


def _search(base: list[Constraint], spans: Sequence[Alternative], nodes: int) -> bool | None:
    """Return whether one constraint of each span can hold beside others; None after `MOST_TRIED` systems."""
    waiting: list[tuple[Constraint, ...]] = [()]
    for _ in range(MOST_TRIED):
        if not waiting:
            return False
        chosen = waiting.pop()
        if positive_cycle([*base, *chosen], nodes):
            continue
        if len(chosen) == len(spans):
            return True
        waiting += [(*chosen, part) for part in spans[len(chosen)]]
    return None


def _forbidding(times: ChoiceTimes, reading: frozenset[str] | None) -> Iterator[Forbidding]:
    """Yield the events beside a choice that can be in a span that forbids them."""
    written = _written_out(times)
    if written is None:
        return
    part, numbers = written
    spoilers = part.forbidden
    for x in range(len(part.spoiler_row)):
        names: list[str] = []
        ways: list[Alternative] = []
        for r in range(int(spoilers.rule_start[x]), int(spoilers.rule_start[x + 1])):
            rule = part.shape.rules[int(spoilers.rule[r])]
            negation = -2 - rule.conditions[0] if rule.conditions[0] <= -2 else -1
            if negation >= 0 and reading is not None:
                variable = times.branch.negations[negation].component.variable
                if variable not in reading:
                    continue
            row = int(numbers[part.spoiler_row[x]])
            out = (
                _ways_out(part, r)
                if times.question.ends is None
                else _ways_out_of_span(times, part.shape, rule, row)
            )
            if out is not None:
                names.append(_name_of(times.branch, negation, rule.component))
                ways.append(out)
        if ways:
            yield Forbidding(int(numbers[part.spoiler_row[x]]), tuple(dict.fromkeys(names)), tuple(ways))


def _ways_out(part: ExplicitMatches, r: int) -> Alternative | None:
    """Return the constraints each of which keeps an event out of a rule's span; None if it never is in it."""
    spoilers = part.forbidden
    rule = int(spoilers.rule[r])
    bounds = []
    for c in range(int(spoilers.constraints[rule])):
        later, earlier = (_BESIDE if side == OTHER else side + 1 for side in spoilers.sides[rule, c].tolist())
        bounds.append((later, earlier, int(spoilers.low[r, c]), int(spoilers.high[r, c])))
    return _outside(bounds)


def _ways_out_of_span(times: ChoiceTimes, shape: Shape, rule: Rule, row: int) -> Alternative | None:
    """Return the same of an event that may last, by the span and the conditions of a rule."""

    def node(time: int) -> int:
        if time in (OTHER, OTHER_END):
            return _BESIDE if time == OTHER or not times.events.lasts(row) else _END_BESIDE
        if time < shape.total:
            return time + 1
        component = shape.lasting[time - shape.total]
        return times.end_of.get(component, times.begin_of(component))

    last = OTHER_END if rule.is_lasting else OTHER
    bounds = [(OTHER, time, low, UNBOUND) for time, low in rule.span.lowers]
    bounds += [(last, time, -UNBOUND, high) for time, high in rule.span.uppers]
    for instance in rule.instances:
        allowed = times.templates.bounds(instance, times.choice, row)
        if allowed is None:
            return None
        bounds.append((instance.later, instance.earlier, *allowed))
    return _outside((node(later), node(earlier), low, high) for later, earlier, low, high in bounds)


def _outside(bounds: Iterable[tuple[int, int, int, int]]) -> Alternative | None:
    """Return the constraints each of which breaks one of some bounds; None if they are never met together.

    ``bounds`` are of the later time less the earlier one: the nodes of both, the least and the largest value.
    """
    ways: list[Constraint] = []
    for later, earlier, low, high in bounds:
        if low > high or (later == earlier and not low <= 0 <= high):
            return None
        if later == earlier:
            continue
        if low > -UNBOUND:
            # Below the least difference.
            ways.append(Constraint(later, earlier, 1 - low, "outside"))
        if high < UNBOUND:
            ways.append(Constraint(earlier, later, high + 1, "outside"))
    return tuple(ways)


def _name_of(branch: EvaluationPlan, negation: int, component: int) -> str:
    """Return the rule that forbids an event, as the query writes it."""
    if negation >= 0:
        part = branch.negations[negation].component
        is_strategy = "(" in part.variable
        return part.variable if is_strategy else f"!{'|'.join(part.types) or 'ANY'} {part.variable}"
    if component >= 0:
        return f"{branch.query.strategy}: what could be {branch.components[component].variable}"
    return str(branch.query.strategy)


def _written_out(
    times: ChoiceTimes,
) -> tuple[ExplicitMatches, NDArray[np.int64]] | None:
    """Return a choice with its spoilers, and the rows of their table among all; None if it has none."""
    question, branch = times.question, times.branch
    if not branch.forbids:
        return None
    numbers = _near(times)
    table = question.table.take(pa.array(numbers))
    table = table.set_column(table.schema.get_field_index(ROW), ROW, pa.array(np.arange(len(numbers))))
    names = branch.names
    lower, upper = (bound[numbers] for bound in question.times)
    plan, spans = branch, None
    if question.ends is not None:
        plan, table, spans = with_ends(plan, table)
        times_of_ends = event_times(plan, table)
        lower, upper = times_of_ends.lower, times_of_ends.upper
    bounds = ticks_of(table, names.lower, branch), ticks_of(table, names.upper, branch)
    exists = existence(table, names.probability)
    plan = as_evaluated(plan, exists)
    ties = None
    if plan.clock_names.sequence is not None:
        pmfs, low, high = times_of(plan, table, question.offsets, *bounds)
        order = sequenced(plan, table, pmfs, low, high)
        if order is not None:
            lower, upper = order.times
            ties = TiedEvents(order, plan)
    selection = select(plan, table, lower, upper, lower, None)
    context = ExecutionContext(
        plan,
        table,
        selection,
        (lower, upper),
        None,
        None,
        True,
        BOXES_AT_ONCE,
        existence=exists,
        ties=ties,
        spans=spans,
    )
    # What the ends of the table leave of a window says nothing of events that move.
    window = min(question.window, max(context.span, _LONG))
    events = np.searchsorted(numbers, times.choice)
    variables = [part.variable for part in plan.components]
    of_events = times.placed[: len(times.choice)]
    component = np.array([variables.index(event.variable) for event in of_events])
    for part, candidates, laid in laid_out(selection, window + 2, step=0):
        first = candidates.first
        places = [
            int(first[j]) + int(np.flatnonzero(laid[first[j] : first[j + 1]] == row)[0])
            if (laid[first[j] : first[j + 1]] == row).any()
            else -1
            for j, row in zip(component.tolist(), events.tolist(), strict=True)
        ]
        if min(places) < 0:
            continue
        search = BoxedSearch(replace(context, candidates=part), candidates, laid, window)
        match = MatchEvents(np.array([0, len(places)]), np.array(places), component)
        (written,) = search.model(match).explicit
        return written, numbers
    return None


def _near(times: ChoiceTimes) -> NDArray[np.int64]:
    """Return the rows of the events that can be in a gap of a choice, and its own: a window around it."""
    question = times.question
    (lower, upper), reach = question.times, question.reach()
    rows = np.array(times.choice)
    return question.near(int(lower[rows].min()) - reach, int(upper[rows].max()) + reach)
