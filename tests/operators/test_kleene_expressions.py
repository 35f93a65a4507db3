"""Numbered events of a Kleene component, and aggregates of expressions, in WHERE and in RETURN."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import stdev
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc

X = [2.0, 3.0, None, 3.0, 0.5]
S = ["b", "a", "b", None, "c"]
F = [True, None, False, True, None]
EVENTS = pa.table(
    {
        "type": ["L"] * 5, "id": [0, 1, 2, 3, 4], "lower": [0, 1, 2, 3, 4], "upper": [0, 1, 2, 3, 4],
        "x": X, "s": S, "f": F, "n": [2**62, 1, 2, 3, 4],
    }
)  # fmt: skip

Found = list[int]


def _present(values: list[Any], of: Found) -> list[Any]:
    return [values[k] for k in of if values[k] is not None]


def _sum(of: Found) -> float | None:
    return sum(value * value for value in _present(X, of)) if _present(X, of) else None


def _deviation(of: Found) -> float | None:
    values = _present(X, of)
    return stdev(values) if len(values) > 1 else None


def _percentile(of: Found, fraction: float) -> float | None:
    values = sorted(_present(X, of))
    if not values:
        return None
    place = (len(values) - 1) * fraction
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return float(values[low] + (values[high] - values[low]) * (place - low))


def _all(values: list[bool], decide: Callable[[list[bool]], bool]) -> bool | None:
    return decide(values) if values else None


EXPRESSIONS: dict[str, Callable[[Found], Any]] = {
    "c[2].x": lambda of: X[of[1]] if len(of) > 1 else None,
    "c[3].s": lambda of: S[of[2]] if len(of) > 2 else None,
    "c[2].x - c[1].x": lambda of: (
        X[of[1]] - X[of[0]] if len(of) > 1 and X[of[1]] is not None and X[of[0]] is not None else None  # type: ignore[operator]
    ),
    "first(c[].s)": lambda of: S[of[0]],
    "last(c[].x * 2)": lambda of: None if X[of[-1]] is None else X[of[-1]] * 2,  # type: ignore[operator]
    "sum(c[].x * c[].x)": _sum,
    "count(DISTINCT c[].s)": lambda of: len(set(_present(S, of))),
    "count(DISTINCT c[].x)": lambda of: len(set(_present(X, of))),
    "count(DISTINCT c[].x > 1)": lambda of: len({value > 1 for value in _present(X, of)}),
    "stddev(c[].x)": _deviation,
    "median(c[].x)": lambda of: _percentile(of, 0.5),
    "percentile(c[].x, 95%)": lambda of: _percentile(of, 0.95),
    "percentile(c[].x, 0)": lambda of: min(_present(X, of), default=None),
    "any(c[].f)": lambda of: _all(_present(F, of), any),
    "every(c[].f)": lambda of: _all(_present(F, of), all),
    "every(c[].x > 1 AND c[].x < 5)": lambda of: _all([value > 1 for value in _present(X, of)], all),
    "max(c[].x + 1)": lambda of: max(_present(X, of)) + 1 if _present(X, of) else None,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_returns(expression: str) -> None:
    found = uc.match(EVENTS, f"PATTERN SEQ(L+ c[]) WITHIN 9 RETURN {expression} AS it").to_pylist()
    assert len(found) == 31
    for row in found:
        expected = EXPRESSIONS[expression](row["c"])
        if isinstance(expected, float):
            assert math.isclose(row["it"], expected, rel_tol=1e-12, abs_tol=1e-12)
        else:
            assert row["it"] == expected


@pytest.mark.parametrize("evaluation", ["auto", "point"])
@given(st.sampled_from(sorted(EXPRESSIONS)), st.data())
def test_conditions(evaluation: str, expression: str, data: st.DataObject) -> None:
    every = uc.match(EVENTS, f"PATTERN SEQ(L+ c[]) WITHIN 9 RETURN {expression} AS it").to_pylist()
    value = data.draw(st.sampled_from([row["it"] for row in every if row["it"] is not None]))
    if isinstance(value, bool):
        condition, kept = expression, [row["c"] for row in every if row["it"]]
    elif isinstance(value, float):
        # Between two values, so that no rounding decides.
        condition = f"{expression} < {value + 1e-6!r}"
        kept = [row["c"] for row in every if row["it"] is not None and row["it"] < value + 1e-6]
    else:
        condition = f"{expression} = {value!r}"
        kept = [row["c"] for row in every if row["it"] == value]
    found = uc.match(EVENTS, f"PATTERN SEQ(L+ c[]) WHERE {condition} WITHIN 9", evaluation=evaluation)
    assert sorted(found["c"].to_pylist()) == sorted(kept)
    query = f"PATTERN SEQ(L+ c[]) WHERE {condition} WITHIN 9"
    matcher = uc.IncrementalMatcher(query, EVENTS.schema)
    parts = [matcher.push(EVENTS), matcher.close()]
    assert sorted(row for part in parts for row in part.column("c").to_pylist()) == sorted(kept)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("c[0].x > 1", "events are numbered from 1"),
        ("avg(DISTINCT c[].x) > 1", "DISTINCT is for count"),
        ("avg(c[].x * a.x) > 1", "over the events of one variable"),
        ("avg(c[].x * c[..i-1].x) > 1", "every one of c"),
        ("avg(c[].x * 2 + count(c[])) > 1", "takes an expression over attributes of events"),
        ("sum(2) > 1", "takes an expression over attributes of events"),
        ("stddev(c[].s) > 1", "stddev needs numbers"),
        ("median(c[].s) > 1", "median needs numbers"),
        ("percentile(c[].s, 0.9) > 1", "percentile needs numbers"),
        ("percentile(c[].x, 95) > 1", "a number from 0 to 1"),
        ("percentile(c[].x, a.x) > 1", "a number from 0 to 1"),
        ("median(DISTINCT c[].x) > 1", "DISTINCT is for count"),
        ("any(c[].x)", "any needs a condition"),
        ("max(c[].f)", r"use every\(...\) or any\(...\)"),
        ("first(c[..i-1].x) > 1", "first takes all events"),
        ("avg(c[i].x) > 1", "an aggregate takes several events"),
        ("a[2].x > 1", "a is a single event"),
        ("sum(c[].n * c[].n) > 1", "is beyond int64 in some rows"),
    ],
)
def test_what_is_refused(expression: str, said: str) -> None:
    with pytest.raises(uc.UncertainCepError, match=said):
        uc.match(EVENTS, f"PATTERN SEQ(L a, L+ c[]) WHERE {expression} WITHIN 9")


@pytest.mark.parametrize("returned", ["c[i-2].x", "c[i].x", "sum(c[..i-1].x)"])
def test_what_returns_refuse(returned: str) -> None:
    with pytest.raises(uc.QueryError):
        uc.match(EVENTS, f"PATTERN SEQ(L+ c[]) WITHIN 9 RETURN {returned}")


def test_sets_have_no_numbered_events() -> None:
    with pytest.raises(uc.QueryError, match="its events have no order"):
        uc.parse("PATTERN AND(L+ c[], L a) WHERE c[2].x > 1 WITHIN 9")


def test_every_from_the_third_on() -> None:
    found = uc.match(EVENTS, "PATTERN SEQ(L+ c[]) WHERE c[i].x >= c[i-2].x AND count(c[]) > 2 WITHIN 9")
    expected = [
        of
        for of in uc.match(EVENTS, "PATTERN SEQ(L+ c[]) WHERE count(c[]) > 2 WITHIN 9")["c"].to_pylist()
        if all(
            None not in pair and pair[0] <= pair[1]
            for pair in zip([X[k] for k in of], [X[k] for k in of[2:]], strict=False)
        )
    ]
    assert sorted(found["c"].to_pylist()) == sorted(expected)


def test_what_is_formatted_can_be_read_again() -> None:
    conditions = "c[2].x > 1 AND c[i].x > c[i-2].x AND count(DISTINCT c[].x * 2) > 1 AND any(c[].x > c[].n)"
    text = uc.explain(f"PATTERN SEQ(L+ c[]) WHERE {conditions} WITHIN 9", EVENTS)
    for condition in conditions.split(" AND "):
        assert condition in text
