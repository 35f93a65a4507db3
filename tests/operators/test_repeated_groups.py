"""Repeated groups: the engine gives the union over how often they stand, as the oracle does."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks
from tests.cases.comparison import Row, assert_answer, assert_same
from tests.cases.existence import doubtful
from tests.cases.language import STRATEGIES
from tests.cases.nested import NestedCase
from tests.cases.repeats import repeated_cases
from tests.cases.sampling import FEWER
from tests.cases.ways import IN_PROCESS, matches_by, table_of
from uncertain_cep.testing import probabilities
from uncertain_cep.testing.model import Key, Repeat, Seq, Strategy


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEWER
@given(data=st.data())
def test_engine_is_the_oracle(strategy: Strategy, data: st.DataObject) -> None:
    case: NestedCase = data.draw(repeated_cases(strategy, largest=4))
    note(case.text())
    case.check()


@FEWER
@given(repeated_cases(largest=4, timed=True))
def test_conditions_on_times_are_the_oracles(case: NestedCase) -> None:
    note(case.text())
    case.check()


@FEWER
@given(repeated_cases(largest=4), st.sampled_from(IN_PROCESS))
def test_every_way_gives_the_same(case: NestedCase, way: str) -> None:
    note(case.text())
    whole = case.rows(uc.match(case.trace.table(), case.text()))
    assert_same(case.rows(matches_by(way, case)), whole)


@FEWER
@given(by_clocks(repeated_cases(largest=2)) | doubtful(repeated_cases(largest=3)))
def test_with_clocks_and_events_that_may_not_have_happened(case: NestedCase) -> None:
    note(case.text())
    assert_answer(case.rows(uc.match(case.trace.table(), case.text())), case.answer())


@FEWER
@given(repeated_cases(largest=4), st.integers(1, 3))
def test_having_and_the_best_leave_rows_as_they_are(case: NestedCase, limit: int) -> None:
    table, text = case.trace.table(), case.text()
    note(text)
    whole = uc.match(table, f"{text} ORDER BY CONFIDENCE DESC").to_pylist()
    shown = [tuple(map(str, (row[part.variable] for part in case.positives))) for row in whole]
    # Two partitions with the same ids: which comes first is open.
    assume(len({*shown}) == len(shown))
    assert uc.match(table, f"{text} ORDER BY CONFIDENCE DESC LIMIT {limit}").to_pylist() == whole[:limit]
    for row in whole[:limit]:
        bound = row["confidence"]
        kept = uc.match(table, f"{text} HAVING CONFIDENCE >= {bound:.17f} ORDER BY CONFIDENCE DESC")
        assert kept.to_pylist() == [each for each in whole if each["confidence"] >= bound * (1 - 1e-9)]


@FEWER
@given(repeated_cases(largest=4))
def test_what_looks_at_matches_knows_their_iterations(case: NestedCase) -> None:
    note(case.text())
    table, text = case.trace.table(), case.text()
    matches = uc.match(table, text)
    taken = uc.events_of(matches, table, text).to_pylist()
    for number, row in enumerate(matches.to_pylist()):
        here = [part for part in taken if part["match"] == number]
        expected = [
            (part.variable, place, id)
            for part in case.positives
            for place, id in enumerate(row[part.variable] or [] if part.kleene else [row[part.variable]], 1)
            if id is not None
        ]
        assert sorted((part["variable"], part["position"], part["id"]) for part in here) == sorted(expected)
    assert uc.posteriors(matches, table, text).num_rows == len(taken)
    total = uc.match(table, f"{text} RETURN EXPECTED COUNT")["expected_count"][0].as_py()
    assert math.isclose(total, sum(matches["confidence"].to_pylist()), rel_tol=1e-9, abs_tol=1e-12)


@FEWER
@given(repeated_cases(largest=4))
def test_groups_of_matches_are_summed_over_worlds(case: NestedCase) -> None:
    note(case.text())
    table, text = case.trace.table(), case.text()
    expected = float(probabilities(case.query(), case.trace.events).get(((), None), 0))
    (row,) = uc.match(table, f"{text} RETURN PROBABILITY").to_pylist() or [{"probability": 0.0}]
    assert math.isclose(row["probability"], expected, rel_tol=1e-9, abs_tol=1e-12)


def answer(table: pa.Table, query: str, **options: Any) -> dict[tuple[Any, ...], Fraction]:
    rows: dict[tuple[Any, ...], Fraction] = {}
    for row in uc.match(table, query, **options).to_pylist():
        values: list[Any] = ["".join(x or "-" for x in v) if isinstance(v, list) else v for v in row.values()]
        rows[tuple(values[:-3])] = Fraction(values[-1]).limit_denominator(1000)
    return rows


A, D = ("A", "a", 0, 0), ("D", "d", 9, 9)
LATER = ("D", "d", 10, 10)
ONE = table_of(A, ("B", "b", 1, 4), ("C", "c", 3, 6), D)
TWO = table_of(
    A, ("B", "b", 1, 1, 1), ("C", "c", 2, 4, 1), ("B", "B", 3, 5, 2), ("C", "C", 6, 6, 2), D
)  # fmt: skip
APART = table_of(("B", "b", 1, 1), ("C", "c", 2, 4), ("B", "B", 3, 6), ("C", "C", 7, 7))
LEFT_OUT = table_of(A, ("B", "b", 1, 2), ("C", "c", 2, 3), ("B", "B", 4, 4), D)
BETWEEN = table_of(
    A, ("B", "b", 1, 1), ("C", "c", 4, 4), ("B", "B", 5, 5), ("C", "C", 9, 9), ("N", "n", 2, 7), LATER
)  # fmt: skip
BEHIND = table_of(A, ("B", "b", 2, 2), ("B", "B", 6, 6), ("N", "n", 1, 10), LATER)
LAST = table_of(A, ("B", "b", 1, 1), ("C", "c", 2, 4, 1), ("C", "C", 4, 4, 2), D)
NEXT = "skip_till_next_match(a, b[], c[], d)"


@pytest.mark.parametrize(
    ("table", "pattern", "expected"),
    [
        (ONE, "SEQ(A a, SEQ(B b[], C c[])+, D d)", {"b c": "13/16"}),
        (
            TWO, "SEQ(A a, SEQ(B b[], C c[])+, D d)",
            {"bB cC": "2/3", "b c": "1", "b C": "1", "B c": "1/9", "B C": "1"},
        ),
        (TWO, f"SEQ(A a, SEQ(B b[], C c[])+, D d) WHERE {NEXT}", {"bB cC": "2/3", "b c": "1"}),
        (TWO, "SEQ(A a, SEQ(B b[], C c[]){2}, D d) WHERE b[i].k = c[i].k", {"bB cC": "2/3"}),
        (APART, "SEQ(SEQ(B b[], C c[]){2}) WHERE TIME(b[i]) - TIME(c[i-1]) <= 2", {"bB cC": "1/2"}),
        (
            LEFT_OUT, "SEQ(A a, SEQ(B b[], C? c[]){1,2}, D d)",
            {"bB c-": "3/4", "bB --": "1", "b c": "3/4", "b -": "1", "B -": "1"},
        ),
        (
            BETWEEN, "SEQ(A a, SEQ(B b[], !N n, C c[])+, D d)",
            {"bB cC": "1/3", "b c": "2/3", "B C": "2/3"},
        ),
        (BEHIND, "SEQ(A a, SEQ(B b[], !N n)+, D d)", {"bB": "2/5", "b": "3/10", "B": "7/10"}),
        (LAST, f"SEQ(A a, SEQ(B b[], C c[])+, D d) WHERE {NEXT} AND c[c.LEN].k > 1", {"b C": "1/3"}),
        (BEHIND, "SEQ(A a, SEQ(B b[]){2}, D d) UNTIL N n", {"bB": "1/10"}),
    ],
)  # fmt: skip
def test_worked_facts(table: pa.Table, pattern: str, expected: dict[str, str]) -> None:
    matches = answer(table, f"PATTERN {pattern} WITHIN 20")
    shown = {" ".join(part for part in ids if part not in ("a", "d")): p for ids, p in matches.items()}
    assert shown == {ids: Fraction(confidence) for ids, confidence in expected.items()}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SEQ(A a, B b[])", "b is a single event"),
        ("SEQ(A a, SEQ(B b, C c)+)", r"one event an iteration: write b\[\]"),
        ("SEQ(A a, SEQ(B+ b[], C c[])+)", "b is repeated in a repeated group"),
        ("SEQ(A a, SEQ(SEQ(B b[])+, C c[])+)", "lists of lists"),
        ("SEQ(A a, SEQ(B b[], C c[]){101})", "202 components"),
        ("SEQ(A a, SEQ(OR(!N n, !M m), C c[])+)", "OR chooses among negations in a repeated group"),
        ("AND(A a, SEQ(B b[], C c[])+)", "a repeated group stands in SEQ"),
        ("SEQ(A a, AND(B b[], C c[])+)", r"SEQ\(AND\(...\)\)\+"),
        ("SEQ(A a, SEQ(!N n)+)", "no reading of the pattern takes an event"),
        ("SEQ(A a, SEQ(!N n[], B b[])+)", "a negated component is a single event"),
        ("SEQ(SEQ(B b[])+, SEQ(C c[])+) WHERE b[i].v = c[i].v", "b and c stand in two repeated groups"),
        ("SEQ(A a, SEQ(B b[])+, C c) WHERE strict_contiguity(a, b)", "gaps beside repeated groups"),
        ("SEQ(A a, SEQ(B b[]){0}, C c)", "from 0 to 0"),
        ("SEQ(A a, SEQ(B b[])+) UNTIL U u", "let a component stand at that end"),
    ],
)
def test_what_is_refused(query: str, said: str) -> None:
    with pytest.raises((uc.QueryError, uc.QuerySyntaxError), match=said):
        uc.parse(f"PATTERN {query} WITHIN 9")


@pytest.mark.parametrize("ending", ["", " RETURN PROBABILITY", " RETURN EXPECTED COUNT"])
def test_once_is_the_group_itself(ending: str) -> None:
    alone = uc.match(TWO, f"PATTERN SEQ(A a, SEQ(B b, C c), D d) WITHIN 20{ending}")
    once = uc.match(TWO, f"PATTERN SEQ(A a, SEQ(B b[], C c[]){{1}}, D d) WITHIN 20{ending}")
    for row, other in zip(alone.to_pylist(), once.to_pylist(), strict=True):
        singles = {name: v[0] if isinstance(v, list) else v for name, v in other.items()}
        assert singles == {
            name: pytest.approx(v, rel=1e-12) if isinstance(v, float) else v for name, v in row.items()
        }


@FEWER
@given(repeated_cases(largest=5))
def test_so_often_is_the_union_of_each_number(case: NestedCase) -> None:
    assert isinstance(case.pattern, Seq)
    items = case.pattern.items
    groups = [node for node in items if isinstance(node, Repeat)]
    assume(groups)
    whole: dict[Key, Row] = {}
    parts: dict[Key, Row] = {}
    for fewest, largest in ((1, 3), (1, 1), (2, 2), (3, 3)):
        bounded = tuple(
            replace(n, fewest=fewest, largest=largest) if isinstance(n, Repeat) else n for n in items
        )
        each = replace(case, pattern=Seq(bounded))
        rows = each.rows(uc.match(each.trace.table(), each.text()))
        if largest > fewest:
            whole = rows
        else:
            assert not parts.keys() & rows.keys()
            parts |= rows
    assert_same(parts, whole)


def test_results_have_places() -> None:
    query = """PATTERN SEQ(A a, SEQ(B b[], C? c[]){2}, D d) WITHIN 20
        RETURN c[1].k AS first, sum(b[].k) AS total, count(c[]) AS several, stddev(b[].k) AS spread"""
    (row,) = [row for row in uc.match(TWO, query).to_pylist() if row["c"] == ["c", None]]
    assert (row["first"], row["total"], row["several"]) == (1, 3, 1)
    assert math.isclose(row["spread"], math.sqrt(0.5))
    every = "PATTERN SEQ(A a, SEQ(B b[], C? c[]){2}, D d) WITHIN 20 RETURN b.*, c.*"
    (row,) = [row for row in uc.match(TWO, every).to_pylist() if row["c"] == ["c", None]]
    assert (row["b.k"], row["c.k"]) == ([1, 2], [1, None])


def test_explanations_and_reports_say_that_groups_are_repeated() -> None:
    query = "PATTERN SEQ(A a, SEQ(B b[], C? c[])+, D d) WITHIN 20"
    assert "none or one an iteration" in uc.explain(query)
    assert "repeated groups" in uc.explain(query, TWO)
    assert "one or more times" in str(uc.report(TWO, query))
