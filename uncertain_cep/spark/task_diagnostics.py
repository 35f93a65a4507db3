"""Diagnostics of a task of Spark: it counts undecided matches, and the driver says so; no pyspark here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.timeline.domain import TimeDomain

__all__ = ["Evaluate", "TaskDiagnostics", "counting_task"]


class TaskDiagnostics(Diagnostics):
    """Counts the undecided matches of a task; all else is said of all events together.

    Attributes
    ----------
    left_out : int
        The undecided matches; without a known end, those with a gap that can end behind the last event.
    """

    def __init__(self, last_tick: int | None = None) -> None:
        super().__init__()
        self.last_tick = last_tick
        self.left_out = 0

    def about(self, plan: EvaluationPlan) -> None:
        """Say nothing of the plan."""

    def look(self, table: pa.Table) -> None:
        """Say nothing of the events of a task."""

    def counted(self, plan: EvaluationPlan, sizes: Sequence[int]) -> None:
        """Say nothing of the candidates of a task."""

    def undecided(self, domain: TimeDomain, end: int, count: int, *, partly: bool = False) -> None:
        """Count undecided matches."""
        del domain, end, partly
        self.left_out += count

    def finish(self) -> None:
        """Say nothing at the end of a task."""


class Evaluate(Protocol):
    """A function that yields the matches of a partition."""

    def __call__(
        self, batches: Iterable[pa.RecordBatch], *, diagnostics: TaskDiagnostics | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the matches of a partition, and tell ``diagnostics`` of undecided ones."""


def counting_task(
    batches: Iterable[pa.RecordBatch],
    *,
    evaluate: Evaluate,
    last_tick: int | None,
    tell: Callable[[int], object],
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of a partition, then tell how many undecided ones there are.

    Nothing is told of a partition whose matches are not all asked for, as by LIMIT.
    """
    diagnostics = TaskDiagnostics(last_tick)
    yield from evaluate(batches, diagnostics=diagnostics)
    tell(diagnostics.left_out)
