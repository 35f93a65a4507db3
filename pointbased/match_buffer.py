"""The arrays in which candidates, runs and the shared match buffer live, how they grow, and their prefixes.

The match buffer is a tree of prefixes. A node stands for an event taken after the prefix of its parent,
so every run is at one node, all runs with that prefix share it, and a match is read off by following
parents. NFA^b (SIGMOD 2008, section 5.1) shares one stack element among all runs that took the event and
tells their pointers apart by Dewey version numbers; here a node has one parent, as the output nodes of the
tECS of CORE (Bucchi et al., PVLDB 15(9), 2022), and no pointer needs a version. What the tree shares less,
an event taken after several prefixes, has to be apart anyway: each of these prefixes is the beginning of
signatures with confidences of their own. The tree is also the index that NELT asks for (Zhang et al.,
appendix B.3): the runs that depend on an event's NELT are those at its node.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pointbased.columns as col
from confidence.config import EVER, NEVER
from confidence.kernel import kernel
from confidence.pools import grown
from confidence.predicates.conditions import accumulate, all_hold
from pointbased.columns import NONE, REFUSED
from pointbased.config import LEAST_ROWS

__all__ = [
    "Buffer",
    "StoredCandidates",
    "child_of",
    "insert",
    "new_buffer",
    "new_child",
    "proceeds",
    "recall",
    "refuses",
    "table_full",
    "with_room",
]

UNASKED: Final = 0
YES: Final = 1
NO: Final = 2

# Odd and below 2**32: products with numbers of rows stay within int64.
_HASH_PARENT: Final = 0x9E3779B1
_HASH_CANDIDATE: Final = 0x85EBCA77

_TABLE_LOAD: Final = 2
"""The hash table has at least this many rows for each entry."""


class StoredCandidates(NamedTuple):
    """Events that a component can take, and witnesses: those that only are forbidden in gaps.

    Attributes
    ----------
    row : (n, 10) int64
        By :mod:`pointbased.columns`; times in ticks.
    group : (n, p) int64
        For each pool of witnesses the group of those that are forbidden in the matches of a candidate; -1:
        none.
    pmf, head, tail : (m,) float64
        See :class:`confidence.pools.PmfPool`.
    """

    row: Any
    group: Any
    pmf: Any
    head: Any
    tail: Any


class Buffer(NamedTuple):
    """Runs and the prefixes they share.

    Attributes
    ----------
    counts : (5,) int64, node : (n, 20) int64
        By :mod:`pointbased.columns`; times in ticks.
    confidence : (n,) float64
        Of a complete match.
    run_time : (r, 2) int64
        Time of the first and of the last event of a run, ticks: its computation state.
    run_weight : (r,) float64
        Probability of the point events, times that of nothing forbidden having happened between them.
    table : (t, 3) int64
        Open addressing: parent, candidate, and the child or ``REFUSED``; parent -1 where empty. t is a power
        of 2.
    heads : (partitions * states,) int64
        First node of each partition and state that points are tried on, or -1. A node comes before those
        that it was reached from, so that no point meets a run that has just taken another of its tick.
    """

    counts: Any
    node: Any
    confidence: Any
    run_time: Any
    run_weight: Any
    table: Any
    heads: Any


def new_buffer(nodes: int, runs: int, heads: NDArray[np.int64]) -> Buffer:
    """Return an empty buffer with room for so many nodes, each with a table entry, and runs."""
    nodes, runs = max(nodes, LEAST_ROWS), max(runs, LEAST_ROWS)
    counts = np.zeros(col.COUNTS, dtype=np.int64)
    counts[col.COMPLETE] = NONE
    entries = 1 << (_TABLE_LOAD * nodes - 1).bit_length()
    return Buffer(
        counts=counts,
        node=np.empty((nodes, col.NODE_COLUMNS), dtype=np.int64),
        confidence=np.empty(nodes),
        run_time=np.empty((runs, 2), dtype=np.int64),
        run_weight=np.empty(runs),
        table=np.full((entries, 3), NONE, dtype=np.int64),
        heads=heads,
    )


def with_room(buffer: Buffer, runs: int) -> Buffer:
    """Return the buffer with room for at least one more node and entry and so many more runs.

    Pools double, so what has been copied at the end is proportional to what was put in.
    """
    nodes, runs = int(buffer.counts[col.NODES]) + 1, int(buffer.counts[col.RUNS]) + runs
    table = buffer.table
    if table_full(buffer.counts, table):
        table = np.full((2 * len(table), 3), NONE, dtype=np.int64)
        _copy_entries(buffer.table, table)
    return buffer._replace(
        node=grown(buffer.node, nodes, axis=0),
        confidence=grown(buffer.confidence, nodes),
        run_time=grown(buffer.run_time, runs, axis=0),
        run_weight=grown(buffer.run_weight, runs),
        table=table,
    )


@kernel
def _index_of(table, parent, candidate):
    """Return where an entry is, or the free index where it belongs. O(1) expected."""
    mask = table.shape[0] - 1
    mixed = parent * _HASH_PARENT + candidate * _HASH_CANDIDATE
    at = (mixed ^ (mixed >> 21)) & mask
    while table[at, 0] != NONE and (table[at, 0] != parent or table[at, 1] != candidate):
        at = (at + 1) & mask
    return at


@kernel
def insert(buffer, parent, candidate, child):
    """Enter what became of a node and a candidate into the table, which has room.

    Parameters
    ----------
    buffer : Buffer
    parent, candidate : int64
        A node and a row.
    child : int64
        A node or ``REFUSED``.
    """
    at = _index_of(buffer.table, parent, candidate)
    buffer.table[at, 0] = parent
    buffer.table[at, 1] = candidate
    buffer.table[at, 2] = child
    buffer.counts[col.ENTRIES] += 1


@kernel
def table_full(counts, table):
    """Return whether an entry more would make the table too dense.

    Parameters
    ----------
    counts : (5,) int64, table : (t, 3) int64
        See :class:`Buffer`.
    """
    return _TABLE_LOAD * (counts[col.ENTRIES] + 1) > table.shape[0]


@kernel
def _copy_entries(table, larger):
    for i in range(table.shape[0]):
        if table[i, 0] != NONE:
            at = _index_of(larger, table[i, 0], table[i, 1])
            for k in range(3):
                larger[at, k] = table[i, k]


@kernel
def recall(candidates, buffer, conditions, work, p):
    """Put the events of a prefix where conditions read them; return their number. O(events * aggregates).

    Parameters
    ----------
    candidates : StoredCandidates
    buffer : Buffer
    conditions : Conditions
    work : confidence.predicates.conditions.Scratch
    p : int64
        The node of the prefix; -1: it has no events.
    """
    if p == NONE:
        return 0
    row = candidates.row
    node = buffer.node
    size = node[p, col.DEPTH] + 1
    n = p
    for d in range(size - 1, -1, -1):
        work.element[d] = node[n, col.TAKEN]
        n = node[n, col.PARENT]
    previous = NONE
    for d in range(size):
        component = row[work.element[d], col.COMPONENT]
        if component != previous:
            work.start[component] = d
            previous = component
        work.stop[component] = d + 1
        accumulate(conditions, work, component, d)
    return size


@kernel
def refuses(candidates, buffer, conditions, work, p, c, taking, begin, end):
    """Return whether a prefix has the event already, or the formula of the move does not hold.

    Parameters
    ----------
    candidates, buffer, conditions, work, p
        See :func:`recall`; ``work`` has room for an event more than the prefix has.
    c : int64
        The candidate.
    taking : bool
        Whether the move is a TAKE.
    begin, end : int64
        The conditions of its formula.
    """
    row = candidates.row
    node = buffer.node
    n = p
    while n != NONE:
        if row[node[n, col.TAKEN], col.EVENT] == row[c, col.EVENT]:
            return True
        n = node[n, col.PARENT]
    if begin == end:
        return False
    size = recall(candidates, buffer, conditions, work, p)
    component = row[c, col.COMPONENT]
    work.element[size] = c
    if not taking:
        work.start[component] = size
    work.stop[component] = size + 1
    return not all_hold(conditions, work, begin, end, component)


@kernel
def proceeds(candidates, buffer, conditions, work, p, begin, end):
    """Return whether the component of a prefix's last event may be left.

    Parameters
    ----------
    candidates, buffer, conditions, work, p
        See :func:`recall`.
    begin, end : int64
        The conditions of its PROCEED.
    """
    node = buffer.node
    if node[p, col.PROCEEDS] == UNASKED:
        recall(candidates, buffer, conditions, work, p)
        node[p, col.PROCEEDS] = YES if all_hold(conditions, work, begin, end, -1) else NO
    return node[p, col.PROCEEDS] == YES


@kernel
def _add_node(buffer, p, c, moves, e, first_low, first_high, expires):
    """Append a node without runs; the buffer has room."""
    n = buffer.counts[col.NODES]
    buffer.counts[col.NODES] = n + 1
    node = buffer.node
    node[n, col.PARENT] = p
    node[n, col.TAKEN] = c
    node[n, col.STATE] = moves[e, col.TARGET]
    node[n, col.EXPIRES] = expires
    node[n, col.LATER] = NONE
    node[n, col.CHILD] = NONE
    node[n, col.SIBLING] = NONE
    node[n, col.RUNS_START] = 0
    node[n, col.RUNS_COUNT] = 0
    node[n, col.RUNS_ROOM] = 0
    node[n, col.FIRST_LOW] = first_low
    node[n, col.FIRST_COUNT] = max(first_high - first_low + 1, 0)
    node[n, col.MIXED] = 0
    node[n, col.DEPTH] = 0 if p == NONE else node[p, col.DEPTH] + 1
    node[n, col.LAST_TAKE] = EVER if moves[e, col.TAKES_ON] else NEVER
    node[n, col.LAST_BEGIN] = EVER if moves[e, col.BEGINS_ON] else NEVER
    node[n, col.PROCEEDS] = UNASKED
    node[n, col.NEXT_COMPLETE] = NONE
    buffer.confidence[n] = 0.0
    return n


@kernel
def child_of(candidates, buffer, p, c):
    """Return the child of a prefix that takes a candidate, ``REFUSED``, or -1 if it was not asked.

    Parameters
    ----------
    candidates : StoredCandidates
    buffer : Buffer
    p, c : int64
        The node of the prefix, -1 for none, and the candidate.
    """
    if p == NONE:
        return candidates.row[c, col.ROOT]
    return buffer.table[_index_of(buffer.table, p, c), 2]


@kernel
def new_child(candidates, buffer, p, c, refused, rules, e):
    """Return the child of a prefix that takes a candidate from now on, or ``REFUSED``.

    Parameters
    ----------
    candidates, buffer, p, c
        See :func:`child_of`; the buffer has room for a node and an entry.
    refused : bool
        Whether the prefix cannot take it.
    rules : pointbased.automaton.Rules
    e : int64
        The move.
    """
    row = candidates.row
    if p == NONE:
        row[c, col.ROOT] = REFUSED
        if not refused:
            row[c, col.ROOT] = _add_node(
                buffer, p, c, rules.moves, e, row[c, col.LOWER], row[c, col.UPPER], row[c, col.UPPER]
            )
        return row[c, col.ROOT]
    if refused:
        insert(buffer, p, c, REFUSED)
        return REFUSED
    moves = rules.moves
    node = buffer.node
    low = max(node[p, col.FIRST_LOW], row[c, col.LOWER] - rules.window + 1)
    high = min(node[p, col.FIRST_LOW] + node[p, col.FIRST_COUNT] - 1, row[c, col.UPPER] - 1)
    child = _add_node(buffer, p, c, rules.moves, e, low, high, row[c, col.UPPER])
    insert(buffer, p, c, child)
    if rules.next_match:
        node[child, col.SIBLING] = node[p, col.CHILD]
        node[p, col.CHILD] = child
        node[p, col.MIXED] |= row[c, col.SHARED]
        if rules.nelt and row[c, col.LOWER] > row[node[p, col.TAKEN], col.UPPER]:
            last = col.LAST_TAKE if moves[e, col.TAKING] else col.LAST_BEGIN
            node[p, last] = min(node[p, last], row[c, col.UPPER])
            node[p, col.EXPIRES] = min(
                node[p, col.EXPIRES], max(node[p, col.LAST_TAKE], node[p, col.LAST_BEGIN])
            )
    return child
