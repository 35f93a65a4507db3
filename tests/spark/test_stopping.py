"""Jobs of Spark under a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

import uncertain_cep as uc
from uncertain_cep.running.resource_limits import Limits
from uncertain_cep.spark.jobs import stopped_in_time, tasks_told


def endless(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work for ten hours."""
    for batch in batches:
        for _ in range(360_000):
            time.sleep(0.1)
        yield batch


def test_a_job_is_stopped_when_the_time_is_over(spark: SparkSession) -> None:
    started = time.monotonic()
    with pytest.raises(uc.TimeLimitError, match="stopped after 1 s"), stopped_in_time(spark, Limits(1.0)):
        spark.range(2).mapInArrow(endless, "id long").collect()
    assert time.monotonic() - started < 3600


def test_other_errors_are_raised_and_other_jobs_go_on(spark: SparkSession) -> None:
    with stopped_in_time(spark, Limits(600.0)):
        assert spark.range(3).count() == 3
    with pytest.raises(ValueError, match="mine"), stopped_in_time(spark, Limits(600.0)):
        raise ValueError("mine")
    with stopped_in_time(spark, None):
        assert spark.range(3).count() == 3
    assert not spark.sparkContext.getJobTags()


def test_who_watches_a_job_ends_in_silence_when_spark_is_gone() -> None:
    """As when a terminal is closed: Java ends at the same moment."""
    is_asked = Event()

    class Gone:
        def __getattr__(self, name: str) -> Gone:
            return self

        def __call__(self, *_: object) -> Gone:
            return self

        def getActiveStageIds(self) -> None:  # noqa: N802
            is_asked.set()
            raise Py4JNetworkError("Answer from Java side is empty")

    gone: Any = Gone()
    with tasks_told(gone, print):
        assert is_asked.wait(3600)


def test_no_job_is_begun_when_the_time_is_over(spark: SparkSession) -> None:
    limit = Limits(1.0, started=time.monotonic() - 2.0)
    with pytest.raises(uc.TimeLimitError), stopped_in_time(spark, limit):
        pytest.fail("it was begun")
