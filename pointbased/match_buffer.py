"""The arrays in which candidates, runs and the shared match buffer live, and how they grow.

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

from confidence.kernel import kernel
from pointbased.config import LEAST_ROWS, TABLE_LOAD

__all__ = ["Buffer", "Candidates", "find", "insert", "longer", "new_buffer", "table_full", "with_room"]

# Columns of a candidate.
COMPONENT: Final = 0
PARTITION: Final = 1
LOWER: Final = 2
UPPER: Final = 3
EVENT: Final = 4
PMF: Final = 5
SHARED: Final = 6
ROOT: Final = 7
UNSEEN: Final = 8
LIMIT: Final = 9
CANDIDATE_COLUMNS: Final = 10

# Columns of a node.
PARENT: Final = 0
TAKEN: Final = 1
STATE: Final = 2
EXPIRES: Final = 3
LATER: Final = 4
CHILD: Final = 5
SIBLING: Final = 6
RUNS_START: Final = 7
RUNS_COUNT: Final = 8
RUNS_ROOM: Final = 9
FIRST_LOW: Final = 10
FIRST_COUNT: Final = 11
RANGE_LOW: Final = 12
RANGE_HIGH: Final = 13
MIXED: Final = 14
DEPTH: Final = 15
LAST_TAKE: Final = 16
LAST_BEGIN: Final = 17
PROCEEDS: Final = 18
NEXT_COMPLETE: Final = 19
NODE_COLUMNS: Final = 20

# Numbers in use.
NODES: Final = 0
RUNS: Final = 1
ENTRIES: Final = 2
COMPLETE: Final = 3
COMPLETES: Final = 4
COUNTS: Final = 5

NONE: Final = -1
REFUSED: Final = -2
EVER: Final = 2**63 - 1
NEVER: Final = -(2**63)
# Odd and below 2**32: products with numbers of rows stay within int64.
_HASH_PARENT: Final = 0x9E3779B1
_HASH_CANDIDATE: Final = 0x85EBCA77


class Candidates(NamedTuple):
    """Events that a component can take, and witnesses: those that only are forbidden in gaps.

    Attributes
    ----------
    row : (n, 10) int64
        Component, partition, lower, upper, event, place in the pmf arrays or -1, whether the event is a
        candidate of other components too, its node as the first event of a match, -1 or ``REFUSED``, the
        first tick not expanded yet, and under contiguity the last tick of an event that can follow directly.
        A witness has the number of its pool behind the components, and its group for a partition.
    group : (n, p) int64
        For each pool of witnesses the group of those that are forbidden in the matches of a candidate; -1:
        none.
    pmf, below, above : (m,) float64
        Of the explicit probabilities: each by itself, summed up to its tick and from its tick on. Sums from
        both ends spare a difference that would cancel.
    """

    row: Any
    group: Any
    pmf: Any
    below: Any
    above: Any


class Buffer(NamedTuple):
    """Runs and the prefixes they share.

    Attributes
    ----------
    counts : (5,) int64
        Nodes, runs and table entries in use; the first complete match not released yet, and their number.
    node : (n, 20) int64
        Parent, candidate taken, state, last tick at which an event can be taken after it, next node of the
        same state and partition, first child, next child of the same parent, where its runs are, how many
        there are and how much room, first tick and number of ticks for the first event's time, range of a
        complete match, whether a child's event is a candidate of several components, events before its own,
        last ticks at which a further event of its component and one of the next can be taken, whether the
        component may be left (0: not asked yet, else 1 or 2 for no), and the next complete match.
    confidence : (n,) float64
        Of a complete match.
    run_time : (r, 2) int64
        Time of the first and of the last event of a run: its computation state.
    run_weight : (r,) float64
        Probability of the point events, times that of nothing forbidden having happened between them.
    table : (t, 3) int64
        Open addressing: parent, candidate, and the child or ``REFUSED``; parent -1 where empty. t is a power
        of 2.
    """

    counts: Any
    node: Any
    confidence: Any
    run_time: Any
    run_weight: Any
    table: Any


def new_buffer(nodes: int, runs: int) -> Buffer:
    """Return an empty buffer with room for so many nodes, each with a table entry, and runs."""
    counts = np.zeros(COUNTS, dtype=np.int64)
    counts[COMPLETE] = NONE
    places = 1 << (TABLE_LOAD * max(nodes, LEAST_ROWS) - 1).bit_length()
    return Buffer(
        counts,
        np.empty((max(nodes, LEAST_ROWS), NODE_COLUMNS), dtype=np.int64),
        np.empty(max(nodes, LEAST_ROWS)),
        np.empty((max(runs, LEAST_ROWS), 2), dtype=np.int64),
        np.empty(max(runs, LEAST_ROWS)),
        np.full((places, 3), NONE, dtype=np.int64),
    )


def with_room(buffer: Buffer, runs: int) -> Buffer:
    """Return the buffer with room for at least one more node and entry and so many more runs.

    Pools double, so what has been copied at the end is proportional to what was put in.
    """
    counts, node, confidence, run_time, run_weight, table = buffer
    if counts[NODES] == len(node):
        node, confidence = (
            longer(node, counts[NODES], 2 * len(node)),
            longer(confidence, counts[NODES], 2 * len(node)),
        )
    if counts[RUNS] + runs > len(run_weight):
        room = max(2 * len(run_weight), int(counts[RUNS]) + runs)
        run_time, run_weight = longer(run_time, counts[RUNS], room), longer(run_weight, counts[RUNS], room)
    if table_full(counts, table):
        larger = np.full((2 * len(table), 3), NONE, dtype=np.int64)
        _copy_entries(table, larger)
        table = larger
    return Buffer(counts, node, confidence, run_time, run_weight, table)


def longer(array: NDArray[Any], used: int, room: int) -> NDArray[Any]:
    """Return an array with room for so many rows, and the first ones of another in it."""
    result = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    result[:used] = array[:used]
    return result


@kernel
def place_of(table, parent, candidate):
    """Return where an entry is, or the free place where it belongs. O(1) expected."""
    mask = table.shape[0] - 1
    mixed = parent * _HASH_PARENT + candidate * _HASH_CANDIDATE
    place = (mixed ^ (mixed >> 21)) & mask
    while table[place, 0] != NONE and (table[place, 0] != parent or table[place, 1] != candidate):
        place = (place + 1) & mask
    return place


@kernel
def find(table, parent, candidate):
    """Return the child of a node that takes a candidate, ``REFUSED``, or ``NONE`` if it was not asked."""
    return table[place_of(table, parent, candidate), 2]


@kernel
def insert(buffer, parent, candidate, child):
    """Enter what became of a node and a candidate into the table, which has room."""
    place = place_of(buffer.table, parent, candidate)
    buffer.table[place, 0] = parent
    buffer.table[place, 1] = candidate
    buffer.table[place, 2] = child
    buffer.counts[ENTRIES] += 1


@kernel
def table_full(counts, table):
    """Return whether an entry more would make the table too dense."""
    return TABLE_LOAD * (counts[ENTRIES] + 1) > table.shape[0]


@kernel
def _copy_entries(table, larger):
    for i in range(table.shape[0]):
        if table[i, 0] != NONE:
            place = place_of(larger, table[i, 0], table[i, 1])
            for k in range(3):
                larger[place, k] = table[i, k]
