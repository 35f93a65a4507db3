"""Searches in sorted values that begin near where they end."""

from __future__ import annotations

from confidence.kernel import kernel

__all__ = ["first_above"]


@kernel(inline=True)
def first_above(values, start, stop, x, hint):
    """Return the first index in [start, stop] whose value is > x, galloping away from ``hint``. O(log d)."""
    if hint < start:
        hint = start
    if hint > stop:
        hint = stop
    step = 1
    if hint < stop and values[hint] <= x:
        low = hint + 1
        high = low
        while high < stop and values[high] <= x:
            low = high + 1
            high = low + step
            step *= 2
        if high > stop:
            high = stop
    else:
        high = hint
        low = hint
        while low > start and values[low - 1] > x:
            high = low - 1
            low = high - step
            step *= 2
        if low < start:
            low = start
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low
