"""Exact confidence and tight range of a chain whose times have explicit probability mass functions.

Window out of reach: one pass of prefix sums over the ticks. Window in reach: the sum over the first
time s of ``p_0(s) (M_{s+1} ... M_{s+W-1})[0, l-1]`` with ``M_t = I + sum_j p_j(t) E_{j-1,j}``; the product
over a window is that of a suffix and a prefix of two blocks of W - 1 ticks, so every tick costs O(l^2)
whatever the window. All terms are non-negative: nothing cancels.
"""

from __future__ import annotations

import numpy as np

from confidence.chain.distribution import exactly
from confidence.kernel import kernel

__all__ = ["chain_confidence_pmf", "support_range"]


@kernel
def _support_from(lower, upper, offset, pmf, j, t):
    """Return the first tick >= t that event j can have, or ``upper[j] + 1``."""
    t = max(t, lower[j])
    if offset[j] >= 0:
        while t <= upper[j] and not pmf[offset[j] + t - lower[j]] > 0.0:
            t += 1
    return min(t, upper[j] + 1)


@kernel
def _support_until(lower, upper, offset, pmf, j, t):
    """Return the last tick <= t that event j can have, or ``lower[j] - 1``."""
    t = min(t, upper[j])
    if offset[j] >= 0:
        while t >= lower[j] and not pmf[offset[j] + t - lower[j]] > 0.0:
            t -= 1
    return max(t, lower[j] - 1)


@kernel
def support_range(lower, upper, offset, pmf, window):
    """Return ``(first, last)``: the tight time range of a chain, or ``(0, -1)`` if it cannot happen.

    For a fixed first time the earliest possible successor at each step makes the chain as short as it
    can be, so the first feasible time is found by trying them in order; the last one by the mirror
    image. Typically O(sum U), at worst O(U sum U).

    Parameters
    ----------
    lower, upper : (l,) int64
        Interval bounds, ticks, inclusive.
    offset : (l,) int64
        Where the event's probabilities start in ``pmf``; -1 for uniform.
    pmf : (m,) float64
    window : int64
        W, ticks.
    """
    length = lower.shape[0]
    first = _support_from(lower, upper, offset, pmf, 0, lower[0])
    found = False
    while first <= upper[0]:
        t = first
        for j in range(1, length):
            t = _support_from(lower, upper, offset, pmf, j, t + 1)
            if t > upper[j]:
                return 0, -1
        if t - first <= window - 1:
            found = True
            break
        first = _support_from(lower, upper, offset, pmf, 0, max(first + 1, t - window + 1))
    if not found:
        return 0, -1
    end = length - 1
    last = _support_until(lower, upper, offset, pmf, end, upper[end])
    while last >= lower[end]:
        t = last
        for j in range(end - 1, -1, -1):
            t = _support_until(lower, upper, offset, pmf, j, t - 1)
        if last - t <= window - 1:
            break
        last = _support_until(lower, upper, offset, pmf, end, min(last - 1, t + window - 1))
    return first, last


@kernel(allocates=True)
def _without_window(lower, upper, offset, pmf, first, last):
    length = lower.shape[0]
    reached = np.empty(length)
    for j in range(length):
        reached[j] = 0.0
    for t in range(first, last + 1):
        for j in range(length - 1, 0, -1):
            if reached[j - 1] > 0.0:
                reached[j] += reached[j - 1] * exactly(lower[j], upper[j], offset[j], pmf, t)
        reached[0] += exactly(lower[0], upper[0], offset[0], pmf, t)
    return reached[length - 1]


@kernel(allocates=True)
def _with_window(lower, upper, offset, pmf, window, first, last):
    length = lower.shape[0]
    span = window - 1
    total = 0.0
    rows = np.empty((span + 1, length))
    suffix = np.empty((length, length))
    prefix = np.empty((length, length))
    stop = min(last, upper[0])
    block = first
    while block <= stop:
        # rows[i] is row 0 of M_{block+i+1} ... M_{block+span}: what a window from s = block + i still sees
        for j in range(length):
            for k in range(length):
                suffix[j, k] = prefix[j, k] = 0.0
            suffix[j, j] = prefix[j, j] = 1.0
        for k in range(length):
            rows[span, k] = suffix[0, k]
        for i in range(span - 1, -1, -1):
            t = block + i + 1
            for j in range(length - 1):
                p = exactly(lower[j + 1], upper[j + 1], offset[j + 1], pmf, t)
                if p > 0.0:
                    for k in range(j + 1, length):
                        suffix[j, k] += p * suffix[j + 1, k]
            for k in range(length):
                rows[i, k] = suffix[0, k]
        for i in range(span + 1):
            s = block + i
            if s > stop:
                break
            if i > 0:
                t = block + span + i
                for k in range(length - 1, 0, -1):
                    p = exactly(lower[k], upper[k], offset[k], pmf, t)
                    if p > 0.0:
                        for j in range(k):
                            prefix[j, k] += p * prefix[j, k - 1]
            p = exactly(lower[0], upper[0], offset[0], pmf, s)
            if p > 0.0:
                inside = 0.0
                for k in range(length):
                    inside += rows[i, k] * prefix[k, length - 1]
                total += p * inside
        block += span + 1
    return total


@kernel(allocates=True)
def chain_confidence_pmf(lower, upper, offset, pmf, window, first, last):
    """Return the confidence of a chain with explicit or uniform probabilities.

    Parameters
    ----------
    lower, upper, offset, pmf, window
        As for :func:`support_range`.
    first, last : int64
        What :func:`support_range` returned, ``first <= last``.

    Notes
    -----
    O(sum U) if the window cannot bind, else O((U + W) l^2); memory O(W l).
    """
    if last - first <= window - 1:
        return _without_window(lower, upper, offset, pmf, first, last)
    return _with_window(lower, upper, offset, pmf, window, first, last)
