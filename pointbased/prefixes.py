"""The prefixes that events are taken after: nodes of the shared match buffer, one for each that is tried."""

from __future__ import annotations

from typing import Final

from numba import njit

from confidence.conditions import accumulate, all_hold
from pointbased.automaton import BEGINS_ON, FORMULA, FORMULA_END, TAKES_ON, TAKING, TARGET
from pointbased.pools import (
    CHILD,
    COMPONENT,
    DEPTH,
    EVENT,
    EVER,
    EXPIRES,
    FIRST_COUNT,
    FIRST_LOW,
    LAST_BEGIN,
    LAST_TAKE,
    LATER,
    LOWER,
    MIXED,
    NEVER,
    NEXT_COMPLETE,
    NODES,
    NONE,
    PARENT,
    PROCEEDS,
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

__all__ = ["child_of", "proceeds", "recall"]

UNASKED: Final = 0
YES: Final = 1
NO: Final = 2


@njit(cache=True, nogil=True, error_model="numpy")
def recall(candidates, buffer, conditions, work, p):
    """Put the events of a prefix where conditions read them; return their number, 0 for none (-1).

    O(events * aggregates).
    """
    if p == NONE:
        return 0
    row = candidates.row
    node = buffer.node
    size = node[p, DEPTH] + 1
    n = p
    for d in range(size - 1, -1, -1):
        work.element[d] = node[n, TAKEN]
        n = node[n, PARENT]
    previous = NONE
    for d in range(size):
        component = row[work.element[d], COMPONENT]
        if component != previous:
            work.start[component] = d
            previous = component
        work.stop[component] = d + 1
        accumulate(conditions, work, component, d)
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _refused(candidates, buffer, conditions, work, p, c, move):
    """Return whether an event was taken before, or the formula of the move does not hold."""
    row = candidates.row
    node = buffer.node
    if row[c, SHARED] or move[TAKING]:
        n = p
        while n != NONE:
            if row[node[n, TAKEN], EVENT] == row[c, EVENT]:
                return True
            n = node[n, PARENT]
    if move[FORMULA] == move[FORMULA_END]:
        return False
    size = recall(candidates, buffer, conditions, work, p)
    component = row[c, COMPONENT]
    work.element[size] = c
    if not move[TAKING]:
        work.start[component] = size
    work.stop[component] = size + 1
    return not all_hold(conditions, work, move[FORMULA], move[FORMULA_END], component)


@njit(cache=True, nogil=True, error_model="numpy")
def proceeds(candidates, buffer, conditions, work, p, begin, end):
    """Return whether the component of a prefix's last event may be left, by the formula of its PROCEED."""
    if begin == end:
        return True
    node = buffer.node
    if node[p, PROCEEDS] == UNASKED:
        recall(candidates, buffer, conditions, work, p)
        node[p, PROCEEDS] = YES if all_hold(conditions, work, begin, end, -1) else NO
    return node[p, PROCEEDS] == YES


@njit(cache=True, nogil=True, error_model="numpy")
def _add_node(buffer, p, c, move, first_low, first_high, expires):
    """Append a node without runs; the buffer has room."""
    n = buffer.counts[NODES]
    buffer.counts[NODES] = n + 1
    node = buffer.node
    node[n, PARENT] = p
    node[n, TAKEN] = c
    node[n, STATE] = move[TARGET]
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
    node[n, DEPTH] = 0 if p == NONE else node[p, DEPTH] + 1
    node[n, LAST_TAKE] = EVER if move[TAKES_ON] else NEVER
    node[n, LAST_BEGIN] = EVER if move[BEGINS_ON] else NEVER
    node[n, PROCEEDS] = UNASKED
    node[n, NEXT_COMPLETE] = NONE
    buffer.confidence[n] = 0.0
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def child_of(candidates, buffer, conditions, work, p, c, move, window, next_match, nelt):
    """Return the child of ``p`` (-1: before the first event) that takes ``c``, or ``REFUSED``.

    If it is new it is made now: the buffer has room for a node and an entry, and ``work`` for an event more
    than the prefix has.
    """
    row = candidates.row
    if p == NONE:
        if row[c, ROOT] == NONE:
            if _refused(candidates, buffer, conditions, work, p, c, move):
                row[c, ROOT] = REFUSED
            else:
                row[c, ROOT] = _add_node(buffer, p, c, move, row[c, LOWER], row[c, UPPER], row[c, UPPER])
        return row[c, ROOT]
    child = find(buffer.table, p, c)
    if child != NONE:
        return child
    if _refused(candidates, buffer, conditions, work, p, c, move):
        insert(buffer, p, c, REFUSED)
        return REFUSED
    node = buffer.node
    low = max(node[p, FIRST_LOW], row[c, LOWER] - window + 1)
    high = min(node[p, FIRST_LOW] + node[p, FIRST_COUNT] - 1, row[c, UPPER] - 1)
    child = _add_node(buffer, p, c, move, low, high, row[c, UPPER])
    insert(buffer, p, c, child)
    if next_match:
        node[child, SIBLING] = node[p, CHILD]
        node[p, CHILD] = child
        node[p, MIXED] |= row[c, SHARED]
        if nelt and row[c, LOWER] > row[node[p, TAKEN], UPPER]:
            last = LAST_TAKE if move[TAKING] else LAST_BEGIN
            node[p, last] = min(node[p, last], row[c, UPPER])
            node[p, EXPIRES] = min(node[p, EXPIRES], max(node[p, LAST_TAKE], node[p, LAST_BEGIN]))
    return child
