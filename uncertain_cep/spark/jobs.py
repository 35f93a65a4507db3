"""Jobs of Spark: how many tasks run at once, progress, errors, and time limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final
from uuid import uuid4

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from uncertain_cep.config.limits import END_SECONDS
from uncertain_cep.config.tuning import BETWEEN_LINES
from uncertain_cep.errors import (
    OptionError,
    RuntimeEnvironmentError,
    TimeLimitError,
    TraceError,
    UncertainCepError,
)
from uncertain_cep.running.resource_limits import Limits
from uncertain_cep.spark.remark_counts import say_remarks

__all__ = [
    "count_cores",
    "errors_of_workers",
    "is_connect",
    "stopped_in_time",
    "tasks_told",
    "within_seconds",
    "without_java",
]

_RAISED: Final = re.compile(
    r"^uncertain_cep\.errors\.(\w+): (.*?)(?=\n\s*\n|\n\s+at |\s+SQLSTATE: |\n?\Z)", re.MULTILINE | re.DOTALL
)

_LOST: Final = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure")

_SLOW: Final = "failed to connect back"

_KINDS: Final[dict[str, type[UncertainCepError]]] = {
    kind.__name__: kind for kind in (OptionError, RuntimeEnvironmentError, TraceError)
}

_STOP_AGAIN_SECONDS: Final = 0.5
"""Seconds after which a job that began behind a time limit is stopped as well."""


@contextmanager
def errors_of_workers() -> Iterator[None]:
    """Raise the error of a worker in place of Spark's own, see `worker_errors`.

    At the end, say what workers have remarked of the stamps of frames.
    """
    try:
        with without_java():
            yield
        say_remarks()
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
        if _SLOW in said:
            raise RuntimeEnvironmentError(
                f"a Python process that Spark had started {_SLOW} within 10 s: the machine is too busy. "
                "Start again, which a stream does from its checkpoint"
            ) from error
        raise


@contextmanager
def without_java() -> Iterator[None]:
    """Raise a RuntimeEnvironmentError in place of what py4j raises if Spark's Java process is gone."""
    try:
        yield
    except (Py4JNetworkError, ConnectionRefusedError, ConnectionResetError) as error:
        raise RuntimeEnvironmentError(
            "Spark's Java process has ended. As a rule the system has ended it because memory ran out: use "
            "more partitions, a shorter WITHIN, or a machine with more memory. A stream goes on from its "
            "checkpoint when it is started again"
        ) from error


@contextmanager
def tasks_told(spark: SparkSession, tell: Callable[[int, int], object]) -> Iterator[None]:
    """Call a function regularly with the numbers of tasks that are done, and of all tasks.

    These are the tasks of the active stages of the session, with classic Spark of its context.
    """
    if is_connect(spark):

        def heard(
            stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
        ) -> None:
            # Spark calls it by these names.
            del inflight_tasks, operation_id, done
            counts = [(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()]
            tell(sum(done_tasks for done_tasks, _ in counts), sum(parts for _, parts in counts))

        spark.registerProgressHandler(heard)  # type: ignore[arg-type]
        try:
            yield
        finally:
            spark.removeProgressHandler(heard)  # type: ignore[arg-type]
        return
    tracker = spark.sparkContext.statusTracker()
    over = Event()

    def watch() -> None:
        while not over.wait(BETWEEN_LINES):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            counts = [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None]
            if counts:
                tell(sum(done_tasks for done_tasks, _ in counts), sum(parts for _, parts in counts))

    watcher = _watching(watch)
    try:
        yield
    finally:
        over.set()
        watcher.join(END_SECONDS)


def within_seconds(call: Callable[[], object], seconds: float) -> bool:
    """Return whether a call was over in time, made in a thread with a connection to Java of its own.

    A connection whose answer an interrupt kept from being read gives it to the next question. If Spark is
    gone, so is what was to be ended.
    """
    caller = _watching(call)
    caller.join(seconds)
    return not caller.is_alive()


def _watching(watch: Callable[[], object]) -> Thread:
    """Start a thread that watches a job. It ends in silence if Spark is gone: the job itself fails then."""

    def run() -> None:
        with suppress(Py4JError, OSError):
            watch()

    watcher = Thread(target=run, daemon=True)
    watcher.start()
    return watcher


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def stopped_in_time(spark: SparkSession, limit: Limits | None) -> Iterator[None]:
    """Stop the jobs that this thread starts in the context once a time limit is over; other jobs go on.

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
    if is_connect(spark):
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
        while not done.wait(_STOP_AGAIN_SECONDS):
            stop(tag)

    begin(tag)
    watcher = _watching(watch)
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
    # Spark Connect tells it only by running a job.
    numbers = spark.range(10_000).select(f.spark_partition_id().alias("number"))
    return int(numbers.agg(f.max("number")).collect()[0][0]) + 1
