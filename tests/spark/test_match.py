"""Spark finds what the in-process engine finds, however the events are spread."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import uncertain_cep as uc
from tests.spark.traces import KEYED, UNKEYED, as_rows, assert_same, random_trace, to_spark
from uncertain_cep.errors import OptionError, QueryError
from uncertain_cep.spark import match
from uncertain_cep.spark.dataframes import from_arrow_schema

NEXT = "PATTERN SEQ(A a, B b, (A|C) c) WHERE skip_till_next_match(a, b, c) WITHIN 12"
"""Forbidden events lie wherever a slice may end; an A may be taken by the first and the last component."""


@pytest.mark.parametrize(
    ("partitions", "slice_length"), [(None, None), (1, None), (2, 1), (8, 50), (5, 10**9)]
)
def test_many_random_traces_as_keys(
    spark: SparkSession, partitions: int | None, slice_length: int | None
) -> None:
    table = random_trace(1, 900, keys=12)
    frame = to_spark(spark, table)
    assert_same(frame, table, KEYED, 200, partitions=partitions, slice_length=slice_length)


@pytest.mark.parametrize(("partitions", "slice_length"), [(None, None), (2, 1), (3, 7), (4, None)])
def test_no_equated_attribute(spark: SparkSession, partitions: int | None, slice_length: int | None) -> None:
    table = random_trace(2, 120, span=200)
    frame = to_spark(spark, table)
    assert_same(frame, table, UNKEYED, 50, partitions=partitions, slice_length=slice_length)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    query=st.sampled_from([KEYED, UNKEYED, NEXT, "PATTERN SEQ(A a) WHERE a.value > 3 WITHIN 1"]),
    partitions=st.integers(1, 8),
    slice_length=st.none() | st.integers(1, 200),
)
def test_any_spread(
    spark: SparkSession, seed: int, query: str, partitions: int, slice_length: int | None
) -> None:
    table = random_trace(seed, 150, keys=6)
    frame = spark.createDataFrame(table)
    assert_same(frame, table, query, 0, partitions=partitions, slice_length=slice_length)


def test_order_of_the_input_does_not_matter(spark: SparkSession) -> None:
    table = random_trace(3, 300, keys=5)
    frame = to_spark(spark, table).orderBy(f.rand(1))
    assert_same(frame, table, KEYED, 50, partitions=3, slice_length=20)


def timed(zone: str | None) -> pa.Table:
    """Return a trace over the change to summer time of the session's zone, and some events before 1970."""
    table = random_trace(4, 120, span=100)
    new_york = datetime(2021, 3, 14, 6, 59, 55, tzinfo=UTC)
    before = datetime(1969, 12, 31, 23, 59, 50, tzinfo=UTC)

    def moments(name: str) -> list[datetime]:
        ticks = table.column(name).to_pylist()
        return [
            (before if row % 4 == 0 else new_york) + timedelta(milliseconds=100 * tick)
            for row, tick in enumerate(ticks)
        ]

    for name in ("lower", "upper"):
        place = table.schema.get_field_index(name)
        naive = pa.array([moment.replace(tzinfo=None) for moment in moments(name)], pa.timestamp("us"))
        table = table.set_column(place, name, naive if zone is None else naive.cast(pa.timestamp("us", zone)))
    return table


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("slice_length", [None, 7])
def test_timestamps(spark: SparkSession, zone: str | None, slice_length: int | None) -> None:
    table = timed(zone)
    query = "PATTERN SEQ(A a, ANY b, C c) WHERE b.value > 5 WITHIN 1.2 seconds"
    expected = uc.match(table, query, tick="100ms")
    assert expected.num_rows > 20
    frame = spark.createDataFrame(table, schema=from_arrow_schema(table.schema))
    matches = match(frame, query, tick="100ms", partitions=4, slice_length=slice_length)
    assert [kind for name, kind in matches.dtypes if name.startswith("range")] == (
        ["timestamp_ntz"] * 2 if zone is None else ["timestamp"] * 2
    )
    arrow = matches.toArrow().cast(expected.schema)
    assert as_rows(arrow) == as_rows(expected)


def test_text_ids_and_other_names(spark: SparkSession) -> None:
    table = random_trace(5, 200, keys=4)
    ids = pa.array([f"e{number}" for number in table.column("id").to_pylist()])
    table = table.set_column(1, "id", ids)
    names = {"type": "event type", "id": "a.b", "lower": "from`", "upper": "SELECT"}
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    assert_same(to_spark(spark, table), table, KEYED, 20, names=names, partitions=3, slice_length=15)


def test_probabilities(spark: SparkSession) -> None:
    table = random_trace(6, 200, keys=4)
    lengths = [
        upper - lower + 1
        for lower, upper in zip(table["lower"].to_pylist(), table["upper"].to_pylist(), strict=True)
    ]
    pmfs: list[list[float] | None] = [
        None if row % 3 else [0.0] * (length - 1) + [1.0] for row, length in enumerate(lengths)
    ]
    table = table.append_column("pmf", pa.array(pmfs, pa.list_(pa.float64())))
    assert_same(to_spark(spark, table), table, KEYED, 20, partitions=3, slice_length=15)


@pytest.mark.parametrize("clause", ["HAVING CONFIDENCE >= 0.4", "ORDER BY CONFIDENCE DESC LIMIT 7"])
def test_output_controls(spark: SparkSession, clause: str) -> None:
    table = random_trace(7, 300, keys=4)
    assert_same(to_spark(spark, table), table, f"{KEYED} {clause}", 7, partitions=3, slice_length=15)


def test_order_without_confidence(spark: SparkSession) -> None:
    table = random_trace(7, 300, keys=4)
    query = f"{KEYED} ORDER BY CONFIDENCE DESC LIMIT 7"
    assert_same(to_spark(spark, table), table, query, 7, partitions=3, slice_length=15, confidence=False)


def test_limit_alone_gives_any(spark: SparkSession) -> None:
    table = random_trace(7, 300, keys=4)
    every = set(as_rows(uc.match(table, KEYED)))
    matches = as_rows(match(to_spark(spark, table), f"{KEYED} LIMIT 5", partitions=3).toArrow())
    assert len(matches) == 5
    assert every.issuperset(matches)


def test_returned_expressions_without_confidence(spark: SparkSession) -> None:
    table = random_trace(8, 300, keys=4)
    query = f"{KEYED} RETURN a.name AS first, a.value + c.value, b, b.weight / 0 AS nothing"
    assert_same(to_spark(spark, table), table, query, 20, partitions=2, confidence=False)


@pytest.mark.parametrize("key", [pa.string(), pa.float64(), pa.bool_(), pa.date32()])
def test_kinds_of_keys(spark: SparkSession, key: pa.DataType) -> None:
    table = random_trace(9, 150, keys=2)
    place = table.schema.get_field_index("key")
    keys = table.column("key").cast(pa.int32()).cast(key)
    if key == pa.float64():
        # One key to the engine, although their bits differ.
        keys = pa.array([(-0.0 if row % 2 else 0.0) if value == 0 else value
                         for row, value in enumerate(keys.to_pylist())])  # fmt: skip
    table = table.set_column(place, "key", keys)
    assert_same(to_spark(spark, table), table, KEYED, 20, partitions=8, slice_length=30)


@pytest.mark.parametrize(
    ("query", "where"),
    [
        (KEYED, "false"),
        (KEYED, "key is null"),
        (KEYED, "type = 'B'"),
        (UNKEYED, "type != 'C'"),
        ("PATTERN SEQ(Unknown u, B b) WITHIN 5", "true"),
        ("PATTERN SEQ(A a, B b) WHERE 1 = 2 WITHIN 5", "true"),
    ],
)
def test_no_matches(spark: SparkSession, query: str, where: str) -> None:
    frame = to_spark(spark, random_trace(10, 100, keys=3)).filter(where)
    matches = match(frame, query, partitions=2, slice_length=10)
    assert matches.collect() == []
    assert matches.columns[-3:] == ["range_lower", "range_upper", "confidence"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"partitions": 0}, OptionError),
        ({"slice_length": 0}, OptionError),
        ({"names": {"begin": "lower"}}, OptionError),
        ({"evaluation": "guess"}, OptionError),
        ({"query": "PATTERN SEQ(A a, B b) WHERE a.nothing = 1 WITHIN 5"}, QueryError),
        ({"query": "PATTERN SEQ(A a, B b) WHERE a.list = 1 WITHIN 5"}, QueryError),
    ],
)
def test_bad_options(spark: SparkSession, options: dict[str, Any], error: type[Exception]) -> None:
    frame = to_spark(spark, random_trace(11, 20, keys=2)).withColumnRenamed("not used", "list")
    with pytest.raises(error):
        match(frame, **{"query": KEYED, "partitions": 2, **options})


def test_the_public_function_takes_a_spark_frame(spark: SparkSession) -> None:
    table = random_trace(12, 100, keys=2)
    matches = uc.match(to_spark(spark, table), KEYED)
    assert as_rows(matches.toArrow()) == as_rows(uc.match(table, KEYED))


def test_a_time_limit_is_not_for_what_is_computed_later(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("A", 1, 0, 1)], "type string, id long, lower long, upper long")
    for limits in ({"timeout": 30}, {"memory_limit": "1GB"}):
        with pytest.raises(uc.OptionError, match="timeout= and memory_limit= are for frames in this process"):
            uc.match(frame, "PATTERN SEQ(A a, B b) WITHIN 5", **limits)
