"""The times of events, whatever the pattern: by their bounds, clocks and laws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.own_times import OffsetBounds, offsets_named, times_of
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.plan import EvaluationPlan

__all__ = ["EventTimes", "event_times", "ticks_of"]

Int64 = NDArray[np.int64]


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


def event_times(plan: EvaluationPlan, table: pa.Table) -> EventTimes:
    """Return the times of checked events, of those of `with_marginals`."""
    bounds = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
    offsets = offsets_named(plan, table)
    return EventTimes(bounds, offsets, *times_of(plan, table, offsets, *bounds))
