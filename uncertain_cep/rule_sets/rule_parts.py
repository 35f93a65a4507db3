"""The state of rules over a stream that is cut into batches: parts by rule, and one that tells late events.

Each rule has parts as a query alone has them (:mod:`uncertain_cep.streaming.held_slices`), and learns the
same of events to come. A late event is left out by each rule, and told by the part that has all events.
A rule with ``suppress`` has one part, which holds its alerts until none to come can be before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from confidence.config import EVER, NEVER
from uncertain_cep.errors import OptionError
from uncertain_cep.files.blobs import packed, unpacked
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.rule_sets.rule_changes import (
    Change,
    HeldRule,
    HeldRules,
    PartNote,
    columns_as_text,
    cut_column,
    definition_of,
    texts_of,
)
from uncertain_cep.rule_sets.rule_matching import common_column, joint_schema, rows_of
from uncertain_cep.rule_sets.rule_pieces import SpreadRule, named_rule, rule_of
from uncertain_cep.rule_sets.told_alerts import SUPPRESSED, AlertTeller
from uncertain_cep.streaming.held_slices import COUNTED, Report, Store, index_of, pass_time, take
from uncertain_cep.streaming.stream_layout import KIND, LATE_ID, LATE_TYPE, StreamLayout, check_fingerprint

__all__ = ["RuleParts", "schema_of_stream"]

_TELLER: Final = -(2**62)
"""The slice under which the state keeps the alerts that wait; others are far behind it."""

_OF_RULES: Final = ("matches", "suppressed", "duplicates", "undecided", "state_rows", "state_bytes")
"""The counters that rules add up; others are told once."""


def schema_of_stream(rules: Sequence[SpreadRule], before: pa.Schema) -> pa.Schema:
    """Return the columns of a stream of rules: the kind, those of alerts, and those of late events.

    ``before`` has the columns of its rows so far: they keep their types, also if rules that had lists left.

    Raises
    ------
    OptionError
        If a column of an alert has the name of one of these, or one had values of another type before.
    """
    _check_columns(
        ((f"rule {one.rule.name!r} returns", one.layout.plan.output_schema) for one in rules), before
    )
    alerts = joint_schema((one.rule.name, one.layout.plan.output_schema) for one in rules)
    first = rules[0].layout.output_schema
    for name in ("range_lower", "range_upper"):
        if name not in alerts.names:
            alerts = alerts.append(first.field(name))
    if SUPPRESSED not in alerts.names and any(one.rule.suppress is not None for one in rules):
        alerts = alerts.append(pa.field(SUPPRESSED, pa.int64()))
    ends = [first.field(name) for name in (KIND, LATE_TYPE, LATE_ID)]
    taken = {name.lower() for name in alerts.names} & {KIND, LATE_TYPE, LATE_ID}
    if taken:
        raise OptionError(
            f"{', '.join(sorted(taken))}: the rows of a stream have columns of that name: call what RETURN "
            "gives otherwise"
        )
    schema = pa.schema([ends[0], *alerts, *ends[1:]])
    _check_columns([("these events give", schema)], before)
    return pa.schema([before.field(one.name) if one.name in before.names else one for one in schema])


def _check_columns(columns_by_source: Iterable[tuple[str, pa.Schema]], before: pa.Schema) -> None:
    """Raise OptionError if columns have values that are not of the types that they had before."""
    refusals: dict[str, str] = {}
    for source, columns in columns_by_source:
        for column in columns:
            if column.name not in before.names:
                continue
            held = before.field(column.name).type
            if common_column(held, column.type) != held:
                refusals.setdefault(
                    column.name,
                    f"{source} {column.name} as {column.type}, and the stream of this checkpoint has told it "
                    f"as {held}: call the variable, or what RETURN gives, otherwise, or begin with a new "
                    "checkpoint folder and a new output folder",
                )
    if refusals:
        raise OptionError("\n".join(refusals.values()))


@dataclass(frozen=True)
class RuleParts:
    """The parts of the state of rules over a stream, by their buckets.

    Attributes
    ----------
    rules : tuple of SpreadRule
    schema : pyarrow.Schema
        See :func:`schema_of_stream`.
    change : Change
        How the rules differ from those that the state has.
    columns : pyarrow.Schema
        The columns of all rows so far, and of those to come.
    """

    rules: tuple[SpreadRule, ...]
    schema: pa.Schema
    change: Change
    columns: pa.Schema

    @classmethod
    def following(
        cls, held: HeldRules, places: Sequence[HeldRule], spread: Sequence[SpreadRule]
    ) -> RuleParts:
        """Return the parts of rules that go on from a checkpoint, in the places that they have there.

        Raises
        ------
        OptionError
            As :func:`schema_of_stream` and :meth:`HeldRules.change_to`, or if the state is that of other
            options or events.
        """
        rules = tuple(
            replace(one, layout=replace(one.layout, rule=f"{one.rule.name}, suppress {one.rule.suppress}"))
            for one in held.placed(spread, places)
        )
        if held.late:
            check_fingerprint(held.late["fingerprint"], _late_layout(rules).fingerprint)
        for one, place in zip(rules, places, strict=True):
            if place.fingerprint:
                with named_rule(one):
                    check_fingerprint(place.fingerprint, one.layout.fingerprint)
        schema = schema_of_stream(rules, held.columns)
        columns = pa.unify_schemas([held.columns, schema])
        return cls(rules, schema, held.change_to(rules), columns)

    @property
    def idle(self) -> tuple[int, int] | None:
        """Milliseconds without events, and the ticks by which the bound moves on then."""
        return self.rules[0].layout.idle

    def take(self, bucket: int, store: Store, pieces: Iterable[Mapping[str, Any]]) -> Report:
        """Take the pieces of a batch for a part."""
        try:
            return self._taken(bucket, store, pieces)
        except OptionError as error:
            if not self.change.before:
                error.add_note(
                    "with match(..., checkpoint=FOLDER) a stream of rules goes on with other rules"
                )
            raise

    def _taken(self, bucket: int, store: Store, pieces: Iterable[Mapping[str, Any]]) -> Report:
        index = index_of(store)
        one, note = rule_of(self.rules, bucket), self.change.note_of(index)
        if one is None:
            texts = texts_of(self.rules)
            self.change.check_rules(note, texts)
            report = take(_late_layout(self.rules), store, index, pieces)
            if note is None or note.changes < self.change.number:
                note = self.change.begun(store, texts, columns_as_text(self.columns))
            return self._late(report, note)
        with named_rule(one):
            if note is not None:
                report = take(one.layout, store, index, pieces)
                note = self.change.gone_on(store, note, leaves=one.leaves)
                return self._told(one, store, report, note, is_new=False)
            if one.leaves:
                # This part has ended.
                return self._nothing(one)
            report = take(replace(one.layout, begun=self.change.clock), store, None, pieces)
            note = self.change.begun(store, definition_of(one.rule, one.first))
            return self._told(one, store, report, note, is_new=True)

    def pass_time(self, bucket: int, store: Store) -> Report:
        """Move the bound of a part on, as no event has come for a while.

        Where rules have changed it waits for the first events, as parts that are new have no state yet.
        """
        index = index_of(store)
        one, note = rule_of(self.rules, bucket), self.change.note_of(index)
        if note is None or note.changes < self.change.number:
            return self._nothing(one)
        if one is None:
            return self._late(pass_time(_late_layout(self.rules), store, index), note)
        with named_rule(one):
            return self._told(one, store, pass_time(one.layout, store, index), note, is_new=False)

    def _place(self, one: SpreadRule) -> int:
        return [other.first for other in self.rules].index(one.first)

    def _nothing(self, one: SpreadRule | None) -> Report:
        return Report([], dict.fromkeys(COUNTED), rule=None if one is None else self._place(one))

    def _late(self, report: Report, note: PartNote) -> Report:
        """Return the late events among the results of the part that has all events.

        The bound on events to come is the least of all rules, as heartbeats may be for some types alone.
        """
        columns = ["range_lower", "range_upper", LATE_TYPE, LATE_ID]
        blobs = [self._rows("late", None, unpacked(blob)[0].select(columns)) for blob in report.blobs]
        counts = {name: None if name in _OF_RULES else report.counts[name] for name in COUNTED}
        assert report.clock is not None
        counts["bound"] = min(report.clock.bound(one.layout.types) for one in self.rules)
        return Report(blobs, counts, since=None if note.since == NEVER else note.since)

    def _told(self, one: SpreadRule, store: Store, report: Report, note: PartNote, *, is_new: bool) -> Report:
        """Return the alerts of a rule that are told now; drop the state of one that has ended."""
        tables = [unpacked(blob)[0] for blob in report.blobs]
        tables = [table for table in tables if table.column(KIND)[0].as_py() == "match"]
        plan = one.layout.plan
        matches = [_between(plan, table.select(plan.output_schema.names), note) for table in tables]
        left_out, waits = 0, False
        if one.rule.suppress is not None:
            teller = AlertTeller(plan, one.apart, one.rule.suppress.by)
            if not is_new:
                teller.take_over([unpacked(store.read(_TELLER, part))[0] for part in range(2)])
                for part in range(2):
                    store.remove(_TELLER, part)
            whole = pa.concat_tables([plan.output_schema.empty_table(), *matches])
            matches = [teller.tell(whole, report.earliest_end)]
            left_out, waits = teller.suppressed, teller.holds
            for part, table in enumerate(teller.tables):
                store.write(_TELLER, part, packed(table))
        blobs = [self._rows("match", one.rule.name, table) for table in matches if table.num_rows]
        counts = {name: report.counts[name] if name in _OF_RULES else None for name in COUNTED}
        counts["matches"] = sum(table.num_rows for table in matches)
        counts["suppressed"] = left_out
        if one.leaves and not waits and _earliest_cut(one.layout, report) >= note.until:
            store.clear()
            counts["state_rows"] = counts["state_bytes"] = 0
        return Report(blobs, counts, rule=self._place(one))

    def _rows(self, kind: str, rule: str | None, table: pa.Table) -> bytes:
        """Return rows of this schema as a blob; columns that a table lacks are null."""
        columns = pa.schema(list(self.schema)[1:])
        rows = rows_of(rule or "", table, columns)
        if rule is None:
            rows = rows.set_column(0, columns.field(0), pa.nulls(table.num_rows, pa.string()))
        return packed(rows.add_column(0, self.schema.field(0), pa.repeat(pa.scalar(kind), table.num_rows)))


def _late_layout(rules: Sequence[SpreadRule]) -> StreamLayout:
    return replace(rules[0].layout, only_late=True)


def _between(plan: EvaluationPlan, alerts: pa.Table, note: PartNote) -> pa.Table:
    """Return the alerts that are of a rule, as its note says."""
    name = cut_column(plan)
    if name is None or (note.since, note.until) == (NEVER, EVER):
        return alerts
    ticks = plan.domain.ticks(alerts.column(name))
    return alerts.filter(pa.array((ticks >= note.since) & (ticks < note.until)))


def _earliest_cut(layout: StreamLayout, report: Report) -> int:
    """Return a tick before which no alert to come ends, or no bucket to come begins."""
    if not layout.has_buckets:
        return report.earliest_end
    return report.earliest_end // layout.length * layout.length
