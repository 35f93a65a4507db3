"""Times of events drawn at random, as likely as the model says: worlds, without their enumeration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.shared.records import Records
from uncertain_cep.candidates.event_times import EventTimes
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.candidates.span_laws import FlatLaws, begins_of_pairs
from uncertain_cep.candidates.span_times import SpanTimes

__all__ = ["DrawnTimes"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class _Laws:
    """Independent times: uniform ones, and those with a probability for each tick."""

    def __init__(self, lower: Int64, upper: Int64, offset: Int64, values: Float64) -> None:
        self._lower, self._upper = lower, upper
        self._rows = rows = np.flatnonzero(offset >= 0)
        size = upper[rows] - lower[rows] + 1
        self._start = np.cumsum(size) - size
        number = np.repeat(np.arange(len(rows)), size)
        places = np.repeat(offset[rows] - self._start, size) + np.arange(int(size.sum()))
        law = values[places]
        head = np.cumsum(law)
        before = np.concatenate((np.zeros(1), head))[self._start]
        # The probability of all ticks up to this one, behind the number of the event.
        self._key = number + np.minimum(head - before[number], 1.0) if len(rows) else head
        self._last = self._start + size - 1

    def draw(self, generator: np.random.Generator) -> Int64:
        """Return a tick of each, (n,) int64. O(n log m) for m probabilities."""
        ticks = generator.integers(self._lower, self._upper, endpoint=True)
        if len(self._rows):
            aim = np.arange(len(self._rows)) + generator.random(len(self._rows))
            # A tick of probability 0 has the key of the one before it, which is not above.
            place = np.searchsorted(self._key, aim, side="right")
            place = np.clip(place, self._start, self._last)
            ticks[self._rows] = self._lower[self._rows] + place - self._start
        return np.asarray(ticks, np.int64)


class _Lengths(NamedTuple):
    """Spans: pairs of begin and end, all that meet their bounds alike likely, each (k,) int64."""

    rows: Int64
    begin: tuple[Int64, Int64]
    end: tuple[Int64, Int64]
    length: tuple[Int64, Int64]

    def draw(self, generator: np.random.Generator) -> tuple[Int64, Int64]:
        """Return begins and ends by their clocks.

        Of begin, end and length the two that leave fewest pairs are drawn, until the third is in its bounds.
        The three bounds are tight, so that this is so for every other pair at least.
        """
        width = [bounds[1] - bounds[0] + 1.0 for bounds in (self.begin, self.end, self.length)]
        spared = np.argmin([width[1] * width[2], width[0] * width[2], width[0] * width[1]], axis=0)
        begin, end = np.zeros((2, len(self.rows)), np.int64)
        left = np.arange(len(self.rows))
        while len(left):
            drawn = [
                generator.integers(low[left], high[left], endpoint=True)
                for low, high in (self.begin, self.end, self.length)
            ]
            no_begin, no_end = spared[left] == 0, spared[left] == 1
            begin[left] = np.where(no_begin, drawn[1] - drawn[2], drawn[0])
            end[left] = np.where(no_end, drawn[0] + drawn[2], drawn[1])
            left = left[~self._fits(left, begin[left], end[left])]
        return begin, end

    def _fits(self, at: Int64, begin: Int64, end: Int64) -> NDArray[np.bool_]:
        inside = np.ones(len(at), np.bool_)
        for value, (low, high) in zip(
            (begin, end, end - begin), (self.begin, self.end, self.length), strict=True
        ):
            inside &= (low[at] <= value) & (value <= high[at])
        return inside


class _WeighedSpan:
    """A span with explicit probabilities: its begin is drawn first, and then its length.

    Parameters
    ----------
    row : int
    begin, end : (int, int)
        Bounds by its clock, ticks.
    length : (int, int)
        Bounds of its length.
    laws : three of (w,) float64 or None
        Probabilities of the begin, the end, and of lengths from the least on; None: alike.
    """

    def __init__(
        self,
        row: int,
        begin: tuple[int, int],
        end: tuple[int, int],
        length: tuple[int, int],
        laws: tuple[Float64 | None, Float64 | None, Float64 | None],
    ) -> None:
        self.row, self._begin, self._end, self._shortest = row, begin[0], end[0], length[0]
        sizes = begin[1] - begin[0] + 1, end[1] - end[0] + 1
        of_begin, of_end, of_length = laws
        self._of_end = np.ones(sizes[1]) if of_end is None else of_end
        self._of_length = np.ones(length[1] - length[0] + 1) if of_length is None else of_length
        shortest = length[0] - (end[0] - begin[0])
        self._begins = np.cumsum(begins_of_pairs(of_begin, of_end, self._of_length, sizes, shortest))

    def draw(self, generator: np.random.Generator) -> tuple[int, int]:
        """Return begin and end by the clock. O(log w + d) for w begins and d lengths."""
        begin = self._begin + _drawn(self._begins, generator)
        first = begin + self._shortest - self._end
        skipped, last = max(-first, 0), min(len(self._of_length), len(self._of_end) - first)
        weights = self._of_length[skipped:last] * self._of_end[first + skipped : first + last]
        return begin, begin + self._shortest + skipped + _drawn(np.cumsum(weights), generator)


def _drawn(heads: Float64, generator: np.random.Generator) -> int:
    """Return a place by weights, of which sums up to each are given; one without weight is never drawn."""
    aim = generator.random() * heads[-1]
    return int(min(np.searchsorted(heads, aim, side="right"), np.searchsorted(heads, heads[-1])))


class DrawnTimes:
    """Draws a tick for each event of a table: clocks, orders of sources, laws and lengths are respected.

    Parameters
    ----------
    times : EventTimes
        Of n events, or of those with their ends behind them.
    order : SequencedEvents or None
        The order by sequences of points.
    spans : SpanTimes or None
        Of n events, of which some last.
    """

    def __init__(self, times: EventTimes, order: SequencedEvents | None, spans: SpanTimes | None) -> None:
        self._count = len(times.lower) if spans is None else spans.events
        offsets = times.offsets
        none = np.full(len(times.lower), -1)
        law, values = (none, np.zeros(0)) if times.pmfs is None else (times.pmfs.offset, times.pmfs.values)
        lower, upper = times.lower, times.upper
        self._clock: Int64 | None = None
        if offsets is not None:
            self._clock = offsets.clock
            lower, upper = lower - offsets.low[offsets.clock], upper - offsets.high[offsets.clock]
            law = np.where(lower < upper, law, -1)
            self._offsets = _Laws(offsets.low, offsets.high, offsets.law, offsets.values)
        self._alone = _Laws(lower, upper, law, values)
        self._records = [] if order is None else [_of_records(order, at) for at in range(len(order.clusters))]
        self._spans: _Lengths | None = None
        self._weighed: list[_WeighedSpan] = []
        if spans is not None:
            laws = FlatLaws(law, values)
            has_law = _have_laws(spans, laws)
            self._spans = _of_spans(spans, np.flatnonzero(spans.lasts & ~has_law), lower, upper)
            self._weighed = [
                _weighed(spans, row, lower, upper, laws) for row in np.flatnonzero(has_law).tolist()
            ]

    def draw(self, generator: np.random.Generator) -> tuple[Int64, Int64]:
        """Return the ticks at which events begin and end, each (n,) int64; equal ones of points."""
        ticks = self._alone.draw(generator)
        for rows, first, records in self._records:
            ticks[rows] = first + records.draw(generator)
        begin, end = ticks[: self._count], ticks[: self._count].copy()
        if self._spans is not None:
            begin[self._spans.rows], end[self._spans.rows] = self._spans.draw(generator)
        for span in self._weighed:
            begin[span.row], end[span.row] = span.draw(generator)
        if self._clock is not None:
            moved = self._offsets.draw(generator)[self._clock[: self._count]]
            begin, end = begin + moved, end + moved
        return begin, end


def _of_records(order: SequencedEvents, cluster: int) -> tuple[Int64, int, Records]:
    first, records = order.records(cluster)
    return order.clusters[cluster][0], first, records


def _of_spans(spans: SpanTimes, rows: Int64, lower: Int64, upper: Int64) -> _Lengths:
    """Return some spans among events, by bounds of their begins, and of their ends behind them."""
    begin, end = ((lower[at], upper[at]) for at in (rows, rows + spans.events))
    shortest = np.maximum(spans.length.lower[rows], end[0] - begin[1])
    longest = np.minimum(spans.length.upper[rows], end[1] - begin[0])
    return _Lengths(rows, begin, end, (shortest, longest))


def _have_laws(spans: SpanTimes, laws: FlatLaws) -> NDArray[np.bool_]:
    """Return a mask of the events that last and have explicit probabilities, (n,) bool."""
    has_law = (laws.start[: spans.events] >= 0) | (laws.start[spans.events :] >= 0)
    if spans.length_laws is not None:
        has_law |= spans.length_laws.start >= 0
    return np.asarray(spans.lasts & has_law)


def _weighed(spans: SpanTimes, row: int, lower: Int64, upper: Int64, laws: FlatLaws) -> _WeighedSpan:
    """Return a span whose begin, end or length has explicit probabilities."""
    end = row + spans.events
    begins, ends = ((int(lower[at]), int(upper[at])) for at in (row, end))
    lengths = int(spans.length.lower[row]), min(int(spans.length.upper[row]), ends[1] - begins[0])
    of_begin, of_end, of_length = (
        None if law is None else law.of(at, high - low + 1)
        for law, at, (low, high) in (
            (laws, row, begins), (laws, end, ends), (spans.length_laws, row, lengths)
        )
    )  # fmt: skip
    return _WeighedSpan(row, begins, ends, lengths, (of_begin, of_end, of_length))
