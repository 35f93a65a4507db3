"""What float64 cannot be trusted with: when that is so, and the same sums in whole numbers.

The confidence of a chain of uniform intervals is a sum of terms of both signs
(:mod:`confidence.chain.uniform`). Where they cancel, kernels give NaN, and Python redoes the sum. All other
confidences are sums of terms that are never negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.config import WORST_CANCELLATION
from confidence.kernel import kernel

__all__ = ["exact_chain_confidence", "redo_exactly", "trusted"]

Int64 = NDArray[np.int64]


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
        found = exact_chain_confidence(
            lower.tolist(), upper.tolist(), window, None if boxes is None else boxes.tolist()
        )
        confidence[n] = float(found)


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
    The cycle of inequalities of :mod:`confidence.chain.uniform`. O(l^3) operations on integers of about
    ``l log2(U)`` bits.
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
    a = [max(max(low[: j + 1]), max(low) - w) for j in range(length)]
    b = [min(min(high[j:]), min(high) + w) for j in range(length)]
    if any(first > last for first, last in zip(a, b, strict=True)):
        return Fraction(0)
    a += [value + w for value in a]
    b += [value + w for value in b]
    total = 0
    for back in range(length):
        start = (length - back) % length
        counts = [1] * (length + 1)

        def arcs(k: int, first: int, start: int = start, counts: list[int] = counts) -> int:
            return sum(
                (-1) ** (end - k) * math.comb(max(b[start + k] - a[start + end] + 1, 0), end - k + 1)
                * counts[end + 1]
                for end in range(first, length)
            )  # fmt: skip

        for k in range(length - 1, back, -1):
            counts[k] = arcs(k, k)
        total += arcs(0, back)
    return Fraction(total, ticks)
