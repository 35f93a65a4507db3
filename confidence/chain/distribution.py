"""Probabilities of one event's time: uniform over an interval, or given tick by tick.

``offset`` is where the event's probabilities start in ``pmf``, -1 for uniform; ``head`` and ``tail`` are the
:func:`running_sums` of ``pmf``. Bounds and times are ticks, bounds inclusive.

An event that must stay out of gaps may not have happened. That is as if it were before everything else: its
offset is ``DOUBTFUL - k``, and at k of each array stand the probability that it happened, and the offset that
it has if it did. So nothing else has to be handed on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel

__all__ = [
    "DOUBTFUL",
    "Intervals",
    "Pmfs",
    "at_least",
    "at_most",
    "doubtful",
    "exactly",
    "inside",
    "law_of_sum",
    "running_sums",
]

DOUBTFUL: Final = -2
"""Offsets from here down are those of events that may not have happened."""

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Intervals(NamedTuple):
    """The intervals of some events, all (n,) int64.

    Attributes
    ----------
    lower, upper
        Ticks, inclusive.
    offset
        Where an event's probabilities start in :class:`Pmfs`; -1 for uniform; ``DOUBTFUL`` or less if it may
        not have happened.
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
        pmfs = cls(values, np.zeros_like(values), np.zeros_like(values))
        running_sums(lower, upper, offset, *pmfs)
        return pmfs


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


def doubtful(pmfs: Pmfs, offset: Int64, probability: Float64, own: Int64 | None = None) -> tuple[Pmfs, Int64]:
    """Return the laws of events that happened with some probability, if at all.

    Parameters
    ----------
    pmfs : Pmfs
    offset : (n,) int64
        Of the events if they happened.
    probability : (n,) float64
    own : (n,) int64 or None
        The same as ``offset``, given the offsets of their clocks: two less than what is returned says so.

    Returns
    -------
    Pmfs
        Those given, and more behind them.
    offset : (n,) int64
    """
    chosen = np.flatnonzero(probability < 1.0)
    if not len(chosen):
        return pmfs, offset
    coded = offset.copy()
    laws = [law[chosen].astype(np.float64) for law in (offset, own) if law is not None]
    coded[chosen] = DOUBTFUL - (len(pmfs.values) + 2 * len(laws) * np.arange(len(chosen)))
    records = np.stack([part for law in laws for part in (probability[chosen], law)], axis=1).ravel()
    return Pmfs(*(np.concatenate((array, records)) for array in pmfs)), coded


@kernel
def exactly(low, high, offset, pmf, t):
    """Return P(x = t)."""
    if t < low or t > high:
        return 0.0
    if offset <= DOUBTFUL:
        k = DOUBTFUL - offset
        start = int(pmf[k + 1])
        return pmf[k] * (pmf[start + t - low] if start >= 0 else 1.0 / float(high - low + 1))
    return pmf[offset + t - low] if offset >= 0 else 1.0 / float(high - low + 1)


@kernel
def at_most(low, high, offset, head, t):
    """Return P(x <= t)."""
    if t >= high:
        return 1.0
    if offset <= DOUBTFUL:
        k = DOUBTFUL - offset
        start = int(head[k + 1])
        earlier = 0.0
        if t >= low:
            earlier = head[start + t - low] if start >= 0 else float(t - low + 1) / float(high - low + 1)
        return 1.0 - head[k] + head[k] * earlier
    if t < low:
        return 0.0
    return head[offset + t - low] if offset >= 0 else float(t - low + 1) / float(high - low + 1)


@kernel
def at_least(low, high, offset, tail, t):
    """Return P(x >= t)."""
    if t > high:
        return 0.0
    if offset <= DOUBTFUL:
        k = DOUBTFUL - offset
        start = int(tail[k + 1])
        later = 1.0
        if t > low:
            later = tail[start + t - low] if start >= 0 else float(high - t + 1) / float(high - low + 1)
        return tail[k] * later
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
    happened = 1.0
    start = offset
    if offset <= DOUBTFUL:
        happened = pmf[DOUBTFUL - offset]
        start = int(pmf[DOUBTFUL - offset + 1])
    if start < 0:
        return happened * (float(last - first + 1) / float(high - low + 1))
    total = 0.0
    for k in range(start + first - low, start + last - low + 1):
        total += pmf[k]
    return happened * total


@kernel
def law_of_sum(low, high, offset, other_low, other_high, other_offset, values, start, out):
    """Write the law of a sum of two times from ``out[start]`` on; return how many ticks it has.

    O(sum of lengths) if one is uniform at least, else O(product).
    """
    size, other = high - low + 1, other_high - other_low + 1
    count = size + other - 1
    if offset >= 0 and other_offset >= 0:
        for k in range(count):
            out[start + k] = 0.0
        for i in range(size):
            for k in range(other):
                out[start + i + k] += values[offset + i] * values[other_offset + k]
        return count
    if offset < 0 and other_offset < 0:
        scale = 1.0 / (float(size) * float(other))
        for k in range(count):
            out[start + k] = float(min(k + 1, size, other, count - k)) * scale
        return count
    if offset < 0:
        size, other, offset = other, size, other_offset
    # What slides along, in blocks of its length: up to its end in one, from its beginning in the one before.
    # So nothing is subtracted.
    scale = 1.0 / float(other)
    total = 0.0
    for end in range(count + other - 1):
        if end % other == 0:
            total = 0.0
        if other - 1 <= end < other - 1 + size:
            total += values[offset + end - other + 1]
        if end >= other - 1:
            out[start + end - other + 1] = total * scale
    for begin in range(((count - 1) // other + 1) * other - 1, -1, -1):
        if begin % other == other - 1:
            total = 0.0
        if other - 1 <= begin < other - 1 + size:
            total += values[offset + begin - other + 1]
        if begin < count and begin % other != 0:
            out[start + begin] += total * scale
    return count
