"""The clock of a stream that is cut into batches: bounds of the events to come, and late events.

The order of events within a batch is not known. So an event is late by the bounds from before the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.config import EVER
from uncertain_cep.timeline.domain import TimeDomain

__all__ = ["NOTHING_KNOWN", "BatchClock", "News"]

Int64 = NDArray[np.int64]

NOTHING_KNOWN: Final = -(2**62)
_MILLISECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class News:
    """The bounds of time that the rows of a part of a batch set, in ticks.

    Attributes
    ----------
    latest : mapping of str to int
        The largest `lower` of the events of each type, but for events longer than the largest interval.
    said : int
        The latest heartbeat for all types.
    of_type : mapping of str to int
        The latest heartbeat of each type that has one.
    releases : bool
        Whether all that is decided is to be told.
    """

    latest: Mapping[str, int] = field(default_factory=dict)
    said: int = NOTHING_KNOWN
    of_type: Mapping[str, int] = field(default_factory=dict)
    releases: bool = False

    def joined(self, other: News) -> News:
        """Return the bounds of both parts together."""
        return News(
            _latest(self.latest, other.latest),
            max(self.said, other.said),
            _latest(self.of_type, other.of_type),
            self.releases or other.releases,
        )


@dataclass(frozen=True, slots=True)
class BatchClock:
    """The bound on the events of the batches to come.

    Attributes
    ----------
    largest : int
        Largest ``upper - lower`` of an event, ticks.
    step : int
        Ticks of a millisecond, to which the bound of arrival is rounded down; 1 where ticks are no shorter.
    now : int
        The largest `lower` of an event that was not late, ticks.
    said : int
        The latest heartbeat for all types, ticks.
    of_type : mapping of str to int
        That for each type.
    """

    largest: int
    step: int = 1
    now: int = NOTHING_KNOWN
    said: int = NOTHING_KNOWN
    of_type: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, domain: TimeDomain, largest: int) -> BatchClock:
        """Return the clock of a stream before its first event."""
        length = domain.tick_nanoseconds
        short = domain.unit != "tick" and length is not None and _MILLISECOND % length == 0
        return cls(largest, _MILLISECOND // length if short and length else 1)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> BatchClock:
        """Return the clock that `written` has written."""
        return cls(**values)

    def written(self) -> dict[str, Any]:
        """Return the clock as values that JSON can hold."""
        return asdict(self)

    @property
    def arrival(self) -> int:
        """The bound on `lower` by arrival alone, ticks."""
        if self.now == NOTHING_KNOWN:
            return NOTHING_KNOWN
        return (self.now - self.largest) // self.step * self.step

    @property
    def safe(self) -> int:
        """The bound for all types, ticks: no event to come has ``lower < safe``, unless it is late."""
        return max(self.arrival, self.said)

    def bound(self, types: frozenset[str]) -> int:
        """Return the bound for the events of some types, ticks; with no types, for those of any type."""
        said = [self.of_type.get(name, NOTHING_KNOWN) for name in types]
        return max(self.safe, min(said, default=NOTHING_KNOWN))

    @property
    def has_types(self) -> bool:
        """Whether some types have bounds of their own."""
        return any(said > self.safe for said in self.of_type.values())

    def may_be_late(self, lower: int, upper: int) -> bool:
        """Return whether some event may be late, by the least bounds of all, ticks."""
        return self.has_types or lower < self.safe or upper < self._seen

    def late(self, lower: Int64, upper: Int64, types: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Mark the late events of the next batch, (n,) bool; intervals are (n,) int64, ticks."""
        late = (lower < self.safe) | (upper < self._seen) | (upper - lower > self.largest)
        for name, said in self.of_type.items():
            if said > self.safe:
                late |= (lower < said) & np.asarray(pc.equal(types, name).to_numpy())
        return late

    @property
    def _seen(self) -> int:
        """Events that end before this tick are late."""
        return NOTHING_KNOWN if self.now == NOTHING_KNOWN else self.arrival + self.largest

    def learned(self, news: Iterable[News]) -> BatchClock:
        """Return the clock after a batch, by the news of its parts."""
        now, said, of_type = self.now, self.said, self.of_type
        for one in news:
            for name, latest in one.latest.items():
                # A late event does not move the bound. If the latest of a type is late, all of the type are.
                if latest >= max(self.safe, self.of_type.get(name, NOTHING_KNOWN)):
                    now = max(now, latest)
            said, of_type = max(said, one.said), _latest(of_type, one.of_type)
        return replace(self, now=now, said=said, of_type=of_type)

    def moved(self, ticks: int) -> BatchClock:
        """Return the clock with its bound moved on by some ticks; before the first event it has none."""
        if self.safe in (NOTHING_KNOWN, EVER):
            return self
        return replace(self, said=min(self.safe + ticks, EVER))


def _latest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {
        name: max(one.get(name, NOTHING_KNOWN), other.get(name, NOTHING_KNOWN)) for name in {**one, **other}
    }
