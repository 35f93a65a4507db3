"""Events that last as moments: when one end of each is, whatever its other end.

A join as of a time reads one end of each event, and nothing ties ends of different events but their clocks.
So an event is a moment with the law of that end.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.candidates.laws_of_ends import are_uniform, law_of_end
from uncertain_cep.candidates.span_times import with_ends
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.executor.checked_events import CheckedEvents
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS

__all__ = ["ENDS", "as_moments"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

ENDS: Final = ("begin", "end")


def as_moments(events: CheckedEvents, table: pa.Table, at_end: Mask) -> pa.Table:
    """Return a table of events in which those that last are moments.

    Parameters
    ----------
    events : CheckedEvents
    table : pyarrow.Table
        As it was before it was checked, with the names of the model.
    at_end : (n,) bool
        Whether each is at its end, not at its begin.

    Raises
    ------
    ConfidenceCostError
        If the ends that are not uniform have too many ticks.
    """
    plan, count = events.plan, len(at_end)
    _, both, spans = with_ends(plan, events.table)
    bounds = [plan.domain.ticks(both.column(name)) for name in (plan.names.lower, plan.names.upper)]
    row = np.arange(count) + count * (at_end & spans.lasts)
    lower, upper = (bound[row] for bound in bounds)
    laws = both.column("pmf").to_pylist() if "pmf" in both.column_names else [None] * len(both)
    pmfs = [laws[place] for place in row.tolist()]
    has_law = np.array([law is not None for law in laws], np.bool_)
    rows = np.flatnonzero(spans.lasts & ~are_uniform(spans, at_end, has_law))
    ends = spans.own_end.upper - spans.own_end.lower
    ticks = int((np.where(at_end, ends, spans.own_begin.upper - spans.own_begin.lower) + 1)[rows].sum())
    if ticks > MOST_CONFIDENCE_STEPS:
        raise ConfidenceCostError(
            f"the ends of the events that last have {ticks:,} ticks: choose a longer tick", ticks,
            MOST_CONFIDENCE_STEPS,
        )  # fmt: skip
    checkpoint(64 * ticks)
    for n in rows.tolist():
        pmfs[n] = law_of_end(spans, n, (laws[n], laws[n + count]), at_end=bool(at_end[n]))
    columns = {name: table.column(name) for name in table.column_names}
    for name in (*SPAN_COLUMNS, *SPAN_LAWS):
        columns.pop(name, None)
    columns |= {"lower": plan.domain.times(lower), "upper": plan.domain.times(upper)}
    if any(pmf is not None for pmf in pmfs):
        columns["pmf"] = pa.array(pmfs, pa.large_list(pa.float64()))
    return pa.table(columns)
