"""The tasks of Spark's event logs as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confidence.parsing.json_rows import ABSENT, ESCAPED, FALSE, NULL, TEXT, TRUE, WHOLE
from confidence.parsing.json_trees import NESTED
from uncertain_cep.traces.readers.json_columns import Leaf, Object, Paths, Tree
from uncertain_cep.traces.readers.spark_records import (
    LATEST,
    LONGEST,
    NO_METRICS,
    TASK_END,
    TASK_START,
    Line,
)

__all__ = ["Tasks", "phases_of", "tasks_of_lines", "tasks_of_tree", "tree_of"]

_TEXTS: Final = (TEXT, ESCAPED)
_SAID: Final = (*_TEXTS, NULL)
_KINDS: Final = {
    "event": _TEXTS,
    "stage": (WHOLE, NULL),
    "stage_attempt": (WHOLE,),
    "reason": _TEXTS,
    "task": (WHOLE,),
    "index": (WHOLE, NULL),
    "attempt": (WHOLE, NULL),
    "launch": (WHOLE,),
    "executor": _SAID,
    "host": _SAID,
    "finish": (WHOLE,),
    "failed": (TRUE, FALSE),
    "deserialize": (WHOLE,),
    "run": (WHOLE,),
    "serialize": (WHOLE,),
}
"""The kinds of the values of each column; columns are those of the attributes, as far as there are such."""
_LARGEST: Final = {
    "launch": LATEST,
    "finish": LATEST,
    "deserialize": LONGEST,
    "run": LONGEST,
    "serialize": LONGEST,
}
_TASK: Final = {
    "Task ID": Leaf("task"),
    "Index": Leaf("index"),
    "Attempt": Leaf("attempt"),
    "Launch Time": Leaf("launch"),
    "Executor ID": Leaf("executor"),
    "Host": Leaf("host"),
    "Finish Time": Leaf("finish"),
    "Failed": Leaf("failed"),
}
_METRICS: Final = {
    "Executor Deserialize Time": Leaf("deserialize"),
    "Executor Run Time": Leaf("run"),
    "Result Serialization Time": Leaf("serialize"),
}
_PATHS: Final = Paths(
    Object(
        {
            "Event": Leaf("event"),
            "Stage ID": Leaf("stage"),
            "Stage Attempt ID": Leaf("stage_attempt"),
            "Task End Reason": Object({"Reason": Leaf("reason")}, nullable=True, column="reasons"),
            "Task Info": Object(_TASK, nullable=True, column="tasks"),
            "Task Metrics": Object(_METRICS, nullable=True),
        }
    )
)


class Tasks(NamedTuple):
    """Tasks that have ended: arrays of Arrow or NumPy, or lists, of as many."""

    stages: Any
    stage_attempts: Any
    numbers: Any
    indices: Any
    attempts: Any
    launches: Any
    executors: Any
    hosts: Any
    finishes: Any
    failed: Any
    reasons: Any
    busy: Any
    """How long the executor worked, in ms."""


def tree_of(block: bytes) -> Tree | None:
    """Return the values of some lines; None if they have to be read one by one."""
    tree = _PATHS.read(block)
    return tree if tree is not None and _is_usual(tree) else None


def _is_usual(tree: Tree) -> bool:
    """Tell whether all lines are records as `Line` and `Task` describe them."""
    if not all(tree.has_only(name, *kinds) for name, kinds in _KINDS.items()):
        return False
    if (tree.kinds("event") == ABSENT).any():
        return False
    for within, names in (("tasks", ("task", "launch")), ("reasons", ("reason",))):
        there = tree.kinds(within) == NESTED
        if any((tree.kinds(name)[there] == ABSENT).any() for name in names):
            return False
    for name, largest in _LARGEST.items():
        lowest, highest = pc.min_max(tree.integers(name)).values()
        if lowest.is_valid and (lowest.as_py() < 0 or highest.as_py() > largest):
            return False
    is_task = np.logical_or(*phases_of(tree))
    return tree.has_all("task", WHOLE, is_task) and tree.has_all("stage", WHOLE, is_task)


def phases_of(tree: Tree) -> tuple[Any, Any]:
    """Return the lines of starts of tasks, and those of ends, each a mask of (n,) bool."""
    events = tree.texts("event")
    return np.asarray(pc.equal(events, TASK_START)), np.asarray(pc.equal(events, TASK_END))


def tasks_of_lines(lines: Sequence[Line]) -> Tasks:
    """Return the tasks of some lines that tell of their ends."""
    tasks: list[Any] = [line.task for line in lines]
    worked = [line.metrics or NO_METRICS for line in lines]
    return Tasks(
        [line.stage for line in lines],
        [line.stage_attempt for line in lines],
        pa.array([task.task for task in tasks], pa.int64()),
        [task.index for task in tasks],
        [task.attempt for task in tasks],
        np.asarray(pa.array([task.launch for task in tasks], pa.int64())),
        [task.executor for task in tasks],
        [task.host for task in tasks],
        np.asarray(pa.array([task.finish for task in tasks], pa.int64())),
        [task.failed for task in tasks],
        [None if line.reason is None else line.reason.reason for line in lines],
        np.asarray(pa.array([each.deserialize + each.run + each.serialize for each in worked], pa.int64())),
    )


def tasks_of_tree(tree: Tree, rows: Any) -> Tasks:
    """Return the tasks of some lines, (k,) int64, that tell of their ends."""

    def whole(column: str) -> Any:
        """Return numbers; 0 where there is none."""
        return np.where(tree.kinds(column)[rows] == WHOLE, tree.wholes(column, rows), 0)

    return Tasks(
        tree.integers("stage", rows),
        whole("stage_attempt"),
        tree.integers("task", rows),
        tree.integers("index", rows),
        tree.integers("attempt", rows),
        tree.wholes("launch", rows),
        tree.texts("executor", rows),
        tree.texts("host", rows),
        whole("finish"),
        pa.array(tree.kinds("failed")[rows] == TRUE),
        tree.texts("reason", rows),
        whole("deserialize") + whole("run") + whole("serialize"),
    )
