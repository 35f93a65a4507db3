"""Sums of times and of rules, and days of a zone, on Spark, against one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from uncertain_cep.spark import read_traces

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


def test_ids_of_places_are_for_one_process(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at\n2024-05-31 10:00:00\n")
    schema = tmp_path / "schema.toml"
    schema.write_text('[[events]]\ntype = "A"\nid = "place"\ntime = "at"\nuncertainty = { kind = "exact" }\n')
    with pytest.raises(uc.OptionError, match="Spark reads files in parts that do not know their place"):
        read_traces(spark, tmp_path / "a.csv", schema)
