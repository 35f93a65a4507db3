"""Events of one source that sequences put in order: those that share a tick, or all of an ordered source.

They are searched for on shorter ticks: events of one source that share a tick get places within it, so that
no search knows of ties. Where the order of all is certain, each event has one place, and all that forbids is
exact there; only the window is left to be weighed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.shared.records import Records
from uncertain_cep.candidates.own_times import offset_bounds, times_of
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.selection import rows_taken
from uncertain_cep.candidates.tie_breaks import TieBreaks
from uncertain_cep.config.limits import MAX_TICK, MOST_RECORD_CELLS
from uncertain_cep.errors import ConfidenceCostError, OptionError, TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.source_order import no_time_left

__all__ = ["SequencedEvents", "order_faults", "sequenced"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SequencedEvents:
    """The order by sequences of the events of a table, all (n,) int64 by row unless said otherwise."""

    source: Int64
    """-1: none."""
    names: tuple[str, ...]
    """Of each source."""
    rank: Int64
    """In order as the sequences of a source are; -1: none."""
    lower: Int64
    upper: Int64
    """Own times, ticks; of an ordered source those that its order leaves."""
    low: Int64
    high: Int64
    """Bounds of the source's offset; 0 without one."""
    alone: tuple[Int64, Int64]
    """Bounds of own times whatever the order says."""
    pmfs: ExplicitPmfs
    """Of own times; of records those of each alone."""
    cluster: Int64
    """Which records of an ordered source, with intervals that overlap, it is one of; -1: none."""
    place: Int64
    """Its place among these."""
    clusters: tuple[tuple[Int64, Int64, Int64], ...]
    """The rows of each cluster in order, and the bounds of each alone."""
    tie: Int64
    """Its place among those of its source that it can share a tick with."""
    is_total: bool
    """Whether each partition's events are of one source and in one order in all worlds."""
    sequence: str
    """The column of sequences."""
    _records: dict[Any, Records] = field(default_factory=dict, repr=False)

    @property
    def places(self) -> tuple[int, int]:
        """How many places each tick has, and how many ticks an event can be behind that of its place."""
        return int(self.tie.max()) + 1, int((self.upper - self.lower).max())

    def searched(self, plan: EvaluationPlan) -> tuple[EvaluationPlan, Int64, Int64]:
        """Return a plan and bounds of times, ticks, by which all matches are found, and more than these.

        Ticks are so short that events of a source that share one are in order. Where the order is total, each
        event has one tick. Conditions on times are left out.
        """
        scale, longest = self.places
        low, high = (0, 0) if self.is_total else (self.low, self.high)
        lower, upper = self.lower + low, self.upper + high
        first, window = int(lower.min()), plan.window
        span = int(upper.max()) - first + 1
        if span >= MAX_TICK // (2 * scale):
            raise OptionError(
                f"up to {scale:,} events of one source share a tick, and the trace has {span:.1e}: give a "
                "longer tick, or leave out the column of sequences"
            )
        lower, upper = (lower - first) * scale + self.tie, (upper - first) * scale + self.tie
        if self.is_total:
            window += longest
            upper = lower
        window = min(window, span) * scale
        bound = replace(plan.bound, window=window, times=())
        return replace(plan, bound=bound, distances=None), lower, upper

    def is_spoiled_in_time(self, plan: EvaluationPlan) -> bool:
        """Return whether the order of all is known, and times tell besides what lies in a match's gaps.

        They do where a gap ends with the window, and where there are conditions on times.
        """
        is_timed = plan.event_order.touches_end or (bool(plan.bound.times) and _has_gaps(plan))
        return self.is_total and is_timed

    def breaks_ties(self, plan: EvaluationPlan) -> bool:
        """Return whether a pattern that forbids, or has sets, asks for ties that sequences break."""
        return not self.is_total and _has_gaps(plan)

    @property
    def ties(self) -> TieBreaks:
        """The order of events at the same tick."""
        return TieBreaks(self.source, self.rank, self.lower, self.upper)

    @property
    def times(self) -> tuple[Int64, Int64]:
        """Bounds of the times of events, ticks, whatever the order says."""
        return self.alone[0] + self.low, self.alone[1] + self.high

    def in_order(self, rows: Int64) -> Int64:
        """Return the places of the events of matches, (l, k) rows, in the order that is total."""
        return np.asarray(np.lexsort((self.tie[rows], self.lower[rows]), axis=0))

    def rises(self, rows: Int64) -> Mask:
        """Return a mask of neighbours in matches, (l, k) rows in order, that may share a tick, (l - 1, k)."""
        may_tie: Mask = self.source[rows[1:]] == self.source[rows[:-1]]
        if not self.is_total:
            may_tie &= (self.rank[rows[:-1]] >= 0) & (self.rank[rows[1:]] > self.rank[rows[:-1]])
        return may_tie

    def records(self, cluster: int) -> tuple[int, Records]:
        """Return the tick of its source at which a cluster begins, and its laws; those alike share them."""
        rows, lower, upper = self.clusters[cluster]
        first, size = int(lower.min()), int(upper.max() - lower.min()) + 1
        offsets = self.pmfs.offset[rows]
        alike = bool((offsets < 0).all() and (lower == lower[0]).all() and (upper == upper[0]).all())
        key: Any = (len(rows), size) if alike else cluster
        records = self._records.get(key)
        if records is None:
            laws = None
            self._check_cost(cluster, size if alike else len(rows) * size)
            if not alike:
                laws = [
                    (low - first, np.ones(length) if at < 0 else self.pmfs.values[at : at + length])
                    for low, length, at in zip(
                        lower.tolist(), (upper - lower + 1).tolist(), offsets.tolist(), strict=True
                    )
                ]
            records = self._records[key] = Records(len(rows), size, laws)
            if not records.possible:
                raise TraceError([no_time_left(int(rows[0]), int(rows[-1]), self.sequence)])
        return first, records

    def _check_cost(self, cluster: int, cells: int) -> None:
        if cells > MOST_RECORD_CELLS:
            raise ConfidenceCostError(
                f"events of the ordered source {self.name_of(cluster)} that overlap have {cells:.1e} ticks "
                f"together, and laws are computed for {MOST_RECORD_CELLS:.1e} at most: give a longer tick",
                cells,
                MOST_RECORD_CELLS,
            )

    def name_of(self, cluster: int) -> str:
        """Return the name of the source of some records."""
        return self.names[int(self.source[self.clusters[cluster][0][0]])]


def _has_gaps(plan: EvaluationPlan) -> bool:
    """Return whether a pattern has sets, or gaps that must stay free."""
    several = len(plan.components) > 1 or plan.components[0].kleene
    return bool(plan.negations) or not plan.event_order.is_chain or (plan.forbids and several)


def _refuse(events: SequencedEvents, what: str) -> None:
    """Raise an OptionError: something takes no events that sequences put in order."""
    of = events.clusters[0][0][0] if events.clusters else np.flatnonzero(events.tie > 0)[0]
    raise OptionError(
        f"events of the source {events.names[int(events.source[of])]} that can share a tick are in the order "
        f"of their sequences, and {what} does not support that yet: rename or leave out the column of "
        "sequences, or take times as independent, sources=False"
    )


def _ranks(rows: Int64, sequence: Int64, source: Int64) -> Int64:
    """Return for each event its rank among those with a sequence, -1 without; rows come in this order."""
    rank = np.full(len(source), -1)
    rank[rows] = np.cumsum(
        (np.diff(sequence[rows], prepend=0) != 0) | (np.diff(source[rows], prepend=-1) != 0)
    )
    return rank


def sequenced(
    plan: EvaluationPlan, table: pa.Table, pmfs: ExplicitPmfs | None, lower: Int64, upper: Int64
) -> SequencedEvents | None:
    """Return the order by sequences of checked events; None if there is none.

    An OptionError says that the pattern takes no events of which they say something.

    Parameters
    ----------
    pmfs : ExplicitPmfs or None
        Of own times where events name clocks.
    lower, upper : (n,) int64
        Bounds of their times, ticks, without those of probability 0 at the ends.
    """
    names, count = plan.names, table.num_rows
    if names.sequence not in plan.clock_columns(table.column_names):
        return None
    column, by_name = table.column(names.sequence), table.column(names.source)
    offsets = offset_bounds(plan, table)
    source = offsets.clock
    low, high = offsets.low[source], offsets.high[source]
    has_sequence = np.asarray(column.is_valid().to_numpy()) & (source >= 0)
    own_lower, own_upper = lower - low, upper - high
    sequence = np.asarray(pc.fill_null(column.cast(pa.int64()), 0).to_numpy())
    in_order = _is_ordered(table, names) & (source >= 0)
    rows = np.flatnonzero(has_sequence)
    rows = rows[np.lexsort((sequence[rows], source[rows]))]
    rank = _ranks(rows, sequence, source)
    bounds = own_lower.copy(), own_upper.copy()
    cluster, place = np.full((2, count), -1)
    clusters: list[tuple[Int64, Int64, Int64]] = []
    for records in _clusters(rows[in_order[rows]], source, own_lower, own_upper, names.sequence):
        cluster[records], place[records] = len(clusters), np.arange(len(records))
        clusters.append((records, bounds[0][records], bounds[1][records]))
    tie = _ties(rows, source, rank, own_lower, own_upper)
    if not tie.any():
        return None
    by_source = _is_by_source(plan)
    known_order = has_sequence & (in_order | (own_lower == own_upper))
    # With a partition for each source events without one are in no match.
    known_order |= by_source & (source < 0)
    events_in_order = SequencedEvents(
        source,
        tuple(by_name.take(pa.array(_first_rows(source))).cast(pa.string()).to_pylist()),
        rank,
        own_lower,
        own_upper,
        low,
        high,
        bounds,
        ExplicitPmfs(np.full(count, -1), np.zeros(0)) if pmfs is None else pmfs,
        cluster,
        place,
        tuple(clusters),
        tie,
        bool(known_order.all()) and (by_source or int(source.max()) == 0),
        names.sequence,
    )
    _check(plan, table, events_in_order)
    return events_in_order


def _is_ordered(table: pa.Table, names: Names) -> NDArray[np.bool_]:
    """Return a mask of the events that say that their source is ordered, (n,) bool."""
    if names.ordered not in table.column_names:
        return np.zeros(table.num_rows, dtype=np.bool_)
    return np.asarray(pc.fill_null(table.column(names.ordered).cast(pa.bool_()), False).to_numpy())


def order_faults(plan: EvaluationPlan, table: pa.Table) -> list[TraceFault]:
    """Return a fault for an ordered source whose events have no times in their order, pmfs considered.

    The table has been checked. Laws that would cost too much are passed over: a query with them says so.
    """
    if plan.clock_names.ordered is None:
        return []
    lower, upper = (plan.domain.ticks(table.column(name)) for name in (plan.names.lower, plan.names.upper))
    pmfs, lower, upper = times_of(plan, table, offset_bounds(plan, table), lower, upper)
    try:
        events_in_order = sequenced(plan, table, pmfs, lower, upper)
        for number, (rows, _, _) in enumerate(() if events_in_order is None else events_in_order.clusters):
            # Uniform times within bounds that leave some to each are in order in some worlds.
            if events_in_order is not None and (events_in_order.pmfs.offset[rows] >= 0).any():
                with suppress(ConfidenceCostError):
                    events_in_order.records(number)
    except TraceError as error:
        return list(error.faults)
    return []


def _first_rows(source: Int64) -> Int64:
    codes, first = np.unique(source, return_index=True)
    return np.asarray(first[codes >= 0], dtype=np.int64)


def _is_by_source(plan: EvaluationPlan) -> bool:
    """Return whether all events that a match depends on are of one source."""
    if plan.query.strategy == "strict_contiguity":
        return False
    source = plan.names.source
    return any({*key.columns, *key.negated} == {source} for key in plan.keys)


def _check(plan: EvaluationPlan, table: pa.Table, events_in_order: SequencedEvents) -> None:
    """Refuse a pattern that takes no events that sequences put in order."""
    if plan.compressed:
        _refuse(events_in_order, 'kleene="compressed"')
    if not events_in_order.clusters or not events_in_order.breaks_ties(plan):
        return
    if not plan.query.strategy.endswith("contiguity"):
        components = *plan.components, *(negation.component for negation in plan.negations)
        if all((events_in_order.cluster[rows_taken(plan, table, part)] < 0).all() for part in components):
            return
    if not plan.event_order.is_chain:
        _refuse(events_in_order, "AND(...) with records of an ordered source that overlap, and others,")
    _refuse(events_in_order, "what forbids events, records of an ordered source that overlap among others,")


def _clusters(rows: Int64, source: Int64, lower: Int64, upper: Int64, sequence: str) -> list[Int64]:
    """Return the rows of ordered sources that depend on each other, and tighten their bounds by the order.

    ``rows`` are by source and sequence. Whatever comes first cannot be behind what comes later anyhow where
    the latest end of the one is at most the earliest begin of the other.
    """
    clusters = []
    for rows_of_source in np.split(rows, np.flatnonzero(np.diff(source[rows])) + 1):
        first, last = lower[rows_of_source], upper[rows_of_source]
        ends = np.maximum.accumulate(last)
        begins = np.minimum.accumulate(first[::-1])[::-1]
        lower[rows_of_source] = np.maximum.accumulate(first)
        upper[rows_of_source] = np.minimum.accumulate(last[::-1])[::-1]
        for at in np.flatnonzero(lower[rows_of_source] > upper[rows_of_source])[:1].tolist():
            one, other = (
                int(rows_of_source[np.argmax(first[: at + 1])]),
                int(rows_of_source[at + np.argmin(last[at:])]),
            )
            raise TraceError([no_time_left(one, other, sequence)])
        parts = np.split(rows_of_source, np.flatnonzero(ends[:-1] <= begins[1:]) + 1)
        clusters += [part for part in parts if len(part) > 1]
    return clusters


def _ties(rows: Int64, source: Int64, rank: Int64, lower: Int64, upper: Int64) -> Int64:
    """Return the place of each event, (n,) int64, by sequence among those that may share ticks with it."""
    ties = np.zeros(len(source), dtype=np.int64)
    if not len(rows):
        return ties
    rows = rows[np.lexsort((lower[rows], source[rows]))]
    group = np.zeros(len(rows), dtype=np.int64)
    for rows_of_source in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(source[rows])) + 1):
        ends = np.maximum.accumulate(upper[rows[rows_of_source]])
        group[rows_of_source[0]] = 1
        group[rows_of_source[1:]] = lower[rows[rows_of_source[1:]]] > ends[:-1]
    group = np.cumsum(group)
    by_rank = np.lexsort((rank[rows], group))
    rows, group = rows[by_rank], group[by_rank]
    fresh = np.diff(group, prepend=0) != 0
    steps = np.cumsum(np.diff(rank[rows], prepend=0) != 0)
    ties[rows] = steps - np.maximum.accumulate(np.where(fresh, steps, 0))
    return ties
