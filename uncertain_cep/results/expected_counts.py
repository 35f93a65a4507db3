"""``RETURN EXPECTED COUNT``: expected numbers of matches by group and by bucket of the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence import Intervals, Pmfs, confidences_by_bucket, event_rates, expected_by_bucket
from confidence.budget import checkpoint, pieces
from confidence.chain.exact import redo_exactly
from eventbased import partition_bases
from eventbased.config import LONGEST_LINE, MATCH_CUBES
from uncertain_cep.candidates.existence import Existence
from uncertain_cep.candidates.pmfs import ExplicitPmfs, flat_pmfs
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.limits import MOST_COVERED_TICKS, MOST_SHARING
from uncertain_cep.config.tuning import COUNT_BATCH
from uncertain_cep.operators.batch import MatchBatch, chances
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.projection import taken
from uncertain_cep.results.repeated_uses import (
    Counts,
    Segments,
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
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    pmfs: ExplicitPmfs | None,
    existence: Existence | None,
    chunks: Chunks,
) -> Iterator[pa.RecordBatch]:
    """Yield expected numbers of matches of the plan's output schema, which :func:`merged_counts` adds up.

    ``chunks`` is for the queries and traces that have to be counted match by match; without the factor that
    the events of a match happened.

    Notes
    -----
    Matches are not enumerated under skip till any match if predicates speak of one event each or equate
    keys, no partition covers more than ``MOST_COVERED_TICKS`` ticks, and there are at most five components
    or none shares an event with another: then O(n log n + T l^2), T being the covered ticks, whatever the
    window and the number of matches, and as much more for shared events as
    :mod:`confidence.counts.repeated` says.
    """
    counting = _Counting(plan, table, pmfs, existence, chunks)
    # By keys of different names an event is of one partition for one component, of another one for another.
    alike = plan.partitioning.is_alike
    any_match = plan.query.strategy == "skip_till_any_match" and not plan.joined
    few = len(selection.rows) <= MOST_SHARING and alike and existence is None
    if any_match and (few or not len(shared_rows(table, selection))):
        return counting.at_once(selection)
    return counting.added_up(selection)


def counts_of_matches(plan: EvaluationPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sums of the confidences of matches by group, for a plan without EVERY.

    ``batches`` are the matches, as ``plan.counted`` gives them.
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
        counts = Counts(rows if plan.bound.by else np.zeros_like(rows), chunk.lower, chunk.confidence)
        yield from merged_counts(plan, _batches(plan, table, counts.summed())).to_batches()


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


@dataclass(frozen=True, slots=True)
class _Counting:
    """One count of the matches among some candidates, all at once or match by match."""

    plan: EvaluationPlan
    table: pa.Table
    pmfs: ExplicitPmfs | None
    existence: Existence | None
    chunks: Chunks

    def at_once(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        """Yield counts without enumerating matches, as far as ticks and repeated uses allow it."""
        plan, table = self.plan, self.table
        if selection.empty:
            return
        earliest = min(int(part.min()) for part in selection.lower)
        latest = max(int(part.max()) for part in selection.upper)
        window = min(plan.window, latest - earliest + 1)
        shift, line, _ = partition_bases(
            selection.lower, selection.upper, selection.partition, selection.partitions, window + 1
        )
        segments = Segments(selection, shift) if line <= LONGEST_LINE else None
        if segments is None or segments.ticks > MOST_COVERED_TICKS:
            if selection.partitions > 1:
                for half in selection.halves():
                    yield from self.at_once(half)
            else:
                yield from self.added_up(selection)
            return
        rates = self._rates(selection, segments)
        every = plan.bound.every or 0
        found, bucket, value = expected_by_bucket(
            rates, segments.covered, shift[segments.partition], window, every
        )
        counts = Counts(segments.partition[found], bucket, value).summed()
        shared = shared_rows(table, selection)
        if len(shared):
            whole = float(counts.value.sum())
            less = repeated_counts(plan, selection, shared, segments, rates, shift, window, self.pmfs, whole)
            if less is None:
                yield from self.added_up(selection)
                return
            of_partition = np.zeros(table.num_rows, dtype=np.int64)
            if selection.partition is not None:
                of_partition[selection.rows[0]] = selection.partition[0]
            counts = without_repeated(
                plan, selection, counts, less, lambda among: self._match_by_match(among, of_partition)
            )
        # Any event of a partition tells its attributes.
        rows = np.full(selection.partitions, selection.rows[0][0])
        if selection.partition is not None:
            rows[selection.partition[0]] = selection.rows[0]
        yield from _batches(plan, table, counts._replace(part=rows[counts.part]))

    def _rates(self, selection: Selection, segments: Segments) -> Float64:
        """Return the expected number of events of each component at each covered tick, (l, T) float64."""
        checkpoint(8 * len(selection.rows) * segments.ticks)
        rates = np.empty((len(selection.rows), segments.ticks))
        for j, rows in enumerate(selection.rows):
            offset, values = flat_pmfs(self.pmfs, rows)
            if self.existence is not None:
                given = Pmfs(values, values, values)
                (values, *_), offset = self.existence.forbidding(given, offset, rows)
            lower, upper = segments.lifted[j]
            event_rates(Intervals(lower, upper, offset), values, segments.covered, rates[j])
        return rates

    def added_up(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        """Yield the sums of the confidences of enumerated matches, in bounded memory."""
        plan, table = self.plan, self.table
        held: list[pa.RecordBatch] = []
        size = 0
        rows = np.arange(table.num_rows)
        for part in self._match_by_match(selection, rows if plan.bound.by else np.zeros_like(rows)):
            held += _batches(plan, table, part)
            size += len(part.part)
            if size > COUNT_BATCH:
                held = merged_counts(plan, held).to_batches()
                size = sum(batch.num_rows for batch in held)
                if size > COUNT_BATCH // 2:
                    yield from held
                    held, size = [], 0
        yield from held

    def _match_by_match(self, selection: Selection, part_of: Int64) -> Iterator[Counts]:
        """Yield the sums of the confidences of enumerated matches by the part of their first event's row."""
        every = self.plan.bound.every
        shares = None if every is None else _Shares(self.plan, self.table, selection, self.pmfs, every)
        for chunk in self.chunks(selection):
            assert chunk.confidence is not None
            part = part_of[chunk.events[0]]
            chance = np.ones(len(part))
            if self.existence is not None:
                chance, _ = chances(chunk, self.existence.probability)
            if shares is None:
                yield Counts(part, np.zeros_like(part), chunk.confidence * chance).summed()
            else:
                for match, bucket, value in shares.of(chunk):
                    yield Counts(part[match], bucket, value * chance[match]).summed()


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
        offset, self._pmf = flat_pmfs(pmfs, np.arange(table.num_rows))
        self._events = Intervals(np.zeros_like(offset), np.zeros_like(offset), offset)
        for rows, lower, upper in zip(selection.rows, selection.lower, selection.upper, strict=True):
            self._events.lower[rows] = lower
            self._events.upper[rows] = upper
        self._room = max(min(COUNT_BATCH, MATCH_CUBES // len(selection.rows) ** 3), 1)

    def of(self, chunk: MatchBatch) -> Iterator[tuple[Int64, Int64, Float64]]:
        """Yield matches, first ticks of buckets, and P(match and first time in the bucket)."""
        ticks = (chunk.upper - chunk.lower + 1).astype(np.float64)
        # A confidence for each bucket: by closed forms, or tick by tick.
        each = ticks if len(self._pmf) else np.ones(len(ticks))
        costs = 1.0 + (ticks / self._every + 1.0) * each * len(chunk.events) ** 2
        for part in pieces(costs):
            yield from self._of(chunk.take(np.arange(part.start, part.stop)), part.start)

    def _of(self, chunk: MatchBatch, first: int) -> Iterator[tuple[Int64, Int64, Float64]]:
        done, count = 0, len(chunk.lower)
        events = np.ascontiguousarray(chunk.events)
        while done < count:
            checkpoint(24 * self._room)
            match, bucket = np.empty(self._room, np.int64), np.empty(self._room, np.int64)
            value = np.empty(self._room)
            before = done
            done, written, need = confidences_by_bucket(
                events, chunk.confidence, chunk.lower, self._events, self._pmf, self._window,
                self._every, done, match, bucket, value,
            )  # fmt: skip
            if done == before:
                self._room = max(2 * self._room, need)
                continue
            match, bucket, value = match[:written], bucket[:written], value[:written]
            redo_exactly(value, self._window, partial(self._intervals, chunk.events, match, bucket))
            yield match + first, bucket, value

    def _intervals(self, events: Int64, match: Int64, bucket: Int64, n: int) -> tuple[Int64, Int64, Int64]:
        """Return the bounds of a match, and as boxes the same but for the first event, which has a bucket."""
        rows = events[:, match[n]]
        lower, upper = self._events.lower[rows], self._events.upper[rows]
        boxes = np.stack((lower, upper))
        boxes[:, 0] = bucket[n], bucket[n] + self._every - 1
        return lower, upper, boxes


def _batches(plan: EvaluationPlan, table: pa.Table, counts: Counts) -> Iterator[pa.RecordBatch]:
    """Yield counts by the row of an event of the group and the first tick of the bucket."""
    if not len(counts.part):
        return
    schema = plan.output_schema
    columns = [taken(table.column(name), counts.part, schema.field(name).type) for name in plan.bound.by]
    if plan.bound.every is not None:
        days = plan.bound.days
        bucket = counts.bucket if days is None else days.start(days.number(counts.bucket))
        columns.append(plan.domain.times(bucket))
    columns.append(pa.array(counts.value))
    yield pa.RecordBatch.from_arrays(columns, schema=schema)
