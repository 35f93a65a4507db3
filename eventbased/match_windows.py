"""Segments of time in which the events of a match can lie: unions of intervals, restricted by one another.

The match windows of Cadonna, Gamper and Böhlen count, in a window that slides over a stream, which
components have an event in a possible order (EDBT, sections 4.3 and 5). With uncertain times an event covers
an interval, and what matters is only where some event of a component can be: a union of intervals. All times
are on one line on which partitions lie further apart than the window.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.large_arrays import empty
from eventbased.galloping import first_above

__all__ = ["grouped", "restricted", "touching", "union"]

Int64 = NDArray[np.int64]


def union(lower: Int64, upper: Int64) -> Int64:
    """Return the segments that intervals cover together.

    Parameters
    ----------
    lower, upper : (n,) int64
        Inclusive bounds, ticks, by ascending ``lower``.

    Returns
    -------
    (2, m) int64
        First and last tick of each segment, ascending, with a gap between any two. O(n).
    """
    times = empty((2, len(lower)))
    return times[:, : _fill_union(lower, upper, times)].copy()


@kernel
def _fill_union(lower, upper, times):
    """Fill the first of n segments; return how many there are."""
    count = 0
    for i in range(lower.shape[0]):
        if count and lower[i] <= times[1, count - 1] + 1:
            times[1, count - 1] = max(times[1, count - 1], upper[i])
        else:
            times[0, count] = lower[i]
            times[1, count] = upper[i]
            count += 1
    return count


@kernel(allocates=True)
def restricted(times, others, least, most):
    """Return the times that follow one of other times by ``least .. most`` ticks.

    Parameters
    ----------
    times, others : (2, m) int64, (2, k) int64
        Segments, see :func:`union`.
    least, most : int64
        Ticks; negative where the other times come later.

    Returns
    -------
    (2, r) int64
        Segments. O(m + k).
    """
    count, other_count = times.shape[1], others.shape[1]
    segments = np.empty((2, count + other_count), np.int64)
    size = 0
    if least > most:
        return segments[:, :0].copy()
    i = 0
    k = 0
    while k < other_count and i < count:
        begin = others[0, k] + least
        end = others[1, k] + most
        k += 1
        # Widened, one may reach the next.
        while k < other_count and others[0, k] + least <= end + 1:
            end = others[1, k] + most
            k += 1
        while i < count and times[1, i] < begin:
            i += 1
        while i < count and times[0, i] <= end:
            segments[0, size] = max(times[0, i], begin)
            segments[1, size] = min(times[1, i], end)
            size += 1
            if times[1, i] > end:
                break
            i += 1
    return segments[:, :size].copy()


@kernel
def touching(lower, upper, partition, shift, times, hint, out):
    """Find the intervals that have a tick in some segments.

    Parameters
    ----------
    lower, upper : (n,) int64
        Inclusive bounds, ticks, in any order.
    partition : (n,) int64
        Their partition numbers; empty if there is one partition.
    shift : (partitions,) int64
        Where on the line a partition lies.
    times : (2, m) int64
        Segments, see :func:`union`.
    hint : (partitions,) int64
        Working memory, from 0 to m.
    out : (n,) int64
        Overwritten.

    Returns
    -------
    int
        How many have; their indices are ``out[:filled]``. O(n + m) if the intervals of each partition come by
        ascending bounds, else O(n log m).
    """
    filled = 0
    count = times.shape[1]
    starts, stops = times[0], times[1]
    for i in range(lower.shape[0]):
        number = partition[i] if partition.shape[0] else 0
        moved = shift[number]
        index = first_above(stops, 0, count, lower[i] + moved - 1, hint[number])
        hint[number] = index
        out[filled] = i
        filled += index < count and starts[index] <= upper[i] + moved
    return filled


@kernel(allocates=True)
def grouped(lower, upper, partition, shift, out_lower, out_upper):
    """Lift intervals onto the line, partition by partition, in each in the order given.

    Parameters
    ----------
    lower, upper, partition, shift
        As for :func:`touching`; partitions lie on the line in the order of their numbers.
    out_lower, out_upper : (n,) int64
        Overwritten.

    Returns
    -------
    bool
        Whether ``out_lower`` ascends. O(n + partitions).
    """
    start = np.zeros(shift.shape[0] + 1, np.int64)
    for i in range(partition.shape[0]):
        start[partition[i] + 1] += 1
    for number in range(shift.shape[0]):
        start[number + 1] += start[number]
    for i in range(lower.shape[0]):
        number = partition[i] if partition.shape[0] else 0
        index = start[number]
        start[number] += 1
        out_lower[index] = lower[i] + shift[number]
        out_upper[index] = upper[i] + shift[number]
    ascends = True
    for i in range(1, lower.shape[0]):
        ascends = ascends and out_lower[i] >= out_lower[i - 1]
    return ascends
