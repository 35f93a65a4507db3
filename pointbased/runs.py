"""Runs, and how they take a point: all those of a prefix at once.

What lies ahead of a run depends on its prefix, on the time of its first event (the window) and, under skip
till next, on that of its last one (the gap); that is its computation state (SIGMOD 2008, section 5.2).
Runs that agree in it are merged by adding their weights. Under skip till any all runs of a prefix with the
same first time are one: the points come in order of time, so the next one is behind all of them.
"""

from __future__ import annotations

from confidence.kernel import kernel
from pointbased.config import TINY
from pointbased.match_buffer import (
    COMPLETE,
    COMPLETES,
    EXPIRES,
    FIRST_COUNT,
    FIRST_LOW,
    LATER,
    NEXT_COMPLETE,
    NONE,
    RANGE_HIGH,
    RANGE_LOW,
    RUNS,
    RUNS_COUNT,
    RUNS_ROOM,
    RUNS_START,
    TAKEN,
)
from pointbased.survival import outside, probability

__all__ = ["begin", "room_wanted", "take_plain", "take_weighed"]


@kernel
def _make_room(buffer, n, more):
    """Make room for so many more runs at a node, moving its runs to the end of the pool if need be."""
    node = buffer.node
    needed = node[n, RUNS_COUNT] + more
    if needed <= node[n, RUNS_ROOM]:
        return
    room = max(needed, 2 * node[n, RUNS_ROOM])
    old = node[n, RUNS_START]
    new = buffer.counts[RUNS]
    for r in range(node[n, RUNS_COUNT]):
        buffer.run_time[new + r, 0] = buffer.run_time[old + r, 0]
        buffer.run_time[new + r, 1] = buffer.run_time[old + r, 1]
        buffer.run_weight[new + r] = buffer.run_weight[old + r]
    node[n, RUNS_START] = new
    node[n, RUNS_ROOM] = room
    buffer.counts[RUNS] = new + room


@kernel
def room_wanted(buffer, p, n):
    """Return what room the pool has to have for the runs of ``p`` to move on to ``n``, moved themselves.

    With ``p`` -1 it is one run that begins at ``n``.
    """
    node = buffer.node
    more = 1 + node[n, FIRST_COUNT]
    if p != NONE:
        more += node[p, RUNS_COUNT] + node[p, FIRST_COUNT]
    return more + 3 * node[n, RUNS_ROOM]


@kernel
def _add_run(buffer, n, first, last, weight):
    """Append a run to a node that has room."""
    r = buffer.node[n, RUNS_START] + buffer.node[n, RUNS_COUNT]
    buffer.run_time[r, 0] = first
    buffer.run_time[r, 1] = last
    buffer.run_weight[r] = weight
    buffer.node[n, RUNS_COUNT] += 1


@kernel
def _by_first_time(buffer, n):
    """Give a node a run of weight 0 for each possible time of the first event."""
    count = buffer.node[n, FIRST_COUNT]
    _make_room(buffer, n, count)
    for k in range(count):
        _add_run(buffer, n, buffer.node[n, FIRST_LOW] + k, NONE, 0.0)


@kernel
def _wake(buffer, heads, n, group):
    """Put a node that is about to get its first run among those that points are tried on."""
    if buffer.node[n, RUNS_ROOM] == 0:
        buffer.node[n, LATER] = heads[group]
        heads[group] = n


@kernel
def _complete(buffer, n, weight, first, last):
    """Add point matches to the match at a node."""
    node = buffer.node
    if buffer.confidence[n] == 0.0:
        node[n, NEXT_COMPLETE] = buffer.counts[COMPLETE]
        buffer.counts[COMPLETE] = n
        buffer.counts[COMPLETES] += 1
        node[n, RANGE_LOW] = first
        node[n, RANGE_HIGH] = last
    buffer.confidence[n] += weight
    node[n, RANGE_LOW] = min(node[n, RANGE_LOW], first)
    node[n, RANGE_HIGH] = max(node[n, RANGE_HIGH], last)


@kernel
def begin(candidates, buffer, heads, n, group, complete, onward, window, by_first, now):
    """Begin a run with a point of the event at a node.

    Parameters
    ----------
    complete, onward : bool
        Whether that ends a match, and whether the run can take further events.
    """
    node = buffer.node
    weight = probability(candidates, node[n, TAKEN], now)
    if complete:
        _complete(buffer, n, weight, now, now)
    if not onward:
        return
    _wake(buffer, heads, n, group)
    node[n, EXPIRES] = max(node[n, EXPIRES], now + window - 1)
    if not by_first:
        _make_room(buffer, n, 1)
        _add_run(buffer, n, now, now, weight)
        return
    if node[n, RUNS_ROOM] == 0:
        _by_first_time(buffer, n)
    buffer.run_weight[node[n, RUNS_START] + now - node[n, FIRST_LOW]] = weight


@kernel
def take_plain(buffer, heads, p, child, group, complete, onward, window, point_weight, now):
    """Let the runs of ``p``, merged by first time, take a point; see :func:`begin`."""
    node = buffer.node
    start = node[p, RUNS_START]
    skipped = max(now - window + 1 - node[p, FIRST_LOW], 0)
    stop = start + min(node[p, RUNS_COUNT], now - node[p, FIRST_LOW])
    first = start + skipped
    while first < stop and buffer.run_weight[first] == 0.0:
        first += 1
    if first >= stop:
        return
    if complete:
        total = 0.0
        for r in range(first, stop):
            if buffer.run_weight[r] > 0.0:
                total += max(buffer.run_weight[r] * point_weight, TINY)
        _complete(buffer, child, total, buffer.run_time[first, 0], now)
    if not onward:
        return
    last = stop - 1
    while buffer.run_weight[last] == 0.0:
        last -= 1
    _wake(buffer, heads, child, group)
    node[child, EXPIRES] = max(node[child, EXPIRES], buffer.run_time[last, 0] + window - 1)
    if node[child, RUNS_ROOM] == 0:
        _by_first_time(buffer, child)
    shift = node[child, RUNS_START] + node[p, FIRST_LOW] - node[child, FIRST_LOW] - start
    weights = buffer.run_weight
    for r in range(first, last + 1):
        if weights[r] > 0.0:
            weights[r + shift] += max(weights[r] * point_weight, TINY)


@kernel
def take_weighed(
    candidates, buffer, heads, scratch, p, c, child, group, complete, onward, window, point_weight, now,
    times, included, merging,
):  # fmt: skip
    """Let the runs of ``p``, each weighed by its gap, take a point.

    Parameters
    ----------
    complete, onward : bool
        See :func:`begin`.
    times : int64
        Last times that ``scratch`` has factors for; 0 under skip till any.
    included : bool
        Whether the factors of ``c`` itself are in them: it forbids nothing in its own match. They are
        positive, as ``c`` can happen at ``now``.
    """
    node = buffer.node
    start = node[p, RUNS_START]
    stop = start + node[p, RUNS_COUNT]
    low = node[p, FIRST_LOW]
    summed = merging and onward
    if summed:
        for k in range(node[p, FIRST_COUNT]):
            scratch.weight[k] = 0.0
    elif onward:
        # Before the runs are gone through: they may move.
        taken = 0
        for r in range(start, stop):
            taken += buffer.run_time[r, 0] > now - window
        if taken == 0:
            return
        _wake(buffer, heads, child, group)
        _make_room(buffer, child, taken)
    k = -1
    factor = point_weight
    blocked = False
    first = now
    latest = low - 1
    total = 0.0
    for r in range(start, stop):
        t = buffer.run_time[r, 0]
        if times and (k < 0 or scratch.row_time[k] != buffer.run_time[r, 1]):
            k += 1
            blocked = scratch.spoiled[k] > 0
            factor = point_weight * scratch.product[k]
            if included:
                factor /= outside(candidates, c, scratch.row_time[k], now)
            factor = max(factor, TINY)
        if blocked or t <= now - window or buffer.run_weight[r] == 0.0:
            continue
        weight = max(buffer.run_weight[r] * factor, TINY)
        first = min(first, t)
        latest = max(latest, t)
        total += weight
        if summed:
            scratch.weight[t - low] += weight
        elif onward:
            _add_run(buffer, child, t, now, weight)
    if latest < low:
        return
    if complete:
        _complete(buffer, child, total, first, now)
    if not onward:
        return
    node[child, EXPIRES] = max(node[child, EXPIRES], latest + window - 1)
    if summed:
        _wake(buffer, heads, child, group)
        _make_room(buffer, child, latest - first + 1)
        for t in range(first, latest + 1):
            if scratch.weight[t - low] > 0.0:
                _add_run(buffer, child, t, now, scratch.weight[t - low])
