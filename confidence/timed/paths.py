"""Sums over uniform times with bounds on each difference of neighbours, at a cost that no interval decides.

The probability of the first j times with the last of them at t, ``f_j(t) = p_j sum f_(j-1)(s)`` over s from
``t - h_j`` to ``t - g_j``, is a polynomial between breakpoints. On a piece [u, v] it is held as
``sum_i c_i C(t - u, i) C(v - t, d - i)``, the discrete Bernstein basis, in which every step has positive
terms only: nothing cancels.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.timed.bounds import UNBOUND

__all__ = ["PathWork", "path_probability"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_MOST_PIECES: Final = 512
"""Most pieces of a polynomial; a path that takes more is left to others."""


class PathWork(NamedTuple):
    """Work arrays for paths of at most l times.

    Attributes
    ----------
    start : (2, _MOST_PIECES + 1) int64
        Where the pieces of two neighbouring times start.
    degree : (2, _MOST_PIECES) int64, coefficient : (2, _MOST_PIECES, l + 1) float64
        What each piece is.
    table : (l + 2, l + 2) float64
    """

    start: Int64
    degree: Int64
    coefficient: Float64
    table: Float64

    @classmethod
    def of(cls, length: int) -> PathWork:
        """Return them for so many times."""
        return cls(
            np.empty((2, _MOST_PIECES + 1), dtype=np.int64),
            np.empty((2, _MOST_PIECES), dtype=np.int64),
            np.empty((2, _MOST_PIECES, length + 1)),
            np.empty((length + 2, length + 2)),
        )


@kernel
def _choose(n, k):
    """Return C(n, k) of whole numbers n >= 0 and k as a float."""
    if k < 0:
        return 0.0
    product = 1.0
    for i in range(k):
        product *= float(n - i) / float(i + 1)
    return product


@kernel
def _add(table, value, ahead, i, right, j, highest):
    """Add ``value C(x - u, i) C(v - x, j)`` to a table of such products on a part of [u, v].

    The part starts ``ahead`` ticks behind u and ends ``right`` before v; what is of a degree above
    ``highest`` vanishes there.
    """
    for a in range(min(i, highest) + 1):
        part = value * _choose(ahead, i - a)
        if part > 0.0:
            for b in range(min(j, highest - a) + 1):
                table[a, b] += part * _choose(right, j - b)


@kernel
def _whole(work, side, i):
    """Return the sum of a piece over its ticks."""
    degree = work.degree[side, i]
    total = 0.0
    for k in range(degree + 1):
        total += work.coefficient[side, i, k]
    return total * _choose(work.start[side, i + 1] - work.start[side, i], degree + 1)


@kernel
def _breaks(work, side, pieces, low, high, g, h):
    """Write where the pieces of the next time start; return their number, or -1 if there are too many."""
    other = 1 - side
    start = work.start
    start[other, 0] = low
    count = 1
    p = 0
    q = 0
    while p <= pieces or q <= pieces:
        following = UNBOUND
        if p <= pieces:
            following = start[side, p] + g
        if q <= pieces and h < UNBOUND:
            following = min(following, start[side, q] + h)
        if following > high or following == UNBOUND:
            break
        if p <= pieces and start[side, p] + g == following:
            p += 1
        if q <= pieces and h < UNBOUND and start[side, q] + h == following:
            q += 1
        if following > low:
            if count == _MOST_PIECES:
                return -1
            start[other, count] = following
            count += 1
    start[other, count] = high + 1
    return count


@kernel
def _fill_table(work, side, pieces, i, k, r, s, g, h, inner):
    """Fill the table of the sums of a piece [r, s] of the next time; return their degree.

    The last term of a sum lies on piece i of the time before, ``pieces`` if behind all; the first on piece k,
    -1 if before all. ``inner`` is the sum of the pieces in between.
    """
    start, degree, coefficient, table = work
    highest = 0
    if i < pieces:
        highest = degree[side, i] + 1
    if k >= 0:
        highest = max(highest, degree[side, k] + 1)
    highest = min(highest, s - r)
    for a in range(highest + 1):
        for b in range(highest + 1 - a):
            table[a, b] = 0.0
    if i == k:
        d = degree[side, i]
        offset = r - h - start[side, i]
        right = start[side, i + 1] - 1 - (s - g)
        for a in range(d + 1):
            total = 0.0
            for b in range(d, -1, -1):
                # The sum of the coefficients a .. d - b.
                if d - b >= a:
                    total += coefficient[side, i, d - b]
                    _add(table, total * _choose(h - g + 1, d + 1 - a - b), offset, a, right, b, highest)
        return highest
    table[0, 0] = inner
    if i < pieces:
        d = degree[side, i]
        offset = r - g + 1 - start[side, i]
        right = start[side, i + 1] - 1 - (s - g)
        total = 0.0
        for q in range(1, d + 2):
            total += coefficient[side, i, q - 1]
            _add(table, total, offset, q, right, d + 1 - q, highest)
    if k >= 0:
        d = degree[side, k]
        offset = r - h - start[side, k]
        right = start[side, k + 1] - (s - h)
        total = 0.0
        for q in range(d, -1, -1):
            total += coefficient[side, k, q]
            _add(table, total, offset, q, right, d + 1 - q, highest)
    return highest


@kernel
def _next_pieces(work, side, pieces, low, high, g, h, size):
    """Write the pieces of the next time, which is in low..high; return their number, or -1."""
    break_count = _breaks(work, side, pieces, low, high, g, h)
    start, degree, coefficient, table = work
    other = 1 - side
    i = 0
    k = -1
    inner = 0.0
    for n in range(break_count):
        r = start[other, n]
        s = start[other, n + 1] - 1
        # Pieces that the last term has left behind are in between, until the first term comes to them.
        while i < pieces and start[side, i + 1] <= r - g:
            i += 1
        while h < UNBOUND and k + 1 < pieces and start[side, k + 1] <= r - h:
            k += 1
        inner = 0.0
        for m in range(k + 1, i):
            inner += _whole(work, side, m)
        highest = _fill_table(work, side, pieces, i, k, r, s, g, h, inner)
        # All terms in the basis of one degree.
        for e in range(highest):
            share = 1.0 / float(s - r - e)
            for a in range(e + 1):
                value = table[a, e - a] * share
                table[a + 1, e - a] += value * float(a + 1)
                table[a, e - a + 1] += value * float(e - a + 1)
        degree[other, n] = highest
        for a in range(highest + 1):
            coefficient[other, n, a] = table[a, highest - a] / size
    return break_count


@kernel
def path_probability(lower, upper, size, g, h, work):
    """Return P(every t_j in its bounds, g_j <= t_j - t_(j-1) <= h_j) of independent uniform times.

    Parameters
    ----------
    lower, upper : (l,) int64
        Ticks, inclusive.
    size : (l,) float64
        How many ticks each interval has; the bounds may be a part of it.
    g, h : (l,) int64
        Least and largest differences from the time before, ticks; h of UNBOUND bounds nothing, and the first
        of each is not looked at.
    work : PathWork

    Returns
    -------
    float64
        NaN if the polynomials have too many pieces. O(l^4) for each of these.
    """
    if lower[0] > upper[0]:
        return 0.0
    low = lower[0]
    high = upper[0]
    work.start[0, 0] = low
    work.start[0, 1] = high + 1
    work.degree[0, 0] = 0
    work.coefficient[0, 0, 0] = 1.0 / size[0]
    side = 0
    pieces = 1
    for j in range(1, lower.shape[0]):
        low = max(lower[j], low + g[j])
        high = min(upper[j], high + h[j]) if h[j] < UNBOUND else upper[j]
        if low > high:
            return 0.0
        pieces = _next_pieces(work, side, pieces, low, high, g[j], h[j], size[j])
        if pieces < 0:
            return np.nan
        side = 1 - side
    total = 0.0
    for i in range(pieces):
        total += _whole(work, side, i)
    return total
