"""``RETURN EXPECTED COUNT``: expected numbers of matches by group and by bucket of the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence import (
    confidences_by_bucket,
    covered_stretches,
    event_rates,
    exact_chain_confidence,
    expected_by_bucket,
    repeated_uses,
    running_totals,
)
from eventbased import partition_bases
from eventbased.config import LONGEST_LINE
from uncertain_cep.buckets import summed
from uncertain_cep.config import COUNT_BATCH, MOST_COVERED_TICKS, MOST_REPEATED_STEPS
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.pmfs import ExplicitPmfs
from uncertain_cep.selection import Selection
from uncertain_cep.sequence import Chunk

__all__ = ["Chunks", "bucketed_counts", "counts_of_matches", "expected_counts", "merged_counts"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

MOST_SHARING: Final = 3
"""Components up to which what the uses of one event in several of them count is taken off again."""

LEAST_LEFT: Final = 1e-5
"""Share of a count below which what is left is counted match by match: it may be rounding alone."""

Chunks = Callable[[Selection], Iterator[Chunk]]
"""Enumerates the matches among candidates, with rows of the table as events, and with confidences."""


def expected_counts(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, pmfs: ExplicitPmfs | None, chunks: Chunks
) -> Iterator[pa.RecordBatch]:
    """Yield expected numbers of matches, which :func:`merged_counts` adds up.

    Parameters
    ----------
    plan : EvaluationPlan
        Of a query with ``RETURN EXPECTED COUNT``.
    table : pyarrow.Table
    selection : Selection
        None of its components is empty.
    pmfs : ExplicitPmfs or None
    chunks : Chunks
        For the queries and traces that have to be counted match by match.

    Yields
    ------
    pyarrow.RecordBatch
        Of the plan's output schema.

    Notes
    -----
    Matches are not enumerated under skip till any match if predicates speak of one event each or equate
    keys, no partition covers more than ``MOST_COVERED_TICKS`` ticks, and there are at most three components
    or none shares an event with another: then O(n log n + T l^2), T being the covered ticks, whatever the
    window and the number of matches, and O(U min(U, W)) for a shared event of U ticks.
    """
    # By keys of different names an event is of one partition for one component, of another one for another.
    alike = all(len(set(key.columns)) == 1 for key in plan.split_keys)
    any_match = plan.query.strategy == "skip_till_any_match" and not plan.joined
    few = len(selection.rows) <= MOST_SHARING and alike
    if any_match and (few or not len(_shared(table, selection))):
        yield from _counted_at_once(plan, table, selection, pmfs, chunks)
    else:
        yield from _added_up(plan, table, selection, pmfs, chunks)


def counts_of_matches(plan: EvaluationPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sums of the confidences of matches by group, of the plan's output schema.

    Parameters
    ----------
    plan : EvaluationPlan
        Of a query with ``RETURN EXPECTED COUNT``, without EVERY.
    batches : iterable of RecordBatch
        The matches, as ``plan.counted`` gives them.
    """
    wanted = [*plan.bound.by, "confidence"]
    for batch in batches:
        counts = batch.select(wanted).rename_columns(plan.output_schema.names)
        yield from merged_counts(plan, [counts]).to_batches()


def bucketed_counts(
    plan: EvaluationPlan, table: pa.Table, chunks: Iterable[Chunk]
) -> Iterator[pa.RecordBatch]:
    """Yield the sums by group and bucket of what :func:`uncertain_cep.buckets.evaluate_bucketed` yields."""
    for chunk in chunks:
        assert chunk.confidence is not None
        rows = chunk.events[0]
        if not plan.bound.by:
            rows, bucket, value = summed(np.zeros_like(rows), chunk.lower, chunk.confidence)
        else:
            bucket, value = chunk.lower, chunk.confidence
        yield from merged_counts(plan, _batches(plan, table, rows, bucket, value)).to_batches()


def merged_counts(plan: EvaluationPlan, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Add counts up by group and bucket, in ascending order of these.

    Without groups and buckets there is one row, of 0.0 if there is no match.
    """
    counts = pa.Table.from_batches(list(batches), schema=plan.output_schema)
    keys = plan.output_schema.names[:-1]
    if not keys:
        total = pc.sum(counts.column(0), min_count=0)
        return pa.table([pa.array([total.as_py()], pa.float64())], schema=plan.output_schema)
    summed = counts.group_by(keys).aggregate([("expected_count", "sum")])
    summed = summed.select([*keys, "expected_count_sum"]).rename_columns(plan.output_schema.names)
    order = pc.sort_indices(summed, sort_keys=[(key, "ascending") for key in keys])
    return summed.take(order).cast(plan.output_schema)


def _shared(table: pa.Table, selection: Selection) -> Int64:
    """Return the rows of the events that are candidates of several components, ascending."""
    uses = np.zeros(table.num_rows, dtype=np.int32)
    for part in selection.rows:
        uses[part] += 1
    return np.flatnonzero(uses > 1)


def _counted_at_once(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, pmfs: ExplicitPmfs | None, chunks: Chunks
) -> Iterator[pa.RecordBatch]:
    if selection.empty:
        return
    earliest = min(int(part.min()) for part in selection.lower)
    latest = max(int(part.max()) for part in selection.upper)
    window = min(plan.window, latest - earliest + 1)
    shift, line, _ = partition_bases(
        selection.lower, selection.upper, selection.partition, selection.partitions, window + 1
    )
    stretches = None
    if line <= LONGEST_LINE:
        stretches = _Stretches(selection, shift)
    if stretches is None or stretches.ticks > MOST_COVERED_TICKS:
        if selection.partitions > 1:
            for half in selection.halves():
                yield from _counted_at_once(plan, table, half, pmfs, chunks)
        else:
            yield from _added_up(plan, table, selection, pmfs, chunks)
        return
    rates = np.empty((len(selection.rows), stretches.ticks))
    work = (
        np.empty(stretches.ticks + 1),
        np.empty(stretches.ticks + 1),
        np.empty(stretches.ticks + 1, dtype=np.int32),
    )
    for j, rows in enumerate(selection.rows):
        offset = np.full(len(rows), -1) if pmfs is None else pmfs.offset[rows]
        values = np.empty(0) if pmfs is None else pmfs.values
        lower, upper = stretches.lifted[j]
        event_rates(lower, upper, offset, values, stretches.starts, stretches.places, *work, rates[j])
    every = plan.bound.every or 0
    lengths = np.diff(stretches.places)
    room = len(lengths) + (int((lengths // every + 1).sum()) if every else 0)
    found, bucket, value = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    count = expected_by_bucket(
        rates, stretches.starts, stretches.places, shift[stretches.partition], window, every, found, bucket,
        value,
    )  # fmt: skip
    # Any event of a partition tells its attributes.
    rows = np.full(selection.partitions, selection.rows[0][0])
    if selection.partition is not None:
        rows[selection.partition[0]] = selection.rows[0]
    part, bucket, value = summed(stretches.partition[found[:count]], bucket[:count], value[:count])
    shared = _shared(table, selection)
    if len(shared):
        less = _repeated(plan, selection, shared, stretches, rates, shift, window, pmfs)
        if less is None:
            yield from _added_up(plan, table, selection, pmfs, chunks)
            return
        counted = _Counts(part, bucket, value)
        found_less = _Counts(*less)
        part, bucket, value = _without_repeated(plan, table, selection, pmfs, chunks, counted, found_less)
    yield from _batches(plan, table, rows[part], bucket, value)


class _Counts(NamedTuple):
    """Counts by partition and first tick of a bucket, all (k,)."""

    part: Int64
    bucket: Int64
    value: Float64

    def keys(self, every: int, low: int, span: int) -> Int64:
        """Return one number for each partition and bucket."""
        return self.part * span + (self.bucket - low) // max(every, 1)


def _without_repeated(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    pmfs: ExplicitPmfs | None,
    chunks: Chunks,
    whole: _Counts,
    less: _Counts,
) -> _Counts:
    """Take counts off others; count match by match where hardly anything but rounding is left."""
    every = plan.bound.every or 0
    buckets = np.concatenate((whole.bucket, less.bucket))
    low = int(buckets.min(initial=0))
    span = (int(buckets.max(initial=0)) - low) // max(every, 1) + 1
    given, taken = whole.keys(every, low, span), less.keys(every, low, span)
    order = np.argsort(taken)
    distinct, begins = np.unique(taken[order], return_index=True)
    sums = np.add.reduceat(less.value[order], begins) if len(begins) else np.zeros(0)
    place = np.minimum(np.searchsorted(distinct, given), max(len(distinct) - 1, 0))
    value = whole.value.copy()
    if len(distinct):
        value -= np.where(distinct[place] == given, sums[place], 0.0)
    doubtful = value < LEAST_LEFT * whole.value
    sound = _Counts(whole.part[~doubtful], whole.bucket[~doubtful], value[~doubtful])
    if not doubtful.any():
        return sound
    part_of = np.zeros(table.num_rows, dtype=np.int64)
    if selection.partition is not None:
        part_of[selection.rows[0]] = selection.partition[0]
    first = np.isin(part_of[selection.rows[0]], whole.part[doubtful])
    if every:
        begin, end = whole.bucket[doubtful].min(), whole.bucket[doubtful].max() + every
        first &= (selection.upper[0] >= begin) & (selection.lower[0] < end)
    others = [np.ones(len(rows), dtype=np.bool_) for rows in selection.rows[1:]]
    shares = _Shares(plan, table, selection, pmfs, every) if every else None
    parts = [sound]
    for chunk in chunks(selection.where([first, *others])):
        assert chunk.confidence is not None
        own = part_of[chunk.events[0]]
        if shares is None:
            parts.append(_Counts(*summed(own, np.zeros_like(own), chunk.confidence)))
        else:
            parts += [_Counts(*summed(own[n], bucket, share)) for n, bucket, share in shares.of(chunk)]
    kept = []
    wanted = given[doubtful]
    for found in parts[1:]:
        mask = np.isin(found.keys(every, low, span), wanted)
        mask &= (found.bucket >= low) & (found.bucket < low + span * max(every, 1))
        kept.append(_Counts(found.part[mask], found.bucket[mask], found.value[mask]))
    joined = [np.concatenate(columns) for columns in zip(sound, *kept, strict=True)]
    return _Counts(*summed(joined[0], joined[1], joined[2]))


def _repeated(
    plan: EvaluationPlan,
    selection: Selection,
    shared: Int64,
    stretches: _Stretches,
    rates: Float64,
    shift: Int64,
    window: int,
    pmfs: ExplicitPmfs | None,
) -> tuple[Int64, Int64, Float64] | None:
    """Return what the uses of one event in several places count, by partition and bucket.

    None if that takes too many steps.
    """
    uses = np.zeros((len(shared), len(selection.rows)), dtype=np.bool_)
    lower, upper, partition = np.zeros((3, len(shared)), dtype=np.int64)
    for j, rows in enumerate(selection.rows):
        place = np.minimum(np.searchsorted(shared, rows), len(shared) - 1)
        own = shared[place] == rows
        place = place[own]
        uses[place, j] = True
        lower[place], upper[place] = stretches.lifted[j][0][own], stretches.lifted[j][1][own]
        if selection.partition is not None:
            partition[place] = selection.partition[j][own]
    ticks = (upper - lower + 1).astype(np.float64)
    every = plan.bound.every or 0
    boxes = np.ones(len(shared)) if not every else (ticks + window) // every + 3
    steps = ticks * np.minimum(ticks, window) * (window // every + 2 if every else 1)
    if steps.sum() > MOST_REPEATED_STEPS or boxes.sum() > COUNT_BATCH:
        return None
    totals = np.empty((2, len(rates), stretches.ticks + 1))
    running_totals(rates, totals[0], totals[1])
    room = int(boxes.sum())
    event, bucket, value = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    offset = np.full(len(shared), -1) if pmfs is None else pmfs.offset[shared]
    count = repeated_uses(
        uses, lower, upper, offset, np.empty(0) if pmfs is None else pmfs.values, shift[partition],
        stretches.starts, stretches.places, totals[0], totals[1], window, every, event, bucket, value,
    )  # fmt: skip
    return partition[event[:count]], bucket[:count], value[:count]


class _Stretches:
    """The ticks that candidates cover, partitions one behind the other on one time line.

    Attributes
    ----------
    lifted : list of ((n_j,) int64, (n_j,) int64)
        The intervals of each component's candidates on that line.
    starts : (c,) int64
        First tick of each stretch.
    places : (c + 1,) int64
        Covered ticks before each stretch.
    partition : (c,) int64
    ticks : int
        All covered ticks.
    """

    def __init__(self, selection: Selection, shift: Int64) -> None:
        self.lifted: list[tuple[Int64, Int64]] = []
        for j, (lower, upper) in enumerate(zip(selection.lower, selection.upper, strict=True)):
            moved = shift[0] if selection.partition is None else shift[selection.partition[j]]
            self.lifted.append((lower + moved, upper + moved))
        lower = np.concatenate([part for part, _ in self.lifted])
        upper = np.concatenate([part for _, part in self.lifted])
        order = np.argsort(lower, kind="stable")
        starts, stops = np.empty_like(lower), np.empty_like(lower)
        count = covered_stretches(order, lower, upper, starts, stops)
        self.starts = starts[:count].copy()
        lengths = (stops[:count] - self.starts).astype(np.float64)
        self.places = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(stops[:count] - self.starts)))
        self.ticks = int(self.places[-1]) if lengths.sum() < 2**62 else 2**62
        self.partition = np.zeros(count, dtype=np.int64)
        if selection.partition is not None:
            sorted_lower = lower[order]
            first = order[np.searchsorted(sorted_lower, self.starts)]
            self.partition = np.concatenate(selection.partition)[first]


def _added_up(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, pmfs: ExplicitPmfs | None, chunks: Chunks
) -> Iterator[pa.RecordBatch]:
    """Yield the sums of the confidences of enumerated matches, in bounded memory."""
    held: list[pa.RecordBatch] = []
    size = 0
    shares = None if plan.bound.every is None else _Shares(plan, table, selection, pmfs, plan.bound.every)
    for chunk in chunks(selection):
        assert chunk.confidence is not None
        rows = chunk.events[0] if plan.bound.by else np.zeros_like(chunk.events[0])
        if shares is None:
            found = [summed(rows, np.zeros_like(rows), chunk.confidence)]
        else:
            found = [summed(rows[match], bucket, value) for match, bucket, value in shares.of(chunk)]
        for part in found:
            held += _batches(plan, table, *part)
            size += len(part[0])
        if size > COUNT_BATCH:
            held = merged_counts(plan, held).to_batches()
            size = sum(batch.num_rows for batch in held)
            if size > COUNT_BATCH // 2:
                yield from held
                held, size = [], 0
    yield from held


class _Shares:
    """Shares the confidences of matches under skip till any match out among buckets."""

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        selection: Selection,
        pmfs: ExplicitPmfs | None,
        every: int,
    ) -> None:
        self._window, self._every = plan.window, every
        self._lower = np.zeros(table.num_rows, dtype=np.int64)
        self._upper = np.zeros(table.num_rows, dtype=np.int64)
        for rows, lower, upper in zip(selection.rows, selection.lower, selection.upper, strict=True):
            self._lower[rows] = lower
            self._upper[rows] = upper
        self._offset = np.full(table.num_rows, -1) if pmfs is None else pmfs.offset
        self._pmf = np.zeros(0) if pmfs is None else pmfs.values
        self._room = COUNT_BATCH

    def of(self, chunk: Chunk) -> Iterator[tuple[Int64, Int64, Float64]]:
        """Yield matches, first ticks of buckets, and P(match and first time in the bucket)."""
        done, count = 0, len(chunk.lower)
        while done < count:
            match, bucket = np.empty(self._room, np.int64), np.empty(self._room, np.int64)
            value = np.empty(self._room)
            before = done
            done, written, need = confidences_by_bucket(
                chunk.events, chunk.confidence, chunk.lower, self._lower, self._upper, self._offset,
                self._pmf, self._window, self._every, done, match, bucket, value,
            )  # fmt: skip
            if done == before:
                self._room = max(2 * self._room, need)
                continue
            for place in np.flatnonzero(np.isnan(value[:written])).tolist():
                value[place] = self._exact(chunk.events[:, match[place]], int(bucket[place]))
            yield match[:written], bucket[:written], value[:written]

    def _exact(self, events: Int64, bucket: int) -> float:
        lower, upper = self._lower[events].tolist(), self._upper[events].tolist()
        ticks = upper[0] - lower[0] + 1
        lower[0], upper[0] = max(lower[0], bucket), min(upper[0], bucket + self._every - 1)
        part = exact_chain_confidence(lower, upper, self._window)
        return float(part * (upper[0] - lower[0] + 1) / ticks)


def _batches(
    plan: EvaluationPlan, table: pa.Table, rows: Int64, bucket: Int64, value: Float64
) -> Iterator[pa.RecordBatch]:
    """Yield counts by an event of the group and the first tick of the bucket, where they are above 0."""
    if not len(rows):
        return
    schema = plan.output_schema
    columns: list[pa.Array] = []
    for name in plan.bound.by:
        found = table.column(name).take(pa.array(rows)).cast(schema.field(name).type)
        columns.append(found.combine_chunks() if found.num_chunks != 1 else found.chunk(0))
    if plan.bound.every is not None:
        columns.append(pa.array(bucket * plan.domain.tick).cast(schema.field("bucket").type))
    columns.append(pa.array(value))
    yield pa.RecordBatch.from_arrays(columns, schema=schema)
