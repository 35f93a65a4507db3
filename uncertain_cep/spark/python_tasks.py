"""Tasks that Spark's Python workers run one after the other; nothing here imports pyspark.

After each task a worker of Spark's looks for garbage among all objects that it holds, those of every imported
module included. That takes some 40 ms, many times what a task over few events does. What modules hold is
hardly ever garbage: it is left out from then on.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pyarrow as pa

__all__ = ["leave_modules_out", "spared"]


def spared(
    batches: Iterable[pa.RecordBatch], *, task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Run a task, and spare the worker most of the search for garbage after it."""
    try:
        yield from task(batches)
    finally:
        leave_modules_out()


def leave_modules_out() -> None:
    """Look for garbage in a worker of Spark's, and then never again among what is left.

    It does so only after a task that has imported modules. In a process that is no worker it does nothing.
    """
    if "pyspark.worker" in sys.modules:
        _leave_out(len(sys.modules))


@cache
def _leave_out(modules: int) -> None:  # noqa: ARG001 - once for each number of modules
    gc.collect()
    gc.freeze()
