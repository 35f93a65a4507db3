"""Sums over explicit probabilities of times with bounds on each difference of neighbours, tick by tick.

A sum over the ticks between two distances is one over a sliding window of as many ticks. The sums of each
block of that length, from its start and to its end, give any such window as one of each: nothing is
subtracted.
"""

from __future__ import annotations

import math

from confidence.kernel import kernel
from confidence.timed.bounds import UNBOUND
from confidence.timed.cycles import tighten

__all__ = ["describe_by_ticks"]


@kernel
def _running(front, size, block, prefix, suffix):
    """Write the sums of each block from its start and to its end."""
    for begin in range(0, size, block):
        end = min(begin + block, size)
        total = 0.0
        for k in range(begin, end):
            total += front[k]
            prefix[k] = total
        total = 0.0
        for k in range(end - 1, begin - 1, -1):
            total += front[k]
            suffix[k] = total


@kernel
def _between(prefix, suffix, size, following, x, y):
    """Return the sum over x..y, as long as a block or cut by the ends of the values.

    ``following`` is where the block behind that of x begins.
    """
    if y < 0 or x >= size:
        return 0.0
    y = min(y, size - 1)
    if x <= 0:
        return prefix[y]
    return suffix[x] + (prefix[y] if y >= following else 0.0)


@kernel
def _weight(j, t, offset, size, values):
    """Return P(t_j = t)."""
    return values[offset[j] + t] if size[j] == 0.0 else 1.0 / size[j]


@kernel
def _pass(a, b, g, h, offset, size, values, step, front, sums):
    """Carry the weights of the times from one end to the other; return where ``front`` has the last."""
    length = a.shape[0]
    j = 0 if step > 0 else length - 1
    side = 0
    for t in range(a[j], b[j] + 1):
        front[side, t - a[j]] = _weight(j, t, offset, size, values)
    for _ in range(length - 1):
        edge = j + 1 if step > 0 else j
        following = j + step
        width = b[j] - a[j] + 1
        block = width
        if h[edge] < UNBOUND:
            block = min(width, h[edge] - g[edge] + 1)
        _running(front[side], width, block, sums[0], sums[1])
        behind = block
        for t in range(a[following], b[following] + 1):
            # A block as long as all there is reaches to its end, or from its start.
            x = t - h[edge] - a[j] if h[edge] < UNBOUND else -1
            y = t - g[edge] - a[j]
            if step < 0:
                x = t + g[edge] - a[j]
                y = t + h[edge] - a[j] if h[edge] < UNBOUND else width
            while behind <= x:
                behind += block
            weight = _weight(following, t, offset, size, values)
            front[1 - side, t - a[following]] = weight * _between(sums[0], sums[1], width, behind, x, y)
        side = 1 - side
        j = following
    return side


@kernel
def describe_by_ticks(lower, upper, offset, size, values, g, h, window, bounds, front, sums, out):
    """Fill range and confidence of matches of l events each, some with explicit probabilities.

    Parameters
    ----------
    lower, upper : (k, l) int64
        The ticks that their events may happen at, inclusive.
    offset : (k, l) int64
        Where the probability of tick 0 would be among ``values``, for explicit ones.
    size : (k, l) float64
        How many ticks a uniform event has; 0 for explicit probabilities.
    values : (m,) float64
    g, h, window
        See :func:`confidence.timed.bounded_matches.describe_bounded`.
    bounds : (2, l) int64, front, sums : (2, u) float64
        Work arrays, for the ticks of the longest event.
    out : tuple of (k,) int64 twice and (k,) float64
        Overwritten; the confidence is NaN where the window binds. O(sum of ticks) a match.
    """
    out_lower, out_upper, out_confidence = out
    length = lower.shape[1]
    a, b = bounds[0], bounds[1]
    for n in range(lower.shape[0]):
        out_lower[n], out_upper[n], out_confidence[n] = 0, -1, 0.0
        m = min(n, window.shape[0] - 1)
        if not tighten(lower[n], upper[n], g[m], h[m], window[m], a, b):
            continue
        if b[length - 1] - a[0] >= window[m]:
            out_confidence[n] = math.nan
            continue
        side = _pass(a, b, g[m], h[m], offset[n], size[n], values, 1, front, sums)
        total = 0.0
        for t in range(a[length - 1], b[length - 1] + 1):
            weight = front[side, t - a[length - 1]]
            total += weight
            if weight > 0.0:
                out_upper[n] = t
        if not total > 0.0:
            continue
        out_confidence[n] = total
        out_lower[n] = a[0]
        explicit = False
        for j in range(length):
            explicit = explicit or size[n, j] == 0.0
        if not explicit:
            # The bounds are tight, and no tick between them is impossible.
            continue
        side = _pass(a, b, g[m], h[m], offset[n], size[n], values, -1, front, sums)
        while not front[side, out_lower[n] - a[0]] > 0.0:
            out_lower[n] += 1
