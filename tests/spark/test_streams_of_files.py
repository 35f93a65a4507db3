"""A stream reads each file of a folder once, however old it is and whenever it comes."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.spark.streams import patiently
from uncertain_cep.spark import read_stream

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
