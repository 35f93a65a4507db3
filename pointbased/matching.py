"""Pattern matching over point events (Zhang et al., section 3, step 2): the run loop of the automaton.

Skip till any is what runs, whatever the strategy of the query: a run stays where it is and a copy of it
takes the point. Two points of one event never meet in a run. Under skip till next a copy is weighed by the
probability that nothing that could have been taken happened in between (Eq. 2 and 3), and a prefix is left
alone once its NELT has passed: an event that can be next and starts after the prefix ends has happened by
then in every world. NELT is known by the time it matters: the event that sets it has a point, or ended, at or
before it, so no run has to be taken back.

What lies ahead of a run depends on its prefix, on the time of its first event (the window) and, under skip
till next, on that of its last one (the gap); that is its computation state (SIGMOD 2008, section 5.2).
Runs that agree in it are merged by adding their weights. Under skip till any all runs of a prefix with the
same first time are one: the points come in order of time, so the next one is behind all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from confidence.programs import STACK_DEPTH, holds
from pointbased.config import TINY
from pointbased.pools import (
    CHILD,
    COMPLETE,
    COMPLETES,
    COMPONENT,
    EVENT,
    EXPIRES,
    FIRST_COUNT,
    FIRST_LOW,
    LATER,
    LOWER,
    MIXED,
    NODES,
    NONE,
    PARENT,
    PARTITION,
    RANGE_HIGH,
    RANGE_LOW,
    REFUSED,
    ROOT,
    RUNS,
    RUNS_COUNT,
    RUNS_ROOM,
    RUNS_START,
    SHARED,
    SIBLING,
    STATE,
    TAKEN,
    UPPER,
    find,
    insert,
    table_full,
)
from pointbased.survival import gap_survival, outside, probability

__all__ = ["Programs", "Scratch", "match_points", "scratch_for"]


class Programs(NamedTuple):
    """The arrays of :func:`confidence.programs.holds`, attribute values in the order of the candidates."""

    code: Any
    ints: Any
    floats: Any
    nulls: Any
    slots: Any


class Scratch(NamedTuple):
    """Work arrays of the run loop.

    Attributes
    ----------
    weight : (u,) float64
        By first time, u being the number of ticks of the longest interval.
    row_time, product, spoiled : (u,) int64, float64, int64
        See :func:`pointbased.survival.gap_survival`.
    chosen : (l,) int64
    whole, real, absent
        See :func:`confidence.programs.holds`.
    """

    weight: Any
    row_time: Any
    product: Any
    spoiled: Any
    chosen: Any
    whole: Any
    real: Any
    absent: Any


def scratch_for(components: int, longest: int) -> Scratch:
    """Return work arrays for so many components and ticks in an interval."""
    return Scratch(
        np.empty(longest),
        np.empty(longest, dtype=np.int64),
        np.empty(longest),
        np.empty(longest, dtype=np.int64),
        np.empty(components, dtype=np.int64),
        np.empty(STACK_DEPTH, dtype=np.int64),
        np.empty(STACK_DEPTH),
        np.empty(STACK_DEPTH, dtype=np.bool_),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _refused(candidates, node, programs, scratch, p, c, first_row, last_row):
    """Return whether an event was taken before, or the formula of the edge does not hold."""
    row = candidates.row
    if row[c, SHARED]:
        n = p
        while n != NONE:
            if row[node[n, TAKEN], EVENT] == row[c, EVENT]:
                return True
            n = node[n, PARENT]
    if first_row == last_row:
        return False
    chosen = scratch.chosen
    n = p
    while n != NONE:
        chosen[row[node[n, TAKEN], COMPONENT]] = node[n, TAKEN]
        n = node[n, PARENT]
    chosen[row[c, COMPONENT]] = c
    return not holds(
        programs.code, first_row, last_row, programs.ints, programs.floats, programs.nulls, programs.slots,
        chosen, scratch.whole, scratch.real, scratch.absent,
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _add_node(buffer, p, c, state, first_low, first_high, expires):
    """Append a node without runs; the buffer has room."""
    n = buffer.counts[NODES]
    buffer.counts[NODES] = n + 1
    node = buffer.node
    node[n, PARENT] = p
    node[n, TAKEN] = c
    node[n, STATE] = state
    node[n, EXPIRES] = expires
    node[n, LATER] = NONE
    node[n, CHILD] = NONE
    node[n, SIBLING] = NONE
    node[n, RUNS_START] = 0
    node[n, RUNS_COUNT] = 0
    node[n, RUNS_ROOM] = 0
    node[n, FIRST_LOW] = first_low
    node[n, FIRST_COUNT] = max(first_high - first_low + 1, 0)
    node[n, MIXED] = 0
    buffer.confidence[n] = 0.0
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def _child(
    candidates, buffer, programs, scratch, p, c, target, first_row, last_row, window, next_match, nelt
):  # fmt: skip
    """Return the child of ``p`` (-1: before the first event) that takes ``c``, or ``REFUSED``.

    If it is new it is made now: the buffer has room for a node and an entry.
    """
    row = candidates.row
    if p == NONE:
        if row[c, ROOT] == NONE:
            row[c, ROOT] = _add_node(buffer, p, c, target, row[c, LOWER], row[c, UPPER], row[c, UPPER])
        return row[c, ROOT]
    child = find(buffer.table, p, c)
    if child != NONE:
        return child
    if _refused(candidates, buffer.node, programs, scratch, p, c, first_row, last_row):
        insert(buffer, p, c, REFUSED)
        return REFUSED
    node = buffer.node
    low = max(node[p, FIRST_LOW], row[c, LOWER] - window + 1)
    high = min(node[p, FIRST_LOW] + node[p, FIRST_COUNT] - 1, row[c, UPPER] - 1)
    child = _add_node(buffer, p, c, target, low, high, row[c, UPPER])
    insert(buffer, p, c, child)
    if next_match:
        node[child, SIBLING] = node[p, CHILD]
        node[p, CHILD] = child
        node[p, MIXED] |= row[c, SHARED]
        if nelt and row[c, LOWER] > row[node[p, TAKEN], UPPER]:
            node[p, EXPIRES] = min(node[p, EXPIRES], row[c, UPPER])
    return child


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _wanted(buffer, p, n):
    """Return what room the pool has to have for the runs of ``p`` to move on to ``n``, moved themselves.

    With ``p`` -1 it is one run that begins at ``n``.
    """
    node = buffer.node
    more = 1 + node[n, FIRST_COUNT]
    if p != NONE:
        more += node[p, RUNS_COUNT] + node[p, FIRST_COUNT]
    return more + 3 * node[n, RUNS_ROOM]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_run(buffer, n, first, last, weight):
    """Append a run to a node that has room."""
    r = buffer.node[n, RUNS_START] + buffer.node[n, RUNS_COUNT]
    buffer.run_time[r, 0] = first
    buffer.run_time[r, 1] = last
    buffer.run_weight[r] = weight
    buffer.node[n, RUNS_COUNT] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _by_first_time(buffer, n):
    """Give a node a run of weight 0 for each possible time of the first event."""
    count = buffer.node[n, FIRST_COUNT]
    _make_room(buffer, n, count)
    for k in range(count):
        _add_run(buffer, n, buffer.node[n, FIRST_LOW] + k, NONE, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _wake(buffer, heads, n, group):
    """Put a node that is about to get its first run among those that points are tried on."""
    if buffer.node[n, RUNS_ROOM] == 0:
        buffer.node[n, LATER] = heads[group]
        heads[group] = n


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(candidates, buffer, heads, n, group, complete, window, by_first, now):
    """Begin a run with a point of the event at a node."""
    node = buffer.node
    weight = probability(candidates, node[n, TAKEN], now)
    if complete:
        _complete(buffer, n, weight, now, now)
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


@njit(cache=True, nogil=True, error_model="numpy")
def _complete(buffer, n, weight, first, last):
    """Add point matches to the match at a node."""
    node = buffer.node
    if buffer.confidence[n] == 0.0:
        node[n, LATER] = buffer.counts[COMPLETE]
        buffer.counts[COMPLETE] = n
        buffer.counts[COMPLETES] += 1
        node[n, RANGE_LOW] = first
        node[n, RANGE_HIGH] = last
    buffer.confidence[n] += weight
    node[n, RANGE_LOW] = min(node[n, RANGE_LOW], first)
    node[n, RANGE_HIGH] = max(node[n, RANGE_HIGH], last)


@njit(cache=True, nogil=True, error_model="numpy")
def _take_plain(buffer, heads, p, child, group, complete, window, point_weight, now):
    """Let the runs of ``p``, merged by first time, take a point."""
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


@njit(cache=True, nogil=True, error_model="numpy")
def _take_weighed(
    candidates, buffer, heads, scratch, p, c, child, group, complete, window, point_weight, now, times,
    included, merging,
):  # fmt: skip
    """Let the runs of ``p``, each weighed by its gap, take a point.

    Parameters
    ----------
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
    summed = merging and not complete
    if summed:
        for k in range(node[p, FIRST_COUNT]):
            scratch.weight[k] = 0.0
    elif not complete:
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
        if summed:
            scratch.weight[t - low] += weight
        elif complete:
            total += weight
        else:
            _add_run(buffer, child, t, now, weight)
    if latest < low:
        return
    if complete:
        _complete(buffer, child, total, first, now)
        return
    node[child, EXPIRES] = max(node[child, EXPIRES], latest + window - 1)
    if summed:
        _wake(buffer, heads, child, group)
        _make_room(buffer, child, latest - first + 1)
        for t in range(first, latest + 1):
            if scratch.weight[t - low] > 0.0:
                _add_run(buffer, child, t, now, scratch.weight[t - low])


@njit(cache=True, nogil=True, error_model="numpy")
def match_points(
    time, candidate, place, candidates, buffer, heads, edge_first, edges, accepting, window, programs,
    scratch, next_match, merging, nelt,
):  # fmt: skip
    """Feed point events to the automaton, as far as the pools have room.

    Parameters
    ----------
    time, candidate : (m,) int64
        In the order of :class:`pointbased.expansion.PointEvents`, and behind all points fed before.
    place : (5,) int64
        Where to go on: the first point of a group, the edge within its component (both 0 at first), the node
        and the one before it in their list (-1: from the head), and the point within the group.
    candidates : Candidates
    buffer : Buffer
    heads : (partitions * states,) int64
        First node of each partition and state that points are tried on, or -1.
    edge_first, edges
        See :meth:`pointbased.automaton.Automaton.consuming`.
    accepting : int64
        The last state.
    window : int64
    programs : Programs
    scratch : Scratch
    next_match : bool
        Skip till next match.
    merging : bool
        Whether to merge runs with the same computation state.
    nelt : bool
        Whether to leave a prefix alone once its NELT has passed. It changes no answer.

    Returns
    -------
    int64
        0 when all points were fed; else the number of runs to make room for, and a node and an entry, before
        the call is repeated. The components of a tick go from the last to the first, so no point meets a
        run that ends at its own tick.
    """
    row = candidates.row
    by_first = merging and not next_match
    i = place[0]
    while i < time.shape[0]:
        now = time[i]
        component = row[candidate[i], COMPONENT]
        partition = row[candidate[i], PARTITION]
        stop = i + 1
        while (
            stop < time.shape[0]
            and time[stop] == now
            and row[candidate[stop], COMPONENT] == component
            and row[candidate[stop], PARTITION] == partition
        ):
            stop += 1
        for e in range(edge_first[component] + place[1], edge_first[component + 1]):
            source = edges[e, 0]
            target = edges[e, 1]
            complete = target == accepting
            group = partition * accepting + target
            previous = place[3]
            p = place[2]
            if p == NONE and source > 0:
                p = heads[partition * accepting + source]
            while p != NONE or source == 0:
                later = NONE if source == 0 else buffer.node[p, LATER]
                times = 0
                if source > 0:
                    if buffer.node[p, EXPIRES] < now:
                        if previous == NONE:
                            heads[partition * accepting + source] = later
                        else:
                            buffer.node[previous, LATER] = later
                        p = later
                        continue
                    if next_match:
                        times = gap_survival(
                            candidates, buffer, p, now, scratch.row_time, scratch.product, scratch.spoiled
                        )
                known = buffer.counts[NODES]
                for k in range(i + place[4], stop):
                    c = candidate[k]
                    full = buffer.counts[NODES] == buffer.node.shape[0] or table_full(
                        buffer.counts, buffer.table
                    )
                    wanted = 1
                    if not full:
                        child = _child(
                            candidates, buffer, programs, scratch, p, c, target, edges[e, 2], edges[e, 3],
                            window, next_match, nelt,
                        )  # fmt: skip
                        if child == REFUSED:
                            continue
                        wanted = _wanted(buffer, p, child)
                        full = not complete and buffer.counts[RUNS] + wanted > buffer.run_weight.shape[0]
                    if full:
                        place[0], place[1], place[2], place[3] = i, e - edge_first[component], p, previous
                        place[4] = k - i
                        return wanted
                    if source == 0:
                        _begin(candidates, buffer, heads, child, group, complete, window, by_first, now)
                    elif by_first:
                        _take_plain(
                            buffer, heads, p, child, group, complete, window, probability(candidates, c, now),
                            now,
                        )  # fmt: skip
                    else:
                        _take_weighed(
                            candidates, buffer, heads, scratch, p, c, child, group, complete, window,
                            probability(candidates, c, now), now, times, child < known, merging,
                        )  # fmt: skip
                place[4] = 0
                if source == 0:
                    break
                previous = p
                p = later
            place[2] = NONE
            place[3] = NONE
        place[1] = 0
        i = stop
    return 0
