"""Letting go of what no point can reach any more."""

from __future__ import annotations

import numpy as np
from numba import njit

from pointbased.config import LEAST_ROWS, TABLE_LOAD
from pointbased.pools import (
    CHILD,
    COMPLETE,
    EXPIRES,
    LATER,
    NODES,
    NONE,
    PARENT,
    PARTITION,
    REFUSED,
    ROOT,
    RUNS,
    RUNS_COUNT,
    RUNS_ROOM,
    RUNS_START,
    SIBLING,
    STATE,
    TAKEN,
    UNSEEN,
    UPPER,
    Buffer,
    grown,
    insert,
)

__all__ = ["compact"]

_DROPPED = 0
_REMEMBERED = 1
_HELD = 2


@njit(cache=True, nogil=True, error_model="numpy")
def _marks(candidates, buffer, safe, remember):
    """Return which nodes are held, with all before them, and which are remembered as children of those.

    What could have been taken after a prefix is forbidden in the gap behind it: under skip till next the
    children of a held node are remembered.
    """
    node = buffer.node
    count = buffer.counts[NODES]
    mark = np.zeros(count, np.int8)
    n = buffer.counts[COMPLETE]
    while n != NONE:
        mark[n] = _HELD
        n = node[n, LATER]
    for n in range(count - 1, -1, -1):
        if node[n, RUNS_ROOM] > 0 and node[n, EXPIRES] >= safe:
            mark[n] = _HELD
        if mark[n] == _HELD and node[n, PARENT] != NONE:
            mark[node[n, PARENT]] = _HELD
    if remember:
        for n in range(count):
            parent = node[n, PARENT]
            if mark[n] == _DROPPED and parent != NONE and mark[parent] == _HELD:
                mark[n] = _REMEMBERED
    return mark


@njit(cache=True, nogil=True, error_model="numpy")
def _kept_candidates(candidates, count, buffer, mark):
    """Return the new number of each candidate, or -1: with points to come, or at a node that stays."""
    row = candidates.row
    number = np.full(count, NONE, np.int64)
    for n in range(mark.shape[0]):
        if mark[n] != _DROPPED:
            number[buffer.node[n, TAKEN]] = 0
    kept = 0
    for c in range(count):
        if number[c] == 0 or row[c, UNSEEN] <= row[c, UPPER]:
            number[c] = kept
            kept += 1
    return number


@njit(cache=True, nogil=True, error_model="numpy")
def _room_for(nodes, runs, buffer):
    """Return an empty buffer with room for twice as much."""
    counts = np.zeros_like(buffer.counts)
    counts[COMPLETE] = NONE
    size = max(2 * nodes, LEAST_ROWS)
    room = max(2 * runs, LEAST_ROWS)
    return Buffer(
        counts,
        np.empty((size, buffer.node.shape[1]), np.int64),
        np.empty(size, np.float64),
        np.empty((room, 2), np.int64),
        np.empty(room, np.float64),
        np.full((TABLE_LOAD * LEAST_ROWS, 3), NONE, np.int64),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _move_node(candidates, buffer, fresh, heads, n, moved, number, accepting, active, remember):
    """Append a node that stays to the fresh buffer; those before it have been."""
    old = buffer.node
    node = fresh.node
    m = moved[n]
    node[m] = old[n]
    fresh.counts[NODES] = m + 1
    fresh.confidence[m] = buffer.confidence[n]
    node[m, TAKEN] = number[old[n, TAKEN]]
    node[m, LATER] = NONE
    node[m, CHILD] = NONE
    node[m, SIBLING] = NONE
    parent = NONE if old[n, PARENT] == NONE else moved[old[n, PARENT]]
    node[m, PARENT] = parent
    if remember and parent != NONE:
        node[m, SIBLING] = node[parent, CHILD]
        node[parent, CHILD] = m
    start = fresh.counts[RUNS]
    count = old[n, RUNS_COUNT] if active else 0
    node[m, RUNS_START] = start
    node[m, RUNS_COUNT] = count
    # No room would say that the node is not among those that points are tried on.
    room = max(count, 1) if active else 0
    node[m, RUNS_ROOM] = room
    for r in range(count):
        fresh.run_time[start + r] = buffer.run_time[old[n, RUNS_START] + r]
        fresh.run_weight[start + r] = buffer.run_weight[old[n, RUNS_START] + r]
    fresh.counts[RUNS] = start + room
    if active:
        group = candidates.row[old[n, TAKEN], PARTITION] * accepting + old[n, STATE]
        node[m, LATER] = heads[group]
        heads[group] = m


@njit(cache=True, nogil=True, error_model="numpy")
def compact(candidates, count, buffer, heads, accepting, safe, remember):
    """Drop the nodes, runs, table entries and candidates that are out of reach, and close the ranks.

    Parameters
    ----------
    candidates : Candidates
    count : int64
        Candidates in use.
    buffer : Buffer
        Whose points before ``safe`` have all been fed.
    heads : (partitions * states,) int64
        Written anew.
    accepting : int64
    safe : int64
    remember : bool
        Whether children of what stays are needed, as under skip till next.

    Returns
    -------
    number : (count,) int64
        New row of each candidate, ascending, or -1; the rows of ``candidates`` have been moved there.
    buffer : Buffer
        With pools that have room for as much again.
    """
    old = buffer.node
    row = candidates.row
    nodes = buffer.counts[NODES]
    mark = _marks(candidates, buffer, safe, remember)
    number = _kept_candidates(candidates, count, buffer, mark)
    moved = np.full(nodes, NONE, np.int64)
    active = np.zeros(nodes, np.bool_)
    kept = 0
    runs = 0
    for n in range(nodes):
        if old[n, STATE] < accepting:
            heads[row[old[n, TAKEN], PARTITION] * accepting + old[n, STATE]] = NONE
        if mark[n] != _DROPPED:
            moved[n] = kept
            kept += 1
            active[n] = old[n, RUNS_ROOM] > 0 and old[n, EXPIRES] >= safe
            if active[n]:
                runs += max(old[n, RUNS_COUNT], 1)
    fresh = _room_for(kept, runs, buffer)
    for n in range(nodes):
        if moved[n] != NONE:
            _move_node(candidates, buffer, fresh, heads, n, moved, number, accepting, active[n], remember)
    n = buffer.counts[COMPLETE]
    while n != NONE:
        fresh.node[moved[n], LATER] = fresh.counts[COMPLETE]
        fresh.counts[COMPLETE] = moved[n]
        n = old[n, LATER]
    for i in range(buffer.table.shape[0]):
        parent = buffer.table[i, 0]
        if parent == NONE or not active[parent]:
            continue
        c = buffer.table[i, 1]
        child = buffer.table[i, 2]
        if row[c, UPPER] >= safe and (child == REFUSED or moved[child] != NONE):
            fresh = grown(fresh, 1, 0)
            insert(fresh, moved[parent], number[c], REFUSED if child == REFUSED else moved[child])
    for c in range(count):
        if number[c] != NONE:
            root = row[c, ROOT]
            row[number[c]] = row[c]
            row[number[c], ROOT] = NONE if root == NONE else moved[root]
    return number, fresh
