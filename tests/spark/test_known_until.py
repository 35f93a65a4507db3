"""Undecided matches: Spark leaves out and counts those that a run in process does, and says the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.traces import as_rows, random_trace, to_spark
from uncertain_cep.spark import match_to_parquet, read_traces, worker_errors, write_matches
from uncertain_cep.spark.undecided_counts import _all_frames

QUERIES = {
    "negation at the end": "PATTERN SEQ(A a, B b, !D n) WHERE [key] WITHIN 9",
    "cut by a time": "PATTERN SEQ(A a, !D n) WHERE [key] AND TIME(n) - TIME(a) <= 4 WITHIN 30",
    "negation between": "PATTERN SEQ(A a, !D n, B+ b[]) WHERE [key] AND count(b[]) <= 2 WITHIN 5",
    "skip till next": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [key] } WITHIN 12",
    "set": "PATTERN SEQ(AND(A a, B b), !C n) WHERE [key] WITHIN 5",
    "branches": "PATTERN OR(SEQ(A a, B b, !D n), SEQ(C c, !D m)) WHERE [key] WITHIN 5",
    "negated group": "PATTERN SEQ(A a, !SEQ(B m, D n)) WHERE [key] WITHIN 9",
    "best": "PATTERN SEQ(A a, !D n) WHERE [key] WITHIN 9 HAVING CONFIDENCE >= 0.2 ORDER BY CONFIDENCE DESC",
    "apart": "PATTERN SEQ(A a, B b, !D n) WHERE [key] WITHIN 9 OUTPUT NON OVERLAPPING",
    "not keyed": "PATTERN SEQ(A a, B b, !D n) WITHIN 4",
}
PARTS = ("negation at the end", "cut by a time", "set")
"""Their constructs are in others as well: they run with ``--thorough``."""


def said(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return the result of a call, and its warnings of undecided matches."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    texts = [str(one.message) for one in caught]
    return result, [text for text in texts if "undecided" in text or "behind the last" in text]


def used(frame: Any, query: str, **options: Any) -> tuple[pa.Table, list[str]]:
    """Return the matches of Spark, and its warnings, of a frame made and used within `worker_errors`."""

    def call() -> pa.Table:
        with worker_errors():
            matches: pa.Table = uc.spark.match(frame, query, **options).toArrow()
        return matches

    return said(call)


@pytest.fixture(scope="module")
def trace() -> pa.Table:
    table = random_trace(12, 160, keys=2, span=60).drop_columns("not used")
    # An event that may be late is behind all matches.
    return table.filter(pc.less(pc.subtract(table["upper"], table["lower"]), 20))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.thorough if name in PARTS else ()) for name in QUERIES],
)
def test_the_same_sentence_as_in_process(
    spark: SparkSession, tmp_path: Path, trace: pa.Table, name: str
) -> None:
    query, frame = QUERIES[name], to_spark(spark, trace)
    for end in (None, 50):
        expected, sentence = said(partial(uc.match, trace, query, known_until=end))
        is_told = end is not None or ("!" in query and name != "negation between")
        assert len(sentence) == is_told
        matches, on_spark = used(frame, query, known_until=end, partitions=3, slice_length=7)
        assert as_rows(matches) == as_rows(expected)
        assert on_spark == sentence
    by_workers = tmp_path / "workers"
    count, on_spark = said(partial(match_to_parquet, frame, query, by_workers, known_until=50))
    assert on_spark == sentence
    assert count == pq.read_table(by_workers).num_rows == expected.num_rows


def test_workers_that_read_files_count_too(
    spark: SparkSession, tmp_path: Path, trace: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncertain_cep.spark.file_reading.ROWS_PER_PART", 40)
    monkeypatch.setattr("uncertain_cep.spark.file_tasks.ROWS_WORTH_A_TASK", 50)
    file = tmp_path / "trace.parquet"
    pq.write_table(trace.sort_by("lower"), file, row_group_size=20)
    frame, query = read_traces(spark, file), QUERIES["negation at the end"]
    assert "workers read the files: 4 parts in 2 tasks" in uc.explain(query, frame)
    for number, end in enumerate((None, 50)):
        _, sentence = said(partial(uc.match, trace, query, known_until=end))
        assert sentence
        assert used(frame, query, known_until=end)[1] == sentence
        out = tmp_path / str(number)
        assert said(partial(match_to_parquet, frame, query, out, known_until=end))[1] == sentence
    counts = f"{query} RETURN EXPECTED COUNT BY key"
    _, sentence = said(partial(uc.match, trace, counts, known_until=50))
    assert used(frame, counts, known_until=50)[1] == sentence


@pytest.mark.parametrize("by_files", [True, False])
def test_the_last_tick_is_one_with_a_probability(spark: SparkSession, tmp_path: Path, by_files: bool) -> None:
    pmfs = [None, [0.5, 0.5, 0.0, 0.0]]
    table = pa.table(
        {
            "type": ["A", "D"], "id": [1, 2], "lower": [3, 9], "upper": [3, 12],
            "pmf": pa.array(pmfs, pa.list_(pa.float64())),
        }
    )  # fmt: skip
    file = tmp_path / "trace.parquet"
    pq.write_table(table, file)
    frame = read_traces(spark, file) if by_files else spark.createDataFrame(table)
    for window, is_told in ((8, False), (9, True), (20, True)):
        query = f"PATTERN SEQ(A a, !B n) WITHIN {window}"
        _, sentence = said(partial(uc.match, table, query))
        assert [text.startswith("1 match with a negation") for text in sentence] == [True] * is_told
        assert used(frame, query)[1] == sentence


def test_times_are_told_as_times(spark: SparkSession) -> None:
    start = np.datetime64("2026-01-05T08:00:00", "us")
    times = pa.array(start + np.arange(0, 900, 300).astype("timedelta64[s]"), pa.timestamp("us", "UTC"))
    table = pa.table({"type": ["Up", "Down", "Down"], "id": [1, 2, 3], "lower": times, "upper": times})
    query = "PATTERN SEQ(Down d, !Up u) WITHIN 10 minutes"
    for end in (None, "2026-01-05T08:11:00"):
        _, sentence = said(partial(uc.match, table, query, known_until=end, tick="1s"))
        assert len(sentence) == 1
        matches = used(spark.createDataFrame(table), query, known_until=end, tick="1s")
        assert matches[1] == sentence


def test_who_counts_later_is_told_at_once(spark: SparkSession, trace: pa.Table) -> None:
    frame, query = to_spark(spark, trace), QUERIES["negation at the end"]
    matches, sentence = said(partial(uc.match, frame, query, known_until=50))
    assert sentence == [
        "matches that are undecided at known_until are left out; use the frame within worker_errors(), which "
        "counts such matches"
    ]
    (expected,) = said(partial(uc.match, trace, query, known_until=50))[1]

    def use() -> None:
        with worker_errors():
            matches.collect()

    assert said(matches.count)[1] == []
    assert said(use)[1] == [expected]
    # Once for a frame.
    assert said(use)[1] == []
    _, sentence = said(partial(uc.match, frame, query))
    assert sentence == [
        "no event is taken to be behind the last one of the trace, where the gap of a negation can end: "
        "known_until= (--known-until) leaves such matches out; use the frame within worker_errors(), which "
        "counts such matches"
    ]


def test_a_match_is_counted_once_however_often_a_frame_is_used(
    spark: SparkSession, tmp_path: Path, trace: pa.Table
) -> None:
    frame, query = to_spark(spark, trace), QUERIES["negation at the end"]
    (expected,) = said(partial(uc.match, trace, query, known_until=50))[1]

    def use() -> None:
        with worker_errors():
            matches = uc.match(frame, query, known_until=50)
            matches.union(matches).count()
            matches.cache().count()
            spark.range(3).select("id").union(matches.select("a")).collect()
            matches.unpersist()
            write_matches(matches, tmp_path / "out")

    assert said(use)[1] == [expected]


def test_part_of_a_frame_has_at_least_so_many(spark: SparkSession, trace: pa.Table) -> None:
    frame, query = to_spark(spark, trace), QUERIES["negation at the end"]

    def use(rows: int) -> list[str]:
        def call() -> None:
            with worker_errors():
                uc.spark.match(frame, query, known_until=50, partitions=3, slice_length=7).limit(
                    rows
                ).collect()

        return said(call)[1]

    (expected,) = said(partial(uc.match, trace, query, known_until=50))[1]
    assert use(1) in ([], [expected]) or use(1)[0].startswith("at least ")
    assert use(10_000) == [expected]
    (sentence,) = used(frame, f"{query} LIMIT 1000", known_until=50, partitions=2)[1]
    assert sentence == f"at least {expected}"


def test_an_error_of_a_worker_says_nothing_of_counts(spark: SparkSession) -> None:
    rows = [("A", 7, 1, 1), ("A", 7, 2, 2)]
    twice = spark.createDataFrame(rows, "type string, id long, lower long, upper long")

    def use() -> None:
        with pytest.raises(uc.TraceError, match="value 7"), worker_errors():
            uc.match(twice, "PATTERN SEQ(A a, !B n) WITHIN 30").collect()

    assert said(use)[1] == []


def test_what_cannot_be_undecided_is_not_counted(spark: SparkSession, trace: pa.Table) -> None:
    before = len(_all_frames())
    for options in ({}, {"known_until": 50}):
        assert used(to_spark(spark, trace), "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9", **options)[1] == []
    assert len(_all_frames()) == before


def test_streams_refuse_a_known_end(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(uc.OptionError, match="known_until= is for tables: a stream returns"):
        uc.match(stream, QUERIES["negation at the end"], known_until=900, largest_interval=0)
