"""Sums over the times of many matches with conditions on them, and with what is forbidden in their gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.budget import checkpoint, multiplications_per_call, steps_per_call
from confidence.chain.distribution import Intervals
from confidence.chain.tick_pairs import enlarged
from confidence.gaps.chains import room_for
from confidence.gaps.describing import ALL, COSTLY, SPACE
from confidence.predicates.conditions import Conditions, Scratch
from confidence.timed.bounds import UNBOUND
from confidence.timed.forbidden_tables import Others, spans
from confidence.timed.summed_matches import SummedTimes, describe_summed, tighten_all
from confidence.timed.tables import tables
from eventbased.gaps.gap_events import (
    ForbiddenEvents,
    Gathered,
    HeldOffsets,
    MatchEvents,
    Placed,
    intervals_given,
)
from eventbased.gaps.shape_rules import FoundEvents, forbidden_of_all
from uncertain_cep.config import MOST_CELLS_IN_TABLE, MOST_TIMED_CELLS
from uncertain_cep.operators.time_templates import TimeTemplates
from uncertain_cep.operators.timed_shapes import Shape

__all__ = ["Gathering", "TimedSums"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_FIRST_ROOM: Final = 1 << 14
"""Forbidden events, and cells of tables, that there is room for at first."""


class Gathering(NamedTuple):
    """What finds the events that gaps forbid, see :func:`eventbased.gaps.shape_rules.forbidden_of_all`."""

    pools: ForbiddenEvents
    conditions: Conditions | None
    scratch: Scratch
    mark: Int64
    negations: int


class TimedSums:
    """Some matches of one shape.

    Parameters
    ----------
    templates : TimeTemplates
    shape : Shape
    matches : MatchEvents
    chosen : (k,) int64
        Which of them.
    candidates : Placed
    offsets : (rows,) int64
        Where the probabilities of each event start.
    held : HeldOffsets
    """

    def __init__(
        self,
        templates: TimeTemplates,
        shape: Shape,
        matches: MatchEvents,
        chosen: Int64,
        candidates: Placed,
        offsets: Int64,
        held: HeldOffsets,
    ) -> None:
        self._templates, self._shape = templates, shape
        self._matches, self._chosen, self._candidates = matches, chosen, candidates
        self._offsets, self._held = offsets, held
        event = matches.start[chosen][:, None] + np.arange(shape.total)
        place = matches.place[event]
        self._rows, base = candidates.row[place], candidates.base[place]
        lower, upper = candidates.lower[place] - base, candidates.upper[place] - base
        laws = offsets[self._rows]
        if len(held.start):
            for k, n in enumerate(chosen.tolist()):
                checkpoint()
                own = self._rows[k], lower[k], upper[k], laws[k]
                lower[k], upper[k], laws[k] = intervals_given(held, n, *own)
        size = np.where(laws < 0, upper - lower + 1, 0).astype(np.float64)
        law = laws - lower
        if matches.boxes.shape[1]:
            lower, upper = (
                np.maximum(lower, matches.boxes[0][event]),
                np.minimum(upper, matches.boxes[1][event]),
            )
        sides, low, high = self._bounds(lower, upper)
        ends = np.zeros((2, shape.total), dtype=np.bool_)
        ends[0, shape.firsts], ends[1, shape.lasts] = True, True
        self._times = SummedTimes(lower, upper, size, law, sides, low, high, ends)
        tighten: Any = tighten_all
        tighten(self._times)

    def _bounds(self, lower: Int64, upper: Int64) -> tuple[Int64, Int64, Int64]:
        """Return whose differences are bound, and how; conditions on single times narrow their ticks."""
        columns: dict[tuple[int, int], tuple[Any, Any]] = {**self._shape.order}
        for instance in self._shape.own:
            low, high = self._templates.bounds_of_all(instance, self._rows)
            i, j = instance.later, instance.earlier
            if j < 0:
                lower[:, i], upper[:, i] = np.maximum(lower[:, i], low), np.minimum(upper[:, i], high)
                continue
            if (j, i) in columns:
                i, j, low, high = j, i, -high, -low
            least, most = columns.get((i, j), (-UNBOUND, UNBOUND))
            columns[i, j] = np.maximum(low, least), np.minimum(high, most)
        bounds = np.empty((2, len(lower), len(columns)), dtype=np.int64)
        for e, (low, high) in enumerate(columns.values()):
            bounds[0, :, e], bounds[1, :, e] = low, high
        return np.array(list(columns), dtype=np.int64).reshape(-1, 2), bounds[0], bounds[1]

    def describe(
        self,
        gathering: Gathering | None,
        pmfs: Pmfs,
        wanted: bool,
        paths: Callable[[Int64], Int64],
        estimated: Callable[[int, float], tuple[int, int, float, float]],
        out: tuple[NDArray[Any], ...],
    ) -> None:
        """Fill ranges, confidences and, where there is room, standard errors of the matches.

        Parameters
        ----------
        gathering : Gathering or None
            None if nothing is forbidden.
        pmfs : Pmfs
        wanted : bool
            Whether a confidence is needed where no event is in the way.
        paths : callable
            Describes matches that nothing is forbidden, and returns those left.
        estimated : callable
            Describes a match that takes so many cells, too many.
        out : tuple of (k,) arrays
            Overwritten.
        """
        for begin, found in self._found(gathering):
            count = np.diff(found.start)
            chosen = np.arange(begin, begin + len(count))
            others = self._others(begin, found)
            free = chosen[count == 0]
            if len(free):
                left = np.isin(self._chosen[chosen], paths(self._chosen[free])) | (count > 0)
                chosen = chosen[left]
                others = others._replace(start=np.append(others.start[:-1][left], others.start[-1]))
            if len(chosen):
                self._sum(chosen, others, pmfs, wanted, estimated, out)

    def _found(self, gathering: Gathering | None) -> Iterator[tuple[int, FoundEvents]]:
        """Yield where some matches begin, and the events that may be forbidden them."""
        if gathering is None:
            nothing = np.zeros(0, dtype=np.int64)
            zeros = np.zeros(len(self._chosen) + 1, dtype=np.int64)
            yield 0, FoundEvents(zeros, nothing, nothing, nothing, nothing, zeros[:1], nothing)
            return
        kernel: Any = forbidden_of_all
        rules = self._shape.shape_rules
        rule_rows = rules.rule_rows.copy()
        # Behind the events, as all_hold has the negated ones.
        places = len(gathering.scratch.element) - gathering.negations - rule_rows[:, 3] - 2
        rule_rows[:, 3] = np.where(rule_rows[:, 3] < -1, places, rule_rows[:, 3])
        rules = rules._replace(rule_rows=rule_rows)
        match = Intervals(*np.empty((3, self._shape.total), dtype=np.int64))
        begin, sizes = 0, enlarged((64, _FIRST_ROOM), (0, 0))
        rows, forbidden = _room(len(self._chosen), sizes, len(rule_rows))
        while begin < len(self._chosen):
            checkpoint()
            gathered = Gathered(gathering.mark, self._offsets, forbidden, self._held)
            done, room = kernel(
                gathering.pools, self._matches, self._chosen, begin, self._candidates, self._times.first,
                self._times.last, rules, gathering.conditions, gathering.scratch, gathered, match,
                steps_per_call(), rows,
            )  # fmt: skip
            if done > begin:
                yield begin, _filled(rows, done - begin)
                begin = done
            else:
                sizes = enlarged(sizes, (0, room) if room else (sizes[0] + 1, 0))
                checkpoint(8 * (sizes[0] * (4 + len(rule_rows)) + 6 * sizes[1]))
                rows, forbidden = _room(len(self._chosen), sizes, len(rule_rows))

    def _others(self, begin: int, found: FoundEvents) -> Others:
        """Return the events that may be forbidden some matches, with the constraints of what forbids them."""
        rules = self._shape.rules
        sides, count, low, high = self._shape.constraints
        low, high = low[found.rule], high[found.rule]
        event = np.repeat(np.arange(len(found.row)), np.diff(found.rule_start))
        match = begin + np.repeat(np.arange(len(found.start) - 1), np.diff(found.start))
        for k, rule in enumerate(rules):
            own = np.flatnonzero(found.rule == k) if rule.instances else event[:0]
            if len(own):
                rows, other = self._rows[match[event[own]]], found.row[event[own]]
                for c, instance in enumerate(rule.instances, start=rule.ends):
                    low[own, c], high[own, c] = self._templates.bounds_of_all(instance, rows, other)
        return Others(
            found.start, found.lower, found.upper, found.offset, found.rule_start, found.rule, sides, count,
            low, high,
        )  # fmt: skip

    def _sum(
        self,
        chosen: Int64,
        others: Others,
        pmfs: Pmfs,
        wanted: bool,
        estimated: Callable[[int, float], tuple[int, int, float, float]],
        out: tuple[NDArray[Any], ...],
    ) -> None:
        """Fill ranges and confidences of some of the matches by sums over their ticks."""
        every = self._times
        times = every._replace(
            first=every.first[chosen], last=every.last[chosen], size=every.size[chosen],
            offset=every.offset[chosen], low=every.low[chosen], high=every.high[chosen],
        )  # fmt: skip
        most = np.diff(others.start).max()
        asked = np.diff(others.rule_start[others.start]).max()
        length = self._shape.total + int(most)
        ticks = max(
            int((late - early).max(initial=0))
            for early, late in ((times.first, times.last), (others.lower, others.upper))
        )
        ticks = min(ticks, MOST_CELLS_IN_TABLE) + 2
        number = 2 * length + len(times.sides) + int(asked) + 1
        cells = _FIRST_ROOM
        room = tables(length, number, cells, ticks)
        work = spans(int(np.diff(others.rule_start).max(initial=1)), others.low.shape[1], length)
        limits = np.array([MOST_TIMED_CELLS, MOST_CELLS_IN_TABLE], dtype=np.float64)
        first, law = np.empty(length, dtype=np.int64), np.empty(ticks)
        lower, upper = np.empty((2, len(chosen)), dtype=np.int64)
        confidence, error = np.zeros((2, len(chosen)))
        kernel: Any = describe_summed
        done, reason = 0, SPACE
        while reason != ALL:
            checkpoint()
            done, reason, need = kernel(
                times, others, pmfs, done, wanted, limits, multiplications_per_call(), room, work, first, law,
                (lower, upper, confidence),
            )  # fmt: skip
            if reason == SPACE:
                cells = max(2 * cells, int(need))
                checkpoint(8 * cells)
                room = room._replace(cells=np.empty(cells))
            elif reason == COSTLY:
                found = estimated(int(self._chosen[chosen[done]]), need)
                lower[done], upper[done], confidence[done], error[done] = found
                done += 1
        for column, values in zip(out, (lower, upper, confidence, error), strict=False):
            column[self._chosen[chosen]] = values


def _room(matches: int, sizes: tuple[int, ...], rules: int) -> tuple[FoundEvents, Any]:
    """Return room for the forbidden events of matches, and for those of one match."""
    of_one, of_all = sizes
    row, lower, upper, offset, rule = np.empty((5, of_all), dtype=np.int64)
    start, rule_start = np.empty(matches + 1, dtype=np.int64), np.empty(of_all + 1, dtype=np.int64)
    return FoundEvents(start, row, lower, upper, offset, rule_start, rule), room_for(of_one, rules)


def _filled(found: FoundEvents, matches: int) -> FoundEvents:
    """Return what was found for so many matches."""
    count = int(found.start[matches])
    rules = int(found.rule_start[count])
    return FoundEvents(
        found.start[: matches + 1],
        found.row[:count],
        found.lower[:count],
        found.upper[:count],
        found.offset[:count],
        found.rule_start[: count + 1],
        found.rule[:rules],
    )
