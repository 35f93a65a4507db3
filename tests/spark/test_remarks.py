"""Spark says of a sound query that may not be meant so what this process says."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import uncertain_cep as uc
from tests.cases.remarks import REMARKS, TRACE
from uncertain_cep.candidates.diagnostics import EMPTY_TRACE


def said(frame: DataFrame | pa.Table, query: str) -> list[str]:
    """Return the warnings of a match, but for what is counted once a frame is used."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        uc.match(frame, query)
    messages = [str(each.message) for each in caught if each.category is uc.UncertainCepWarning]
    return [message for message in messages if not message.endswith("which counts such matches")]


@pytest.fixture(scope="module", params=["frame", "files"])
def frame_of(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[pa.Table], DataFrame]:
    """Makes frames of events whose rows are shuffled, or of files that workers read."""

    def frame(events: pa.Table) -> DataFrame:
        file = tmp_path_factory.mktemp("events") / "events.parquet"
        pq.write_table(events, file)
        read: DataFrame = spark.read.parquet(str(file))
        return read if request.param == "files" else read.repartition(2)

    return frame


@pytest.fixture(scope="module")
def events(frame_of: Callable[[pa.Table], DataFrame]) -> DataFrame:
    return frame_of(TRACE)


@pytest.mark.parametrize(("query", "messages"), REMARKS)
def test_what_is_said(events: DataFrame, query: str, messages: list[str]) -> None:
    assert said(events, f"PATTERN {query} WITHIN 20") == messages


LARGE: Final = (
    "column {} holds decimal numbers beyond 2^53, which comparisons round: make it a column of whole"
)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SEQ(A a, B b) WITHIN 20 RETURN a.d AS x, a.id", []),
        ("SEQ(A a, B b) WITHIN 20 RETURN a.d + 1 AS x", ["d"]),
        ("SEQ(A a, B b) WITHIN 20 HAVING x > 3 RETURN a.d AS x", ["x"]),
        ("SEQ(A a, B b) WITHIN 20 HAVING y > 3 RETURN a.d AS x, a.id AS y", []),
        ("SEQ(A a, B b) WITHIN 20 RETURN a.d AS x ORDER BY x", []),
        ("SEQ(A a, B b) WHERE a.d > b.d WITHIN 20", ["d"]),
        ("SEQ(A a, B b) WHERE a.small > b.small WITHIN 20 HAVING x > 3 RETURN a.small AS x", []),
    ],
)
def test_decimals_that_comparisons_round(
    frame_of: Callable[[pa.Table], DataFrame], query: str, columns: list[str]
) -> None:
    decimals = pa.decimal128(30, 2)
    events = pa.table(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": [0, 5],
            "upper": [0, 5],
            "d": pa.array([Decimal(2**60 + 1), Decimal(3)], decimals),
            "small": pa.array([Decimal(9), Decimal(3)], decimals),
        }
    )
    for trace in (events, frame_of(events)):
        messages = said(trace, f"PATTERN {query}")
        assert len(messages) == len(columns)
        for message, name in zip(messages, columns, strict=True):
            assert message.startswith(LARGE.format(name))


def test_an_empty_frame(spark: SparkSession) -> None:
    frame = spark.createDataFrame(TRACE).limit(0)
    assert said(frame, "PATTERN SEQ(Start a, OR(CPU b, Stpo c)) WITHIN 20") == [EMPTY_TRACE]
