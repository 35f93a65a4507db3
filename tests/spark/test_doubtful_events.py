"""Events that may not have happened, on Spark: what the in-process engine finds, and the same faults."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.traces import as_rows, assert_same, random_trace, to_spark
from uncertain_cep.errors import TraceError
from uncertain_cep.spark import match

QUERY: Final = """
    PATTERN SEQ(A a, !D n, B b) WHERE skip_till_next_match(a, b) { [key] } WITHIN 40 HAVING CONFIDENCE >= 0.02
"""


def _trace() -> pa.Table:
    table = random_trace(11, 70, keys=3, span=150)
    draw = np.random.default_rng(4)
    chances = draw.choice([0.0, 0.25, 0.9, 1.0], table.num_rows)
    return table.append_column("probability", pa.array(chances, mask=draw.random(table.num_rows) < 0.3))


def test_any_spread(spark: SparkSession) -> None:
    assert_same(to_spark(spark, _trace()), _trace(), QUERY, 5, partitions=3, slice_length=11)


def test_files_that_workers_read(spark: SparkSession, tmp_path: Path) -> None:
    table = _trace().drop(["not used"]).sort_by("lower")
    pq.write_table(table, tmp_path / "events.parquet", row_group_size=20)
    matches = match(spark.read.parquet(str(tmp_path / "events.parquet")), QUERY).toArrow()
    assert as_rows(matches) == as_rows(uc.match(table, QUERY))


def test_what_is_no_probability(spark: SparkSession) -> None:
    table = _trace()
    place = table.schema.get_field_index("probability")
    for wrong in (1.5, -0.25, float("nan")):
        probabilities = table["probability"].to_pylist()
        probabilities[3] = wrong
        changed = table.set_column(place, "probability", pa.array(probabilities, pa.float64()))
        with pytest.raises(TraceError, match="a number from 0 to 1"):
            uc.match(changed, QUERY)
        with pytest.raises(TraceError, match="a number from 0 to 1"):
            match(spark.createDataFrame(changed), QUERY)
