"""A table of events, the times of these, and how it is looked through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.candidates.own_times import OffsetBounds, offset_bounds, times_of
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.selection import ScanCache, Slicing
from uncertain_cep.plan import EvaluationPlan

__all__ = ["EventTimes", "TableScan", "in_one_chunk", "ticks_of", "times_once"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class EventTimes(NamedTuple):
    """The times of events, whatever the pattern."""

    in_table: tuple[Int64, Int64]
    """Each (n,) int64. The bounds in the table, ticks."""
    offsets: OffsetBounds | None
    """Of the clocks of events; None if they do not name any."""
    pmfs: ExplicitPmfs | None
    lower: Int64
    upper: Int64
    """Each (n,) int64. Bounds without ticks of probability 0 at the ends."""


def ticks_of(table: pa.Table, name: str, plan: EvaluationPlan) -> Int64:
    """Return a time column in ticks, (n,) int64."""
    return plan.domain.ticks(table.column(name))


def times_once(plan: EvaluationPlan, table: pa.Table) -> Callable[[], EventTimes]:
    """Return a function that computes the times of checked events when it is first called."""
    return cache(partial(_times, plan, table))


def _times(plan: EvaluationPlan, table: pa.Table) -> EventTimes:
    bounds = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
    offsets = offset_bounds(plan, table) if plan.clocks else None
    return EventTimes(bounds, offsets, *times_of(plan, table, offsets, *bounds))


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
