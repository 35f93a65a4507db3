"""Sums over uniform times with bounds on each difference of neighbours, and of the last from the first.

A window closes the path of differences to a cycle. Holding one time opens it again: what is left is a path
from the time behind it, over the last and the first, to the time before it. As a function of the time that is
held it is a polynomial between breakpoints, which are bounds of the others moved along the cycle. So its sum
takes a few values a piece, with positive weights.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.pieces import HIGHEST_DEGREE, add_point, node_weights
from confidence.kernel import kernel
from confidence.timed.bounds import UNBOUND
from confidence.timed.paths import PathWork, path_probability

__all__ = ["CycleWork", "bounded_probability", "tighten"]

Int64 = NDArray[np.int64]

_MOST_BREAKS: Final = 2048
"""Most breakpoints; a cycle that has more is left to others."""

_FEW_HELD_TICKS: Final = 12
"""Ticks of the time that is held whose values are added one by one."""

LONGEST_CYCLE: Final = 8
"""Most events of a cycle whose sum is taken by pieces: one more than the degree of the longest rule."""


class CycleWork(NamedTuple):
    """Work arrays for cycles of just l times: bounds, a path, sizes, breakpoints, weights, and the path's."""

    bounds: Int64
    path: Int64
    size: NDArray[np.float64]
    breaks: Int64
    sums: Int64
    weight: NDArray[np.float64]
    pieces: PathWork

    @classmethod
    def of(cls, length: int) -> CycleWork:
        """Return them for so many times."""
        return cls(
            np.empty((2, length), dtype=np.int64),
            np.empty((4, length), dtype=np.int64),
            np.empty(length),
            np.empty(_MOST_BREAKS, dtype=np.int64),
            np.empty((2, _MOST_BREAKS), dtype=np.int64),
            np.empty(HIGHEST_DEGREE),
            PathWork.of(length),
        )


@kernel
def _pass(a, b, g, h):
    """Tighten the bounds along the path, there and back; return whether they leave some.

    As long as they do they are within those given, so that nothing overflows.
    """
    length = a.shape[0]
    for j in range(1, length):
        a[j] = max(a[j], a[j - 1] + g[j])
        if h[j] < UNBOUND:
            b[j] = min(b[j], b[j - 1] + h[j])
        if a[j] > b[j]:
            return False
    for j in range(length - 1, 0, -1):
        b[j - 1] = min(b[j - 1], b[j] - g[j])
        if h[j] < UNBOUND:
            a[j - 1] = max(a[j - 1], a[j] - h[j])
        if a[j - 1] > b[j - 1]:
            return False
    return True


@kernel
def tighten(lower, upper, g, h, window, a, b):
    """Write the tight bounds of times within bounds and a window; return whether there are any. O(l).

    Parameters
    ----------
    lower, upper : (l,) int64
        Ticks, inclusive.
    g, h : (l,) int64
        Least and largest difference from the time before; the first is not looked at.
    window : int64
        W: the last time less the first is at most W - 1.
    a, b : (l,) int64
        Overwritten.
    """
    length = lower.shape[0]
    for j in range(length):
        a[j], b[j] = lower[j], upper[j]
    if a[0] > b[0] or not _pass(a, b, g, h):
        return False
    a[0] = max(a[0], a[length - 1] - (window - 1))
    b[length - 1] = min(b[length - 1], b[0] + window - 1)
    if a[0] > b[0] or not _pass(a, b, g, h):
        return False
    feasible = True
    span = 0
    for j in range(1, length):
        feasible = feasible and g[j] <= h[j]
        span += g[j]
    # Else the differences alone are a cycle that no world meets.
    return feasible and span < window


@kernel
def _held(k, value, g, h, size, window, work):
    """Return the probability that all times but k meet their bounds, given that time k is ``value``."""
    a, b = work.bounds[0], work.bounds[1]
    length = a.shape[0]
    path = work.path
    for n in range(length - 1):
        j = (k + 1 + n) % length
        path[0, n], path[1, n] = a[j], b[j]
        work.size[n] = size[j]
        path[2, n] = g[j] if j > 0 else 1 - window
        path[3, n] = h[j] if j > 0 else UNBOUND
        # The neighbours of the one that is held; the edge from the last to the first is the window.
        if n == 0:
            path[0, n] = max(path[0, n], value + path[2, n])
            if path[3, n] < UNBOUND:
                path[1, n] = min(path[1, n], value + path[3, n])
            elif j == 0:
                path[1, n] = min(path[1, n], value)
        if n == length - 2:
            shortest = g[k] if k > 0 else 1 - window
            longest = h[k] if k > 0 else UNBOUND
            path[1, n] = min(path[1, n], value - shortest)
            if longest < UNBOUND:
                path[0, n] = max(path[0, n], value - longest)
    n = length - 1
    return path_probability(path[0, :n], path[1, :n], work.size[:n], path[2, :n], path[3, :n], work.pieces)


@kernel
def _from_one_side(k, step, g, h, window, points, work):
    """Add the bounds of other times, moved along the cycle to time k; return the number of breakpoints."""
    a, b = work.bounds[0], work.bounds[1]
    length = a.shape[0]
    sums, breaks = work.sums, work.breaks
    count = 1
    side = 0
    sums[0, 0] = 0
    i = k
    for _ in range(length - 1):
        # The edge into j; going on, j is behind it, going back, before it.
        j = (i + 1) % length if step > 0 else i
        i = (i + step) % length
        before = (j - 1) % length
        shortest = g[j] if j > 0 else 1 - window
        longest = h[j] if j > 0 else UNBOUND
        low_binds = a[j] - b[before] < shortest
        high_binds = longest < UNBOUND and b[j] - a[before] > longest
        following = 0
        for n in range(count):
            for upper in range(2):
                if (upper == 0 and low_binds) or (upper == 1 and high_binds):
                    move = longest if upper == 1 else shortest
                    total = sums[side, n] + (-move if step > 0 else move)
                    is_known = False
                    for m in range(following):
                        is_known = is_known or sums[1 - side, m] == total
                    if not is_known:
                        if following == _MOST_BREAKS:
                            return -1
                        sums[1 - side, following] = total
                        following += 1
        side = 1 - side
        count = following
        for n in range(count):
            for bound in range(2):
                value = work.bounds[bound, i] + sums[side, n]
                if points == _MOST_BREAKS:
                    return -1
                points = add_point(breaks, points, value, a[k], b[k])
    return points


@kernel
def _sum_of_piece(first, last, k, degree, g, h, size, window, work):
    """Return the sum over the values first..last of the time that is held, which are of one polynomial."""
    nodes, step = node_weights(last - first + 1, degree, work.weight)
    total = 0.0
    for n in range(nodes):
        held = _held(k, first + n * max(step, 1), g, h, size, window, work)
        total += held * work.weight[n] if step > 0 else held
    for value in range(first + (nodes - 1) * max(step, 1) + 1, last + 1):
        total += _held(k, value, g, h, size, window, work)
    return total


@kernel
def bounded_probability(lower, upper, size, g, h, window, work):
    """Return P(all times in their bounds, differences of neighbours in theirs, all within the window).

    Parameters
    ----------
    lower, upper, size, g, h
        See :func:`confidence.timed.paths.path_probability`.
    window : int64
        W, ticks.
    work : CycleWork
        For just as many times.

    Returns
    -------
    float64
        NaN if that takes too many pieces.
    """
    a, b = work.bounds[0], work.bounds[1]
    length = lower.shape[0]
    if not tighten(lower, upper, g, h, window, a, b):
        return 0.0
    if length == 1 or b[length - 1] - a[0] < window:
        return path_probability(a, b, size, g, h, work.pieces)
    k = 0
    for j in range(1, length):
        if b[j] - a[j] < b[k] - a[k]:
            k = j
    total = 0.0
    if b[k] - a[k] < _FEW_HELD_TICKS:
        for value in range(a[k], b[k] + 1):
            total += _held(k, value, g, h, size, window, work)
        return total / size[k]
    if length > LONGEST_CYCLE:
        return np.nan
    breaks = work.breaks
    breaks[0] = a[k]
    points = _from_one_side(k, 1, g, h, window, 1, work)
    if points >= 0:
        points = _from_one_side(k, -1, g, h, window, points, work)
    if points < 0:
        return np.nan
    for n in range(points):
        last = breaks[n + 1] - 1 if n + 1 < points else b[k]
        total += _sum_of_piece(breaks[n], last, k, length - 1, g, h, size, window, work)
    return total / size[k]
