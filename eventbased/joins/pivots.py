"""The pivots of a join that may have matches, and where the candidates begin and end that go with each."""

from __future__ import annotations

import numpy as np

from confidence.kernel import kernel
from eventbased.galloping import first_above
from eventbased.joins.join_state import (
    BEGUN,
    CANDIDATE,
    CLASS,
    END,
    FIRST,
    INDEX,
    LATEST,
    NEXT_PASS,
    PASS,
    PIVOT,
    REACH,
    TOP,
)

__all__ = ["can_straddle", "next_pivots"]


@kernel
def _reach_of_pivots(p, count, w, candidates, search, latest, reached):
    """Set where each class's candidates for each pivot begin and end; ``latest`` < m: no match has it.

    O(c log d) for each pivot.
    """
    first_class, lower, highest = candidates.first_class, candidates.lower, candidates.highest
    minimum, hint, begins, ends = search.minimum, search.hints, search.begins, search.ends
    length = first_class.shape[0] - 1
    for k in range(count):
        latest[k] = minimum[k] + w
    for j in range(length - 1, -1, -1):
        if j == p:
            continue
        behind = j > p
        for k in range(count):
            reached[k] = minimum[k] - 1
        for c in range(first_class[j], first_class[j + 1]):
            start, stop = candidates.class_start[c], candidates.class_stop[c]
            end, begin = hint[END, c], hint[BEGUN, c]
            back = candidates.class_longest[c] + 1 if behind else candidates.class_longest[c]
            for k in range(count):
                end = first_above(lower, start, stop, latest[k] if behind else minimum[k], end)
                ends[c, k] = end
                if end > start:
                    reached[k] = max(reached[k], highest[end - 1])
                begin = first_above(lower, start, end, minimum[k] - back, begin)
                begins[c, k] = begin
            hint[END, c] = end
            hint[BEGUN, c] = begin
        for k in range(count):
            if behind:
                latest[k] = min(latest[k], reached[k])
            elif reached[k] <= minimum[k]:
                latest[k] = minimum[k] - 1


@kernel
def can_straddle(p, first_class, class_longest):
    """Return whether every component before p has an interval that can lie around a pivot's upper bound.

    Parameters
    ----------
    p : int64
        The pivot component.
    first_class, class_longest
        As of :class:`eventbased.layout.Candidates`.
    """
    possible = True
    for j in range(p):
        possible = possible and class_longest[first_class[j + 1] - 1] > 0
    return possible


@kernel(allocates=True)
def next_pivots(w, candidates, fills, search):
    """Fill the first block with those of the next pivots that may have matches; return how many.

    Parameters
    ----------
    w, candidates
        As for :func:`eventbased.joins.pivot_join.join`.
    fills : (n,) int64
        As of :class:`eventbased.layout.SharedEvents`.
    search : JoinState
    """
    first_class, lower, upper = candidates.first_class, candidates.lower, candidates.upper
    minimum, state, block, share = search.minimum, search.state, search.blocks[0], search.shares[0]
    capacity = minimum.shape[0]
    pivots = np.empty(capacity, np.int64)
    latest = np.empty(capacity, np.int64)
    reached = np.empty(capacity, np.int64)
    p = state[NEXT_PASS]
    c = state[CLASS]
    following = state[INDEX]
    pivot_count = 0
    count = 0
    while count < capacity and c < first_class[p + 1]:
        following = max(following, candidates.class_start[c])
        stop = min(candidates.class_stop[c], following + capacity - count)
        for pivot in range(following, stop):
            pivots[count] = pivot
            minimum[count] = upper[pivot]
            count += 1
        following = stop
        if following == candidates.class_stop[c]:
            c += 1
    _reach_of_pivots(p, count, w, candidates, search, latest, reached)
    for k in range(count):
        if latest[k] >= minimum[k]:
            block[CANDIDATE, pivot_count] = pivots[k]
            block[PIVOT, pivot_count] = k
            block[REACH, pivot_count] = minimum[k]
            block[TOP, pivot_count] = lower[pivots[k]]
            block[FIRST, pivot_count] = lower[pivots[k]]
            block[LATEST, pivot_count] = minimum[k]
            share[pivot_count] = fills[pivots[k]]
            pivot_count += 1
    state[PASS] = p
    if c == first_class[p + 1]:
        p += 1
    state[NEXT_PASS] = p
    state[CLASS] = c
    state[INDEX] = following
    return pivot_count
