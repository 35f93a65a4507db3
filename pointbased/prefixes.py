"""The prefixes that events are taken after: nodes of the shared match buffer, one for each that is tried."""

from __future__ import annotations

from numba import njit

from confidence.programs import holds
from pointbased.pools import (
    CHILD,
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
    REFUSED,
    ROOT,
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
)

__all__ = ["child_of"]


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
def child_of(
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
