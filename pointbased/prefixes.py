"""The prefixes that events are taken after: nodes of the shared match buffer, one for each that is tried."""

from __future__ import annotations

from typing import Final

from confidence.kernel import kernel
from confidence.predicates.conditions import accumulate, all_hold
from pointbased.automaton import BEGINS_ON, TAKES_ON, TAKING, TARGET
from pointbased.match_buffer import (
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

__all__ = ["child_of", "new_child", "proceeds", "recall", "refuses"]

UNASKED: Final = 0
YES: Final = 1
NO: Final = 2


@kernel
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


@kernel
def refuses(candidates, buffer, conditions, work, p, c, taking, begin, end):
    """Return whether a prefix has the event already, or the formula of the move does not hold.

    Parameters
    ----------
    taking : bool
        Whether the move is a TAKE.
    begin, end : int64
        Its formula; ``work`` has room for an event more than the prefix has.
    """
    row = candidates.row
    node = buffer.node
    n = p
    while n != NONE:
        if row[node[n, TAKEN], EVENT] == row[c, EVENT]:
            return True
        n = node[n, PARENT]
    if begin == end:
        return False
    size = recall(candidates, buffer, conditions, work, p)
    component = row[c, COMPONENT]
    work.element[size] = c
    if not taking:
        work.start[component] = size
    work.stop[component] = size + 1
    return not all_hold(conditions, work, begin, end, component)


@kernel
def proceeds(candidates, buffer, conditions, work, p, begin, end):
    """Return whether the component of a prefix's last event may be left, by the formula of its PROCEED."""
    node = buffer.node
    if node[p, PROCEEDS] == UNASKED:
        recall(candidates, buffer, conditions, work, p)
        node[p, PROCEEDS] = YES if all_hold(conditions, work, begin, end, -1) else NO
    return node[p, PROCEEDS] == YES


@kernel
def _add_node(buffer, p, c, moves, e, first_low, first_high, expires):
    """Append a node without runs; the buffer has room."""
    n = buffer.counts[NODES]
    buffer.counts[NODES] = n + 1
    node = buffer.node
    node[n, PARENT] = p
    node[n, TAKEN] = c
    node[n, STATE] = moves[e, TARGET]
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
    node[n, LAST_TAKE] = EVER if moves[e, TAKES_ON] else NEVER
    node[n, LAST_BEGIN] = EVER if moves[e, BEGINS_ON] else NEVER
    node[n, PROCEEDS] = UNASKED
    node[n, NEXT_COMPLETE] = NONE
    buffer.confidence[n] = 0.0
    return n


@kernel
def child_of(candidates, buffer, p, c):
    """Return the child of ``p`` (-1: the start) that takes ``c``, ``REFUSED``, or -1 if it was not asked."""
    if p == NONE:
        return candidates.row[c, ROOT]
    return find(buffer.table, p, c)


@kernel
def new_child(candidates, buffer, p, c, refused, moves, e, window, next_match, nelt):
    """Return what is from now on the child of ``p`` that takes ``c`` by move ``e``, or ``REFUSED``.

    The buffer has room for a node and an entry.
    """
    row = candidates.row
    if p == NONE:
        row[c, ROOT] = REFUSED
        if not refused:
            row[c, ROOT] = _add_node(buffer, p, c, moves, e, row[c, LOWER], row[c, UPPER], row[c, UPPER])
        return row[c, ROOT]
    if refused:
        insert(buffer, p, c, REFUSED)
        return REFUSED
    node = buffer.node
    low = max(node[p, FIRST_LOW], row[c, LOWER] - window + 1)
    high = min(node[p, FIRST_LOW] + node[p, FIRST_COUNT] - 1, row[c, UPPER] - 1)
    child = _add_node(buffer, p, c, moves, e, low, high, row[c, UPPER])
    insert(buffer, p, c, child)
    if next_match:
        node[child, SIBLING] = node[p, CHILD]
        node[p, CHILD] = child
        node[p, MIXED] |= row[c, SHARED]
        if nelt and row[c, LOWER] > row[node[p, TAKEN], UPPER]:
            last = LAST_TAKE if moves[e, TAKING] else LAST_BEGIN
            node[p, last] = min(node[p, last], row[c, UPPER])
            node[p, EXPIRES] = min(node[p, EXPIRES], max(node[p, LAST_TAKE], node[p, LAST_BEGIN]))
    return child
