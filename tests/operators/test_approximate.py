"""Confidences that take too long: an error, or an estimate where the caller allows one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.language import LanguageCase
from tests.cases.nested import NestedCase
from tests.cases.times import timed_cases, timed_nested_cases
from tests.weighers.forcing import leave_out
from uncertain_cep.operators import backtracking, costly_matches, incremental, next_match, points
from uncertain_cep.weighers import elimination
from uncertain_cep.weighers.held_ends import HeldChains

QUERY = "PATTERN SEQ(A a, A b, A c) WHERE skip_till_next_match(a, b, c) WITHIN 100"


def crowd() -> pa.Table:
    """Events that every component can take, all over each other: every gap of a match is coupled."""
    lower = [0, 2, 5, 9, 10, 14, 18, 19, 21]
    return pa.table(
        {"type": ["A"] * 9, "id": list(range(9)), "lower": lower, "upper": [low + 59 for low in lower]}
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (next_match, costly_matches):
        monkeypatch.setattr(module, "MOST_CONFIDENCE_STEPS", 100_000)


@pytest.mark.usefixtures("impatient")
def test_too_dear_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(uc.ConfidenceCostError, match=r"\(a=\d, b=\d, c=\d\).*approximate=") as caught:
        uc.match(crowd(), QUERY)
    assert caught.value.steps > caught.value.limit == 100_000


@cache
def exact() -> Mapping[tuple[int, ...], float]:
    return {(row["a"], row["b"], row["c"]): row["confidence"] for row in uc.match(crowd(), QUERY).to_pylist()}


def test_estimates_are_near_and_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = dict(exact())
    for module in (next_match, costly_matches):
        monkeypatch.setattr(module, "MOST_CONFIDENCE_STEPS", 1_000_000)
    allowed = uc.match(crowd(), QUERY, approximate=uc.Approximation(0.02, seed=3))
    assert allowed.column_names[-3:] == ["confidence", "exact", "std_error"]
    for row in allowed.to_pylist():
        truth = expected.pop((row["a"], row["b"], row["c"]))
        if row["exact"]:
            assert row["std_error"] == 0.0
            assert math.isclose(row["confidence"], truth, rel_tol=1e-9)
        else:
            assert 0.0 < row["std_error"] <= 0.0205
            assert abs(row["confidence"] - truth) < 5 * row["std_error"]
    assert not expected
    assert set(allowed.column("exact").to_pylist()) == {True, False}
    again = uc.match(
        crowd().take([8, 3, 5, 0, 1, 7, 2, 6, 4]), QUERY, approximate=uc.Approximation(0.02, seed=3)
    )
    assert sorted(map(repr, allowed.to_pylist())) == sorted(map(repr, again.to_pylist()))


def test_exact_rows_say_so_where_estimates_are_allowed() -> None:
    found = uc.match(crowd(), QUERY, approximate=0.01)
    assert set(found.column("exact").to_pylist()) == {True}
    assert set(found.column("std_error").to_pylist()) == {0.0}
    assert found.drop_columns(["exact", "std_error"]).equals(uc.match(crowd(), QUERY))


@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.1, "much", True])
def test_wrong_approximations_are_refused(wrong: object) -> None:
    with pytest.raises(uc.OptionError, match="standard error"):
        uc.match(crowd(), QUERY, approximate=wrong)  # type: ignore[arg-type]


METHODS = ["query_order", "any_state", "selectivity", "point"]


def answers(method: str, *, stream: bool, allowed: uc.Approximation | None) -> list[dict[str, Any]]:
    if not stream:
        found: list[dict[str, Any]] = uc.match(
            crowd(), QUERY, evaluation=method, approximate=allowed
        ).to_pylist()
        return found
    matcher = uc.IncrementalMatcher(
        QUERY, crowd().schema, evaluation=method, approximate=allowed, largest_interval=59
    )
    parts = [matcher.push(crowd().slice(row, 1)) for row in range(9)] + [matcher.close()]
    return [match for part in parts for match in part.to_pylist()]


@pytest.mark.parametrize("stream", [False, True], ids=["table", "stream"])
@pytest.mark.parametrize("method", [*METHODS, "sliced"])
def test_every_method_estimates_what_is_too_dear_and_only_that(
    method: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "sliced" and not stream:
        method = "auto"
    expected = dict(exact())
    for module in (incremental, next_match, points):
        monkeypatch.setattr(module, "MOST_CONFIDENCE_STEPS", 1_000_000)
    with pytest.raises(uc.ConfidenceCostError, match=r"approximate="):
        answers(method, stream=stream, allowed=None)
    seen = set()
    for match in answers(method, stream=stream, allowed=uc.Approximation(0.02, seed=3)):
        truth = expected.pop((match["a"], match["b"], match["c"]))
        seen.add(match["exact"])
        assert abs(match["confidence"] - truth) <= (1e-9 if match["exact"] else 5 * match["std_error"])
        assert match["exact"] == (match["std_error"] == 0.0)
        assert match["std_error"] <= 0.0205
    assert not expected
    assert seen == {True, False}


def test_negations_by_points_are_estimated_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "PATTERN SEQ(A a, !A n, A b, !A m, A c) WITHIN 100"
    expected = {
        (row["a"], row["b"], row["c"]): row["confidence"] for row in uc.match(crowd(), query).to_pylist()
    }
    for module in (backtracking, points):
        monkeypatch.setattr(module, "MOST_CONFIDENCE_STEPS", 1_000_000)
    allowed = uc.Approximation(0.02, seed=3)
    by_search, by_points = (
        {(row["a"], row["b"], row["c"]): row for row in found.to_pylist()}
        for found in (
            uc.match(crowd(), query, approximate=allowed, evaluation=method) for method in ("auto", "point")
        )
    )
    assert by_search.keys() == by_points.keys() == expected.keys()
    for key, row in by_points.items():
        assert abs(row["confidence"] - expected[key]) <= 5 * row["std_error"] + 1e-9
        # A search has weighers for matches that are too dear by points.
        assert by_search[key]["exact"] or not row["exact"]
    assert {row["exact"] for row in by_points.values()} == {True, False}


@given(st.one_of(timed_cases(), timed_nested_cases()))
def test_conditions_on_times_are_estimated(case: LanguageCase | NestedCase) -> None:
    note(case.text())
    table = case.trace.table()
    expected = case.rows(uc.match(table, case.text()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "MOST_CELLS_IN_TABLE", 0)
        found = uc.match(table, case.text(), approximate=uc.Approximation(0.05, seed=3))
    rows = case.rows(found)
    assert expected.keys() <= rows.keys()
    errors = dict(zip(rows, found["std_error"].to_pylist(), strict=True))
    for key, row in rows.items():
        exact = expected.get(key)
        truth = 0.0 if exact is None or exact.confidence is None else exact.confidence
        assert row.confidence is not None
        assert abs(row.confidence - truth) <= 6 * errors[key] + 1e-9
        assert exact is None or (
            row.range_lower <= exact.range_lower and row.range_upper >= exact.range_upper
        )


def test_times_that_many_conditions_tie_are_an_error_that_names_estimates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_out(HeldChains, monkeypatch)
    events = pa.table(
        {
            "type": ["A", "B", "C", "N"],
            "id": [1, 2, 3, 4],
            "lower": [0, 10_000, 20_000, 5_000],
            "upper": [19_999, 29_999, 39_999, 29_999],
        }
    )
    query = """PATTERN SEQ(A a, !N n, B b, C c)
        WHERE TIME(n) - TIME(a) <= 9000 AND TIME(c) - TIME(a) <= 21000 WITHIN 30000"""
    with pytest.raises(uc.ConfidenceCostError, match="approximate="):
        uc.match(events, query)
    (row,) = uc.match(events, query, approximate=0.005).to_pylist()
    assert not row["exact"]
    assert 0.0 < row["std_error"] <= 0.0055
    assert uc.match(events, query, approximate=0.005).to_pylist() == [row]
    # The same shape, of a hundredth of the ticks.
    coarse = pa.table(
        {
            **{name: events[name] for name in ("type", "id")},
            **{
                name: pa.array([tick // 100 for tick in events[name].to_pylist()])
                for name in ("lower", "upper")
            },
        }
    )
    asked = query.replace("9000", "90").replace("21000", "210").replace("30000", "300")
    (exact,) = uc.match(coarse, asked).to_pylist()
    assert abs(row["confidence"] - exact["confidence"]) < 0.02 + 5 * row["std_error"]
