"""Jobs of Spark under a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from uncertain_cep.limits import Limits
from uncertain_cep.spark.jobs import stopped_in_time


def endless(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work for ten minutes."""
    for batch in batches:
        for _ in range(6000):
            time.sleep(0.1)
        yield batch


def test_a_job_is_stopped_when_the_time_is_over(spark: SparkSession) -> None:
    started = time.monotonic()
    with pytest.raises(uc.TimeLimitError, match="stopped after 1 s"), stopped_in_time(spark, Limits(1.0)):
        spark.range(2).mapInArrow(endless, "id long").collect()
    assert time.monotonic() - started < 300


def test_other_errors_are_raised_and_other_jobs_go_on(spark: SparkSession) -> None:
    with stopped_in_time(spark, Limits(600.0)):
        assert spark.range(3).count() == 3
    with pytest.raises(ValueError, match="mine"), stopped_in_time(spark, Limits(600.0)):
        raise ValueError("mine")
    with stopped_in_time(spark, None):
        assert spark.range(3).count() == 3
    assert not spark.sparkContext.getJobTags()


def test_no_job_is_begun_when_the_time_is_over(spark: SparkSession) -> None:
    limit = Limits(1.0, started=time.monotonic() - 2.0)
    with pytest.raises(uc.TimeLimitError), stopped_in_time(spark, limit):
        pytest.fail("it was begun")
