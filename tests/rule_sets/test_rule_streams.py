"""A stream of rules tells what the rules tell of a table, and what each has alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.rule_sets.test_rules_together import QUERIES, comparable, traces
from tests.streaming.arrivals import by_tables
from uncertain_cep.config.limits import LONGEST_PMF_CHAIN
from uncertain_cep.rule_sets.named_rules import Rules, suppression_of

STREAMED: Final = {
    **{name: query for name, query in QUERIES.items() if name not in ("best", "apart", "counted")},
    "likely": "PATTERN SEQ(A a, C c) WITHIN 8 RETURN PROBABILITY AS p EVERY 5 ticks",
}
SUPPRESSIBLE: Final = [name for name in sorted(STREAMED) if name != "likely"]
SCHEMA: Final = pa.schema(
    [(name, pa.string() if name == "type" else pa.int64()) for name in ("type", "id", "lower", "upper", "v")]
)


@st.composite
def rule_sets(draw: st.DrawFn) -> Rules:
    """Draw a few rules, some of which suppress alerts."""
    names = draw(st.lists(st.sampled_from(sorted(STREAMED)), min_size=1, max_size=5, unique=True))
    rules = []
    for rule in uc.rules({name: STREAMED[name] for name in names}):
        suppresses = rule.name in SUPPRESSIBLE and draw(st.booleans())
        length = suppression_of(f"{draw(st.integers(0, 9))} ticks{' BY v' * (rule.name == 'joined')}")
        rules.append(replace(rule, suppress=length if suppresses else None))
    return Rules(rules)


@st.composite
def arrived(draw: st.DrawFn) -> tuple[pa.Table, int]:
    """Draw events in an order in which they can arrive, and the largest interval that is said of them."""
    trace = draw(traces())
    rows = trace.select(["lower", "upper"]).to_pylist()
    times = [draw(st.integers(row["lower"], row["upper"])) for row in rows]
    longest = max((row["upper"] - row["lower"] for row in rows), default=0)
    order = sorted(range(len(rows)), key=lambda i: times[i])
    return trace.take(pa.array(order, pa.int64())), longest + draw(st.sampled_from([0, 2]))


def calls(draw: Any, table: pa.Table) -> Iterator[Any]:
    """Yield the events in calls of a drawn size, some of single events as mappings."""
    start = 0
    while start < table.num_rows:
        size = draw(st.integers(1, 4))
        part = table.slice(start, size)
        start += size
        if size == 1 and draw(st.booleans()):
            yield part.to_pylist()[0]
        else:
            yield part


def streamed(matcher: uc.RuleMatcher, parts: Iterator[Any]) -> pa.Table:
    batches = [matcher.push(part) for part in parts]
    return pa.Table.from_batches([*batches, matcher.close()], matcher.alert_schema)


def of_rule(alerts: pa.Table, name: str) -> pa.Table:
    return alerts.filter(pa.array([rule == name for rule in alerts.column("rule").to_pylist()], pa.bool_()))


@settings(deadline=None)
@given(arrival=arrived(), rules=rule_sets(), data=st.data())
def test_a_stream_of_rules_is_a_table_of_rules(
    arrival: tuple[pa.Table, int], rules: Rules, data: st.DataObject
) -> None:
    """Also where alerts are told before they are final, and by release."""
    table, largest = arrival
    when = data.draw(st.sampled_from(["final", "certain"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        try:
            expected = uc.match(table, rules)
            matcher = uc.RuleMatcher(rules, table.schema, largest_interval=largest, when=when)
        except (uc.OptionError, uc.TraceError):
            # Some traces hold no sound events, and a stream may refuse what a table does not.
            return
        batches = []
        for part in calls(data.draw, table):
            batches.append(matcher.push(part))
            if data.draw(st.booleans()):
                batches.append(matcher.release())
        alerts = pa.Table.from_batches([*batches, matcher.close()], matcher.alert_schema)
    assert matcher.late_count == 0
    assert matcher.state_size == sum(one.teller.size for one in matcher._running if one.teller is not None)
    for rule in rules:
        part = of_rule(alerts, rule.name)
        assert comparable(part.select(expected.column_names)) == comparable(of_rule(expected, rule.name))


@settings(deadline=None)
@given(arrival=arrived(), rules=rule_sets(), data=st.data())
def test_copies_that_are_dropped_change_no_alert(
    arrival: tuple[pa.Table, int], rules: Rules, data: st.DataObject
) -> None:
    """Wherever they come, also behind a snapshot: one is dropped, or late."""
    table, largest = arrival
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        try:
            alone = streamed(uc.RuleMatcher(rules, table.schema, largest_interval=largest), iter([table]))
        except (uc.OptionError, uc.TraceError):
            return
        copies = data.draw(st.lists(st.integers(0, max(table.num_rows - 1, 0)), max_size=4 * table.num_rows))
        order = (
            sorted([*range(table.num_rows), *copies])
            if data.draw(st.booleans())
            else [*range(table.num_rows), *copies]
        )

        def made() -> uc.RuleMatcher:
            return uc.RuleMatcher(rules, table.schema, largest_interval=largest, duplicates="drop")

        matcher, batches = made(), []
        for part in calls(data.draw, table.take(pa.array(order, pa.int64()))):
            batches.append(matcher.push(part))
            if data.draw(st.booleans()):
                snapshot = matcher.snapshot()
                matcher = made()
                matcher.restore(snapshot)
        alerts = pa.Table.from_batches([*batches, matcher.close()], matcher.alert_schema)
    assert matcher.duplicate_count + matcher.late_count == len(copies)
    assert comparable(alerts) == comparable(alone)


@settings(deadline=None)
@given(arrival=arrived(), rules=rule_sets(), data=st.data())
def test_each_rule_tells_what_it_tells_alone(
    arrival: tuple[pa.Table, int], rules: Rules, data: st.DataObject
) -> None:
    """And a matcher that goes on from a snapshot tells the rest."""
    table, largest = arrival
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        try:
            matcher = uc.RuleMatcher(rules, table.schema, largest_interval=largest)
            uc.match(table, rules)
        except (uc.OptionError, uc.TraceError):
            return
        batches = []
        for part in calls(data.draw, table):
            batches.append(matcher.push(part))
            if data.draw(st.booleans()):
                snapshot = matcher.snapshot()
                matcher = uc.RuleMatcher(rules, table.schema, largest_interval=largest)
                matcher.restore(snapshot)
        alerts = pa.Table.from_batches([*batches, matcher.close()], matcher.alert_schema)
        for rule in rules:
            one = uc.RuleMatcher(Rules([rule]), table.schema, largest_interval=largest)
            alone = streamed(one, iter([table]))
            part = of_rule(alerts, rule.name).select(alone.column_names)
            assert comparable(part, unpacked=rule.name != "list") == comparable(
                alone, unpacked=rule.name != "list"
            )


def event(kind: str, id: int, lower: int, upper: int | None = None, v: int = 0) -> dict[str, Any]:
    return {"type": kind, "id": id, "lower": lower, "upper": lower if upper is None else upper, "v": v}


TWO: Final = {"soon": "PATTERN SEQ(A a, B b) WITHIN 8", "never": "PATTERN SEQ(A a, !B n) WITHIN 4"}


def test_alerts_come_when_they_are_final() -> None:
    matcher = uc.RuleMatcher(uc.rules(TWO), SCHEMA, largest_interval=0)
    assert matcher.push(event("A", 1, 0)).num_rows == 0
    assert matcher.push(event("B", 2, 2)).column("rule").to_pylist() == ["soon"]
    assert matcher.push(event("A", 3, 10)).num_rows == 0
    assert matcher.push(event("C", 4, 13)).num_rows == 0
    alerts = matcher.heartbeat(14)
    assert alerts.to_pylist() == [
        {"rule": "never", "a": 3, "b": None, "range_lower": 10, "range_upper": 10, "confidence": 1.0}
    ]
    assert matcher.close().num_rows == 0
    with pytest.raises(uc.OptionError, match="the stream was closed: make another RuleMatcher"):
        matcher.push(event("A", 9, 20))


def test_suppressed_alerts_wait_for_those_that_may_come_before() -> None:
    (rule,) = uc.rules({"soon": TWO["soon"]})
    matcher = uc.RuleMatcher(Rules([replace(rule, suppress=suppression_of("5"))]), SCHEMA, largest_interval=3)
    matcher.push(event("A", 1, 0))
    assert matcher.push(event("B", 2, 2, 5)).num_rows == 0
    assert matcher.push(event("B", 3, 4)).num_rows == 0
    rows = matcher.heartbeat(6).select(["b", "range_upper", "suppressed"]).to_pylist()
    assert rows == [{"b": 3, "range_upper": 4, "suppressed": 0}]
    matcher.push(event("A", 4, 9))
    matcher.push(event("B", 5, 10))
    assert matcher.close().select(["b", "suppressed"]).to_pylist() == [{"b": 5, "suppressed": 1}]


def test_groups_that_do_not_matter_any_more_are_forgotten() -> None:
    (rule,) = uc.rules({"one": "PATTERN SEQ(A a) WITHIN 3 RETURN a.v AS v"})
    matcher = uc.RuleMatcher(
        Rules([replace(rule, suppress=suppression_of("5 BY v"))]), SCHEMA, largest_interval=0
    )
    told_rows = 0
    for tick in range(0, 10_000, 100):
        columns = range(tick, tick + 100)
        table = pa.table([["A"] * 100, columns, columns, columns, columns], schema=SCHEMA)
        told_rows += matcher.push(table).num_rows
        assert matcher.state_size <= 10
    assert told_rows + matcher.close().num_rows == 10_000


def test_late_events_are_counted_once_for_all_rules() -> None:
    matcher = uc.RuleMatcher(uc.rules(TWO), SCHEMA, largest_interval=0)
    matcher.push(event("A", 1, 5))
    matcher.push(event("B", 2, 3))
    matcher.push(pa.Table.from_pylist([event("B", 3, 2), event("B", 4, 6)], schema=SCHEMA))
    assert (matcher.late_count, matcher.take_late().column("id").to_pylist()) == (2, [2, 3])
    assert matcher.late.num_rows == 0


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("duplicates", ["error", "drop"])
def test_an_id_in_use_is_refused_and_nothing_else(alone: bool, duplicates: str) -> None:
    """And a copy is only counted, where copies are dropped."""
    matcher = uc.RuleMatcher(uc.rules(TWO), SCHEMA, largest_interval=0, duplicates=duplicates)
    matcher = matcher if alone else by_tables(matcher)
    rows, refused = [], []
    for row in (event("A", 1, 0), *[event("B", 2, 1)] * 2, event("B", 2, 2), event("B", 3, 3)):
        try:
            one: Any = row if alone else pa.Table.from_pylist([row], schema=SCHEMA)
            rows += matcher.push(one).to_pylist()
        except uc.TraceError as error:
            refused += [fault.value for fault in error.faults]
    rows += matcher.close().to_pylist()
    assert [(row["rule"], row["b"]) for row in rows] == [("soon", 2), ("soon", 3)]
    assert matcher.duplicate_count == 2
    assert refused == (["2", "2"] if duplicates == "error" else ["2"])


def test_what_a_stream_cannot_have_names_its_rule() -> None:
    soon = TWO["soon"]
    faulty = uc.rules({"x": f"{soon} LIMIT 3", "y": soon, "z": f"{soon} OUTPUT NON OVERLAPPING"})
    with pytest.raises(uc.OptionError) as caught:
        uc.RuleMatcher(faulty, SCHEMA)
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["rule 'x'", "rule 'z'"]
    unknown = uc.rules({name: f"PATTERN SEQ(A a, B b) WHERE a.{name} > 1 WITHIN 8" for name in "pq"})
    with pytest.raises(uc.QueryError) as errors:
        uc.RuleMatcher(unknown, SCHEMA)
    assert {fault.message.split(":")[0] for fault in errors.value.faults} == {"rule 'p'", "rule 'q'"}
    with pytest.raises(uc.OptionError, match="there is no rule"):
        uc.RuleMatcher(Rules([]), SCHEMA)
    with pytest.raises(uc.OptionError, match="duplicates='keep' is unknown"):
        uc.RuleMatcher(uc.rules(TWO), SCHEMA, duplicates="keep")


WITH_PMF: Final = SCHEMA.append(pa.field("pmf", pa.list_(pa.float64())))
FAR: Final = 2 * LONGEST_PMF_CHAIN


def test_an_error_ends_its_rule_and_no_other() -> None:
    """A rule that suppresses tells what it held; a snapshot keeps the failure; an update asks it again."""
    far = f"PATTERN SEQ(A a, B b) WITHIN {FAR}"
    rules = uc.rules({"far": far, "held": far, **TWO})
    rules = Rules(
        [replace(rule, suppress=suppression_of("5") if rule.name == "held" else None) for rule in rules]
    )

    def made() -> uc.RuleMatcher:
        return uc.RuleMatcher(rules, WITH_PMF, largest_interval=FAR)

    matcher = made()
    matcher.push(pa.Table.from_pylist([event("A", 1, 0), event("B", 2, 3)], schema=WITH_PMF))
    spread = {**event("A", 3, 4, 5), "pmf": [0.5, 0.5]}
    with pytest.warns(uc.UncertainCepWarning, match="rule '(far|held)' has failed") as caught:
        alerts = matcher.push(pa.Table.from_pylist([spread, event("B", 4, 5, 4 + FAR)], schema=WITH_PMF))
    assert len(caught) == 2
    assert {(row["rule"], row["b"]) for row in alerts.to_pylist()} == {("held", 2), ("soon", 4)}
    other = made()
    other.restore(matcher.snapshot())
    for one in (matcher, other):
        assert set(one.failures) == {"far", "held"}
        assert all("explicit pmf reaches over" in failure for failure in one.failures.values())
        assert [one.counts[name]["failed"] for name in rules.names] == [1, 1, 0, 0]
        alerts = one.push(pa.Table.from_pylist([event("A", 5, 9), event("B", 6, 11)], schema=WITH_PMF))
        assert {row["rule"] for row in alerts.to_pylist()} == {"soon"}
    changed = uc.rules({"far": "PATTERN SEQ(A a, B b) WITHIN 9", **TWO})
    tick = matcher.update(changed)
    assert not matcher.failures
    times = [(tick + 20, "A", 7), (tick + 22, "B", 8)]
    later = [{**event(kind, id, time), "pmf": None} for time, kind, id in times]
    alerts = matcher.push(pa.Table.from_pylist(later, schema=WITH_PMF))
    assert {row["rule"] for row in alerts.to_pylist()} >= {"far", "soon"}


def test_a_limit_of_time_ends_the_matcher() -> None:
    schema = WITH_PMF
    matcher = uc.RuleMatcher(uc.rules(TWO), schema, timeout=1e-9)
    with pytest.raises(uc.TimeLimitError):
        matcher.push(pa.Table.from_pylist([event("A", 1, 0), event("B", 2, 1)], schema=schema))
    with pytest.raises(uc.OptionError, match="an earlier call failed while it computed"):
        matcher.push(event("A", 3, 2))
