"""Queries over streaming frames: each match is returned once, when it is final."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from uncertain_cep.errors import OptionError, RuntimeEnvironmentError
from uncertain_cep.files.blobs import unpacked
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.plan.lasting import schema_with_all_bounds
from uncertain_cep.query import Query
from uncertain_cep.running.installation import needed
from uncertain_cep.spark.clock_offsets import check_clock_columns
from uncertain_cep.spark.dataframes import (
    arrow_schema,
    column,
    from_arrow_schema,
    in_workers,
    plainly_named,
    whole_numbers,
    with_span_bounds,
)
from uncertain_cep.spark.session import STATE_PROVIDER, STATE_SETTINGS
from uncertain_cep.spark.stream_state import BLOB, CHANGED_AT, RULE_PLACE, StreamState
from uncertain_cep.streaming.cutting import PIECES, cut
from uncertain_cep.streaming.held_slices import COUNTED, OneQuery
from uncertain_cep.streaming.stream_layout import StreamLayout, StreamOptions
from uncertain_cep.timeline.domain import check_tick_type

__all__ = [
    "check_state_store",
    "held_pieces",
    "layout_of",
    "pieces_of_stream",
    "rows_of_stream",
    "stream_frame",
]


_OF_A_RULE: Final = ("matches", "suppressed", "state_rows")


def stream_frame(frame: DataFrame, query: Query, options: MatchOptions, stream: StreamOptions) -> DataFrame:
    """Return the matches of a query among the events of a streaming frame, and the late events."""
    check_state_store(frame.sparkSession)
    frame = with_span_bounds(whole_numbers(frame, options.names), options.names)
    layout = layout_of(frame, query, options, stream)
    evaluated = pieces_of_stream(frame, layout, StreamState(OneQuery(layout)))
    return rows_of_stream(evaluated, stream.metrics, layout.output_schema)


def rows_of_stream(
    evaluated: DataFrame, metrics: str, schema: pa.Schema, rules: Sequence[str] = ()
) -> DataFrame:
    """Return the rows of a schema that the results of a stream's batches hold, and have counters observed.

    Those of each rule are in a structure ``rules``, by its name.
    """
    counters = [(f.max if name in ("bound", "newest") else f.sum)(name).alias(name) for name in COUNTED]
    of_rules = []
    for rule in dict.fromkeys(rules):
        # A rule that leaves may have the name of one that follows it.
        is_of_rule = f.col(RULE_PLACE).isin([place for place, name in enumerate(rules) if name == rule])
        sums = (f.sum(f.when(is_of_rule, f.col(name))).alias(name) for name in _OF_A_RULE)
        of_rules.append(f.struct(*sums).alias(rule))
    if of_rules:
        counters += [f.struct(*of_rules).alias("rules"), f.max(CHANGED_AT).alias(CHANGED_AT)]
    observed = evaluated.observe(metrics, *counters)
    blobs = observed.filter(f.col(BLOB).isNotNull()).select(BLOB)
    return in_workers(blobs, _rows, from_arrow_schema(schema))


def pieces_of_stream(frame: DataFrame, layout: StreamLayout, state: StatefulProcessor) -> DataFrame:
    """Return the results of a stream's batches, by its state: blobs and counters."""
    keys = layout.spread_by
    hashed = f.xxhash64(*map(column, keys)) if keys else f.lit(0).cast("long")
    events = frame.select(*map(column, layout.schema.names), hashed.alias("hash"))
    pieces = in_workers(plainly_named(events), partial(cut, layout=layout), from_arrow_schema(PIECES))
    return held_pieces(pieces, state, layout.idle)


def held_pieces(pieces: DataFrame, state: StatefulProcessor, idle: tuple[int, int] | None) -> DataFrame:
    """Return the results of batches that are cut into pieces."""
    counted = ", ".join(f"{name} bigint" for name in COUNTED)
    return pieces.groupBy("bucket").transformWithStateInPandas(
        state,
        outputStructType=f"{BLOB} binary, {counted}, {RULE_PLACE} bigint, {CHANGED_AT} bigint",
        outputMode="Append",
        timeMode="None" if idle is None else "ProcessingTime",
    )


def layout_of(frame: DataFrame, query: Query, options: MatchOptions, stream: StreamOptions) -> StreamLayout:
    """Return the layout of a stream of events; errors are those of `match`."""
    names = options.names
    schema = schema_with_all_bounds(arrow_schema(frame, names), names.lower)
    check_tick_type(schema, names)
    plan = make_plan(query, schema, options, takes_spans=True)
    check_clock_columns(plan, schema)
    plan.refuse_orders()
    if plan.domain.per_unit != 1:
        raise OptionError(
            f"a tick of {plan.domain.describe()} is too short: Spark keeps times to the microsecond"
        )
    columns = dict.fromkeys(plan.required_columns)
    if names.tick in schema.names and pa.types.is_string(schema.field(names.tick).type):
        columns[names.tick] = None
    matching = replace(options, takes_spans=True)
    of_events = pa.schema([schema.field(name) for name in columns])
    layout = StreamLayout.of(plan, of_events, stream, query, matching)
    # Names that a user has to change are reported before the stream runs.
    _ = layout.output_schema
    return layout


def check_state_store(spark: SparkSession) -> None:
    """Raise an error if a session has no state store that streams can use, or its workers lack a package."""
    if (spark.conf.get("spark.master", "") or "").startswith("local"):
        # Workers on other machines may have other packages.
        needed("streams")
    if "RocksDB" not in (spark.conf.get(STATE_PROVIDER, "") or ""):
        lines = "\n".join(
            f'    spark.conf.set("{name}", "{value}")' for name, value in STATE_SETTINGS.items()
        )
        raise RuntimeEnvironmentError(
            f"a stream needs RocksDB as state store: start the session with get_session(), or set\n{lines}"
        )


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that blobs hold."""
    for batch in batches:
        for blob in batch.column(0):
            yield from unpacked(blob.as_buffer())[0].to_batches()
