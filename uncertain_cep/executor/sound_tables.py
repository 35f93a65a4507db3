"""The checks of a table before anything is looked for in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from uncertain_cep.candidates.event_times import EventTimes
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.selection import ScanCache
from uncertain_cep.config.tuning import WORTH_A_KERNEL
from uncertain_cep.errors import TraceError
from uncertain_cep.expressions.vectorised import constant_value
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.table_faults import model_faults, value_faults
from uncertain_cep.traces.checks import check_columns

__all__ = ["check_table", "constants_hold", "is_sound"]


def check_table(plan: EvaluationPlan, table: pa.Table, file: str | None = None) -> None:
    """Raise TraceError with every fault found if a table holds no events of the model."""
    faults = model_faults(plan, with_marginals(plan, table))
    if faults:
        raise TraceError([fault if file is None else replace(fault, file=file) for fault in faults])


def is_sound(
    plan: EvaluationPlan,
    table: pa.Table,
    is_cut: bool,
    scan_cache: ScanCache,
    times: Callable[[], EventTimes],
) -> bool:
    """Return whether who looks up candidates has found no fault in the rows; False of few rows.

    What rows say of a clock has to agree, so they are not looked at apart then.
    """
    is_little = table.num_rows < WORTH_A_KERNEL and scan_cache.pieces(plan, table, plan.components) < 2
    if plan.clocks or is_little or check_columns(table.schema, plan.names):
        return False

    def are_sound(rows: pa.Table, extremes: tuple[int, int] | None) -> bool:
        return not value_faults(plan, rows, extremes)

    names, bounds = plan.names, None
    # Keys and slices leave out rows, and pmfs cut off times, before these are gathered.
    as_in_table = not is_cut and not plan.partitioning.keys and names.pmf not in table.column_names
    if as_in_table and not any(table.column(name).null_count for name in (names.lower, names.upper)):
        bounds = times().lower, times().upper
    try:
        return scan_cache.look(plan, table, plan.components, are_sound, bounds)
    except TraceError:
        # Whatever keeps predicates from being looked at, faults of the model are to be told first.
        return False


def constants_hold(plan: EvaluationPlan) -> bool:
    """Return whether the predicates that mention no variable are all true."""
    for predicate in plan.constant:
        value = constant_value(predicate)
        if not bool(value.data) or (value.valid is not None and not bool(value.valid)):
            return False
    return True
