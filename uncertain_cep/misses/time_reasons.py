"""Reasons why the times of chosen events are impossible, and the bounds that would have to move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from uncertain_cep.misses.choice_times import ChoiceTimes
from uncertain_cep.misses.difference_bounds import ZERO, Constraint, LongestPaths, least_move, positive_cycle
from uncertain_cep.misses.reasons import Move, Reason
from uncertain_cep.misses.span_ends import Side
from uncertain_cep.plan.known_until import shown_tick
from uncertain_cep.plurals import listed

__all__ = ["event_move", "length_move", "move_of_row", "moves_of", "time_reasons"]

_LENGTHS: Final = ("shortest", "longest")
"""Constraints on the length of an event that lasts."""


class _Failure(NamedTuple):
    """Two times between which constraints ask for more than the events' bounds leave.

    ``early`` and ``late`` are nodes, `ZERO` where a condition names a time itself; the constraints ask that
    the one is so many ticks behind the other at least, and ``ticks`` are missing.
    """

    early: int
    late: int
    ticks: int
    path: list[int]


def time_reasons(times: ChoiceTimes) -> list[Reason]:
    """Return the reasons why no world has the times of a choice, by falling amount; none if one has.

    Of the failures of one condition the largest is a reason; those of the order, if they share no step.
    """
    reasons = [_null(name) for name in dict.fromkeys(times.null)]
    literals = times.constraints[: times.literals]
    cycle = positive_cycle(literals, times.nodes)
    if cycle:
        return [*reasons, _contradiction(times, [literals[k] for k in cycle])]
    failures = sorted(_failures(times), key=lambda failure: (-failure.ticks, len(failure.path)))
    seen: list[tuple[frozenset[tuple[str, str]], frozenset[int]]] = []
    for failure in failures:
        parts = [literals[k] for k in failure.path]
        conditions = frozenset((part.kind, part.name) for part in parts if part.kind != "order")
        steps = frozenset(failure.path)
        # Several conditions together are a reason only where they ask for more than each of them does.
        is_known = any(
            (conditions == other and (conditions or steps & taken)) or (other and other < conditions)
            for other, taken in seen
        )
        if is_known:
            continue
        seen.append((conditions, steps))
        reasons.append(_reason(times, failure, parts))
    if not reasons and (cycle := positive_cycle(times.constraints, times.nodes)):
        reasons.append(_together(times, [times.constraints[k] for k in cycle]))
    return reasons


def _failures(times: ChoiceTimes) -> Iterator[_Failure]:
    """Yield the pairs of times that no world has far enough apart, by each condition and by all together.

    O(conditions * events**3).
    """
    literals = times.constraints[: times.literals]
    names = list(dict.fromkeys((part.kind, part.name) for part in literals if part.kind != "order"))
    sets = [{name} for name in names] if len(names) > 1 else []
    for conditions in [set[tuple[str, str]](), *sets, set(names)]:
        chosen = [
            k
            for k, part in enumerate(literals)
            if part.kind == "order" or (part.kind, part.name) in conditions
        ]
        yield from _failures_of(times, chosen)


def _failures_of(times: ChoiceTimes, chosen: list[int]) -> Iterator[_Failure]:
    """Yield the failures by some of the constraints, given by number."""
    # Tick 0 comes twice, so that no path goes through it.
    count = len(times.placed)
    begin, end = 0, count + 1
    parts = [
        replace(part, later=end) if part.later == ZERO else part
        for part in (times.constraints[k] for k in chosen)
    ]
    paths = LongestPaths.of(parts, count + 2)
    for early in (begin, *range(1, count + 1)):
        for late in (*range(1, count + 1), end):
            apart = paths.ticks[early][late]
            if apart is None or early == late:
                continue
            ticks = apart + _most_room(times, early, 0 if late == end else late)
            if ticks > 0:
                path = [chosen[k] for k in paths.path(early, late)]
                yield _Failure(early, 0 if late == end else late, ticks, path)


def _same_clock(times: ChoiceTimes, early: int, late: int) -> bool:
    """Return whether two events are of one clock whose offset is uncertain."""
    if ZERO in (early, late):
        return False
    one, other = (times.events.clock_of(times.placed[node - 1].row) for node in (early, late))
    return one == other >= 0


def _most_room(times: ChoiceTimes, early: int, late: int) -> int:
    """Return the first tick of one time less the last of another, by their clock if they share it."""
    first, last = _ends(times, early, late)
    ends, row = times.question.ends, times.placed[early - 1].row
    if ends is not None and ZERO not in (early, late) and row == times.placed[late - 1].row:
        # Both are of one event that lasts.
        return max(first - last, ends.least_apart(row, times.placed[late - 1].side))
    return first - last


def _ends(times: ChoiceTimes, early: int, late: int) -> tuple[int, int]:
    """Return the first tick of one time and the last of another; by the clock that they share."""
    if _same_clock(times, early, late):
        one, other = times.placed[early - 1], times.placed[late - 1]
        bounds = times.events.bounds(one.row, one.side), times.events.bounds(other.row, other.side)
        return bounds[0][0], bounds[1][1]
    first = 0 if early == ZERO else times.bounds_of(early)[0]
    last = 0 if late == ZERO else times.bounds_of(late)[1]
    return first, last


def _null(name: str) -> Reason:
    return Reason("predicate", name, (), (), f"{name} is not true: it compares with null")


def _names_of(times: ChoiceTimes, nodes: list[int]) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Return the variables and the ids of some events."""
    placed = [times.placed[node - 1] for node in nodes if node != ZERO]
    return tuple(event.mention for event in placed), tuple(
        times.question.id_of(event.row) for event in placed
    )


def _conditions(times: ChoiceTimes, parts: list[Constraint]) -> str:
    """Return the conditions that some constraints come from, in words."""
    names = []
    for part in parts:
        if part.kind == "window":
            names.append(_window_text(times))
        elif part.kind == "time":
            names.append(part.name)
        elif part.kind == "source order":
            names.append("the order of their source")
        elif part.kind == "order":
            early, late = (times.placed[node - 1].event for node in (part.earlier, part.later))
            names.append(f"{early} before {late}")
        elif part.kind in ("end", *_LENGTHS):
            names.append(f"the length of {times.placed[part.earlier - 1].event}")
        elif part.event > 0:
            names.append(f"the interval of {times.placed[part.event - 1].mention}")
        else:
            names.append("the offset of their clock")
    return listed(list(dict.fromkeys(names)))


def _window_text(times: ChoiceTimes) -> str:
    window = times.question.window
    return f"WITHIN {times.question.duration(window) or f'{window:,}'}"


def _contradiction(times: ChoiceTimes, parts: list[Constraint]) -> Reason:
    nodes = list(dict.fromkeys(node for part in parts for node in (part.earlier, part.later) if node != ZERO))
    what = _conditions(times, parts)
    text = f"{what} contradict each other: no times meet {'both' if len(parts) == 2 else 'all of them'}"
    return Reason("contradiction", what, *_names_of(times, nodes), text)


def _together(times: ChoiceTimes, parts: list[Constraint]) -> Reason:
    count = len(times.placed)
    nodes = [
        node
        for node in dict.fromkeys(node for part in parts for node in (part.earlier, part.later))
        if 0 < node <= count
    ]
    what = _conditions(times, parts)
    return Reason("together", what, *_names_of(times, nodes), f"no world meets all of these together: {what}")


def _reason(times: ChoiceTimes, failure: _Failure, parts: list[Constraint]) -> Reason:
    kinds = {part.kind for part in parts}
    kind = next((name for name in ("time", "window", "source order") if name in kinds), "order")
    ends = [node for node in (failure.early, failure.late) if node != ZERO]
    what = _conditions(times, [part for part in parts if kind == "order" or part.kind != "order"])
    amount = times.question.amount(failure.ticks)
    text = f"{_headline(kind, what)}: {_lateness(times, failure, amount)}"
    moves = tuple(_moves_of_failure(times, failure, parts))
    duration = times.question.duration(failure.ticks)
    return Reason(kind, what, *_names_of(times, ends), text, failure.ticks, duration, moves)


def _headline(kind: str, what: str) -> str:
    return {"window": "the window, ", "order": "the order, "}.get(kind, "") + what


def _lateness(times: ChoiceTimes, failure: _Failure, amount: str) -> str:
    """Name the event that is too early or too late, and by how much."""
    shown = times.question.plan.domain
    if failure.late == ZERO:
        name = times.placed[failure.early - 1].mention
        first = times.bounds_of(failure.early)[0]
        return f"{name} is at least {amount} too late, at {shown_tick(first, shown)} at the earliest"
    name = times.placed[failure.late - 1].mention
    last = times.bounds_of(failure.late)[1]
    if failure.early == ZERO:
        return f"{name} is at least {amount} too early, at {shown_tick(last, shown)} at the latest"
    other = times.placed[failure.early - 1].mention
    if times.placed[failure.early - 1].row == times.placed[failure.late - 1].row:
        event = times.placed[failure.early - 1].event
        is_short = times.placed[failure.late - 1].side == "end"
        return f"{event} is at least {amount} too {'short' if is_short else 'long'}"
    first, last = _ends(times, failure.early, failure.late)
    by_clock = " by their clock" if _same_clock(times, failure.early, failure.late) else ""
    at = f"{other} from {shown_tick(first, shown)} on, {name} up to {shown_tick(last, shown)}{by_clock}"
    needed = failure.ticks - _most_room(times, failure.early, failure.late)
    if needed <= 0:
        return f"{other} is at least {amount} too late after {name} ({at})"
    return f"{name} is at least {amount} too early after {other} ({at})"


def event_move(times: ChoiceTimes, node: int, side: str, ticks: int) -> Move:
    """Return the move of a bound of an event of the choice, ``earlier`` or ``later``."""
    event = times.placed[node - 1]
    return move_of_row(times, event.row, event.event, side, ticks, event.side)


def move_of_row(times: ChoiceTimes, row: int, name: str, side: str, ticks: int, end: Side = "") -> Move:
    """Return the move of a bound of an event, as it is called; ``end`` is that of one that lasts."""
    question = times.question
    lower, upper = _movable(times, row, end)
    clock, offsets = times.events.clock_of(row), question.offsets
    if clock >= 0 and offsets is not None:
        lower, upper = lower + int(offsets.low[clock]), upper + int(offsets.high[clock])
    bound = lower - ticks if side == "earlier" else upper + ticks
    text = f"{name} could {end or 'be'} {question.amount(ticks)} {side}"
    shown = shown_tick(bound, question.plan.domain)
    time = f"{name}.{end}" if end else name
    return Move("event", time, question.id_of(row), side, ticks, question.duration(ticks), shown, text)


def _movable(times: ChoiceTimes, row: int, end: Side) -> tuple[int, int]:
    """Return the bounds of a time that can move, by its clock: of what lasts those that are given."""
    stated = times.question.ends.stated(end, row) if end and times.question.ends is not None else None
    return times.events.bounds(row, end) if stated is None else times.events.by_clock(row, *stated)


def length_move(times: ChoiceTimes, row: int, name: str, kind: str, ticks: int) -> Move:
    """Return the move of a bound of the length of an event that lasts, ``shortest`` or ``longest``."""
    question = times.question
    assert question.ends is not None
    stated = question.ends.stated("length", row)
    assert stated is not None
    side, bound = ("shorter", stated[0] - ticks) if kind == "shortest" else ("longer", stated[1] + ticks)
    text = f"{name} could last {question.amount(ticks)} {side}"
    shown = question.amount(bound)
    return Move("length", name, question.id_of(row), side, ticks, question.duration(ticks), shown, text)


def _clock_move(times: ChoiceTimes, clock: int, side: str, ticks: int) -> Move:
    question, offsets = times.question, times.question.offsets
    assert offsets is not None
    source = str(question.table.column(question.plan.names.source)[int(offsets.row[clock])].as_py())
    before = int(offsets.low[clock] if side == "earlier" else offsets.high[clock])
    after = before - ticks if side == "earlier" else before + ticks
    # Most clocks are off by at most so much on either side.
    is_wider = abs(after) > abs(before)
    old, new = (_signed(times, value, plain=is_wider) for value in (before, after))
    text = f"the clock {source} had a bound of {new} instead of {old}"
    return Move("clock", source, None, side, ticks, question.duration(ticks), new, text)


def _signed(times: ChoiceTimes, ticks: int, *, plain: bool) -> str:
    """Return an offset in words; ``plain`` without its sign."""
    return f"{'-' if ticks < 0 and not plain else ''}{_length(times, abs(ticks))}"


def _length(times: ChoiceTimes, ticks: int) -> str:
    question = times.question
    return "0" if not ticks else question.duration(ticks) or f"{ticks:,}"


def _window_move(times: ChoiceTimes, ticks: int) -> Move:
    question, window = times.question, times.question.window
    longer = _length(times, window + ticks)
    text = f"WITHIN were {longer} instead of {_length(times, window)}"
    return Move("window", "WITHIN", None, "longer", ticks, question.duration(ticks), longer, text)


def _condition_move(times: ChoiceTimes, name: str, ticks: int) -> Move:
    question = times.question
    text = f"{name} allowed {question.amount(ticks)} more"
    return Move("condition", name, None, "weaker", ticks, question.duration(ticks), None, text)


def _moves_of_failure(times: ChoiceTimes, failure: _Failure, parts: list[Constraint]) -> Iterator[Move]:
    """Yield the moves each of which mends a failure: of both events, and of conditions in it."""
    for node, side in ((failure.early, "earlier"), (failure.late, "later")):
        # Of what lasts, begin, end and length bound each other: see `moves_of`.
        is_free = node != ZERO and not times.placed[node - 1].side
        if is_free and not times.events.is_bound_by_others(times.placed[node - 1].row):
            yield event_move(times, node, side, failure.ticks)
    if sum(part.kind == "window" for part in parts) == 1:
        yield _window_move(times, failure.ticks)
    names = [part.name for part in parts if part.kind == "time"]
    for name in dict.fromkeys(names):
        if names.count(name) == 1:
            yield _condition_move(times, name, failure.ticks)


def moves_of(times: ChoiceTimes) -> Iterator[Move]:
    """Yield the single moves each of which makes the times of a choice possible, the least first.

    O(bounds) systems, each O(nodes * constraints) a step.
    """
    if times.null:
        return
    bounds: dict[tuple[str, str], list[int]] = {}
    for k, part in enumerate(times.constraints):
        if part.kind in ("lower", "upper"):
            if times.events.is_bound_by_others(times.placed[part.event - 1].row):
                # To move its bounds alone may leave its time where it is.
                continue
            bounds[part.kind, str(part.event)] = [k]
        elif part.kind in _LENGTHS:
            bounds[part.kind, str(part.event)] = [k]
        elif part.kind in ("offset lower", "offset upper"):
            bounds[part.kind, part.name] = [k]
        elif part.kind in ("window", "time"):
            bounds.setdefault((part.kind, part.name), []).append(k)
    moves = []
    for (kind, name), eased in bounds.items():
        ticks = least_move(times.constraints, times.nodes, eased)
        if ticks is None:
            continue
        if kind in ("lower", "upper"):
            moves.append(event_move(times, int(name), "earlier" if kind == "lower" else "later", ticks))
        elif kind in _LENGTHS:
            event = times.placed[int(name) - 1]
            moves.append(length_move(times, event.row, event.event, kind, ticks))
        elif kind.startswith("offset"):
            moves.append(
                _clock_move(times, int(name), "earlier" if kind == "offset lower" else "later", ticks)
            )
        elif kind == "window":
            moves.append(_window_move(times, ticks))
        else:
            moves.append(_condition_move(times, name, ticks))
    yield from sorted(moves, key=lambda move: move.ticks)
