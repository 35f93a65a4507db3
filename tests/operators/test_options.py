"""Optional and repeated components: the engine gives the union over the readings, as the oracle does."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks
from tests.cases.comparison import assert_answer, assert_same
from tests.cases.existence import doubtful
from tests.cases.language import STRATEGIES
from tests.cases.nested import NestedCase
from tests.cases.options import grouped_cases, option_cases
from tests.cases.sampling import FEWER
from tests.cases.times import time_conditions
from tests.cases.ways import IN_PROCESS, matches_by, table_of
from uncertain_cep.testing.model import Strategy
from uncertain_cep.testing.patterns import components


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEWER
@given(data=st.data())
def test_engine_is_the_oracle(strategy: Strategy, data: st.DataObject) -> None:
    case: NestedCase = data.draw(option_cases(strategy))
    note(case.text())
    case.check()


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEWER
@given(data=st.data())
def test_groups_that_may_be_left_out(strategy: Strategy, data: st.DataObject) -> None:
    case: NestedCase = data.draw(grouped_cases(strategy, largest=4))
    if data.draw(st.booleans()):
        conditions_on_times = st.lists(time_conditions(components(case.pattern)), min_size=1, max_size=2)
        case = replace(case, times=tuple(data.draw(conditions_on_times)))
    note(case.text())
    case.check()


@FEWER
@given(by_clocks(grouped_cases(largest=3)) | doubtful(grouped_cases(largest=4)))
def test_groups_with_clocks_and_events_that_may_not_have_happened(case: NestedCase) -> None:
    note(case.text())
    assert_answer(case.rows(uc.match(case.trace.table(), case.text())), case.answer())


@FEWER
@given(grouped_cases(largest=4), st.integers(1, 4))
def test_the_best_with_groups(case: NestedCase, k: int) -> None:
    note(case.text())
    table, text = case.trace.table(), case.text()
    confidences = sorted(uc.match(table, text)["confidence"].to_pylist(), reverse=True)
    best = uc.match(table, f"{text} ORDER BY CONFIDENCE DESC LIMIT {k}")["confidence"].to_pylist()
    assert best == pytest.approx(confidences[:k], rel=1e-9)
    threshold = confidences[min(k, len(confidences)) - 1] if confidences else 0.5
    kept = uc.match(table, f"{text} HAVING CONFIDENCE >= {threshold!r}").num_rows
    assert kept == sum(confidence >= threshold * (1 - 1e-9) for confidence in confidences)


@given(data=st.data())
def test_conditions_on_times_are_the_oracles(data: st.DataObject) -> None:
    case: NestedCase = data.draw(option_cases(most=4))
    asked = data.draw(st.lists(time_conditions(components(case.pattern)), min_size=1, max_size=2))
    case = replace(case, times=tuple(asked))
    note(case.text())
    case.check()


@given(option_cases(most=4) | grouped_cases(largest=4), st.sampled_from(IN_PROCESS))
def test_every_way_gives_the_same(case: NestedCase, way: str) -> None:
    note(case.text())
    whole = case.rows(uc.match(case.trace.table(), case.text()))
    assert_same(case.rows(matches_by(way, case)), whole)


@given(option_cases(most=4) | grouped_cases(largest=4))
def test_what_looks_at_matches_knows_their_reading(case: NestedCase) -> None:
    note(case.text())
    table, text = case.trace.table(), case.text()
    found = uc.match(table, text)
    taken = uc.events_of(found, table, text).to_pylist()
    for number, row in enumerate(found.to_pylist()):
        ids = [(part["variable"], part["id"]) for part in taken if part["match"] == number]
        expected = [
            (part.variable, id)
            for part in case.positives
            for id in (row[part.variable] or [] if part.kleene else [row[part.variable]])
            if id is not None
        ]
        assert ids == expected
    assert uc.posteriors(found, table, text).num_rows == len(taken)
    total = uc.match(table, f"{text} RETURN EXPECTED COUNT")["expected_count"][0].as_py()
    assert math.isclose(total, sum(found["confidence"].to_pylist()), rel_tol=1e-9, abs_tol=1e-12)


def answer(table: pa.Table, query: str, **options: Any) -> dict[tuple[Any, ...], float]:
    found: dict[tuple[Any, ...], float] = {}
    for row in uc.match(table, query, **options).to_pylist():
        values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in row.values()]
        found[tuple(values[:-3])] = round(values[-1], 12)
    return found


MAYBE = table_of(("A", "a", 0, 0), ("B", "b", 10, 10), ("N", "n", 1, 6))
LATE, SOON = (table_of(("A", "a", 0, 0), ("B", "b", 10, 10), ("N", "n", at, at)) for at in (8, 2))
TIED = table_of(("A", "a", 0, 0, 0), ("B", "b", 1, 1, 0), ("C", "c", 2, 2, 1))
SPOILT = table_of(("A", "a", 0, 0, 0), ("B", "b", 3, 3, 0), ("C", "c", 9, 9, 0), ("N", "n", 5, 5, 1))
GROUP = table_of(("A", "a", 0, 0), ("B", "b", 1, 4), ("C", "c", 3, 6), ("D", "d", 9, 9))
TWO = table_of(("A", "a", 0, 0), ("B", "b", 2, 2), ("B", "d", 4, 4), ("C", "c", 9, 9))


@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
@pytest.mark.parametrize("evaluation", ["auto", "point"])
@pytest.mark.parametrize(
    ("table", "query", "expected"),
    [
        (MAYBE, "SEQ(A a, N? n, B b) WITHIN 20", {("a", "n", "b"): 1, ("a", None, "b"): 1}),
        (
            MAYBE,
            "SEQ(A a, N? n, B b) WHERE skip_till_next_match(a, n, b) WITHIN 20",
            {("a", "n", "b"): 1, ("a", None, "b"): 1},
        ),
        (LATE, "SEQ(A? a, !N n, B b) WITHIN 12", {}),
        (SOON, "SEQ(A? a, !N n, B b) WITHIN 6", {(None, "b"): 1}),
        (TIED, "SEQ(A a, B? b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 20", {("a", None, "c"): 1}),
        (TIED, "SEQ(A a, B? b, C c) WHERE [k] WITHIN 20", {}),
        *(
            (
                GROUP,
                f"SEQ(A a, SEQ(B b, C c)?, D d) {strategy} WITHIN 20",
                {("a", "b", "c", "d"): 13 / 16, ("a", None, None, "d"): 1},
            )
            for strategy in ("", "WHERE skip_till_next_match(a, b, c, d)")
        ),
        (
            GROUP,
            "SEQ(A a, SEQ(B+ b[], !C n)?, D d) WHERE TIME(n) - TIME(a) <= 3 WITHIN 20",
            {("a", ("b",), "d"): 7 / 8, ("a", (), "d"): 1},
        ),
        (GROUP, "SEQ(A a, SEQ(B? b, !C n)?, D d) WHERE b.id = 'x' WITHIN 20", {("a", None, "d"): 1}),
        (SPOILT, "SEQ(A a, B? b, !N n, C c) WHERE n.k = b.k WITHIN 20", {("a", "b", "c"): 1}),
        (
            TWO,
            "SEQ(A a, B{0,2} b[], C c) WHERE skip_till_next_match(a, b[], c) WITHIN 20",
            {("a", (), "c"): 1, ("a", ("b",), "c"): 1, ("a", ("b", "d"), "c"): 1},
        ),
        (TWO, "SEQ(B{2} b[], C? c) WITHIN 20", {(("b", "d"), "c"): 1, (("b", "d"), None): 1}),
        (TWO, "SEQ(A a, OR(B* b[], !C n), C c) WITHIN 3 ", {}),
        (
            TWO,
            "SEQ(A a, OR(B? b, !B n), C c) WITHIN 20",
            {("a", None, "c"): 1, ("a", "b", "c"): 1, ("a", "d", "c"): 1},
        ),
        (
            TWO,
            "SEQ(A a, OR(B{2,} b[], D* d[]), C c) WITHIN 20",
            {("a", ("b", "d"), None, "c"): 1, ("a", None, (), "c"): 1},
        ),
    ],
)  # fmt: skip
def test_worked_facts(evaluation: str, table: pa.Table, query: str, expected: dict[Any, float]) -> None:
    assert answer(table, f"PATTERN {query}", evaluation=evaluation) == expected


def test_what_leaving_out_means_is_warned_of() -> None:
    for table, query, said in (
        (TIED, "SEQ(A a, B? b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 20", "nothing ties the others"),
        (
            SPOILT,
            "SEQ(A a, B? b, !N n, C c) WHERE n.k = b.k WITHIN 20",
            "n.k = b.k is not evaluated where b is left",
        ),
    ):
        with pytest.warns(uc.UncertainCepWarning, match=said):
            uc.match(table, f"PATTERN {query}")
        with pytest.warns(uc.UncertainCepWarning, match=said):
            uc.explain(f"PATTERN {query}", table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uc.match(TIED, "PATTERN SEQ(A a, B? b, C c) WHERE [k] AND a.k <= b.k WITHIN 20")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SEQ(A? a, !B b) WITHIN 5", None),
        ("SEQ(!B n, A{0,3} a[]) WITHIN 5", None),
        ("SEQ(A a, !B? b) WITHIN 5", "a negated component takes no event"),
        ("SEQ(A a, !B* b[]) WITHIN 5", "a negated component takes no event"),
        ("AND(A a, B? b) WITHIN 5", r"stands in AND\(...\), where"),
        ("AND(A a, SEQ(B{2} b[], C c)) WITHIN 5", r"stands in AND\(...\), where"),
        ("SEQ(B{3,2} b[]) WITHIN 5", "from 3 to 2 events are none"),
        ("SEQ(B{0} b[]) WITHIN 5", "from 0 to 0 events are none"),
        ("SEQ(B{1.5} b[]) WITHIN 5", "whole numbers up to"),
        ("AND(A a, SEQ(B b, C c)?) WITHIN 5", r"a group with \? stands in SEQ"),
        ("SEQ(A a, AND(B b, C c)?) WITHIN 5", r"SEQ\(AND\(...\)\)\?"),
        ("SEQ(SEQ(!A a)?) WITHIN 5", "no reading of the pattern takes an event"),
        ("SEQ(B? b[]) WITHIN 5", "b is a single event"),
        ("SEQ(B* b) WITHIN 5", "ends too early|unexpected"),
        (f"SEQ({', '.join(f'B? b{k}' for k in range(60))}) WITHIN 50", None),
        (f"OR(SEQ({', '.join(f'B? b{k}' for k in range(9))}), A a) WITHIN 50", None),
    ],
)
def test_what_is_refused(query: str, said: str | None) -> None:
    if said is None:
        uc.parse(f"PATTERN {query}")
        return
    with pytest.raises((uc.QueryError, uc.QuerySyntaxError), match=said):
        uc.parse(f"PATTERN {query}")


def test_options_do_not_go_with() -> None:
    query = "PATTERN SEQ(A a, B? b, C c) WITHIN 20"
    for options, said in (
        ({"planner": "(a (b c))"}, "options stand for"),
        ({"kleene": "compressed"}, "optional"),
    ):
        with pytest.raises(uc.OptionError, match=said):
            uc.match(TWO, query, **options)  # type: ignore[arg-type]
    with pytest.raises(uc.OptionError, match="optional components over a stream"):
        uc.IncrementalMatcher(query, TWO.schema, evaluation="any_state")


def test_explanations_and_reports_say_how_many() -> None:
    query = "PATTERN SEQ(A? a, B{2,5} b[], C* c[]) WITHIN 20"
    assert "none or one" in uc.explain(query)
    assert "2 to 5" in uc.explain(query)
    assert "none or more C" in str(uc.report(TWO, query))
