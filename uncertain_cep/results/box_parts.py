"""The events of known matches, and boxes that are asked about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import taken
from uncertain_cep.config.tuning import BOXES_AT_ONCE

__all__ = ["Boxes", "Confidences", "EndsOfEvents", "Events", "pieces_of"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class EndsOfEvents(NamedTuple):
    """The ends of m events; all (m,), times in ticks."""

    lasts: NDArray[np.bool_]
    """Which events have an end of their own."""
    lower: Int64
    upper: Int64


class Events(NamedTuple):
    """The events of some matches, one match behind the other; times are ticks."""

    start: Int64
    """(k + 1,) int64. Where those of each match begin."""
    component: Int64
    row: Int64
    lower: Int64
    upper: Int64
    offset: Int64
    """Each (m,) int64. Without ticks of probability 0 at the ends; -1 for uniform."""
    ends: EndsOfEvents | None = None
    """Of events that last, whose times are their begins; None: all are moments."""

    def of(self, some: Int64) -> tuple[Int64, Int64]:
        """Return the events of some matches, (n,) int64 places, behind the number of the match of each."""
        places, starts = taken(self.start, some)
        return np.repeat(some, np.diff(starts)), places

    @property
    def sides(self) -> list[tuple[Events, NDArray[np.bool_], bool]]:
        """The begins of all events, and the ends of those that last: a mask, (m,), says of which events."""
        begins = self, np.ones(len(self.row), np.bool_), False
        if self.ends is None:
            return [begins]
        at_end = self._replace(lower=self.ends.lower, upper=self.ends.upper)
        return [begins, (at_end, self.ends.lasts, True)]


class Boxes(NamedTuple):
    """One event of a match each, and the ticks that are asked of it; all (n,) int64."""

    match: Int64
    event: Int64
    """Its place among :class:`Events`."""
    first: Int64
    last: Int64

    def part(self, chosen: slice) -> Boxes:
        """Return some of them."""
        return Boxes(*(column[chosen] for column in self))


class Confidences(Protocol):
    """P(match, and one of its events in a box)."""

    def of(self, boxes: Boxes) -> Float64:
        """Return it for each box, (n,) float64."""

    def centres(self, match: Int64, event: Int64) -> Float64:
        """Return P(match) times the mean of an event's time given the match, less its first tick, (n,)."""

    def cheap_centres(self, match: Int64, event: Int64) -> Float64:
        """Return :meth:`centres` where no cost grows with ticks, else NaN; here nowhere."""
        del event
        return np.full(len(match), np.nan)

    def at_ends(self) -> Confidences:
        """Return the same where boxes are about the ends of events that last; here none does."""
        return self

    def in_between(self, match: Int64) -> tuple[Int64, Int64]:
        """Return the events that could spoil matches: the matches, and the rows, both (k,); here none."""
        return match[:0], match[:0]


def pieces_of(sizes: Int64) -> Iterator[slice]:
    """Yield numbers of boxes in pieces that are asked for at once."""
    ends = np.cumsum(sizes)
    done = 0
    while done < len(sizes):
        checkpoint()
        before = int(ends[done - 1]) if done else 0
        stop = max(int(np.searchsorted(ends, before + BOXES_AT_ONCE, side="right")), done + 1)
        yield slice(done, stop)
        done = stop
