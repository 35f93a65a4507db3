"""Confidences that take too long: an error, or an estimate where the caller allows one."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep import next_match

QUERY = "PATTERN SEQ(A a, A b, A c) WHERE skip_till_next_match(a, b, c) WITHIN 100"


def crowd() -> pa.Table:
    """Events that every component can take, all over each other: every gap of a match is coupled."""
    lower = [0, 2, 5, 9, 10, 14, 18, 19, 21]
    return pa.table(
        {"type": ["A"] * 9, "id": list(range(9)), "lower": lower, "upper": [low + 59 for low in lower]}
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_match, "MOST_CONFIDENCE_STEPS", 100_000)


@pytest.mark.usefixtures("impatient")
def test_too_dear_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(uc.ConfidenceCostError, match=r"\(a=\d, b=\d, c=\d\).*approximate=") as caught:
        uc.match(crowd(), QUERY)
    assert caught.value.steps > caught.value.limit == 100_000


def exact() -> dict[tuple[int, ...], float]:
    return {(row["a"], row["b"], row["c"]): row["confidence"] for row in uc.match(crowd(), QUERY).to_pylist()}


def test_estimates_are_near_and_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = exact()
    monkeypatch.setattr(next_match, "MOST_CONFIDENCE_STEPS", 1_000_000)
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


def test_methods_without_estimates_refuse_them() -> None:
    with pytest.raises(uc.OptionError, match="exact confidences only"):
        uc.match(crowd(), QUERY, evaluation="point", approximate=0.01)
