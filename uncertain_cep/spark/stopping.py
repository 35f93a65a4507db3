"""Jobs of Spark that are stopped when a time limit is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from uncertain_cep.config import STOP_AGAIN_SECONDS
from uncertain_cep.time_limits import TimeLimit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["stopped_in_time"]


@contextmanager
def stopped_in_time(spark: SparkSession, limit: TimeLimit | None) -> Iterator[None]:
    """Stop what this thread has Spark do in the context once a time limit is over; other jobs go on.

    Raises
    ------
    TimeLimitError
        In place of Spark's error about a job that was stopped.
    """
    if limit is None:
        yield
        return
    limit.check()
    tag = f"uncertain-cep-{uuid4().hex}"
    jobs = _TaggedJobs(spark, tag)
    done, over = Event(), Event()

    def watch() -> None:
        if done.wait(limit.left):
            return
        over.set()
        jobs.stop()
        while not done.wait(STOP_AGAIN_SECONDS):
            jobs.stop()

    watcher = Thread(target=watch, daemon=True)
    jobs.begin()
    watcher.start()
    try:
        yield
    except Exception as error:
        if over.is_set():
            raise limit.error() from error
        raise
    finally:
        done.set()
        watcher.join()
        jobs.end()


class _TaggedJobs:
    """The jobs that this thread begins between two calls, under a tag of their own.

    A classic session's ``interruptTag`` does not find the jobs of the DataFrame API; its context does.
    """

    def __init__(self, spark: SparkSession, tag: str) -> None:
        self._tag = tag
        self._session = spark
        self._context = (
            None if type(spark).__module__.startswith("pyspark.sql.connect") else spark.sparkContext
        )

    def begin(self) -> None:
        """Tag what this thread begins from now on."""
        if self._context is None:
            self._session.addTag(self._tag)
        else:
            self._context.addJobTag(self._tag)

    def stop(self) -> None:
        """Stop what runs under the tag; any thread may ask for it."""
        if self._context is None:
            self._session.interruptTag(self._tag)
        else:
            self._context.cancelJobsWithTag(self._tag)

    def end(self) -> None:
        """Tag nothing more."""
        if self._context is None:
            self._session.removeTag(self._tag)
        else:
            self._context.removeJobTag(self._tag)
