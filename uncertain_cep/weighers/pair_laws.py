"""The laws of the pairs of a begin and an end that events have which last and may be forbidden."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.budget import checkpoint
from confidence.flat_lists import starts_of
from confidence.timed.weighed_pairs import LAW_FIELDS, marginals_of_pairs
from uncertain_cep.candidates.span_laws import FlatLaws
from uncertain_cep.candidates.span_times import SpanTimes

__all__ = ["MOST_WEIGHED_PAIRS", "PairLaws", "TooManyPairsError", "pair_bounds"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

MOST_WEIGHED_PAIRS: Final = 1 << 22
"""Pairs of one event: each is a step wherever it may be forbidden."""

_PLACES: Final = 5
"""Of a record, how many fields are places of laws."""


class TooManyPairsError(Exception):
    """An event has so many pairs of begin and end, ``pairs``, that not all of them are weighed."""

    def __init__(self, pairs: int) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class PairLaws(NamedTuple):
    """Laws of some of n events.

    Attributes
    ----------
    number : (n,) int64
        The number of each event among those that have laws; -1: all of its pairs are alike likely.
    bounds : (4, m) int64
        Of these, as of :func:`pair_bounds`.
    record : (m,) int64
        Where the record of each begins among ``laws``.
    laws : Pmfs
        Places in records count from the first of these on.
    """

    number: Int64
    bounds: Int64
    record: Int64
    laws: Pmfs

    @classmethod
    def of(
        cls, spans: SpanTimes, rows: Int64, by_clock: FlatLaws, lower: Int64, upper: Int64
    ) -> PairLaws | None:
        """Return the laws of some events; None if all of their pairs are alike likely.

        Parameters
        ----------
        rows : (k,) int64
            Events that last.
        by_clock, lower, upper : FlatLaws and (2 n,) int64 twice
            Laws and bounds of all begins, and behind them of all ends, by their clocks.

        Raises
        ------
        TooManyPairsError
        """
        events = spans.events
        # Probabilities of one tick alone leave no law, but other bounds.
        has_law, of_begin = (
            (by_clock.start[at] >= 0) | (lower[at] > bounds.lower[rows]) | (upper[at] < bounds.upper[rows])
            for at, bounds in ((rows + events, spans.own_end), (rows, spans.own_begin))
        )
        has_law |= of_begin & (spans.length.lower[rows] < spans.length.upper[rows])
        if spans.length_laws is not None:
            has_law |= spans.length_laws.start[rows] >= 0
        rows = np.unique(rows[has_law])
        if not len(rows):
            return None
        number = np.full(events, -1)
        number[rows] = np.arange(len(rows))
        begin, end = ((lower[at], upper[at]) for at in (rows, rows + events))
        bounds = _bounds(begin, end, (spans.length.lower[rows], spans.length.upper[rows]))
        sizes = (begin[1] - begin[0] + 1).astype(np.float64), (end[1] - end[0] + 1).astype(np.float64)
        lengths = (bounds[3] - bounds[2] + 1).astype(np.float64)
        pairs = np.minimum(np.minimum(sizes[0] * sizes[1], sizes[0] * lengths), sizes[1] * lengths)
        if pairs.max() > MOST_WEIGHED_PAIRS:
            raise TooManyPairsError(int(pairs.max()))
        parts = [
            _law(spans, row, by_clock, (bounds[:, k], int(upper[row] - lower[row]) + 1))
            for k, row in enumerate(rows.tolist())
        ]
        start = starts_of(np.array([len(part.values) for part in parts]))[:-1]
        for part, base in zip(parts, start.tolist(), strict=True):
            _move(part.values, np.zeros(1, np.int64), base)
        return cls(number, bounds, start, Pmfs(*map(np.concatenate, zip(*parts, strict=True))))

    def put(self, rows: Int64, bounds: Int64, base: int) -> tuple[Int64, Int64]:
        """Return the bounds and records of some events whose ``laws_at`` stand from ``base`` on.

        ``bounds``, (4, k), are those of events without a law; the record of such a one is -1.
        """
        number = self.number[rows]
        has_law = number >= 0
        return (
            np.where(has_law, self.bounds[:, number], bounds),
            np.where(has_law, self.record[number] + base, -1),
        )

    def laws_at(self, base: int) -> Pmfs:
        """Return the laws, with places that count from ``base`` before them on."""
        values = self.laws.values.copy()
        _move(values, self.record, base)
        return self.laws._replace(values=values)


def pair_bounds(spans: SpanTimes, rows: Int64) -> Int64:
    """Return first and last end less the first begin, least and largest length of events, (4, k) int64."""
    begin, end, length = (
        (bounds.lower[rows], bounds.upper[rows]) for bounds in (spans.own_begin, spans.own_end, spans.length)
    )
    return _bounds(begin, end, length)


def _bounds(begin: tuple[Int64, Int64], end: tuple[Int64, Int64], length: tuple[Int64, Int64]) -> Int64:
    shortest, longest = np.maximum(length[0], end[0] - begin[1]), np.minimum(length[1], end[1] - begin[0])
    return np.stack((end[0] - begin[0], end[1] - begin[0], shortest, longest))


def _move(values: Float64, record: Int64, base: int) -> None:
    """Let the places in some records count from another one on."""
    places = (record[:, None] + np.arange(_PLACES)).ravel()
    values[places] += np.where(values[places] >= 0.0, float(base), 0.0)


def _law(spans: SpanTimes, row: int, by_clock: FlatLaws, ticks: tuple[Int64, int]) -> Pmfs:
    """Return the record of an event, and behind it its laws; ``ticks`` are its bounds, and its begins."""
    checkpoint()
    (first, last, shortest, longest), width = (int(value) for value in ticks[0]), ticks[1]
    of_begin, of_end = by_clock.of(row, width), by_clock.of(row + spans.events, last - first + 1)
    of_length = None
    if spans.length_laws is not None:
        skipped = shortest - int(spans.length.lower[row])
        of_length = spans.length_laws.of(row, skipped + longest - shortest + 1)
        of_length = None if of_length is None else of_length[skipped:]
    laws = of_begin, of_end, of_length
    sizes = width, last - first + 1, longest - shortest + 1
    begins, ends, lengths = (
        np.ones(size) if law is None else np.ascontiguousarray(law)
        for law, size in zip(laws, sizes, strict=True)
    )
    marginals, scale, pairs = marginals_of_pairs(begins, ends, lengths, first - shortest)
    places, stop = np.full(_PLACES, -1.0), LAW_FIELDS
    values = []
    for number, law in enumerate(laws):
        if law is not None:
            places[number] = stop
            values.append(law)
            stop += len(law)
    places[3:] = stop, stop + width
    record = np.concatenate((places, (scale, float(pairs)), *values))
    heads = (np.concatenate((record, sums)) for sums in marginals)
    return Pmfs(*heads)
