"""Counts of candidates by workers add up to the statistics of the frame, however it is cut into batches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.traces import random_trace
from uncertain_cep.errors import TraceError
from uncertain_cep.spark import match
from uncertain_cep.spark.candidate_counts import COUNTED, GROUPS, counted_candidates

_ROW = st.tuples(
    *[st.booleans()] * 5, st.integers(-9, 9), st.integers(0, 9), st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 60),
)  # fmt: skip


@pytest.mark.parametrize("times", [1, 45])
@given(st.lists(_ROW, max_size=12), st.lists(st.integers(0, 12), max_size=3), st.booleans())
def test_counts_of_batches(times: int, rows: list[tuple[int, ...]], cuts: list[int], whole: bool) -> None:
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    # The components come so many times: there may be more kinds than a number has bits.
    kinds = [[*row[:3], *row[3:5] * times] for row in rows]
    columns = [
        pa.array([sum(held << bit for bit, held in enumerate(row[begin : begin + 62])) for row in kinds])
        for begin in range(0, 3 + 2 * times, 62)
    ]
    numbers = [pa.array(part, pa.int64()) for part in list(zip(*rows, strict=True))[5:]] or [pa.array([])] * 4
    if not whole:
        numbers[-1] = pa.nulls(len(rows), pa.int64())
    columns = [*(column.cast(pa.int64()) for column in columns), *numbers]
    batch = pa.RecordBatch.from_arrays(columns, [str(place) for place in range(len(columns))])
    batches = [batch.slice(begin, end - begin) for begin, end in pairwise(edges)]
    counts = pa.Table.from_batches(counted_candidates(batches, kinds=3 + 2 * times), COUNTED).to_pylist()
    assert len(counts) == len(batches)
    for (begin, end), row_of_counts in zip(pairwise(edges), counts, strict=True):
        rows_of_batch = rows[begin:end]
        first, later = [row for row in rows_of_batch if row[1]], [row for row in rows_of_batch if row[2]]
        assert row_of_counts["faulty"] == sum(row[0] for row in rows_of_batch)
        assert (row_of_counts["first"], row_of_counts["later"]) == (len(first), len(later))
        assert row_of_counts["candidates"] == sum(row[1] or row[2] for row in rows_of_batch)
        assert row_of_counts["earliest"] == min((row[5] for row in first), default=None)
        assert row_of_counts["latest"] == max((row[5] for row in first), default=None)
        assert row_of_counts["longest"] == max((row[6] for row in first), default=None)
        assert row_of_counts["length"] == sum(row[6] for row in later)
        assert (
            row_of_counts["components"]
            == [sum(row[place] for row in rows_of_batch) for place in (3, 4)] * times
        )
        hashes = [row[7] % 2**64 for row in rows_of_batch if row[1] or row[2]]
        for group, least_hash in enumerate(row_of_counts["least"]):
            assert least_hash == min(
                (float(key // GROUPS) for key in hashes if key % GROUPS == group), default=None
            )
        ids = [row[8] for row in rows_of_batch if row[3] or row[4]]
        apart = whole and len(set(ids)) == len(ids)
        assert row_of_counts["ids"] == (([min(ids), max(ids)] if ids else []) if apart else None)


def test_ids_that_rise_are_read_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise TraceError([])

    monkeypatch.setattr("uncertain_cep.spark.preparing.check_unique_ids", refuse)
    table = random_trace(5, 40)
    rising = table.set_column(1, "id", pa.array(np.arange(40)))
    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    matches = match(spark.createDataFrame(rising), query, partitions=2, slice_length=10)
    assert matches.columns[:2] == ["a", "b"]
    for ids in (pa.array(np.arange(40) % 3), pa.array(map(str, range(40)))):
        with pytest.raises(TraceError):
            match(
                spark.createDataFrame(rising.set_column(1, "id", ids)), query, partitions=2, slice_length=10
            )
