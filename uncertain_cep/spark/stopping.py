"""Jobs of Spark that are stopped when a time limit is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from uncertain_cep.time_limits import TimeLimit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["stopped_in_time"]

AGAIN: Final = 0.5
"""Seconds after which a job that began behind the limit is stopped as well."""


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
    done, over = Event(), Event()

    def watch() -> None:
        if done.wait(limit.left):
            return
        over.set()
        spark.interruptTag(tag)
        while not done.wait(AGAIN):
            spark.interruptTag(tag)

    watcher = Thread(target=watch, daemon=True)
    spark.addTag(tag)
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
        spark.removeTag(tag)
