"""Sequences whose forbidden spans end at one time, which is held, against sums over all ticks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.budgets import budget
from tests.cases.sampling import FEWER
from tests.operators.test_until import UntilCase, until_cases
from tests.weighers.forcing import forced
from uncertain_cep.weighers import held_ends
from uncertain_cep.weighers.elimination import Elimination
from uncertain_cep.weighers.held_ends import HeldChains

PATTERNS: Final = (
    "SEQ(A a, B b, C c) UNTIL N n WITHIN 200",
    "SEQ(A a, SEQ(B b, C c, D d) UNTIL N n) WITHIN 200",
    "SEQ(SEQ(A a, B b, C c) UNTIL N n, D d) WITHIN 40",
    "SEQ(A a, SEQ(B b, C c) UNTIL N n, D d) "
    "WHERE TIME(n) - TIME(b) <= 9 AND TIME(c) - TIME(b) <= 22 WITHIN 200",
)


def trace(ends: list[tuple[int, int]], beside: list[tuple[int, int, float]]) -> pa.Table:
    bounds = [*ends, *((low, size) for low, size, _ in beside)]
    columns: dict[str, Any] = {
        "type": ["A", "B", "C", "D", *["N"] * len(beside)],
        "id": range(len(bounds)),
        "lower": [low for low, _ in bounds],
        "upper": [low + size for low, size in bounds],
        "probability": [1.0] * 4 + [likely for _, _, likely in beside],
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()})


SIZE = st.sampled_from([0, 1, 5, 20, 37, 60])
ENDS = st.tuples(*(st.tuples(st.integers(at, at + 25), SIZE) for at in (0, 15, 25, 40)))
OTHERS = st.lists(
    st.tuples(st.integers(0, 80), SIZE, st.sampled_from([1.0, 1.0, 0.25])), min_size=1, max_size=4
)


@FEWER
@given(st.sampled_from(PATTERNS), ENDS, OTHERS)
@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
def test_few_ticks_are_sums_over_all(
    pattern: str, ends: tuple[tuple[int, int], ...], beside: list[tuple[int, int, float]]
) -> None:
    query, events = f"PATTERN {pattern}", trace(list(ends), beside)
    rows = []
    for build in (HeldChains.of, Elimination.of):
        with forced(build), budget(1):
            rows.append(uc.match(events, query).to_pylist())
    assert [[row["range_lower"], row["range_upper"]] for row in rows[0]] == [
        [row["range_lower"], row["range_upper"]] for row in rows[1]
    ]
    for row, exact in zip(*rows, strict=True):
        assert math.isclose(row["confidence"], exact["confidence"], rel_tol=1e-9)


@FEWER
@given(until_cases())
def test_worlds(case: UntilCase) -> None:
    note(case.text())
    with forced(HeldChains.of):
        case.check()


@pytest.mark.compiled
def test_long_intervals_take_few_ticks() -> None:
    """Four events and two that are forbidden, of up to 9,000 ticks."""
    ends, beside = (
        [(0, 4_000), (3_000, 6_000), (5_000, 8_000), (9_000, 9_000)],
        [(2_000, 7_000), (6_000, 9_000)],
    )
    events = trace(ends, [(*bounds, 1.0) for bounds in beside])
    (row,) = uc.match(events, "PATTERN SEQ(A a, B b, C c, D d) UNTIL N n WITHIN 100000").to_pylist()
    assert row["confidence"] == pytest.approx(0.008303173291433099, rel=1e-9)
    assert (row["range_lower"], row["range_upper"]) == (0, 15_000)


@pytest.mark.parametrize(("limit", "times"), [(2.0**60, 0), (0.0, 1)])
def test_what_plain_python_takes_long_for_is_compiled_at_once(
    limit: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = []

    @contextmanager
    def compiled() -> Iterator[None]:
        entered.append(1)
        yield

    monkeypatch.setattr(held_ends, "runs_plain", lambda: True)
    monkeypatch.setattr(held_ends, "always_compiled", compiled)
    monkeypatch.setattr(held_ends, "_MOST_PLAIN", limit)
    events = trace([(0, 5), (15, 5), (25, 5), (40, 5)], [(10, 20, 1.0)])
    with forced(HeldChains.of):
        assert uc.match(events, f"PATTERN {PATTERNS[0]}").num_rows == 1
    assert len(entered) == times
