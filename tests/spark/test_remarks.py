"""Spark says of a sound query that may not be meant so what this process says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import uncertain_cep as uc
from tests.cases.remarks import REMARKS, STAMPS, TRACE, stamped
from uncertain_cep.candidates.diagnostics import EMPTY_TRACE
from uncertain_cep.spark import task_remarks, worker_errors
from uncertain_cep.spark.task_remarks import TaskRemarks
from uncertain_cep.traces.intervals import Rounding, merged_message, merged_times
from uncertain_cep.traces.stamp_remarks import SharedTicks


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


def made_of(spark: SparkSession, stamps: Sequence[Any], partitions: int = 3, **options: Any) -> DataFrame:
    """Return a frame of interval events, whose rows are dealt out."""
    raw = stamped(list(stamps))
    dealt = spark.createDataFrame(raw).repartition(partitions, "id")
    return uc.to_intervals(dealt, time="at", **{"uncertainty": uc.exact(), **options})


def warned(call: Callable[[], object]) -> list[str]:
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught]


def test_remarks_about_the_stamps_of_frames(spark: SparkSession) -> None:
    frames = [made_of(spark, stamps, **options) for stamps, options, _ in STAMPS]

    def use() -> None:
        with worker_errors():
            # One job for all of them.
            reduce(DataFrame.union, [frame.select("id") for frame in frames]).collect()

    assert warned(use) == [message for _, _, messages in STAMPS for message in messages]
    assert not warned(use)


MERGED: Final = ["2026-01-05 08:00:00.1", "2026-01-05 08:00:00.2", "2026-01-05 08:00:09"]


def test_a_match_says_it_once(spark: SparkSession) -> None:
    frame = made_of(spark, MERGED, tick="1s")
    query = "PATTERN SEQ(A a, A b) WITHIN 20 s"
    first = warned(lambda: uc.match(frame, query))
    assert [message.split(":")[0] for message in first] == [
        "2 certain times share a tick of 1s with different ones"
    ]
    with worker_errors():
        assert not warned(lambda: uc.match(frame, query).collect())


def test_an_action_of_spark_alone_is_made_up_for(spark: SparkSession) -> None:
    frame = made_of(spark, MERGED, tick="1s")
    assert not warned(frame.collect)

    def use() -> None:
        with worker_errors():
            pass

    assert len(warned(use)) == 1


def test_more_of_a_frame_is_said_again(spark: SparkSession) -> None:
    stamps = [f"2026-01-05 08:00:0{second}" for second in ("0.1", "0.2", "5.1", "5.2", "7")]
    frame = made_of(spark, stamps, partitions=1, tick="1s")

    def use(rows: DataFrame) -> Callable[[], None]:
        def call() -> None:
            with worker_errors():
                rows.collect()

        return call

    assert not warned(use(frame.limit(0)))
    assert warned(use(frame))[0].startswith("4 certain times")
    assert not warned(use(frame.limit(2)))


def test_many_ticks_are_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_remarks, "_MOST_TICKS", 3)
    parts = [TaskRemarks(), TaskRemarks()]
    ticks = np.array([1, 2, 3, 9, 9])
    for part, rounded_off in zip(parts, ([5, 0, 0, 1, 2], [5, 1, 0, 1, 1]), strict=True):
        part.note([], Rounding(ticks, np.array(rounded_off), 0))
    parts[0].add(parts[1])
    # Of tick 2 one in each part; of tick 9 two in the first part, which its own batch knows.
    assert parts[0].messages("1s") == [merged_message(2, "1s", at_least=True)]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), max_size=8), min_size=1, max_size=4),
    st.integers(1, 14),
)
def test_shared_ticks_of_parts(parts: list[list[tuple[int, int]]], limit: int) -> None:
    """The sum over parts is exact where no tick is cut, and never too large."""
    roundings = [
        Rounding(
            np.array([tick for tick, _ in part], np.int64),
            np.array([nanoseconds for _, nanoseconds in part]),
            0,
        )
        for part in parts
    ]
    together = merged_times(roundings)
    ticks = SharedTicks()
    for rounding in roundings:
        ticks = (ticks + SharedTicks.of(rounding.ticks, rounding.rests).cut(limit)).cut(limit)
    assert ticks.is_cut == (len({tick for part in parts for tick, _ in part}) > limit)
    assert ticks.merged <= together if ticks.is_cut else ticks.merged == together
