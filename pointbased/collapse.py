"""Match collapsing (Zhang et al., section 3, step 3): the point matches of a signature become one match.

The run loop adds the point matches of a signature up at its node as it finds them. A signature is complete
once every point of its last event has been seen, t_emit > e_l.upper: its point matches end there at the
latest, and so does everything forbidden in its gaps. (The paper waits for e_l.upper + W, which no
condition of these patterns needs.)

Where one event could have been taken in several gaps of a match, the gaps are coupled (Eq. 4) and the
product over gaps that the run loop forms is not the answer: given the match's own times the gaps are
disjoint, so such an event contributes 1 minus the sum over its gaps. Then the point matches are gone through
one by one; the factors of all other events are memoised by (component, t[j-1], t[j]) as in Algorithm 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pointbased.config import MOST_POINT_MATCHES, TINY
from pointbased.pools import (
    CHILD,
    COMPLETE,
    COMPLETES,
    EVENT,
    LATER,
    LOWER,
    MIXED,
    NONE,
    PARENT,
    PMF,
    RANGE_HIGH,
    RANGE_LOW,
    SHARED,
    SIBLING,
    TAKEN,
    UPPER,
)
from pointbased.survival import outside, probability

__all__ = ["PointMatches", "no_matches", "release"]


class PointMatches(NamedTuple):
    """Matches that are final.

    Attributes
    ----------
    events : (l, m) int64
        For each component the serial number of its event.
    lower, upper : (m,) int64
        Tight time ranges, ticks.
    confidence : (m,) float64
        Positive.
    """

    events: Any
    lower: Any
    upper: Any
    confidence: Any


def no_matches(length: int) -> PointMatches:
    """Return no matches of a pattern with so many components."""
    none = np.zeros(0, dtype=np.int64)
    return PointMatches(np.zeros((length, 0), dtype=np.int64), none, none, np.zeros(0))


@njit(cache=True, nogil=True, error_model="numpy")
def _forbidden(candidates, node, path):
    """Return the gap and the candidate of every event forbidden in a gap of a match, coupled ones first.

    Returns
    -------
    gap : (k,) int64
        The component behind the gap.
    forbidden : (k,) int64
        Candidates, the rows of one event together.
    coupled : int64
        How many rows belong to events that are forbidden in several gaps.
    own : bool
        Whether a later event of the match could have been taken in an earlier gap; it is not in the result.
    """
    row = candidates.row
    length = path.shape[0]
    count = 0
    for j in range(1, length):
        child = node[path[j - 1], CHILD]
        while child != NONE:
            count += 1
            child = node[child, SIBLING]
    gap = np.empty(count, np.int64)
    forbidden = np.empty(count, np.int64)
    own = False
    n = 0
    for j in range(1, length):
        child = node[path[j - 1], CHILD]
        while child != NONE:
            c = node[child, TAKEN]
            mine = False
            for k in range(j, length):
                if row[node[path[k], TAKEN], EVENT] == row[c, EVENT]:
                    mine = True
                    own = own or k > j
            if not mine:
                gap[n] = j
                forbidden[n] = c
                n += 1
            child = node[child, SIBLING]
    # Only an event that several components can take may stand there twice.
    coupled = 0
    i = 0
    while i < n:
        c = forbidden[i]
        first = coupled
        if row[c, SHARED]:
            for k in range(i + 1, n):
                if row[forbidden[k], EVENT] == row[c, EVENT]:
                    if coupled == first:
                        _swap(gap, forbidden, coupled, i)
                        coupled += 1
                    _swap(gap, forbidden, coupled, k)
                    coupled += 1
        i = max(i + 1, coupled)
    return gap[:n], forbidden[:n], coupled, own


@njit(cache=True, nogil=True, error_model="numpy")
def _swap(gap, forbidden, i, k):
    gap[i], gap[k] = gap[k], gap[i]
    forbidden[i], forbidden[k] = forbidden[k], forbidden[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _outside_all(candidates, c, gap, first, stop, t):
    """Return the probability that a candidate happened in none of the gaps in ``gap[first:stop]``."""
    row = candidates.row
    lower = row[c, LOWER]
    upper = row[c, UPPER]
    if row[c, PMF] < 0:
        size = upper - lower + 1
        inside = 0
        for g in range(first, stop):
            inside += max(min(upper, t[gap[g]] - 1) - max(lower, t[gap[g] - 1] + 1) + 1, 0)
        return (size - inside) / size
    total = 0.0
    for tick in range(lower, upper + 1):
        free = True
        for g in range(first, stop):
            free = free and not t[gap[g] - 1] < tick < t[gap[g]]
        if free:
            total += probability(candidates, c, tick)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _gap_factor(candidates, gap, forbidden, first, j, after, before):
    """Return the probability that no event forbidden in gap j alone happened in it."""
    product = 1.0
    for i in range(first, gap.shape[0]):
        if gap[i] == j:
            factor = outside(candidates, forbidden[i], after, before)
            if factor == 0.0:
                return 0.0
            product = max(product * factor, TINY)
    return product


@njit(cache=True, nogil=True, error_model="numpy")
def _coupled_match(candidates, chosen, gap, forbidden, coupled, window, most):
    """Return range and confidence of a match whose gaps are coupled, by its point matches.

    Parameters
    ----------
    chosen : (l,) int64
        Its candidates.
    gap, forbidden, coupled
        See :func:`_forbidden`.
    window : int64
    most : int64
        Point matches to go through at most.

    Returns
    -------
    lower, upper : int64
        ``lower > upper`` if there is no point match; NaN as the confidence if there are more than ``most``.
    confidence : float64
        O(U**l * coupled) for intervals of U ticks.
    """
    row = candidates.row
    length = chosen.shape[0]
    size = np.empty(length, np.int64)
    for j in range(length):
        size[j] = row[chosen[j], UPPER] - row[chosen[j], LOWER] + 1
    start = np.empty(length + 1, np.int64)
    start[0] = 0
    start[1] = 0
    for j in range(1, length):
        start[j + 1] = start[j] + size[j - 1] * size[j]
    known = np.empty(start[length])
    for place in range(start[length]):
        known[place] = -1.0
    t = np.empty(length, np.int64)
    weight = np.empty(length + 1)
    weight[0] = 1.0
    lower = np.int64(1)
    upper = np.int64(0)
    total = 0.0
    visited = 0
    j = 0
    t[0] = row[chosen[0], LOWER] - 1
    while j >= 0:
        t[j] += 1
        c = chosen[j]
        if t[j] > row[c, UPPER] or t[j] - t[0] >= window:
            j -= 1
            continue
        factor = probability(candidates, c, t[j])
        if factor == 0.0:
            continue
        if j:
            place = start[j] + (t[j - 1] - row[chosen[j - 1], LOWER]) * size[j] + t[j] - row[c, LOWER]
            if known[place] < 0.0:
                known[place] = _gap_factor(candidates, gap, forbidden, coupled, j, t[j - 1], t[j])
            if known[place] == 0.0:
                continue
            factor = max(factor * known[place], TINY)
        weight[j + 1] = max(weight[j] * factor, TINY)
        if j < length - 1:
            t[j + 1] = max(row[chosen[j + 1], LOWER], t[j] + 1) - 1
            j += 1
            continue
        visited += 1
        if visited > most:
            return lower, upper, np.nan
        probable = weight[length]
        i = 0
        while i < coupled and probable > 0.0:
            stop = i + 1
            while stop < coupled and row[forbidden[stop], EVENT] == row[forbidden[i], EVENT]:
                stop += 1
            factor = _outside_all(candidates, forbidden[i], gap, i, stop, t)
            probable = max(probable * factor, TINY) if factor > 0.0 else 0.0
            i = stop
        if probable > 0.0:
            lower = t[0] if lower > upper else min(lower, t[0])
            upper = t[j] if total == 0.0 else max(upper, t[j])
            total += probable
    return lower, upper, total


@njit(cache=True, nogil=True, error_model="numpy")
def _collapse(candidates, buffer, safe, window, most, events, lower, upper, confidence):
    """Write the complete matches whose last event is over before ``safe`` and take them off the list.

    Parameters
    ----------
    events : (l, m) int64; lower, upper : (m,) int64; confidence : (m,) float64
        With room for all complete matches. A confidence of NaN says that a match was too much work.

    Returns
    -------
    int64
        How many were written.
    """
    node = buffer.node
    length = events.shape[0]
    path = np.empty(length, np.int64)
    chosen = np.empty(length, np.int64)
    m = 0
    previous = NONE
    final = buffer.counts[COMPLETE]
    while final != NONE:
        later = node[final, LATER]
        if candidates.row[node[final, TAKEN], UPPER] >= safe:
            previous = final
            final = later
            continue
        if previous == NONE:
            buffer.counts[COMPLETE] = later
        else:
            node[previous, LATER] = later
        buffer.counts[COMPLETES] -= 1
        mixed = False
        n = final
        for j in range(length - 1, -1, -1):
            path[j] = n
            chosen[j] = node[n, TAKEN]
            events[j, m] = candidates.row[chosen[j], EVENT]
            mixed = mixed or (j < length - 1 and node[n, MIXED] != 0)
            n = node[n, PARENT]
        lower[m] = node[final, RANGE_LOW]
        upper[m] = node[final, RANGE_HIGH]
        confidence[m] = buffer.confidence[final]
        if mixed:
            gap, forbidden, coupled, own = _forbidden(candidates, node, path)
            if coupled > 0 or own:
                lower[m], upper[m], confidence[m] = _coupled_match(
                    candidates, chosen, gap, forbidden, coupled, window, most
                )
        if confidence[m] > 1.0:
            # The point matches of a certain match are rounded one by one.
            confidence[m] = 1.0
        if confidence[m] != 0.0:
            m += 1
        final = later
    return m


def release(candidates: Any, buffer: Any, length: int, window: int, safe: int) -> PointMatches:
    """Return the matches that became final, each once.

    Parameters
    ----------
    candidates : Candidates
    buffer : Buffer
        Whose points before ``safe`` have all been fed.
    length : int
        Components of the pattern.
    window : int
    safe : int
        No point before this tick is missing.

    Raises
    ------
    ValueError
        If events couple the gaps of a match with more than ``MOST_POINT_MATCHES`` point matches.
    """
    room = int(buffer.counts[COMPLETES])
    if not room:
        return no_matches(length)
    events = np.empty((length, room), dtype=np.int64)
    lower, upper = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    confidence = np.empty(room)
    found = _collapse(candidates, buffer, safe, window, MOST_POINT_MATCHES, events, lower, upper, confidence)
    if np.isnan(confidence[:found]).any():
        raise ValueError(
            "events that could be taken in several gaps of one match couple its times, and it has more than "
            f"{MOST_POINT_MATCHES:,} combinations of them"
        )
    return PointMatches(events[:, :found], lower[:found], upper[:found], confidence[:found])
