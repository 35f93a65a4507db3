"""Events that last on Spark: the answer of this process, however they are spread over keys and time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.cases.lasting_trace import trace
from tests.spark.streams import pieces_of, put, reading, run
from tests.spark.traces import as_rows, assert_same, to_spark
from uncertain_cep.spark import match

OVERLAPS = "PATTERN AND(A a, B b) WHERE a OVERLAPS b AND TIME(b.end) >= 10 WITHIN 30"
NEGATED = "PATTERN SEQ(A a, !N n, B b) WHERE DURATION(a) <= 5 WITHIN 30"
TOOK = f"{OVERLAPS} RETURN DURATION(a.begin, b.end) AS took"
BY_KEY = "PATTERN AND(A a, B b) WHERE [key] AND a OVERLAPS b WITHIN 40 RETURN PROBABILITY BY key"


@pytest.mark.parametrize("query", [TOOK, NEGATED])
def test_any_spread(spark: SparkSession, query: str) -> None:
    """Slices go by the bounds of the whole, not by the least begin."""
    table = trace(60)
    frame = to_spark(spark, table)
    for partitions, slice_length in ((2, 1), (3, 7)):
        assert_same(frame, table, query, 5, partitions=partitions, slice_length=slice_length)


def test_clocks_and_groups(spark: SparkSession) -> None:
    table = trace(60, clocks=True)
    frame = to_spark(spark, table)
    assert_same(frame, table, TOOK, 5, partitions=2, slice_length=9)
    groups, expected = (
        {row["key"]: row["probability"] for row in answer.to_pylist()}
        for answer in (
            match(frame, BY_KEY, partitions=2, slice_length=9).toArrow(),
            uc.match(table, BY_KEY),
        )
    )
    assert len(expected) == 3
    assert groups == pytest.approx(expected)


def test_files_that_workers_read(spark: SparkSession, tmp_path: Path) -> None:
    """Some columns of spans may be missing: Spark shuffles then."""
    table = trace(60).sort_by("lower")
    whole = table.append_column("end_lower", pa.nulls(60, pa.int64()))
    whole = whole.append_column("end_upper", pa.nulls(60, pa.int64()))
    for name, events in (("whole", whole), ("less", table)):
        pq.write_table(events, tmp_path / f"{name}.parquet", row_group_size=20)
        frame = spark.read.parquet(str(tmp_path / f"{name}.parquet"))
        said = uc.explain(OVERLAPS, frame)
        assert ("Spark reads and shuffles" in said) == (name == "less")
        assert_same(frame, table, OVERLAPS, 5)


def test_streams(spark: SparkSession, tmp_path: Path) -> None:
    table = trace(60).sort_by("lower")
    put(tmp_path / "in", *pieces_of(table, [20, 45]))
    frame = reading(spark, tmp_path / "in", table.schema)
    longest = int(np.max(np.subtract(table["upper"], table["lower"])))
    answer, _ = run(match(frame, TOOK, largest_interval=longest), tmp_path)
    expected = uc.match(table, TOOK)
    assert answer["kind"].unique().to_pylist() == ["match"]
    assert as_rows(answer.select(expected.column_names)) == as_rows(expected)


def test_faults_are_found_first(spark: SparkSession) -> None:
    table = trace(20)
    wrong = pa.array([0] * 20, pa.int64())
    table = table.set_column(table.schema.get_field_index("begin_upper"), "begin_upper", wrong)
    with pytest.raises(uc.TraceError, match="begin_upper"):
        match(to_spark(spark, table), OVERLAPS)


def test_posteriors_are_those_of_this_process(spark: SparkSession) -> None:
    table = trace(24, seed=3)
    matches = uc.match(table, OVERLAPS)
    assert matches.num_rows
    here = uc.posteriors(matches, table, OVERLAPS)
    there = uc.posteriors(to_spark(spark, matches), to_spark(spark, table), OVERLAPS).toArrow()
    assert there.column_names == here.column_names
    names = [name for name in here.column_names if name not in ("match", "mean", "pmf")]
    one, other = (sorted(map(repr, part.select(names).to_pylist())) for part in (there, here))
    assert one == other
    assert sorted(there["mean"].to_pylist()) == pytest.approx(sorted(here["mean"].to_pylist()))
