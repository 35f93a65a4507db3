"""Runs, and how they take a point: all those of a prefix at once.

What lies ahead of a run depends on its prefix, on the time of its first event (the window) and, under skip
till next, on that of its last one (the gap); that is its computation state (SIGMOD 2008, section 5.2).
Runs that agree in it are merged by adding their weights. Under skip till any all runs of a prefix with the
same first time are one: the points come in order of time, so the next one is behind all of them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

import pointbased.columns as col
from confidence.kernel import kernel
from pointbased.columns import NONE

__all__ = [
    "Gaps",
    "begin",
    "gap_survival",
    "gaps_for",
    "probability",
    "room_wanted",
    "take_plain",
    "take_weighed",
]

_TINY: Final = 5e-324
"""The smallest positive float64: what a positive probability too small for float64 is taken for, so that
the range of a match does not lose a time that is merely very improbable."""


class Gaps(NamedTuple):
    """The gaps between the runs of a node and a point, which must stay free; u ticks in the longest interval.

    Attributes
    ----------
    row_time : (u,) int64
        The distinct last times of the runs, ascending.
    product : (u,) float64
        For each the product of the factors that are not 0, over the children of the node.
    spoiled : (u,) int64
        For each the number of factors that are 0.
    weight : (u,) float64
        Weights of runs by first time.
    """

    row_time: Any
    product: Any
    spoiled: Any
    weight: Any


def gaps_for(longest: int) -> Gaps:
    """Return work arrays for so many ticks in an interval."""
    row_time, spoiled = np.empty((2, longest), dtype=np.int64)
    product, weight = np.empty((2, longest))
    return Gaps(row_time, product, spoiled, weight)


@kernel
def probability(candidates, c, t):
    """Return the probability that a candidate happened at a tick of its interval.

    Parameters
    ----------
    candidates : StoredCandidates
    c, t : int64
        The candidate and the tick.
    """
    row = candidates.row
    start = row[c, col.PMF]
    if start < 0:
        return 1.0 / (row[c, col.UPPER] - row[c, col.LOWER] + 1)
    return candidates.pmf[start + t - row[c, col.LOWER]]


@kernel
def _outside(candidates, c, after, before):
    """Return the probability that a candidate did not happen strictly between two ticks. O(1)."""
    row = candidates.row
    lower = row[c, col.LOWER]
    upper = row[c, col.UPPER]
    first = max(lower, after + 1)
    last = min(upper, before - 1)
    if first > last:
        return 1.0
    start = row[c, col.PMF]
    if start < 0:
        size = upper - lower + 1
        return (size - (last - first + 1)) / size
    total = 0.0
    if first > lower:
        total += candidates.head[start + first - 1 - lower]
    if last < upper:
        total += candidates.tail[start + last + 1 - lower]
    return total


@kernel(inline=True)
def gap_survival(candidates, buffer, p, now, gaps):
    """Compute for every last time t of the runs at node ``p`` what keeps the gap (t, now) free.

    Algorithm 1 of Zhang et al. memoises the quantity by (t[j-1], t[j]); here it is computed once for each
    such pair of a prefix, and used for all runs with that last time and all events at ``now``. The
    events that could have been taken there are the children of ``p``: whatever has a point in the gap
    was tried there.

    Parameters
    ----------
    candidates : StoredCandidates
    buffer : Buffer
    p, now : int64
        The node, and a tick.
    gaps : Gaps
        Overwritten, but for ``weight``.

    Returns
    -------
    int64
        The number of last times. O(runs + times * children).
    """
    node = buffer.node
    start = node[p, col.RUNS_START]
    n = 0
    for r in range(start, start + node[p, col.RUNS_COUNT]):
        t = buffer.run_time[r, 1]
        if n == 0 or gaps.row_time[n - 1] != t:
            gaps.row_time[n] = t
            gaps.product[n] = 1.0
            gaps.spoiled[n] = 0
            n += 1
    if n == 0:
        return 0
    child = node[p, col.CHILD]
    while child != NONE:
        c = node[child, col.TAKEN]
        if candidates.row[c, col.LOWER] < now and candidates.row[c, col.UPPER] > gaps.row_time[0]:
            for k in range(n):
                factor = _outside(candidates, c, gaps.row_time[k], now)
                if factor == 0.0:
                    gaps.spoiled[k] += 1
                elif factor < 1.0:
                    gaps.product[k] = max(gaps.product[k] * factor, _TINY)
        child = node[child, col.SIBLING]
    return n


@kernel
def _make_room(buffer, n, more):
    """Make room for so many more runs at a node, moving its runs to the end of the pool if need be."""
    node = buffer.node
    needed = node[n, col.RUNS_COUNT] + more
    if needed <= node[n, col.RUNS_ROOM]:
        return
    room = max(needed, 2 * node[n, col.RUNS_ROOM])
    old = node[n, col.RUNS_START]
    new = buffer.counts[col.RUNS]
    for r in range(node[n, col.RUNS_COUNT]):
        buffer.run_time[new + r, 0] = buffer.run_time[old + r, 0]
        buffer.run_time[new + r, 1] = buffer.run_time[old + r, 1]
        buffer.run_weight[new + r] = buffer.run_weight[old + r]
    node[n, col.RUNS_START] = new
    node[n, col.RUNS_ROOM] = room
    buffer.counts[col.RUNS] = new + room


@kernel
def room_wanted(buffer, p, n):
    """Return the room that the pool needs for the runs of one node to move on to another, moved themselves.

    Parameters
    ----------
    buffer : Buffer
    p, n : int64
        The two nodes; with ``p`` -1 it is one run that begins at ``n``.
    """
    node = buffer.node
    more = 1 + node[n, col.FIRST_COUNT]
    if p != NONE:
        more += node[p, col.RUNS_COUNT] + node[p, col.FIRST_COUNT]
    return more + 3 * node[n, col.RUNS_ROOM]


@kernel
def _add_run(buffer, n, first, last, weight):
    """Append a run to a node that has room."""
    r = buffer.node[n, col.RUNS_START] + buffer.node[n, col.RUNS_COUNT]
    buffer.run_time[r, 0] = first
    buffer.run_time[r, 1] = last
    buffer.run_weight[r] = weight
    buffer.node[n, col.RUNS_COUNT] += 1


@kernel
def _by_first_time(buffer, n):
    """Give a node a run of weight 0 for each possible time of the first event."""
    count = buffer.node[n, col.FIRST_COUNT]
    _make_room(buffer, n, count)
    for k in range(count):
        _add_run(buffer, n, buffer.node[n, col.FIRST_LOW] + k, NONE, 0.0)


@kernel
def _wake(buffer, n, group):
    """Put a node that is about to get its first run among those that points are tried on."""
    if buffer.node[n, col.RUNS_ROOM] == 0:
        buffer.node[n, col.LATER] = buffer.heads[group]
        buffer.heads[group] = n


@kernel
def _complete(buffer, n, weight, first, last):
    """Add point matches to the match at a node."""
    node = buffer.node
    if buffer.confidence[n] == 0.0:
        node[n, col.NEXT_COMPLETE] = buffer.counts[col.COMPLETE]
        buffer.counts[col.COMPLETE] = n
        buffer.counts[col.COMPLETES] += 1
        node[n, col.RANGE_LOW] = first
        node[n, col.RANGE_HIGH] = last
    buffer.confidence[n] += weight
    node[n, col.RANGE_LOW] = min(node[n, col.RANGE_LOW], first)
    node[n, col.RANGE_HIGH] = max(node[n, col.RANGE_HIGH], last)


@kernel(inline=True)
def begin(candidates, buffer, n, group, complete, onward, window, by_first, now):
    """Begin a run with a point of the event at a node.

    Parameters
    ----------
    candidates : StoredCandidates
    buffer : Buffer
    n, group : int64
        The node, and the index of its partition and state in ``heads``.
    complete, onward : bool
        Whether that ends a match, and whether the run can take further events.
    window, now : int64
        Ticks; the latter is the point's.
    by_first : bool
        Whether a node has one run for each first time.
    """
    node = buffer.node
    weight = probability(candidates, node[n, col.TAKEN], now)
    if complete:
        _complete(buffer, n, weight, now, now)
    if not onward:
        return
    _wake(buffer, n, group)
    node[n, col.EXPIRES] = max(node[n, col.EXPIRES], now + window - 1)
    if not by_first:
        _make_room(buffer, n, 1)
        _add_run(buffer, n, now, now, weight)
        return
    if node[n, col.RUNS_ROOM] == 0:
        _by_first_time(buffer, n)
    buffer.run_weight[node[n, col.RUNS_START] + now - node[n, col.FIRST_LOW]] = weight


@kernel(inline=True)
def take_plain(candidates, buffer, p, child, group, complete, onward, window, now):
    """Let the runs of a node, merged by first time, take a point.

    Parameters
    ----------
    candidates, buffer, complete, onward, window, now
        See :func:`begin`.
    p, child, group : int64
        The node, the one that they reach, and the index of its partition and state in ``heads``.
    """
    node = buffer.node
    point_weight = probability(candidates, node[child, col.TAKEN], now)
    start = node[p, col.RUNS_START]
    skipped = max(now - window + 1 - node[p, col.FIRST_LOW], 0)
    stop = start + min(node[p, col.RUNS_COUNT], now - node[p, col.FIRST_LOW])
    first = start + skipped
    while first < stop and buffer.run_weight[first] == 0.0:
        first += 1
    if first >= stop:
        return
    if complete:
        total = 0.0
        for r in range(first, stop):
            if buffer.run_weight[r] > 0.0:
                total += max(buffer.run_weight[r] * point_weight, _TINY)
        _complete(buffer, child, total, buffer.run_time[first, 0], now)
    if not onward:
        return
    last = stop - 1
    while buffer.run_weight[last] == 0.0:
        last -= 1
    _wake(buffer, child, group)
    node[child, col.EXPIRES] = max(node[child, col.EXPIRES], buffer.run_time[last, 0] + window - 1)
    if node[child, col.RUNS_ROOM] == 0:
        _by_first_time(buffer, child)
    shift = node[child, col.RUNS_START] + node[p, col.FIRST_LOW] - node[child, col.FIRST_LOW] - start
    weights = buffer.run_weight
    for r in range(first, last + 1):
        if weights[r] > 0.0:
            weights[r + shift] += max(weights[r] * point_weight, _TINY)


@kernel(inline=True)
def take_weighed(
    candidates, buffer, gaps, p, child, group, complete, onward, window, now, times, included, merging
):  # fmt: skip
    """Let the runs of a node, each weighed by its gap, take a point.

    Parameters
    ----------
    candidates, buffer, p, child, group, complete, onward, window, now
        See :func:`take_plain`.
    gaps : Gaps
    times : int64
        Last times that ``gaps`` has factors for; 0 under skip till any.
    included : bool
        Whether the factors of the candidate itself are in them: it forbids nothing in its own match. They are
        positive, as it can happen at ``now``.
    merging : bool
        Whether to merge runs with the same computation state.
    """
    node = buffer.node
    c = node[child, col.TAKEN]
    point_weight = probability(candidates, c, now)
    start = node[p, col.RUNS_START]
    stop = start + node[p, col.RUNS_COUNT]
    low = node[p, col.FIRST_LOW]
    summed = merging and onward
    if summed:
        for k in range(node[p, col.FIRST_COUNT]):
            gaps.weight[k] = 0.0
    elif onward:
        # Before the runs are gone through: they may move.
        taken = 0
        for r in range(start, stop):
            taken += buffer.run_time[r, 0] > now - window
        if taken == 0:
            return
        _wake(buffer, child, group)
        _make_room(buffer, child, taken)
    k = -1
    factor = point_weight
    blocked = False
    first = now
    latest = low - 1
    total = 0.0
    for r in range(start, stop):
        t = buffer.run_time[r, 0]
        if times and (k < 0 or gaps.row_time[k] != buffer.run_time[r, 1]):
            k += 1
            blocked = gaps.spoiled[k] > 0
            factor = point_weight * gaps.product[k]
            if included:
                factor /= _outside(candidates, c, gaps.row_time[k], now)
            factor = max(factor, _TINY)
        if blocked or t <= now - window or buffer.run_weight[r] == 0.0:
            continue
        weight = max(buffer.run_weight[r] * factor, _TINY)
        first = min(first, t)
        latest = max(latest, t)
        total += weight
        if summed:
            gaps.weight[t - low] += weight
        elif onward:
            _add_run(buffer, child, t, now, weight)
    if latest < low:
        return
    if complete:
        _complete(buffer, child, total, first, now)
    if not onward:
        return
    node[child, col.EXPIRES] = max(node[child, col.EXPIRES], latest + window - 1)
    if summed:
        _wake(buffer, child, group)
        _make_room(buffer, child, latest - first + 1)
        for t in range(first, latest + 1):
            if gaps.weight[t - low] > 0.0:
                _add_run(buffer, child, t, now, gaps.weight[t - low])
