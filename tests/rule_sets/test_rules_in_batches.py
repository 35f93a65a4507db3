"""Rules over a stream that is cut into batches, as Spark does it, tell what they tell of a table."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.rule_sets.test_rule_streams import SCHEMA, TWO, arrived, event, rule_sets
from tests.rule_sets.test_rules_together import comparable
from tests.streaming.batches import Kept, notice, plain
from uncertain_cep.files.blobs import unpacked
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.rule_sets.events_by_type import types_of
from uncertain_cep.rule_sets.named_rules import Rules, suppression_of
from uncertain_cep.rule_sets.rule_changes import HeldRules
from uncertain_cep.rule_sets.rule_parts import RuleParts
from uncertain_cep.rule_sets.rule_pieces import SpreadRule, cut_for_rules
from uncertain_cep.rule_sets.told_alerts import check_suppression
from uncertain_cep.streaming.stream_layout import CLOSE, HEARTBEAT, KIND, StreamLayout, StreamOptions


class RuleBatches:
    """Evaluates the batches of a stream of rules as Spark does, in one process."""

    def __init__(self, rules: Rules, schema: pa.Schema, largest: int, length: int | None = None) -> None:
        self.states: dict[int, Kept] = defaultdict(Kept)
        self.counts: Counter[str] = Counter()
        self.found: list[pa.Table] = []
        self.changed_at: int | None = None
        self._schema_of_events, self._largest = schema, largest
        self.ask(rules, length)

    def ask(self, rules: Rules, length: int | None = None, held: HeldRules | None = None) -> None:
        """Ask rules, with those that the state holds before them."""
        schema, held = self._schema_of_events, held or HeldRules()
        spread: list[SpreadRule] = []
        places = held.followed_by(rules)
        for number, one in enumerate(places):
            rule, plan = one.rule, make_plan(one.rule.query, schema, MatchOptions())
            columns = pa.schema([schema.field(name) for name in plan.required_columns])
            buckets = one.buckets or (2 if rule.suppress is None else 1)
            options = StreamOptions(self._largest, slice_length=one.length or length, buckets=buckets)
            layout = StreamLayout.of(plan, columns, options, rule.query, MatchOptions())
            apart = 0 if rule.suppress is None else check_suppression(plan, rule.suppress)
            spread.append(SpreadRule(rule, layout, f"hash{number}", types_of(plan, schema), apart, 0))
        self.parts = RuleParts.following(held, places, spread)

    def go_on(self, rules: Rules, length: int | None = None) -> None:
        """Begin anew with the state, and other rules."""
        indices = {bucket: kept.index for bucket, kept in self.states.items() if kept.index is not None}
        self.ask(rules, length, HeldRules.of(indices))

    def take(self, *tables: pa.Table) -> None:
        """Take a batch whose rows are in several partitions."""
        pieces: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for table in tables:
            for piece in cut_for_rules(
                *[self._hashed(table)], rules=self.parts.rules, schema=self._schema(table), of_stream=True
            ):
                for row in piece.to_pylist():
                    pieces[row["bucket"]].append(row)
        for bucket, rows in pieces.items():
            report = self.parts.take(bucket, self.states[bucket], rows)
            self.found += [unpacked(blob)[0] for blob in report.blobs]
            self.counts.update({name: count for name, count in report.counts.items() if count})
            self.changed_at = report.since if report.since is not None else self.changed_at

    def _schema(self, table: pa.Table) -> pa.Schema:
        hashes = [pa.field(one.hash, pa.int64()) for one in self.parts.rules]
        return pa.schema([*table.schema, *hashes])

    def _hashed(self, table: pa.Table) -> Sequence[pa.RecordBatch]:
        for one in self.parts.rules:
            keys = one.layout.spread_by
            rows = table.select(list(keys)).to_pylist() if keys else [{}] * table.num_rows
            hashes = [len(repr(sorted(row.items()))) if keys else 0 for row in rows]
            table = table.append_column(one.hash, pa.array(hashes, pa.int64()))
        batches: list[pa.RecordBatch] = table.combine_chunks().to_batches()
        return batches

    def rows(self, kind: str) -> pa.Table:
        """Return all rows of a kind so far."""
        table = pa.concat_tables([self.parts.schema.empty_table(), *self.found])
        return table.filter(pa.compute.equal(table.column(KIND), kind))


@settings(deadline=None)
@given(arrival=arrived(), rules=rule_sets(), length=st.sampled_from([None, 1, 3, 50]), data=st.data())
def test_batches_tell_what_a_table_tells(
    arrival: tuple[pa.Table, int], rules: Rules, length: int | None, data: st.DataObject
) -> None:
    table, largest = arrival
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        try:
            expected = uc.match(table, rules)
            batches = RuleBatches(rules, plain(table).schema, largest, length)
        except (uc.OptionError, uc.TraceError):
            # Some traces hold no sound events, and a stream may refuse what a table does not.
            return
        start, table = 0, plain(table)
        while start < table.num_rows:
            size = data.draw(st.integers(1, 6))
            batches.take(table.slice(start, size // 2), table.slice(start + size // 2, size - size // 2))
            start += size
        batches.take(notice(table.schema, CLOSE))
    assert batches.counts["late"] == 0
    assert batches.counts["events"] == table.num_rows
    alerts = batches.rows("match").select(expected.column_names)
    assert batches.counts["matches"] == alerts.num_rows
    assert comparable(alerts) == comparable(expected)


def test_alerts_that_wait_are_told_before_the_end() -> None:
    (rule,) = uc.rules({"soon": TWO["soon"]})
    batches = RuleBatches(Rules([replace(rule, suppress=suppression_of("5"))]), SCHEMA, 3, 1)

    def take(*rows: dict[str, Any]) -> list[Any]:
        before = len(batches.found)
        batches.take(pa.Table.from_pylist(list(rows), schema=SCHEMA))
        return [(row["b"], row["suppressed"]) for part in batches.found[before:] for row in part.to_pylist()]

    assert take(event("A", 1, 0), event("B", 2, 2, 5), event("B", 3, 4)) == []
    assert take(event("C", 9, 30)) == [(3, 0)]
    assert take(event("A", 4, 40), event("B", 5, 41), event("B", 6, 42)) == []
    assert take(event("C", 10, 90)) == [(5, 1)]


def test_absences_that_are_suppressed_are_told_before_their_slice_ends() -> None:
    (rule,) = uc.rules({"never": TWO["never"]})
    batches = RuleBatches(Rules([replace(rule, suppress=suppression_of("5"))]), SCHEMA, 3)
    batches.take(pa.Table.from_pylist([event("A", 1, 0), event("A", 2, 2), event("A", 3, 9)], schema=SCHEMA))
    alerts = {}
    for tick in (12, 13):
        batches.take(notice(SCHEMA, HEARTBEAT, tick))
        alerts[tick] = [
            tuple(row.values()) for row in batches.rows("match").select(["a", "suppressed"]).to_pylist()
        ]
    # The second one is left out, and counted with the third, which is decided at 13.
    assert alerts == {12: [(1, 0)], 13: [(1, 0), (3, 1)]}


def test_the_bound_is_the_least_of_all_rules() -> None:
    rules = uc.rules({"b": "PATTERN SEQ(B b) WITHIN 1", "a": "PATTERN SEQ(A a) WITHIN 1"})
    batches = RuleBatches(rules, SCHEMA, 0)
    batches.take(pa.Table.from_pylist([event("A", 1, 3)], schema=SCHEMA), notice(SCHEMA, f"{HEARTBEAT}:B", 9))
    assert batches.counts["bound"] == 3


def test_a_late_event_is_told_once_whatever_rules_it_matters_to() -> None:
    batches = RuleBatches(uc.rules(TWO), SCHEMA, 0)
    batches.take(pa.Table.from_pylist([event("A", 1, 10), event("C", 2, 20)], schema=SCHEMA))
    batches.take(
        pa.Table.from_pylist([event("B", 3, 12), event("C", 4, 13), event("B", 5, 21)], schema=SCHEMA)
    )
    late = batches.rows("late").select(["rule", "late_type", "late_id", "range_lower"]).to_pylist()
    assert sorted((row["late_id"], row["late_type"], row["rule"], row["range_lower"]) for row in late) == [
        (3, "B", None, 12), (4, "C", None, 13)
    ]  # fmt: skip
    batches.take(notice(SCHEMA, f"{HEARTBEAT}:B", 30))
    batches.take(notice(SCHEMA, CLOSE))
    assert batches.counts["late"] == 2
    assert batches.rows("match").column("rule").to_pylist() == ["never"]


@pytest.mark.parametrize("change", ["text", "suppress", "one more"])
def test_a_state_of_other_rules_is_refused(change: str) -> None:
    rules = uc.rules(TWO)
    batches = RuleBatches(rules, SCHEMA, 0)
    batches.take(pa.Table.from_pylist([event("A", 1, 10), event("B", 2, 12)], schema=SCHEMA))
    last = replace(rules["never"], suppress=suppression_of("5"))
    changes = {
        "text": uc.rules(TWO | {"never": "PATTERN SEQ(A a, !B n) WITHIN 5"}),
        "suppress": Rules([rules["soon"], last]),
        "one more": uc.rules(TWO | {"then": "PATTERN SEQ(A a, C c) WITHIN 5"}),
    }
    changed = RuleBatches(changes[change], SCHEMA, 0)
    changed.states = batches.states
    with pytest.raises(uc.OptionError, match="the checkpoint is of another stream: its rules") as caught:
        changed.take(pa.Table.from_pylist([event("A", 3, 13)], schema=SCHEMA))
    assert "with match(..., checkpoint=FOLDER) a stream of rules goes on" in caught.value.__notes__[-1]
