"""A batch of matches: what operators yield, and what becomes the columns of the result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["KleeneBatch", "MatchBatch", "Series"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MatchBatch:
    """Some matches.

    Attributes
    ----------
    events : (l, k) int64
        For each component what the caller asked for: the event's id or its row.
    lower, upper : (k,) int64
        Time ranges, ticks.
    confidence : (k,) float64 or None
    std_error : (k,) float64 or None
        Of confidences that are estimates; 0 where they are exact. None if all are.
    """

    events: Int64
    lower: Int64
    upper: Int64
    confidence: NDArray[np.float64] | None
    std_error: NDArray[np.float64] | None = None

    def keep(self, mask: NDArray[np.bool_]) -> MatchBatch:
        """Return the matches where ``mask`` is true."""
        return self.take(np.flatnonzero(mask))

    def take(self, places: Int64) -> MatchBatch:
        """Return some matches, in this order."""
        confidence = None if self.confidence is None else self.confidence[places]
        std_error = None if self.std_error is None else self.std_error[places]
        return MatchBatch(
            self.events[:, places], self.lower[places], self.upper[places], confidence, std_error
        )


@dataclass(frozen=True, slots=True)
class Series:
    """The events of a Kleene component in some matches; at least one in each.

    Attributes
    ----------
    start : (k + 1,) int64
        Those of match n are at ``start[n] .. start[n + 1] - 1``.
    events : (m,) int64
        As in :class:`MatchBatch`.
    """

    start: Int64
    events: Int64

    def keep(self, mask: NDArray[np.bool_]) -> Series:
        """Return those of the matches where a mask is true."""
        return self.take(np.flatnonzero(mask))

    def take(self, matches: Int64) -> Series:
        """Return those of some matches, in this order."""
        sizes = np.diff(self.start)[matches]
        start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        places = np.repeat(self.start[:-1][matches] - start[:-1], sizes) + np.arange(start[-1])
        return Series(start, self.events[places])

    def followed_by(self, other: Series) -> Series:
        """Return those of the matches, and behind them those of others."""
        start = np.concatenate((self.start, other.start[1:] + self.start[-1]))
        return Series(start, np.concatenate((self.events, other.events)))

    def lists(self, values: pa.Array) -> pa.Array:
        """Return values, one for each event, as a list for each match."""
        return pa.ListArray.from_arrays(pa.array(self.start, pa.int32()), values)


@dataclass(frozen=True, slots=True)
class KleeneBatch(MatchBatch):
    """Some matches of a pattern with Kleene components; ``events`` holds the first event of each.

    Attributes
    ----------
    series : tuple of (Series or None)
        For each component; None for a single one.
    """

    series: tuple[Series | None, ...] = ()

    def take(self, places: Int64) -> KleeneBatch:
        """Return some matches, in this order."""
        kept = MatchBatch.take(self, places)
        series = tuple(None if found is None else found.take(places) for found in self.series)
        return KleeneBatch(kept.events, kept.lower, kept.upper, kept.confidence, kept.std_error, series)
