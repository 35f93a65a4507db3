"""Sweeps over intervals of one order, group by group: which overlap, and which follow each other directly.

An interval ``x`` is before ``y`` when ``high_x < low_y``. Whole numbers of any kind serve as bounds: ticks,
or the ranks of (tick, sequence).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import end_to_end

__all__ = ["IntervalOrder", "Pairs", "one_scale"]

Int64 = NDArray[np.int64]
Pairs = tuple[Int64, Int64]
"""Rows of the first and of the second event of each pair, each (k,) int64."""

_BYTES_OF_PAIR: Final = 48
"""What the arrays that list a pair take while they are made."""

_LARGEST: Final = np.iinfo(np.int64).max

_ALL: Final = slice(None)


def one_scale(*keys: tuple[Int64, Int64]) -> list[Int64]:
    """Return pairs of numbers as their ranks among all of them, compared by the first, then by the second.

    >>> first, second = np.array([5, 3]), np.array([1, 9])
    >>> one_scale((first, second), (first, first))
    [array([2, 1]), array([3, 0])]
    """
    major, minor = (np.concatenate(parts) for parts in zip(*keys, strict=True))
    order = np.lexsort((minor, major))
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (np.diff(major[order]) != 0) | (np.diff(minor[order]) != 0)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(is_new) - 1
    return np.split(rank, np.cumsum([len(first) for first, _ in keys])[:-1])


@dataclass(frozen=True)
class IntervalOrder:
    """Intervals in groups; those of different groups have nothing to do with each other.

    Attributes
    ----------
    group : (n,) int64
        -1: of no group.
    low, high : (n,) int64
        Bounds, inclusive.
    """

    group: Int64
    low: Int64
    high: Int64

    @cached_property
    def sorted_rows(self) -> Int64:
        """The rows that are of a group, by group, then by their lower and upper bounds."""
        rows = np.lexsort((self.high, self.low, self.group))
        return rows[np.count_nonzero(self.group < 0) :]

    @cached_property
    def _ends(self) -> tuple[Int64, Int64]:
        """The first place of the group of each sorted row, and the one behind its last."""
        group = self.group[self.sorted_rows]
        return np.searchsorted(group, group), np.searchsorted(group, group, side="right")

    def _places_up_to(self, bound: Int64, which: Int64 | slice = _ALL) -> Int64:
        """Return the place behind the last row of a sorted row's group with a ``low`` up to ``bound``.

        ``which`` are the places of the sorted rows that are asked.
        """
        first, end = self._ends
        if not first.any():
            # Of one group the lower bounds are in order themselves.
            return np.searchsorted(self.low[self.sorted_rows], bound, side="right")
        scale, rank = np.unique(self.low[self.sorted_rows], return_inverse=True)
        group = first * (len(scale) + 1)
        lows = group + rank.reshape(-1) + 1
        bound = group[which] + np.searchsorted(scale, bound, side="right")
        return np.clip(np.searchsorted(lows, bound, side="right"), first[which], end[which])

    def pairs(self, slack: int | None = 0) -> Pairs:
        """Return pairs of a group that overlap, or have at most ``slack`` between their bounds; None: all.

        The one with the smaller lower bound is first. O(n log n + k).
        """
        if slack is None:
            _, end = self._ends
            return self._listed(np.arange(len(end)) + 1, end)
        rows = self.sorted_rows
        low, high, group = self.low[rows], self.high[rows], self.group[rows]
        reach = np.where(high > _LARGEST - slack, _LARGEST, high + slack)
        # A row that does not reach the next one reaches none behind it.
        which = np.flatnonzero((low[1:] <= reach[:-1]) & (group[1:] == group[:-1]))
        return self._listed(which + 1, self._places_up_to(reach[which], which), which)

    def covers(self) -> Pairs:
        """Return pairs (x, y) with x before y and no interval of the group between. O(n log n + k)."""
        start = self._places_up_to(self.high[self.sorted_rows])
        return self._listed(start, self._places_up_to(self._smallest_from(start, self.high)))

    def smallest_behind(self, values: Int64) -> Int64:
        """Return for each row the smallest value of those that it is before, (n,) int64. O(n log n).

        Where there are none it is the largest int64.
        """
        smallest = np.full(len(values), _LARGEST)
        start = self._places_up_to(self.high[self.sorted_rows])
        smallest[self.sorted_rows] = self._smallest_from(start, values)
        return smallest

    def _smallest_from(self, start: Int64, values: Int64) -> Int64:
        """Return the smallest value at the places from ``start`` to the end of each sorted row's group."""
        if not len(start):
            return start
        first, end = self._ends
        scale, rank = np.unique(values[self.sorted_rows], return_inverse=True)
        # From the right, what is of an earlier group is smaller than all before: the minimum begins anew.
        keys = first * len(scale) + rank.reshape(-1)
        running = np.minimum.accumulate(keys[::-1])[::-1] % len(scale)
        return np.where(start < end, scale[running[np.minimum(start, len(start) - 1)]], _LARGEST)

    def _listed(self, start: Int64, end: Int64, which: Int64 | slice = _ALL) -> Pairs:
        """Return the pairs of each sorted row, or of some, with those at the places from start to end - 1."""
        count = np.maximum(end - start, 0)
        checkpoint(_BYTES_OF_PAIR * int(count.sum()))
        rows = self.sorted_rows
        return np.repeat(rows[which], count), rows[end_to_end(start, count)[0]]
