"""Undecided matches of a frame, which workers find when it is used: counted, and said then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock, local
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.errors import warn
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.gap_ends import ends_behind
from uncertain_cep.spark.dataframes import column, in_ticks
from uncertain_cep.spark.file_parts import EventFiles
from uncertain_cep.spark.jobs import errors_of_workers, is_connect
from uncertain_cep.spark.task_diagnostics import Evaluate, counting_task

__all__ = [
    "Undecided",
    "can_be_undecided",
    "counted",
    "last_tick_of_files",
    "last_ticks",
    "warn_of_later_count",
    "worker_errors",
]

Counts = dict[int, int]
"""Numbers of undecided matches, by partition: a partition that is computed again is counted once."""


@dataclass(slots=True)
class _Heard:
    """Counts that the driver has heard of, and how often it has."""

    counts: Counts
    times: int


class _Latest(AccumulatorParam[_Heard]):
    """Keeps the latest count of each partition."""

    def zero(self, value: _Heard) -> _Heard:
        del value
        return _Heard({}, 0)

    def addInPlace(self, value1: _Heard, value2: _Heard) -> _Heard:  # noqa: N802 - as Spark calls it
        return _Heard(value1.counts | value2.counts, value1.times + value2.times)


@dataclass(frozen=True, slots=True)
class Undecided:
    """The undecided matches of a call, which its diagnostics hear of."""

    plan: EvaluationPlan
    diagnostics: Diagnostics
    partitions: int = 1
    """How many tasks look for matches."""
    last_tick: int | None = None
    """The last tick of any event; None if there is a known end."""

    @property
    def asks_last(self) -> bool:
        """Whether the last tick of any event is asked for."""
        return self.plan.known_until is None

    def say(self, count: int, *, partly: bool = False) -> None:
        """Warn of so many matches; ``partly`` says that not all partitions have been computed."""
        end = self.plan.known_until if self.last_tick is None else self.last_tick
        assert end is not None
        self.diagnostics.undecided(self.plan.domain, end, count, partly=partly)
        self.diagnostics.finish()


@dataclass(slots=True)
class _Frame:
    """A frame whose undecided matches are counted whenever it is used."""

    undecided: Undecided
    total: Accumulator[_Heard]
    before: int = 0
    """How often the driver had heard of counts when the context began."""
    said: Counts = field(default_factory=dict)

    def say(self) -> None:
        """Say the counts of which the driver has heard in the context, unless it has said the same before."""
        heard = self.total.value
        if heard.times > self.before and heard.counts != self.said:
            self.said = heard.counts
            partly = len(heard.counts) < self.undecided.partitions
            self.undecided.say(sum(heard.counts.values()), partly=partly)


_frames: Final[list[_Frame]] = []
_lock: Final = Lock()


class _Depth(local):
    """How many contexts of `worker_errors` a thread is in."""

    value = 0


_depth: Final = _Depth()


def can_be_undecided(plan: EvaluationPlan) -> bool:
    """Return whether a match can have a gap that ends behind the known end, or the last event."""
    if plan.known_until is not None:
        return any(part.forbids for part in plan.or_free)
    return any(gap.is_trailing for part in plan.or_free for gap in ends_behind(part, 0))


def last_ticks(plan: EvaluationPlan, schema: Any) -> Column:
    """Return the last tick of each event of a frame that has a probability."""
    names = plan.names
    upper = in_ticks(plan, schema, names.upper)
    for name in (names.pmf, names.offset_pmf):
        if name in plan.required_columns and schema[name].dataType.typeName() == "array":
            probabilities = f.reverse(column(name).cast("array<double>"))
            last = f.array_position(f.transform(probabilities, lambda part: part > 0), f.lit(True))
            upper -= f.coalesce(f.greatest(last - 1, f.lit(0)), f.lit(0))
    return upper


def last_tick_of_files(plan: EvaluationPlan, files: EventFiles, frame: DataFrame) -> int:
    """Return the last tick of any event of files, whose events are those of a frame."""
    names = plan.names
    if names.pmf in plan.required_columns or names.offset_pmf in plan.required_columns:
        # The ticks of probability 0 at the end are not known of parts.
        return int(frame.agg(f.max(last_ticks(plan, frame.schema))).collect()[0][0])
    latest = np.array([part.times[1] for part in files.parts], np.int64)
    return int(plan.domain.ticks_of_units(latest).max())


def counted(
    undecided: Undecided, evaluate: Evaluate, spark: SparkSession
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a task that finds matches, and whose undecided ones `worker_errors` says.

    Spark Connect has no way to hear of them.
    """
    if is_connect(spark):
        warn(f"{_left_out(undecided.plan)}; with Spark Connect such matches of a frame are not counted")
        return partial(evaluate, diagnostics=None)
    total = spark.sparkContext.accumulator(_Heard({}, 0), _Latest())
    with _lock:
        _frames.append(_Frame(undecided, total))
    tell = partial(_tell, total=total, partitions=undecided.partitions)
    return partial(counting_task, evaluate=evaluate, last_tick=undecided.last_tick, tell=tell)


def _tell(count: int, *, total: Accumulator[_Heard], partitions: int) -> None:
    context = TaskContext.get()
    if context is not None:
        # In a union the partitions of a frame stand behind those of others.
        total.add(_Heard({context.partitionId() % partitions: count}, 1))


def warn_of_later_count(plan: EvaluationPlan, spark: SparkSession) -> None:
    """Say who counts the undecided matches of a frame, unless `worker_errors` is there to do so."""
    if not _depth.value and not is_connect(spark):
        warn(f"{_left_out(plan)}; use the frame within worker_errors(), which counts such matches")


def _left_out(plan: EvaluationPlan) -> str:
    if plan.known_until is not None:
        return "matches that are undecided at known_until are left out"
    return (
        "no event is taken to be behind the last one of the trace, where the gap of a negation can end: "
        "known_until= (--known-until) leaves such matches out"
    )


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise the error of a worker, such as `TraceError`, and say what workers have counted.

    Spark computes matches when they are used, in other processes, and reports their errors as its own, with
    the text of the traceback. What workers have left out as undecided is known then, too.

    Raises
    ------
    UncertainCepError
        That of the worker; a RuntimeEnvironmentError if a process was lost at each try, or took too long to
        start, or if Spark's Java process is gone.

    Warns
    -----
    UncertainCepWarning
        At the end, of undecided matches of frames that were used in the context, see ``known_until`` of
        `match`. They are at least so many if not all partitions of the frame were computed.

    Examples
    --------
    >>> with worker_errors():  # doctest: +SKIP
    ...     matches.toPandas()
    """
    if not _depth.value:
        for frame in _all_frames():
            frame.before = frame.total.value.times
    _depth.value += 1
    try:
        with errors_of_workers():
            yield
    finally:
        _depth.value -= 1
    if not _depth.value:
        for frame in _all_frames():
            frame.say()


def _all_frames() -> list[_Frame]:
    with _lock:
        return list(_frames)
