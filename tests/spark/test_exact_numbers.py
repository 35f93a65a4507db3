"""Times and ids of any exact type of whole numbers, as Spark holds them."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import uncertain_cep as uc
from uncertain_cep.spark import worker_errors

QUERY = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 100"
WHOLE = ("tinyint", "smallint", "int", "decimal(10,0)", "decimal(38,0)")


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    rows = [("A", 1, 0, 3, 5), ("B", 2, 2, 5, 5)]
    return spark.createDataFrame(rows, "type string, id long, lower long, upper long, k long")


def as_type(frame: DataFrame, dtype: str, *columns: str) -> DataFrame:
    return frame.withColumns({name: f.col(name).cast(dtype) for name in columns})


@pytest.mark.parametrize("dtype", WHOLE)
def test_exact_numbers_are_taken(events: DataFrame, dtype: str) -> None:
    expected = uc.match(events, QUERY).collect()
    assert len(expected) == 1
    ids = ["id"] if dtype.startswith("decimal") else []
    converted = as_type(events, dtype, "lower", "upper", *ids)
    assert uc.match(converted, QUERY).collect() == expected
    assert "component 2   b: B" in uc.explain(QUERY, converted)


def test_of_several_types_at_once_and_as_stamps(events: DataFrame) -> None:
    converted = as_type(as_type(events, "smallint", "lower"), "decimal(12,0)", "upper")
    assert uc.match(converted, QUERY).collect() == uc.match(events, QUERY).collect()
    stamps = as_type(events.drop("upper").withColumnRenamed("lower", "at"), "decimal(10,0)", "at")
    made = uc.to_intervals(stamps, time="at", uncertainty="plus_minus:1s", unit="s", tick="1s")
    assert uc.match(made, QUERY).count() == 1


@pytest.mark.parametrize("value", ["null", "9223372036854775808BD", "-1e30BD"])
def test_what_is_no_time_is_told(events: DataFrame, value: str) -> None:
    converted = events.withColumn("upper", f.expr(f"CAST({value} AS decimal(38,0))"))
    with pytest.raises(uc.TraceError, match=r"column '(lower|upper)'"), worker_errors():
        uc.match(converted, QUERY).collect()


@pytest.mark.parametrize("dtype", ["decimal(10,2)", "float", "string"])
def test_other_types_are_refused(events: DataFrame, dtype: str) -> None:
    with pytest.raises(uc.TraceError, match="column 'lower': its type is"):
        uc.match(as_type(events, dtype, "lower", "upper"), QUERY)
