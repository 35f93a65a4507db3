"""The pairs of intervals of two sides that overlap, group by group."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import end_to_end

__all__ = ["Intervals", "overlapping"]

Int64 = NDArray[np.int64]

_BYTES_OF_PAIR: Final = 48
"""What the arrays that list a pair take while they are made."""


class Intervals(NamedTuple):
    """Intervals in groups, each (n,) int64; empty where low > high, or where the group is -1."""

    group: Int64
    low: Int64
    high: Int64


def overlapping(first: Intervals, second: Intervals) -> tuple[Int64, Int64]:
    """Return the rows of the pairs of one group that have a number in common, by rows of ``first``.

    Notes
    -----
    The second side is cut into classes of like length, so that one long interval does not make all others
    be looked at: those of a class that overlap [l, h] begin in [l - longest, h]. O((n + m) log m + pairs) for
    each class, of which there are at most 63; at most half of the pairs that are looked at do not overlap,
    but for those with intervals shorter than half of the class.
    """
    usable = np.flatnonzero((second.group >= 0) & (second.low <= second.high))
    length = second.high[usable] - second.low[usable]
    kind = np.frexp(length.astype(np.float64))[1]
    parts = [_of_class(first, second, usable[kind == number]) for number in np.unique(kind)]
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    x, y = (np.concatenate(rows) for rows in zip(*parts, strict=True))
    order = np.lexsort((y, x))
    return x[order], y[order]


def _of_class(first: Intervals, second: Intervals, rows: Int64) -> tuple[Int64, Int64]:
    """Return the pairs with some rows of the second side, all of like length."""
    rows = rows[np.lexsort((second.low[rows], second.group[rows]))]
    group, low = second.group[rows], second.low[rows]
    longest = int((second.high[rows] - low).max())
    scale, rank = np.unique(low, return_inverse=True)
    steps = len(scale) + 1
    keys = group * steps + rank.reshape(-1)
    seekers = np.flatnonzero((first.group >= 0) & (first.low <= first.high))
    at = first.group[seekers] * steps
    lowest = np.where(first.low[seekers] < _SMALLEST + longest, _SMALLEST, first.low[seekers] - longest)
    start = np.searchsorted(keys, at + np.searchsorted(scale, lowest))
    end = np.searchsorted(keys, at + np.searchsorted(scale, first.high[seekers], side="right"))
    count = np.maximum(end - start, 0)
    checkpoint(_BYTES_OF_PAIR * int(count.sum()))
    x, y = np.repeat(seekers, count), rows[end_to_end(start, count)[0]]
    overlap = (second.high[y] >= first.low[x]) & (second.low[y] <= first.high[x])
    return x[overlap], y[overlap]


_SMALLEST: Final = np.iinfo(np.int64).min
