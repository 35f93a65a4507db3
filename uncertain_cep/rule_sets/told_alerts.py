"""Suppression: the alerts of a rule that are told, and how many were left out before each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.config import EVER
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

__all__ = ["SUPPRESSED", "AlertTeller", "check_suppression", "told_alerts"]

Int64 = NDArray[np.int64]

SUPPRESSED: Final = "suppressed"
"""The column that says how many alerts of the group were left out since the one told before."""

_OF_GROUPS: Final = ("uncertain_cep.last", "uncertain_cep.count")
"""The columns beside the keys of groups: when an alert was told last, and how many were left out since."""


def check_suppression(plan: EvaluationPlan, suppression: Suppression) -> int:
    """Return the length of a suppression, ticks; an OptionError says why the plan's result has none."""
    columns = plan.output_schema.names
    if "range_upper" not in columns or "bucket" in columns:
        raise OptionError("suppress goes by range_upper, which only matches have: leave it out")
    if SUPPRESSED in columns:
        raise OptionError(
            f"a rule with suppress has a column {SUPPRESSED} of its own: call what RETURN gives otherwise"
        )
    for name in suppression.by:
        if name not in columns:
            raise OptionError(
                f"suppress ... BY {name}: the result has no such column, but {', '.join(columns)}: add "
                f"RETURN v.{name} AS {name}, with a variable of the pattern"
            )
        if pa.types.is_list(plan.output_schema.field(name).type):
            raise OptionError(
                f"suppress ... BY {name}: its values are lists, which make no groups: name a column of "
                "single values"
            )
    return ticks_in(suppression.length, plan.domain, "suppress")


def told_alerts(plan: EvaluationPlan, alerts: pa.Table, length: int, by: tuple[str, ...]) -> pa.Table:
    """Return the alerts that are told among all of a rule, see :class:`AlertTeller`."""
    return AlertTeller(plan, length, by).tell(alerts)


class AlertTeller:
    """Chooses the alerts of a rule that are told, and counts the others.

    Alerts are gone through by ``range_upper``, and by their signatures where these are equal. It holds those
    that an alert to come may precede, and for each group when an alert was told last, and how many were left
    out since then.

    Parameters
    ----------
    plan : EvaluationPlan
    length : int
        Ticks by which an alert is behind the last one told of its group, at least.
    by : tuple of str
        The columns whose values make a group; nulls are alike.
    """

    def __init__(self, plan: EvaluationPlan, length: int, by: tuple[str, ...]) -> None:
        self._plan, self._length, self._by = plan, length, by
        self._held = plan.output_schema.empty_table()
        self._groups: pa.Table = self._held.select(list(by))
        self._last = self._count = np.zeros(0, dtype=np.int64)
        self.suppressed = 0

    @property
    def holds(self) -> bool:
        """Whether alerts wait."""
        return bool(self._held.num_rows)

    @property
    def size(self) -> int:
        """How many alerts are held, and groups remembered."""
        return int(self._held.num_rows) + len(self._last)

    @property
    def tables(self) -> tuple[pa.Table, pa.Table]:
        """All that it holds: the alerts that wait, and the groups that are remembered."""
        # A table without columns has no rows, and without keys there is one group.
        groups = pa.table(dict(zip(_OF_GROUPS, (self._last, self._count), strict=True)))
        for name in self._by:
            groups = groups.append_column(name, self._groups.column(name))
        return self._held, groups

    def take_over(self, tables: Sequence[pa.Table]) -> None:
        """Go on from the tables of another one."""
        self._held, groups = tables
        self._last, self._count = (np.asarray(groups.column(name).to_numpy()) for name in _OF_GROUPS)
        self._groups = groups.drop_columns(list(_OF_GROUPS))

    def tell(self, alerts: pa.Table, end: int = EVER) -> pa.Table:
        """Take alerts, and return those that are told, in the order given, with :data:`SUPPRESSED`.

        Parameters
        ----------
        alerts : pyarrow.Table
        end : int
            No alert to come has ``range_upper`` before this tick.

        Notes
        -----
        O(n log n) for n alerts that are held or new, and groups that are remembered.
        """
        plan = self._plan
        alerts = alerts if not self._held.num_rows else pa.concat_tables([self._held, alerts])
        time: Int64 = plan.domain.ticks(alerts.column("range_upper"))
        due = np.full(len(time), True) if end == EVER else time < end
        self._held = alerts.filter(pa.array(~due))
        alerts, time = alerts.filter(pa.array(due)), time[due]
        rows = in_order(alerts, [SortKey("range_upper", descending=False), *signature_keys(plan)])
        before = len(self._last)
        groups = self._groups.cast(alerts.select(list(self._by)).schema)
        groups = pa.concat_tables([groups, alerts.select(list(self._by)).take(pa.array(rows))])
        group = np.zeros(before + len(rows), dtype=np.int64)
        for column in groups.columns:
            group = paired(group, nulls_as_key(codes_of([column])[0][0]))
        order = np.argsort(group, kind="stable")
        group = group[order]
        times = np.concatenate((self._last, time[rows]))[order]
        carried = np.concatenate((self._count, np.zeros(len(rows), dtype=np.int64)))[order]
        is_told = np.empty(len(order), dtype=np.bool_)
        left_out = np.empty(len(order), dtype=np.int64)
        with plain_for(plain_seconds(len(order), kernels_of(plan))):
            tell_alerts(group, times, self._length, carried, is_told, left_out)
        self._remember(groups, group, order, times, carried, is_told, end)
        new = is_told & (order >= before)
        self.suppressed += len(rows) - int(new.sum())
        counts = np.zeros(len(rows), dtype=np.int64)
        counts[rows[order[new] - before]] = left_out[new]
        places = np.sort(rows[order[new] - before])
        return alerts.take(pa.array(places)).append_column(SUPPRESSED, pa.array(counts[places]))

    def _remember(
        self,
        groups: pa.Table,
        group: Int64,
        order: Int64,
        times: Int64,
        carried: Int64,
        is_told: NDArray[np.bool_],
        end: int,
    ) -> None:
        """Remember when an alert of each group was told last, if that matters to alerts from ``end`` on."""
        ends = np.flatnonzero(np.diff(group, append=-1)) + 1
        told_at = np.flatnonzero(is_told)
        latest = told_at[np.searchsorted(told_at, ends) - 1]
        count = ends - 1 - latest + carried[latest]
        matters = (count > 0) | (times[latest] > end - self._length)
        latest = latest[matters]
        self._groups = groups.take(pa.array(order[latest])).combine_chunks()
        self._last, self._count = times[latest], count[matters]
