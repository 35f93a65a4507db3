"""Compaction: what no point can reach any more is dropped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import pointbased.columns as col
from confidence.kernel import kernel
from pointbased.automaton import Automaton
from pointbased.columns import NONE, REFUSED
from pointbased.match_buffer import Buffer, StoredCandidates, insert, new_buffer

__all__ = ["compact"]

Int64 = NDArray[np.int64]

_DROPPED = 0
_REMEMBERED = 1
_HELD = 2
_ACTIVE = 3


@kernel
def _mark(candidates, count, buffer, components, window, safe, remember, mark, moved, number):
    """Write what stays, and to which row it moves (-1: none); return how many nodes and runs that is.

    A node is dropped, remembered, held with all nodes before it, or active: points are tried on it. What
    could have been taken after a prefix is forbidden in the gap behind it: under skip till next the children
    of a node that is held are remembered. Candidates stay that have points to come, or are at a node that
    stays, and witnesses in reach of the window of the matches to come.
    """
    node = buffer.node
    row = candidates.row
    nodes = mark.shape[0]
    for n in range(nodes):
        mark[n] = _DROPPED
    n = buffer.counts[col.COMPLETE]
    while n != NONE:
        mark[n] = _HELD
        n = node[n, col.NEXT_COMPLETE]
    for n in range(nodes - 1, -1, -1):
        last = min(node[n, col.EXPIRES], row[node[n, col.TAKEN], col.LIMIT])
        if node[n, col.RUNS_ROOM] > 0 and last >= safe:
            mark[n] = _ACTIVE
        parent = node[n, col.PARENT]
        if mark[n] >= _HELD and parent != NONE:
            mark[parent] = max(mark[parent], _HELD)
    for c in range(count):
        number[c] = 0 if row[c, col.UNSEEN] <= row[c, col.UPPER] else NONE
    first = safe
    kept = 0
    runs = 0
    for n in range(nodes):
        parent = node[n, col.PARENT]
        if remember and mark[n] == _DROPPED and parent != NONE and mark[parent] >= _HELD:
            mark[n] = _REMEMBERED
        moved[n] = NONE
        if mark[n] != _DROPPED:
            moved[n] = kept
            kept += 1
            number[node[n, col.TAKEN]] = 0
            first = min(first, row[node[n, col.TAKEN], col.LOWER])
        if mark[n] == _ACTIVE:
            runs += node[n, col.RUNS_COUNT] + 1
    rank = 0
    for c in range(count):
        if row[c, col.COMPONENT] >= components and row[c, col.UPPER] > first - window:
            number[c] = 0
        if number[c] == 0:
            number[c] = rank
            rank += 1
    return kept, runs


@kernel
def _move_node(buffer, fresh, n, group, mark, moved, number, remember):
    """Append a node that stays to the fresh buffer; those before it have been."""
    old = buffer.node
    node = fresh.node
    m = moved[n]
    fresh.counts[col.NODES] = m + 1
    for k in range(old.shape[1]):
        node[m, k] = old[n, k]
    fresh.confidence[m] = buffer.confidence[n]
    parent = NONE if old[n, col.PARENT] == NONE else moved[old[n, col.PARENT]]
    node[m, col.PARENT] = parent
    node[m, col.TAKEN] = number[old[n, col.TAKEN]]
    node[m, col.LATER] = NONE
    node[m, col.CHILD] = NONE
    node[m, col.SIBLING] = NONE
    node[m, col.NEXT_COMPLETE] = NONE
    if remember and parent != NONE:
        node[m, col.SIBLING] = node[parent, col.CHILD]
        node[parent, col.CHILD] = m
    start = fresh.counts[col.RUNS]
    node[m, col.RUNS_START] = start
    if mark[n] < _ACTIVE:
        node[m, col.RUNS_COUNT] = 0
        node[m, col.RUNS_ROOM] = 0
        return
    # No room at all would say that points are not tried on the node.
    node[m, col.RUNS_ROOM] = old[n, col.RUNS_COUNT] + 1
    fresh.counts[col.RUNS] = start + node[m, col.RUNS_ROOM]
    for r in range(old[n, col.RUNS_COUNT]):
        fresh.run_time[start + r, 0] = buffer.run_time[old[n, col.RUNS_START] + r, 0]
        fresh.run_time[start + r, 1] = buffer.run_time[old[n, col.RUNS_START] + r, 1]
        fresh.run_weight[start + r] = buffer.run_weight[old[n, col.RUNS_START] + r]
    node[m, col.LATER] = fresh.heads[group]
    fresh.heads[group] = m


@kernel
def _move(candidates, buffer, fresh, states, safe, remember, mark, moved, number):
    """Fill the fresh buffer, and move the candidates to their new rows."""
    old = buffer.node
    row = candidates.row
    nodes = mark.shape[0]
    for n in range(nodes):
        fresh.heads[row[old[n, col.TAKEN], col.PARTITION] * states + old[n, col.STATE]] = NONE
    for n in range(nodes):
        if moved[n] != NONE:
            group = row[old[n, col.TAKEN], col.PARTITION] * states + old[n, col.STATE]
            _move_node(buffer, fresh, n, group, mark, moved, number, remember)
    n = buffer.counts[col.COMPLETE]
    while n != NONE:
        fresh.node[moved[n], col.NEXT_COMPLETE] = fresh.counts[col.COMPLETE]
        fresh.counts[col.COMPLETE] = moved[n]
        fresh.counts[col.COMPLETES] += 1
        n = old[n, col.NEXT_COMPLETE]
    for i in range(buffer.table.shape[0]):
        parent = buffer.table[i, 0]
        if parent == NONE or mark[parent] < _ACTIVE:
            continue
        c = buffer.table[i, 1]
        child = buffer.table[i, 2]
        if row[c, col.UPPER] < safe:
            continue
        if child == REFUSED:
            # A candidate without points to come that no node took is gone.
            if number[c] != NONE:
                insert(fresh, moved[parent], number[c], REFUSED)
        elif moved[child] != NONE:
            insert(fresh, moved[parent], number[c], moved[child])
    for c in range(number.shape[0]):
        if number[c] != NONE:
            root = row[c, col.ROOT]
            for k in range(row.shape[1]):
                row[number[c], k] = row[c, k]
            row[number[c], col.ROOT] = root if root < 0 else moved[root]


def compact(
    candidates: StoredCandidates, count: int, buffer: Buffer, automaton: Automaton, safe: int
) -> tuple[Int64, Buffer]:
    """Drop the nodes, runs, table entries and candidates that are out of reach, and close the ranks.

    All points before the tick ``safe`` have been fed. Returns the new row of each candidate, (count,) int64,
    ascending, or -1, and a buffer with room for as much again; the rows of ``candidates`` have been moved.
    """
    mark = np.empty(int(buffer.counts[col.NODES]), dtype=np.int8)
    moved = np.empty(len(mark), dtype=np.int64)
    number = np.empty(count, dtype=np.int64)
    # What could have been taken is forbidden.
    remember = automaton.next_match
    kept, runs = _mark(
        candidates, count, buffer, automaton.components, automaton.window, safe, remember, mark, moved, number
    )
    fresh = new_buffer(2 * max(kept, int(buffer.counts[col.ENTRIES])), 2 * runs, buffer.heads)
    _move(candidates, buffer, fresh, automaton.accepting + 1, safe, remember, mark, moved, number)
    return number, fresh
