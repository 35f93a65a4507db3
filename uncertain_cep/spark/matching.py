"""Queries over Spark DataFrames of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.boundary import public
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.errors import OptionError, warn
from uncertain_cep.executor import Slicing
from uncertain_cep.plan import Approximation, EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.gap_ends import ends_behind
from uncertain_cep.plan.result_columns import SortKey
from uncertain_cep.query import Query, query_of
from uncertain_cep.spark.clock_offsets import check_clock_columns, check_offsets_agree
from uncertain_cep.spark.dataframes import (
    column,
    from_arrow_schema,
    in_workers,
    noted_files,
    noted_schema,
    noting_files,
    plainly_named,
    whole_numbers,
)
from uncertain_cep.spark.file_jobs import columns_read, file_work, run_on_files, task_numbers
from uncertain_cep.spark.file_worker import FileWork, check_files, match_files
from uncertain_cep.spark.filters import candidate_filters
from uncertain_cep.spark.frame_statistics import collect_statistics
from uncertain_cep.spark.jobs import count_cores, worker_errors
from uncertain_cep.spark.ordered_sources import check_orders, clustered
from uncertain_cep.spark.semi_join import KeySlices, choose_key_slices, pruned
from uncertain_cep.spark.slicing import choose_partitions, choose_slices, partitioned, sliced
from uncertain_cep.spark.streamed import stream_frame
from uncertain_cep.spark.unique_ids import check_unique_ids
from uncertain_cep.spark.worker import (
    match_partition,
    non_overlapping_in_partition,
    rank_partition,
    unused_name,
)
from uncertain_cep.streaming.stream_layout import METRICS, StreamOptions
from uncertain_cep.timeline.domain import TICK_METADATA, Names
from uncertain_cep.timeline.durations import Duration

__all__ = [
    "PreparedMatch",
    "Spread",
    "as_frame",
    "match",
    "matches_frame",
    "prepare",
]


@dataclass(frozen=True, slots=True)
class Spread:
    """How the events of a call are spread over tasks, see `match`."""

    partitions: int | None = None
    slice_length: int | None = None
    prune: bool | None = None
    by_files: bool = True
    """Whether workers may read the files of a frame themselves."""


@dataclass(frozen=True, slots=True)
class PreparedMatch:
    """Candidates in the partitions in which they are matched."""

    plan: EvaluationPlan
    candidates: DataFrame | None
    """None if no event can begin a match. The columns are renamed, since Spark hands only columns of plain
    names to Python."""
    schema: pa.Schema
    """The schema of the candidates, by position."""
    slicing: Slicing | None
    key_slices: KeySlices | None = None
    """The components by which slices of keys were dropped before the shuffle."""
    work: FileWork | None = None
    """The files that workers read themselves. The candidates are the numbers of the tasks then."""

    @property
    def evaluate(self) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The function that yields the matches of a partition of the candidates."""
        if self.work is not None:
            return partial(match_files, work=self.work)
        return partial(match_partition, plan=self.plan, schema=self.schema, slicing=self.slicing)


@public
def match(
    frame: DataFrame,
    query: str | Query,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: str | None = None,
    evaluation: str = "auto",
    confidence: bool = True,
    approximate: Approximation | float | None = None,
    partitions: int | None = None,
    slice_length: int | None = None,
    planner: str = "auto",
    prune: bool | None = None,
    kleene: str = "matches",
    latency_weight: float = 0.0,
    sources: bool = True,
    known_until: int | str | date | None = None,
    parameters: Mapping[str, Any] | None = None,
    diagnostics: Diagnostics | None = None,
    largest_interval: Duration | int | None = None,
    idle_after: Duration | None = None,
    duplicates: str = "error",
    buckets: int | None = None,
    metrics: str = METRICS,
) -> DataFrame:
    """Return the matches of a query among the events of a frame, as `uncertain_cep.match` does for others.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    query, names, tick, evaluation, confidence, approximate, planner, kleene, latency_weight, parameters
        As for `uncertain_cep.match`. Each task chooses a plan by its own events.
    sources : bool
        Whether events that name one clock move together. If times are timestamps, offsets are intervals.
    known_until : int, str or datetime, optional
        As for `uncertain_cep.match`, but undecided matches are not counted: they are found when the frame is
        computed.
    partitions : int, optional
        The number of partitions. Default: one for each core; fewer if the candidates are few, more if they do
        not fit into the memory of so many Python workers.
    slice_length : int, optional
        Length of the time slices, in ticks. Default: a few slices for each partition.
    prune : bool, optional
        Whether to drop, before the shuffle, the events of a key in a time slice where a component of every
        match has no candidate. This takes another pass over the events. Default: if there are many candidates
        and, by their counts, at most a quarter of the slices of keys stay.
    diagnostics : Diagnostics, optional
        Receives how many candidates each component has.
    largest_interval, idle_after, duplicates
        For a streaming frame, as for `uncertain_cep.match`. It takes neither ``partitions`` nor ``prune``.
    buckets : int, optional
        For a streaming frame: the number of parts of its state. Each part takes some milliseconds a batch,
        and at most ``spark.sql.shuffle.partitions`` parts are processed at a time.
    metrics : str, optional
        For a streaming frame: the name of the counters in the progress of the query. Results that are used in
        one query, such as a union of them, need different names.

    Returns
    -------
    pyspark.sql.DataFrame
        The same matches for any number of partitions and any length of slices, in no particular order unless
        the query asks for one.

    Raises
    ------
    QuerySyntaxError, QueryError, OptionError
        As `uncertain_cep.match`.
    TraceError
        If an event is at fault. An id that is used twice is found here if the events are cut into slices of
        time or read by the workers, else when the matches are computed; see `worker_errors`.

    Warns
    -----
    UncertainCepWarning
        If no event can be taken for a variable, by the conditions that Spark can evaluate. Nothing that would
        need another pass is checked.

    Notes
    -----
    The events are read once here, for counts and extremes of their times, and again when the result is used,
    with ``prune`` twice: ``cache()`` a frame that is dear to compute. With slices of time they are read once
    more for their ids, unless these are whole numbers that rise from part to part of the frame. If files are
    ordered by time, and the frame holds all their events and is not cached, the workers read them without a
    shuffle; `uncertain_cep.explain` says so. Runs with classic Spark and with Spark Connect, on any master.

    Examples
    --------
    A script for ``spark-submit``::

        from uncertain_cep.spark import get_session, match

        spark = get_session()
        events = spark.read.parquet("events.parquet")
        matches = match(events, "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 100")
        matches.write.parquet("matches")
    """
    options = MatchOptions.among(locals())
    stream = StreamOptions(largest_interval, idle_after, duplicates, None, buckets, metrics)
    return matches_frame(frame, query, options, Spread(partitions, slice_length, prune), diagnostics, stream)


def matches_frame(
    frame: DataFrame,
    query: str | Query,
    options: MatchOptions,
    spread: Spread = Spread(),
    diagnostics: Diagnostics | None = None,
    stream: StreamOptions = StreamOptions(),  # noqa: B008
) -> DataFrame:
    """Return the frame of `match`, whose options are three objects here."""
    if frame.isStreaming:
        if spread.partitions is not None or spread.prune is not None:
            raise OptionError("partitions= and prune= are for tables: a stream is spread by buckets=")
        if options.known_until is not None:
            raise OptionError(
                "known_until= is for tables: a stream returns a match only once no event to come can spoil "
                "it, so nothing that it returns is undecided"
            )
        stream = replace(stream, slice_length=spread.slice_length)
        return stream_frame(frame, query_of(query, options.parameters), options, stream)
    if stream.given:
        raise OptionError(
            "largest_interval=, idle_after=, duplicates=, buckets= and metrics= are for streams, and this "
            "frame is none: leave them out, or read the events with spark.readStream"
        )
    diagnostics = Diagnostics() if diagnostics is None else diagnostics
    prepared = prepare(frame, query, options, spread, diagnostics)
    paths = noted_files(frame)
    if prepared.work is not None:
        check = partial(check_files, work=prepared.work)
        run_on_files(frame, prepared.work, check, diagnostics)
        paths = list(prepared.work.files.paths)
    return noting_files(as_frame(prepared, frame.sparkSession), paths)


def as_frame(prepared: PreparedMatch, spark: SparkSession) -> DataFrame:
    """Return the frame of matches of prepared candidates."""
    plan = prepared.plan
    schema = from_arrow_schema(plan.batch_schema)
    if prepared.candidates is None:
        nothing = spark.createDataFrame([], schema)
        return (
            _added_up(plan, nothing)
            if plan.counts
            else nothing.select(*map(column, plan.output_schema.names))
        )
    evaluate = prepared.evaluate
    frame = prepared.candidates
    if plan.counts:
        return _added_up(plan, in_workers(frame, evaluate, schema))
    if plan.query.non_overlapping:
        frame = _in_one_place(plan, in_workers(frame, evaluate, schema))
        evaluate = partial(non_overlapping_in_partition, plan=plan)
    if not plan.query.is_ordered:
        matches = in_workers(frame, evaluate, schema)
    else:
        # The engine rounds: Spark rounds in another way.
        rank = unused_name(plan.batch_schema, "rank")
        with_rank = t.StructType([*schema.fields, t.StructField(rank, t.DoubleType())])
        matches = in_workers(frame, partial(rank_partition, evaluate=evaluate, name=rank), with_rank)
        signature = (column(component.variable).asc_nulls_last() for component in plan.components)
        keys = (_sorted_by(plan, key, rank) for key in plan.sort_keys)
        matches = matches.orderBy(*keys, column(rank).desc(), *signature)
    if plan.query.limit is not None:
        matches = matches.limit(plan.query.limit)
    return matches.select(*map(column, plan.output_schema.names))


def _sorted_by(plan: EvaluationPlan, key: SortKey, rank: str) -> Column:
    """Return the column by which Spark sorts for a key of ORDER BY: nulls last, NaN as null."""
    sort_column = column(rank if key.column == "confidence" else key.column)
    if pa.types.is_floating(plan.batch_schema.field(key.column).type):
        sort_column = f.when(~f.isnan(sort_column), sort_column)
    return sort_column.desc_nulls_last() if key.descending else sort_column.asc_nulls_last()


def _added_up(plan: EvaluationPlan, counts: DataFrame) -> DataFrame:
    """Return counts added up over slices, by group and bucket; without these, one row, which may be 0."""
    *keys, value = plan.output_schema.names
    total = f.coalesce(f.sum(column(value)), f.lit(0.0)).alias(value)
    return counts.groupBy(*map(column, keys)).agg(total)


def _in_one_place(plan: EvaluationPlan, matches: DataFrame) -> DataFrame:
    """Return matches, those of a partition together in one task."""
    keys = plan.partition_columns
    return plainly_named(matches.repartition(*map(column, keys)) if keys else matches.repartition(1))


def _warn_of_uncounted(plan: EvaluationPlan) -> None:
    """Say that matches with a gap that can end too late are not counted: they are found in the workers."""
    parts = plan.or_free
    if plan.known_until is not None:
        if any(part.forbids for part in parts):
            warn("matches that are undecided at known_until are left out, and Spark does not count them")
    elif any(gap.is_trailing for part in parts for gap in ends_behind(part, 0)):
        warn(
            "no event is taken to be behind the last one of the trace, where the gap of a negation can end; "
            "Spark does not count such matches: known_until= (--known-until) leaves them out"
        )


@worker_errors()
def prepare(
    frame: DataFrame,
    query: str | Query,
    options: MatchOptions = MatchOptions(),  # noqa: B008
    spread: Spread = Spread(),
    diagnostics: Diagnostics | None = None,
) -> PreparedMatch:
    """Plan a query on a frame, check its events and spread the candidates; errors are those of `match`.

    If it is better that workers read the files themselves, the candidates are the numbers of tasks.
    """
    partitions = spread.partitions
    if frame.isStreaming:
        raise OptionError("a streaming frame has no end: use match, and writeStream on what it returns")
    if partitions is not None and partitions < 1:
        raise OptionError(f"partitions must be 1 or more, not {partitions}")
    model = options.names
    parsed = query_of(query, options.parameters)
    original, frame = frame, whole_numbers(frame, model)
    schema = noted_schema(frame, model)
    plan = make_plan(parsed, schema, options)
    if plan.is_grouped:
        raise OptionError(
            "RETURN PROBABILITY does not support Spark yet: match a frame in this process, or ask Spark "
            "for the matches"
        )
    check_clock_columns(plan, schema)
    if plan.domain.per_unit != 1:
        raise OptionError(
            f"a tick of {plan.domain.describe()} is too short: Spark keeps times to the microsecond"
        )
    diagnostics = Diagnostics() if diagnostics is None else diagnostics
    diagnostics.about(plan)
    _warn_of_uncounted(plan)
    noted = (schema.metadata or {}).get(TICK_METADATA)
    tick = None if noted is None else noted.decode()
    if spread.by_files and spread.slice_length is None and not spread.prune and not plan.orders:
        work = file_work(original, plan, schema, tick, partitions)
        if work is not None:
            return PreparedMatch(plan, task_numbers(frame, work), schema, None, work=work)
    candidates = candidate_filters(plan, frame.schema)
    checked = frame.select(*map(column, columns_read(plan, schema)))
    clusters = None
    if plan.orders:
        checked, clusters = clustered(checked, plan)
        candidates = clusters.travel(plan, candidates)
    statistics = collect_statistics(checked, plan, candidates, tick, clusters)
    needed = checked.select(*map(column, (*plan.required_columns, *(clusters or ()))))
    check_offsets_agree(needed, plan)
    check_orders(needed, plan)
    for branch, sizes in zip(plan.or_free, statistics.components, strict=True):
        diagnostics.counted(branch, sizes)
    arrow = pa.schema([schema.field(name) for name in plan.required_columns])
    if not statistics.first:
        return PreparedMatch(plan, None, arrow, None)
    if partitions is None:
        partitions = choose_partitions(statistics, lambda: count_cores(frame.sparkSession))
    slices = choose_slices(plan, statistics, partitions, spread.slice_length)
    if slices is not None and not statistics.ids_apart:
        check_unique_ids(needed, plan, candidates)
    slicing = None
    # Only the components of every reading must have a candidate.
    prune = False if plan.is_open else spread.prune
    key_slices = choose_key_slices(candidates, statistics, slices, prune)
    if slices is None:
        rows = needed.filter(candidates.anywhere).select(*map(column, plan.required_columns))
    else:
        rows = sliced(needed, plan, candidates, slices, clusters)
        arrow = arrow.append(pa.field(slices.column, pa.int64()))
        slicing = Slicing(slices.column, slices.origin, slices.length)
    if key_slices is not None:
        rows = pruned(rows, plan, candidates, slices, key_slices)
    rows = partitioned(rows, candidates, slices, partitions)
    return PreparedMatch(plan, plainly_named(rows), arrow, slicing, key_slices)
