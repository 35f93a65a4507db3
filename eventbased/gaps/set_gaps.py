"""Ranges and confidences of matches of partially ordered components, with what negations forbid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate as running_totals
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.arrays import largest, smallest
from confidence.chain.distribution import Intervals, Pmfs
from confidence.chain.tick_pairs import MOST_EDGES
from confidence.config import MOST_STEPS_BETWEEN_IDEALS
from confidence.gaps import chains
from confidence.gaps.chains import BUDGET, SPENT, TOO_DEAR, room_for
from confidence.gaps.describing import (
    ALL,
    COSTLY,
    PAUSED,
    SPACE,
    Described,
    describe_each,
)
from confidence.kernel import kernel
from confidence.partial_order.ideals import Order, tight_order_bounds
from confidence.partial_order.orders import order_confidence
from confidence.partial_order.times import BETWEEN, LEADING, OrderWork
from confidence.predicates.conditions import Conditions, Scratch
from eventbased.gaps.gap_events import (
    ForbiddenEvents,
    GapEvents,
    Gathered,
    HeldOffsets,
    MatchEvents,
    Placed,
    by_counts,
    collect,
    take_match,
    unmark,
)

__all__ = ["SetConfidences"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@kernel
def _forbidden(events, negated, order, a, b, window, first):
    """List what negations, rows of a pool and a gap, forbid a match; return the number, -1 without room."""
    conditions, scratch = events.conditions, events.scratch
    length = conditions.stages.shape[0]
    listed = 0
    for n in range(negated.shape[0]):
        g = negated[n, 1]
        above = largest(a)
        until = smallest(b)
        if order.gap_place[g] == BETWEEN:
            above = smallest(a)
            until = largest(b)
            for j in range(a.shape[0]):
                if order.gap_after[g] >> j & 1:
                    above = max(above, a[j])
                if order.gap_before[g] >> j & 1:
                    until = min(until, b[j])
        elif order.gap_place[g] == LEADING:
            above -= window
        else:
            until += window
        question = (scratch.start[length + n], conditions.negated[n], conditions.negated[n + 1], -1)
        listed = collect(events, negated[n, 0], first, above, until, g, question, listed)
        if listed < 0:
            return listed
    return listed


@kernel(allocates=True)
def _set_confidences(
    chosen, matches, window, order, negated, events, pmfs, most_steps, with_confidence, work, out
):
    """Fill range and confidence of the chosen matches, which are of one order; as ``gap_confidences``."""
    out_lower, out_upper, out_confidence = out
    scratch, gathered = events.scratch, events.gathered
    count = order.before.shape[0]
    match = Intervals(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64))
    a = np.empty(count, np.int64)
    b = np.empty(count, np.int64)
    scratch.steps[0] = 0
    for q in range(chosen.shape[0]):
        if work.progress[SPENT] + float(scratch.steps[0]) >= work.progress[BUDGET]:
            return q, PAUSED, (0, 0, 0, 0)
        work.progress[SPENT] += 1.0
        n = chosen[q]
        share = take_match(matches, n, events, match)
        listed = 0
        fits = share > 0.0 and tight_order_bounds(match.lower, match.upper, order.before, window, a, b)
        if fits:
            first = matches.place[matches.start[n]]
            listed = _forbidden(events, negated, order, a, b, window, first)
        unmark(matches, n, events, listed)
        if listed < 0:
            return q, SPACE, (0, 0, 0, gathered.forbidden.event.shape[0] + 1)
        if not fits:
            out_lower[n], out_upper[n], out_confidence[n] = 0, -1, 0.0
            continue
        if listed == 0 and not with_confidence and largest(match.offset) < 0:
            out_lower[n] = smallest(a)
            out_upper[n] = largest(b)
            continue
        status, value, earliest, latest = order_confidence(
            match, pmfs, window, order, a, b, listed, gathered.forbidden, most_steps, work
        )
        if status == chains.PAUSED:
            return q, PAUSED, (0, 0, 0, 0)
        if status == TOO_DEAR:
            return q, COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0, 0)
        out_lower[n] = earliest
        out_upper[n] = latest
        out_confidence[n] = value * share
    return chosen.shape[0], ALL, (0, 0, 0, 0)


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
        self._room = room_for(64, len(gaps))

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
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents,
        negated: Int64,
        conditions: Conditions,
        pmfs: Pmfs,
        wanted: bool,
        scratch: Scratch,
        out: tuple[Int64, Int64, Float64],
        held: HeldOffsets,
        declined: dict[int, float],
    ) -> None:
        """Fill ranges and confidences, as :func:`eventbased.gaps.gap_confidences.gap_confidences` does.

        ``negated`` has the pool of each negated component, (n,) int64. Matches that take too many steps are
        put into ``declined``, by how many.
        """
        kernel: Any = _set_confidences
        negations = np.column_stack((negated, self._gap_of))
        for counts, chosen in by_counts(matches, len(self._before)):
            order = self._order(counts)
            if order is None:
                declined.update(dict.fromkeys(chosen.tolist(), float(MOST_STEPS_BETWEEN_IDEALS)))
                continue
            work = OrderWork.of(len(order.before))

            def call(
                done: int, chosen: Int64 = chosen, order: Order = order, work: OrderWork = work
            ) -> Described:
                gathered = Gathered(self._mark, offsets, self._room, held)
                more, reason, need = kernel(
                    chosen[done:], matches, self._window, order, negations,
                    GapEvents(candidates, pools, conditions, scratch, gathered), pmfs, self._most_steps,
                    wanted, work.go_on(), out,
                )  # fmt: skip
                return done + more, reason, need

            def decline(n: int, steps: float, chosen: Int64 = chosen) -> None:
                declined[int(chosen[n])] = steps

            describe_each(call, self._grow, decline)

    def _grow(self, need: Sequence[int]) -> None:
        self._room = room_for(2 * need[3], len(self._gaps))
