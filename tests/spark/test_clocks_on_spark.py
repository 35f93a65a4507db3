"""Events that share clocks have the same matches on Spark, however they are spread, and as they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import uncertain_cep as uc
from tests.spark.streams import pieces_of, put, reading, run
from tests.spark.test_file_workers import found_by, scanned, work_of
from tests.spark.test_joined_events import by_match
from tests.spark.traces import as_rows, to_spark
from uncertain_cep.spark import file_tasks, match, match_to_parquet
from uncertain_cep.spark.dataframes import from_arrow_schema

QUERY = "PATTERN SEQ(A a, B b, A c) WITHIN 12"
KEYED = "PATTERN OR(SEQ(A a, B b), SEQ(B c, A d, B e)) WHERE [key] WITHIN 9 HAVING CONFIDENCE >= 0.2"
FORBIDS = (
    "PATTERN SEQ(A a, !B n, A c) WHERE [key] WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) AND [key] WITHIN 9",
)
LARGEST = 4


def clocked(seed: int, count: int) -> pa.Table:
    """Return events by three clocks and without one, in the order of their true times' lower bounds."""
    draw = np.random.default_rng(seed)
    bounds = {"h": (-2, 2), "g": (0, 3), "f": (1, 1)}
    clock = draw.choice([*bounds, "none"], count)
    own_ticks = np.sort(draw.integers(0, count, count))
    low, high = (np.array([bounds.get(name, (0, 2))[side] for name in clock]) for side in (0, 1))
    absent = clock == "none"
    table = pa.table(
        {
            "type": draw.choice(["A", "B"], count).tolist(),
            "id": np.arange(count),
            "lower": own_ticks + low,
            "upper": own_ticks + high,
            "key": draw.integers(0, 3, count),
            "source": pa.array(clock, mask=absent),
            "offset_lower": pa.array(low, mask=absent),
            "offset_upper": pa.array(high, mask=absent),
        }
    )
    return table.sort_by("lower")


def timed(table: pa.Table) -> pa.Table:
    """Return events with milliseconds for ticks."""
    for name in ("lower", "upper", "offset_lower", "offset_upper"):
        dtype = pa.duration("ms") if name.startswith("offset") else pa.timestamp("ms", "UTC")
        table = table.set_column(table.column_names.index(name), name, table.column(name).cast(dtype))
    return table


@pytest.mark.parametrize("spread", [{}, {"slice_length": 10, "partitions": 3}, {"prune": True}], ids=str)
def test_clocks_travel_with_the_events(spark: SparkSession, spread: dict[str, Any]) -> None:
    table = clocked(1, 60)
    likely = [[0.5, 0.0, 0.2, 0.3] if source == "g" else None for source in table["source"].to_pylist()]
    table = table.append_column("offset_pmf", pa.array(likely, pa.list_(pa.float64())))
    frame = spark.createDataFrame(table).repartition(3)
    for query in (QUERY, KEYED, FORBIDS[0]):
        expected = as_rows(uc.match(table, query))
        assert expected != as_rows(uc.match(table, query, sources=False))
        assert as_rows(match(frame, query, **spread).toArrow()) == expected


def test_without_sources_pmfs_by_clocks_are_those_of_the_times(spark: SparkSession) -> None:
    table = clocked(5, 40)
    low, high = (table[name].to_pylist() for name in ("lower", "upper"))
    width = [
        upper - lower - (0 if offset_low is None else offset_high - offset_low)
        for lower, upper, offset_low, offset_high in zip(
            low, high, *(table[name].to_pylist() for name in ("offset_lower", "offset_upper")), strict=True
        )
    ]
    # Each event by a clock is uncertain by itself besides.
    loose = [end + (name is not None) for end, name in zip(high, table["source"].to_pylist(), strict=True)]
    pmf = [
        [0.25, 0.75] if name is not None else [1.0 / (size + 1)] * (size + 1)
        for size, name in zip(width, table["source"].to_pylist(), strict=True)
    ]
    table = table.set_column(table.column_names.index("upper"), "upper", pa.array(loose))
    table = table.append_column("pmf", pa.array(pmf, pa.list_(pa.float64())))
    expected = as_rows(uc.match(table, QUERY, sources=False))
    assert expected != as_rows(uc.match(table, QUERY))
    assert as_rows(match(spark.createDataFrame(table), QUERY, sources=False).toArrow()) == expected


def test_offsets_beside_timestamps_are_intervals(spark: SparkSession, tmp_path: Path) -> None:
    table = timed(clocked(2, 40))
    query = QUERY.replace("12", "12 ms")
    expected = as_rows(uc.match(table, query, tick="1ms"))
    frame = spark.createDataFrame(table)
    assert as_rows(match(frame, query, tick="1ms").toArrow()) == expected
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    read = uc.spark.read_traces(spark, tmp_path / "events.parquet")
    assert match_to_parquet(read, query, tmp_path / "matches", tick="1ms") == len(expected)
    as_numbers = spark.read.parquet(str(tmp_path / "events.parquet"))
    with pytest.raises(uc.OptionError, match="'offset_lower' holds whole numbers beside timestamps"):
        match(as_numbers, query, tick="1ms")
    with pytest.raises(uc.OptionError, match="'offset_lower' holds whole numbers beside timestamps"):
        match(reading(spark, tmp_path, as_numbers_of(table)), query, tick="1ms", largest_interval=LARGEST)
    mended = as_numbers.withColumns(
        {name: f.expr(f"{name} * INTERVAL '0.001' SECOND") for name in ("offset_lower", "offset_upper")}
    )
    assert as_rows(match(mended, query, tick="1ms").toArrow()) == expected


def as_numbers_of(table: pa.Table) -> pa.Schema:
    fields = [
        field.with_type(pa.int64()) if pa.types.is_duration(field.type) else field for field in table.schema
    ]
    return pa.schema(fields)


def test_stamps_of_a_frame_become_events_of_clocks(spark: SparkSession) -> None:
    log = pa.table({"type": ["A", "B"], "id": [1, 2], "host": ["h", "h"],
                    "at": pa.array([10_000, 12_000], pa.timestamp("ms"))})  # fmt: skip
    rule = uc.clock_offset({"h": (-5, 5)}, unit="s", shared=True)
    query = "PATTERN SEQ(A a, B b) WITHIN 5 s"
    events = uc.to_intervals(spark.createDataFrame(log), time="at", uncertainty=rule, tick="1s")
    made = uc.to_intervals(log, time="at", uncertainty=rule, tick="1s")
    for sources in (True, False):
        expected = uc.match(made, query, sources=sources)["confidence"].to_pylist()
        assert (expected == [1.0]) == sources
        assert uc.match(events, query, sources=sources).toArrow()["confidence"].to_pylist() == expected


def test_workers_that_read_files_know_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_tasks, "ROWS_WORTH_A_TASK", 10)
    table = clocked(3, 60)
    pa.parquet.write_table(table, tmp_path / "events.parquet", row_group_size=7)
    files = scanned([tmp_path / "events.parquet"])
    for query in (QUERY, KEYED, *FORBIDS):
        assert as_rows(found_by(work_of(files, query, 3))) == as_rows(uc.match(table, query))


def test_events_of_clocks_arrive(spark: SparkSession, tmp_path: Path) -> None:
    table = clocked(4, 60)
    put(tmp_path / "events", *pieces_of(table, [20, 40]))
    frame = reading(spark, tmp_path / "events", table.schema)
    rows, _ = run(match(frame, QUERY, largest_interval=LARGEST, slice_length=30, buckets=2), tmp_path)
    expected = uc.match(table, QUERY)
    assert as_rows(rows.select(expected.column_names)) == as_rows(expected)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"offset_upper": [3, None]}, "this bound of its offset is missing"),
        ({"offset_upper": [3, 4], "upper": [6, 7]}, "the clock has other bounds in other rows"),
        ({"offset_upper": [9, 9]}, "no time by the clock is left"),
        ({"offset_pmf": [[0.5, 0.5, 0, 0], None]}, "the clock has another pmf in other rows"),
        ({"offset_lower": ["0", "0"]}, "its type is string: an offset is a duration, or int64 ticks"),
    ],
    ids=str,
)
def test_what_is_wrong_with_clocks_is_said_before_matching(
    spark: SparkSession, changes: dict[str, Any], said: str
) -> None:
    sound = {"type": ["A", "B"], "id": [1, 2], "lower": [1, 2], "upper": [4, 5], "source": ["h", "h"],
             "offset_lower": [0, 0], "offset_upper": [3, 3]}  # fmt: skip
    frame = spark.createDataFrame(pa.table({**sound, **changes}))
    with pytest.raises(uc.TraceError, match=said):
        match(frame, "PATTERN SEQ(A a, B b) WITHIN 9")


def test_frames_keep_the_types_of_offsets() -> None:
    kept = from_arrow_schema(timed(clocked(1, 2)).schema)
    assert kept["offset_lower"].dataType.simpleString() == "interval day to second"


def ordered(count: int) -> pa.Table:
    """Return events of two files in order, one by the day and one by three ticks, and others."""
    draw = np.random.default_rng(5)
    source = draw.choice(["day", "third", "none"], count, p=[0.3, 0.5, 0.2])
    length = np.array([{"day": 24, "third": 3, "none": 1}[name] for name in source])
    at = np.sort(draw.integers(0, 4 * count, count))
    lower, absent = at - at % length, source == "none"
    # Some of the third kind reach into what follows them.
    upper = lower + length - 1 + 2 * ((source == "third") & (draw.random(count) < 0.5))
    columns = {
        "type": draw.choice(["A", "B", "C"], count).tolist(),
        "id": np.arange(count),
        "lower": lower,
        "upper": upper,
        "source": pa.array(source, mask=absent),
        "offset_lower": pa.array(0 * at, mask=absent),
        "offset_upper": pa.array(0 * at, mask=absent),
        "sequence": pa.array(np.arange(count), mask=absent),
        "ordered": pa.array(~absent),
    }
    return pa.table(columns)


@pytest.mark.parametrize("spread", [{"partitions": 1}, {"slice_length": 9, "partitions": 3}], ids=str)
def test_records_that_depend_on_each_other_travel_together(
    spark: SparkSession, spread: dict[str, Any]
) -> None:
    table = ordered(60)
    frame = spark.createDataFrame(table).repartition(3)
    queries = (
        "PATTERN SEQ(A a, B b) WITHIN 12 HAVING CONFIDENCE >= 0.2",
        "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 12",
        "PATTERN SEQ(A a, !B b, A c) WHERE [source] WITHIN 12",
        "PATTERN SEQ(A a, B b, !C c) WHERE [source] WITHIN 12",
        "PATTERN SEQ(!C c, A a, B b) WHERE [source] AND TIME(b) - TIME(a) <= 9 WITHIN 12",
    )
    for query in queries if "slice_length" in spread else queries[::2]:
        expected = as_rows(uc.match(table, query))
        assert expected
        assert as_rows(match(frame, query, **spread).toArrow()) == expected


@pytest.mark.parametrize("spread", [{"partitions": 1}, {"slice_length": 9, "partitions": 3}], ids=str)
def test_sequences_break_ties_beside_other_sources(spark: SparkSession, spread: dict[str, Any]) -> None:
    table = ordered(60).drop_columns("ordered")
    frame = spark.createDataFrame(table).repartition(3)
    for query in (
        "PATTERN SEQ(A a, !B b, C c) WITHIN 6",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 6",
        "PATTERN AND(A a, B b) WITHIN 3",
    ):
        expected = as_rows(uc.match(table, query))
        assert expected
        assert as_rows(match(frame, query, **spread).toArrow()) == expected


def test_when_records_happened(spark: SparkSession) -> None:
    table, query = ordered(40), "PATTERN SEQ(A a, B b) WITHIN 12"
    matches = uc.match(table, query)
    here = by_match(uc.posteriors(matches, table, query).to_pylist())
    there = uc.posteriors(to_spark(spark, matches), to_spark(spark, table), query)
    assert by_match([row.asDict(recursive=True) for row in there.collect()]) == here


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ordered": [True, None]}, "ordered by some of its rows"),
        ({"sequence": [1, 1]}, "has this sequence"),
        ({"lower": [6, 0], "upper": [9, 5]}, "comes later, and its time leaves none"),
    ],
    ids=str,
)
def test_what_is_wrong_with_an_order_is_said_before_matching(
    spark: SparkSession, changes: dict[str, Any], said: str
) -> None:
    sound = {"type": ["A", "B"], "id": [1, 2], "lower": [1, 2], "upper": [4, 5], "source": ["h", "h"],
             "offset_lower": [0, 0], "offset_upper": [0, 0], "sequence": [1, 2],
             "ordered": [True, True]}  # fmt: skip
    frame = spark.createDataFrame(pa.table({**sound, **changes}))
    with pytest.raises(uc.TraceError, match=said):
        match(frame, "PATTERN SEQ(A a, B b) WITHIN 9")


def test_streams_of_ordered_sources_are_refused_before_any_work(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(uc.OptionError, match="no match of a stream would be final"):
        match(reading(spark, tmp_path, ordered(2).schema), QUERY, largest_interval=LARGEST)
