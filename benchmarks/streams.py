"""Streams on local Spark: events a second, delay, and whether memory and state stay flat.

``python -m benchmarks.streams throughput`` and ``python -m benchmarks.streams soak --minutes 60``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import uncertain_cep as uc
from benchmarks.rule_soak import soak_rules
from benchmarks.workload import KEYED, WINDOW, sequence_query
from uncertain_cep.plan import MatchOptions
from uncertain_cep.spark import get_session
from uncertain_cep.spark.stream_state import StreamState, rows_of
from uncertain_cep.spark.streamed import layout_of, pieces_of_stream
from uncertain_cep.streaming.held_slices import COUNTED, OneQuery, Report
from uncertain_cep.streaming.stream_layout import METRICS, StreamOptions
from uncertain_cep.traces.streams import value_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_KEYS: Final = 100
_QUERY: Final = sequence_query(KEYED, WINDOW, partition_by="key")
_HALF: Final = 5
_SOAKED: Final = "PATTERN SEQ(A a, B b) WHERE [key] AND b.value > a.value + 990 WITHIN 5 s"


class Storing(StreamState):
    """Stores the blobs of a stream, and neither reads them nor emits anything: what the state costs alone."""

    def handleInputRows(  # noqa: D102, N802
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        store = self._store
        assert store is not None
        part = int(store.read_index() or 0)
        for frame in rows:
            for row in frame.to_dict("records"):
                store.write(row["slice"], part, row["blob"])
                part += 1
        store.write_index(str(part))
        return iter([rows_of(Report([], dict.fromkeys(COUNTED, 0)))])


def _session(folder: Path) -> SparkSession:
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": str(folder / "warehouse")}
    return get_session("local[2]", conf=settings)


def _run(frame: DataFrame, folder: Path) -> list[float]:
    """Run a stream to its end, and return the seconds that each batch but the first one took."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress["durationMs"]["triggerExecution"] / 1000 for progress in query.recentProgress][1:]


@click.group()
def main() -> None:
    """Measure streams on local Spark."""


@main.command()
@click.option(
    "--batches", default=6, show_default=True, help="Of 500,000 events, the first of which warms up."
)
@click.option("--rows", default=500_000, show_default=True, help="Events in a batch.")
@click.option("--rounds", default=2, show_default=True)
def throughput(batches: int, rows: int, rounds: int) -> None:
    """Events a second from Parquet, beside an operator that stores the same blobs and emits nothing."""
    with tempfile.TemporaryDirectory(prefix="uncertain-cep-") as name:
        folder = Path(name)
        table = value_stream(batches * rows, half_interval=_HALF, keys=_KEYS)
        (folder / "events").mkdir()
        for number in range(batches):
            pq.write_table(table.slice(number * rows, rows), folder / "events" / f"{number:03}.parquet")
        spark = _session(folder)
        schema = spark.read.parquet(str(folder / "events")).schema

        def events() -> DataFrame:
            reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            return reader.parquet(str(folder / "events"))

        def stored() -> DataFrame:
            frame, query, options = events(), uc.parse(_QUERY), StreamOptions(2 * _HALF)
            layout = layout_of(frame, query, MatchOptions(), options)
            return pieces_of_stream(frame, layout, Storing(OneQuery(layout)))

        from uncertain_cep.spark import match

        def matched() -> DataFrame:
            return match(events(), _QUERY, largest_interval=2 * _HALF)

        contenders: dict[str, Callable[[], DataFrame]] = {"match": matched, "store": stored}
        rates: dict[str, list[float]] = {"match": [], "store": []}
        for turn in range(rounds):
            for what, made in contenders.items():
                taken = _run(made(), folder / f"{what} {turn}")
                rates[what] += [rows / seconds for seconds in taken]
                print(f"{what}: {', '.join(f'{seconds:.2f}' for seconds in taken)} s a batch", flush=True)
        medians = {what: statistics.median(rate) for what, rate in rates.items()}
        print(
            f"{medians['match']:,.0f} events/s, {medians['match'] / medians['store']:.0%} of the "
            f"{medians['store']:,.0f} that are stored"
        )
        spark.stop()


@main.command()
@click.option("--minutes", default=60.0, show_default=True)
@click.option("--rate", default=5_000, show_default=True, help="Events a second.")
@click.option("--trigger", default="2 seconds", show_default=True)
@click.option("--rules", type=click.IntRange(1), help="Run so many rules in one process, without Spark.")
def soak(minutes: float, rate: int, trigger: str, rules: int | None) -> None:
    """Run a fixed rate, with one hot key and many that come once: memory, state, lag and delay."""
    if rules is not None:
        soak_rules(rules, minutes, rate)
        return
    with tempfile.TemporaryDirectory(prefix="uncertain-cep-") as name:
        folder = Path(name)
        spark = _session(folder)
        from pyspark.sql import functions as f

        from uncertain_cep.spark import match

        number = f.col("value")
        source = (
            spark.readStream.format("rate").option("rowsPerSecond", rate).option("numPartitions", 2).load()
        )
        events = source.select(
            f.when(number % 2 == 0, "A").otherwise("B").alias("type"),
            number.alias("id"),
            (f.unix_millis("timestamp") - number % 500).alias("lower"),
            f.unix_millis("timestamp").alias("upper"),
            (number * 7919 % 1000).alias("value"),
            # Half of the events are of one key, a hundredth of keys that never come again.
            f.when(number % 4 < 2, 0).when(number % 100 == 2, number).otherwise(number % 50).alias("key"),
        )
        matches = match(events, _SOAKED, largest_interval="0.5 s", tick="1ms")
        writer = matches.writeStream.format("parquet").option("checkpointLocation", str(folder / "state"))
        query = writer.trigger(processingTime=trigger).start(str(folder / "out"))
        _report(_watched(query, minutes))
        query.stop()
        spark.stop()


def _watched(query: StreamingQuery, minutes: float) -> list[dict[str, float]]:
    """Return a row of figures for each batch of some minutes."""
    rows: list[dict[str, float]] = []
    seen = -1
    begin = time.monotonic()
    last_report = 0.0
    while time.monotonic() < begin + 60 * minutes:
        time.sleep(1)
        if not query.isActive:
            query.awaitTermination()
        for progress in query.recentProgress:
            metrics = progress["observedMetrics"].get(METRICS)
            if progress["batchId"] <= seen or metrics is None or metrics["events"] is None:
                continue
            seen = progress["batchId"]
            java, python = _memory()
            rows.append(
                {
                    "minute": (time.monotonic() - begin) / 60,
                    "events": metrics["events"],
                    "matches": metrics["matches"],
                    "late": metrics["late"],
                    "state kB": metrics["state_bytes"] / 1e3,
                    "JVM MB": java,
                    "workers MB": python,
                    "lag s": max(time.time() - metrics["newest"] / 1e3, 0.0),
                    "delay s": progress["durationMs"]["triggerExecution"] / 1e3,
                }
            )
        if rows and time.monotonic() > last_report + 60:
            last_report = time.monotonic()
            print(", ".join(f"{name} {value:,.1f}" for name, value in rows[-1].items()), flush=True)
    return rows


def _memory() -> tuple[float, float]:
    """Return the megabytes that the JVM holds, and those of all Python workers together."""
    megabytes = {"java": 0.0, "python": 0.0}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    queue = list(children.get(os.getpid(), ()))
    while queue:
        process = queue.pop()
        queue += children.get(process, ())
        try:
            command = Path(f"/proc/{process}/cmdline").read_text().partition("\0")[0]
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        # Workers share the pages of the process that they are forked from.
        held = next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
        megabytes["java" if command.endswith("java") else "python"] += held / 1e3
    return megabytes["java"], megabytes["python"]


def _report(rows: list[dict[str, float]]) -> None:
    """Compare the last quarter of the batches with the second, and say what the delay was."""
    quarter = len(rows) // 4
    if not quarter:
        raise click.ClickException(f"{len(rows)} batches are too few to compare: take more minutes")
    second, last = rows[quarter : 2 * quarter], rows[3 * quarter :]
    for name in ("JVM MB", "workers MB", "state kB", "lag s", "delay s"):
        before, behind = (statistics.mean(row[name] for row in part) for part in (second, last))
        print(
            f"{name}: {before:,.1f} in the second quarter, {behind:,.1f} in the last ({behind / before:.0%})"
        )
    # A match is written by the batch whose events make it final.
    delays = np.repeat([row["delay s"] for row in rows], [int(row["matches"]) for row in rows])
    events, seconds = sum(row["events"] for row in rows), 60 * rows[-1]["minute"]
    late = sum(row["late"] for row in rows)
    median, worst = np.quantile(delays, 0.5), np.quantile(delays, 0.99)
    print(f"{len(rows)} batches, {events / seconds:,.0f} events/s, {late:,.0f} late")
    print(f"delay of {len(delays):,} matches: median {median:.2f} s, p99 {worst:.2f} s")


if __name__ == "__main__":
    main()
