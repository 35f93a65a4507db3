"""Every construct on Spark: slices hold what forbids a match beyond their edges; a match has one owner."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.traces import assert_same, random_trace, to_spark
from uncertain_cep.spark import match, match_to_parquet

QUERIES: Final = {
    "leading negation": "PATTERN SEQ(!D n, A a, B b) WHERE [key] WITHIN 9",
    "trailing negation": "PATTERN SEQ(A a, B b, !C n) WHERE n.value > a.value WITHIN 5",
    "negation between, skip till next": """
        PATTERN SEQ(A a, !D n, B b) WHERE skip_till_next_match(a, b) { n.key = a.key } WITHIN 9
    """,
    "Kleene at the start": "PATTERN SEQ(A+ a[], B b) WHERE [key] AND a[i].value > a[i-1].value WITHIN 9",
    "Kleene, skip till next": """
        PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [key] } WITHIN 12
        RETURN count(b[]) AS many
    """,
    "partition contiguity": "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [key] } WITHIN 9",
    "strict contiguity": "PATTERN SEQ(A a, ANY b) WHERE strict_contiguity(a, b) { a.key = b.key } WITHIN 5",
    "set": "PATTERN AND(A a, B b) WHERE [key] WITHIN 5",
    "sequence of sets": "PATTERN SEQ(AND(A a, B b), C c) WHERE [key] WITHIN 9",
    "Kleene in a set": "PATTERN AND(A+ a[], C c) WHERE [key] AND count(a[]) <= 2 WITHIN 4",
    "branches": "PATTERN OR(SEQ(A a, B b), SEQ(!A n, C c, D d), AND(B e, D f)) WHERE [key] WITHIN 4",
    "readings": "PATTERN SEQ(A a, OR(!D n, SEQ(!C m, !A l)), B b, OR(!A o, !C p)) WHERE [key] WITHIN 9",
    "times": """
        PATTERN SEQ(A a, !D n, B b, C c)
        WHERE skip_till_next_match(a, b, c) {
            [key] AND TIME(b) - TIME(a) BETWEEN 2 AND 9 AND TIME(n) - TIME(a) <= 4 AND TIME(c) <= TIME(b) + 9
        }
        WITHIN 30
    """,
    "least distances": "PATTERN SEQ(A a, B b) WHERE [key] AND TIME(b) - TIME(a) >= 3 WITHIN 9",
    "many options": f"""
        PATTERN SEQ(A a, {", ".join(f"E? e{number}" for number in range(8))}, B? b, C c)
        WHERE [key] AND TIME(b) - TIME(a) <= 2 AND TIME(c) - TIME(b) <= 2 WITHIN 9
    """,
    "repeated group": "PATTERN SEQ(A a, SEQ(B b[], D? d[])+, C c) WHERE [key] WITHIN 9 RETURN count(b[])",
    "negated group": "PATTERN SEQ(B a, !SEQ(C n, D m), A c) WHERE [key] WITHIN 9",
    "negated group at the end": "PATTERN SEQ(A a, !SEQ(B n, (C|D) m)) WHERE m.key = a.key WITHIN 9",
    "negated group, skip till next": """
        PATTERN SEQ(!SEQ(D n, D m), A a, SEQ(B b[], !D o)+)
        WHERE skip_till_next_match(a, b[]) { [key] } WITHIN 9
    """,
    "until": "PATTERN SEQ(SEQ(A a, B b, C c) UNTIL D u) WHERE [key] WITHIN 12",
    "best of the grown": """
        PATTERN SEQ(A a, !D n, B b) WHERE [key] WITHIN 9 ORDER BY CONFIDENCE DESC LIMIT 7
    """,
}


COMPRESSED: Final = {
    "between": "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].value > a.value WITHIN 40",
    "first": "PATTERN SEQ(B+ b[], A a, C c) WHERE b[i].value > a.value WITHIN 30",
    "first of two": "PATTERN SEQ((A|B)+ b[], A a) WHERE [key] WITHIN 9",
    "last": "PATTERN SEQ(C c, A a, B+ b[]) WHERE [key] WITHIN 40",
}


@pytest.mark.parametrize("query", COMPRESSED.values(), ids=COMPRESSED.keys())
def test_compressed(spark: SparkSession, tmp_path: Path, query: str) -> None:
    table = random_trace(11, 70, keys=3, span=150)
    expected = sorted(uc.match(table, query, kleene="compressed").to_pylist(), key=_ids)
    assert len(expected) > 10
    for partitions, slice_length, prune in ((2, 4, None), (3, 37, True)):
        matches = match(
            to_spark(spark, table), query, kleene="compressed", partitions=partitions,
            slice_length=slice_length, prune=prune,
        )  # fmt: skip
        assert _close(sorted(matches.toArrow().to_pylist(), key=_ids), expected)
    match_to_parquet(to_spark(spark, table), query, tmp_path / "out", kleene="compressed")
    assert _close(sorted(pq.read_table(tmp_path / "out").to_pylist(), key=_ids), expected)


def _ids(row: dict[str, Any]) -> tuple[int, int]:
    return row["a"], row.get("c", 0)


def _close(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    """Return whether rows are equal, each value to rounding and lists in any order."""
    assert len(rows) == len(expected)
    for one, other in zip(rows, expected, strict=True):
        for name, value in other.items():
            if isinstance(value, list):
                assert sorted(one[name]) == sorted(value)
            else:
                assert one[name] == pytest.approx(value)
    return True


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_any_spread(spark: SparkSession, query: str) -> None:
    """Slices are short here, and longer in test_semi_join."""
    table = random_trace(11, 70, keys=3, span=150)
    assert_same(to_spark(spark, table), table, query, 1, partitions=2, slice_length=4)


def test_a_column_of_nothing_but_nulls(spark: SparkSession) -> None:
    table = random_trace(11, 70, keys=3, span=150)
    table = table.append_column("z", pa.nulls(table.num_rows))
    frame = to_spark(spark, table)
    for query in (
        "PATTERN SEQ(A a, !D n, B b) WHERE [key] AND n.z = 3 WITHIN 9 RETURN a.z AS z",
        "PATTERN SEQ(A a, B+ b[]) WHERE [key] AND b[i].z >= b[i-1].z WITHIN 9",
    ):
        assert_same(frame, table, query, 1, partitions=2, slice_length=7)


def test_a_planner_and_the_weight_of_latency_change_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    table = random_trace(11, 70, keys=3, span=150)
    frame = to_spark(spark, table)
    for query in (QUERIES["Kleene, skip till next"], QUERIES["partition contiguity"]):
        assert_same(frame, table, query, 1, partitions=2, planner="greedy", latency_weight=2.0)
    query = QUERIES["partition contiguity"]
    written = match_to_parquet(frame, query, tmp_path / "out", planner="zstream", latency_weight=2.0)
    assert written == uc.match(table, query).num_rows
    with pytest.raises(uc.OptionError, match="latency_weight"):
        match(frame, query, latency_weight=-1.0)
