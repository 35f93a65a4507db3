"""Events that forbid a choice: in every world they are in a gap that must stay free of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, product
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
from uncertain_cep.query.repeated_groups import list_of
from uncertain_cep.query.until import text_of_negation
from uncertain_cep.query.walks import components_of
from uncertain_cep.results.boxes import BoxedSearch
from uncertain_cep.results.display import plain_text
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.first_members import places_in_groups
from uncertain_cep.weighers.shapes import Rule, Shape
from uncertain_cep.weighers.templates import OTHER, OTHER_END

__all__ = ["MOST_TRIED", "Forbidding", "forbidding_reasons"]

MOST_TRIED: Final = 4096
"""Systems of constraints that are tried for the events of one choice together."""

_LONG: Final = 2**40
"""Ticks of a window beyond which no more of it is looked at than the table is long."""

_MOST_TOGETHER: Final = 64
"""Choices of events of one negated group that are looked at."""

Alternative = tuple[Constraint, ...]
"""Constraints each of which keeps an event out of a span."""


@dataclass(frozen=True, slots=True)
class Forbidding:
    """An event that may forbid a choice, or the events of a negated group.

    Attributes
    ----------
    rows : tuple of int
    rules : tuple of str
        What forbids them.
    ways_out : tuple of Alternative
        For each span that forbids them the constraints one of which has to hold, on the nodes of a choice and
        placeholders for theirs.
    """

    rows: tuple[int, ...]
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


def _certain(times: ChoiceTimes, reading: frozenset[str] | None) -> list[Forbidding]:
    """Return the events that happened for certain and may forbid a choice by the rules of a reading."""
    probability = times.question.probability
    return [event for event in _forbidding(times, reading) if (probability[list(event.rows)] >= 1.0).all()]


def _reasons_of_reading(times: ChoiceTimes, events: list[Forbidding]) -> list[Reason]:
    alone = [reason for event in events if (reason := _alone(times, event, events)) is not None]
    if alone:
        return sorted(alone, key=lambda reason: -(reason.ticks or 0))
    group = _smallest_group(times, events)
    if not group:
        return []
    ids = tuple(
        times.question.id_of(row) for row in dict.fromkeys(row for event in group for row in event.rows)
    )
    rules = listed(list(dict.fromkeys(rule for event in group for rule in event.rules)))
    shown = listed([plain_text(id) for id in ids])
    text = f"{rules}: together the events {shown} leave no world, though each alone leaves some"
    return [Reason("forbidden", rules, (), ids, text)]


@dataclass(frozen=True, slots=True)
class _Beside:
    """The constraints on the times of a choice and of events beside it, and the nodes of these.

    Attributes
    ----------
    constraints : list of Constraint
    node_of : dict of int to int
        By row; the end of an event that lasts is the node behind.
    nodes : int
    """

    constraints: list[Constraint]
    node_of: dict[int, int]
    nodes: int

    @classmethod
    def of(cls, times: ChoiceTimes, events: Sequence[Forbidding]) -> _Beside:
        """Return the constraints with some events beside a choice."""
        rows = list(dict.fromkeys(row for event in events for row in event.rows))
        clock_of = {row: times.events.clock_of(row) for row in rows}
        # The next free nodes are those of their clocks that no event of the choice has.
        clocks = [*dict.fromkeys(c for c in clock_of.values() if c >= 0 and c not in times.clocks)]
        node_of_clock = {clock: times.nodes + k for k, clock in enumerate(clocks)}
        constraints = list(times.constraints)
        for clock, node in node_of_clock.items():
            constraints += times.events.of_clock(node, clock)
        node, node_of = times.nodes + len(clocks), dict[int, int]()
        for row in rows:
            node_of[row] = node
            clock_node = node_of_clock.get(clock_of[row], times.node_of_clock(row))
            constraints += _bounds_of(times, row, node, clock_node)
            node += 1 + times.events.lasts(row)
        return cls(constraints, node_of, node)

    def spans(self, times: ChoiceTimes, events: Sequence[Forbidding]) -> list[Alternative]:
        """Return the ways out of each span of events, with their nodes in place of placeholders."""
        return [
            tuple(self._placed(times, event, part) for part in ways)
            for event in events
            for ways in event.ways_out
        ]

    def _placed(self, times: ChoiceTimes, event: Forbidding, part: Constraint) -> Constraint:
        nodes: dict[int, int] = {}
        for place, row in enumerate(event.rows):
            nodes[_BESIDE - place] = self.node_of[row]
            nodes[_END_BESIDE - place] = self.node_of[row] + times.events.lasts(row)
        return replace(
            part, later=nodes.get(part.later, part.later), earlier=nodes.get(part.earlier, part.earlier)
        )


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


def _alone(times: ChoiceTimes, event: Forbidding, events: Sequence[Forbidding]) -> Reason | None:
    """Return the reason that an event, or a group, forbids a choice in every world; None if it does not."""
    if _can_all_stay_out(times, [event]) is not False:
        return None
    question = times.question
    beside = _Beside.of(times, [event])
    base = beside.constraints
    first = min(beside.node_of.values())
    bounds = [k for k, part in enumerate(base) if part.event >= first]
    # In another order they may be another choice of the group.
    same = [other for other in events if {*other.rows} <= {*event.rows}]
    moves: dict[int, int] = {}
    for chosen in islice(product(*beside.spans(times, same)), MOST_TRIED):
        constraints = [*base, *chosen]
        for bound in bounds:
            ticks = least_move(constraints, beside.nodes, (bound,))
            if ticks is not None:
                moves[bound] = min(ticks, moves.get(bound, ticks))
    ids = tuple(map(question.id_of, event.rows))
    ticks = min(moves.values(), default=None)
    what = listed(list(event.rules))
    amounts: list[Move] = []
    for bound, amount in sorted(moves.items(), key=lambda item: item[1]):
        node = base[bound].event
        row = max((one for one in event.rows if beside.node_of[one] <= node), key=beside.node_of.__getitem__)
        amounts.append(_move_of(times, row, base[bound], amount, is_end=node > beside.node_of[row]))
    shown = listed([plain_text(id) for id in ids])
    text = f"the event {shown} is" if len(ids) == 1 else f"the events {shown}, in this order, are"
    return Reason(
        "forbidden", what, (), ids, f"{what}: {text} there in every world", ticks, question.duration(ticks),
        tuple(amounts),
    )  # fmt: skip


def _move_of(times: ChoiceTimes, row: int, bound: Constraint, ticks: int, *, is_end: bool) -> Move:
    """Return the move of a bound of an event beside a choice."""
    name = plain_text(times.question.id_of(row))
    if bound.kind in ("shortest", "longest"):
        return length_move(times, row, name, bound.kind, ticks)
    side: Side = "" if not times.events.lasts(row) else "end" if is_end else "begin"
    return move_of_row(times, row, name, "earlier" if bound.kind == "lower" else "later", ticks, side)


_BESIDE: Final = -100
"""Stands for the node of the first event beside a choice until it has one, one less for that of the next."""
_END_BESIDE: Final = -200
"""Stands for that of its end."""


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
    beside = _Beside.of(times, events)
    return _search(beside.constraints, beside.spans(times, events), beside.nodes)


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
    part, numbers, keys = written
    spoilers = part.forbidden
    groups: dict[tuple[int, int], list[dict[int, Alternative]]] = {}
    place_of = places_in_groups(times.branch)
    for x in range(len(part.spoiler_row)):
        names: list[str] = []
        ways: list[Alternative] = []
        row = int(numbers[part.spoiler_row[x]])
        for r in range(int(spoilers.rule_start[x]), int(spoilers.rule_start[x + 1])):
            rule = part.shape.rules[int(spoilers.rule[r])]
            negation = -2 - rule.conditions[0] if rule.conditions[0] <= -2 else -1
            if negation >= 0 and reading is not None:
                variable = times.branch.negations[negation].component.variable
                if variable not in reading:
                    continue
            out = (
                _ways_out(part, r)
                if times.question.ends is None
                else _ways_out_of_span(times, part.shape, rule, row)
            )
            if out is None:
                continue
            if negation in place_of:
                number, place, size = place_of[negation]
                key = int(keys[number][place][part.spoiler_row[x]])
                if key >= 0:
                    groups.setdefault((number, key), [{} for _ in range(size)])[place][row] = out
                continue
            names.append(_name_of(times.branch, negation, rule.component))
            ways.append(out)
        if ways:
            yield Forbidding((row,), tuple(dict.fromkeys(names)), tuple(ways))
    for (number, _), members in groups.items():
        yield from _forbidding_together(
            times, _text_of(times.branch, times.branch.negated_groups[number]), members
        )


def _forbidding_together(
    times: ChoiceTimes, name: str, members: list[dict[int, Alternative]]
) -> Iterator[Forbidding]:
    """Yield events of a negated group, one for each of its components, that can be in its gap in their order.

    ``members`` has the events of each component, and the ways in which they are not in the gap. Those that
    are most surely there, and in order, come first.
    """
    question = times.question
    lower, upper = question.times
    # Of each certain event, whether it may be out of the gap.
    is_open = [
        {
            row: _can_all_stay_out(times, [Forbidding((row,), (name,), (way,))]) is not False
            for row, way in ways.items()
            if question.probability[row] >= 1.0
        }
        for ways in members
    ]
    certain = [sorted(rows, key=rows.__getitem__) for rows in is_open]
    tuples = [
        rows
        for rows in islice(product(*certain), MOST_TRIED)
        if len({*rows}) == len(rows) and all(lower[one] < upper[behind] for one, behind in pairwise(rows))
    ]

    def doubt(rows: tuple[int, ...]) -> tuple[int, int]:
        slack = max(int(upper[one] - lower[behind]) for one, behind in pairwise(rows))
        return sum(is_open[place][row] for place, row in enumerate(rows)), slack

    tuples.sort(key=doubt)
    for chosen in tuples[:_MOST_TOGETHER]:
        ways = [
            replace(part, later=_moved(part.later, place), earlier=_moved(part.earlier, place))
            for place, row in enumerate(chosen)
            for part in members[place][row]
        ]
        in_order = [
            Constraint(_BESIDE - place, _BESIDE - place + 1, 0, "outside") for place in range(1, len(chosen))
        ]
        yield Forbidding(chosen, (name,), ((*in_order, *ways),))


def _moved(node: int, place: int) -> int:
    """Return the placeholder of an event at a place of a group for that of the first one."""
    return node - place if node in (_BESIDE, _END_BESIDE) else node


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
        return _text_of(branch, [negation]) or branch.negations[negation].component.variable
    if component >= 0:
        return f"{branch.query.strategy}: what could be {branch.components[component].variable}"
    return str(branch.query.strategy)


def _text_of(branch: EvaluationPlan, negations: Iterable[int]) -> str:
    """Return negations that forbid together, as the query writes them; nothing for a strategy of one gap."""
    names = {list_of(branch.negations[number].component.variable) for number in negations}
    parts = [part for part in components_of(branch.query.pattern) if part.variable in names]
    return text_of_negation(parts) if parts else ""


def _written_out(
    times: ChoiceTimes,
) -> tuple[ExplicitMatches, NDArray[np.int64], tuple[tuple[NDArray[np.int64], ...], ...]] | None:
    """Return a choice with its spoilers, the rows of their table among all, and the keys of negated groups.

    None if it has no spoilers. The keys are those of the rows of their table, by group and component.
    """
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
        model = search.model(match)
        (written,) = model.explicit
        return written, numbers, model.pattern.member_keys if plan.has_negated_groups else ()
    return None


def _near(times: ChoiceTimes) -> NDArray[np.int64]:
    """Return the rows of the events that can be in a gap of a choice, and its own: a window around it."""
    question = times.question
    (lower, upper), reach = question.times, question.reach()
    rows = np.array(times.choice)
    return question.near(int(lower[rows].min()) - reach, int(upper[rows].max()) + reach)
