"""The arrival promise of a stream: what is known of the events not seen yet, and who breaks it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.config import MAX_TICK
from uncertain_cep.errors import OptionError

__all__ = ["ArrivalPromise"]

Int64 = NDArray[np.int64]

_NOTHING_KNOWN: Final = -(2**62)


class ArrivalPromise:
    """The bound that arrival order and heartbeats put on unseen events.

    If e1 arrives before e2 then ``e1.lower <= e2.upper``. With ``now`` the largest lower bound seen and Umax
    the largest ``upper - lower``, unseen events have ``lower >= now - Umax``; a heartbeat says so outright.

    Parameters
    ----------
    largest_interval : int or None
        Umax, ticks. None: arrival order is not relied on, only heartbeats move the bound.

    Attributes
    ----------
    safe : int
        No unseen event that keeps the promise has ``lower < safe``, ticks.

    Raises
    ------
    OptionError
        If the largest interval is negative.

    Notes
    -----
    Source: Zhang, Diao, Immerman, PVLDB 3(1), 2010, sections 2.2 and 3 (the emit rule) and C.3 (heartbeats).
    """

    def __init__(self, largest_interval: int | None) -> None:
        if largest_interval is not None and largest_interval < 0:
            raise OptionError(f"largest_interval={largest_interval}: it must be 0 or more ticks")
        self._largest = None if largest_interval is None else min(largest_interval, 2 * MAX_TICK)
        self._now = _NOTHING_KNOWN
        self.safe = _NOTHING_KNOWN

    def arrive(self, lower: Int64, upper: Int64) -> NDArray[np.bool_]:
        """Take events in the order of arrival, and return which of them are late.

        Parameters
        ----------
        lower, upper : (n,) int64
            Ticks, inclusive.

        Returns
        -------
        (n,) bool
            Whether the event is below the bound that held when it came or, where arrival order is relied
            on, ends before an earlier event begins. The same however the events are cut into calls.
        """
        late = lower < self.safe
        if self._largest is not None and len(lower):
            # A late event lies behind another one, so that it never moves the bound.
            reached = np.maximum.accumulate(np.concatenate(([self._now], lower)))
            before = reached[:-1]
            late = late | (upper < before) | (lower < before - self._largest)
            self._now = int(reached[-1])
            self.safe = max(self.safe, self._now - self._largest)
        return late

    def heartbeat(self, tick: int) -> None:
        """Learn that no event with ``lower < tick`` is to come."""
        self.safe = max(self.safe, tick)
