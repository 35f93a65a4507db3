"""Parquet to Parquet on local Spark, the file read by workers or shuffled, beside one core in process."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.figures import Options, Results, at_most, exactly
from benchmarks.isolated import ONE_THREAD, run_isolated
from benchmarks.resident import peaks_below
from benchmarks.timing import Timing, pin_to_one_core, take_turns
from benchmarks.workload import KEYED, WINDOW, sequence_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
_BY_FILES: Final = "by workers that read files"
_FRAMED: Final = "written by Spark"
_FRAMED_BY_FILES: Final = "written by Spark, by workers that read files"
_MANY: Final = 100_000_000
_AT_ONCE: Final = 10_000_000
_COLUMNS: Final = ("key", "id", "lower", "upper", "value")


def _write_stream(n: int, path: str) -> None:
    """Write the stream, some of it at a time: a number at which its values and keys begin anew."""
    from uncertain_cep.traces.streams import value_stream

    first_events = value_stream(min(n, _AT_ONCE), half_interval=5, keys=_KEYS)
    with pq.ParquetWriter(path, first_events.schema) as writer:
        for begin in range(0, n, _AT_ONCE):
            moved = first_events.slice(0, n - begin)
            for name, shift in (("id", begin), ("lower", begin // _KEYS), ("upper", begin // _KEYS)):
                column = pc.add(moved.column(name), shift)
                moved = moved.set_column(moved.schema.get_field_index(name), name, column)
            writer.write_table(moved)


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
    from uncertain_cep.plan import MatchOptions
    from uncertain_cep.spark.matching import matches_frame
    from uncertain_cep.spark.preparing import PreparedMatch, Spread, prepare
    from uncertain_cep.spark.worker import match_partition
    from uncertain_cep.spark.writing import matches_to_parquet, write_matches

    session, session_start = _session(cores)
    shuffle = Spread(by_files=False)

    def frame() -> DataFrame:
        events: DataFrame = session.read.parquet(trace)
        return events

    def prepared() -> PreparedMatch:
        return prepare(frame(), _QUERY, spread=shuffle)

    def nowhere(rows: DataFrame) -> int:
        rows.write.format("noop").mode("overwrite").save()
        return 0

    def scan() -> int:
        events = frame().select(*_COLUMNS)
        return nowhere(events.where(reduce(or_, [events.value % divisor == 0 for divisor in KEYED])))

    def statistics() -> int:
        prepared()
        return 0

    def shuffled() -> int:
        candidates = prepared().candidates
        return 0 if candidates is None else nowhere(candidates)

    def matched() -> int:
        ready = prepared()
        plan, schema, slicing = ready.plan, ready.schema, ready.slicing

        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            matches = match_partition(batches, plan=plan, schema=schema, slicing=slicing)
            yield pa.record_batch({"rows": [sum(batch.num_rows for batch in matches)]})

        if ready.candidates is None:
            return 0
        return sum(row["rows"] for row in ready.candidates.mapInArrow(count, "rows long").collect())

    def written(spread: Spread = Spread()) -> int:  # noqa: B008
        return matches_to_parquet(frame(), _QUERY, out, MatchOptions(), spread, overwrite=True)

    def framed(spread: Spread = Spread()) -> int:  # noqa: B008
        write_matches(matches_frame(frame(), _QUERY, MatchOptions(), spread), out, overwrite=True)
        return sum(pq.read_metadata(part).num_rows for part in Path(out).glob("*.parquet"))

    stages: dict[str, Callable[[], int]] = {
        _STATISTICS: statistics,
        _SCAN: scan,
        _SHUFFLED: shuffled,
        _MATCHED: matched,
        _WRITTEN: partial(written, shuffle),
        _BY_FILES: written,
        _FRAMED: partial(framed, shuffle),
        _FRAMED_BY_FILES: framed,
    }
    try:
        return session_start, take_turns(stages, options.rounds)
    finally:
        session.stop()


def _session(cores: list[int]) -> tuple[SparkSession, float]:
    """Return a session on some cores, and the seconds that it took to start."""
    from uncertain_cep.spark import get_session

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(cores))
    started = time.perf_counter()
    session = get_session(f"local[{_CORES}]")
    session.range(1).count()
    return session, time.perf_counter() - started


def _many(trace: str, out: str, by_files: bool, cores: list[int]) -> tuple[Timing, int, int]:
    """Return the timing of a round over very many events, and the most bytes of the JVM and of a worker."""
    from uncertain_cep.plan import MatchOptions
    from uncertain_cep.spark.preparing import Spread
    from uncertain_cep.spark.writing import matches_to_parquet

    session, _ = _session(cores)

    def job() -> int:
        frame, spread = session.read.parquet(trace), Spread(by_files=by_files)
        return matches_to_parquet(frame, _QUERY, out, MatchOptions(), spread, overwrite=True)

    try:
        timing = take_turns({"job": job}, 1)["job"]
        return timing, max(peaks_below("java"), default=0), max(peaks_below("python"), default=0)
    finally:
        session.stop()


def measure(options: Options) -> Results:
    """Measure 10M events with 100 keys, and 100M; the time a session takes to start stands apart."""
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
        run_isolated(_write_stream, options.events(_MANY), trace)
        timings_by_files = {
            by_files: run_isolated(_many, trace, str(Path(folder, "spark")), by_files, cores)
            for by_files in (True, False)
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    note = f"{n:,} events, {_KEYS} keys, {local.rows:,} matches with confidence"
    results.add_median("in process, one core: read, match, write", local.wall, "s", note=note)
    for name, stage, target in (
        ("match_to_parquet, workers read the file", _BY_FILES, at_most(0.8)),
        ("match_to_parquet, a shuffle", _WRITTEN, None),
        ("match, then write_matches, workers read the file", _FRAMED_BY_FILES, at_most(2.0)),
        ("match, then write_matches, a shuffle", _FRAMED, None),
    ):
        results.add_median(f"Spark local[{_CORES}], {name}", stages[stage].wall, "s", note=note)
        results.add(f"{name}, to in process", stages[stage].seconds() / local.seconds(), "x", target)
    for by_files, (timing, jvm, worker) in timings_by_files.items():
        how = "workers read the file" if by_files else "a shuffle"
        held = f"at most {jvm / 2**20:,.0f} MiB in the JVM, {worker / 2**20:,.0f} in a worker"
        note = f"{timing.rows:,} matches; {held}"
        seconds = timing.seconds()
        target = at_most(15.0) if by_files else None
        results.add(
            f"{options.events(_MANY):,} events, match_to_parquet, {how}", seconds, "s", target, note=note
        )
    results.add("Spark session start", session_start, "s", note="once, with an empty first job")
    counts = {timing.rows for timing in (local, *stages.values()) if timing.rows}
    results.add("distinct numbers of matches", len(counts), "counts", exactly(1))
    results.breakdowns[f"Where the time goes with a shuffle, Spark local[{_CORES}]"] = _differences(stages)
    return results


def _differences(stages: dict[str, Timing]) -> list[dict[str, Any]]:
    """Return the time that each stage adds, from runs that stop after it."""
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
