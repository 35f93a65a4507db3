"""The literals and forbidden spans of chosen matches, written out as arrays: the one place that does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.budget import checkpoint, steps_per_call
from confidence.chain.distribution import Intervals
from confidence.chain.tick_pairs import enlarged
from confidence.flat_lists import taken
from confidence.gaps.chains import room_for
from confidence.timed.bounds import UNBOUND
from confidence.timed.forbidden_tables import Others
from confidence.timed.summed_matches import SummedTimes, tighten_all
from eventbased.gaps.gap_events import Gathered, by_counts, intervals_given
from eventbased.gaps.shape_rules import FoundEvents, forbidden_of_all
from uncertain_cep.candidates.tie_breaks import TieBreaks
from uncertain_cep.weighers.pattern import ChosenEvents
from uncertain_cep.weighers.shapes import Shape

__all__ = ["ExplicitMatches", "TooManySpoilersError", "written_out"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STRICT: Final = 1
"""Ticks by which an event is behind another one at least, unless a sequence breaks a tie."""

_FIRST_ROOM: Final = 1 << 14
"""Forbidden events that there is room for at first."""

_MOST_SPOILERS: Final = 1 << 20
"""Forbidden events of several matches that are listed at once: some 60 bytes each, and 16 for each rule."""


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

    def some(self, chosen: Int64) -> ExplicitMatches:
        """Return some of the matches, (m,) int64 places in this batch."""
        if len(chosen) == len(self.which) and (chosen == np.arange(len(chosen))).all():
            return self
        times, forbidden = self.times, self.forbidden
        one = len(times.low) == 1
        times = times._replace(
            first=times.first[chosen], last=times.last[chosen], size=times.size[chosen],
            offset=times.offset[chosen], low=times.low if one else times.low[chosen],
            high=times.high if one else times.high[chosen],
        )  # fmt: skip
        event, start = taken(forbidden.start, chosen)
        rule, rule_start = taken(forbidden.rule_start, event)
        forbidden = Others(
            start, forbidden.lower[event], forbidden.upper[event], forbidden.offset[event], rule_start,
            forbidden.rule[rule], forbidden.sides, forbidden.constraints, forbidden.low[rule],
            forbidden.high[rule],
        )  # fmt: skip
        return ExplicitMatches(
            self.which[chosen], self.shape, times, forbidden, self.pmfs, self.row[chosen],
            self.spoiler_row[event], self.tied[chosen],
        )  # fmt: skip


def written_out(model: ChosenEvents) -> Iterator[ExplicitMatches]:
    """Yield the matches of a model by shape, with their literals and forbidden spans.

    Raises
    ------
    TooManySpoilersError
        If there are several matches, and more than ``_MOST_SPOILERS`` events may be forbidden them.
    """
    for counts, which in _by_counts(model):
        checkpoint()
        shape = model.pattern.shapes.of(counts)
        tied = np.zeros(len(which), dtype=np.bool_)
        rows, times = _times(model, shape, which, tied)
        forbidden, spoiler_row = _forbidden(model, shape, which, rows, times, tied)
        yield ExplicitMatches(which, shape, times, forbidden, model.pmfs, rows, spoiler_row, tied)


def _by_counts(model: ChosenEvents) -> Iterator[tuple[tuple[int, ...], Int64]]:
    """Yield numbers of events of each component, and the matches that have so many."""
    if any(component.kleene for component in model.pattern.plan.components):
        yield from by_counts(model.matches, model.pattern.length)
    elif model.count:
        yield (1,) * model.pattern.length, np.arange(model.count)


def _times(model: ChosenEvents, shape: Shape, which: Int64, tied: Mask) -> tuple[Int64, SummedTimes]:
    """Return the rows of the events of matches of one shape, (k, l) int64, and their times.

    ``tied`` is set where a sequence breaks a tie.
    """
    matches, candidates, held = model.matches, model.candidates, model.held
    event = matches.start[which][:, None] + np.arange(shape.total)
    place = matches.place[event]
    rows, base = candidates.row[place], candidates.base[place]
    lower, upper = candidates.lower[place] - base, candidates.upper[place] - base
    laws = model.offsets[rows]
    if len(held.start):
        for k, n in enumerate(which.tolist()):
            checkpoint()
            lower[k], upper[k], laws[k] = intervals_given(held, n, rows[k], lower[k], upper[k], laws[k])
    size = np.where(laws < 0, upper - lower + 1, 0).astype(np.float64)
    law = laws - lower
    if matches.boxes.shape[1]:
        lower, upper = np.maximum(lower, matches.boxes[0][event]), np.minimum(upper, matches.boxes[1][event])
    sides, low, high = _literals(model, shape, rows, lower, upper, tied)
    times = SummedTimes(lower, upper, size, law, sides, low, high, shape.ends)
    tighten: Any = tighten_all
    tighten(times)
    return rows, times


def _literals(
    model: ChosenEvents, shape: Shape, rows: Int64, lower: Int64, upper: Int64, tied: Mask
) -> tuple[Int64, Int64, Int64]:
    """Return the differences that are bound, (e, 2), and how, (k, e) or (1, e) for all matches alike.

    Conditions on single times narrow their ticks.
    """
    templates = model.pattern.templates
    columns: dict[tuple[int, int], tuple[Any, Any]] = {**shape.order}
    if model.pattern.ties is not None:
        for (later, earlier), (behind, ahead) in shape.order.items():
            allowed = model.pattern.ties.allow(rows[:, earlier], rows[:, later])
            if behind == _STRICT and allowed.any():
                columns[later, earlier] = np.where(allowed, 0, behind), ahead
                tied |= allowed
    for instance in shape.own:
        # What speaks of no attribute is the same for all.
        low, high = templates.bounds_of_all(instance, rows if instance.events else rows[:1])
        i, j = instance.later, instance.earlier
        if j < 0:
            lower[:, i], upper[:, i] = np.maximum(lower[:, i], low), np.minimum(upper[:, i], high)
            continue
        if (j, i) in columns:
            i, j, low, high = j, i, -high, -low
        least, most = columns.get((i, j), (-UNBOUND, UNBOUND))
        columns[i, j] = np.maximum(low, least), np.minimum(high, most)
    each = max((len(np.atleast_1d(low)) for low, _ in columns.values()), default=1)
    bounds = np.empty((2, each, len(columns)), dtype=np.int64)
    for e, (low, high) in enumerate(columns.values()):
        bounds[0, :, e], bounds[1, :, e] = low, high
    return np.array(list(columns), dtype=np.int64).reshape(-1, 2), bounds[0], bounds[1]


def _forbidden(
    model: ChosenEvents, shape: Shape, which: Int64, rows: Int64, times: SummedTimes, tied: Mask
) -> tuple[Others, Int64]:
    """Return the events that may be forbidden, with the constraints of their spans, and their rows.

    ``tied`` is set where a sequence breaks a tie.
    """
    sides, count, low, high = shape.constraints
    if model.pools is None or model.scratch is None or not shape.rules:
        nothing, zeros = np.zeros(0, dtype=np.int64), np.zeros(len(which) + 1, dtype=np.int64)
        nobody = Others(
            zeros, nothing, nothing, nothing, zeros[:1], nothing, sides, count, low[nothing], high[nothing]
        )
        return nobody, nothing
    found = _gathered(model, shape, which, times)
    low, high = low[found.rule], high[found.rule]
    event = np.repeat(np.arange(len(found.row)), np.diff(found.rule_start))
    match = np.repeat(np.arange(len(which)), np.diff(found.start))
    for k, rule in enumerate(shape.rules):
        own = np.flatnonzero(found.rule == k) if rule.instances else event[:0]
        if len(own):
            mine, other = rows[match[event[own]]], found.row[event[own]]
            for c, instance in enumerate(rule.instances, start=rule.ends):
                low[own, c], high[own, c] = model.pattern.templates.bounds_of_all(instance, mine, other)
    if model.pattern.ties is not None:
        broken = _break_ties(model.pattern.ties, shape, found, rows[match[event]], low, high)
        tied[match[event[broken]]] = True
    others = Others(
        found.start, found.lower, found.upper, found.offset, found.rule_start, found.rule, sides, count, low,
        high,
    )  # fmt: skip
    return others, found.row


def _break_ties(
    ties: TieBreaks, shape: Shape, events: FoundEvents, rows: Int64, low: Int64, high: Int64
) -> Int64:
    """Let gaps begin and end at ticks that sequences order; return where, places among the rules of events.

    ``rows``, (r, l) int64, are those of the match for each rule of an event; ``low`` and ``high`` change.
    """
    other = np.repeat(events.row, np.diff(events.rule_start))
    broken = [events.rule[:0]]
    for k, rule in enumerate(shape.rules):
        places = np.flatnonzero(events.rule == k)
        for c, (event, offset) in enumerate((*rule.span.lowers, *rule.span.uppers)):
            # All other ends are those of the window.
            is_lower = c < len(rule.span.lowers)
            if offset != (_STRICT if is_lower else -_STRICT):
                continue
            pair = rows[places, event], other[places]
            ordered = places[ties.allow(*(pair if is_lower else pair[::-1]))]
            (low if is_lower else high)[ordered, c] = 0
            broken.append(ordered)
    return np.concatenate(broken)


def _gathered(model: ChosenEvents, shape: Shape, which: Int64, times: SummedTimes) -> FoundEvents:
    """Return the events that rules may forbid the matches."""
    assert model.scratch is not None
    kernel: Any = forbidden_of_all
    rules = shape.shape_rules
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
    begin, total, sizes = 0, 0, enlarged((64, _FIRST_ROOM), (0, 0))
    rows, room = _room(len(which), sizes, len(rule_rows))
    parts: list[FoundEvents] = []
    while begin < len(which):
        checkpoint()
        gathered = Gathered(model.pattern.mark, model.offsets, room, model.held)
        done, need = kernel(
            model.pools, model.matches, which, begin, model.candidates, times.first, times.last, rules,
            model.pattern.conditions, model.scratch, gathered, match, steps_per_call(), rows,
        )  # fmt: skip
        if done > begin:
            parts.append(_filled(rows, done - begin))
            total += len(parts[-1].row)
            begin = done
            if total > _MOST_SPOILERS and model.count > 1:
                raise TooManySpoilersError
        else:
            sizes = enlarged(sizes, (0, need) if need else (sizes[0] + 1, 0))
            checkpoint(8 * (sizes[0] * (4 + len(rule_rows)) + 6 * sizes[1]))
            rows, room = _room(len(which), sizes, len(rule_rows))
    return _joined(parts)


def _room(matches: int, sizes: tuple[int, ...], rules: int) -> tuple[FoundEvents, Any]:
    """Return room for the forbidden events of matches, and for those of one match."""
    of_one, of_all = sizes
    row, lower, upper, offset, rule = np.empty((5, of_all), dtype=np.int64)
    start, rule_start = np.empty(matches + 1, dtype=np.int64), np.empty(of_all + 1, dtype=np.int64)
    return FoundEvents(start, row, lower, upper, offset, rule_start, rule), room_for(of_one, rules)


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
