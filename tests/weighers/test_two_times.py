"""Matches of two times by pieces of their ticks, against sums over all ticks, and beyond all ticks."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.timed import summed_pieces
from tests.cases.budgets import budget
from tests.cases.sampling import FEWER
from tests.weighers.forcing import forced
from uncertain_cep.weighers.elimination import Elimination
from uncertain_cep.weighers.two_times import TwoTimes

PATTERNS: Final = (
    "AND(A a, B b, !N n) WHERE TIME(n) - TIME(a) >= 0 AND TIME(b) - TIME(n) >= 1 AND TIME(b) - TIME(a) >= 0",
    "AND(A a, B b, !N n) WHERE TIME(n) - TIME(a) BETWEEN -4 AND 7 AND TIME(b) - TIME(a) BETWEEN -9 AND 20",
    "AND(A a, !N n) WHERE TIME(n) - TIME(a) BETWEEN -6 AND 9",
    "SEQ(A a, !N n, B b)",
    "SEQ(A a, !N n, B b) WHERE TIME(n) - TIME(a) <= 11 AND TIME(b) - TIME(n) >= 3",
    "SEQ(A a, B b, !N n) WHERE TIME(b) - TIME(a) <= 12",
    "SEQ(A a, !N n, B b) WHERE TIME(b) - TIME(a) <= 19 AND TIME(n) >= 30",
)


def trace(ends: list[tuple[int, int]], beside: list[tuple[int, int, float]]) -> pa.Table:
    lower = [low for low, _ in ends] + [low for low, _, _ in beside]
    sizes = [size for _, size in ends] + [size for _, size, _ in beside]
    columns: dict[str, Any] = {
        "type": ["A", "B"] + ["N"] * len(beside),
        "id": range(len(lower)),
        "lower": lower,
        "upper": [low + size for low, size in zip(lower, sizes, strict=True)],
        "probability": [1.0, 1.0] + [likely for _, _, likely in beside],
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()})


LOWER = st.integers(0, 50)
SIZE = st.sampled_from([0, 1, 3, 8, 20, 37])
OTHERS = st.lists(st.tuples(LOWER, SIZE, st.sampled_from([1.0, 1.0, 0.25])), min_size=1, max_size=11)


@FEWER
@given(st.sampled_from(PATTERNS), st.lists(st.tuples(LOWER, SIZE), min_size=2, max_size=2), OTHERS)
@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
def test_pieces_are_sums_over_all_ticks(
    pattern: str, ends: list[tuple[int, int]], beside: list[tuple[int, int, float]]
) -> None:
    query, events = f"PATTERN {pattern} WITHIN 70", trace(ends, beside)
    rows = []
    for build in (TwoTimes.of, Elimination.of):
        with forced(build) as taken, budget(1):
            rows.append(uc.match(events, query).to_pylist())
        assert taken.count == len(rows[-1]) or not rows[-1]
    assert [[row["range_lower"], row["range_upper"]] for row in rows[0]] == [
        [row["range_lower"], row["range_upper"]] for row in rows[1]
    ]
    for row, exact in zip(*rows, strict=True):
        assert math.isclose(row["confidence"], exact["confidence"], rel_tol=1e-9)


@given(st.lists(st.tuples(LOWER, st.integers(0, 5)), min_size=4, max_size=4), st.booleans())
def test_worlds(ends: list[tuple[int, int]], is_sure: bool) -> None:
    """Small cases by fractions: a, b, and none of two events that is between them or beside a."""
    events = trace(ends[:2], [(*bounds, 1.0 if is_sure else 0.5) for bounds in ends[2:]])
    chance = Fraction()
    ticks = [range(low, low + size + 1) for low, size in ends]
    for a, b, *beside in product(*ticks):
        if 0 <= b - a <= 9:
            share = Fraction(1, math.prod(map(len, ticks)))
            for n in beside:
                share *= (0 if is_sure else Fraction(1, 2)) if a - 2 <= n < b else 1
            chance += share
    query = (
        "PATTERN AND(A a, B b, !N n) WHERE TIME(n) - TIME(a) >= -2 AND TIME(b) - TIME(n) >= 1 "
        "AND TIME(b) - TIME(a) BETWEEN 0 AND 9 WITHIN 90"
    )
    with forced(TwoTimes.of):
        rows = uc.match(events, query).to_pylist()
    assert [row["confidence"] for row in rows] == ([pytest.approx(float(chance), rel=1e-9)] if chance else [])


@pytest.mark.parametrize("ticks", [10, 1_000, 10**9, 10**15])
def test_all_that_can_be_sums_to_one(ticks: int) -> None:
    """The latest of two before a third one, ties to the second, or none: whatever the ticks."""
    lower, upper = (0, ticks // 3, ticks // 2), (ticks - 1, ticks, 2 * ticks)
    events = pa.table({"type": ["A", "B", "L"], "id": [1, 2, 3], "lower": lower, "upper": upper})
    reached = "TIME(l) - TIME({}) >= 0"
    patterns = (
        f"AND(L l, A r, !B n) WHERE TIME(n) - TIME(r) >= 0 AND {reached.format('n')}",
        f"AND(L l, B r, !A n) WHERE TIME(n) - TIME(r) >= 1 AND {reached.format('n')}",
    )
    total = 0.0
    for pattern in patterns:
        query = f"PATTERN {pattern} AND {reached.format('r')} WITHIN {4 * ticks}"
        total += sum(uc.match(events, query).column("confidence").to_pylist())
    neither = f"AND(L l, !A n, !B m) WHERE {reached.format('n')} AND {reached.format('m')}"
    query = f"PATTERN {neither} WITHIN {4 * ticks}"
    total += sum(uc.match(events, query).column("confidence").to_pylist())
    assert total == pytest.approx(1.0, rel=1e-9)


def test_a_match_of_too_many_pieces_is_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    events = trace([(0, 20), (10, 30)], [(k, 9, 1.0) for k in range(0, 30, 3)])
    query = f"PATTERN {PATTERNS[0]} WITHIN 70"
    with forced(Elimination.of):
        expected = uc.match(events, query)["confidence"].to_pylist()
    monkeypatch.setattr(summed_pieces, "_POINTS_EACH", 1)
    with forced(TwoTimes.of) as taken:
        assert uc.match(events, query)["confidence"].to_pylist() == pytest.approx(expected)
    assert taken.count == 0
