"""RETURN PROBABILITY on Spark is what it is in process, however the events are spread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.test_clocks_on_spark import clocked, timed
from tests.spark.traces import random_trace, to_spark
from uncertain_cep.spark import file_tasks, group_frames, match, match_to_parquet

PAIR = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9"
QUERIES = {
    "all": ("PATTERN SEQ(A a, D b) WITHIN 3", "RETURN PROBABILITY"),
    "key": (PAIR, "RETURN PROBABILITY BY key"),
    "buckets": (PAIR, "RETURN PROBABILITY EVERY 7"),
    "several": (PAIR, "RETURN PROBABILITY OF AT LEAST 2 MATCHES AS twice BY key, a.name"),
    "first events": (PAIR, "RETURN PROBABILITY BY a"),
    "next": (
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [key] } WITHIN 12",
        "RETURN PROBABILITY BY b",
    ),
    "negation": (
        "PATTERN SEQ(!D n, A a, B b) WHERE [key] WITHIN 6",
        "RETURN PROBABILITY BY a.value EVERY 30",
    ),
    "contiguity": ("PATTERN SEQ(A a, C c) WHERE strict_contiguity(a, c) WITHIN 5", "RETURN PROBABILITY BY c"),
    "sets": (
        "PATTERN OR(AND(A a, B b), SEQ(C c, D+ d[])) WHERE [key] WITHIN 4",
        "RETURN PROBABILITY BY key, c",
    ),
    "counted": (
        "PATTERN SEQ(AND(A{2,} a[]), B b) WHERE [key] WITHIN 12",
        "RETURN PROBABILITY BY b",
    ),
    "some": (f"{PAIR} HAVING PROBABILITY >= 0.3 AND key >= 1", "RETURN PROBABILITY BY key, b.weight"),
}
SPREADS: list[dict[str, Any]] = [
    {},
    {"partitions": 3, "slice_length": 13},
    {"partitions": 2, "slice_length": 40},
]


def rows_of(table: pa.Table, *, ordered: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a result, sorted by all but numbers that are rounded."""
    rows: list[dict[str, Any]] = table.to_pylist()
    sums = {"probability", "twice", "std_error", "probability_lower", "probability_upper"}
    if not ordered:
        rows.sort(key=lambda row: repr([value for name, value in row.items() if name not in sums]))
    return rows


def assert_same(table: pa.Table, expected: pa.Table, *, ordered: bool = False) -> None:
    """Assert that two results are the same but for rounding."""
    assert table.column_names == expected.column_names
    assert table.num_rows == expected.num_rows
    for one, other in zip(rows_of(table, ordered=ordered), rows_of(expected, ordered=ordered), strict=True):
        for name, value in other.items():
            expected_value = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            assert one[name] == expected_value, (one, other)


@pytest.mark.parametrize("name", QUERIES)
def test_groups_cross_slices(spark: SparkSession, name: str) -> None:
    table = random_trace(12, 120, keys=4)
    pattern, clause = QUERIES[name]
    text = f"{pattern} {clause}"
    expected = uc.match(table, text)
    assert expected.num_rows >= (1 if name == "all" else 2)
    frame = to_spark(spark, table)
    for spread in SPREADS if name in ("key", "negation") else SPREADS[1:2]:
        assert_same(match(frame, text, **spread).toArrow(), expected)


def test_clocks_are_shared_across_slices(spark: SparkSession) -> None:
    """A clock that one event of a slice names ties events of others."""
    table = timed(clocked(5, 60))
    text = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 6 ms RETURN PROBABILITY BY key EVERY 20 ms"
    expected = uc.match(table, text)
    assert expected.num_rows > 5
    # A tick is a microsecond.
    assert_same(match(to_spark(spark, table), text, partitions=2, slice_length=3000).toArrow(), expected)


def test_order_and_limit(spark: SparkSession) -> None:
    table = random_trace(13, 120, keys=4)
    for clause in (
        "RETURN PROBABILITY BY b ORDER BY PROBABILITY DESC LIMIT 7",
        "RETURN PROBABILITY BY key, a.name ORDER BY a.name DESC",
    ):
        text = f"{PAIR} {clause}"
        groups = match(to_spark(spark, table), text, partitions=3, slice_length=11).toArrow()
        assert_same(groups, uc.match(table, text), ordered=True)
    text = f"{PAIR} RETURN PROBABILITY BY b"
    probability_of = {row["b"]: row["probability"] for row in uc.match(table, text).to_pylist()}
    any_rows = match(to_spark(spark, table), f"{text} LIMIT 3", partitions=2, slice_length=9).toArrow()
    assert any_rows.num_rows == 3
    for row in any_rows.to_pylist():
        assert row["probability"] == pytest.approx(probability_of[row["b"]])


def test_files_that_workers_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tasks, "ROWS_WORTH_A_TASK", 10)
    table = random_trace(14, 200, keys=4, span=200).drop_columns("not used").sort_by("lower")
    pq.write_table(table, tmp_path / "events.parquet", row_group_size=25)
    frame = spark.read.parquet(str(tmp_path / "events.parquet"))
    text = f"{PAIR} RETURN PROBABILITY BY key EVERY 50"
    expected = uc.match(table, text)
    assert_same(match(frame, text).toArrow(), expected)
    assert match_to_parquet(frame, text, tmp_path / "out") == expected.num_rows
    assert_same(pq.read_table(tmp_path / "out"), expected)


def test_options_for_groups_that_are_too_dear(spark: SparkSession) -> None:
    table = random_trace(16, 60, keys=3)
    text = f"{PAIR} RETURN PROBABILITY BY key"
    for options in ({"undecided": "bounds"}, {"approximate": 0.05}):
        groups = match(to_spark(spark, table), text, **options, **SPREADS[1])
        assert_same(groups.toArrow(), uc.match(table, text, **options))


def test_a_group_in_one_place_is_not_shuffled(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(group_frames, "weigh_groups_of_parts", refused)
    table = random_trace(15, 100, keys=4)
    for clause, spread in (("BY a", SPREADS[1]), ("", {"partitions": 1})):
        text = f"{PAIR} RETURN PROBABILITY {clause}"
        assert_same(match(to_spark(spark, table), text, **spread).toArrow(), uc.match(table, text))


def test_nothing_begins(spark: SparkSession) -> None:
    table = random_trace(12, 20, keys=2)
    text = "PATTERN SEQ(Nothing a, B b) WITHIN 5 RETURN PROBABILITY BY a"
    assert match(to_spark(spark, table), text).toArrow().num_rows == 0
