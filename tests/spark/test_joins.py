"""Joins of frames of Spark: the rows of this process, wherever keys and slices of time bring both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.cases.lasting_trace import trace
from tests.spark.traces import to_spark
from uncertain_cep.errors import OptionError


def moments(count: int, seed: int, *, clocks: bool = False) -> pa.Table:
    """Return moments in the order of their ids; some are at certain ticks, so that there are ties."""
    draw = np.random.default_rng(seed)
    events = trace(count, seed=seed, clocks=clocks)
    names = ["type", "id", "key", *(["source", "offset_lower", "offset_upper"] if clocks else [])]
    lower = draw.integers(-10, 60, count)
    width = draw.integers(2, 5, count) if clocks else draw.integers(0, 4, count)
    events = events.select(names).append_column("lower", pa.array(lower))
    return events.append_column("upper", pa.array(lower + width)).sort_by("id")


def rounded(table: pa.Table) -> list[str]:
    """Return the rows of a join, in one order."""
    rows = [{**row, "probability": f"{row['probability']:.9g}"} for row in table.to_pylist()]
    return sorted(map(repr, rows))


@pytest.mark.parametrize("clocks", [False, True])
def test_pairs(spark: SparkSession, clocks: bool) -> None:
    left, right = (trace(30, seed=seed, clocks=clocks) for seed in (1, 2))
    frames = to_spark(spark, left), to_spark(spark, right)
    joins: tuple[dict[str, Any], ...] = (
        {"on": "key", "how": "left"}, {"when": "within 5"}, {"on": "key", "when": "before"},
    )  # fmt: skip
    for options in joins:
        expected = uc.join(left, right, **options)
        answer = uc.join(*frames, **options)
        assert answer.columns == expected.column_names
        assert rounded(answer.toArrow()) == rounded(expected)
        assert expected.num_rows > 20


@pytest.mark.parametrize("clocks", [False, True])
def test_partners(spark: SparkSession, clocks: bool) -> None:
    left, right = (moments(30, seed, clocks=clocks) for seed in (1, 2))
    frames = to_spark(spark, left), to_spark(spark, right)
    for direction in ("backward", "forward") if clocks else ("backward", "forward", "nearest"):
        options: dict[str, Any] = {"by": "key", "direction": direction, "tolerance": 9}
        expected = uc.join_asof(left, right, **options)
        assert rounded(uc.join_asof(*frames, **options).toArrow()) == rounded(expected)
        # The rows of a left event sum to 1: each has all of its candidates in one place.
        assert sum(expected["probability"].to_pylist()) == pytest.approx(30)


def test_partners_that_last(spark: SparkSession) -> None:
    """Each is taken at one of its ends, wherever the other one is."""
    left, right = (trace(30, seed=seed).sort_by("id") for seed in (1, 2))
    frames = to_spark(spark, left), to_spark(spark, right)
    for direction, ends in (("backward", {}), ("forward", {"left_at": "end", "right_at": "begin"})):
        options: dict[str, Any] = {"by": "key", "direction": direction, "tolerance": 20, **ends}
        expected = uc.join_asof(left, right, **options)
        assert rounded(uc.join_asof(*frames, **options).toArrow()) == rounded(expected)
        assert expected.num_rows > 40


def test_what_is_refused(spark: SparkSession) -> None:
    table = moments(4, 1)
    frame = to_spark(spark, table)
    numbered = table.append_column("source", pa.array(["a"] * 4)).append_column(
        "sequence", pa.array(range(4))
    )
    with pytest.raises(OptionError, match="needs a tolerance"):
        uc.join_asof(frame, frame)
    with pytest.raises(OptionError, match="one side is a frame of Spark"):
        uc.join(frame, table)
    with pytest.raises(OptionError, match="have no order beside a column 'sequence'"):
        uc.join_asof(frame, to_spark(spark, numbered), tolerance=3)
    with pytest.raises(OptionError, match="in this process"):
        uc.join(frame, frame, threads=2)
