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
RESUMING: Final = 4
RUNS: Final = 5


def initial_state(length: int, classes: int) -> tuple[Any, Any, Any]:
    """Return ``(state, per_component, per_class)`` for :func:`join`, before the first match."""
    state = np.zeros(6, dtype=np.int64)
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
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _can_straddle(p, first_class, class_longest):
    """Return whether every component before p has an interval that can lie around a pivot's upper bound."""
    possible = True
    for j in range(p):
        possible = possible and class_longest[first_class[j + 1] - 1] > 0
    return possible


@njit(cache=True, nogil=True, error_model="numpy")
def _events_taken(event, order, p, step, chosen, taken):
    """Write the chosen events that another component could take again; return how many there are. O(l)."""
    count = 0
    for s in range(step):
        found = event[chosen[order[p, s]]]
        if found >= 0:
            taken[count] = found
            count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _contains(taken, count, found):
    contained = False
    for s in range(count):
        contained = contained or taken[s] == found
    return contained


@njit(cache=True, nogil=True, error_model="numpy")
def join(
    w,
    first_class,
    class_start,
    class_stop,
    class_shortest,
    class_longest,
    lower,
    upper,
    highest,
    event,
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
    class_shortest, class_longest : (c,) int64
        Smallest and largest ``upper - lower`` of a class.
    lower, upper : (n,) int64
        A and B of every candidate, ticks; ascending A within a class.
    highest : (n,) int64
        Running maximum of B within the class.
    event : (n,) int64
        The same number >= 0 wherever the same event is a candidate of several components; -1 for an
        event that is a candidate of one component only.
    order : (l, l) int64
        For each pivot component, the components in the order in which they are bound.
    program_start : (l, l + 1) int64
        For each pivot component and binding step, the rows of ``code`` to run then.
    code, ints, floats, nulls, slots
        Predicates across components, see :func:`eventbased.programs.holds`.
    state : (6,) int64, per_component : (4, l) int64, per_class : (3, c) int64
        Where the search stands, see :func:`initial_state`.
    runs : (k, l + 2) int64
        Overwritten in the first ``state[RUNS]`` rows: the places of the candidates, for the running
        component the first one; the number of matches; the running component. k >= 1 is the number of
        matches asked for.

    Notes
    -----
    O(runs) steps where intervals of a class are equally long and no predicate is left, else O(matches)
    apart from predicates; and O(n c log d) for the pivots, d being how far the bounds move from one to
    the next.
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
    resuming = state[RESUMING] == 1

    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    taken = np.empty(length, np.int64)
    bound = np.empty(length, np.int64)
    entering = True
    m = upper[pivot] if pivot >= 0 else 0
    j = 0
    behind = False
    need = m
    c = 0
    i = 0
    stop = 0
    takens = 0

    while True:
        last = order[p, depth]
        if resuming:
            resuming = False
            d = current[last]
            k = cursor[last]
            k_stop = class_end[d]
        else:
            if level == 0:
                pivot += 1
                while pivot == class_stop[pivot_class]:
                    pivot_class += 1
                    if pivot_class == first_class[p + 1]:
                        p += 1
                        while p < length and not _can_straddle(p, first_class, class_longest):
                            p += 1
                        if p == length:
                            state[RUNS] = count
                            return capacity - room
                        pivot_class = first_class[p]
                    pivot = class_start[pivot_class]
                m = upper[pivot]
                if not _reach_of_pivot(
                    p, m, w, first_class, class_start, class_stop, lower, highest, class_end, end_hint
                ):
                    continue
                chosen[p] = pivot
                reach[0] = m
                entering = True
                last = order[p, depth]
            else:
                if entering:
                    entering = False
                    j = order[p, level]
                    behind = j > p
                    need = reach[level - 1] if behind else m + 1
                    c = current[j]
                    i = cursor[j]
                    stop = class_end[c] if c >= first_class[j] else i
                    takens = _events_taken(event, order, p, level, chosen, taken)
                found = False
                while True:
                    while i < stop and not found:
                        found = upper[i] >= need
                        if found and takens > 0:
                            found = not _contains(taken, takens, event[i])
                        if found and program_start[p, level] < program_start[p, level + 1]:
                            chosen[j] = i
                            found = holds(
                                code, program_start[p, level], program_start[p, level + 1],
                                ints, floats, nulls, slots, chosen, whole, real, absent,
                            )  # fmt: skip
                        i += 1
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
                    entering = True
                    continue
                chosen[j] = i - 1
                reach[level] = max(need, lower[i - 1]) if behind else reach[level - 1]
            if level + 1 < depth:
                if level > 0:
                    cursor[j] = i
                    current[j] = c
                level += 1
                entering = True
                current[order[p, level]] = first_class[order[p, level]] - 1
                cursor[order[p, level]] = 0
                continue
            d = first_class[last] - 1
            k = 0
            k_stop = 0

        k_need = reach[level] if last > p else m + 1
        bounds = _events_taken(event, order, p, depth, chosen, bound)
        row = program_start[p, depth]
        row_stop = program_start[p, depth + 1]
        while True:
            while k < k_stop:
                begin = k
                if bounds == 0 and row == row_stop and class_shortest[d] == class_longest[d]:
                    # The search for the start has left exactly the candidates that reach far enough.
                    k = min(k_stop, k + room)
                else:
                    while k < k_stop and k - begin < room:
                        free = upper[k] >= k_need
                        if free and bounds > 0:
                            free = not _contains(bound, bounds, event[k])
                        if free and row < row_stop:
                            chosen[last] = k
                            free = holds(
                                code, row, row_stop, ints, floats, nulls, slots, chosen, whole, real, absent
                            )
                        if not free:
                            break
                        k += 1
                    if k == begin:
                        k += 1
                        continue
                chosen[last] = begin
                for s in range(length):
                    runs[count, s] = chosen[s]
                runs[count, length] = k - begin
                runs[count, length + 1] = last
                count += 1
                room -= k - begin
                if room == 0:
                    cursor[last] = k
                    current[last] = d
                    if not entering:
                        cursor[j] = i
                        current[j] = c
                    state[PASS] = p
                    state[CLASS] = pivot_class
                    state[INDEX] = pivot
                    state[LEVEL] = level
                    state[RESUMING] = 1
                    state[RUNS] = count
                    return capacity
            d += 1
            if d == first_class[last + 1]:
                break
            k_stop = class_end[d]
            k = _first_above(lower, class_start[d], k_stop, k_need - class_longest[d] - 1, begin_hint[d])
            begin_hint[d] = k
