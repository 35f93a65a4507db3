"""The tick of Spark frames: from the column that says it, checked in the pass over all events."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import uncertain_cep as uc
from tests.api.test_kinds_of_frames import US, answer, expected, raw_table
from tests.spark.traces import as_rows
from uncertain_cep.spark import match, read_traces, to_intervals
from uncertain_cep.traces import TraceSchema, plus_minus

START = dt.datetime(2024, 5, 1)
QUERY = "PATTERN SEQ(A a, B b) WITHIN 25 h"


PLAIN = "type string, id long, lower long, upper long, tick string"


def coarse(tick: str = "1h") -> pa.Table:
    """Return events whose confidence within 25 hours is 2/3 in ticks of an hour, 7/8 without a tick."""
    raw = pa.table({"type": ["A", "B"], "id": [1, 2], "at": [START, START + dt.timedelta(days=1)]})
    return uc.to_intervals(raw, time="at", uncertainty=plus_minus("1h"), tick=tick)


def test_the_tick_is_read_from_the_column(spark: SparkSession) -> None:
    events = spark.createDataFrame(coarse().to_pandas())
    colours = spark.createDataFrame([(1, "red"), (2, "blue")], "id long, colour string")
    raw = spark.createDataFrame(coarse().select(["type", "id", "at"]).to_pandas())
    made = to_intervals(raw, time="at", uncertainty=plus_minus("1h"), tick="1h")
    frames = [events, events.join(colours, "id"), made, made.join(colours, "id")]
    for frame in frames:
        (row,) = match(frame, QUERY).collect()
        assert row["confidence"] == pytest.approx(2 / 3, rel=1e-9)
    assert "tick          1h\n" in uc.explain(QUERY, events).replace("tick            1h", "tick          1h")
    assert match(events, QUERY, tick="60min").count() == 1
    with pytest.raises(uc.OptionError, match=r"tick='30min': .* made with ticks of 1h"):
        match(events, QUERY, tick="30min")
    # Another spelling of the tick in some row is none of two ticks.
    spelled = events.withColumn("tick", f.when(f.col("id") == 1, "60min").otherwise(f.col("tick")))
    assert match(spelled, QUERY).count() == 1
    with pytest.raises(uc.OptionError, match="a tick of 1ns is too short: Spark keeps times to the micro"):
        match(events.drop("tick"), QUERY, tick="1ns")
    default = match(events.drop("tick"), QUERY).collect()[0]["confidence"]
    assert default == pytest.approx(7 / 8, rel=1e-6) or default == pytest.approx(1 / 2, rel=1e-6)


def test_one_tick_in_all_rows(spark: SparkSession) -> None:
    raw = spark.createDataFrame(coarse().select(["type", "id", "at"]).to_pandas())
    hours = to_intervals(raw, time="at", uncertainty=plus_minus("1h"), tick="1h")
    minutes = to_intervals(raw, time="at", uncertainty=plus_minus("1h"), tick="1min")
    later = minutes.withColumn("id", f.col("id") + 10)
    with pytest.raises(uc.TraceError, match=r"column 'tick'.*several ticks"):
        match(hours.union(later), QUERY)
    nothing = later.withColumn("tick", f.lit(None).cast("string"))
    with pytest.raises(uc.TraceError, match=r"column 'tick'.*some events have no tick, and others 1h"):
        match(hours.union(nothing), QUERY)
    plain = spark.createDataFrame([("A", 1, 0, 0, None), ("B", 2, 4, 4, None)], PLAIN)
    assert match(plain, "PATTERN SEQ(A a, B b) WITHIN 5").count() == 1
    with pytest.raises(uc.TraceError, match=r"column 'tick'.*no such length"):
        match(hours.withColumn("tick", f.lit("loud")), QUERY)
    with pytest.raises(uc.TraceError, match=r"column 'tick'.*its type is int"):
        match(hours.withColumn("tick", f.lit(1)), QUERY)
    assert match(hours.withColumn("tick", f.lit(1)), QUERY, names={"tick": "other"}).count() == 1


def test_every_unit_gives_the_answer(spark: SparkSession, tmp_path: Path) -> None:
    for unit, step in US.items():
        first = 1_717_200_000 * 10**6 // step * step
        stamps = [first, first + step, first + 3 * step, first + step + (unit == "us")]
        length = 86_400 * 10**6 if unit.startswith("date") else 1
        by, window = step // length * length, 2 * step + length
        folder = tmp_path / unit
        folder.mkdir()
        pq.write_table(raw_table(stamps, unit), folder / "raw.parquet")
        schema = TraceSchema.from_flags(time="at", uncertainty=f"plus_minus:{by}us")
        events = read_traces(spark, folder, schema)
        matches = match(events, f"PATTERN SEQ(A a, B b) WITHIN {window} us").toArrow()
        assert answer(matches) == expected(stamps, by, length, window)


def test_merged_times_are_said_for_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "raw.csv").write_text(
        "type,id,at\nA,1,2024-05-01 00:00:00\nB,2,2024-05-01 00:00:00.04\nB,3,2024-05-01 00:00:01\n"
    )
    schema = TraceSchema.from_flags(time="at", uncertainty="exact", tick="100ms")
    with pytest.warns(uc.UncertainCepWarning, match="2 certain times share a tick of 100ms"):
        read_traces(spark, tmp_path / "raw.csv", schema)


def test_non_overlapping_works_per_partition_however_its_keys_are_called(spark: SparkSession) -> None:
    rows = [("A", 0, 0, 9), ("B", 2, 9, 0), ("A", 1, 1, 9), ("B", 3, 9, 1), ("A", 2, 0, 9), ("B", 4, 9, 0)]
    kinds, times, partition_keys, other = zip(*rows, strict=True)
    table = pa.table(
        {"type": kinds, "id": range(6), "lower": times, "upper": times, "k": partition_keys, "node": other}
    )
    query = "PATTERN SEQ(A a, B b) WHERE a.k = b.node WITHIN 3 OUTPUT NON OVERLAPPING"
    here = uc.match(table, query)
    assert here.select(["a", "b"]).to_pylist() == [{"a": 0, "b": 1}, {"a": 2, "b": 3}]
    matches = match(spark.createDataFrame(pl.DataFrame(table).to_pandas()), query, partitions=3)
    assert matches.columns == here.column_names
    assert as_rows(matches.toArrow()) == as_rows(here)
