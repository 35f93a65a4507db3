"""Rules that change where a stream in batches goes on tell what two runs tell that are cut at a tick."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.config import EVER
from tests.rule_sets.test_changing_rules import changed, expected_of, in_order, soon
from tests.rule_sets.test_rule_streams import SCHEMA, TWO, arrived, event, rule_sets
from tests.rule_sets.test_rules_in_batches import RuleBatches
from tests.streaming.batches import Kept, notice, plain
from uncertain_cep.query import query_of, values_of
from uncertain_cep.query.syntax import Untyped
from uncertain_cep.rule_sets.named_rules import Rule, Rules, suppression_of
from uncertain_cep.rule_sets.rule_changes import HeldRule, definition_of, text_of
from uncertain_cep.streaming.stream_layout import CLOSE, HEARTBEAT, KIND, LATE_ID, LATE_TYPE

STEP: Final = 25
"""Ticks between copies of a trace, so that the tick of a change lies within the stream."""


def told(batches: RuleBatches) -> list[dict[str, Any]]:
    """Return all alerts; with other rules a column may be a list, and no longer one with rules after them."""
    rows = [row for table in batches.found for row in table.to_pylist() if row[KIND] == "match"]
    return [{name: row[name] for name in row.keys() - {KIND, LATE_TYPE, LATE_ID}} for row in rows]


def copies(table: pa.Table, count: int) -> Iterator[pa.Table]:
    """Yield a trace, and later ones that are the same but for their ids."""
    for number in range(count):
        columns = {name: table.column(name) for name in table.column_names}
        for name, step in (("id", 1000), ("lower", STEP), ("upper", STEP)):
            columns[name] = pa.compute.add(columns[name], number * step)
        yield pa.table(columns, schema=table.schema)


@settings(deadline=None)
@given(arrival=arrived(), before=rule_sets(), length=st.sampled_from([None, 1, 3, 50]), data=st.data())
def test_changed_rules_are_two_runs_cut_at_a_tick(
    arrival: tuple[pa.Table, int], before: Rules, length: int | None, data: st.DataObject
) -> None:
    table, largest = arrival
    changes: list[tuple[int, Rules]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        try:
            table = pa.concat_tables(copies(plain(table), 4))
            uc.match(table, before)
            batches = RuleBatches(before, table.schema, largest, length)
        except (uc.OptionError, uc.TraceError):
            return
        start, rules = 0, before
        while start < table.num_rows:
            if changing := data.draw(st.booleans()):
                next_rules = data.draw(changed(rules))
                try:
                    batches.go_on(next_rules, length)
                except uc.OptionError as error:
                    if "has told it as" not in str(error):
                        raise
                    changing = False
                else:
                    rules = next_rules
            size = data.draw(st.integers(1, 12))
            batches.take(table.slice(start, size))
            start += size
            if changing and batches.changed_at is not None:
                changes.append((batches.changed_at, rules))
            elif not changes:
                # There was no state, or the rules were the same.
                before = rules
        batches.take(notice(table.schema, CLOSE))
        expected = expected_of(before, changes, table)
    assert batches.counts["late"] == 0
    assert in_order(told(batches)) == in_order(expected)
    states = [kept for bucket, kept in batches.states.items() if kept.index is not None]
    assert sum(len(kept.blobs) for kept in states) == 2 * sum(rule.suppress is not None for rule in rules)


def pairs(count: int, largest: int = 2) -> pa.Table:
    """Return an A and a B of each value from 0 to 3, again and again, some after a while."""
    rows = []
    for number in range(count):
        tick = 4 * number
        rows.append({**event("A", 2 * number, tick, tick + number % (largest + 1)), "v": number % 4})
        rows.append({**event("B", 2 * number + 1, tick + 3, tick + 3), "v": number % 4})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


CHANGES: Final = {
    "added": (TWO, {**TWO, "again": "PATTERN SEQ(B a, B b) WITHIN 9"}),
    "removed": (TWO, {"soon": TWO["soon"]}),
    "constant": (
        {"high": "PATTERN SEQ(A a, B b) WHERE a.v > 2 WITHIN 6"},
        {"high": "PATTERN SEQ(A a, B b) WHERE a.v > 0 WITHIN 6"},
    ),
    "longer window": (TWO, {**TWO, "soon": "PATTERN SEQ(A a, B b) WITHIN 30"}),
    "other order": (TWO, dict(reversed(TWO.items()))),
    "buckets": (
        {"likely": "PATTERN SEQ(A a, B b) WITHIN 6 RETURN PROBABILITY EVERY 5"},
        {"likely": "PATTERN SEQ(A a, B b) WHERE a.v > 1 WITHIN 6 RETURN PROBABILITY EVERY 5"},
    ),
}


@pytest.mark.parametrize("case", sorted(CHANGES))
def test_the_tick_follows_from_the_first_batch_and_the_new_rules(case: str) -> None:
    before, after = (uc.rules(queries) for queries in CHANGES[case])
    table = pairs(40)
    batches = RuleBatches(before, SCHEMA, 2)
    batches.take(table.slice(0, 10))
    batches.go_on(after)
    batches.take(table.slice(10, 10))
    reach = {"added": 8, "removed": 0, "constant": 5, "longer window": 29, "buckets": 5}.get(case)
    newest = 39
    tick = None if reach is None else newest + 2 * 2 + 1 + reach
    assert batches.changed_at == tick
    for start in range(20, 80, 10):
        # The rules are the same from now on.
        batches.go_on(after)
        batches.take(table.slice(start, 10))
    batches.take(notice(SCHEMA, CLOSE))
    assert batches.changed_at == tick
    expected = expected_of(before, [] if tick is None else [(tick, after)], table)
    assert in_order(told(batches)) == in_order(expected)
    # A rule that has left leaves nothing behind.
    assert len([kept for kept in batches.states.values() if kept.index is not None]) == 1 + 2 * len(after)


def test_a_rule_that_comes_back_begins_behind_its_end() -> None:
    """Also where a shorter reach would begin sooner; a heartbeat moves the tick."""
    long, short = soon(30), soon(4)
    table = pairs(40)
    batches = RuleBatches(short, SCHEMA, 2)
    batches.take(table.slice(0, 10))
    ticks = []
    for number, rules in enumerate((long, short), 1):
        batches.go_on(rules)
        batches.take(table.slice(10 * number, 10))
        ticks.append(batches.changed_at)
    assert ticks == [39 + 5 + 29, 39 + 5 + 29]
    batches.take(table.slice(30, 10), notice(SCHEMA, HEARTBEAT, 79))
    batches.go_on(Rules([replace(short[0], suppress=suppression_of("9"))]))
    batches.take(notice(SCHEMA, HEARTBEAT, 130))
    assert batches.changed_at == 130
    batches.take(table.slice(66, 14))
    batches.take(notice(SCHEMA, CLOSE))
    changes = [(73, long), (73, short), (130, batches_rules(batches))]
    assert in_order(told(batches)) == in_order(
        expected_of(short, changes, pa.concat_tables([table.slice(0, 40), table.slice(66, 14)]))
    )


def batches_rules(batches: RuleBatches) -> Rules:
    return Rules([one.rule for one in batches.parts.rules if not one.leaves])


def test_a_state_that_went_on_is_refused() -> None:
    table = pairs(20)
    before, after = uc.rules(CHANGES["added"][0]), uc.rules(CHANGES["added"][1])
    batches = RuleBatches(before, SCHEMA, 2)
    batches.take(table.slice(0, 10))
    first = batches.parts
    batches.go_on(after)
    changed_parts, batches.parts = batches.parts, first
    batches.take(table.slice(10, 10))
    batches.parts = changed_parts
    with pytest.raises(uc.OptionError, match="has gone on since match"):
        batches.take(table.slice(20, 10))
    batches.go_on(after)
    batches.take(table.slice(20, 10))
    batches.parts = first
    with pytest.raises(uc.OptionError, match="the rules of this checkpoint have changed"):
        batches.take(table.slice(30, 10))


def test_state_that_has_no_rules_is_refused() -> None:
    batches = RuleBatches(uc.rules(TWO), SCHEMA, 2)
    batches.take(pairs(5))
    for kept in batches.states.values():
        assert kept.index is not None
        index = json.loads(kept.index)
        del index["note"]
        kept.index = json.dumps(index)
    with pytest.raises(uc.OptionError, match="not one of a stream of rules"):
        batches.go_on(soon(30))
    with pytest.raises(uc.OptionError, match="not one of a stream of rules"):
        batches.take(pairs(5))


def test_silence_changes_no_rules() -> None:
    """The parts of new rules have no clock yet that it could move."""
    batches = RuleBatches(uc.rules(TWO), SCHEMA, 2)
    batches.take(pairs(5))
    batches.go_on(soon(30))
    for bucket, kept in [*batches.states.items()]:
        index = kept.index
        report = batches.parts.pass_time(bucket, kept)
        assert (report.blobs, kept.index) == ([], index)


def test_what_cannot_be_changed_is_refused() -> None:
    timeless = uc.rules({"timeless": "PATTERN SEQ(A a, B b) WITHIN 4 RETURN PROBABILITY BY a"})
    batches = RuleBatches(uc.rules(TWO), SCHEMA, 2)
    batches.take(pairs(5))
    with pytest.raises(uc.OptionError, match="rule 'timeless': its answer has no times to change it at"):
        batches.go_on(timeless)
    batches.take(notice(SCHEMA, CLOSE))
    with pytest.raises(uc.OptionError, match="this stream was closed"):
        batches.go_on(soon(30))
    batches.go_on(uc.rules(TWO))


def read_back(rule: Rule) -> HeldRule:
    note = {"changes": 0, "since": 0, "until": EVER, "about": definition_of(rule, 7)}
    index = {"fingerprint": {"buckets": 2, "slice_length": 30}, "note": note}
    return HeldRule.of(json.loads(json.dumps(index)))


@pytest.mark.parametrize(
    "value",
    [
        3, 2**70, 2.5, "x'y", True, None, [1, "a", None], Untyped("7"), datetime(2024, 1, 1),
        timedelta(seconds=5), np.timedelta64(5001, "ns"),
    ],
)  # fmt: skip
def test_a_rule_is_read_back_as_it_was(value: Any) -> None:
    where = "IN $x" if isinstance(value, list) else "= $x"
    text = f"PATTERN SEQ(A a) WHERE a.v {where} WITHIN 5"
    if isinstance(value, timedelta | np.timedelta64):
        text = "PATTERN SEQ(A a) WITHIN $x"
    (rule,) = uc.rules({"one": query_of(text, values_of({"x": value}))})
    rule = replace(rule, suppress=suppression_of("10 min BY v, k"))
    held = read_back(rule)
    assert held == HeldRule(rule, 7, {"buckets": 2, "slice_length": 30})
    ((_, read),), ((_, written),) = held.rule.query.values, rule.query.values
    assert type(read) is type(written)


def test_rules_of_other_languages_are_read_back_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "one.yml").write_text(
        "title: Ones\nname: ones\nlogsource: { product: x }\n"
        "detection: { selection: { v: 1, key|startswith: a }, condition: selection }"
    )
    (tmp_path / "two.sql").write_text(
        "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY key ORDER BY at MEASURES A.v AS v "
        "ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) "
        "WITHIN INTERVAL '5' MINUTE DEFINE A AS type = 'A', B AS v > 2)"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        rules = uc.rules(tmp_path)
    assert len(rules) == 2
    for rule in rules:
        held = read_back(rule).rule
        assert (held.name, held.query, text_of(held)) == (rule.name, rule.query, text_of(rule))


LISTED: Final = {"soon": TWO["soon"], "many": "PATTERN SEQ(A a, B+ b[], C c) WITHIN 6"}
"""``b`` is a list where the rule ``many`` is asked."""


def test_a_column_keeps_its_type_while_rules_come_and_go() -> None:
    """A list stays one when no rule has lists any more, and its rule has told its last alert."""
    table, after = pairs(40), uc.rules({"soon": TWO["soon"]})
    batches = RuleBatches(uc.rules(LISTED), SCHEMA, 2)
    types = set()
    for start in range(0, 80, 20):
        batches.take(table.slice(start, 20))
        types.add(batches.parts.schema.field("b").type)
        batches.go_on(after)
    assert [one.rule.name for one in batches.parts.rules] == ["soon"]
    assert types == {pa.list_(pa.int64())}
    batches.take(notice(SCHEMA, CLOSE))
    alerts = {(row["a"], *row["b"]) for row in told(batches)}
    assert alerts == {(row["a"], row["b"]) for row in uc.match(table, after).to_pylist()}


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            LISTED,
            "rule 'many' returns b as list<item: int64>, and the stream of this checkpoint has told it as",
        ),
        (
            {"soon": "PATTERN SEQ(A a, B b) WITHIN 6 RETURN a.type AS x, b.v / 2 AS y"},
            "rule 'soon' returns x as string, .* folder\nrule 'soon' returns y as double, .* it as int64",
        ),
    ],
)
def test_a_column_of_another_type_is_refused_before_the_stream_runs(rules: dict[str, str], said: str) -> None:
    before = {"soon": f"{TWO['soon']} RETURN a.v AS x, b.v AS y"}
    batches = RuleBatches(uc.rules(before), SCHEMA, 2)
    batches.take(pairs(5))
    with pytest.raises(uc.OptionError, match=said):
        batches.go_on(uc.rules(rules))


def test_other_options_and_events_are_refused_before_the_stream_runs() -> None:
    batches = RuleBatches(uc.rules(TWO), SCHEMA, 2)
    batches.take(pairs(5))
    wider = SCHEMA.set(SCHEMA.get_field_index("id"), pa.field("id", pa.string()))
    for schema, largest, said in (
        (SCHEMA, 3, "largest_interval was 2 and is 3"),
        (wider, 2, "schema was .*'id': 'int64'.* and is .*'id': 'string'"),
    ):
        other = RuleBatches(uc.rules(TWO), schema, largest)
        other.states = batches.states
        with pytest.raises(uc.OptionError, match=f"the checkpoint is of another stream: {said}"):
            other.go_on(uc.rules(TWO))


@pytest.mark.parametrize("after", [TWO, {"soon": "PATTERN SEQ(A a, B b) WITHIN 30"}])
def test_another_checkpoint_than_that_which_was_read_is_refused(after: dict[str, str]) -> None:
    batches = RuleBatches(uc.rules(TWO), SCHEMA, 2)
    batches.take(pairs(5))
    batches.go_on(uc.rules(after))
    batches.states.clear()
    with pytest.raises(uc.OptionError, match="checkpointLocation is not the folder that match"):
        batches.take(pairs(5))


def test_a_batch_reads_the_index_of_a_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = RuleBatches(uc.rules(TWO), SCHEMA, 2)
    batches.take(pairs(5))
    read: list[Kept] = []

    def read_index(kept: Kept) -> str | None:
        read.append(kept)
        return kept.index

    monkeypatch.setattr(Kept, "read_index", read_index)
    batches.take(pairs(10).slice(10))
    batches.take(notice(SCHEMA, HEARTBEAT, 90))
    assert len(read) == 2 * len(batches.states)
