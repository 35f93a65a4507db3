"""Exact confidence of a chain of uniform intervals, at a cost independent of the intervals' length.

With ``u_j = t_j - j`` (0-based) the condition ``t_0 < ... < t_{l-1}``, ``t_{l-1} - t_0 <= W - 1`` reads
``u_0 <= u_1 <= ... <= u_{l-1} <= u_0 + w`` with ``w = W - l``: a *cycle* of l weak inequalities once the
sequence is continued by ``u_{j+l} = u_j + w``. Inclusion-exclusion over the set of violated
inequalities splits the cycle into arcs of consecutive violations; as tight bounds do not decrease
along the continued sequence, the strictly decreasing arcs from i to k number
``C(b_i - a_k + 1, k - i + 1)``. Where an inequality cannot be violated the cycle is cut, the pieces are
independent, and each is Steck's determinant (G. P. Steck, Ann. Math. Statist. 42, 1971); without a cut the
arc over position 0 is summed out first. No sum over ticks is left, whether the window binds or not.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from confidence.chain.exact import trusted
from confidence.config import LARGEST_COUNT, MOST_EXACT_TICKS
from confidence.kernel import kernel

__all__ = [
    "chain_confidence",
    "confidence_of_three",
    "confidence_of_two",
    "pair_confidence",
    "path_confidence",
    "tight_bounds",
]

CHAINS: Final = 0
MAGNITUDE: Final = 1
LOW: Final = 2
HIGH: Final = 3


@kernel
def tight_bounds(lower, upper, w, a, b):
    """Tighten the bounds of one chain by order and window; return whether it is feasible.

    The paper's valid bounds (sections 4.1 and C.1), made tight under the window as well. O(l).

    Parameters
    ----------
    lower, upper : (l,) int64
        Interval bounds minus position, ticks, inclusive.
    w : int64
        Window minus length, ``W - l``.
    a, b : (l,) int64
        Overwritten by the valid bounds, minus position.
    """
    length = lower.shape[0]
    a[0] = lower[0]
    for j in range(1, length):
        a[j] = max(a[j - 1], lower[j])
    b[length - 1] = upper[length - 1]
    for j in range(length - 2, -1, -1):
        b[j] = min(b[j + 1], upper[j])
    first = a[length - 1] - w
    last = b[0] + w
    feasible = True
    for j in range(length):
        a[j] = max(a[j], first)
        b[j] = min(b[j], last)
        feasible = feasible and a[j] <= b[j]
    return feasible


@kernel
def _falling(n, k):
    """Return n (n - 1) ... (n - k + 1), which is k! C(n, k)."""
    product = n
    for i in range(1, k):
        product *= n - i
    return product


@kernel
def _suffix_counts(start, stop, lowest, floats):
    """Count the weakly increasing chains of positions k..stop-1, for each k from ``lowest`` on.

    Positions are counted from ``start`` along the tight bounds in ``floats[LOW]`` and ``floats[HIGH]``.
    ``floats[CHAINS, k]`` and ``floats[MAGNITUDE, k]`` receive the count and the sum of the absolute terms.
    """
    floats[CHAINS, stop] = 1.0
    floats[MAGNITUDE, stop] = 1.0
    for k in range(stop - 1, lowest - 1, -1):
        high = floats[HIGH, start + k] + 1.0
        total = 0.0
        absolute = 0.0
        factor = -1.0
        for end in range(k, stop):
            room = high - floats[LOW, start + end]
            size = end - k + 1
            if room < size:
                break
            factor /= -size
            term = factor * _falling(room, size)
            total += term * floats[CHAINS, end + 1]
            absolute += abs(term) * floats[MAGNITUDE, end + 1]
        floats[CHAINS, k] = total
        floats[MAGNITUDE, k] = absolute


@kernel
def pair_confidence(l1, h1, l2, h2):
    """Return P(u_1 <= u_2) of two independent uniform values with bounds l, h; NaN as below. O(1)."""
    sizes = float(h1 - l1 + 1) * float(h2 - l2 + 1)
    h1 = min(h1, h2)
    l2 = max(l2, l1)
    if l1 > h1 or l2 > h2:
        return 0.0
    everything = float(h1 - l1 + 1) * float(h2 - l2 + 1)
    p12 = max(float(h1 - l2 + 1), 1.0)
    count = everything - 0.5 * p12 * (p12 - 1.0)
    return trusted(count, everything, sizes)


@kernel
def path_confidence(low, high, begin, size, floats):
    """Return P(u_begin <= ... <= u_(begin + size - 1)) of independent uniform values; O(size^2).

    Parameters
    ----------
    low, high : (k,) int64
        Bounds, inclusive.
    begin, size : int64
    floats : (4, m) float64, m > size
        Work array.

    Returns
    -------
    float64
        NaN where float64 cannot give it.
    """
    if size == 1:
        return 1.0
    if size > 3:
        return _long_path_confidence(low, high, begin, size, floats)
    k = begin + size - 2
    l1, h1, l2, h2 = low[k], high[k], low[k + 1], high[k + 1]
    if size == 2:
        return pair_confidence(l1, h1, l2, h2)
    l0, h0 = low[begin], high[begin]
    sizes = float(h0 - l0 + 1) * float(h1 - l1 + 1) * float(h2 - l2 + 1)
    h1 = min(h1, h2)
    h0 = min(h0, h1)
    l1 = max(l1, l0)
    l2 = max(l2, l1)
    if l0 > h0 or l1 > h1 or l2 > h2:
        return 0.0
    n0 = float(h0 - l0 + 1)
    n1 = float(h1 - l1 + 1)
    n2 = float(h2 - l2 + 1)
    p01 = max(float(h0 - l1 + 1), 1.0)
    p12 = max(float(h1 - l2 + 1), 1.0)
    p02 = max(float(h0 - l2 + 1), 1.0)
    everything = n0 * n1 * n2
    pairs = 0.5 * (p01 * (p01 - 1.0) * n2 + p12 * (p12 - 1.0) * n0)
    count = everything - pairs + p02 * (p02 - 1.0) * (p02 - 2.0) * (1.0 / 6.0)
    return trusted(count, everything, sizes)


@kernel
def _long_path_confidence(low, high, begin, size, floats):
    sizes = 1.0
    for k in range(begin, begin + size):
        sizes *= float(high[k] - low[k] + 1)
    if sizes > LARGEST_COUNT:
        return np.nan
    a = low[begin]
    b = high[begin + size - 1]
    for k in range(size):
        a = max(a, low[begin + k])
        b = min(b, high[begin + size - 1 - k])
        floats[LOW, k] = float(a - low[begin])
        floats[HIGH, size - 1 - k] = float(b - low[begin])
    # Positions are differences of these: float64 must hold each of them exactly.
    if floats[HIGH, size - 1] > float(MOST_EXACT_TICKS):
        return np.nan
    for k in range(size):
        if floats[LOW, k] > floats[HIGH, k]:
            return 0.0
    _suffix_counts(0, size, 0, floats)
    count = floats[CHAINS, 0]
    return trusted(count, floats[MAGNITUDE, 0], sizes)


@kernel
def _count(a, b, w, floats):
    """Return the number of point matches within tight bounds; NaN where float64 cannot give it. O(l^3)."""
    length = a.shape[0]
    for k in range(length):
        floats[LOW, k] = float(a[k] - a[0])
        floats[HIGH, k] = float(b[k] - a[0])
        floats[LOW, k + length] = floats[LOW, k] + w
        floats[HIGH, k + length] = floats[HIGH, k] + w
    total = 0.0
    absolute = 0.0
    outer = 1.0
    for back in range(length):
        start = (length - back) % length
        _suffix_counts(start, length, back + 1, floats)
        factor = outer
        for end in range(back, length):
            room = floats[HIGH, start] + 1.0 - floats[LOW, start + end]
            size = end + 1
            if room < size:
                break
            factor /= size if end == back else -size
            term = factor * _falling(room, size)
            total += term * floats[CHAINS, end + 1]
            absolute += abs(term) * floats[MAGNITUDE, end + 1]
        outer /= -(back + 1)
    return trusted(total, absolute, 1.0)


@kernel
def _weakly_increasing(room, size):
    """Return the number of weakly increasing sequences of ``size`` values out of ``room + 1``."""
    count = 1.0
    for i in range(size):
        count = count * (room + size - i) / (i + 1)
    return count


@kernel
def _count_in_pieces(a, b, w, bounds, floats):
    """Return the count by pieces of the first event's time, where one sum over all of it cancels.

    Intervals much longer than the window make the terms of the cycle much larger than the count. While
    no other event's bound is within reach of the window the count per tick of the first event is
    constant; what is left at either end is no longer than the window, and its terms are small.
    """
    length = a.shape[0]
    low, high = bounds[0], bounds[1]
    start = a[length - 1]
    stop = min(b[0], b[1] - w)
    first, last = a[0], b[0]
    if start > stop:
        return np.nan
    total = (stop - start + 1) * _weakly_increasing(w, length - 1)
    for side in range(2):
        for j in range(length):
            low[j] = a[j]
            high[j] = b[j]
        if side == 0:
            high[0] = start - 1
        else:
            low[0] = stop + 1
        if low[0] > high[0] or low[0] < first or high[0] > last:
            continue
        ta, tb = bounds[2], bounds[3]
        if tight_bounds(low, high, w, ta, tb):
            total += _count(ta, tb, w, floats)
    return total


@kernel
def chain_confidence(lower, upper, w, a, b, bounds, floats):
    """Return P(t_0 < ... < t_{l-1}, t_{l-1} - t_0 <= W - 1) for independent uniform times.

    Parameters
    ----------
    lower, upper : (l,) int64
        Interval bounds minus position, ticks, inclusive.
    w : int64
        ``W - l``, at least 0.
    a, b : (l,) int64; bounds : (4, l) int64; floats : (4, 2 l + 1) float64
        Work arrays.

    Returns
    -------
    float64
        0 if the chain is not feasible; NaN where :func:`confidence.chain.exact.trusted` gives it. O(l) where
        each piece of the cycle has at most three positions, at most O(l^3).
    """
    length = lower.shape[0]
    cut = -1
    if upper[length - 1] <= lower[0] + w:
        cut = 0
    else:
        for j in range(1, length):
            if upper[j - 1] <= lower[j]:
                cut = j
                break
    if cut < 0:
        if not tight_bounds(lower, upper, w, a, b):
            return 0.0
        sizes = 1.0
        for j in range(length):
            sizes *= float(upper[j] - lower[j] + 1)
        # The positions are differences of these bounds: float64 must hold each of them exactly.
        if sizes > LARGEST_COUNT or b[length - 1] - a[0] > MOST_EXACT_TICKS - w or w > MOST_EXACT_TICKS:
            return np.nan
        count = _count(a, b, w, floats)
        if math.isnan(count):
            count = _count_in_pieces(a, b, w, bounds, floats)
        return count / sizes
    confidence = 1.0
    begin = 0
    for k in range(length + 1):
        j = cut + k
        if k < length:
            a[k] = lower[j] if j < length else lower[j - length] + w
            b[k] = upper[j] if j < length else upper[j - length] + w
        if k == length or (k > begin and b[k - 1] <= a[k]):
            confidence *= path_confidence(a, b, begin, k - begin, floats)
            begin = k
    return confidence


@kernel(allocates=True)
def _confidence_of_few(lower0, upper0, lower1, upper1, lower2, upper2, length, w):
    """Return :func:`chain_confidence` for the rare short chains on which the written-out sum cancels."""
    lower, upper = np.empty(length, np.int64), np.empty(length, np.int64)
    lower[0], lower[1], lower[length - 1] = lower0, lower1, lower2
    upper[0], upper[1], upper[length - 1] = upper0, upper1, upper2
    bounds = np.empty((6, length), np.int64)
    return chain_confidence(lower, upper, w, bounds[4], bounds[5], bounds[:4], np.empty((4, 2 * length + 1)))


@kernel
def sum_of_two(lower0, upper0, lower1, upper1, w, sizes):
    """Return :func:`chain_confidence` for two events, written out; NaN where the sum cancels. O(1)."""
    a0 = max(lower0, lower1 - w)
    a1 = max(lower1, a0)
    b1 = min(upper1, upper0 + w)
    b0 = min(upper0, b1)
    if a0 > b0 or a1 > b1:
        return 0.0
    everything = float(b0 - a0 + 1) * float(b1 - a1 + 1)
    inner = max(float(b0 - a1 + 1), 1.0)
    outer = max(float(b1 - a0 - w + 1), 1.0)
    count = everything - 0.5 * (inner * (inner - 1.0) + outer * (outer - 1.0))
    return trusted(count, everything, sizes)


@kernel(allocates=True)
def confidence_of_two(lower0, upper0, lower1, upper1, w, sizes):
    """Return :func:`chain_confidence` for two events. O(1)."""
    value = sum_of_two(lower0, upper0, lower1, upper1, w, sizes)
    if math.isnan(value):
        return _confidence_of_few(lower0, upper0, lower1, upper1, lower1, upper1, 2, w)
    return value


@kernel
def sum_of_three(lower0, upper0, lower1, upper1, lower2, upper2, w, sizes):
    """Return :func:`chain_confidence` for three events, written out; NaN where the sum cancels. O(1)."""
    if upper1 <= lower2 and upper2 - lower0 <= w:
        pair = pair_confidence(lower0, upper0, lower1, upper1)
        if not math.isnan(pair):
            return pair
    a1 = max(lower0, lower1)
    a2 = max(a1, lower2)
    a0 = max(lower0, a2 - w)
    a1 = max(a1, a0)
    b1 = min(upper2, upper1)
    b0 = min(b1, upper0)
    b2 = min(upper2, b0 + w)
    b1 = min(b1, b2)
    if a0 > b0 or a1 > b1 or a2 > b2:
        return 0.0
    n0 = float(b0 - a0 + 1)
    n1 = float(b1 - a1 + 1)
    n2 = float(b2 - a2 + 1)
    p01 = max(float(b0 - a1 + 1), 1.0)
    p12 = max(float(b1 - a2 + 1), 1.0)
    p20 = max(float(b2 - a0 - w + 1), 1.0)
    t012 = max(float(b0 - a2 + 1), 1.0)
    t120 = max(float(b1 - a0 - w + 1), 1.0)
    t201 = max(float(b2 - a1 - w + 1), 1.0)
    everything = n0 * n1 * n2
    pairs = 0.5 * (p01 * (p01 - 1.0) * n2 + p12 * (p12 - 1.0) * n0 + p20 * (p20 - 1.0) * n1)
    triples = (
        t012 * (t012 - 1.0) * (t012 - 2.0)
        + t120 * (t120 - 1.0) * (t120 - 2.0)
        + t201 * (t201 - 1.0) * (t201 - 2.0)
    ) * (1.0 / 6.0)
    count = everything - pairs + triples
    return trusted(count, everything, sizes)


@kernel(allocates=True)
def confidence_of_three(lower0, upper0, lower1, upper1, lower2, upper2, w, sizes):
    """Return :func:`chain_confidence` for three events. O(1)."""
    value = sum_of_three(lower0, upper0, lower1, upper1, lower2, upper2, w, sizes)
    if math.isnan(value):
        return _confidence_of_few(lower0, upper0, lower1, upper1, lower2, upper2, 3, w)
    return value
