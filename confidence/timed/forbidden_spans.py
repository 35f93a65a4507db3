"""Spans of ticks at which an event is forbidden a match, one match at a time.

A span reaches from the largest of some times of the match, each with an offset, to the smallest of some
others; it may be empty unless bounds on the match's own times hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.timed.bounds import UNBOUND, Bounds

__all__ = ["Grid", "Span"]

Int64 = NDArray[np.int64]

Ends = tuple[tuple[int, int], ...]


class Span(NamedTuple):
    """Ticks at which an event is forbidden.

    Attributes
    ----------
    lowers, uppers : tuple of (time, offset)
        It reaches from the largest of the first to the smallest of the second, inclusive; of time -1 the
        offset alone.
    guards : dict
        Bounds that the match's own times meet, or there is no span.
    """

    lowers: Ends
    uppers: Ends
    guards: Bounds

    @property
    def times(self) -> frozenset[int]:
        """The times that it depends on."""
        ends = {time for time, _ in (*self.lowers, *self.uppers)}
        return frozenset(ends.union(*self.guards) - {-1})


class Grid:
    """The ticks of some times as the axes of tables.

    Parameters
    ----------
    first, last : (n,) int64
        Ticks, inclusive.
    """

    def __init__(self, first: Int64, last: Int64) -> None:
        self.first, self.last = first, last
        self.sizes: list[int] = (last - first + 1).tolist()

    def ticks(self, time: int, axes: Sequence[int]) -> Int64:
        """Return the ticks of a time along its axis of tables with some axes; -1: 0."""
        if time < 0:
            return np.zeros((1,) * len(axes), dtype=np.int64)
        found = np.arange(int(self.first[time]), int(self.last[time]) + 1)
        return found.reshape([-1 if axis == time else 1 for axis in axes])

    def shape(self, axes: Sequence[int]) -> list[int]:
        """Return the sizes of some axes."""
        return [self.sizes[axis] for axis in axes]

    def meets(self, bounds: Bounds, axes: Sequence[int]) -> NDArray[np.bool_]:
        """Return where bounds hold, as a table that broadcasts to the axes."""
        met = np.ones((1,) * len(axes), dtype=np.bool_)
        for (i, j), (low, high) in bounds.items():
            difference = self.ticks(i, axes) - self.ticks(j, axes)
            met = met & (difference >= low) & (difference <= high)
        return met

    def ends(self, span: Span, axes: Sequence[int]) -> tuple[Int64, Int64]:
        """Return the first and last tick of a span; where there is none, the first is behind the last."""
        low = np.full((1,) * len(axes), -UNBOUND, dtype=np.int64)
        high = -low
        for time, offset in span.lowers:
            low = np.maximum(low, self.ticks(time, axes) + offset)
        for time, offset in span.uppers:
            high = np.minimum(high, self.ticks(time, axes) + offset)
        return np.where(self.meets(span.guards, axes), low, UNBOUND), high
