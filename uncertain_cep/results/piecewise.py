"""The mean of one time of a chain of uniform intervals, at a cost independent of their length.

How many chains have event j at tick x is a polynomial in x of degree l - 1 at most, between breaks that are
bounds of the intervals, or a window away from one: order and window are difference constraints, whose
matrix is totally unimodular, so that the numbers of integer points are polynomials of the bounds within each
chamber (Brion and Vergne, J. AMS 10(4), 1997). Long pieces are summed from l points each: through these goes
the polynomial, and sums of polynomials over equidistant points have a closed form (Euler and Maclaurin).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from confidence.flat_lists import end_to_end

__all__ = ["centres", "chebyshev_sums", "weighted_sums"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


def centres(
    lower: Int64, upper: Int64, w: int, event: Int64, law: Callable[[Int64, Int64], Float64]
) -> Float64:
    """Return the sum over an event's ticks of the law times the ticks behind its first one, (n,) float64.

    Parameters
    ----------
    lower, upper : (l, n) int64
        Interval bounds of n chains, ticks, with the position of each event taken off.
    w : int
        Window minus l.
    event : (n,) int64
        Whose time it is.
    law : callable
        Takes numbers of chains and ticks of the event, positions taken off, (k,) each; returns
        P(the chain, and the event at this tick), (k,) float64.
    """
    length, count = lower.shape
    here = np.arange(count)
    first, last = lower[event, here], upper[event, here]
    least = np.maximum.accumulate(lower, axis=0)
    most = np.minimum.accumulate(upper[::-1], axis=0)[::-1]
    begin = np.maximum(least[event, here], least[-1] - w)
    end = np.minimum(most[event, here], most[0] + w)
    breaks = np.concatenate([bounds + shift for bounds in (lower, upper) for shift in (-w, 0, w)])
    assert bool((begin <= last).all())
    return weighted_sums(first, begin, end, breaks, length, law)


def weighted_sums(
    first: Int64, begin: Int64, end: Int64, breaks: Int64, length: int, law: Callable[[Int64, Int64], Float64]
) -> Float64:
    """Return the sum over ticks of a piecewise polynomial law times the ticks behind ``first``, (n,) float64.

    Parameters
    ----------
    first, begin, end : (n,) int64
        The tick to count from, and the first and last one where the law is not 0.
    breaks : (k, n) int64
        Where another polynomial begins, in any order, beside ``begin``.
    length : int
        Behind the degree of the polynomials.
    law : callable
        Takes numbers below n and ticks, (k,) each; returns the law there, (k,) float64.
    """
    count = len(first)
    cuts = np.sort(np.concatenate((np.clip(breaks, begin, end + 1), begin[None], end[None] + 1)), axis=0)
    piece, chain = np.nonzero(np.diff(cuts, axis=0))
    start, size = cuts[piece, chain], np.diff(cuts, axis=0)[piece, chain]
    found = np.zeros(count)
    short = size <= 2 * length * length
    ticks = size[short]
    at, of = end_to_end(start[short], ticks)[0], np.repeat(chain[short], ticks)
    if len(at):
        np.add.at(found, of, law(of, at) * (at - first[of]))
    start, size, chain = start[~short], size[~short], chain[~short]
    if len(start):
        spread = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, length)) if length > 1 else np.zeros(1)
        points = np.rint(spread[:, None] * (size - 1)).astype(np.int64)
        values = law(np.tile(chain, length), (start + points).ravel()).reshape(length, -1)
        scaled = 2.0 * points / (size - 1) - 1.0
        basis = np.moveaxis(chebyshev.chebvander(scaled, length - 1), 1, 0)
        terms = np.linalg.solve(basis, values.T[:, :, None])[:, :, 0].T
        sums = chebyshev_sums(size, length + 1)
        whole = (terms * sums[:length]).sum(axis=0)
        # z T_d = (T_(d+1) + T_|d-1|) / 2, and z runs from -1 to 1 over the piece.
        below = np.concatenate((sums[1:2], sums[: length - 1]))
        moved = (terms * 0.5 * (sums[1:] + below)).sum(axis=0)
        np.add.at(found, chain, whole * (start - first[chain] + 0.5 * (size - 1)) + moved * 0.5 * (size - 1))
    return found


def chebyshev_sums(size: Int64, count: int) -> Float64:
    """Return the sums of the first Chebyshev polynomials over points from -1 to 1, (count, n) float64.

    ``size`` points, (n,) int64, at least 2, with equal steps. By the midpoint rule of Euler and Maclaurin,
    which has finitely many terms for a polynomial.
    """
    step = 2.0 / (size - 1)
    edge = 1.0 + 0.5 * step
    sums = np.zeros((count, len(size)))
    for degree in range(0, count, 2):
        series = np.zeros(degree + 1)
        series[degree] = 1.0
        whole = chebyshev.chebint(series)
        total = chebyshev.chebval(edge, whole) - chebyshev.chebval(-edge, whole)
        slope = chebyshev.chebder(series)
        for k in range(1, degree // 2 + 1):
            change = chebyshev.chebval(edge, slope) - chebyshev.chebval(-edge, slope)
            total += midpoint_coefficient(2 * k) * step ** (2 * k) * change
            slope = chebyshev.chebder(slope, 2) if len(slope) > 2 else np.zeros(1)
        sums[degree] = total / step
    return sums


@cache
def midpoint_coefficient(order: int) -> float:
    """Return B_n(1/2) / n! for even n: a coefficient of x / (2 sinh(x / 2)), and of the midpoint rule."""
    # The reciprocal of the series of sinh(x / 2) / (x / 2), by powers of x squared.
    half = order // 2
    given = [1.0 / (4.0**k * math.factorial(2 * k + 1)) for k in range(half + 1)]
    found = [1.0]
    for k in range(1, half + 1):
        found.append(-sum(given[i] * found[k - i] for i in range(1, k + 1)))
    return found[half]
