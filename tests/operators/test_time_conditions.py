"""Conditions on times: the engine gives the oracle's answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.language import STRATEGIES, LanguageCase
from tests.cases.nested import NestedCase
from tests.cases.sampling import FEWER, sampled_from
from tests.cases.times import distant_cases, timed_cases, timed_nested_cases, timed_sequences
from uncertain_cep.testing.model import Strategy


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEWER
@given(data=st.data())
def test_engine_is_the_oracle(strategy: Strategy, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(timed_cases(strategy))
    note(case.text())
    case.check()


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEWER
@given(data=st.data())
def test_points_are_the_oracle(strategy: Strategy, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(timed_cases(strategy))
    note(case.text())
    case.check(evaluation="point")


@given(
    timed_sequences(),
    sampled_from([{"evaluation": "any_state"}, {"evaluation": "selectivity"}, {"planner": "dp_bushy"}, {}]),
)
def test_ways_of_sequences_are_the_oracle(case: LanguageCase, way: dict[str, str]) -> None:
    note(case.text())
    case.check(**way)


@given(timed_nested_cases())
def test_engine_is_the_oracle_on_sets_and_branches(case: NestedCase) -> None:
    note(case.text())
    case.check()


@given(distant_cases(), st.sampled_from(["auto", "trivial", "dp_bushy"]), st.sampled_from([None, 1, 3]))
def test_sequences_with_distances(case: LanguageCase, planner: str, rows: int | None) -> None:
    note(case.text())
    case.check(planner=planner)
    table = case.trace.table()
    whole = uc.match(table, f"{case.text()} ORDER BY CONFIDENCE DESC")
    if rows is not None:
        best = uc.match(table, f"{case.text()} ORDER BY CONFIDENCE DESC LIMIT {rows}")
        assert best.to_pylist() == whole.to_pylist()[:rows]
    assert uc.explain(case.text(), table)


@given(distant_cases())
def test_expected_counts_of_sequences_with_distances(case: LanguageCase) -> None:
    note(case.text())
    total = sum(uc.match(case.trace.table(), case.text())["confidence"].to_pylist())
    counts = uc.match(case.trace.table(), f"{case.text()} RETURN EXPECTED COUNT EVERY 2")
    assert sum(counts["expected_count"].to_pylist()) == pytest.approx(total)


@pytest.mark.parametrize("ways", [{}, {"evaluation": "point"}, {"approximate": 0.01}])
def test_forbidden_events_that_may_not_have_happened_keep_their_probabilities(ways: dict[str, Any]) -> None:
    """Of the ticks 1 to 6, of which the first and the last are possible, conditions leave the first three."""
    events = pa.table(
        {
            "type": ["A", "N", "B"],
            "id": [1, 2, 3],
            "lower": [0, 1, 10],
            "upper": [0, 6, 10],
            "pmf": [None, [0.9, 0, 0, 0, 0, 0.1], None],
            "probability": [1.0, 0.5, 1.0],
        }
    )
    found = uc.match(events, "PATTERN SEQ(A a, !N n, B b) WHERE TIME(n) - TIME(a) <= 3 WITHIN 20", **ways)
    assert found["confidence"].to_pylist() == pytest.approx([0.55])


_TWO = {"type": ["A", "B"], "id": [1, 2], "lower": [0, 9], "upper": [0, 9], "w": [1, 1]}
_SERIES = {"type": ["A", "C", "C"], "id": [1, 2, 3], "lower": [0, 9, 10], "upper": [0, 9, 10], "w": [0] * 3}
_BRANCHES = {"type": ["A", "B", "D"], "id": [1, 2, 3], "lower": [0, 9, 11], "upper": [0, 9, 11], "w": [1] * 3}


@pytest.mark.parametrize(
    ("events", "query", "signatures"),
    [
        (_TWO, "SEQ(A a, B b, C? c) WHERE TIME(b) - TIME(a) BETWEEN c.w AND 4", [(1, 2, None)]),
        (_TWO, "SEQ(A a, B b, C? c) WHERE TIME(b) - TIME(a) BETWEEN 10 AND c.w", [(1, 2, None)]),
        (_TWO, "SEQ(A a, B b, !N n) WHERE TIME(b) - TIME(a) BETWEEN n.w AND 4", [(1, 2)]),
        (_SERIES, "SEQ(A a, C+ c[]) WHERE TIME(c[i]) - TIME(a) BETWEEN c[i-1].w AND 4", [(1, [2]), (1, [3])]),
        (
            _BRANCHES,
            "SEQ(A a, B b, OR(C c, D d)) WHERE TIME(b) - TIME(a) BETWEEN c.w AND 4",
            [(1, 2, None, 3)],
        ),
        (_TWO, "SEQ(A a, B b, C? c) WHERE TIME(b) BETWEEN TIME(c) AND 4", [(1, 2, None)]),
        (_TWO, "SEQ(A a, B b) WHERE TIME(b) - TIME(a) BETWEEN a.w AND 4", []),
    ],
)  # fmt: skip
def test_both_ends_of_between_are_one_condition(
    events: dict[str, list[Any]], query: str, signatures: list[tuple[Any, ...]]
) -> None:
    found = uc.match(pa.table(events), f"PATTERN {query} WITHIN 40")
    assert [tuple(row.values())[:-3] for row in found.to_pylist()] == signatures
    assert found["confidence"].to_pylist() == [1.0] * len(signatures)


@pytest.mark.parametrize("evaluation", ["auto", "point"])
def test_times_that_cancel_are_mentioned(evaluation: str) -> None:
    query = "PATTERN SEQ(A a, B b, C? c) WHERE TIME(b) - TIME(c) <= TIME(a) + 4 - TIME(c) WITHIN 40"
    events = pa.table(_TWO)
    assert uc.match(events, query, evaluation=evaluation)["b"].to_pylist() == [2]
    assert "TIME(b) - TIME(a) <= 4 (only with c)" in str(uc.explain(query, events))
