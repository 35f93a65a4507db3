"""The events of a table as their order needs them: bounds of begins and ends, clocks, sequences, and laws.

An event is before another one if it ends before that begins. Nothing ties ends of different events but their
clocks, so the law of each end by itself is all that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.event_times import EventTimes, event_times
from uncertain_cep.candidates.laws_of_ends import are_uniform, law_of_end
from uncertain_cep.candidates.span_times import SpanTimes, spans_in_ticks, with_ends
from uncertain_cep.executor.checked_events import CheckedEvents, equal_values
from uncertain_cep.happened_before.certain_order import CertainOrder
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.timeline.lasting_columns import has_spans

__all__ = ["EndTimes", "OrderedEvents"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class EndTimes(NamedTuple):
    """When n events begin, or when they end: the same of moments. All (n,), times in ticks.

    Attributes
    ----------
    lower, upper : int64
    own_lower, own_upper : int64
        By the clock of the event.
    has_own_law, has_law : bool
        Whether the time by the clock, and the time, are not uniform.
    """

    lower: Int64
    upper: Int64
    own_lower: Int64
    own_upper: Int64
    has_own_law: Mask
    has_law: Mask

    @classmethod
    def of(cls, times: EventTimes) -> EndTimes:
        """Return the times of events."""
        own_law = np.zeros(len(times.lower), np.bool_) if times.pmfs is None else times.pmfs.offset >= 0
        if (offsets := times.offsets) is None:
            return cls(times.lower, times.upper, times.lower, times.upper, own_law, own_law)
        low, high = offsets.low[offsets.clock], offsets.high[offsets.clock]
        own_lower, own_upper = times.lower - low, times.upper - high
        # The sum of two uniform parts, none of which is certain, is not uniform.
        law = own_law | (offsets.law[offsets.clock] >= 0) | ((low < high) & (own_lower < own_upper))
        return cls(times.lower, times.upper, own_lower, own_upper, own_law, law)

    def some(self, rows: Int64) -> EndTimes:
        """Return the times of some events, (m,) int64."""
        bounds = (self.lower[rows], self.upper[rows], self.own_lower[rows], self.own_upper[rows])
        return EndTimes(*bounds, self.has_own_law[rows], self.has_law[rows])

    def bounds(self, rows: Int64, *, by_clock: bool) -> tuple[Int64, Int64]:
        """Return the bounds of some events, (m,) int64 each."""
        return (
            (self.own_lower[rows], self.own_upper[rows]) if by_clock else (self.lower[rows], self.upper[rows])
        )


@dataclass(frozen=True)
class OrderedEvents:
    """The events of a table, checked.

    Attributes
    ----------
    events : CheckedEvents
    order : CertainOrder
    begin, end : EndTimes
    lasts : (n,) bool
    columns : dict of Arrow arrays
        Of events that last the columns that say so, in ticks; none if all are moments.
    """

    events: CheckedEvents
    order: CertainOrder
    begin: EndTimes
    end: EndTimes
    lasts: Mask
    columns: dict[str, pa.ChunkedArray]

    @classmethod
    def of(cls, table: pa.Table, by: Sequence[str], options: MatchOptions) -> OrderedEvents:
        """Return the events of a table, in groups of equal values of some columns.

        Raises
        ------
        TraceError
            With every fault, if they are not those of the model.
        OptionError
            If records of an ordered source overlap.
        """
        table = with_all_bounds(table, options.names.lower)
        events = CheckedEvents.of(table, replace(options, takes_spans=True))
        times, count = events.times, table.num_rows
        clock, rank = np.full((2, count), -1)
        lasts, columns = np.zeros(count, np.bool_), {}
        if has_spans(table.column_names):
            plan, both, spans = with_ends(events.plan, events.table)
            laws = both.column(plan.names.pmf) if plan.names.pmf in both.column_names else None
            begin, end = _ends_of_spans(EndTimes.of(event_times(plan, both)), laws, spans)
            lasts, columns = spans.lasts, spans_in_ticks(events.plan, events.table)
        else:
            begin = end = EndTimes.of(times)
        if times.offsets is not None:
            clock, rank = times.offsets.clock, events.ranks("order")
        (group,) = equal_values([events.table], by)
        order = CertainOrder(group, begin.lower, end.upper, clock, begin.own_lower, end.own_upper, rank)
        return cls(events, order, begin, end, lasts, columns)

    @property
    def has_own_law(self) -> Mask:
        """Whether begin or end by the clock is not uniform, (n,)."""
        return self.begin.has_own_law | self.end.has_own_law

    @property
    def has_law(self) -> Mask:
        """Whether begin or end is not uniform, (n,)."""
        return self.begin.has_law | self.end.has_law


def _ends_of_spans(
    times: EndTimes, laws: pa.ChunkedArray | None, spans: SpanTimes
) -> tuple[EndTimes, EndTimes]:
    """Return the begins and ends of n events, whose ``times`` and ``laws`` stand one behind the other."""
    count = spans.events
    pmf = pa.nulls(2 * count) if laws is None else laws
    has_law = np.asarray(pmf.is_valid().to_numpy(zero_copy_only=False))
    has_length_law = np.zeros(count, np.bool_) if spans.length_laws is None else spans.length_laws.start >= 0
    weighed = np.flatnonzero(spans.lasts & (has_law[:count] | has_law[count:] | has_length_law))
    parts = []
    for at_end in (False, True):
        part = times.some(np.arange(count) + count * (at_end & spans.lasts))
        uneven = spans.lasts & ~are_uniform(spans, np.full(count, at_end), has_law)
        part = part._replace(has_own_law=part.has_own_law | uneven, has_law=part.has_law | uneven)
        for n in weighed.tolist():
            # The other end, and the length, may leave ticks out that its own law has.
            bounds = spans.own_end if at_end else spans.own_begin
            law = law_of_end(spans, n, (pmf[n].as_py(), pmf[n + count].as_py()), at_end=at_end)
            possible = np.flatnonzero(law > 0.0)
            first, last = int(bounds.lower[n] + possible[0]), int(bounds.lower[n] + possible[-1])
            part.lower[n] += first - part.own_lower[n]
            part.upper[n] += last - part.own_upper[n]
            part.own_lower[n], part.own_upper[n] = first, last
        parts.append(part)
    return parts[0], parts[1]
