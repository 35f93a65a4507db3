"""How likely two independent times are in order, or near each other: what bounds on confidences are made of.

Upper bounds have to stay upper bounds in float64. A sum of n non-negative terms loses at most n units in its
last place, and of a difference of two such sums no more than of both: so much is added to each.
"""

from __future__ import annotations

from typing import Final

from confidence.chain.distribution import at_least, at_most, exactly
from confidence.kernel import kernel

__all__ = ["in_order", "in_window", "near"]

_UNIT: Final = 2.0**-52
"""The unit in the last place of 1, which is twice what rounding to the nearest number loses."""

_STEPS: Final = 16.0
"""Above the operations on two uniform times, each of which rounds."""


@kernel
def _rounding(low, high, offset, low_after, high_after, offset_after):
    """Return more than what rounding takes from a probability of two times, or from a difference of two."""
    steps = _STEPS
    if offset >= 0:
        steps += float(high - low)
    if offset_after >= 0:
        steps += float(high_after - low_after)
    return steps * _UNIT


@kernel
def _up_to(low, high, offset, low_after, high_after, offset_after, most, pmf, head):
    """Return P(t - s <= most) for two independent times s and t. O(1) if both are uniform, else O(U)."""
    if high_after - low <= most:
        return 1.0
    if low_after - high > most:
        return 0.0
    if offset < 0 and offset_after < 0:
        # For s the number of t is s + most - low_after + 1, between 0 and all: rising, then even. In whole
        # numbers: of times far from 0, or far apart, float64 would lose just what makes the difference.
        ticks, size = high - low + 1, high_after - low_after + 1
        reach = high - low_after + most
        even = min(max(reach - (size - 2), 0), ticks)
        top = reach - even + 1
        rising = min(top, ticks - even)
        mean = 0.5 * (float(top) + float(top - rising + 1))
        sum_over = float(even) * float(size) + float(rising) * mean
        return sum_over / (float(size) * float(ticks))
    total = 0.0
    if offset >= 0:
        for s in range(low, high + 1):
            total += pmf[offset + s - low] * at_most(low_after, high_after, offset_after, head, s + most)
    else:
        for t in range(low_after, high_after + 1):
            # s is uniform, so that no running sums are looked at.
            total += exactly(low_after, high_after, offset_after, pmf, t) * at_least(
                low, high, offset, head, t - most
            )
    return total


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
    share = _up_to(low_after, high_after, offset_after, low, high, offset, -1, pmf, head)
    if share == 0.0:
        return 0.0
    return min(share + _rounding(low, high, offset, low_after, high_after, offset_after), 1.0)


@kernel
def near(low, high, offset, low_after, high_after, offset_after, window, pmf, head):
    """Return P(abs(t - s) < window), or a little more; see :func:`in_order`."""
    later = _up_to(low, high, offset, low_after, high_after, offset_after, window - 1, pmf, head)
    if later == 0.0:
        return 0.0
    earlier = _up_to(low, high, offset, low_after, high_after, offset_after, -window, pmf, head)
    return min(later - earlier + _rounding(low, high, offset, low_after, high_after, offset_after), 1.0)


@kernel
def in_window(low, high, offset, low_after, high_after, offset_after, window, pmf, head):
    """Return P(t - s < window), t before s or behind it, and P(s < t and t - s < window), or a little more.

    Parameters and complexity are those of :func:`in_order`.
    """
    late = _up_to(low, high, offset, low_after, high_after, offset_after, window - 1, pmf, head)
    if late == 0.0:
        return 0.0, 0.0
    early = _up_to(low, high, offset, low_after, high_after, offset_after, 0, pmf, head)
    more = _rounding(low, high, offset, low_after, high_after, offset_after)
    ordered = min(late - early + more, 1.0) if low < high_after else 0.0
    return min(late + more, 1.0), ordered
