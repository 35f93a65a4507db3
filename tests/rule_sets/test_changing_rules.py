"""Rules that change in a stream tell what two runs tell that are cut at a tick."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.config import EVER, NEVER
from tests.rule_sets.test_rule_streams import SCHEMA, STREAMED, TWO, arrived, calls, event, rule_sets
from uncertain_cep.plan import MatchOptions
from uncertain_cep.rule_sets.named_rules import Rule, Rules, suppression_of
from uncertain_cep.rule_sets.told_alerts import AlertTeller
from uncertain_cep.streaming.query_evaluation import stream_plan


def cut_answer(rule: Rule, table: pa.Table, since: int, until: int) -> pa.Table:
    """Return the alerts of a rule on a table between two ticks."""
    everything = replace(rule, suppress=None)
    alerts = uc.match(table, Rules([everything]))
    ticks = np.asarray(alerts.column("bucket" if "bucket" in alerts.column_names else "range_upper"))
    alerts = alerts.filter(pa.array((ticks >= since) & (ticks < until))).drop_columns(["rule"])
    if rule.suppress is None:
        return alerts
    plan = stream_plan(rule.query, table.schema, MatchOptions()).plan
    assert isinstance(rule.suppress.length, int)
    return AlertTeller(plan, rule.suppress.length, rule.suppress.by).tell(alerts)


def expected_of(before: Rules, changes: list[tuple[int, Rules]], table: pa.Table) -> list[Any]:
    """Return the alerts of all runs of rules."""
    running = {rule.name: (rule, NEVER) for rule in before}
    runs: list[tuple[Rule, int, int]] = []
    for tick, rules in changes:
        names = {rule.name: rule for rule in rules}
        for name, (rule, since) in list(running.items()):
            if name not in names or text_of(names[name]) != text_of(rule):
                runs.append((rule, since, tick))
                del running[name]
        for name, rule in names.items():
            running.setdefault(name, (rule, tick))
    runs += [(rule, since, EVER) for rule, since in running.values()]
    return [
        {"rule": rule.name, **row}
        for rule, since, until in runs
        for row in cut_answer(rule, table, since, until).to_pylist()
    ]


def text_of(rule: Rule) -> tuple[Any, ...]:
    return rule.query.text, rule.suppress


def in_order(rows: list[dict[str, Any]]) -> list[Any]:
    """Return rows in an order of their own, without nulls, as runs of a rule may have other columns."""
    return sorted(
        [sorted((name, plain(value)) for name, value in row.items() if value is not None) for row in rows],
        key=repr,
    )


@st.composite
def changed(draw: st.DrawFn, rules: Rules) -> Rules:
    """Draw rules some of which are those before, some have a longer window, and some are new."""
    kept = [rule for rule in rules if draw(st.booleans())]
    if draw(st.booleans()):
        kept = [replace(rule, suppress=suppression_of("3")) if rule.suppress else rule for rule in kept]
    names = {rule.name for rule in kept}
    more = [rule for rule in draw(rule_sets()) if rule.name not in names]
    longer = uc.rules({"two": STREAMED["two"].replace("WITHIN 8", "WITHIN 15")})
    return Rules(
        [*kept, *more] + [rule for rule in longer if rule.name not in names | {r.name for r in more}]
    )


@settings(deadline=None)
@given(arrival=arrived(), before=rule_sets(), data=st.data())
def test_updated_rules_are_two_runs_cut_at_a_tick(
    arrival: tuple[pa.Table, int], before: Rules, data: st.DataObject
) -> None:
    table, largest = arrival

    def made(rules: Rules) -> uc.RuleMatcher:
        return uc.RuleMatcher(rules, table.schema, largest_interval=largest)

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        # All events are dropped as soon as no rule needs them.
        patch.setattr("uncertain_cep.streaming.recent_events.FEW_HELD", -(10**6))
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        changes: list[tuple[int, Rules]] = []
        try:
            uc.match(table, before)
            matcher = made(before)
        except (uc.OptionError, uc.TraceError):
            return
        rows: list[dict[str, Any]] = []
        for part in calls(data.draw, table):
            rows += matcher.push(part).to_pylist()
            if data.draw(st.booleans()):
                earlier = [before, *(rules for _, rules in changes)]
                rules = data.draw(changed(earlier[-1]) | st.sampled_from(earlier))
                tick = matcher.update(rules)
                assert tick >= matcher.safe
                changes.append((tick, rules))
            if data.draw(st.booleans()):
                other = made(matcher.rules)
                other.restore(matcher.snapshot())
                matcher = other
        rows += matcher.close().to_pylist()
        expected = expected_of(before, changes, table)
    assert in_order(rows) == in_order(expected)


def plain(value: Any) -> Any:
    """Return a value; a list of one, as rules with lists make of it, as what it holds."""
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    return round(value, 9) if isinstance(value, float) else value


def soon(window: int, **changes: Any) -> Rules:
    (rule,) = uc.rules({"soon": f"PATTERN SEQ(A a, B b) WITHIN {window}"})
    return Rules([replace(rule, **changes)])


def test_a_longer_window_holds_from_where_its_events_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.streaming.recent_events.FEW_HELD", -(10**6))
    matcher = uc.RuleMatcher(soon(5), SCHEMA, largest_interval=0)
    for tick in range(0, 100, 10):
        matcher.push(event("A", tick, tick))
    assert len(matcher._recent) == 1  # type: ignore[arg-type]
    assert matcher.update(soon(4)) == 90
    # Events from tick 87 on are there.
    assert matcher.update(soon(30)) == 87 + 29
    rows = []
    for tick in (105, 115, 116, 119):
        rows += matcher.push(event("B", tick, tick)).to_pylist()
    # The rule before held until 116, with its window of 4 ticks.
    assert [(row["a"], row["b"]) for row in rows] == [(90, 116), (90, 119)]
    assert len(matcher._running) == 1


def test_a_rule_that_comes_back_begins_behind_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.streaming.recent_events.FEW_HELD", -(10**6))
    matcher = uc.RuleMatcher(soon(5), SCHEMA, largest_interval=0)
    for tick in range(0, 100, 10):
        matcher.push(event("A", tick, tick))
    # A longer window begins late, and the short one goes on until then, and again from then on.
    assert [matcher.update(soon(30)), matcher.update(soon(5))] == [87 + 28] * 2
    rows = [row for tick in (92, 116) for row in matcher.push(event("B", tick, tick)).to_pylist()]
    assert [(row["a"], row["b"]) for row in rows + matcher.close().to_pylist()] == [(90, 92)]


def test_heartbeats_of_some_types_move_the_bound_of_rules_that_name_these() -> None:
    matcher = uc.RuleMatcher(uc.rules({"b": "PATTERN SEQ(B b) WITHIN 1"}), SCHEMA, largest_interval=0)
    matcher.push(event("A", 1, 3))
    matcher.heartbeat(9, of_type="B")
    assert (matcher.safe, matcher.update(uc.rules(TWO))) == (9, 9)
    assert matcher.safe == 3


def test_nothing_is_told_twice_or_lost() -> None:
    """A match that ends far behind the bound was told: the rules that follow begin behind it."""
    matcher = uc.RuleMatcher(soon(50), SCHEMA, largest_interval=20)
    rows = matcher.push(
        pa.Table.from_pylist([event("A", 1, 0), event("B", 2, 10, 30)], schema=SCHEMA)
    ).to_pylist()
    assert [row["range_upper"] for row in rows] == [30]
    assert matcher.update(soon(49)) == 31
    rows += matcher.push(event("B", 3, 25)).to_pylist() + matcher.push(event("B", 4, 31)).to_pylist()
    assert [row["b"] for row in rows + matcher.close().to_pylist()] == [2, 3, 4]


def test_rules_that_stay_go_on() -> None:
    matcher = uc.RuleMatcher(uc.rules(TWO), SCHEMA, largest_interval=0)
    matcher.push(event("A", 1, 0))
    before = matcher._running[0]
    assert matcher.update(uc.rules({"soon": TWO["soon"], "b": "PATTERN SEQ(B b) WITHIN 1"})) == 0
    assert matcher._running[0] is before
    assert [rule.name for rule in matcher.rules] == ["soon", "b"]
    assert sorted(matcher.push(event("B", 2, 1)).column("rule").to_pylist()) == ["b", "soon"]
    assert "b" in matcher.alert_schema.names


def test_an_update_that_is_refused_changes_nothing() -> None:
    matcher = uc.RuleMatcher(uc.rules(TWO), SCHEMA, largest_interval=0)
    matcher.push(event("A", 1, 0))
    text = "PATTERN SEQ(A a) WITHIN 2 RETURN UPPER('m') AS b"
    first = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN PROBABILITY AS p BY a"
    for rules, said in (
        (uc.rules({"x": f"{TWO['soon']} LIMIT 3"}), "rule 'x': ORDER BY and LIMIT"),
        (uc.rules({"x": first}), "rule 'x': its answer has no times to change it at"),
        (Rules([]), "there is no rule"),
        (
            uc.rules(TWO | {"x": text}),
            "rules 'soon' and 'x' return b",
        ),
    ):
        with pytest.raises(uc.OptionError, match=said):
            matcher.update(rules)
    assert matcher.push(event("B", 2, 1)).column("rule").to_pylist() == ["soon"]
    with pytest.raises(uc.OptionError, match="rules= takes what"):
        matcher.update([uc.rules(TWO)[0]] * 2)  # type: ignore[arg-type]
    without = uc.RuleMatcher(uc.rules(TWO), SCHEMA)
    with pytest.raises(uc.OptionError, match="update needs largest_interval="):
        without.update(uc.rules(TWO))
