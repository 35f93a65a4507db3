"""Query-order ("sorted") evaluation of skip till any match, whole partitions at a time.

With positions subtracted (``A_j = lower_j - j``, ``B_j = upper_j - j``, 0-based) a choice of one event per
component is feasible iff ``A_i <= B_j`` for all i <= j and ``max A <= min B + w``, ``w = W - l``. The join is
pivoted on the first component p that attains ``m = min B``. Given the pivot event, what is left is

* before p: ``A <= m < B``, each component for itself;
* behind p: ``B >= m``, ``A <= m + w`` and ``max(A_{p+1..j-1}) <= B_j``, a chain without a window;

so every match comes out once, and the latest time G_j up to which a chain can still be completed from
component j on follows from running maxima of B. Events with ``A_j > G_{j+1}`` are never entered: no
partial match is a dead end as far as order and window go.

Candidates are sorted by A within classes of similar interval length. A class whose longest interval
is L ticks holds the events with ``B >= x`` at or behind the first ``A > x - L``, so a few long intervals
do not widen the search among the short ones.

The kernel is a loop over an explicit state in arrays: it stops when the output is full and goes on
where it stopped.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

from eventbased.programs import STACK_DEPTH, holds

__all__ = ["RUNS", "initial_state", "join"]

PASS: Final = 0
CLASS: Final = 1
INDEX: Final = 2
LEVEL: Final = 3
RUNS: Final = 4


def initial_state(length: int, classes: int) -> tuple[Any, Any, Any]:
    """Return ``(state, per_component, per_class)`` for :func:`join`, before the first match."""
    state = np.zeros(5, dtype=np.int64)
    state[INDEX] = -1
    per_component = np.zeros((4, length), dtype=np.int64)
    return state, per_component, np.zeros((3, classes), dtype=np.int64)


@njit(cache=True, nogil=True, error_model="numpy")
def _first_above(values, start, stop, x, hint):
    """Return the first index in [start, stop] whose value is > x, galloping away from ``hint``. O(log d)."""
    if hint < start:
        hint = start
    if hint > stop:
        hint = stop
    step = 1
    if hint < stop and values[hint] <= x:
        low = hint + 1
        high = low
        while high < stop and values[high] <= x:
            low = high + 1
            high = low + step
            step *= 2
        if high > stop:
            high = stop
    else:
        high = hint
        low = hint
        while low > start and values[low - 1] > x:
            high = low - 1
            low = high - step
            step *= 2
        if low < start:
            low = start
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, error_model="numpy")
def _reach_of_pivot(p, m, w, first_class, class_start, class_stop, lower, highest, class_end, end_hint):
    """Set the end of each class's range for a pivot; return whether any match has this pivot. O(c log d)."""
    length = first_class.shape[0] - 1
    latest = m + w
    for j in range(length - 1, p, -1):
        reached = m - 1
        for c in range(first_class[j], first_class[j + 1]):
            stop = _first_above(lower, class_start[c], class_stop[c], latest, end_hint[c])
            end_hint[c] = stop
            class_end[c] = stop
            if stop > class_start[c] and highest[stop - 1] > reached:
                reached = highest[stop - 1]
        if reached < m:
            return False
        latest = min(latest, reached)
    for j in range(p):
        reached = m
        for c in range(first_class[j], first_class[j + 1]):
            stop = _first_above(lower, class_start[c], class_stop[c], m, end_hint[c])
            end_hint[c] = stop
            class_end[c] = stop
            if stop > class_start[c] and highest[stop - 1] > reached:
                reached = highest[stop - 1]
        if reached == m:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def join(
    w,
    first_class,
    class_start,
    class_stop,
    class_longest,
    lower,
    upper,
    highest,
    event,
    shared,
    order,
    program_start,
    code,
    ints,
    floats,
    nulls,
    slots,
    state,
    per_component,
    per_class,
    runs,
):
    """Find the next feasible choices and return how many; fewer than asked for means that there are no more.

    They are written as runs: matches that share all candidates but one component's, whose candidates
    stand side by side.

    Parameters
    ----------
    w : int64
        ``W - l``, at least 0; the pattern has l >= 2 components.
    first_class : (l + 1,) int64
        Classes of component j: ``first_class[j] .. first_class[j + 1] - 1``.
    class_start, class_stop : (c,) int64
        Candidates of a class, as places in the candidate arrays.
    class_longest : (c,) int64
        Largest ``upper - lower`` of a class.
    lower, upper : (n,) int64
        A and B of every candidate, ticks; ascending A within a class.
    highest : (n,) int64
        Running maximum of B within the class.
    event : (n,) int64
        What identifies the candidate's event: the same event has the same value in every component.
    shared : (l, l) bool
        Whether two components can hold the same event.
    order : (l, l) int64
        For each pivot component, the components in the order in which they are bound.
    program_start : (l, l + 1) int64
        For each pivot component and binding step, the rows of ``code`` to run then.
    code, ints, floats, nulls, slots
        Predicates across components, see :func:`eventbased.programs.holds`.
    state : (5,) int64, per_component : (4, l) int64, per_class : (3, c) int64
        Where the search stands, see :func:`initial_state`.
    runs : (k, l + 2) int64
        Overwritten in the first ``state[RUNS]`` rows: the places of the candidates, for the running
        component the first one; the number of matches; the running component. k >= 1 is the number of
        matches asked for.

    Notes
    -----
    O(matches) steps apart from predicates, and O(n c log d) for the pivots, d being how far the bounds
    move from one to the next.
    """
    length = first_class.shape[0] - 1
    capacity = runs.shape[0]
    depth = length - 1
    count = 0
    room = capacity

    cursor = per_component[0]
    chosen = per_component[1]
    current = per_component[2]
    reach = per_component[3]
    class_end = per_class[0]
    end_hint = per_class[1]
    begin_hint = per_class[2]
    p = state[PASS]
    pivot_class = state[CLASS]
    pivot = state[INDEX]
    level = state[LEVEL]

    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    taken = np.empty(length, np.int64)

    while True:
        if level == 0:
            pivot += 1
            while pivot == class_stop[pivot_class]:
                pivot_class += 1
                if pivot_class == first_class[p + 1]:
                    p += 1
                    if p == length:
                        state[RUNS] = count
                        return capacity - room
                pivot = class_start[pivot_class]
            m = upper[pivot]
            if not _reach_of_pivot(
                p, m, w, first_class, class_start, class_stop, lower, highest, class_end, end_hint
            ):
                continue
            chosen[p] = pivot
            reach[1] = m
            level = 1
            j = order[p, 1]
            current[j] = first_class[j] - 1

        j = order[p, level]
        behind = j > p
        need = reach[level] if behind else upper[pivot] + 1
        c = current[j]
        i = cursor[j]
        stop = class_end[c] if c >= first_class[j] else i
        row = program_start[p, level]
        row_stop = program_start[p, level + 1]
        for s in range(level):
            k = order[p, s]
            taken[s] = event[chosen[k]] if shared[j, k] else -1
        found = False
        while not found:
            while i < stop and not found:
                begin = -1
                while i < stop:
                    free = upper[i] >= need
                    if free:
                        this = event[i]
                        for s in range(level):
                            free = free and taken[s] != this
                        if free and row < row_stop:
                            chosen[j] = i
                            free = holds(
                                code, row, row_stop, ints, floats, nulls, slots, chosen, whole, real, absent
                            )
                    if free:
                        if begin < 0:
                            begin = i
                        i += 1
                        if level < depth or i - begin == room:
                            break
                    elif begin < 0:
                        i += 1
                    else:
                        break
                if begin < 0:
                    continue
                chosen[j] = begin
                if level < depth:
                    found = True
                    break
                for k in range(length):
                    runs[count, k] = chosen[k]
                runs[count, length] = i - begin
                runs[count, length + 1] = j
                count += 1
                room -= i - begin
                found = room == 0
            if found:
                break
            c += 1
            if c == first_class[j + 1]:
                break
            stop = class_end[c]
            i = _first_above(lower, class_start[c], stop, need - class_longest[c] - 1, begin_hint[c])
            begin_hint[c] = i
        if not found:
            level -= 1
            continue
        cursor[j] = i
        current[j] = c
        if level == depth:
            state[PASS] = p
            state[CLASS] = pivot_class
            state[INDEX] = pivot
            state[LEVEL] = level
            state[RUNS] = count
            return capacity
        level += 1
        reach[level] = max(need, lower[chosen[j]]) if behind else reach[level - 1]
        j = order[p, level]
        current[j] = first_class[j] - 1
