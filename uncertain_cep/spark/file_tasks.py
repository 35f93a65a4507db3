"""Tasks over files: the parts that each reads, and whether this is better than a shuffle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.config.tuning import ROWS_WORTH_A_TASK
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plurals import counted
from uncertain_cep.spark.file_parts import EventFiles
from uncertain_cep.spark.file_worker import Chunk, reach_of

__all__ = ["FileTasks", "choose_tasks"]

Int64 = NDArray[np.int64]

_MOST_REREAD: Final = 3.0
"""Up to so many times the rows there are may be read where workers read files themselves: to read and select
takes a quarter of the time of one core in process, and a shuffle twice that time."""

_MOST_UNEVEN: Final = 3.0
"""Up to so many times an even share may be read by one task."""

_MOST_ROWS_IN_REACH: Final = 16_000_000
"""Rows of the files that may be in reach of those whose first events are matched at once."""

ROWS_PER_CHUNK: Final = 3_000_000
"""Rows of files whose first events are matched at once; only those that matter are held."""

_ROWS_PER_TASK: Final = 50_000_000
"""Rows of files that a task goes through, one chunk after the other."""


@dataclass(frozen=True, slots=True)
class FileTasks:
    """The rows that tasks read if they read the files themselves."""

    tasks: tuple[tuple[Chunk, ...], ...]
    reread: float
    """The rows that all tasks read, as a multiple of the rows of the files."""
    uneven: float
    """The rows of the largest task, as a multiple of the mean of all tasks."""
    held: int
    """The most rows that a task holds at once."""

    @property
    def sound(self) -> bool:
        """Whether this is better than a shuffle."""
        return self._against is None

    def describe(self, parts: int) -> str:
        """Return in words what tasks read, and why, or why they do not."""
        if self.sound:
            said = f"{counted(parts, 'part')} in {counted(len(self.tasks), 'task')}"
            return f"workers read the files: {said}, {self.reread:.2f} times the rows"
        return f"Spark reads and shuffles the events, since {self._against}"

    @property
    def _against(self) -> str | None:
        """Why a shuffle is better, if it is: tasks read much twice, use few cores, or hold too much."""
        tasks = counted(len(self.tasks), "task")
        if self.reread > _MOST_REREAD:
            return f"the files are not ordered by time: {tasks} would read {self.reread:.2f} times the rows"
        if self.uneven > _MOST_UNEVEN:
            return f"the files are in few parts: one task would read {self.uneven:.1f} times its share"
        if self.held > _MOST_ROWS_IN_REACH:
            return f"what is in reach of a part has {self.held:,} rows, more than {_MOST_ROWS_IN_REACH:,}"
        return None


def choose_tasks(plan: EvaluationPlan, files: EventFiles, cores: int) -> FileTasks:
    """Return the parts that each of so many tasks at a time owns and reads, neighbours in time together.

    An event of a part is taken to lie anywhere between the earliest and the latest time of the part.
    """
    rows = np.array([part.rows for part in files.parts], np.int64)
    times = np.array([part.times for part in files.parts], np.int64).reshape(-1, 2)
    earliest, latest = (plan.domain.ticks_of_units(column) for column in times.T)
    order = np.lexsort((latest, earliest))
    total = int(rows.sum())
    back, reach = reach_of(plan)
    waves = math.ceil(total / (cores * _ROWS_PER_TASK))
    count = max(1, min(cores * waves, math.ceil(total / ROWS_WORTH_A_TASK)))
    tasks: list[tuple[Chunk, ...]] = []
    read = []
    held = 0
    for parts_of_task in _shared(order, rows, min(count, len(rows))):
        chunks = []
        touched = np.zeros(len(rows), np.bool_)
        for parts_of_chunk in _shared(
            parts_of_task, rows, max(1, math.ceil(int(rows[parts_of_task].sum()) / ROWS_PER_CHUNK))
        ):
            begin, end = int(earliest[parts_of_chunk].min()) - back, int(latest[parts_of_chunk].max()) + reach
            near = (latest >= begin) & (earliest <= end)
            near[parts_of_chunk] = False
            held = max(held, int(rows[near].sum() + rows[parts_of_chunk].sum()))
            # Without order there may be very many, and they are of no use then.
            neighbours = np.flatnonzero(near) if held <= _MOST_ROWS_IN_REACH else np.array([], np.int64)
            chunks.append(Chunk(tuple(parts_of_chunk.tolist()), tuple(neighbours.tolist())))
            touched |= near
            touched[parts_of_chunk] = True
        tasks.append(tuple(chunks))
        read.append(int(rows[touched].sum()))
    return FileTasks(tuple(tasks), sum(read) / total, max(read) * count / sum(read), held)


def _shared(order: Int64, rows: Int64, count: int) -> list[Int64]:
    """Return parts in order, divided into shares of about equally many rows."""
    middles = np.cumsum(rows[order]) - rows[order] / 2
    share = np.minimum(middles * count // rows[order].sum(), count - 1)
    return np.split(order, np.flatnonzero(np.diff(share)) + 1)
