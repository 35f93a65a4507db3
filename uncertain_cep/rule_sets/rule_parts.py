"""The state of rules over a stream that is cut into batches: parts by rule, and one that tells late events.

Each rule has parts as a query alone has them (:mod:`uncertain_cep.streaming.held_slices`), and learns the
same of events to come. A late event is left out by each rule, and told by the part behind those of all rules.
A rule with ``suppress`` has one part, which holds its alerts until none to come can be before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import OptionError
from uncertain_cep.files.blobs import packed, unpacked
from uncertain_cep.rule_sets.rule_matching import joint_schema, rows_of
from uncertain_cep.rule_sets.rule_pieces import SpreadRule, named_rule, rule_of
from uncertain_cep.rule_sets.told_alerts import SUPPRESSED, AlertTeller
from uncertain_cep.streaming.held_slices import COUNTED, Report, Store, pass_time, take
from uncertain_cep.streaming.stream_layout import KIND, LATE_ID, LATE_TYPE

__all__ = ["RuleParts", "schema_of_stream"]

_TELLER: Final = -(2**62)
"""The slice under which the state keeps the alerts that wait; others are far behind it."""

_OF_RULES: Final = ("matches", "suppressed", "duplicates", "undecided", "state_rows", "state_bytes")
"""The counters that rules add up; others are told once."""


def schema_of_stream(rules: Sequence[SpreadRule]) -> pa.Schema:
    """Return the columns of a stream of rules: the kind, those of alerts, and those of late events.

    Raises
    ------
    OptionError
        If a column of an alert has the name of one of these.
    """
    alerts = joint_schema((one.rule.name, one.layout.plan.output_schema) for one in rules)
    first = rules[0].layout.output_schema
    for name in ("range_lower", "range_upper"):
        if name not in alerts.names:
            alerts = alerts.append(first.field(name))
    if any(one.rule.suppress is not None for one in rules):
        alerts = alerts.append(pa.field(SUPPRESSED, pa.int64()))
    ends = [first.field(name) for name in (KIND, LATE_TYPE, LATE_ID)]
    taken = {name.lower() for name in alerts.names} & {KIND, LATE_TYPE, LATE_ID}
    if taken:
        raise OptionError(
            f"{', '.join(sorted(taken))}: the rows of a stream have columns of that name: call what RETURN "
            "gives otherwise"
        )
    return pa.schema([ends[0], *alerts, *ends[1:]])


@dataclass(frozen=True)
class RuleParts:
    """The parts of the state of rules over a stream, by their buckets.

    Attributes
    ----------
    rules : tuple of SpreadRule
    schema : pyarrow.Schema
        See :func:`schema_of_stream`.
    """

    rules: tuple[SpreadRule, ...]
    schema: pa.Schema

    @property
    def idle(self) -> tuple[int, int] | None:
        """Milliseconds without events, and the ticks by which the bound moves on then."""
        return self.rules[0].layout.idle

    def take(self, bucket: int, store: Store, pieces: Iterable[Mapping[str, Any]]) -> Report:
        """Take the pieces of a batch for a part."""
        one = rule_of(self.rules, bucket)
        if one is None:
            return self._late(take(self.rules[0].layout, store, pieces))
        with named_rule(one):
            is_new = store.read_index() is None
            return self._told(one, store, take(one.layout, store, pieces), is_new=is_new)

    def pass_time(self, bucket: int, store: Store) -> Report:
        """Move the bound of a part on, as no event has come for a while."""
        one = rule_of(self.rules, bucket)
        if one is None:
            return self._late(pass_time(self.rules[0].layout, store))
        with named_rule(one):
            return self._told(one, store, pass_time(one.layout, store), is_new=False)

    def _late(self, report: Report) -> Report:
        """Return the late events among the results of the part that has all events."""
        columns = ["range_lower", "range_upper", LATE_TYPE, LATE_ID]
        blobs = [self._rows("late", None, unpacked(blob)[0].select(columns)) for blob in report.blobs]
        counts = {name: None if name in _OF_RULES else report.counts[name] for name in COUNTED}
        return Report(blobs, counts)

    def _told(self, one: SpreadRule, store: Store, report: Report, *, is_new: bool) -> Report:
        """Return the alerts of a rule that are told now."""
        tables = [unpacked(blob)[0] for blob in report.blobs]
        tables = [table for table in tables if table.column(KIND)[0].as_py() == "match"]
        plan = one.layout.plan
        matches = [table.select(plan.output_schema.names) for table in tables]
        left_out = 0
        if one.rule.suppress is not None:
            teller = AlertTeller(plan, one.apart, one.rule.suppress.by)
            if not is_new:
                teller.take_over([unpacked(store.read(_TELLER, part))[0] for part in range(2)])
                for part in range(2):
                    store.remove(_TELLER, part)
            whole = pa.concat_tables([plan.output_schema.empty_table(), *matches])
            matches = [teller.tell(whole, report.earliest_end)]
            left_out = teller.suppressed
            for part, table in enumerate(teller.tables):
                store.write(_TELLER, part, packed(table))
        blobs = [self._rows("match", one.rule.name, table) for table in matches if table.num_rows]
        counts = {name: report.counts[name] if name in _OF_RULES else None for name in COUNTED}
        counts["matches"] = sum(table.num_rows for table in matches)
        counts["suppressed"] = left_out
        return Report(blobs, counts, rule=[other.first for other in self.rules].index(one.first))

    def _rows(self, kind: str, rule: str | None, table: pa.Table) -> bytes:
        """Return rows of this schema as a blob; columns that a table lacks are null."""
        columns = pa.schema(list(self.schema)[1:])
        rows = rows_of(rule or "", table, columns)
        if rule is None:
            rows = rows.set_column(0, columns.field(0), pa.nulls(table.num_rows, pa.string()))
        return packed(rows.add_column(0, self.schema.field(0), pa.repeat(pa.scalar(kind), table.num_rows)))
