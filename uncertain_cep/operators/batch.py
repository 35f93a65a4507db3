"""A batch of matches: what operators yield, and what becomes the columns of the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.flat_lists import taken
from confidence.large_arrays import empty, take_into

__all__ = ["MatchBatch", "Series", "chances", "happened"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
NumberT = TypeVar("NumberT", np.int64, np.float64)


@dataclass(frozen=True, slots=True)
class Series:
    """The events of a Kleene component in some matches; at least one in each."""

    start: Int64
    """(k + 1,) int64. Those of match n are at ``start[n] .. start[n + 1] - 1``."""
    events: Int64
    """(m,) int64. As in :class:`MatchBatch`."""

    def keep(self, mask: NDArray[np.bool_]) -> Series:
        """Return the matches where a mask is true."""
        return self.take(np.flatnonzero(mask))

    def take(self, matches: Int64) -> Series:
        """Return the series of some matches, in this order."""
        places, start = taken(self.start, matches)
        return Series(start, self.events[places])

    def followed_by(self, other: Series) -> Series:
        """Return the series of the matches, and behind them the series of others."""
        start = np.concatenate((self.start, other.start[1:] + self.start[-1]))
        return Series(start, np.concatenate((self.events, other.events)))

    def lists(self, values: pa.Array) -> pa.Array:
        """Return values, one for each event, as a list for each match."""
        return pa.ListArray.from_arrays(pa.array(self.start, pa.int32()), values)


@dataclass(frozen=True, slots=True)
class MatchBatch:
    """Some matches.

    Its events, ranges and confidences are its own: who takes it over may write on them.
    """

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
    at_most_one: bool = False
    """Whether no confidence is above 1, as sums of float64 may be that end a little above what is certain."""
    at_least: float = 0.0
    """No confidence is below."""

    @property
    def of_components(self) -> tuple[tuple[Int64, Series | None], ...]:
        """For each component the events, or the first ones, and all of a Kleene one."""
        return tuple(zip(self.events, self.series or (None,) * len(self.events), strict=True))

    def by_match(self) -> tuple[Int64, Int64]:
        """Return how many events each match has of each component, and its events in this order.

        Returns
        -------
        counts : (l, k) int64
        events : (m,) int64
            One match behind the other.
        """
        many, parts = len(self.lower), self.of_components
        counts = [np.ones(many, np.int64) if series is None else np.diff(series.start) for _, series in parts]
        events = np.concatenate([own if series is None else series.events for own, series in parts])
        match = np.concatenate([np.repeat(np.arange(many), count) for count in counts])
        return np.stack(counts), events[np.argsort(match, kind="stable")]

    def keep(self, mask: NDArray[np.bool_]) -> MatchBatch:
        """Return the matches where ``mask`` is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def take(self, chosen: Int64) -> MatchBatch:
        """Return some matches, in this order."""
        events = empty((len(self.events), len(chosen)))
        # Row by row: to index both dimensions at once takes six times as long.
        for own, out in zip(self.events, events, strict=True):
            take_into(out, own, chosen)
        return MatchBatch(
            events,
            _taken(self.lower, chosen),
            _taken(self.upper, chosen),
            None if self.confidence is None else _taken(self.confidence, chosen),
            None if self.std_error is None else _taken(self.std_error, chosen),
            tuple(None if found is None else found.take(chosen) for found in self.series),
            None if self.expected is None else self.expected[:, chosen],
            self.at_most_one,
            self.at_least,
        )


def _taken(column: NDArray[NumberT], chosen: Int64) -> NDArray[NumberT]:
    found = empty(len(chosen), column.dtype.type)
    take_into(found, column, chosen)
    return found


def chances(
    chunk: MatchBatch, probability: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the probability that the events of each match happened, and whether they can have, both (k,).

    The confidences of compressed matches know of the events of series already.

    Parameters
    ----------
    chunk : MatchBatch
        Its events are rows.
    probability : (n,) float64
        That of each row to have happened.
    """
    chance, possible = np.ones(len(chunk.lower)), np.ones(len(chunk.lower), dtype=np.bool_)
    for events, series in chunk.of_components:
        if series is None:
            chance *= probability[events]
            possible &= probability[events] > 0.0
        elif chunk.expected is None:
            each = probability[series.events]
            chance *= np.multiply.reduceat(each, series.start[:-1])
            possible &= np.minimum.reduceat(each, series.start[:-1]) > 0.0
    return chance, possible


def happened(chunk: MatchBatch, probability: NDArray[np.float64]) -> MatchBatch:
    """Return matches with the probability that their events happened as a factor of their confidences.

    A match of an event that never did is left out. For the parameters see :func:`chances`.
    """
    chance, possible = chances(chunk, probability)
    confidence = None if chunk.confidence is None else chunk.confidence * chance
    error = None if chunk.std_error is None else chunk.std_error * chance
    found = replace(chunk, confidence=confidence, std_error=error, at_least=0.0)
    return found if possible.all() else found.keep(possible)
