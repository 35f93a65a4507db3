"""Negated groups, !SEQ(N n, M m): no n and then an m in a gap, against possible worlds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks
from tests.cases.comparison import assert_answer, assert_same
from tests.cases.existence import doubtful
from tests.cases.negated_groups import group_cases
from tests.cases.nested import NestedCase
from tests.cases.sampling import FEWER
from tests.cases.ways import IN_PROCESS, matches_by
from uncertain_cep.testing import answer, probabilities
from uncertain_cep.testing.model import Component, Event, Query, Seq, no, one, where


@FEWER
@given(group_cases())
def test_engine_is_the_oracle(case: NestedCase) -> None:
    note(case.text())
    case.check()


@FEWER
@given(by_clocks(group_cases()) | doubtful(group_cases()))
def test_with_clocks_and_events_that_may_not_have_happened(case: NestedCase) -> None:
    note(case.text())
    assert_answer(case.rows(uc.match(case.trace.table(), case.text())), case.answer())


@given(group_cases(), st.sampled_from(IN_PROCESS))
def test_every_way_gives_the_same(case: NestedCase, way: str) -> None:
    note(case.text())
    whole = case.rows(uc.match(case.trace.table(), case.text()))
    assert_same(case.rows(matches_by(way, case)), whole)


def events(*rows: tuple[str, str, int, int], **columns: Sequence[object]) -> pa.Table:
    """Return a table of events, by type, id, lower and upper."""
    names = ("type", "id", "lower", "upper")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) | columns)


A, D = ("A", "a", 0, 0), ("D", "d", 10, 10)


@pytest.mark.parametrize(
    ("table", "group", "expected"),
    [
        (events(A, ("N", "n", 1, 6), ("M", "m", 1, 6), D), "!SEQ(N n, M m)", 7 / 12),
        (events(A, ("N", "n", 1, 12), ("M", "m", 1, 12), D), "!SEQ(N n, M m)", 3 / 4),
        (events(A, ("N", "n", 1, 4), ("M", "m", 1, 4), ("M", "x", 2, 5), D), "!SEQ(N n, M m)", 5 / 16),
        (events(A, ("N", "n", 1, 6), ("N", "x", 1, 6), ("D", "d", 4, 4)), "!SEQ(N n, N m)", 5 / 6),
        (events(A, ("N", "n", 1, 3), ("M", "m", 1, 3), ("O", "o", 1, 3), D), "!SEQ(N n, M m, O o)", 26 / 27),
        (events(A, ("N", "n", 1, 6), ("M", "m", 1, 6), D), "!SEQ(N n)", 0.0),
    ],
)
def test_worked_facts(table: pa.Table, group: str, expected: float) -> None:
    matches = uc.match(table, f"PATTERN SEQ(A a, {group}, D d) WITHIN 20")
    assert matches["confidence"].to_pylist() == pytest.approx([expected] * (expected > 0), rel=1e-9)


def test_at_an_end() -> None:
    """The gap is that of !N."""
    table = events(A, ("N", "n", 1, 8), ("M", "m", 1, 8))
    matches = uc.match(table, "PATTERN SEQ(A a, !SEQ(N n, M m)) WITHIN 6")
    assert matches["confidence"].to_pylist() == pytest.approx([27 / 32], rel=1e-9)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [([0, 1, 1, 2, 2, 0], 25 / 64), ([0, 1, 1, None, None, 0], 5 / 8), ([0, 1, 2, 3, 4, 0], 1.0)],
)
def test_equalities_that_tie_all(keys: list[int | None], expected: float) -> None:
    rows = [("N", "n", 1, 4), ("M", "m", 1, 4), ("N", "x", 1, 4), ("M", "y", 1, 4)]
    table = events(A, *rows, D, k=keys, j=[7] * 6)
    for tie in ("n.k = m.k", "n.k = m.k AND n.j = m.j"):
        matches = uc.match(table, f"PATTERN SEQ(A a, !SEQ(N n, M m), D d) WHERE {tie} WITHIN 20")
        assert matches["confidence"].to_pylist() == pytest.approx([expected], rel=1e-9)


@FEWER
@given(group_cases(), st.integers(1, 2))
def test_probability_that_there_is_a_match(case: NestedCase, number: int) -> None:
    text = case.text(f"RETURN PROBABILITY OF AT LEAST {number} MATCHES")
    note(text)
    expected = probabilities(case.query(), case.trace.events, at_least=number)
    rows = uc.match(case.trace.table(), text).to_pylist()
    assert [row["probability"] for row in rows] == pytest.approx([*map(float, expected.values())], rel=1e-9)


@FEWER
@given(group_cases())
def test_counts_and_times_of_matches_are_those_of_the_worlds(case: NestedCase) -> None:
    note(case.text())
    table, answer = case.trace.table(), case.answer()
    counted = uc.match(table, case.text("RETURN EXPECTED COUNT EVERY 2"))
    expected: dict[int, float] = defaultdict(float)
    for match in answer:
        for tick, mass in match.first_times.items():
            expected[tick // 2 * 2] += float(mass)
    rows = {row["bucket"]: row["expected_count"] for row in counted.to_pylist()}
    assert rows == pytest.approx({bucket: mass for bucket, mass in expected.items() if mass}, rel=1e-9)


def test_a_certain_event_and_an_event_of_two_kinds_can_be_first() -> None:
    """x is a B, which skip till next match could have taken, and an N: where it is first it spoils anyway."""
    table = events(A, ("B", "x", 1, 5), ("C", "y", 2, 8), ("B", "d", 7, 9))
    query = "PATTERN SEQ(A a, !SEQ((B|C) n, C m), B d) WHERE skip_till_next_match(a, d) WITHIN 20"
    rows = {row["d"]: row["confidence"] for row in uc.match(table, query).to_pylist()}
    assert rows == pytest.approx({"x": 1.0})
    query = "PATTERN SEQ(A a, !SEQ((B|C) n, C m), !B o, B d) WHERE TIME(o) - TIME(a) >= 3 WITHIN 20"
    events_of_world = [
        Event(kind, name, low, high)
        for kind, name, low, high in [A, ("B", "x", 1, 5), ("C", "y", 2, 8), ("B", "d", 7, 9)]
    ]
    pattern = Seq(
        (
            one("A", "a"),
            Component("n", ("B", "C"), negated=True, joint="n"),
            Component("m", ("C",), negated=True, joint="n"),
            no("B", "o"),
            one("B", "d"),
        )
    )
    times = (where("o a", lambda o, a: o[1] - a[1] >= 3),)
    expected = {
        match.ids[1]: float(match.confidence)
        for match in answer(Query(pattern, 20, times=times), events_of_world)
    }
    rows = {row["d"]: row["confidence"] for row in uc.match(table, query).to_pylist()}
    assert rows == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SEQ(A a, !SEQ(N n, M+ m[]), D d)", "single events alone"),
        ("SEQ(A a, !SEQ(N n, SEQ(M m, O o)), D d)", "single events alone"),
        ("SEQ(A a, !OR(N n, M m), D d)", "write !N n, !M m for none of them"),
        ("SEQ(A a, !AND(N n, M m), D d)", "events in any order"),
        ("AND(A a, D d, !SEQ(N n, M m))", r"stands in a SEQ\(...\)"),
        ("SEQ(A a, !SEQ(N n, M m), D d) WHERE n.x < m.x", "tie all of their group by equalities"),
        ("SEQ(A a, !SEQ(N n, M m, O o), D d) WHERE n.k = m.k", "o is left out"),
        ("SEQ(A a, !SEQ(N n, M m), OR(!O o, !P p), D d)", "OR chooses among negations"),
    ],
)
def test_what_is_refused(query: str, message: str) -> None:
    table = events(A, D, x=[1, 2], k=[1, 2])
    with pytest.raises((uc.QueryError, uc.QuerySyntaxError), match=message):
        uc.match(table, f"PATTERN {query} WITHIN 5")


def test_what_is_not_supported_says_so() -> None:
    query = "PATTERN SEQ(A a, !SEQ(N n, M m), D d) WITHIN 20"
    clocked = events(A, D, source=["h", "h"], offset_lower=[0, 0], offset_upper=[1, 1], sequence=[1, 2])
    with pytest.raises(uc.OptionError, match="'sequence'"):
        uc.match(clocked, query)
