"""Events that may not have happened: worked facts, and the oracle's answer whatever the query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.clocks import by_clocks
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.existence import FACTS, doubtful
from tests.cases.language import STRATEGIES, LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.options import option_cases
from tests.cases.sampling import sampled_from
from tests.cases.strategies import answer_of, text_of
from tests.cases.times import timed_cases, timed_nested_cases
from uncertain_cep.plan import EVALUATIONS
from uncertain_cep.testing.model import Seq, Strategy


@given(doubtful(cases()), sampled_from(EVALUATIONS), sampled_from(STRATEGIES[:2]))
def test_every_method_is_the_oracle(case: Case, evaluation: str, strategy: Strategy) -> None:
    note(case.script())
    found = uc.match(case.trace.table(), text_of(case, strategy), evaluation=evaluation)
    assert_answer(rows_of(found, case), answer_of(case, strategy))


@given(
    doubtful(by_clocks(cases())),
    st.sampled_from([{"evaluation": name} for name in EVALUATIONS] + [{"approximate": 0.01}]),
)
def test_every_method_is_the_oracle_by_clocks(case: Case, way: dict[str, Any]) -> None:
    """A match that clocks make impossible is dropped before probabilities to have happened are looked up."""
    note(case.script())
    strategy: Strategy = "skip_till_any_match"
    found = uc.match(case.trace.table(), text_of(case, strategy), **way)
    assert_answer(rows_of(found, case), answer_of(case, strategy))
    if "approximate" in way:
        assert all(found["exact"].to_pylist())


@pytest.mark.parametrize("evaluation", ["auto", "sliced", "point"])
def test_a_clock_and_doubts_in_a_stream(evaluation: str) -> None:
    """By h the second reading is not before the first."""
    events = pa.table(
        {
            "type": ["A", "A", "A"], "id": [1, 2, 3], "lower": [6, 7, 2], "upper": [8, 9, 4],
            "probability": [1.0, 0.5, 1.0],
            "source": ["h", "h", None], "offset_lower": [2, 2, None], "offset_upper": [4, 4, None],
        }
    )  # fmt: skip
    matcher = uc.IncrementalMatcher("PATTERN SEQ(A a, A b) WITHIN 6", events.schema, evaluation=evaluation)
    rows = matcher.push(events).to_pylist() + matcher.close().to_pylist()
    assert sorted((row["a"], row["b"], row["range_lower"], row["range_upper"]) for row in rows) == [
        (1, 2, 6, 9), (3, 1, 2, 8), (3, 2, 2, 9),
    ]  # fmt: skip
    confidences = [row["confidence"] for row in sorted(rows, key=lambda row: (row["a"], row["b"]))]
    assert confidences == pytest.approx([0.5, 8 / 9, 1 / 3])


@given(doubtful(language_cases()), st.sampled_from(["auto", "auto", "point"]))
def test_language(case: LanguageCase, evaluation: str) -> None:
    note(case.text())
    case.check(evaluation=evaluation)


@given(st.one_of(doubtful(timed_cases()), doubtful(timed_nested_cases()), doubtful(option_cases())))
def test_times_and_options(case: LanguageCase | NestedCase) -> None:
    note(case.text())
    case.check()


@given(doubtful(st.sampled_from(["SAO", "SA", "SO", "A"]).flatmap(nested_cases)))
def test_nested(case: NestedCase) -> None:
    note(case.text())
    case.check()


@pytest.mark.parametrize("name", FACTS)
def test_the_engine_knows_it(name: str) -> None:
    fact = FACTS[name]
    trace = Trace(fact.events, {})
    case = LanguageCase(trace, Seq(fact.components), (), fact.strategy, fact.window, (), ())
    found = uc.match(case.trace.table(), case.text())
    assert isinstance(found, pa.Table)
    case.check()
    assert len(case.answer()) == len(fact.expected)


def test_clocks_and_doubts_go_together() -> None:
    """By the clock all is in order, so that only what happened counts."""
    table = pa.table(
        {
            "type": ["A", "B", "C"], "id": [1, 2, 3], "lower": [0, 2, 4], "upper": [2, 4, 6],
            "source": ["h", "h", "h"], "offset_lower": [0, 0, 0], "offset_upper": [2, 2, 2],
            "probability": [0.5, 0.5, 1.0],
        }
    )  # fmt: skip
    for query, confidence in (
        ("SEQ(A a, C c)", 0.5),
        ("SEQ(A a, !B b, C c)", 0.25),
        ("SEQ(A a, C c) WHERE skip_till_next_match(a, c)", 0.5),
    ):
        assert uc.match(table, f"PATTERN {query} WITHIN 10")["confidence"].to_pylist() == [confidence]
