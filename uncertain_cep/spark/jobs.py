"""Jobs of Spark: how many run at once, their errors as the library's own, and an end to them in time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from uncertain_cep.config import STOP_AGAIN_SECONDS
from uncertain_cep.errors import (
    OptionError,
    RuntimeEnvironmentError,
    TimeLimitError,
    TraceError,
    UncertainCepError,
)
from uncertain_cep.limits import Limits

__all__ = ["count_cores", "stopped_in_time", "worker_errors"]

_RAISED: Final = re.compile(
    r"^uncertain_cep\.errors\.(\w+): (.*?)(?=\n\s*\n|\n\s+at |\s+SQLSTATE: |\n?\Z)", re.MULTILINE | re.DOTALL
)

_LOST: Final = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure")

_KINDS: Final[dict[str, type[UncertainCepError]]] = {
    kind.__name__: kind for kind in (OptionError, RuntimeEnvironmentError, TraceError)
}


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise what a worker raised, such as `TraceError`, in place of Spark's account of it.

    Spark computes matches when they are used, in other processes, and reports an error there as one of its
    own, with the text of the traceback. A RuntimeEnvironmentError says that a process was lost at each try.

    Examples
    --------
    >>> with worker_errors():  # doctest: +SKIP
    ...     matches.toPandas()
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        said = str(error)
        if (raised := _RAISED.search(said)) is not None:
            raise _KINDS.get(raised[1], UncertainCepError)(raised[2].strip()) from error
        if (lost := _LOST.search(said)) is not None:
            raise RuntimeEnvironmentError(
                f"Spark lost a process that computes, each time it tried a task ({lost[0]}). As a rule the "
                "system has ended it because memory ran out: use more partitions, a shorter WITHIN, or "
                "workers with more memory"
            ) from error
        raise


@contextmanager
def stopped_in_time(spark: SparkSession, limit: Limits | None) -> Iterator[None]:
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
    # A classic session's `interruptTag` does not find the jobs of the DataFrame API; its context does.
    begin: Callable[[str], object]
    stop: Callable[[str], object]
    end: Callable[[str], object]
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        begin, stop, end = spark.addTag, spark.interruptTag, spark.removeTag
    else:
        context = spark.sparkContext
        begin, stop, end = context.addJobTag, context.cancelJobsWithTag, context.removeJobTag
    done, over = Event(), Event()

    def watch() -> None:
        if done.wait(limit.left):
            return
        over.set()
        stop(tag)
        while not done.wait(STOP_AGAIN_SECONDS):
            stop(tag)

    watcher = Thread(target=watch, daemon=True)
    begin(tag)
    watcher.start()
    try:
        yield
    except Exception as error:
        if over.is_set():
            raise TimeLimitError(limit.seconds or 0.0) from error
        raise
    finally:
        done.set()
        watcher.join()
        end(tag)


def count_cores(spark: SparkSession) -> int:
    """Return how many tasks run at the same time."""
    if local := re.fullmatch(r"local\[([0-9]+)(?:,[0-9]+)?\]", spark.conf.get("spark.master", "") or ""):
        return int(local[1])
    # Spark Connect tells it only by what it does.
    numbers = spark.range(10_000).select(f.spark_partition_id().alias("number"))
    return int(numbers.agg(f.max("number")).collect()[0][0]) + 1
