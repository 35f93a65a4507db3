"""Sums that float64 cannot be trusted with: when that is so, and the same sums in whole numbers.

The confidence of a chain of uniform intervals is a sum of terms of both signs
(:mod:`confidence.chain.uniform`). Where they cancel, kernels give NaN, and Python redoes the sum. All other
confidences are sums of terms that are never negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.config import WORST_CANCELLATION
from confidence.kernel import kernel

__all__ = ["exact_chain_confidence", "redo_exactly", "trusted"]

Int64 = NDArray[np.int64]

_BETWEEN_LOOKS: Final = 32
"""Terms of a sum after which the caller's limits are looked at: each takes up to a millisecond."""


@kernel
def trusted(count, magnitude, sizes):
    """Return ``count / sizes``; NaN if the terms of the count, of summed ``magnitude``, cancel too much."""
    return count / sizes if count * WORST_CANCELLATION >= magnitude else np.nan


def redo_exactly(
    confidence: NDArray[np.float64], window: int, intervals: Callable[[int], tuple[Int64, Int64, Any]]
) -> None:
    """Replace the confidences that float64 could not give.

    Parameters
    ----------
    confidence : (n,) float64
        NaN where that is so.
    window : int
        W, ticks.
    intervals : callable
        Gives the lower and the upper bounds of a match's events, and their boxes or None, see
        :func:`exact_chain_confidence`.
    """
    # A sum is NaN if anything in it is, and much cheaper to look at.
    if not np.isnan(confidence.sum()):
        return
    for n in np.flatnonzero(np.isnan(confidence)).tolist():
        lower, upper, boxes = intervals(n)
        exact = exact_chain_confidence(
            lower.tolist(), upper.tolist(), window, None if boxes is None else boxes.tolist()
        )
        confidence[n] = float(exact)


def exact_chain_confidence(
    lower: Sequence[int], upper: Sequence[int], window: int, boxes: Sequence[Sequence[int]] | None = None
) -> Fraction:
    """Return the confidence of one chain of uniform intervals as an exact fraction.

    Parameters
    ----------
    lower, upper : sequence of l int
        Interval bounds, ticks, inclusive.
    window : int
        W, ticks.
    boxes : two sequences of l int, optional
        First and last tick that is asked of each event: P(the chain, and its events in their boxes).

    Notes
    -----
    The cycle of inequalities of :mod:`confidence.chain.uniform`. Where one of them holds in any case, the
    cycle falls apart into paths, which take O(l min(l, U)) operations on integers of about ``l log2(U)``
    bits; else it takes l times as many.
    """
    length = len(lower)
    ticks = math.prod(last - first + 1 for first, last in zip(lower, upper, strict=True))
    if boxes is not None:
        lower = [max(pair) for pair in zip(lower, boxes[0], strict=True)]
        upper = [min(pair) for pair in zip(upper, boxes[1], strict=True)]
    w = window - length
    if w < 0:
        return Fraction(0)
    low = [value - j for j, value in enumerate(lower)]
    high = [value - j for j, value in enumerate(upper)]
    earliest, latest = max(low) - w, min(high) + w
    a = [max(value, earliest) for value in accumulate(low, max)]
    b = [min(value, latest) for value in accumulate(reversed(high), min)][::-1]
    if any(first > last for first, last in zip(a, b, strict=True)):
        return Fraction(0)
    a += [value + w for value in a]
    b += [value + w for value in b]
    cuts = [j for j in range(1, length + 1) if b[j - 1] <= a[j]]
    if cuts:
        ends = [*cuts[1:], cuts[0] + length]
        return Fraction(math.prod(map(partial(_paths, a, b), cuts, ends)), ticks)
    return Fraction(_cycles(a, b, length), ticks)


def _arcs(a: list[int], b: list[int], start: int, k: int, first: int, counts: list[int]) -> int:
    """Return the signed sum over the arcs from k that end at ``first`` or later."""
    total = 0
    high = b[start + k] + 1
    for end in range(first, len(counts) - 1):
        room, size = high - a[start + end], end - k + 1
        if room < size:
            break
        term = math.comb(room, size) * counts[end + 1]
        total += -term if (end - k) % 2 else term
        if end % _BETWEEN_LOOKS == 0:
            checkpoint()
    return total


def _suffixes(a: list[int], b: list[int], start: int, size: int, lowest: int) -> list[int]:
    """Return the number of weakly increasing chains of positions k to ``size``, for each k >= lowest.

    Positions are counted from ``start`` along the tight bounds.
    """
    counts = [1] * (size + 1)
    for k in range(size - 1, lowest - 1, -1):
        checkpoint()
        counts[k] = _arcs(a, b, start, k, k, counts)
    return counts


def _paths(a: list[int], b: list[int], begin: int, end: int) -> int:
    """Return the number of weakly increasing chains of the positions from ``begin`` to before ``end``."""
    return _suffixes(a, b, begin, end - begin, 0)[0]


def _cycles(a: list[int], b: list[int], length: int) -> int:
    """Return the number of weakly increasing chains of all positions that end within the window."""
    total = 0
    for back in range(length):
        start = (length - back) % length
        total += _arcs(a, b, start, 0, back, _suffixes(a, b, start, length, back + 1))
    return total
