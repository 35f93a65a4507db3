"""Why there is no match: it is refused exactly if there is one, and says what fails in every world."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.beside import beside_cases
from tests.cases.clocks import by_clocks, in_order, in_sequence
from tests.cases.existence import doubtful
from tests.cases.language import language_cases
from tests.cases.negated_groups import group_cases
from tests.cases.nested import nested_cases, reading_cases
from tests.cases.options import nested_option_cases, timed_option_cases
from tests.cases.repeats import repeated_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases, timed_nested_cases, timed_sequences
from tests.misses.cases import NamedCase, crowded, named_cases
from tests.operators.test_until import until_cases
from uncertain_cep.misses.reasons import rank_of

CASES: dict[str, st.SearchStrategy[Any]] = {
    "sequences": language_cases(),
    "sets and branches": st.sampled_from(["SAO", "SA", "SO", "A"]).flatmap(nested_cases),
    "readings": reading_cases(),
    "options": timed_option_cases(),
    "options in branches": nested_option_cases(),
    "times": timed_cases(),
    "times in sets": timed_nested_cases(),
    "times of single events": timed_sequences(),
    "negations beside sets": beside_cases(),
    "repeated groups": repeated_cases(largest=4),
    "crowded repeated groups": crowded(repeated_cases(largest=3)),
    "negated groups": crowded(group_cases(repeated=False)),
    "until": crowded(until_cases()),
    "until in sequence": in_sequence(crowded(until_cases())) | in_order(crowded(until_cases())),
    "existence": doubtful(language_cases()),
    "clocks": by_clocks(language_cases()),
    "times by clocks": by_clocks(timed_sequences()),
    "crowded": crowded(language_cases()),
    "crowded times": crowded(timed_cases()),
    "crowded clocks": by_clocks(crowded(language_cases())),
    "crowded readings": crowded(reading_cases()),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
@FEWER
@given(data=st.data())
def test_it_is_refused_exactly_if_some_world_has_a_match(kind: str, data: st.DataObject) -> None:
    named: NamedCase = data.draw(named_cases(CASES[kind]))
    matches = named.matches()
    table, text = named.case.trace.table(), named.case.text()
    if matches:
        with pytest.raises(uc.MatchExistsError) as refused:
            uc.why_not(table, text, named.ids)
        assert named.is_one_of(refused.value.match, matches)
        return
    try:
        answer = uc.why_not(table, text, named.ids)
    except uc.OptionError as error:
        if "no branch" not in str(error):
            raise
        return
    assert answer.reasons
    assert all(miss.reasons for miss in answer.misses)
    ranks = [rank_of(miss) for miss in answer.misses]
    assert ranks == sorted(ranks)
    assert all(miss.events[name] == id for miss in answer.misses for name, id in named.whole_ids())


def events(**columns: Any) -> pa.Table:
    return pa.table({"id": list(range(len(columns["type"]))), **columns})


TRACE = events(type=["A", "B", "B", "C"], lower=[1, 14, 30, 40], upper=[3, 16, 32, 41], x=[1, 2, None, 4])


@pytest.mark.parametrize(
    ("query", "ids", "kind", "ticks", "text"),
    [
        ("SEQ(A a, B b) WITHIN 10", {"a": 0}, "window", 2, "b is at least 2 ticks too late after a"),
        ("SEQ(B b, A a) WITHIN 99", {"b": 1}, "order", 12, "a is at least 12 ticks too early after b"),
        (
            "SEQ(A a, B b) WHERE TIME(b) - TIME(a) <= 5 WITHIN 99", {"b": 2}, "time", 22,
            "TIME(b) - TIME(a) <= 5: b is at least 22 ticks too late after a",
        ),
        (
            "SEQ(A a, B b) WHERE TIME(b) - TIME(a) >= 40 WITHIN 99", {"b": 2}, "time", 9,
            "b is at least 9 ticks too early after a",
        ),
        ("SEQ(A a, B b) WHERE TIME(b) <= 13 WITHIN 99", {"b": 1}, "time", 1, "b is at least 1 tick too late"),
        ("SEQ(A a, B b) WHERE TIME(a) >= 5 WITHIN 99", {}, "time", 2, "a is at least 2 ticks too early"),
        ("SEQ(A a, B b) WHERE b.x > 5 WITHIN 99", {"b": 1}, "predicate", None, "b.x > 5 is not true"),
        ("SEQ(A a, B b) WHERE a.x > b.x WITHIN 99", {"b": 2}, "predicate", None, "b.x = null"),
        ("SEQ(A a, B b) WHERE [x] WITHIN 99", {"b": 1}, "key", None, "[x] is not true: a.x = 1, b.x = 2"),
        ("SEQ(A a, !B n, C c) WITHIN 99", {"a": 0}, "forbidden", 11, "!B n: the event 1 is there"),
        ("SEQ(A a, C c) UNTIL B n WITHIN 99", {"a": 0}, "forbidden", 11, "UNTIL B n: the event 1 is there"),
        (
            "SEQ(A? d, A a, C c) UNTIL B n WITHIN 99", {"d": None, "a": 0}, "forbidden", 11,
            "UNTIL B n: the event 1 is there",
        ),
        (
            "SEQ(A a, B b) WHERE strict_contiguity(a, b) WITHIN 99", {"b": 2}, "forbidden", 11,
            "strict_contiguity: the event 1",
        ),
        (
            "SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 99", {"b": 2}, "forbidden", 11,
            "what could be b: the event 1",
        ),
        ("SEQ(A a, B b) WITHIN 99", {"a": 1}, "type", None, "a has the type B, not A"),
        ("SEQ(A a, D d) WITHIN 99", {"a": 0}, "candidates", None, "no event can be d: none is of type D"),
        ("SEQ(B b, B c) WITHIN 99", {"b": 1, "c": 1}, "repeated", None, "have the same event, 1"),
        ("SEQ(A a, B b, C c) WITHIN 2", {}, "contradiction", None, "contradict each other"),
        ("SEQ(A a, B{3,} b[]) WITHIN 99", {"b": [1, 2]}, "count", None, "count(b[]) >= 3 is not true"),
        ("AND(A a, B b) WITHIN 9", {"b": 1}, "window", 3, "b is at least 3 ticks too late after a"),
        ("OR(SEQ(A a, B b), SEQ(B d, C c)) WITHIN 5", {"a": 0}, "window", 7, "too late after a"),
        ("SEQ(A a, B? b, C c) WITHIN 9", {"b": None}, "window", 29, "c is at least 29 ticks too late"),
        ("SEQ(A a, B+ b[]) WITHIN 9", {"b": 2}, "window", 19, "is at least 19 ticks too late after a"),
    ],
)  # fmt: skip
def test_the_first_reason(query: str, ids: dict[str, Any], kind: str, ticks: int | None, text: str) -> None:
    answer = uc.why_not(TRACE, f"PATTERN {query}", **ids)
    reason = answer.reasons[0]
    assert (reason.kind, reason.ticks) == (kind, ticks)
    assert text in reason.text
    assert reason.text in str(answer)


def test_all_about_the_answer_is_a_field() -> None:
    answer = uc.why_not(TRACE, "PATTERN SEQ(A a, B b) WITHIN 10", a=0, b=1)
    (miss,) = answer.misses
    assert (miss.events, miss.ticks, miss.reasons) == ({"a": 0, "b": 1}, 2, answer.reasons)
    moves = {(move.kind, move.name, move.side, move.ticks, move.bound) for move in miss.moves}
    assert moves == {
        ("event", "a", "later", 2, "5"),
        ("event", "b", "earlier", 2, "12"),
        ("window", "WITHIN", "longer", 2, "12"),
    }
    assert json.loads(answer.to_json())["misses"][0]["moves"][0]["ticks"] == 2
    assert "2 ticks missing" in answer._repr_html_()


def test_times_and_lengths_are_those_of_the_trace() -> None:
    """The bounds of clocks are named, in the unit of the trace."""
    stamps = {"lower": ["08:00:00", "08:00:23.204"], "upper": ["08:00:08", "08:00:31.204"]}
    trace = pa.table(
        {
            "type": ["A", "B"],
            "id": ["x", "y"],
            **{
                name: pa.array([datetime.fromisoformat(f"2026-01-05T{time}") for time in times])
                for name, times in stamps.items()
            },
            "source": ["h", "g"],
            "offset_lower": pa.array([-4000] * 2, pa.duration("ms")),
            "offset_upper": pa.array([4000] * 2, pa.duration("ms")),
        }
    )
    answer = uc.why_not(trace, "PATTERN SEQ(A a, B b) WITHIN 15 seconds", tick="1ms", a="x")
    assert (answer.reasons[0].ticks, answer.reasons[0].duration) == (205, "205ms")
    assert "b from 2026-01-05T08:00:23.204 on, a up to 2026-01-05T08:00:08" in str(answer)
    assert "WITHIN were 15.205s instead of 15s" in str(answer)
    assert "the clock h had a bound of 4.205s instead of 4s" in str(answer)
    apart = uc.why_not(trace, "PATTERN SEQ(A a, B b) WITHIN 15 seconds", tick="1ms", sources=False)
    assert "clock" not in str(apart)


def test_events_of_one_clock_are_compared_by_it() -> None:
    trace = events(
        type=["A", "B"], lower=[100, 2000], upper=[8100, 10000], source=["h", "h"],
        offset_lower=[-4000, -4000], offset_upper=[4000, 4000],
    )  # fmt: skip
    answer = uc.why_not(trace, "PATTERN SEQ(A a, B b) WITHIN 1500", a=0)
    assert answer.reasons[0].ticks == 401
    assert "b from 6,000 on, a up to 4,100 by their clock" in str(answer)


def test_patterns_of_countless_readings() -> None:
    options = ", ".join(f"B? b{number}" for number in range(9))
    query = f"PATTERN SEQ(A a, {options}, C c) WITHIN 20"
    answer = uc.why_not(TRACE, query, a=0)
    assert answer.misses[0].ticks == 18
    assert answer.notes == ("the pattern has 512 readings; only 20 of them were looked at",)
    left_out = {f"b{number}": None for number in range(9)}
    filled = uc.why_not(TRACE, query, {**left_out, "a": 0, "b4": 2, "c": 3})
    assert filled.misses[0].events == {**left_out, "a": 0, "b4": 2, "c": 3}
    assert filled.notes == ()


@pytest.mark.parametrize(
    "tail", ["HAVING CONFIDENCE >= 0.5", "RETURN PROBABILITY", "RETURN EXPECTED COUNT", "ORDER BY a LIMIT 1"]
)
def test_other_clauses_do_not_count(tail: str) -> None:
    answer = uc.why_not(TRACE, f"PATTERN SEQ(A a, B b) WITHIN 10 {tail}", a=0)
    assert answer.reasons[0].ticks == 2
    with pytest.raises(uc.MatchExistsError, match="a = 0, b = 1"):
        uc.why_not(TRACE, f"PATTERN SEQ(A a, B b) WITHIN 13 {tail}", a=0)


def test_no_events() -> None:
    answer = uc.why_not(TRACE.slice(0, 0), "PATTERN SEQ(A a, B b) WITHIN 10")
    assert [reason.kind for reason in answer.reasons] == ["candidates", "candidates"]


def test_a_partition_is_named_by_its_value() -> None:
    trace = pa.table(
        {
            "type": ["A", "B"] * 2,
            "id": [1, 2] * 2,
            "lower": [0, 9, 0, 2],
            "upper": [1, 9, 1, 2],
            "k": [1, 1, 2, 2],
        }
    )
    query = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5"
    assert uc.why_not(trace, query, a=1, k=1).reasons[0].ticks == 4
    with pytest.raises(uc.MatchExistsError, match="k = 2, a = 1, b = 2"):
        uc.why_not(trace, query, a=1, k=2)
    with pytest.raises(uc.OptionError, match="2 events have this id: name the partition, too, such as k="):
        uc.why_not(trace, query, a=1)


def test_wrong_calls() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 10"
    with pytest.raises(uc.OptionError, match="misses=0"):
        uc.why_not(TRACE, query, misses=0)
    with pytest.raises(uc.OptionError, match="is no value of the column id"):
        uc.why_not(TRACE, query, a="x")
    with pytest.raises(uc.TimeLimitError):
        uc.why_not(TRACE, query, timeout=1e-9)
    frame = type("DataFrame", (), {"__module__": "pyspark.sql"})()
    with pytest.raises(uc.OptionError, match="frames in this process"):
        uc.why_not(frame, query)


def test_what_is_in_the_trace_steers_no_terminal() -> None:
    events = pa.table({"type": ["A", "B"], "id": ["a\x1b[2J", "b"], "lower": [9, 1], "upper": [9, 1]})
    missed = uc.why_not(events, "PATTERN SEQ(A a, B b) WITHIN 9", a="a\x1b[2J")
    assert "\x1b" not in str(missed)
    assert "a\N{REPLACEMENT CHARACTER}[2J" in str(missed)


@pytest.mark.parametrize(
    ("group", "keys", "spoiling"),
    [
        ("!SEQ(N n, M m)", "", {(1, 3), (1, 4), (2, 3), (2, 4)}),
        ("!SEQ(N n, M m)", "AND n.k = m.k", {(2, 4)}),
        ("!SEQ(N n, M m, M o)", "", {(1, 3, 4), (2, 3, 4)}),
        ("!SEQ(M n, N m)", "", set()),
    ],
)
def test_negated_groups(group: str, keys: str, spoiling: set[tuple[int, ...]]) -> None:
    """Two N, then two M: a group forbids if its events are in its order in every world."""
    trace = events(
        type=["A", "N", "N", "M", "M", "D"], lower=[0, 1, 2, 5, 8, 20], upper=[0, 3, 4, 6, 9, 20],
        k=[0, 1, 2, 3, 2, 0],
    )  # fmt: skip
    query = f"PATTERN SEQ(A a, {group}, D d) WHERE a.k = 0 {keys} WITHIN 30"
    if not spoiling:
        with pytest.raises(uc.MatchExistsError):
            uc.why_not(trace, query, a=0)
        return
    answer = uc.why_not(trace, query, a=0)
    assert {reason.events for reason in answer.reasons} == spoiling
    assert all(reason.what == group and "in every world" in reason.text for reason in answer.reasons)


def test_events_that_forbid_only_together() -> None:
    """B at 5 to 7 has M behind it, and B at 8 to 10 has N before it."""
    trace = events(type=["A", "N", "B", "M", "C"], lower=[0, 7, 5, 8, 20], upper=[0, 7, 10, 8, 20])
    query = "PATTERN SEQ(A a, !N n, B b, !M m, C c) WITHIN 30"
    (reason,) = uc.why_not(trace, query, a=0).reasons
    assert (reason.kind, reason.ticks) == ("forbidden", None)
    assert set(reason.events) == {1, 3}
    assert "together the events" in reason.text
    for number in (1, 3):
        with pytest.raises(uc.MatchExistsError):
            uc.why_not(trace.take([row for row in range(5) if row != number]), query, a=0)


GROUP = "PATTERN SEQ(A a, SEQ(B b[], C? c[])+, D d)"
IN_GROUPS = events(
    type=["A", "B", "C", "B", "C", "D"], lower=[0, 1, 3, 8, 9, 20], upper=[0, 4, 6, 9, 10, 20]
)  # fmt: skip


@pytest.mark.parametrize(
    ("window", "ids", "chosen", "ticks"),
    [
        (15, {"b": [1, 3], "c": 2}, {"b": [1, 3], "c": [2, 4]}, 6),
        (15, {"b": 3, "c": [None]}, {"b": [3], "c": [None]}, 6),
        (30, {"b": [3, 1]}, {"b": [3, 1], "c": [None, None]}, 5),
        (15, {"b": [1, 3], "c": [None, 4]}, {"b": [1, 3], "c": [None, 4]}, 6),
        (15, {"b": [1, 3], "c": None}, {"b": [1, 3], "c": [None, None]}, 6),
        (30, {"b": [1, 3], "c": [4, None]}, {"b": [1, 3], "c": [4, None]}, 1),
    ],
)
def test_the_event_of_a_repeated_group_may_be_in_any_iteration(
    window: int, ids: dict[str, Any], chosen: dict[str, Any], ticks: int
) -> None:
    answer = uc.why_not(IN_GROUPS, f"{GROUP} WITHIN {window}", ids)
    assert answer.misses[0].events == {"a": 0, "d": 5} | chosen
    assert answer.misses[0].ticks == ticks


def test_more_iterations_than_are_looked_at_unless_a_list_has_so_many() -> None:
    trace = events(type=["B"] * 6, lower=[*range(6)], upper=[*range(6)])
    query = "PATTERN SEQ(SEQ(B b[])+) WITHIN 30"
    answer = uc.why_not(trace, query, b=[0, 1, 2, 4, 3])
    assert (answer.misses[0].events, answer.misses[0].ticks) == ({"b": [0, 1, 2, 4, 3]}, 2)
    with pytest.raises(uc.OptionError, match="no branch"):
        uc.why_not(trace, query.replace("+", "{1,4}"), b=[0, 1, 2, 3, 4])
