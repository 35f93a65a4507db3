"""Functions of whole arrays for kernels, as plain loops: NumPy's own take far longer to compile."""

from __future__ import annotations

import numpy as np

from confidence.kernel import kernel

__all__ = ["ascending", "count_below", "count_up_to", "largest", "smallest"]


@kernel
def largest(values):
    """Return the largest of at least one value. O(n)."""
    maximum = values[0]
    for k in range(1, values.shape[0]):
        maximum = max(maximum, values[k])
    return maximum


@kernel
def smallest(values):
    """Return the smallest of at least one value. O(n)."""
    minimum = values[0]
    for k in range(1, values.shape[0]):
        minimum = min(minimum, values[k])
    return minimum


@kernel
def count_below(values, start, stop, x):
    """Return the number of the ascending values start..stop-1 that are smaller than x. O(log n)."""
    low = start
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low - start


@kernel
def count_up_to(values, start, stop, x):
    """Return the number of the ascending values start..stop-1 that are at most x. O(log n)."""
    low = start
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low - start


@kernel(allocates=True)
def ascending(values, count):
    """Return the places of the first ``count`` values by ascending value, equal ones in order. O(n log n).

    Runs of doubling length are merged from one array into another.
    """
    order = np.empty(count, np.int64)
    merged = np.empty(count, np.int64)
    for k in range(count):
        order[k] = k
    size = 1
    while size < count:
        for begin in range(0, count, 2 * size):
            middle = min(begin + size, count)
            stop = min(begin + 2 * size, count)
            i = begin
            j = middle
            for k in range(begin, stop):
                if j == stop or (i < middle and values[order[i]] <= values[order[j]]):
                    merged[k] = order[i]
                    i += 1
                else:
                    merged[k] = order[j]
                    j += 1
        order, merged = merged, order
        size *= 2
    return order
