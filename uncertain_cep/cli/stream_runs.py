"""Running a stream for the command line: one line a batch, until it ends or is ended."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import sleep, time
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from uncertain_cep.cli.run_log import read_by_others
from uncertain_cep.cli.spark_sessions import spark_session
from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.known_until import shown_tick, undecided_text
from uncertain_cep.plurals import counted
from uncertain_cep.query import Query
from uncertain_cep.running.installation import needed
from uncertain_cep.streaming.batch_clock import NOTHING_KNOWN
from uncertain_cep.streaming.stream_layout import CLOSE, RELEASE, StreamLayout, StreamOptions
from uncertain_cep.timeline.durations import parse_duration
from uncertain_cep.traces import load_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from uncertain_cep.alerting.run_metrics import RunMetrics

__all__ = ["Source", "run_stream"]

_log: Final = logging.getLogger("uncertain_cep.streams")

_PROGRESS_SECONDS: Final = 0.5
"""How often the command looks whether a stream has done a batch."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where events come from; at most ``batch_limit`` files or messages a batch."""

    place: str
    schema: str | None
    tick: str | None
    batch_limit: int | None


def run_stream(
    query: Query,
    source: Source,
    options: StreamOptions,
    places: tuple[Path, Path],
    master: str,
    trigger: str | None,
    *,
    close: bool,
    address: str | None = None,
) -> None:
    """Run a stream: for ever with a trigger, else until all that is there has been read.

    The places are those of the batches and of the checkpoint. Figures are served at an address, if there is
    one.
    """
    from uncertain_cep.alerting.run_metrics import RunMetrics

    if _topic(source.place) is not None:
        from uncertain_cep.spark.kafka_streams import check_kafka

        check_kafka()
    if master.startswith("local"):
        # Workers on other machines may have other packages.
        needed("streams")
    metrics = RunMetrics()
    with read_by_others(metrics, address), spark_session(master) as spark:
        _run(spark, query, source, options, places, trigger, metrics, close=close)
        spark.stop()


def _run(
    spark: SparkSession,
    query: Query,
    source: Source,
    options: StreamOptions,
    places: tuple[Path, Path],
    trigger: str | None,
    metrics: RunMetrics,
    *,
    close: bool,
) -> None:
    """Run a stream, whose batches and checkpoint are at two places."""
    from uncertain_cep.spark.dataframes import column
    from uncertain_cep.spark.file_streams import ANY_AGE
    from uncertain_cep.spark.jobs import count_cores
    from uncertain_cep.spark.stream_output import begin_output, read_note, written
    from uncertain_cep.spark.streamed import layout_of, stream_frame

    out, checkpoint = places
    kept = read_note(checkpoint)
    columns = _columns(spark, source) if kept is None else _read_columns(kept["columns"])
    events = _events(spark, source, columns)
    matching = MatchOptions(tick=source.tick)
    layout = layout_of(events, query, matching, options)
    # A task without a part of the state costs as much as one with some. A checkpoint keeps the first number.
    spark.conf.set("spark.sql.shuffle.partitions", str(min(count_cores(spark), layout.buckets)))
    begin_output(out, checkpoint, layout.fingerprint, columns.json())
    notices = checkpoint / "notices"
    notices.mkdir(exist_ok=True)
    both = events.select(*map(column, columns.names)).unionByName(
        spark.readStream.schema(columns).option("maxFileAge", ANY_AGE).parquet(str(notices))
    )
    for name in columns.names:
        both = both.withMetadata(name, columns[name].metadata or {})
    matches = stream_frame(both, query, matching, options)
    how: dict[str, Any] = {"availableNow": True}
    if trigger is not None:
        how = {"processingTime": f"{parse_duration(trigger) // 1_000_000} milliseconds"}
    with written(matches, out, checkpoint, how) as running:
        _follow(running, layout, metrics)
    if trigger is None:
        _put_notice(notices, columns, CLOSE if close else RELEASE)
        with written(matches, out, checkpoint, how) as running:
            _follow(running, layout, metrics)


def _topic(place: str) -> tuple[str, str] | None:
    """Return the servers and the topic of a source that is one of Kafka."""
    if not place.startswith("kafka://"):
        return None
    servers, _, topic = place.removeprefix("kafka://").partition("/")
    if not servers or not topic:
        raise OptionError(f"--source {place}: write kafka://HOST:PORT/TOPIC")
    return servers, topic


def _columns(spark: SparkSession, source: Source) -> StructType:
    from uncertain_cep.spark.file_streams import learned_columns

    schema = None if source.schema is None else load_schema(source.schema)
    if (topic := _topic(source.place)) is not None:
        from uncertain_cep.spark.kafka_streams import columns_of_topic

        return columns_of_topic(*topic, schema)
    return learned_columns(spark, source.place, schema, source.tick)


def _read_columns(text: str) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(text))


def _events(spark: SparkSession, source: Source, columns: StructType) -> DataFrame:
    from uncertain_cep.spark.file_streams import stream_of_files

    schema = None if source.schema is None else load_schema(source.schema)
    if (topic := _topic(source.place)) is not None:
        from uncertain_cep.spark.kafka_streams import stream_of_topic

        return stream_of_topic(spark, *topic, schema, columns, source.batch_limit)
    return stream_of_files(spark, source.place, schema, columns, source.batch_limit)


def _put_notice(folder: Path, columns: StructType, kind: str) -> None:
    """Put a row that closes a stream, or releases matches, into a folder; a stream is closed once."""
    from uncertain_cep.spark.dataframes import arrow_fields

    place = folder / ("close.parquet" if kind == CLOSE else f"release-{uuid4().hex}.parquet")
    if not place.exists():
        schema = pa.schema(arrow_fields(columns))
        row = dict.fromkeys(schema.names) | {"type": kind}
        pq.write_table(pa.Table.from_pylist([row], schema=schema), folder / "_notice.parquet")
        (folder / "_notice.parquet").rename(place)


def _follow(query: StreamingQuery, layout: StreamLayout, figures: RunMetrics) -> None:
    """Log a line for each batch, and note its figures, until the query ends."""
    from uncertain_cep.spark import worker_errors

    last_batch = -1
    with worker_errors():
        active = True
        while active:
            sleep(_PROGRESS_SECONDS)
            active = query.isActive
            for progress in query.recentProgress:
                metrics = progress["observedMetrics"].get("uncertain_cep")
                if progress["batchId"] > last_batch and metrics is not None and metrics["events"] is not None:
                    last_batch = progress["batchId"]
                    counts = metrics.asDict()
                    _log.info("%s", _line(last_batch, counts, layout))
                    if counts["undecided"]:
                        begin = shown_tick(counts["bound"], layout.plan.domain)
                        _log.warning("%s", undecided_text(counts["undecided"], begin))
                    _measure(figures, counts, progress["durationMs"]["triggerExecution"] / 1000, layout)
        query.awaitTermination()


def _measure(figures: RunMetrics, counts: Mapping[str, int], seconds: float, layout: StreamLayout) -> None:
    """Note the figures of a batch."""
    added = {name: counts[name] for name in ("events", "late", "duplicates", "matches")}
    figures.add(**added, batches=1, batch_seconds=seconds)
    figures.whole |= {"last_batch_seconds": seconds, "held": counts["state_rows"]}
    figures.whole["state_bytes"] = counts["state_bytes"]
    domain = layout.plan.domain
    if domain.unit != "tick" and domain.tick_nanoseconds is not None and abs(counts["bound"]) <= MAX_TICK:
        bound = counts["bound"] * domain.tick_nanoseconds / 1e9
        figures.live["lag_seconds"] = lambda: time() - bound


def _line(number: int, metrics: Mapping[str, int], layout: StreamLayout) -> str:
    """Return a line about a batch."""
    matches = "buckets" if layout.has_buckets else "matches"
    parts = [
        f"batch {number}: {counted(metrics['events'], 'event')}, {metrics['matches']:,} {matches}, "
        f"{metrics['late']:,} late",
        f"state {metrics['state_rows']:,} rows, {metrics['state_bytes'] / 1000:,.0f} kB",
    ]
    if metrics["duplicates"]:
        parts.insert(1, f"{metrics['duplicates']:,} duplicates")
    if NOTHING_KNOWN < metrics["bound"] <= metrics["newest"]:
        lag = metrics["newest"] - metrics["bound"]
        length = layout.plan.domain.tick_nanoseconds
        shown = f"{lag:,} ticks" if length is None else f"{lag * length / 1e9:,.3f} s"
        parts.append(f"final up to {shown} behind the newest event")
    return "; ".join(parts)
