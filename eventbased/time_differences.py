"""How likely two independent times are in order, or near each other: what bounds on confidences are made of.

Upper bounds have to stay upper bounds in float64, so that where terms could cancel, or sums of probabilities
round, a little is added.
"""

from __future__ import annotations

from typing import Final

from confidence.distribution import at_most, exactly
from confidence.kernel import kernel
from eventbased.config import ROUNDING

__all__ = ["in_order", "near", "near_in_order"]

_GUARD: Final = 8.0 * ROUNDING


@kernel
def _up_to(low, high, offset, low_after, high_after, offset_after, most, pmf, head):
    """Return P(t - s <= most) for two independent times s and t. O(1) if both are uniform, else O(U)."""
    if high_after - low <= most:
        return 1.0
    if low_after - high > most:
        return 0.0
    if offset < 0 and offset_after < 0:
        # For s the number of t is s + most - low_after + 1, between 0 and all: rising, then even.
        size = float(high_after - low_after + 1)
        ticks = float(high - low + 1)
        top = float(high - low_after) + float(most) + 1.0
        even = min(max(top - size + 1.0, 0.0), ticks)
        begin = max(float(low - low_after) + float(most) + 1.0, 1.0)
        end = top - even
        rising = max(end - begin + 1.0, 0.0) * 0.5 * (begin + end)
        return min((even * size + rising) / (size * ticks), 1.0)
    total = 0.0
    if offset >= 0:
        for s in range(low, high + 1):
            total += pmf[offset + s - low] * at_most(low_after, high_after, offset_after, head, s + most)
    else:
        for t in range(low_after, high_after + 1):
            later = 1.0 - at_most(low, high, offset, head, t - most - 1)
            total += exactly(low_after, high_after, offset_after, pmf, t) * later
    return min(total + _GUARD, 1.0)


@kernel
def in_order(low, high, offset, low_after, high_after, offset_after, pmf, head):
    """Return P(s < t) for two independent times, or a little more.

    Parameters
    ----------
    low, high : int64
        The interval of s, ticks, inclusive.
    offset : int64
        Where its probabilities start in ``pmf``; -1 for uniform.
    low_after, high_after, offset_after
        The same of t.
    pmf, head : (m,) float64
        Explicit probabilities and their :func:`confidence.running_sums`.

    Notes
    -----
    O(1) if both are uniform, else O(U).
    """
    return _up_to(low_after, high_after, offset_after, low, high, offset, -1, pmf, head)


@kernel
def near(low, high, offset, low_after, high_after, offset_after, window, pmf, head):
    """Return P(abs(t - s) < window), or a little more; see :func:`in_order`."""
    later = _up_to(low, high, offset, low_after, high_after, offset_after, window - 1, pmf, head)
    if later == 0.0:
        return 0.0
    earlier = _up_to(low, high, offset, low_after, high_after, offset_after, -window, pmf, head)
    return min(later - earlier + _GUARD, 1.0)


@kernel
def near_in_order(low, high, offset, low_after, high_after, offset_after, window, pmf, head):
    """Return P(s < t and t - s < window), or a little more; see :func:`in_order`."""
    ordered = _up_to(low_after, high_after, offset_after, low, high, offset, -1, pmf, head)
    if ordered == 0.0:
        return 0.0
    apart = _up_to(low_after, high_after, offset_after, low, high, offset, -window, pmf, head)
    return min(ordered - apart + _GUARD, 1.0)
