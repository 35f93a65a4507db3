"""Probabilities of one event's time: uniform over an interval, or given tick by tick.

``offset`` is where the event's probabilities start in ``pmf``, -1 for uniform; ``head`` and ``tail`` are the
:func:`running_sums` of ``pmf``. Bounds and times are ticks, bounds inclusive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel

__all__ = ["Intervals", "Pmfs", "at_least", "at_most", "exactly", "inside", "running_sums"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Intervals(NamedTuple):
    """The intervals of some events, all (n,) int64.

    Attributes
    ----------
    lower, upper
        Ticks, inclusive.
    offset
        Where an event's probabilities start in :class:`Pmfs`; -1 for uniform.
    """

    lower: Int64
    upper: Int64
    offset: Int64


class Pmfs(NamedTuple):
    """Explicit probabilities, one event's behind the other's, all (m,) float64.

    Attributes
    ----------
    values
        P(t) for each tick of an event's interval.
    head, tail
        The sums of an event's probabilities up to each one, and from it on.
    """

    values: Float64
    head: Float64
    tail: Float64

    @classmethod
    def of(cls, values: Float64, lower: Int64, upper: Int64, offset: Int64) -> Pmfs:
        """Return probabilities with their sums, see :func:`running_sums`."""
        found = cls(values, np.zeros_like(values), np.zeros_like(values))
        running_sums(lower, upper, offset, *found)
        return found


@kernel
def running_sums(lower, upper, offset, pmf, head, tail):
    """Write for each probability of each explicit pmf the sum up to it and from it on. O(sum U)."""
    for i in range(offset.shape[0]):
        if offset[i] >= 0:
            size = upper[i] - lower[i] + 1
            total = 0.0
            for k in range(offset[i], offset[i] + size):
                total += pmf[k]
                head[k] = total
            total = 0.0
            for k in range(offset[i] + size - 1, offset[i] - 1, -1):
                total += pmf[k]
                tail[k] = total


@kernel
def exactly(low, high, offset, pmf, t):
    """Return P(x = t)."""
    if t < low or t > high:
        return 0.0
    return pmf[offset + t - low] if offset >= 0 else 1.0 / float(high - low + 1)


@kernel
def at_most(low, high, offset, head, t):
    """Return P(x <= t)."""
    if t < low:
        return 0.0
    if t >= high:
        return 1.0
    return head[offset + t - low] if offset >= 0 else float(t - low + 1) / float(high - low + 1)


@kernel
def at_least(low, high, offset, tail, t):
    """Return P(x >= t)."""
    if t > high:
        return 0.0
    if t <= low:
        return 1.0
    return tail[offset + t - low] if offset >= 0 else float(high - t + 1) / float(high - low + 1)


@kernel
def inside(low, high, offset, pmf, s, t):
    """Return P(s < x < t), term by term: a difference of running sums could cancel. O(t - s)."""
    first = max(low, s + 1)
    last = min(high, t - 1)
    if first > last:
        return 0.0
    if offset < 0:
        return float(last - first + 1) / float(high - low + 1)
    total = 0.0
    for k in range(offset + first - low, offset + last - low + 1):
        total += pmf[k]
    return total
