"""A batch of matches: what operators yield, and what becomes the columns of the result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["MatchBatch", "Series"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Series:
    """The events of a Kleene component in some matches; at least one in each."""

    start: Int64
    """(k + 1,) int64. Those of match n are at ``start[n] .. start[n + 1] - 1``."""
    events: Int64
    """(m,) int64. As in :class:`MatchBatch`."""

    def keep(self, mask: NDArray[np.bool_]) -> Series:
        """Return those of the matches where a mask is true."""
        return self.take(np.flatnonzero(mask))

    def take(self, matches: Int64) -> Series:
        """Return those of some matches, in this order."""
        sizes = np.diff(self.start)[matches]
        start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        events = np.repeat(self.start[:-1][matches] - start[:-1], sizes) + np.arange(start[-1])
        return Series(start, self.events[events])

    def followed_by(self, other: Series) -> Series:
        """Return those of the matches, and behind them those of others."""
        start = np.concatenate((self.start, other.start[1:] + self.start[-1]))
        return Series(start, np.concatenate((self.events, other.events)))

    def lists(self, values: pa.Array) -> pa.Array:
        """Return values, one for each event, as a list for each match."""
        return pa.ListArray.from_arrays(pa.array(self.start, pa.int32()), values)


@dataclass(frozen=True, slots=True)
class MatchBatch:
    """Some matches."""

    events: Int64
    """(l, k) int64. For each component what the caller asked for: the event's id or its row; of a Kleene
    component that of its first event."""
    lower: Int64
    upper: Int64
    """(k,) int64. Time ranges, ticks."""
    confidence: NDArray[np.float64] | None
    """(k,) float64 or None."""
    std_error: NDArray[np.float64] | None = None
    """(k,) float64 or None. Of confidences that are estimates; 0 where they are exact. None if all are."""
    series: tuple[Series | None, ...] = ()
    """tuple of (Series or None). For each component, None for a single one; empty if all are."""
    expected: NDArray[np.float64] | None = None
    """(3, k) float64 or None. For ``kleene="compressed"``, given that the single events are in order and
    within the window: P(some event is in the gap), and the expected numbers of non-empty sets of events and
    of events there."""

    @property
    def of_components(self) -> tuple[tuple[Int64, Series | None], ...]:
        """For each component the events, or the first ones, and all of a Kleene one."""
        return tuple(zip(self.events, self.series or (None,) * len(self.events), strict=True))

    def keep(self, mask: NDArray[np.bool_]) -> MatchBatch:
        """Return the matches where ``mask`` is true."""
        return self.take(np.flatnonzero(mask))

    def take(self, chosen: Int64) -> MatchBatch:
        """Return some matches, in this order."""
        return MatchBatch(
            self.events[:, chosen],
            self.lower[chosen],
            self.upper[chosen],
            None if self.confidence is None else self.confidence[chosen],
            None if self.std_error is None else self.std_error[chosen],
            tuple(None if found is None else found.take(chosen) for found in self.series),
            None if self.expected is None else self.expected[:, chosen],
        )
