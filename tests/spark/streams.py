"""Streams of files for Spark: a folder that a query reads a file at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tests.streaming.batches import notice
from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.spark import worker_errors
from uncertain_cep.spark.dataframes import column, from_arrow_schema
from uncertain_cep.streaming.stream_layout import CLOSE

T = TypeVar("T")


def put(folder: Path, *tables: pa.Table) -> None:
    """Add files to a folder, each whole at once, named in the order in which they come."""
    folder.mkdir(exist_ok=True)
    there = [file.stat().st_mtime_ns for file in folder.glob("*.parquet")]
    for table in tables:
        place = folder / f"{len(there):05}.parquet"
        part = place.with_suffix(".part")
        pq.write_table(table, part)
        # Spark takes files by the millisecond of their modification, in any order within one.
        there.append(max(part.stat().st_mtime_ns, max(there, default=0) + 10**7))
        os.utime(part, ns=(there[-1], there[-1]))
        part.rename(place)


def pieces_of(table: pa.Table, cuts: Sequence[int], *, close: bool = True) -> list[pa.Table]:
    """Return a table cut at some rows, and behind it the row that ends a stream."""
    ends = [*cuts, table.num_rows]
    parts = [table.slice(start, end - start) for start, end in zip([0, *cuts], ends, strict=True)]
    return [*parts, notice(table.schema, CLOSE)] if close else parts


def reading(spark: SparkSession, folder: Path, schema: pa.Schema, files: int = 1) -> DataFrame:
    """Return the stream of a folder's files, so many a batch."""
    reader = spark.readStream.schema(from_arrow_schema(schema)).option("maxFilesPerTrigger", files)
    return reader.option("pathGlobFilter", "*.parquet").parquet(str(folder))


def run(matches: DataFrame, place: Path) -> tuple[pa.Table, list[StreamingQueryProgress]]:
    """Run a stream until it has read what is there; return all that it has written, and its progress."""
    progress = ended(matches, place)
    written = matches.sparkSession.read.schema(matches.schema).parquet(str(place / "out"))
    return written.select(*map(column, matches.columns)).toArrow(), progress


COUNTERS: Final = ("events", "matches", "late", "duplicates")
TOO_BUSY: Final = "the machine is too busy. Start again"
"""What is said where a Python process has not begun within the 10 s that Spark gives it."""


def patiently(run: Callable[[], T]) -> T:
    """Return the result of some work on a stream, done again while Spark finds the machine too busy."""
    while True:
        try:
            with worker_errors():
                return run()
        except RuntimeEnvironmentError as error:
            if TOO_BUSY not in str(error):
                raise


def ended(matches: DataFrame, place: Path) -> list[StreamingQueryProgress]:
    """Run a stream until it has read what is there, and return the progress of its batches."""
    done: list[StreamingQueryProgress] = []

    def run() -> None:
        query = (
            matches.writeStream.format("parquet")
            .partitionBy("kind")
            .option("checkpointLocation", str(place / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(place / "out"))
        )
        try:
            query.awaitTermination()
        finally:
            done.extend(query.recentProgress)

    patiently(run)
    return done


def counted(done: Sequence[StreamingQueryProgress], metrics: str = "uncertain_cep") -> dict[str, int]:
    """Return the sums of what batches counted."""
    metrics_of_batches: list[Any] = [progress["observedMetrics"][metrics] for progress in done]
    rows = [row.asDict() for row in metrics_of_batches]
    if rows and "schema" in rows[0]:
        # So it is with Spark Connect.
        names = [field["name"] for field in rows[0]["schema"]["fields"]]
        rows = [dict(zip(names, row["values"], strict=True)) for row in rows]
    return {name: sum(row[name] or 0 for row in rows) for name in COUNTERS}
