"""Queries over Spark DataFrames of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from os import PathLike
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.boundary import public
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import Approximation, EvaluationPlan, MatchOptions
from uncertain_cep.plan.result_columns import SortKey
from uncertain_cep.query import Query, query_of
from uncertain_cep.rule_sets.named_rules import Rules
from uncertain_cep.spark.dataframes import (
    column,
    from_arrow_schema,
    in_workers,
    noted_files,
    noting_files,
    plainly_named,
)
from uncertain_cep.spark.file_jobs import run_on_files
from uncertain_cep.spark.file_worker import check_files
from uncertain_cep.spark.group_frames import groups_frame
from uncertain_cep.spark.preparing import PreparedMatch, Spread, prepare
from uncertain_cep.spark.rule_frames import alerts_frame
from uncertain_cep.spark.streamed import stream_frame
from uncertain_cep.spark.undecided_counts import warn_of_later_count
from uncertain_cep.spark.worker import non_overlapping_in_partition, rank_partition, unused_name
from uncertain_cep.streaming.stream_layout import METRICS, StreamOptions
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration

__all__ = ["as_frame", "match", "matches_frame"]


@public
def match(
    frame: DataFrame,
    query: str | Query | Rules,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: str | None = None,
    evaluation: str = "auto",
    confidence: bool = True,
    approximate: Approximation | float | None = None,
    undecided: str = "error",
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
    checkpoint: str | PathLike[str] | None = None,
) -> DataFrame:
    """Return the matches of a query among the events of a frame, as `uncertain_cep.match` does for others.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    query : Query, str or Rules
        Rules are asked together: the events are read once, and the result has a column ``rule``.
    names, tick, evaluation, confidence, approximate, undecided, planner, kleene, latency_weight
        As for `uncertain_cep.match`. Each task chooses a plan by its own events.
    parameters
        As for `uncertain_cep.match`.
    sources : bool
        Whether events that name one clock move together. If times are timestamps, offsets are intervals.
    known_until : int, str or datetime, optional
        As for `uncertain_cep.match`. Undecided matches are found when the frame is used: `worker_errors`
        counts them, but for frames of Spark Connect.
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
    largest_interval : str, timedelta or int
        For a streaming frame, which takes neither ``partitions`` nor ``prune``: the largest
        ``upper - lower`` of an event; an int is ticks. An event that is longer is late, and so is one that
        ends before another one of an earlier batch begins.
    idle_after : str or timedelta, optional
        For a streaming frame: each time nothing has come for so long, the bound on the events to come moves
        on by as much. The caller promises that what comes later is no earlier. Default: never.
    duplicates : {"error", "drop"}
        For a streaming frame: whether an id that is used twice within what is held is an error, or identical
        rows are dropped, and counted.
    buckets : int, optional
        For a streaming frame: the number of parts of its state. Each part takes some milliseconds a batch,
        and at most ``spark.sql.shuffle.partitions`` parts are processed at a time.
    metrics : str, optional
        For a streaming frame: the name of the counters in the progress of the query. Results that are used in
        one query, such as a union of them, need different names.
    checkpoint : str or path, optional
        For a streaming frame of rules: the folder of ``checkpointLocation``, also before it is there. Its
        rules hold up to the tick in the counter ``changed_at``, and these rules from there on.

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
        As `uncertain_cep.match`, by the conditions that Spark can evaluate. A type or a variable without
        candidates takes another look at the events, and a percentage one at some of them.

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
    stream = StreamOptions(largest_interval, idle_after, duplicates, None, buckets, metrics, checkpoint)
    if isinstance(query, Rules):
        return _of_rules(frame, query, options, Spread(partitions, slice_length, prune), stream)
    diagnostics = Diagnostics() if diagnostics is None else diagnostics
    return matches_frame(frame, query, options, Spread(partitions, slice_length, prune), diagnostics, stream)


def _of_rules(
    frame: DataFrame, rules: Rules, options: MatchOptions, spread: Spread, stream: StreamOptions
) -> DataFrame:
    """Return the alerts of rules."""
    if frame.isStreaming and spread.partitions is None and spread.prune is None:
        return alerts_frame(frame, rules, options, replace(stream, slice_length=spread.slice_length))
    if spread != Spread():
        raise OptionError(
            "partitions=, prune= and slice_length= are for one query: leave them out; a streaming frame of "
            "rules takes slice_length="
        )
    _check_is_table(stream)
    return alerts_frame(frame, rules, options)


def _check_is_table(stream: StreamOptions) -> None:
    """Raise OptionError if a frame that is no stream is given options of streams."""
    if stream.given:
        raise OptionError(
            "largest_interval=, idle_after=, duplicates=, buckets=, metrics= and checkpoint= are for "
            "streams, and this frame is none: leave them out, or read the events with spark.readStream"
        )


def matches_frame(
    frame: DataFrame,
    query: str | Query,
    options: MatchOptions,
    spread: Spread = Spread(),  # noqa: B008
    diagnostics: Diagnostics | None = None,
    stream: StreamOptions = StreamOptions(),  # noqa: B008
) -> DataFrame:
    """Return the frame of `match`, whose options are three objects here.

    Without ``diagnostics`` nobody counts its undecided matches.
    """
    if frame.isStreaming:
        if spread.partitions is not None or spread.prune is not None:
            raise OptionError("partitions= and prune= are for tables: a stream is spread by buckets=")
        if options.known_until is not None:
            raise OptionError(
                "known_until= is for tables: a stream returns a match only once no event to come can spoil "
                "it, so nothing that it returns is undecided"
            )
        if stream.checkpoint is not None:
            raise OptionError("checkpoint= is for rules: a stream of one query goes on with this query alone")
        stream = replace(stream, slice_length=spread.slice_length)
        return stream_frame(frame, query_of(query, options.parameters), options, stream)
    _check_is_table(stream)
    prepared = prepare(frame, query, options, spread, diagnostics)
    if prepared.undecided is not None and prepared.candidates is not None:
        warn_of_later_count(prepared.plan, frame.sparkSession)
    paths = noted_files(frame)
    if prepared.work is not None:
        check = partial(check_files, work=prepared.work)
        run_on_files(frame, prepared.work, check, Diagnostics() if diagnostics is None else diagnostics)
        paths = list(prepared.work.files.paths)
    return noting_files(as_frame(prepared, frame.sparkSession), paths)


def _evaluated(prepared: PreparedMatch, spark: SparkSession, schema: t.StructType) -> DataFrame:
    """Return the batches of prepared candidates, as they come."""
    if prepared.candidates is None:
        return spark.createDataFrame([], schema)
    return in_workers(prepared.candidates, prepared.evaluate(spark), schema)


def as_frame(prepared: PreparedMatch, spark: SparkSession) -> DataFrame:
    """Return the frame of matches of prepared candidates."""
    plan = prepared.plan
    if plan.is_grouped:
        return groups_frame(prepared, spark)
    schema = from_arrow_schema(plan.batch_schema)
    if plan.counts:
        return _added_up(plan, _evaluated(prepared, spark, schema))
    if prepared.candidates is None:
        return _evaluated(prepared, spark, schema).select(*map(column, plan.output_schema.names))
    evaluate = prepared.evaluate(spark)
    frame = prepared.candidates
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
