"""Whether an event can happen in a gap of a match: exact, by the ticks that each event can have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ticks", "can_follow"]


class Ticks(NamedTuple):
    """The ticks at which an event can happen.

    Attributes
    ----------
    lower, upper : int
    some : (k,) int64 or None
        Those with a probability, ascending; None: all from ``lower`` to ``upper``.
    """

    lower: int
    upper: int
    some: NDArray[np.int64] | None

    @classmethod
    def of(cls, lower: int, upper: int, offset: int, values: NDArray[np.float64]) -> Ticks:
        """Return the ticks of an interval whose probabilities start at an offset; -1: it is uniform."""
        if offset < 0:
            return cls(lower, upper, None)
        return cls(lower, upper, lower + np.flatnonzero(values[offset : offset + upper - lower + 1] > 0.0))

    def first_from(self, tick: int) -> int | None:
        """Return the first tick that is not before another one."""
        if self.some is None:
            return None if tick > self.upper else max(tick, self.lower)
        place = int(np.searchsorted(self.some, tick))
        return int(self.some[place]) if place < len(self.some) else None

    def last_to(self, tick: int) -> int:
        """Return the last tick that is not behind another one; there is one."""
        if self.some is None:
            return min(tick, self.upper)
        return int(self.some[int(np.searchsorted(self.some, tick, side="right")) - 1])


def can_follow(events: list[Ticks], window: int) -> bool:
    """Return whether events can happen one after the other, at different ticks, within a window.

    Notes
    -----
    From the earliest tick of the first event on, each takes the first tick that it can. From the last one
    back, each takes the last tick that it can: no sequence that ends as early spans less. If it is too
    long, the first event has to be later. The number of such rounds is at most that of ticks without
    probability that lie within intervals, and one more.
    """
    start = events[0].lower
    while True:
        tick = start
        for event in events:
            first = event.first_from(tick)
            if first is None:
                return False
            tick = first + 1
        last = end = tick - 1
        for event in events[-2::-1]:
            last = event.last_to(last - 1)
        if end - last < window:
            return True
        start = last + 1
