"""Greedy choice of intervals that do not overlap."""

from __future__ import annotations

import numpy as np

from confidence.kernel import kernel

__all__ = ["choose_non_overlapping"]


@kernel(allocates=True)
def choose_non_overlapping(best, partition, lower, upper, chosen):
    """Choose intervals in order of preference, each unless it shares a tick with one chosen before.

    The last of the chosen intervals that begin by the end of a new one is the only one to look at, since
    those chosen are in order; a binary indexed tree (Fenwick, 1994) of maxima finds it. O(n log n).

    Parameters
    ----------
    best : (n,) int64
        The intervals, the one to prefer first.
    partition : (n,) int64
        Only intervals of one partition can overlap. Ascending.
    lower, upper : (n,) int64
        Ticks, inclusive; ``lower`` ascending within a partition.
    chosen : (n,) bool
        Overwritten.
    """
    count = best.shape[0]
    tree = np.empty(count + 1, np.int64)
    tree[count] = 0
    for k in range(count):
        tree[k] = 0
        chosen[k] = False
    for k in range(count):
        i = best[k]
        begun = i + 1
        stop = count
        while begun < stop:
            middle = (begun + stop) >> 1
            if partition[middle] == partition[i] and lower[middle] <= upper[i]:
                begun = middle + 1
            else:
                stop = middle
        last = 0
        while begun > 0:
            last = max(last, tree[begun])
            begun -= begun & -begun
        if last > 0 and partition[last - 1] == partition[i] and upper[last - 1] >= lower[i]:
            continue
        chosen[i] = True
        node = i + 1
        while node <= count:
            tree[node] = max(tree[node], i + 1)
            node += node & -node
