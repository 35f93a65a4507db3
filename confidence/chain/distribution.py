"""Probabilities of one event's time: uniform over an interval, or given tick by tick.

``offset`` is where the event's probabilities start in ``pmf``, -1 for uniform; ``head`` and ``tail`` are the
:func:`running_sums` of ``pmf``. Bounds and times are ticks, bounds inclusive.
"""

from __future__ import annotations

from confidence.kernel import kernel

__all__ = ["at_least", "at_most", "exactly", "inside", "running_sums"]


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
