"""Remarks about the stamps of frames, which workers make when a frame is used: said by the next call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Final

from pyspark import Accumulator, AccumulatorParam, TaskContext
from pyspark.sql import SparkSession

from uncertain_cep.errors import warn
from uncertain_cep.spark.task_remarks import TaskRemarks

__all__ = ["say_remarks", "teller"]

Heard = dict[int, dict[int, TaskRemarks]]
"""The remarks of tasks, by stage and partition: a task that is tried again is counted once."""


class _LargestAndLatest(AccumulatorParam[Heard]):
    """Keeps the stage with the most tasks, and the latest one."""

    def zero(self, value: Heard) -> Heard:
        del value
        return {}

    def addInPlace(self, value1: Heard, value2: Heard) -> Heard:  # noqa: N802 - as Spark calls it
        heard = dict(value1)
        for stage, tasks in value2.items():
            heard[stage] = heard.get(stage, {}) | tasks
        if len(heard) > 2:
            kept = {max(heard), max(heard, key=lambda stage: len(heard[stage]))}
            heard = {stage: heard[stage] for stage in kept}
        return heard


@dataclass(slots=True)
class _Frame:
    """A frame of stamps, and the messages that have been said of it."""

    total: Accumulator[Heard]
    tick: str | None
    said: TaskRemarks = field(default_factory=TaskRemarks)

    def say(self) -> None:
        """Say the remarks of the stage with the most tasks, unless they have been said of as many stamps."""
        stages = self.total.value
        if not stages:
            return
        remarks = TaskRemarks()
        for task in max(stages.values(), key=len).values():
            remarks.add(task)
        if remarks.total() <= self.said.total():
            return
        self.said = remarks
        for message in remarks.messages(self.tick):
            warn(message)


_MOST_FRAMES: Final = 100
"""The latest frames of stamps, of which something may still be said."""

_frames: Final[deque[_Frame]] = deque(maxlen=_MOST_FRAMES)
_lock: Final = Lock()


def teller(spark: SparkSession, tick: str | None) -> Callable[[TaskRemarks], None]:
    """Return a function by which tasks tell the driver of their remarks; not for Spark Connect."""
    total = spark.sparkContext.accumulator({}, _LargestAndLatest())
    with _lock:
        _frames.append(_Frame(total, tick))
    return partial(_tell, total=total)


def _tell(remarks: TaskRemarks, *, total: Accumulator[Heard]) -> None:
    context = TaskContext.get()
    if context is not None and not remarks.is_empty:
        total.add({context.stageId(): {context.partitionId(): remarks}})


def say_remarks() -> None:
    """Warn of the remarks of tasks about stamps since the last call."""
    with _lock:
        frames = list(_frames)
    for frame in frames:
        frame.say()
