"""The literals and forbidden spans of chosen matches, written out as arrays: the one place that does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.budget import checkpoint, steps_per_call
from confidence.chain.distribution import DOUBTFUL, Intervals
from confidence.chain.tick_pairs import enlarged
from confidence.flat_lists import taken
from confidence.gaps.chains import room_for
from confidence.timed.bounds import UNBOUND
from confidence.timed.counted_pairs import LASTING
from confidence.timed.forbidden_tables import Others
from confidence.timed.summed_matches import SummedTimes, tighten_all
from eventbased.gaps.gap_events import GapEvents, Gathered, by_counts, intervals_given
from eventbased.gaps.shape_rules import (
    DONE,
    NO_PLACE,
    NO_ROOM,
    NOT_DONE,
    FoundEvents,
    ShapeRules,
    forbidden_of_all,
)
from uncertain_cep.candidates.tie_breaks import TieBreaks
from uncertain_cep.weighers.beside import EarlierTick, EndOfEvent, TimeDifference
from uncertain_cep.weighers.forbidden_pairs import with_pairs
from uncertain_cep.weighers.pattern import ChosenEvents
from uncertain_cep.weighers.shapes import Shape
from uncertain_cep.weighers.templates import OTHER, Instance, TimeTemplates

__all__ = [
    "ExplicitMatches",
    "TooManySpoilersError",
    "gathered",
    "matches_by_counts",
    "own_bounds",
    "rule_bounds",
    "written_out",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
Literals = dict[tuple[int, int], tuple[Any, Any]]
"""Pairs of times, and the bounds of the one less the other."""

_STRICT: Final = 1
"""Ticks by which an event is behind another one at least, unless a sequence breaks a tie."""

_FIRST_ROOM: Final = 1 << 14
"""Forbidden events of all matches that there is room for at first."""

_FIRST_OF_ONE: Final = 64
"""The same of one match."""

_MOST_SPOILERS: Final = 1 << 20
"""Forbidden events of several matches that are listed at once: some 60 bytes each, and 16 for each rule."""

_MOST_BOUNDS: Final = 1 << 18
"""Bounds by conditions of several matches that are computed at once."""


class TooManySpoilersError(Exception):
    """Too many events may be forbidden the matches of a batch: it is to be split."""


class ExplicitMatches(NamedTuple):
    """Matches of one shape, with their literals and forbidden spans.

    Attributes
    ----------
    which : (k,) int64
        Their numbers in the model.
    shape : Shape
    times : SummedTimes
        The tight ticks of each event, its law, and the literals.
    forbidden : Others
        The events that may be forbidden, and the constraints of each span.
    pmfs : Pmfs
    row : (k, l) int64
        The events of each match.
    spoiler_row : (n,) int64
        The events that may be forbidden.
    tied : (k,) bool
        Whether a sequence breaks a tie that decides on the match.
    """

    which: Int64
    shape: Shape
    times: SummedTimes
    forbidden: Others
    pmfs: Pmfs
    row: Int64
    spoiler_row: Int64
    tied: Mask

    @property
    def sizes(self) -> Float64:
        """(k, l) float64. How many ticks each event can happen at; at least 1."""
        ticks = self.times.last - self.times.first + 1
        found: Float64 = np.maximum(ticks, 1).astype(np.float64)
        return found

    @property
    def spoilers(self) -> Int64:
        """(k,) int64. How many events may be forbidden each match."""
        return np.diff(self.forbidden.start)

    @property
    def lasting_spoilers(self) -> Mask:
        """(n,) bool. Which of the events that may be forbidden last, and have no certain length."""
        offset = self.forbidden.offset
        lasting = offset <= DOUBTFUL
        lasting[lasting] = self.pmfs.values[DOUBTFUL - offset[lasting] + 1] <= LASTING
        return lasting

    def some(self, chosen: Int64) -> ExplicitMatches:
        """Return some of the matches, (m,) int64 places in this batch."""
        if len(chosen) == len(self.which) and (chosen == np.arange(len(chosen))).all():
            return self
        forbidden = self.forbidden
        event, start = taken(forbidden.start, chosen)
        rule, rule_start = taken(forbidden.rule_start, event)
        forbidden = Others(
            start, forbidden.lower[event], forbidden.upper[event], forbidden.offset[event], rule_start,
            forbidden.rule[rule], forbidden.sides, forbidden.constraints, forbidden.low[rule],
            forbidden.high[rule],
        )  # fmt: skip
        return ExplicitMatches(
            self.which[chosen], self.shape, self.times.some(chosen), forbidden, self.pmfs, self.row[chosen],
            self.spoiler_row[event], self.tied[chosen],
        )  # fmt: skip


def written_out(model: ChosenEvents) -> Iterator[ExplicitMatches]:
    """Yield the matches of a model by shape, with their literals and forbidden spans.

    Raises
    ------
    TooManySpoilersError
        If there are several matches, and more than ``_MOST_SPOILERS`` events may be forbidden them.
    """
    for counts, which in matches_by_counts(model):
        checkpoint()
        shape = model.pattern.shapes.of(counts)
        tied = np.zeros(len(which), dtype=np.bool_)
        rows, times = _times(model, shape, which, tied)
        forbidden, spoiler_row = _forbidden(model, shape, which, rows, times, tied)
        pmfs, spans = model.pmfs, model.pattern.spans
        if spans is not None and spans.negates_open:
            forbidden, pmfs = with_pairs(forbidden, spoiler_row, spans, pmfs, shape.of_end)
        if isinstance(model.beside, EarlierTick):
            # Its place among the rows is that of an event that the match has anyway.
            spoiler_row = np.insert(spoiler_row, forbidden.start[1:], rows[:, 0])
            time = _number(model, shape, which, model.beside.time)
            forbidden = model.beside.some(which).among(forbidden, time)
        yield ExplicitMatches(which, shape, times, forbidden, pmfs, rows, spoiler_row, tied)


def matches_by_counts(model: ChosenEvents) -> Iterator[tuple[tuple[int, ...], Int64]]:
    """Yield numbers of events of each component, and the matches that have so many."""
    if any(component.kleene for component in model.pattern.plan.components):
        yield from by_counts(model.matches, model.pattern.length)
    elif model.count:
        yield (1,) * model.pattern.length, np.arange(model.count)


def _number(model: ChosenEvents, shape: Shape, which: Int64, time: EndOfEvent) -> int:
    """Return the number of a time among those of matches of one shape."""
    first = int(model.matches.start[which[0]])
    components = model.matches.component[first : first + shape.total]
    event = int(np.searchsorted(components, time.component))
    return shape.total + shape.lasting.index(event) if time.at_end else event


def _times(model: ChosenEvents, shape: Shape, which: Int64, tied: Mask) -> tuple[Int64, SummedTimes]:
    """Return the rows of the events of matches of one shape, (k, l) int64, and their times.

    ``tied`` is set where a sequence breaks a tie.
    """
    matches, candidates, held = model.matches, model.candidates, model.held
    event = matches.start[which][:, None] + np.arange(shape.total)
    place = matches.place[event]
    rows, base = candidates.row[place], candidates.base[place]
    lower, upper = candidates.lower[place] - base, candidates.upper[place] - base
    spans = model.pattern.spans
    if spans is not None:
        lasting = rows[:, shape.lasting]
        rows = np.concatenate((rows, lasting + spans.times.events), axis=1)
        lower, upper = (
            np.concatenate((begin, end[lasting]), axis=1)
            for begin, end in zip((lower, upper), spans.ends, strict=True)
        )
    laws = model.offsets[rows]
    if len(held.start):
        for k, n in enumerate(which.tolist()):
            checkpoint()
            lower[k], upper[k], laws[k] = intervals_given(held, n, rows[k], lower[k], upper[k], laws[k])
    size = np.where(laws < 0, upper - lower + 1, 0).astype(np.float64)
    if spans is not None:
        # Given its begin, the end of a span is certain that is so by its clock.
        ends_of = size[:, shape.total :]
        ends_of[spans.times.moved_as_one[lasting]] = 1.0
    law = laws - lower
    if matches.boxes.shape[1]:
        count = shape.total
        lower[:, :count] = np.maximum(lower[:, :count], matches.boxes[0][event])
        upper[:, :count] = np.minimum(upper[:, :count], matches.boxes[1][event])
        if len(matches.boxes) > 2:
            # Boxes of ends, too: boxes of begins alone bound no end.
            first, last = matches.boxes[2:, event][:, :, shape.lasting]
            lower[:, count:] = np.maximum(lower[:, count:], first)
            upper[:, count:] = np.minimum(upper[:, count:], last)
    lengths = None if model.lengths is None else model.lengths[which]
    columns = _literals(model, shape, rows, lengths, (lower, upper), tied)
    if isinstance(model.beside, TimeDifference):
        later, earlier, shortest, longest = model.beside.some(which)
        i, j = (_number(model, shape, which, time) for time in (later, earlier))
        if i == j:
            # Both ends of a moment.
            lower[:, i] = np.where((shortest <= 0) & (longest >= 0), lower[:, i], upper[:, i] + 1)
        else:
            _narrow(columns, i, j, shortest, longest)
    sides, low, high = _as_arrays(columns)
    times = SummedTimes(lower, upper, size, law, sides, low, high, shape.ends)
    tighten: Any = tighten_all
    tighten(times)
    return rows, times


def _literals(
    model: ChosenEvents,
    shape: Shape,
    rows: Int64,
    lengths: Int64 | None,
    ticks: tuple[Int64, Int64],
    tied: Mask,
) -> Literals:
    """Return the differences that are bound, and how, (k,), or (1,) for all matches alike.

    ``lengths``, (k, s), are those held of events that last, -1 for none. Conditions on single times narrow
    their ``ticks``.
    """
    lower, upper = ticks
    templates = model.pattern.templates
    columns: Literals = {**shape.order}
    if model.pattern.ties is not None:
        for (later, earlier), (behind, ahead) in shape.order.items():
            allowed = model.pattern.ties.allow(rows[:, earlier], rows[:, later])
            if behind == _STRICT and allowed.any():
                columns[later, earlier] = np.where(allowed, 0, behind), ahead
                tied |= allowed
    if model.pattern.spans is not None:
        length = model.pattern.spans.times.length
        for end, event in enumerate(shape.lasting, start=shape.total):
            bounds_of_length = length.lower[rows[:, event]], length.upper[rows[:, event]]
            if lengths is not None:
                held = lengths[:, end - shape.total]
                shortest, longest = (np.where(held >= 0, held, bound) for bound in bounds_of_length)
                bounds_of_length = shortest, longest
            low, high = columns.get((end, event), (-UNBOUND, UNBOUND))
            columns[end, event] = np.maximum(bounds_of_length[0], low), np.minimum(bounds_of_length[1], high)
    for instance, low, high in own_bounds(templates, shape, rows):
        i, j = instance.later, instance.earlier
        if templates.conditions[instance.condition].apart in model.sides:
            low = np.maximum(low, _STRICT)
        if j < 0:
            lower[:, i], upper[:, i] = np.maximum(lower[:, i], low), np.minimum(upper[:, i], high)
            continue
        _narrow(columns, i, j, low, high)
    return columns


def _narrow(columns: Literals, i: int, j: int, low: Int64, high: Int64) -> None:
    """Bound a difference of two times besides."""
    if (j, i) in columns:
        i, j, low, high = j, i, -high, -low
    least, most = columns.get((i, j), (-UNBOUND, UNBOUND))
    columns[i, j] = np.maximum(low, least), np.minimum(high, most)


def _as_arrays(columns: Literals) -> tuple[Int64, Int64, Int64]:
    """Return the differences that are bound, (e, 2), and how, (k, e) or (1, e) for all matches alike."""
    each = max((len(np.atleast_1d(low)) for low, _ in columns.values()), default=1)
    bounds = np.empty((2, each, len(columns)), dtype=np.int64)
    for e, (low, high) in enumerate(columns.values()):
        bounds[0, :, e], bounds[1, :, e] = low, high
    if each > 1 and (bounds == bounds[:, :1]).all():
        # Such as lengths that nothing is known of.
        bounds = bounds[:, :1]
    return np.array(list(columns), dtype=np.int64).reshape(-1, 2), bounds[0], bounds[1]


def own_bounds(
    templates: TimeTemplates, shape: Shape, rows: Int64
) -> Iterator[tuple[Instance, Int64, Int64]]:
    """Yield conditions on the times of a match's events, with bounds of each match, (k,), or all, (1,)."""
    for group in shape.own_alike:
        # The same for all where no attribute is mentioned.
        matches = len(rows) if group.mentions else 1
        at_once = max(_MOST_BOUNDS // max(matches, 1), 1) if group.mentions else len(group.place)
        for begin in range(0, len(group.place), at_once):
            checkpoint()
            place, events = group.place[begin : begin + at_once], group.events[:, begin : begin + at_once]
            row_of = {
                mention: rows[:, event].T.ravel()
                for mention, event in zip(group.mentions, events, strict=True)
            }
            count = matches * len(place) if group.mentions else 1
            bounds = templates.bounds_of_rows(group.condition, row_of, count)
            low, high = (bound.reshape(-1, matches) for bound in bounds)
            for n, number in enumerate(place.tolist()):
                row = n if group.mentions else 0
                yield shape.own[number], low[row], high[row]


def _forbidden(
    model: ChosenEvents, shape: Shape, which: Int64, rows: Int64, times: SummedTimes, tied: Mask
) -> tuple[Others, Int64]:
    """Return the events that may be forbidden, with the constraints of their spans, and their rows.

    ``tied`` is set where a sequence breaks a tie.
    """
    sides, count, low, high = shape.constraints
    if model.pools is None or not shape.rules:
        nothing, zeros = np.zeros(0, dtype=np.int64), np.zeros(len(which) + 1, dtype=np.int64)
        nobody = Others(
            zeros, nothing, nothing, nothing, zeros[:1], nothing, sides, count, low[nothing], high[nothing]
        )
        return nobody, nothing
    found = gathered(model, shape, which, times.first, times.last)
    low, high, match = rule_bounds(model, shape, found, rows)
    if model.pattern.spans is not None and shape.of_end.any():
        spans = model.pattern.spans
        certain = np.where(spans.are_pairs(found.row), 0, spans.times.length.lower[found.row])
        shift = shape.of_end[found.rule] * np.repeat(certain, np.diff(found.rule_start))[:, None]
        low = np.where(low > -UNBOUND, low - shift, low)
        high = np.where(high < UNBOUND, high - shift, high)
    if model.pattern.ties is not None:
        broken = _break_ties(model.pattern.ties, shape, found, rows, low, high)
        tied[match[broken]] = True
    others = Others(
        found.start, found.lower, found.upper, found.offset, found.rule_start, found.rule, sides, count, low,
        high,
    )  # fmt: skip
    return others, found.row


def rule_bounds(
    model: ChosenEvents, shape: Shape, forbidden: FoundEvents, rows: Int64
) -> tuple[Int64, Int64, Int64]:
    """Return the bounds of all constraints of the rules of forbidden events, (r, c) each, and the matches.

    ``rows``, (k, l) int64, are those of the matches; the last array, (r,) int64, says which one of them.
    """
    low, high = (bound[forbidden.rule] for bound in shape.constraints[2:])
    event = np.repeat(np.arange(len(forbidden.row)), np.diff(forbidden.rule_start))
    match = np.repeat(np.arange(len(rows)), np.diff(forbidden.start))
    number = np.empty(len(shape.rules), dtype=np.int64)
    for c, groups in shape.rules_alike:
        for group in groups:
            checkpoint()
            number.fill(-1)
            number[group.place] = np.arange(len(group.place))
            chosen = number[forbidden.rule]
            places = np.flatnonzero(chosen >= 0)
            if not len(places):
                continue
            chosen, of_match, other = chosen[places], match[event[places]], forbidden.row[event[places]]
            row_of = {
                mention: other if (events == OTHER).all() else rows[of_match, events[chosen]]
                for mention, events in zip(group.mentions, group.events, strict=True)
            }
            bounds = model.pattern.templates.bounds_of_rows(group.condition, row_of, len(places))
            low[places, c], high[places, c] = bounds
    return low, high, match[event]


def _break_ties(
    ties: TieBreaks, shape: Shape, events: FoundEvents, rows: Int64, low: Int64, high: Int64
) -> Int64:
    """Let gaps begin and end at ticks that sequences order; return where, places among the rules of events.

    ``rows``, (k, l) int64, are those of the matches; ``low`` and ``high`` change.
    """
    event = np.repeat(np.arange(len(events.row)), np.diff(events.rule_start))
    match = np.repeat(np.arange(len(rows)), np.diff(events.start))
    sides, _, lowest, highest = shape.constraints
    ends = np.array([rule.ends for rule in shape.rules], dtype=np.int64)
    broken = [events.rule[:0]]
    for c in range(int(ends.max(initial=0))):
        checkpoint()
        for is_lower in (True, False):
            # All other ends are those of the window.
            may_tie = lowest[:, c] == _STRICT if is_lower else highest[:, c] == -_STRICT
            places = np.flatnonzero(((c < ends) & may_tie)[events.rule])
            pair = rows[match[event[places]], sides[events.rule[places], c, 1]], events.row[event[places]]
            ordered = places[ties.allow(*(pair if is_lower else pair[::-1]))]
            (low if is_lower else high)[ordered, c] = 0
            broken.append(ordered)
    return np.concatenate(broken)


def gathered(
    model: ChosenEvents,
    shape: Shape,
    which: Int64,
    first: Int64,
    last: Int64,
    rules: ShapeRules | None = None,
) -> FoundEvents:
    """Return the events that rules may forbid matches of one shape, whose events have these ticks, (k, l).

    ``rules`` are those of the shape, unless events have places instead of ticks.
    """
    assert model.pools is not None
    assert model.scratch is not None
    assert model.pattern.conditions is not None
    kernel: Any = forbidden_of_all
    rules = shape.shape_rules if rules is None else rules
    rule_rows = rules.rule_rows.copy()
    # Behind the events, as all_hold has the negated ones.
    places = len(model.scratch.element) - len(model.pattern.plan.negations) - rule_rows[:, 3] - 2
    rule_rows[:, 3] = np.where(rule_rows[:, 3] < -1, places, rule_rows[:, 3])
    rules = rules._replace(rule_rows=rule_rows)
    if model.pattern.ties is not None:
        ends = rules.ends.copy()
        ends[ends[:, 1] == np.where(ends[:, 2] == 1, _STRICT, -_STRICT), 1] = 0
        rules = rules._replace(ends=ends)
    match = Intervals(*np.empty((3, shape.total), dtype=np.int64))
    of_one, of_all = _FIRST_OF_ONE, _FIRST_ROOM
    room, rows = room_for(of_one, len(rule_rows)), _room(len(which), of_all)
    progress, begin, total, state = np.zeros(4, dtype=np.int64), 0, 0, NOT_DONE
    parts: list[FoundEvents] = []
    while state != DONE:
        checkpoint()
        gathered = Gathered(model.pattern.mark, model.offsets, room, model.held)
        events = GapEvents(model.candidates, model.pools, model.pattern.conditions, model.scratch, gathered)
        state = kernel(
            model.matches, which, progress, events, first, last, rules, match, steps_per_call(), rows
        )
        done = int(progress[0])
        if done > begin:
            parts.append(_filled(rows, done - begin))
            total += len(parts[-1].row)
            begin = done
            # In the middle of a match its events are marked.
            if total > _MOST_SPOILERS and model.count > 1 and not progress[1]:
                raise TooManySpoilersError
        elif state == NO_ROOM:
            (of_one,) = enlarged((of_one,), (of_one + 1,))
            checkpoint(of_one * (8 * 4 + len(rule_rows)))
            room = room_for(of_one, len(rule_rows))
        elif state == NO_PLACE:
            listed = room.gaps[: int(progress[2])]
            need = max(len(listed), int(np.count_nonzero(listed)) + len(rule_rows))
            (of_all,) = enlarged((of_all,), (need,))
            checkpoint(8 * 6 * of_all)
            rows = _room(len(which), of_all)
    return _joined(parts)


def _room(matches: int, events: int) -> FoundEvents:
    """Return room for so many forbidden events of matches, and for as many rules of them."""
    row, lower, upper, offset, rule = np.empty((5, events), dtype=np.int64)
    start, rule_start = np.empty(matches + 1, dtype=np.int64), np.empty(events + 1, dtype=np.int64)
    return FoundEvents(start, row, lower, upper, offset, rule_start, rule)


def _filled(found: FoundEvents, matches: int) -> FoundEvents:
    """Return a copy of the events of so many matches."""
    count = int(found.start[matches])
    rules = int(found.rule_start[count])
    row, lower, upper, offset = (
        column[:count].copy() for column in (found.row, found.lower, found.upper, found.offset)
    )
    return FoundEvents(
        found.start[: matches + 1].copy(), row, lower, upper, offset, found.rule_start[: count + 1].copy(),
        found.rule[:rules].copy(),
    )  # fmt: skip


def _joined(parts: list[FoundEvents]) -> FoundEvents:
    """Return the events of all matches, those of several parts behind one another."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    for place in (0, 5):
        starts = [part[place] for part in parts]
        ends = np.cumsum([0, *(int(start[-1]) for start in starts)])
        moved = [start[:-1] + end for start, end in zip(starts, ends, strict=False)]
        columns[place] = np.concatenate((*moved, ends[-1:]))
    return FoundEvents(*columns)
