"""Ranges and confidences of matches of partially ordered components, with what negations forbid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate as running_totals
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.arrays import largest, smallest
from confidence.budget import checkpoint, multiplications_per_call
from confidence.chain.tick_pairs import MOST_EDGES
from confidence.config import MOST_STEPS_BETWEEN_IDEALS
from confidence.gaps.forbidden import TOO_DEAR
from confidence.kernel import kernel
from confidence.partial_order.ideals import Order, tight_order_bounds
from confidence.partial_order.orders import order_confidence
from confidence.partial_order.times import BETWEEN, LEADING
from confidence.predicates.conditions import Conditions, Scratch, accumulate
from eventbased.gaps.gap_events import NO_BOXES, CostlyGapsError, ForbiddenEvents, clip, collect

__all__ = ["SetConfidences"]

ALL: Final = 0
COSTLY: Final = 1
SPACE: Final = 2
PAUSED: Final = 3

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@kernel
def _forbidden(
    events,
    pools,
    gap_of,
    order_places,
    conditions,
    length,
    a,
    b,
    window,
    first,
    work,
    own,
    mark,
    offsets,
    room,
):
    """List the events that negations forbid a match; return their number, -1 without room."""
    gap_place, gap_after, gap_before = order_places
    found = 0
    for n in range(pools.shape[0]):
        g = gap_of[n]
        above = largest(a)
        until = smallest(b)
        if gap_place[g] == BETWEEN:
            above = smallest(a)
            until = largest(b)
            for j in range(a.shape[0]):
                if gap_after[g] >> j & 1:
                    above = max(above, a[j])
                if gap_before[g] >> j & 1:
                    until = min(until, b[j])
        elif gap_place[g] == LEADING:
            above -= window
        else:
            until += window
        found = collect(
            events, pools[n], first, above, until, g, conditions, work, conditions.negated[n],
            conditions.negated[n + 1], -1, work.start[length + n], own, mark, offsets, found, room,
        )  # fmt: skip
        if found < 0:
            return found
    return found


@kernel
def _set_confidences(
    chosen, start, place, component, first_match, lower, upper, base, row, offsets, boxes, window, order,
    events, pools, gap_of, conditions, pmf, head, tail, most_steps, budget, wanted, scratch, mark, room,
    out_lower, out_upper, out_confidence,
):  # fmt: skip
    own = mark.shape[0]
    before, first_step, source, target, ideals, gap_place, gap_after, gap_before, gap_cut = order
    count = before.shape[0]
    length = conditions.stages.shape[0]
    low = np.empty(count, np.int64)
    high = np.empty(count, np.int64)
    offset = np.empty(count, np.int64)
    a = np.empty(count, np.int64)
    b = np.empty(count, np.int64)
    spent = np.zeros(1)
    scratch.steps[0] = 0
    for q in range(first_match, chosen.shape[0]):
        if spent[0] + float(scratch.steps[0]) >= budget:
            return q, PAUSED, 0.0
        spent[0] += 1.0
        n = chosen[q]
        share = 1.0
        for k in range(count):
            i = place[start[n] + k]
            part = component[start[n] + k]
            low[k] = lower[i] - base[i]
            high[k] = upper[i] - base[i]
            offset[k] = offsets[row[i]]
            if boxes.shape[1]:
                share *= clip(low, high, offset, k, boxes[0, start[n] + k], boxes[1, start[n] + k])
            mark[row[i]] = own
            scratch.element[k] = i
            if k == 0 or part != component[start[n] + k - 1]:
                scratch.start[part] = k
            scratch.stop[part] = k + 1
            accumulate(conditions, scratch, part, k)
        found = 0
        feasible = share > 0.0
        fits = feasible and tight_order_bounds(low, high, before, window, a, b)
        if fits:
            found = _forbidden(
                events, pools, gap_of, (gap_place, gap_after, gap_before), conditions, length, a, b, window,
                place[start[n]], scratch, own, mark, offsets, room,
            )  # fmt: skip
        for k in range(count):
            mark[row[place[start[n] + k]]] = -1
        for x in range(room[0].shape[0] if found < 0 else found):
            mark[room[3][x]] = -1
        if found < 0:
            return q, SPACE, 0.0
        if not feasible:
            out_lower[n], out_upper[n], out_confidence[n] = 0, -1, 0.0
            continue
        if found == 0 and not wanted and fits and largest(offset) < 0:
            out_lower[n] = smallest(a)
            out_upper[n] = largest(b)
            continue
        status, value, first, last = order_confidence(
            low, high, offset, pmf, head, tail, window, before, first_step, source, target, ideals, gap_place,
            gap_after, gap_before, gap_cut, found, room[0], room[1], room[2], room[4], most_steps, spent,
        )  # fmt: skip
        if status == TOO_DEAR:
            return q, COSTLY, value
        out_lower[n] = first
        out_upper[n] = last
        out_confidence[n] = value * share
    return chosen.shape[0], ALL, 0.0


def _alike(counts: Int64) -> Iterator[Int64]:
    """Yield the numbers of the rows that are equal, for each distinct row. O(rows) if all are."""
    left = np.arange(len(counts))
    while len(left):
        same = (counts[left] == counts[left[0]]).all(axis=1)
        yield left[same]
        left = left[~same]


class SetConfidences:
    """Ranges and confidences of matches of partially ordered components.

    Parameters
    ----------
    before : sequence of int
        For each component the bits of those whose events come before its own.
    chained : sequence of bool
        Whether the events of a component come one after the other.
    gaps : sequence of (int, int, int)
        Place (:mod:`confidence.partial_order.times`), and the bits of the components behind and before which
        each gap lies.
    gap_of : (n,) int64
        The gap of each negated component.
    window : int
        W, ticks.
    rows : int
        Number of events.
    most_steps : float
        Most multiplications for one match.
    """

    def __init__(
        self,
        before: Sequence[int],
        chained: Sequence[bool],
        gaps: Sequence[tuple[int, int, int]],
        gap_of: Int64,
        window: int,
        rows: int,
        most_steps: float,
    ) -> None:
        self._before, self._chained, self._gaps, self._gap_of = before, chained, gaps, gap_of
        self._window, self._most_steps = window, most_steps
        self._mark = np.full(rows, -1, dtype=np.int64)
        self._orders: dict[tuple[int, ...], Order | None] = {}
        self._make_room(64)

    def _make_room(self, events: int) -> None:
        numbers = np.empty((4, events), dtype=np.int64)
        self._room = (*numbers, np.zeros((events, max(len(self._gaps), 1)), dtype=np.bool_))

    def _order(self, counts: tuple[int, ...]) -> Order | None:
        """Return the order of matches with so many events of each component; None if it is too large."""
        if counts not in self._orders:
            ends = list(running_totals(counts))
            events = [(1 << end) - (1 << end - count) for end, count in zip(ends, counts, strict=True)]

            def bits(components: int) -> int:
                return sum(mask for j, mask in enumerate(events) if components >> j & 1)

            before = []
            for j, count in enumerate(counts):
                first = 1 << ends[j] - count
                for k in range(count):
                    own = (first << k) - first if self._chained[j] else 0
                    before.append(bits(self._before[j]) | own)
            gaps = [(place, bits(after), bits(behind)) for place, after, behind in self._gaps]
            self._orders[counts] = Order.of(before, gaps)
        return self._orders[counts]

    def describe(
        self,
        matches: tuple[Int64, Int64, Int64],
        candidates: tuple[Int64, Int64, Int64, Int64],
        offsets: Int64,
        events: ForbiddenEvents,
        pools: Int64,
        conditions: Conditions,
        pmfs: tuple[Float64, Float64, Float64],
        wanted: bool,
        scratch: Scratch,
        out: tuple[Int64, Int64, Float64],
        boxes: Int64 = NO_BOXES,
    ) -> None:
        """Fill ranges and confidences.

        Parameters
        ----------
        matches : tuple
            ``start, place, component``, see :class:`eventbased.search.state.FoundMatches`.
        candidates : tuple
            ``lower, upper, base, row``: bounds on the common time line, the shift to take off, the event.
        offsets : (rows,) int64
            Where an event's probabilities start; -1 for uniform.
        events : ForbiddenEvents
        pools : (n,) int64
            The pool of each negated component.
        conditions : Conditions
        pmfs : tuple
            ``pmf, head, tail``.
        wanted : bool
            Whether a confidence is needed where no event is in the way.
        scratch : Scratch
        out : tuple
            ``lower, upper`` and ``confidence``, overwritten; the range is empty where the confidence is 0.
        boxes : (2, m) int64, or (2, 0)
            See :func:`eventbased.gaps.gap_events.gap_confidences`.

        Raises
        ------
        CostlyGapsError
            If a match takes too many steps.
        """
        kernel: Any = _set_confidences
        start, _, component = matches
        found = len(start) - 1
        length = len(self._before)
        match = np.repeat(np.arange(found), np.diff(start))
        counts = np.bincount(match * length + component, minlength=found * length).reshape(found, length)
        for chosen in _alike(counts):
            order = self._order(tuple(counts[chosen[0]].tolist()))
            if order is None:
                raise CostlyGapsError(int(chosen[0]), MOST_STEPS_BETWEEN_IDEALS)
            done = 0
            while done < len(chosen):
                done, reason, steps = kernel(
                    chosen, *matches, done, *candidates, offsets, boxes, self._window, order.arrays, events,
                    pools, self._gap_of, conditions, *pmfs, self._most_steps, multiplications_per_call(),
                    wanted, scratch, self._mark, self._room, *out,
                )  # fmt: skip
                if reason == PAUSED:
                    checkpoint()
                if reason == COSTLY:
                    raise CostlyGapsError(int(chosen[done]), int(min(steps, MOST_EDGES)))
                if reason == SPACE:
                    self._make_room(2 * len(self._room[0]))
