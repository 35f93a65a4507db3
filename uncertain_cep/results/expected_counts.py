"""``RETURN EXPECTED COUNT``: expected numbers of matches by group and by bucket of the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence import confidences_by_bucket, event_rates, exact_chain_confidence, expected_by_bucket
from confidence.budget import checkpoint, pieces
from eventbased import partition_bases
from eventbased.config import LONGEST_LINE, MATCH_CUBES
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config import COUNT_BATCH, MOST_COVERED_TICKS, MOST_SHARING
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.buckets import summed
from uncertain_cep.results.repeated_uses import (
    Counts,
    Stretches,
    repeated_counts,
    shared_rows,
    without_repeated,
)

__all__ = ["Chunks", "bucketed_counts", "counts_of_matches", "expected_counts", "merged_counts"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

Chunks = Callable[[Selection], Iterator[MatchBatch]]
"""Enumerates the matches among candidates, with rows of the table as events, and with confidences."""


def expected_counts(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, pmfs: ExplicitPmfs | None, chunks: Chunks
) -> Iterator[pa.RecordBatch]:
    """Yield expected numbers of matches, which :func:`merged_counts` adds up.

    Parameters
    ----------
    plan : EvaluationPlan
        Of a query with ``RETURN EXPECTED COUNT``.
    selection : Selection
        None of its components is empty.
    chunks : Chunks
        For the queries and traces that have to be counted match by match.

    Yields
    ------
    pyarrow.RecordBatch
        Of the plan's output schema.

    Notes
    -----
    Matches are not enumerated under skip till any match if predicates speak of one event each or equate
    keys, no partition covers more than ``MOST_COVERED_TICKS`` ticks, and there are at most five components
    or none shares an event with another: then O(n log n + T l^2), T being the covered ticks, whatever the
    window and the number of matches, and as much more for shared events as
    :mod:`confidence.counts.repeated` says.
    """
    # By keys of different names an event is of one partition for one component, of another one for another.
    alike = all(len(set(key.columns)) == 1 for key in plan.split_keys)
    any_match = plan.query.strategy == "skip_till_any_match" and not plan.joined
    few = len(selection.rows) <= MOST_SHARING and alike
    if any_match and (few or not len(shared_rows(table, selection))):
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
    plan: EvaluationPlan, table: pa.Table, chunks: Iterable[MatchBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the sums by group and bucket of what ``evaluate_bucketed`` yields."""
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
        stretches = Stretches(selection, shift)
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
    shared = shared_rows(table, selection)
    if len(shared):
        whole = float(value.sum())
        less = repeated_counts(plan, selection, shared, stretches, rates, shift, window, pmfs, whole)
        if less is None:
            yield from _added_up(plan, table, selection, pmfs, chunks)
            return
        of_partition = np.zeros(table.num_rows, dtype=np.int64)
        if selection.partition is not None:
            of_partition[selection.rows[0]] = selection.partition[0]

        def counted(among: Selection) -> Iterator[Counts]:
            return _match_by_match(plan, table, among, pmfs, chunks, of_partition)

        part, bucket, value = without_repeated(plan, selection, Counts(part, bucket, value), less, counted)
    yield from _batches(plan, table, rows[part], bucket, value)


def _added_up(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, pmfs: ExplicitPmfs | None, chunks: Chunks
) -> Iterator[pa.RecordBatch]:
    """Yield the sums of the confidences of enumerated matches, in bounded memory."""
    held: list[pa.RecordBatch] = []
    size = 0
    every_row = np.arange(table.num_rows)
    for part in _match_by_match(
        plan, table, selection, pmfs, chunks, every_row if plan.bound.by else np.zeros_like(every_row)
    ):
        held += _batches(plan, table, *part)
        size += len(part.part)
        if size > COUNT_BATCH:
            held = merged_counts(plan, held).to_batches()
            size = sum(batch.num_rows for batch in held)
            if size > COUNT_BATCH // 2:
                yield from held
                held, size = [], 0
    yield from held


def _match_by_match(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    pmfs: ExplicitPmfs | None,
    chunks: Chunks,
    part_of: Int64,
) -> Iterator[Counts]:
    """Yield the sums of the confidences of enumerated matches by the part of their first event's row."""
    shares = None if plan.bound.every is None else _Shares(plan, table, selection, pmfs, plan.bound.every)
    for chunk in chunks(selection):
        assert chunk.confidence is not None
        part = part_of[chunk.events[0]]
        if shares is None:
            yield Counts(*summed(part, np.zeros_like(part), chunk.confidence))
        else:
            for match, bucket, value in shares.of(chunk):
                yield Counts(*summed(part[match], bucket, value))


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
        self._room = max(min(COUNT_BATCH, MATCH_CUBES // len(selection.rows) ** 3), 1)

    def of(self, chunk: MatchBatch) -> Iterator[tuple[Int64, Int64, Float64]]:
        """Yield matches, first ticks of buckets, and P(match and first time in the bucket)."""
        ticks = (chunk.upper - chunk.lower + 1).astype(np.float64)
        costs = np.ones(len(ticks))
        if len(self._pmf):
            costs += (ticks / self._every + 1.0) * ticks * len(chunk.events) ** 2
        for part in pieces(costs):
            yield from self._of(chunk.take(np.arange(part.start, part.stop)), part.start)

    def _of(self, chunk: MatchBatch, first: int) -> Iterator[tuple[Int64, Int64, Float64]]:
        done, count = 0, len(chunk.lower)
        while done < count:
            match, bucket = np.empty(self._room, np.int64), np.empty(self._room, np.int64)
            value = np.empty(self._room)
            before = done
            checkpoint()
            done, written, need = confidences_by_bucket(
                chunk.events, chunk.confidence, chunk.lower, self._lower, self._upper, self._offset,
                self._pmf, self._window, self._every, done, match, bucket, value,
            )  # fmt: skip
            if done == before:
                self._room = max(2 * self._room, need)
                continue
            for place in np.flatnonzero(np.isnan(value[:written])).tolist():
                value[place] = self._exact(chunk.events[:, match[place]], int(bucket[place]))
            yield match[:written] + first, bucket[:written], value[:written]

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
        columns.append(plan.domain.times(bucket))
    columns.append(pa.array(value))
    yield pa.RecordBatch.from_arrays(columns, schema=schema)
