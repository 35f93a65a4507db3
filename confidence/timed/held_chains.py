"""Ranges and confidences of sequences whose forbidden spans all end at one time, held at tick after tick.

Given the time that is held, a span begins or ends at a constant, so that an event that must stay out of it
weighs the ticks of one other time alone. What is left are two chains, one on each side: each time of a chain
costs a sum that runs along with its ticks.

If all times are uniform, the sum given the held time is a polynomial of it but near the bounds of other times
and events. All sums are over the whole points between differences that are bound by -1, 0 or 1, a totally
unimodular system: the polynomial changes where the held time is a bound and what a path of such differences
adds, at most one for each time and event (Dahmen and Micchelli, 1988). So each tick counts near a bound, and
few ticks tell the sum of a piece between. Along a piece the first and last possible ticks of the other times
are linear, and some world is possible at all of its ticks or at none: its ends tell the range.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, plain_checkpoint
from confidence.chain.piece_sums import PieceSums, piece_term, piece_terms
from confidence.gaps.describing import ALL, COSTLY, PAUSED
from confidence.kernel import kernel
from confidence.timed.bounds import UNBOUND
from confidence.timed.forbidden_tables import Spans, spans, weigh_one_time

__all__ = ["HeldWork", "describe_held", "held_work"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

TICK: Final = 0
"""The tick of the held time that is next, from its first one on; -1 before a match begins."""

EARLIEST: Final = 1
LATEST: Final = 2

HELD: Final = 3
"""The time that is held."""

MOST_STEPS: Final = 0
"""Multiplications for one match."""

BUDGET: Final = 1
"""After how many to come back."""


class HeldWork(NamedTuple):
    """Work arrays for matches of l times.

    Attributes
    ----------
    first, size, start, apart : (l,) int64
        The ticks of each time, where its weights begin, and by how much it is behind the one before at least.
    weights : (m,) float64
        The weights of all ticks of all times.
    running : (u,) float64
        Sums along the ticks of a time.
    every : (u,) bool
        Which ticks of the held time count each for itself.
    state : (4,) int64, total : (1,) float64
        The match that the last call began, and the time that is held.
    limits : (2,) float64
    spans : confidence.timed.forbidden_tables.Spans
    sums : PieceSums
    """

    first: Int64
    size: Int64
    start: Int64
    apart: Int64
    weights: Float64
    running: Float64
    every: NDArray[np.bool_]
    state: Int64
    total: Float64
    limits: Float64
    spans: Spans
    sums: PieceSums


def held_work(held: int, sizes: Float64, rules: int, constraints: int, degree: int) -> HeldWork:
    """Return work arrays for matches whose times have so many ticks, (k, l). Limits are looked at."""
    times, cells, ticks = sizes.shape[1], int(sizes.sum(axis=1).max()), int(sizes.max())
    checkpoint(16 * (cells + ticks + 4 * times))
    first, size, start, apart = np.zeros((4, times), dtype=np.int64)
    return HeldWork(
        first, size, start, apart, np.empty(cells + 1), np.empty(ticks + 1), np.empty(ticks, dtype=np.bool_),
        np.array([-1, 0, 0, held]), np.zeros(1), np.zeros(2), spans(rules, constraints, times),
        PieceSums.of(degree),
    )  # fmt: skip


@kernel
def _prepare(times, n, work):
    """Write the ticks of the times of a match; return what a tick of the held time costs."""
    length = times.first.shape[1]
    cells = 0
    for v in range(length):
        work.first[v], work.size[v] = times.first[n, v], times.last[n, v] - times.first[n, v] + 1
        work.start[v], work.apart[v] = cells, -UNBOUND
        cells += work.size[v]
    m = min(n, times.low.shape[0] - 1)
    for e in range(times.sides.shape[0]):
        i, j = times.sides[e, 0], times.sides[e, 1]
        low = times.low[m, e]
        if i < j:
            i, j = j, i
            low = -times.high[m, e]
        if i == j + 1:
            work.apart[i] = max(work.apart[i], low)
    return cells


@kernel
def _mark_all(times, n, held, forbidden, margin, work):
    """Mark the ticks of the held time that are near a bound of a time or of an event."""
    first, size = times.first[n, held], times.last[n, held] - times.first[n, held] + 1
    for k in range(size):
        work.every[k] = margin < 0
    if margin < 0:
        return
    for v in range(times.first.shape[1]):
        if v != held:
            _mark(work.every, size, times.first[n, v] - first, margin)
            _mark(work.every, size, times.last[n, v] - first, margin)
    for x in range(forbidden.start[n], forbidden.start[n + 1]):
        _mark(work.every, size, forbidden.lower[x] - first, margin)
        _mark(work.every, size, forbidden.upper[x] - first, margin)


@kernel
def _mark(every, size, at, margin):
    for k in range(max(at - margin, 0), min(at + margin, size - 1) + 1):
        every[k] = True


@kernel
def _weigh(times, n, held, tick, forbidden, pmfs, work):
    """Weigh the ticks of all times given the held one; return whether each event weighs one time alone."""
    m = min(n, times.low.shape[0] - 1)
    weights, start = work.weights, work.start
    for v in range(times.first.shape[1]):
        at, begin = start[v], times.first[n, v]
        stop = work.size[v]
        if v == held:
            begin, stop = tick, 1
        work.first[v] = begin
        if times.size[n, v] > 0.0:
            share = 1.0 / times.size[n, v]
            for k in range(stop):
                weights[at + k] = share
        else:
            for k in range(stop):
                weights[at + k] = pmfs.values[times.offset[n, v] + begin + k]
    for e in range(times.sides.shape[0]):
        i, j = times.sides[e, 0], times.sides[e, 1]
        low, high = times.low[m, e], times.high[m, e]
        if i == held:
            i, j = j, i
            low, high = -high, -low
        if j == held and i != held:
            begin, stop = tick + low - work.first[i], tick + high - work.first[i]
            for k in range(min(max(begin, 0), work.size[i])):
                weights[start[i] + k] = 0.0
            for k in range(max(stop + 1, 0), work.size[i]):
                weights[start[i] + k] = 0.0
    ticks = work.size[held]
    work.size[held] = 1
    alone = True
    for x in range(forbidden.start[n], forbidden.start[n + 1]):
        alone = alone and weigh_one_time(work, start[held], forbidden, x, pmfs)
    work.size[held] = ticks
    return alone


@kernel
def _chained(work, held, end, step):
    """Return the sum over the times on one side of the held one, and the last possible tick away from it."""
    weights, running = work.weights, work.running
    v = held + step
    while v != end:
        at, size = work.start[v], work.size[v]
        if v != held + step:
            # Behind: running[k] is the sum of all at or before the k-th tick of the neighbour; else mirrored.
            near = v - step
            count = work.size[near]
            moved = work.first[v] - work.first[near]
            apart = work.apart[v] if step > 0 else work.apart[near]
            for k in range(size):
                place = moved + k - apart if step > 0 else count - 1 - (moved + k + apart)
                weights[at + k] *= running[min(place, count - 1)] if place >= 0 else 0.0
        total = 0.0
        if v + step != end:
            if step > 0:
                for k in range(size):
                    total += weights[at + k]
                    running[k] = total
            else:
                for k in range(size):
                    total += weights[at + size - 1 - k]
                    running[k] = total
        v += step
    last = end - step
    total = 0.0
    tick = -UNBOUND
    at = work.start[last]
    for k in range(work.size[last]):
        if weights[at + k] > 0.0:
            total += weights[at + k]
            if step > 0 or tick == -UNBOUND:
                tick = work.first[last] + k
    return total, tick


@kernel
def _given(held, tick, weight, work):
    """Add the sum given the held time, and what is possible then."""
    length = work.first.shape[0]
    total = work.weights[work.start[held]]
    earliest = latest = tick
    if held > 0:
        before, earliest = _chained(work, held, -1, -1)
        total *= before
    if held < length - 1:
        behind, latest = _chained(work, held, length, 1)
        total *= behind
    if total > 0.0:
        work.total[0] += weight * total
        work.state[EARLIEST] = min(work.state[EARLIEST], earliest)
        work.state[LATEST] = max(work.state[LATEST], latest)


@kernel
def _run(every, k, size):
    """Return where the ticks end that are as the k-th one: near a bound, or not."""
    stop = k + 1
    while stop < size and not every[k] and not every[stop]:
        stop += 1
    return stop


@kernel
def describe_held(times, forbidden, pmfs, begin, margin, work, out):
    """Fill range and confidence of matches, from one on.

    Parameters
    ----------
    times : confidence.timed.summed_matches.SummedTimes
        Tight; each time behind the one before, with no other bound but to the held one.
    forbidden : confidence.timed.forbidden_tables.Others
        Given the held time, each is forbidden where one other time tells.
    pmfs : confidence.chain.distribution.Pmfs
    begin : int64
        The match to begin with.
    margin : (k,) int64
        How near a bound each tick counts; -1: everywhere.
    work : HeldWork
    out : tuple of (k,) int64 twice and (k,) float64
        Overwritten; the range is empty where the confidence is 0.

    Returns
    -------
    done : int64
        Matches done.
    reason : int64
        ALL, COSTLY if match ``done`` takes too many steps or is not of this form, PAUSED.

    Notes
    -----
    For each tick that is looked at O(ticks of all times * forbidden events).
    """
    out_lower, out_upper, out_confidence = out
    state = work.state
    held, budget = state[HELD], work.limits[BUDGET]
    spent = 0.0
    for n in range(begin, times.first.shape[0]):
        out_lower[n], out_upper[n], out_confidence[n] = 0, -1, 0.0
        if times.first[n, 0] > times.last[n, 0]:
            continue
        cells = float(_prepare(times, n, work) * (2 + forbidden.start[n + 1] - forbidden.start[n]))
        size = work.size[held]
        if state[TICK] < 0:
            state[TICK], state[EARLIEST], state[LATEST], work.total[0] = 0, UNBOUND, -UNBOUND, 0.0
        _mark_all(times, n, held, forbidden, margin[n], work)
        degree = times.first.shape[1] - 1 + forbidden.start[n + 1] - forbidden.start[n]
        while state[TICK] < size:
            k = state[TICK]
            stop = _run(work.every, k, size)
            count, nodes, apart = piece_terms(stop - k, degree, work.sums)
            if spent > 0.0 and spent + cells * float(count) > budget:
                return n, PAUSED
            # The ends tell the range.
            for term in range(-2, count):
                plain_checkpoint()
                place, weight = (stop - k - 1) * (term + 2), 0.0
                if term >= 0:
                    place, weight = piece_term(term, nodes, apart, work.sums)
                elif stop == k + 1:
                    continue
                tick = times.first[n, held] + k + place
                if not _weigh(times, n, held, tick, forbidden, pmfs, work):
                    state[TICK] = -1
                    return n, COSTLY
                _given(held, tick, weight, work)
                spent += cells
                if spent > work.limits[MOST_STEPS] + budget:
                    state[TICK] = -1
                    return n, COSTLY
            state[TICK] = stop
        state[TICK] = -1
        if work.total[0] > 0.0:
            out_lower[n], out_upper[n] = state[EARLIEST], state[LATEST]
            out_confidence[n] = min(work.total[0], 1.0)
    return times.first.shape[0], ALL
