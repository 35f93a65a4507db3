"""Parquet to Parquet on local Spark, beside the in-process engine over the same file on one core."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.figures import Options, Results, at_most, exactly
from benchmarks.isolated import ONE_THREAD, run_isolated
from benchmarks.timing import Timing, pin_to_one_core, take_turns
from benchmarks.workload import KEYED, WINDOW, sequence_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["measure"]

_EVENTS: Final = 10_000_000
_KEYS: Final = 100
_CORES: Final = 2
_QUERY: Final = sequence_query(KEYED, WINDOW, partition_by="key")
_STATISTICS: Final = "statistics"
_SCAN: Final = "scan and filter"
_SHUFFLED: Final = "until shuffled"
_MATCHED: Final = "until matched"
_WRITTEN: Final = "until written"
_FRAMED: Final = "written by Spark"
_COLUMNS: Final = ("key", "id", "lower", "upper", "value")


def _write_stream(n: int, path: str) -> None:
    from uncertain_cep.traces.streams import value_stream

    pq.write_table(value_stream(n, half_interval=5, keys=_KEYS), path)


def _in_process(trace: str, out: str, options: Options) -> Timing:
    """Time read, match and write in this process, on one core and in bounded batches."""
    import uncertain_cep as uc
    from uncertain_cep.spark.worker import parquet_writer

    pin_to_one_core(options.core)

    def job() -> int:
        events = pq.read_table(trace, columns=["type", *_COLUMNS])
        written = 0
        writer: pq.ParquetWriter | None = None
        for batch in uc.iter_matches(events, _QUERY):
            # The writer that Spark's workers use: the comparison is of the engines.
            writer = writer or parquet_writer(out, batch.schema)
            writer.write_batch(batch)
            written += batch.num_rows
        if writer is not None:
            writer.close()
        return written

    return take_turns({"job": job}, options.rounds)["job"]


def _on_spark(trace: str, out: str, options: Options, cores: list[int]) -> tuple[float, dict[str, Timing]]:
    """Return the seconds a session takes to start, and the timings of the job and of its beginnings."""
    import uncertain_cep as uc
    from uncertain_cep.spark import get_session, match_to_parquet
    from uncertain_cep.spark.matching import PreparedMatch, prepare
    from uncertain_cep.spark.worker import match_partition

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(cores))
    started = time.perf_counter()
    session = get_session(f"local[{_CORES}]")
    session.range(1).count()
    session_start = time.perf_counter() - started

    def frame() -> DataFrame:
        events: DataFrame = session.read.parquet(trace)
        return events

    def prepared() -> PreparedMatch:
        return prepare(frame(), _QUERY)

    def nowhere(found: DataFrame) -> int:
        found.write.format("noop").mode("overwrite").save()
        return 0

    def scan() -> int:
        events = frame().select(*_COLUMNS)
        return nowhere(events.where(reduce(or_, [events.value % divisor == 0 for divisor in KEYED])))

    def statistics() -> int:
        prepared()
        return 0

    def shuffled() -> int:
        found = prepared().candidates
        return 0 if found is None else nowhere(found)

    def matched() -> int:
        ready = prepared()
        plan, schema, slicing = ready.plan, ready.schema, ready.slicing

        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            found = match_partition(batches, plan=plan, schema=schema, slicing=slicing)
            yield pa.record_batch({"rows": [sum(batch.num_rows for batch in found)]})

        if ready.candidates is None:
            return 0
        return sum(row["rows"] for row in ready.candidates.mapInArrow(count, "rows long").collect())

    def framed() -> int:
        uc.match(frame(), _QUERY).write.mode("overwrite").parquet(out)
        return sum(pq.read_metadata(part).num_rows for part in Path(out).glob("*.parquet"))

    stages: dict[str, Callable[[], int]] = {
        _STATISTICS: statistics,
        _SCAN: scan,
        _SHUFFLED: shuffled,
        _MATCHED: matched,
        _WRITTEN: lambda: match_to_parquet(frame(), _QUERY, out, overwrite=True),
        _FRAMED: framed,
    }
    try:
        return session_start, take_turns(stages, options.rounds)
    finally:
        session.stop()


def measure(options: Options) -> Results:
    """Measure 10M events with 100 keys; the time a session takes to start stands apart."""
    results = Results()
    n = options.events(_EVENTS)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    folder = tempfile.mkdtemp(prefix="uncertain-cep-benchmark-")
    try:
        trace = str(Path(folder, "stream.parquet"))
        run_isolated(_write_stream, n, trace)
        local = run_isolated(
            _in_process, trace, str(Path(folder, "local.parquet")), options, environment=ONE_THREAD
        )
        session_start, stages = run_isolated(_on_spark, trace, str(Path(folder, "spark")), options, cores)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    spark, framed = stages[_WRITTEN], stages[_FRAMED]
    note = f"{n:,} events, {_KEYS} keys, {local.rows:,} matches with confidence"
    results.add_median("in process, one core: read, match, write", local.wall, "s", note=note)
    results.add_median(f"Spark local[{_CORES}], match_to_parquet", spark.wall, "s", note=note)
    results.add_median(f"Spark local[{_CORES}], match, then Spark's writer", framed.wall, "s", note=note)
    results.add("match_to_parquet to in process", spark.seconds() / local.seconds(), "x", at_most(2.0))
    results.add("match, then Spark's writer, to in process", framed.seconds() / local.seconds(), "x")
    results.add("Spark session start", session_start, "s", note="once, with an empty first job")
    counts = {local.rows, spark.rows, framed.rows, stages[_MATCHED].rows}
    results.add("distinct numbers of matches", len(counts), "counts", exactly(1))
    results.breakdowns[f"Where the time goes, Spark local[{_CORES}]"] = _differences(stages)
    return results


def _differences(stages: dict[str, Timing]) -> list[dict[str, Any]]:
    """Return what each stage adds, from runs that stop after it."""
    seconds = {name: timing.seconds() for name, timing in stages.items()}
    added = {
        "statistics (a scan of its own)": seconds[_STATISTICS],
        "scan and filter": seconds[_SCAN],
        "shuffle": seconds[_SHUFFLED] - seconds[_STATISTICS] - seconds[_SCAN],
        "Arrow transfer and kernel": seconds[_MATCHED] - seconds[_SHUFFLED],
        "write, by the workers": seconds[_WRITTEN] - seconds[_MATCHED],
    }
    whole = seconds[_WRITTEN]
    rows = [{"stage": name, "seconds": part, "share": f"{part / whole:.0%}"} for name, part in added.items()]
    return [*rows, {"stage": "whole job", "seconds": whole, "share": "100%"}]
