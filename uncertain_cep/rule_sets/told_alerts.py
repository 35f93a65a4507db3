"""Suppression: the alerts of a rule that are told, and how many were left out before each."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from confidence.kernel import plain_for
from eventbased.alert_suppression import tell_alerts
from uncertain_cep.errors import OptionError
from uncertain_cep.expressions.codes import codes_of, nulls_as_key, paired
from uncertain_cep.operators.table import kernels_of
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.lengths import ticks_in
from uncertain_cep.plan.result_columns import SortKey
from uncertain_cep.results.order import in_order, signature_keys
from uncertain_cep.rule_sets.named_rules import Suppression
from uncertain_cep.running.compiling import plain_seconds

__all__ = ["SUPPRESSED", "check_suppression", "told_alerts"]

SUPPRESSED: Final = "suppressed"
"""The column that says how many alerts of the group were left out since the one told before."""


def check_suppression(plan: EvaluationPlan, suppression: Suppression) -> int:
    """Return the length of a suppression, ticks; an OptionError says why the plan's result has none."""
    columns = plan.output_schema.names
    if "range_upper" not in columns or "bucket" in columns:
        raise OptionError("suppress goes by range_upper, which only matches have: leave it out")
    for name in suppression.by:
        if name not in columns:
            raise OptionError(
                f"suppress ... BY {name}: the result has no such column, but {', '.join(columns)}: add "
                f"RETURN v.{name} AS {name}, with a variable of the pattern"
            )
    return ticks_in(suppression.length, plan.domain, "suppress")


def told_alerts(plan: EvaluationPlan, alerts: pa.Table, length: int, by: tuple[str, ...]) -> pa.Table:
    """Return the alerts that are told, in the order given, with the column :data:`SUPPRESSED`.

    Parameters
    ----------
    plan : EvaluationPlan
    alerts : pyarrow.Table
        All matches of the plan's rule.
    length : int
        Ticks by which an alert is behind the last one told of its group, at least.
    by : tuple of str
        The columns whose values make a group; nulls are alike.

    Notes
    -----
    O(n log n). Alerts are gone through by ``range_upper``, and by their signatures where these are equal.
    """
    group = np.zeros(alerts.num_rows, dtype=np.int64)
    for name in by:
        group = paired(group, nulls_as_key(codes_of([alerts.column(name)])[0][0]))
    rows = in_order(alerts, [SortKey("range_upper", descending=False), *signature_keys(plan)])
    rows = rows[np.argsort(group[rows], kind="stable")]
    time = plan.domain.ticks(alerts.column("range_upper"))[rows]
    is_told = np.empty(len(rows), dtype=np.bool_)
    left_out = np.empty(len(rows), dtype=np.int64)
    with plain_for(plain_seconds(len(rows), kernels_of(plan))):
        tell_alerts(group[rows], time, length, is_told, left_out)
    places = np.sort(rows[is_told])
    counts = np.zeros(alerts.num_rows, dtype=np.int64)
    counts[rows] = left_out
    return alerts.take(pa.array(places)).append_column(SUPPRESSED, pa.array(counts[places]))
