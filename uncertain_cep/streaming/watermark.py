"""The arrival promise of a stream: what it says of unseen events, and which events break it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.options import is_whole

__all__ = ["ArrivalPromise", "types_that_matter"]

Int64 = NDArray[np.int64]

_NOTHING_KNOWN: Final = -(2**62)


def types_that_matter(plan: EvaluationPlan) -> frozenset[str]:
    """Return the types of the events that matter to a plan; empty if all types do."""
    named = [component.types for component in plan.components]
    named += [negation.component.types for negation in plan.negations]
    any_type = not all(named) or plan.query.strategy.endswith("contiguity")
    return frozenset() if any_type else frozenset(name for types in named for name in types)


class ArrivalPromise:
    """The bound that arrival order and heartbeats put on unseen events.

    If e1 arrives before e2 then ``e1.lower <= e2.upper``. With ``now`` the largest lower bound seen and Umax
    the largest ``upper - lower``, unseen events have ``lower >= now - Umax``. A heartbeat states a bound.

    Parameters
    ----------
    largest_interval : int or None
        Umax, ticks. With None the promise says nothing of arrival order, and only heartbeats move the bound.
    types : frozenset of str, optional
        The types of the events that matter; empty if all types do.

    Attributes
    ----------
    safe : int
        No unseen event that keeps the promise has ``lower < safe``, ticks.

    Raises
    ------
    OptionError
        If the largest interval is negative, or no whole number.

    Notes
    -----
    Source: Zhang, Diao, Immerman, PVLDB 3(1), 2010, sections 2.2 and 3 (the emit rule) and C.3 (heartbeats).
    """

    def __init__(self, largest_interval: int | None, types: frozenset[str] = frozenset()) -> None:
        if largest_interval is not None and not (is_whole(largest_interval) and largest_interval >= 0):
            raise OptionError(f"largest_interval={largest_interval!r}: it must be 0 or more whole ticks")
        self._largest = None if largest_interval is None else min(int(largest_interval), 2 * MAX_TICK)
        self._now = _NOTHING_KNOWN
        self._types = types
        self._of_type: dict[str, int] = {}
        self.safe = _NOTHING_KNOWN

    @property
    def bound(self) -> int:
        """The bound on unseen events that matter, ticks: none is earlier as long as the promise is kept."""
        return self.bound_of(self._types)

    def bound_of(self, types: frozenset[str]) -> int:
        """Return the bound on unseen events of some types, ticks; of all types for none."""
        if not self._of_type:
            return self.safe
        said = [self._of_type.get(name, _NOTHING_KNOWN) for name in types]
        return max(self.safe, min(said, default=_NOTHING_KNOWN))

    def arrive(self, lower: Int64, upper: Int64, types: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Take events in the order of arrival, and return which of them are late.

        Parameters
        ----------
        lower, upper : (n,) int64
            Ticks, inclusive.
        types : (n,) ChunkedArray of string
            Used only after a heartbeat for one type.

        Returns
        -------
        (n,) bool
            Whether the event is below the bound that held when it came or, where arrival order is relied
            on, ends before an earlier event begins. The same however the events are cut into calls.
        """
        late = lower < self.safe
        for name, said in self._of_type.items():
            late |= (lower < said) & np.asarray(pc.equal(types, name).to_numpy())
        if self._largest is not None and len(lower):
            # An event that ends too early never moves the bound; one that is late for its type must not.
            moving = np.where(late, _NOTHING_KNOWN, lower)
            reached = np.maximum.accumulate(np.concatenate(([self._now], moving)))
            before = reached[:-1]
            late = late | (upper < before) | (lower < before - self._largest)
            self._now = int(reached[-1])
            self.safe = max(self.safe, self._now - self._largest)
        return late

    def behind(self, intervals: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
        """Return the largest lower bound seen and ``safe`` behind events that arrive in this order.

        ``intervals`` are their bounds, ticks. None if one of them is late, or a type has a bound of its own.
        """
        if self._of_type:
            return None
        now, safe, largest = self._now, self.safe, self._largest
        for lower, upper in intervals:
            if lower < safe:
                return None
            if largest is not None:
                if upper < now or lower < now - largest:
                    return None
                now = max(now, lower)
                safe = max(safe, now - largest)
        return now, safe

    def move(self, reached: tuple[int, int]) -> None:
        """Take the events of which :meth:`behind` returned this."""
        self._now, self.safe = reached

    def heartbeat(self, tick: int, of_type: str | None = None) -> None:
        """Learn that no event, or none of a type, with ``lower < tick`` is to come."""
        if of_type is None:
            self.safe = max(self.safe, tick)
        else:
            self._of_type[of_type] = max(self._of_type.get(of_type, tick), tick)
