"""A table of events, the times of these, and how it is looked through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.candidates.event_times import EventTimes, event_times
from uncertain_cep.candidates.selection import ScanCache, Slicing
from uncertain_cep.candidates.span_times import SpanTimes
from uncertain_cep.plan import EvaluationPlan

__all__ = ["TableScan", "in_one_chunk", "times_once"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


def times_once(plan: EvaluationPlan, table: pa.Table) -> Callable[[], EventTimes]:
    """Return a function that computes the times of checked events when it is first called."""
    return cache(partial(event_times, plan, table))


@dataclass(frozen=True, slots=True)
class TableScan:
    """A sound table, and how it is looked through, see :func:`uncertain_cep.executor.execute`."""

    table: pa.Table
    slicing: Slicing | None
    batch_rows: int
    owned: Mask | None
    diagnostics: Diagnostics | None
    threads: int
    scan_cache: ScanCache
    times: Callable[[], EventTimes]
    file: str | None
    buckets: tuple[int, int] | None = None
    """With RETURN PROBABILITY and EVERY, the ticks between which the buckets begin that are weighed."""
    spans: SpanTimes | None = None
    """Of events that last: the rows of their ends are behind them in the table."""
    without_ends: pa.Table | None = None
    """Then the events without these rows."""

    @property
    def events(self) -> pa.Table:
        """The events without rows of ends."""
        return self.table if self.without_ends is None else self.without_ends

    def needed(self, plan: EvaluationPlan) -> pa.Table:
        """Return the columns that a plan needs, each in one chunk."""
        slices = [] if self.slicing is None else [self.slicing.column]
        return self.table.select([*plan.required_columns, *slices]).combine_chunks()


def in_one_chunk(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table in which some columns are in one chunk each, so that they are copied no more."""
    places = {name: table.schema.get_field_index(name) for name in names}
    cut = [name for name, place in places.items() if place >= 0 and table.column(place).num_chunks > 1]
    if not cut:
        return table
    try:
        combined = table.select(cut).combine_chunks()
    except MemoryError:
        raise
    except pa.ArrowException:
        # Arrow puts no dictionaries with a null together: the checks say which row has it.
        return table
    for name in cut:
        table = table.set_column(places[name], table.schema.field(places[name]), combined.column(name))
    return table
