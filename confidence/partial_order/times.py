"""Confidence of a match by going through the times of its events one by one, whatever its order and gaps."""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.arrays import largest, smallest
from confidence.chain.distribution import at_least, at_most, exactly
from confidence.gaps.forbidden import DONE, IMPOSSIBLE, TOO_DEAR
from confidence.kernel import kernel

__all__ = ["BETWEEN", "LEADING", "TRAILING", "confidence_by_times"]

LEADING: Final = 0
BETWEEN: Final = 1
TRAILING: Final = 2


@kernel
def _close(t, window, gap_place, gap_after, gap_before, inside):
    """Write the first and the last tick inside each gap of a match with times t."""
    for g in range(gap_place.shape[0]):
        if gap_place[g] == LEADING:
            inside[g, 0] = largest(t) - window + 1
            inside[g, 1] = smallest(t) - 1
        elif gap_place[g] == TRAILING:
            inside[g, 0] = largest(t) + 1
            inside[g, 1] = smallest(t) + window - 1
        else:
            inside[g, 0] = smallest(t)
            inside[g, 1] = largest(t)
            for j in range(t.shape[0]):
                if gap_after[g] >> j & 1:
                    inside[g, 0] = max(inside[g, 0], t[j] + 1)
                if gap_before[g] >> j & 1:
                    inside[g, 1] = min(inside[g, 1], t[j] - 1)


@kernel
def _outside(low, high, offset, pmf, head, tail, forbidden, inside):
    """Return P(an event lies in none of the gaps that forbid it); gaps may overlap."""
    several = 0
    first = high + 1
    last = high
    for g in range(inside.shape[0]):
        if forbidden[g] and inside[g, 0] <= inside[g, 1]:
            several += 1
            first = inside[g, 0]
            last = inside[g, 1]
    if several == 0:
        return 1.0
    if several == 1:
        free = at_most(low, high, offset, head, first - 1)
        return free + at_least(low, high, offset, tail, last + 1)
    total = 0.0
    for t in range(low, high + 1):
        free = True
        for g in range(inside.shape[0]):
            free = free and not (forbidden[g] and inside[g, 0] <= t <= inside[g, 1])
        if free:
            total += exactly(low, high, offset, pmf, t)
    return total


@kernel
def confidence_by_times(
    lower, upper, offset, pmf, head, tail, window, before, a, b, gap_place, gap_after, gap_before, others,
    x_low, x_high, x_offset, x_gap, most_steps, spent,
):  # fmt: skip
    """Return what ``order_confidence`` does, by trying every choice of times.

    Parameters
    ----------
    lower, upper, offset, pmf, head, tail, window, before, gap_place, gap_after, gap_before
        As there.
    a, b : (n,) int64
        Tight bounds.
    others : (k,) int64
        Which other events to look at.
    x_low, x_high, x_offset, x_gap, most_steps, spent
        As there. O(U^n k).
    """
    count = lower.shape[0]
    steps = 1.0
    for j in range(count):
        steps *= float(b[j] - a[j] + 1)
    longest = 1
    for k in range(others.shape[0]):
        longest = max(longest, x_high[others[k]] - x_low[others[k]] + 1)
    steps *= float(count) + float(others.shape[0]) * float(longest)
    if steps > most_steps:
        return TOO_DEAR, steps, 0, -1
    spent[0] += steps
    t = np.empty(count, np.int64)
    latest = np.empty(count, np.int64)
    weight = np.empty(count + 1)
    inside = np.empty((gap_place.shape[0], 2), np.int64)
    weight[0] = 1.0
    total = 0.0
    first = largest(b) + 1
    last = smallest(a) - 1
    j = 0
    t[0] = a[0] - 1
    latest[0] = b[0]
    while j >= 0:
        t[j] += 1
        if t[j] > latest[j]:
            j -= 1
            continue
        weight[j + 1] = weight[j] * exactly(lower[j], upper[j], offset[j], pmf, t[j])
        if not weight[j + 1] > 0.0:
            continue
        if j + 1 < count:
            j += 1
            earliest = a[j]
            latest[j] = b[j]
            for i in range(j):
                earliest = max(earliest, t[i] - window + 1)
                latest[j] = min(latest[j], t[i] + window - 1)
                if before[j] >> i & 1:
                    earliest = max(earliest, t[i] + 1)
            t[j] = earliest - 1
            continue
        _close(t, window, gap_place, gap_after, gap_before, inside)
        mass = weight[count]
        for k in range(others.shape[0]):
            x = others[k]
            mass *= _outside(x_low[x], x_high[x], x_offset[x], pmf, head, tail, x_gap[x], inside)
        if mass > 0.0:
            total += mass
            first = min(first, smallest(t))
            last = max(last, largest(t))
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(total, 1.0), first, last
