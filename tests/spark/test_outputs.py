"""Spark chooses and adds up among matches as the in-process engine does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.traces import KEYED, UNKEYED, random_trace, to_spark
from uncertain_cep.spark import match, match_to_parquet

DISJOINT = "PATTERN SEQ(A a, B b, C c) WHERE [key] WITHIN 30"


def _sorted(table: pa.Table) -> list[dict[str, object]]:
    names = [name for name in table.column_names if name not in ("confidence", "expected_count")]
    rows: list[dict[str, object]] = table.to_pylist()
    return sorted(rows, key=lambda row: tuple(str(row[name]) for name in names))


def _assert_same(matches: pa.Table, expected: pa.Table) -> None:
    assert matches.column_names == expected.column_names
    assert matches.num_rows == expected.num_rows
    for one, other in zip(_sorted(matches), _sorted(expected), strict=True):
        assert one == pytest.approx(other)


@pytest.mark.parametrize(("partitions", "slice_length"), [(None, None), (3, 17)])
@pytest.mark.parametrize("query", [KEYED, UNKEYED])
def test_non_overlapping(
    spark: SparkSession, query: str, partitions: int | None, slice_length: int | None
) -> None:
    table = random_trace(11, 200, keys=5)
    text = f"{query} OUTPUT NON OVERLAPPING"
    expected = uc.match(table, text)
    assert 0 < expected.num_rows < uc.match(table, query).num_rows
    matches = match(to_spark(spark, table), text, partitions=partitions, slice_length=slice_length)
    _assert_same(matches.toArrow(), expected)


@pytest.mark.parametrize(("partitions", "slice_length"), [(None, None), (3, 17)])
@pytest.mark.parametrize("query", [DISJOINT, KEYED, UNKEYED])
def test_expected_counts(
    spark: SparkSession, query: str, partitions: int | None, slice_length: int | None
) -> None:
    table = random_trace(12, 200, keys=5)
    frame = to_spark(spark, table)
    clauses = ["", "EVERY 10"] + (["BY key EVERY 10", "BY key"] if "key" in query else [])
    for clause in clauses if slice_length else clauses[-1:]:
        text = f"{query} RETURN EXPECTED COUNT {clause}"
        matches = match(frame, text, partitions=partitions, slice_length=slice_length)
        _assert_same(matches.toArrow(), uc.match(table, text))


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(!D n, A a, B b) WHERE [key] WITHIN 9",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [key] } WITHIN 12",
        "PATTERN OR(AND(A a, B b), SEQ(C c, D+ d[])) WHERE [key] WITHIN 5",
    ],
)
def test_expected_counts_of_grown_matches(spark: SparkSession, query: str) -> None:
    table = random_trace(12, 100, keys=5)
    text = f"{query} RETURN EXPECTED COUNT BY key EVERY 10"
    matches = match(to_spark(spark, table), text, partitions=3, slice_length=17)
    _assert_same(matches.toArrow(), uc.match(table, text))


def test_nothing_to_count(spark: SparkSession) -> None:
    table = random_trace(12, 50, keys=5)
    text = "PATTERN SEQ(Nothing a, B b) WITHIN 5 RETURN EXPECTED COUNT"
    assert match(to_spark(spark, table), text).toArrow().to_pylist() == [{"expected_count": 0.0}]
    assert match(to_spark(spark, table), f"{text} EVERY 5").toArrow().num_rows == 0


def test_counts_and_choices_written_by_the_workers(spark: SparkSession, tmp_path: Path) -> None:
    table = random_trace(13, 200, keys=5)
    for number, clause in enumerate(("OUTPUT NON OVERLAPPING", "RETURN EXPECTED COUNT BY key")):
        folder = tmp_path / str(number)
        text = f"{KEYED} {clause}"
        count = match_to_parquet(to_spark(spark, table), text, folder, partitions=3, slice_length=20)
        written = pq.read_table(folder)
        assert written.num_rows == count
        _assert_same(written, uc.match(table, text))


def test_the_best_of_many_slices(spark: SparkSession) -> None:
    table = random_trace(14, 300, keys=5)
    text = f"{UNKEYED} ORDER BY CONFIDENCE DESC LIMIT 7"
    matches = match(to_spark(spark, table), text, partitions=3, slice_length=20).toArrow().to_pylist()
    expected = uc.match(table, text).to_pylist()
    assert len(matches) == len(expected) == 7
    for one, other in zip(matches, expected, strict=True):
        assert one == pytest.approx(other)


def _tied() -> pa.Table:
    """Return matches of one confidence that float64 tells apart, with ids whose text is in another order."""
    pmfs = [[0.3, 0.0, 0.7, 0.0], [0.1, 0.2, 0.7, 0.0], None, [0.5, 0.5 + 9e-10]]
    return pa.table(
        {
            "type": ["A", "A", "B", "C"],
            "id": [9, 10, 1, 2],
            "lower": [0, 0, 2, 8],
            "upper": [3, 3, 2, 9],
            "pmf": pa.array(pmfs, pa.list_(pa.float64())),
        }
    )


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b) WITHIN 99 ORDER BY CONFIDENCE DESC",
        "SEQ(A a, B b) WITHIN 99 ORDER BY CONFIDENCE DESC LIMIT 1",
        "SEQ(A a, B b) WITHIN 99 OUTPUT NON OVERLAPPING",
        "SEQ(A rank, B b) WITHIN 99 OUTPUT NON OVERLAPPING ORDER BY CONFIDENCE DESC LIMIT 1",
        "SEQ(A a, OR(B b, C+ c[])) WITHIN 99 ORDER BY CONFIDENCE DESC",
        "SEQ(B b, C c) WITHIN 99 HAVING CONFIDENCE >= 1",
        "SEQ(A a, B b) WITHIN 99 HAVING CONFIDENCE >= 0.3 OUTPUT NON OVERLAPPING ORDER BY CONFIDENCE DESC",
    ],
)
@pytest.mark.parametrize("confidence", [True, False])
def test_ties_are_those_of_the_engine(spark: SparkSession, query: str, confidence: bool) -> None:
    table, text = _tied(), f"PATTERN {query}"
    expected = uc.match(table, text, confidence=confidence)
    matches = match(
        to_spark(spark, table), text, partitions=2, slice_length=5, confidence=confidence
    ).toArrow()
    assert matches.column_names == expected.column_names
    assert expected.num_rows
    for one, other in zip(matches.to_pylist(), expected.to_pylist(), strict=True):
        both = one.pop("confidence", 0.0), other.pop("confidence", 0.0)
        assert one == other
        assert both[0] == pytest.approx(both[1], rel=1e-14)
        assert both[0] <= 1.0


def test_variables_without_candidates(spark: SparkSession) -> None:
    frame = to_spark(spark, random_trace(15, 50, keys=5))
    query = "PATTERN SEQ(A a, OR(B b, Bb c)) WHERE a.value > 1000 WITHIN 9"
    with pytest.warns(uc.UncertainCepWarning) as caught:
        uc.match(frame, query)
    assert [str(warning.message) for warning in caught] == [
        "no event of type Bb; did you mean B?",
        "no event can be a: none of type A meets a.value > 1000: check its type and conditions",
    ]
    assert all(warning.filename == __file__ for warning in caught)


def test_parameters(spark: SparkSession) -> None:
    table = random_trace(13, 120, keys=4)
    text = "PATTERN SEQ(A a, B b) WHERE [key] AND a.id > $least WITHIN $window HAVING CONFIDENCE >= $c"
    values = {"least": 20, "window": 30, "c": 0.2}
    expected = uc.match(table, text, parameters=values)
    assert expected.num_rows > 0
    _assert_same(match(to_spark(spark, table), text, parameters=values).toArrow(), expected)
    _assert_same(uc.match(to_spark(spark, table), text, parameters=values).toArrow(), expected)


def test_having_and_order(spark: SparkSession) -> None:
    table = random_trace(14, 120, keys=4)
    text = (
        "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 30 HAVING confidence < 0.9 AND (gap > 2 OR NOT key = 1) "
        "RETURN b.id - a.id AS gap ORDER BY gap DESC, confidence LIMIT 9"
    )
    expected = uc.match(table, text)
    assert expected.num_rows == 9
    matches = match(to_spark(spark, table), text, confidence=False).toArrow()
    assert matches.to_pylist() == expected.select(matches.column_names).to_pylist()
