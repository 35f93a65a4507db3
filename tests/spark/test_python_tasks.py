"""Savings of Spark's Python workers after their tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from uncertain_cep.spark.dataframes import in_workers
from uncertain_cep.spark.python_tasks import spared


def _left_out(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield of how many objects garbage collection knows that they stay, before the task and of all."""
    for _ in batches:
        yield pa.record_batch({"left_out": [gc.get_freeze_count()], "others": [len(gc.get_objects())]})


def test_a_worker_looks_for_garbage_in_what_is_new(spark: SparkSession) -> None:
    # In a process that looks for garbage among all objects, there are some 200,000.
    for _ in range(3):
        counts = in_workers(spark.range(0, 1, 1, 1), _left_out, "left_out long, others long").collect()
    assert counts[0]["left_out"] > 20_000
    assert counts[0]["others"] < counts[0]["left_out"] / 2


def test_other_processes_are_left_alone() -> None:
    before = gc.get_freeze_count()
    assert [batch.num_rows for batch in spared([pa.record_batch({"x": [1]})], task=_left_out)] == [1]
    assert gc.get_freeze_count() <= before
