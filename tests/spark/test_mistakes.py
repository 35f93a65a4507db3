"""Spark refuses bad input in the words of this process, but for numbers of rows, which it does not know."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import uncertain_cep as uc
from tests.cases.mistakes import COLUMNS, EVENTS, FAULTS, PLAIN, QUERIES, events_of, lines_of, without_rows
from uncertain_cep.spark import worker_errors


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(EVENTS)


@pytest.mark.parametrize(("query", "options", "lines"), QUERIES)
def test_bad_queries_and_options(
    events: DataFrame, query: str, options: dict[str, Any], lines: list[str]
) -> None:
    with pytest.raises(uc.UncertainCepError) as raised:
        uc.match(events, query, **options)
    assert [line.replace("(such as ", "(") for line in lines_of(raised.value)] == without_rows(lines)


@pytest.mark.parametrize(("columns", "lines"), [*COLUMNS, *FAULTS])
def test_bad_columns_and_events(spark: SparkSession, columns: dict[str, Any], lines: list[str]) -> None:
    frame = spark.createDataFrame(events_of(**columns))
    with pytest.raises(uc.TraceError) as raised, worker_errors():
        # Most are found before the frame is used.
        uc.match(frame, PLAIN).collect()
    assert lines_of(raised.value) == without_rows(lines)
