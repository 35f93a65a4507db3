"""Sums of times and of rules, and days of a zone, on Spark, against one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from uncertain_cep.spark import file_reading, read_traces, text_spans

RULES: list[Any] = [
    uc.columns("at - slack", "at + 2 * slack + 1 s"),
    uc.plus_minus("200ms"),
    uc.granularity("1 s + 500ms"),
]


def times(table: pa.Table) -> list[tuple[object, ...]]:
    columns = (table["id"], *(table[name].cast(pa.timestamp("us")) for name in ("lower", "upper")))
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True))


def test_frames_get_the_same_intervals(spark: SparkSession) -> None:
    stamps = pa.array([5_000, 61_000, None, 10**12], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    raw = pa.table(
        {"id": [1, 2, 3, 4], "type": list("ABAB"), "at": stamps, "slack": pa.array([1, None, 5, 250])}
    )
    options: dict[str, Any] = {"unit": "ms", "tick": "100ms", "missing": "drop"}
    cases: list[tuple[str | None, Any]] = [
        ("at - 60 s + slack", "granularity:1s + plus_minus:200ms"),
        (None, RULES),
    ]
    for time, rule in cases:
        expected = uc.to_intervals(raw, time=time, uncertainty=rule, **options)
        made = uc.to_intervals(spark.createDataFrame(raw), time=time, uncertainty=rule, **options)
        assert times(made.toArrow()) == times(expected)
        assert expected.num_rows == 2


def test_files_get_the_same_events(spark: SparkSession, tmp_path: Path) -> None:
    rows = "".join(f"{n},2024-05-31 10:{n % 60:02}:30,{n % 7}\n" for n in range(200))
    (tmp_path / "cpu.csv").write_text("n,TimeStamp,load\n" + rows)
    schema = tmp_path / "schema.toml"
    schema.write_text(
        """
        tick = "100ms"
        [[events]]
        type = "Begin"
        id = "{n}:begin"
        time = "TimeStamp - 60 s"
        uncertainty = [{ kind = "granularity", of = "1s" }, { kind = "plus_minus", by = "200ms" }]
        [[events]]
        type = "End"
        id = "{n}:end"
        time = "TimeStamp"
        uncertainty = [{ kind = "granularity", of = "1s" }, { kind = "plus_minus", by = "200ms" }]
        """
    )
    expected = uc.read_traces(tmp_path / "cpu.csv", schema)
    made = read_traces(spark, tmp_path / "cpu.csv", schema)
    assert times(made.toArrow()) == times(expected)
    query = "PATTERN SEQ(Begin b, End e) WHERE b.n = e.n AND b.load > 5 WITHIN 70 s"
    matches = uc.match(made, query).toArrow()
    assert sorted(matches["b"].to_pylist()) == sorted(uc.match(expected, query)["b"].to_pylist())
    assert set(matches["confidence"].to_pylist()) == {1.0}


def test_days_and_hours_of_a_zone(spark: SparkSession) -> None:
    """The session counts in New York; the query in Prague, over the end of its daylight saving time."""
    moments = [1729970000 + 3600 * hour for hour in range(60)]
    times = pa.array(moments, pa.int64()).cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC"))
    events = pa.table(
        {"type": list("AB") * 30, "id": list(range(60)), "lower": times, "upper": times, "ts": times}
    )
    counted = uc.parse(
        "PATTERN SEQ(A a, B b) WHERE HOUR(a.ts) < 20 WITHIN 4 hours RETURN EXPECTED COUNT EVERY 1 day",
        zone="Europe/Prague",
    )
    expected = uc.match(events, counted, tick="1s").to_pylist()
    made = uc.match(spark.createDataFrame(events), counted, tick="1s").toArrow().sort_by("bucket").to_pylist()
    shown = [(str(row["bucket"])[:19], row["expected_count"]) for row in made]
    assert shown == [(str(row["bucket"])[:19], row["expected_count"]) for row in expected]
    assert len(expected) == 3


PLACES = """
[[events]]
type = "A"
id = "place"
time = "at"
unit = "s"
where = "k = 1"
missing = "drop"
uncertainty = { kind = "exact" }
"""


def test_ids_of_places_are_those_of_a_run_in_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long files are read in spans, and Parquet in row groups; paths are as the caller wrote them."""
    monkeypatch.setattr(text_spans, "BYTES_PER_SPAN", 60)
    monkeypatch.setattr(file_reading, "ROWS_PER_PART", 5)
    monkeypatch.chdir(tmp_path)
    rows = pa.table(
        {"at": [None if n % 7 == 6 else n for n in range(40)], "k": [n % 3 % 2 for n in range(40)]}
    )
    Path("logs").mkdir()
    pacsv.write_csv(rows, "logs/a.csv")
    Path("b.jsonl").write_text("".join(f"{json.dumps(row)}\n\n" for row in rows.to_pylist()))
    pq.write_table(rows, "c.parquet", row_group_size=5)
    schema = tmp_path / "schema.toml"
    schema.write_text(PLACES)
    paths = ["logs", "b.jsonl", str(tmp_path / "c.parquet")]
    expected = uc.read_traces(paths, schema)
    frame = read_traces(spark, paths, schema)
    assert sorted(row.id for row in frame.select("id").collect()) == sorted(expected["id"].to_pylist())
    assert {"logs/a.csv:2", f"{tmp_path}/c.parquet:38"} <= set(expected["id"].to_pylist())
    query = "PATTERN SEQ(A a, A b) WITHIN 2 s"
    pairs = [(row.a, row.b) for row in uc.match(frame, query).select("a", "b").collect()]
    assert sorted(pairs) == sorted(
        (row["a"], row["b"]) for row in uc.match(expected, query).select(["a", "b"]).to_pylist()
    )


def test_ids_of_places_of_several_tables(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at\n100\n160\n")
    schema = tmp_path / "schema.toml"
    table = PLACES.replace('where = "k = 1"\n', "")
    schema.write_text(table + table.replace('"A"', '"B"'))
    expected = uc.read_traces(tmp_path / "a.csv", schema)["id"].to_pylist()
    frame = read_traces(spark, tmp_path / "a.csv", schema)
    assert sorted(row.id for row in frame.select("id").collect()) == sorted(expected)
    assert f"{tmp_path}/a.csv:2:B" in expected
