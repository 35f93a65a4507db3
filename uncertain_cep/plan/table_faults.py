"""The faults of a table of events, by the names and the ticks of a plan."""

from __future__ import annotations

import pyarrow as pa

from uncertain_cep.errors import TraceFault
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.traces.checks import check_model, check_values

__all__ = ["model_faults", "value_faults"]


def model_faults(plan: EvaluationPlan, table: pa.Table) -> list[TraceFault]:
    """Return every fault of a table, see :func:`~uncertain_cep.traces.checks.check_model`."""
    return check_model(table, plan.names, plan.domain, clocks=plan.clocks)


def value_faults(
    plan: EvaluationPlan, table: pa.Table, extremes: tuple[int, int] | None = None
) -> list[TraceFault]:
    """Return every fault of values, see :func:`~uncertain_cep.traces.checks.check_values`."""
    return check_values(table, plan.names, plan.domain, clocks=plan.clocks, extremes=extremes)
