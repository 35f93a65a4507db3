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
    grown,
    insert,
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
def _child(candidates, buffer, programs, scratch, p, c, edge, window, next_match, nelt):
    """Return the child of ``p`` that takes ``c``, made now if it is new, or ``REFUSED``.

    The buffer has room for a node.
    """
    child = find(buffer.table, p, c)
    if child != NONE:
        return child
    if _refused(candidates, buffer.node, programs, scratch, p, c, edge[2], edge[3]):
        insert(buffer, p, c, REFUSED)
        return REFUSED
    row = candidates.row
    node = buffer.node
    low = max(node[p, FIRST_LOW], row[c, LOWER] - window + 1)
    high = min(node[p, FIRST_LOW] + node[p, FIRST_COUNT] - 1, row[c, UPPER] - 1)
    child = _add_node(buffer, p, c, edge[1], low, high, row[c, UPPER])
    insert(buffer, p, c, child)
    if next_match:
        node[child, SIBLING] = node[p, CHILD]
        node[p, CHILD] = child
        node[p, MIXED] |= row[c, SHARED]
        if nelt and row[c, LOWER] > row[node[p, TAKEN], UPPER]:
            node[p, EXPIRES] = min(node[p, EXPIRES], row[c, UPPER])
    return child


@njit(cache=True, nogil=True, error_model="numpy")
def _with_room(buffer, n, more):
    """Return the buffer with room for so many more runs at a node, moved to the end of the pool if need be."""
    node = buffer.node
    needed = node[n, RUNS_COUNT] + more
    if needed <= node[n, RUNS_ROOM]:
        return buffer
    room = max(needed, 2 * node[n, RUNS_ROOM])
    buffer = grown(buffer, 0, room)
    old = node[n, RUNS_START]
    new = buffer.counts[RUNS]
    for r in range(node[n, RUNS_COUNT]):
        buffer.run_time[new + r] = buffer.run_time[old + r]
        buffer.run_weight[new + r] = buffer.run_weight[old + r]
    node[n, RUNS_START] = new
    node[n, RUNS_ROOM] = room
    buffer.counts[RUNS] = new + room
    return buffer


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
    """Return the buffer with a run of weight 0 at a node for each possible time of the first event."""
    count = buffer.node[n, FIRST_COUNT]
    buffer = _with_room(buffer, n, count)
    for k in range(count):
        _add_run(buffer, n, buffer.node[n, FIRST_LOW] + k, NONE, 0.0)
    return buffer


@njit(cache=True, nogil=True, error_model="numpy")
def _wake(buffer, heads, n, group):
    """Put a node that is about to get its first run among those that points are tried on."""
    if buffer.node[n, RUNS_ROOM] == 0:
        buffer.node[n, LATER] = heads[group]
        heads[group] = n


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(candidates, buffer, heads, c, target, accepting, window, by_first, now):
    """Return the buffer with a run that begins with a point."""
    row = candidates.row
    buffer = grown(buffer, 1, 0)
    n = row[c, ROOT]
    if n == NONE:
        n = _add_node(buffer, NONE, c, target, row[c, LOWER], row[c, UPPER], row[c, UPPER])
        row[c, ROOT] = n
    weight = probability(candidates, c, now)
    if target == accepting:
        _complete(buffer, n, weight, now, now)
        return buffer
    _wake(buffer, heads, n, row[c, PARTITION] * accepting + target)
    buffer.node[n, EXPIRES] = max(buffer.node[n, EXPIRES], now + window - 1)
    if not by_first:
        buffer = _with_room(buffer, n, 1)
        _add_run(buffer, n, now, now, weight)
        return buffer
    if buffer.node[n, RUNS_ROOM] == 0:
        buffer = _by_first_time(buffer, n)
    buffer.run_weight[buffer.node[n, RUNS_START] + now - row[c, LOWER]] = weight
    return buffer


@njit(cache=True, nogil=True, error_model="numpy")
def _complete(buffer, n, weight, first, last):
    """Add point matches to the match at a node."""
    node = buffer.node
    if buffer.confidence[n] == 0.0:
        node[n, LATER] = buffer.counts[COMPLETE]
        buffer.counts[COMPLETE] = n
        node[n, RANGE_LOW] = first
        node[n, RANGE_HIGH] = last
    buffer.confidence[n] += weight
    node[n, RANGE_LOW] = min(node[n, RANGE_LOW], first)
    node[n, RANGE_HIGH] = max(node[n, RANGE_HIGH], last)


@njit(cache=True, nogil=True, error_model="numpy")
def _take_plain(buffer, heads, p, child, group, complete, window, point_weight, now):
    """Return the buffer with the point taken by all runs of ``p``, which are merged by first time."""
    node = buffer.node
    start = node[p, RUNS_START]
    skipped = max(now - window + 1 - node[p, FIRST_LOW], 0)
    stop = start + min(node[p, RUNS_COUNT], now - node[p, FIRST_LOW])
    first = start + skipped
    while first < stop and buffer.run_weight[first] == 0.0:
        first += 1
    if first >= stop:
        return buffer
    if complete:
        total = 0.0
        for r in range(first, stop):
            if buffer.run_weight[r] > 0.0:
                total += max(buffer.run_weight[r] * point_weight, TINY)
        _complete(buffer, child, total, buffer.run_time[first, 0], now)
        return buffer
    last = stop - 1
    while buffer.run_weight[last] == 0.0:
        last -= 1
    _wake(buffer, heads, child, group)
    node[child, EXPIRES] = max(node[child, EXPIRES], buffer.run_time[last, 0] + window - 1)
    if node[child, RUNS_ROOM] == 0:
        buffer = _by_first_time(buffer, child)
        node = buffer.node
    shift = node[child, RUNS_START] + node[p, FIRST_LOW] - node[child, FIRST_LOW] - start
    weights = buffer.run_weight
    for r in range(first, last + 1):
        if weights[r] > 0.0:
            weights[r + shift] += max(weights[r] * point_weight, TINY)
    return buffer


@njit(cache=True, nogil=True, error_model="numpy")
def _take_weighed(
    candidates, buffer, heads, scratch, p, c, child, group, complete, window, point_weight, now, times,
    included, merging,
):  # fmt: skip
    """Return the buffer with the point taken by the runs of ``p``, each weighed by its gap.

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
        scratch.weight[: node[p, FIRST_COUNT]] = 0.0
    elif not complete:
        # Before the runs are gone through: they may move.
        taken = 0
        for r in range(start, stop):
            taken += buffer.run_time[r, 0] > now - window
        if taken == 0:
            return buffer
        _wake(buffer, heads, child, group)
        buffer = _with_room(buffer, child, taken)
        node = buffer.node
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
        return buffer
    if complete:
        _complete(buffer, child, total, first, now)
        return buffer
    node[child, EXPIRES] = max(node[child, EXPIRES], latest + window - 1)
    if summed:
        _wake(buffer, heads, child, group)
        buffer = _with_room(buffer, child, latest - first + 1)
        for t in range(first, latest + 1):
            if scratch.weight[t - low] > 0.0:
                _add_run(buffer, child, t, now, scratch.weight[t - low])
    return buffer


@njit(cache=True, nogil=True, error_model="numpy")
def match_points(
    time, candidate, candidates, buffer, heads, edge_first, edges, accepting, window, programs, scratch,
    next_match, merging, nelt,
):  # fmt: skip
    """Feed point events to the automaton.

    Parameters
    ----------
    time, candidate : (m,) int64
        In the order of :class:`pointbased.expansion.PointEvents`, and behind all points fed before.
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
    Buffer
        With the runs and complete matches that the points made. The components of a tick go from the last
        to the first, so no point meets a run that ends at its own tick.
    """
    row = candidates.row
    by_first = merging and not next_match
    i = 0
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
        for e in range(edge_first[component], edge_first[component + 1]):
            edge = edges[e]
            source = edge[0]
            target = edge[1]
            if source == 0:
                for k in range(i, stop):
                    buffer = _begin(
                        candidates, buffer, heads, candidate[k], target, accepting, window, by_first, now
                    )
                continue
            previous = NONE
            p = heads[partition * accepting + source]
            while p != NONE:
                later = buffer.node[p, LATER]
                if buffer.node[p, EXPIRES] < now:
                    if previous == NONE:
                        heads[partition * accepting + source] = later
                    else:
                        buffer.node[previous, LATER] = later
                    p = later
                    continue
                known = buffer.counts[NODES]
                times = 0
                if next_match:
                    times = gap_survival(
                        candidates, buffer, p, now, scratch.row_time, scratch.product, scratch.spoiled
                    )
                for k in range(i, stop):
                    c = candidate[k]
                    buffer = grown(buffer, 1, 0)
                    child = _child(
                        candidates, buffer, programs, scratch, p, c, edge, window, next_match, nelt
                    )
                    if child == REFUSED:
                        continue
                    weight = probability(candidates, c, now)
                    group = partition * accepting + target
                    complete = target == accepting
                    if by_first:
                        buffer = _take_plain(buffer, heads, p, child, group, complete, window, weight, now)
                    else:
                        buffer = _take_weighed(
                            candidates, buffer, heads, scratch, p, c, child, group, complete, window,
                            weight, now, times, child < known, merging,
                        )  # fmt: skip
                previous = p
                p = later
        i = stop
    return buffer
