"""A stream reads each file of a folder once, however old it is and whenever it comes."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.spark.streams import patiently
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.spark import read_stream
from uncertain_cep.spark.file_streams import events_of_file, learned_columns, reading_of
from uncertain_cep.traces import load_schema

DAY = 86_400
NOW = 1_800_000_000
ARRIVALS: list[list[int]] = [
    [NOW, NOW - 6 * DAY, NOW - 8 * DAY],
    # A rename keeps the time of the last change: archives of years come behind what is new.
    [NOW - 30 * DAY, NOW - 4000 * DAY, 1, -20 * 365 * DAY],
    [NOW + 30 * 365 * DAY, NOW + 1],
    [NOW - 9 * DAY],
]
"""When the files of each run were last changed, in seconds."""


def test_files_of_every_age(spark: SparkSession, tmp_path: Path) -> None:
    folder, out = tmp_path / "events", tmp_path / "out"
    folder.mkdir()
    put: list[int] = []
    for run, changed in enumerate(ARRIVALS):
        for second in changed:
            number = len(put)
            part = tmp_path / "part"
            pq.write_table(
                pa.table({"type": ["A"], "id": [number], "lower": [number], "upper": [number]}), part
            )
            os.utime(part, (second, second))
            part.rename(folder / f"{number}.parquet")
            put.append(number)
        # With a limit Spark keeps a list of what is still to be read.
        events = read_stream(spark, folder, files_per_batch=None if run % 2 else 2)
        writer = events.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "state"))
        # Each run goes on from the last one's checkpoint, as a restart does.
        patiently(lambda: writer.trigger(availableNow=True).start(str(out)).awaitTermination())  # noqa: B023
        read = spark.read.schema(events.schema).parquet(str(out)).toArrow()
        assert sorted(read.column("id").to_pylist()) == put, f"run {run}"


def test_a_file_with_two_possible_times_comes_later(spark: SparkSession, tmp_path: Path) -> None:
    """The columns, learned from the first files, have room for its pmfs; codes do not become numbers."""
    folder = tmp_path / "events"
    folder.mkdir()
    schema = tmp_path / "schema.toml"
    schema.write_text(
        'tick = "1min"\n[[events]]\ntype_column = "what"\nid = "n"\ntime = "at"\n'
        'time_zone = "Europe/Berlin"\nuncertainty = { kind = "exact" }\n'
    )
    (folder / "a.csv").write_text("n,what,at,k\n1,A,2026-10-24T02:30:00,7\n")
    columns = learned_columns(spark, folder, load_schema(schema), None)
    reading, event_schema = reading_of(spark, folder, load_schema(schema), columns)
    later = folder / "b.csv"
    later.write_text("n,what,at,k\n2,A,2026-10-25T02:30:00,8\n")
    with pytest.warns(UncertainCepWarning, match="1 stamps of at stand for two times"):
        (batch,) = events_of_file(later, reading, event_schema)
    assert batch.column("pmf").to_pylist() == [[0.5, *[0.0] * 59, 0.5]]
    later.write_text("n,what,at,k\n3,A,2026-10-26T02:30:00,08\n")
    with pytest.raises(
        TraceError, match=r"b.csv, row 1, column 'k', value '08'.*the first files hold numbers"
    ):
        list(events_of_file(later, reading, event_schema))
