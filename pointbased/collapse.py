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
    EVENT,
    LATER,
    LOWER,
    MIXED,
    NONE,
    PARENT,
    PMF,
    RANGE_HIGH,
    RANGE_LOW,
    SIBLING,
    TAKEN,
    UPPER,
)
from pointbased.survival import outside, probability

__all__ = ["PointMatches", "release"]


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
    order = np.argsort(row[forbidden[:n], EVENT], kind="mergesort")
    gap = gap[:n][order]
    forbidden = forbidden[:n][order]
    several = np.zeros(n, np.int64)
    for i in range(1, n):
        if row[forbidden[i], EVENT] == row[forbidden[i - 1], EVENT]:
            several[i] = 1
            several[i - 1] = 1
    order = np.argsort(-several, kind="mergesort")
    return gap[order], forbidden[order], several.sum(), own


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
    start = np.zeros(length + 1, np.int64)
    for j in range(1, length):
        start[j + 1] = start[j] + size[j - 1] * size[j]
    known = np.full(start[length], -1.0)
    t = np.empty(length, np.int64)
    weight = np.ones(length + 1)
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
def _collapse(candidates, buffer, final, length, window, most):
    """Return the matches at some nodes; a confidence of NaN says that a match was too much work."""
    node = buffer.node
    count = final.shape[0]
    events = np.empty((length, count), np.int64)
    lower = np.empty(count, np.int64)
    upper = np.empty(count, np.int64)
    confidence = np.empty(count, np.float64)
    path = np.empty(length, np.int64)
    m = 0
    for i in range(count):
        n = final[i]
        mixed = False
        for j in range(length - 1, -1, -1):
            path[j] = n
            events[j, m] = candidates.row[node[n, TAKEN], EVENT]
            mixed = mixed or (j < length - 1 and node[n, MIXED] != 0)
            n = node[n, PARENT]
        n = final[i]
        lower[m] = node[n, RANGE_LOW]
        upper[m] = node[n, RANGE_HIGH]
        confidence[m] = buffer.confidence[n]
        if mixed:
            gap, forbidden, coupled, own = _forbidden(candidates, node, path)
            if coupled > 0 or own:
                chosen = np.empty(length, np.int64)
                for j in range(length):
                    chosen[j] = node[path[j], TAKEN]
                lower[m], upper[m], confidence[m] = _coupled_match(
                    candidates, chosen, gap, forbidden, coupled, window, most
                )
        if confidence[m] != 0.0:
            m += 1
    return events[:, :m], lower[:m], upper[:m], confidence[:m]


@njit(cache=True, nogil=True, error_model="numpy")
def _take_final(candidates, buffer, safe):
    """Take the complete matches out whose last event is over before ``safe``; return their nodes."""
    node = buffer.node
    count = 0
    n = buffer.counts[COMPLETE]
    while n != NONE:
        count += candidates.row[node[n, TAKEN], UPPER] < safe
        n = node[n, LATER]
    final = np.empty(count, np.int64)
    count = 0
    previous = NONE
    n = buffer.counts[COMPLETE]
    while n != NONE:
        later = node[n, LATER]
        if candidates.row[node[n, TAKEN], UPPER] < safe:
            final[count] = n
            count += 1
            if previous == NONE:
                buffer.counts[COMPLETE] = later
            else:
                node[previous, LATER] = later
            node[n, LATER] = NONE
        else:
            previous = n
        n = later
    return final


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
    final = _take_final(candidates, buffer, safe)
    events, lower, upper, confidence = _collapse(
        candidates, buffer, final, length, window, MOST_POINT_MATCHES
    )
    if np.isnan(confidence).any():
        raise ValueError(
            "events that could be taken in several gaps of one match couple its times, and it has more than "
            f"{MOST_POINT_MATCHES:,} combinations of them"
        )
    return PointMatches(events, lower, upper, confidence)
