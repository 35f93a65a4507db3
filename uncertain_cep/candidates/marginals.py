"""The laws of events' times alone, where clocks are not to move them together.

The pmf of an event with a clock is that of its time by the clock. Where its time counts as independent of
those of all others, ``sources=False``, its law is that of the sum with the clock's offset.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.config.tolerances import PMF_TOLERANCE
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.clock_columns import is_listed
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS
from uncertain_cep.traces.checks import check_columns, check_nulls

__all__ = ["with_marginals"]

Float64 = NDArray[np.float64]


def with_marginals(plan: EvaluationPlan, table: pa.Table) -> pa.Table:
    """Return events whose pmfs are those of their times, not of their times by clocks that are not looked at.

    So are the pmfs of begins and ends of events that last. A pmf that has neither the length of the interval
    nor that of the time by the clock, and one that is none, stay as they are: the checks refuse them.
    O(sum over events of own ticks times ticks of the offset).
    """
    names = plan.names
    if not plan.marginals or check_columns(table.schema, names) or check_nulls(table, names):
        return table
    whole = names.pmf, names.lower, names.upper
    ends = ((SPAN_LAWS[end], *SPAN_COLUMNS[2 * end : 2 * end + 2]) for end in range(2))
    for columns in (whole, *ends):
        if {*columns} <= {*table.column_names}:
            table = _with_marginals_of(plan, table, *columns)
    return table


def _with_marginals_of(
    plan: EvaluationPlan, table: pa.Table, name: str, lower_name: str, upper_name: str
) -> pa.Table:
    """Return events with the pmfs in a column, of times between the bounds in two others, as such."""
    names, domain = plan.names, plan.domain
    column = table.column(name)
    if not is_listed(column.type):
        return table
    by_clock = np.logical_and.reduce(
        [np.asarray(table.column(one).is_valid()) for one in (names.source, name, lower_name, upper_name)]
    )
    if not by_clock.any():
        return table
    rows = np.flatnonzero(by_clock)
    clocked = table.take(pa.array(rows))
    low, high = domain.offsets(clocked, names)
    lower, upper = (domain.ticks(clocked.column(bound)) for bound in (lower_name, upper_name))
    ticks, width = upper - lower + 1, high - low
    lengths = np.asarray(pc.fill_null(pc.list_value_length(clocked.column(name)), 0)).astype(np.int64)
    is_own = (width > 0) & (lengths == ticks - width) & (lengths > 0)
    if not is_own.any():
        return table
    checkpoint(8 * int(ticks[is_own].sum()))
    pmfs = column.to_pylist()
    has_law = names.offset_pmf in table.column_names
    offsets = clocked.column(names.offset_pmf).to_pylist() if has_law else [None] * len(rows)
    for place in np.flatnonzero(is_own).tolist():
        given_pmf: Any = pmfs[rows[place]]
        own_law = _normalised(given_pmf) if _is_sound(given_pmf) else None
        size = int(width[place]) + 1
        offset: Any = offsets[place]
        law = _normalised([1.0] * size if offset is None else offset)
        if own_law is not None and law is not None and len(law) == size:
            pmfs[rows[place]] = np.convolve(own_law, law)
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, pa.array(pmfs, pa.large_list(pa.float64())))


def _is_sound(values: list[float]) -> bool:
    """Return whether a pmf sums to 1: one that does not is for the checks to refuse."""
    return abs(float(np.sum(np.array(values, dtype=np.float64))) - 1.0) <= PMF_TOLERANCE


def _normalised(values: list[float]) -> Float64 | None:
    """Return probabilities that sum to 1; None if they are none."""
    probabilities = np.array(values, dtype=np.float64)
    total = float(probabilities.sum())
    return probabilities / total if (probabilities >= 0.0).all() and 0.0 < total < np.inf else None
