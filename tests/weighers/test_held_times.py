"""Matches whose times are in order once one is held, against counts of all worlds by whole numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import SpanCase, span_cases
from tests.operators.test_spans import check
from tests.weighers.forcing import forced
from uncertain_cep.weighers import held_times
from uncertain_cep.weighers.held_times import HeldTimes

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")

NAMES: Final = "abcd"
PAIRS: Final = [(i, j) for i in range(4) for j in range(i)]

BOUNDS = st.tuples(st.integers(0, 25), st.sampled_from([0, 1, 7, 20, 27, 31]))
CONDITIONS = st.lists(
    st.tuples(st.sampled_from(PAIRS), st.integers(-30, 12), st.sampled_from([0, 9, 25, 60])),
    max_size=4,
)


@FEWER
@given(
    bounds=st.lists(BOUNDS, min_size=4, max_size=4),
    conditions=CONDITIONS,
    window=st.sampled_from([24, 40, 200]),
    order=st.sampled_from(["SEQ", "SEQ", "AND"]),
)
def test_few_ticks_of_one_time_are_all_worlds(
    bounds: list[tuple[int, int]], conditions: list[Any], window: int, order: str
) -> None:
    """Every world of four times is counted: a confidence is a quotient of two whole numbers."""
    ticks = np.meshgrid(*(np.arange(low, low + size + 1) for low, size in bounds), indexing="ij", sparse=True)
    holds = reduce(np.maximum, ticks) - reduce(np.minimum, ticks) < window
    for (i, j), low, size in conditions:
        holds &= (ticks[i] - ticks[j] >= low) & (ticks[i] - ticks[j] <= low + size)
    if order == "SEQ":
        for i in range(3):
            holds &= ticks[i] < ticks[i + 1]
    expected = Fraction(int(holds.sum()), holds.size)
    texts = [
        f"TIME({NAMES[i]}) - TIME({NAMES[j]}) BETWEEN {low} AND {low + size}"
        for (i, j), low, size in conditions
    ]
    where = f" WHERE {' AND '.join(texts)}" if texts else ""
    query = f"PATTERN {order}({', '.join(f'{name.upper()} {name}' for name in NAMES)}){where} WITHIN {window}"
    note(query)
    events = pa.table(
        {
            "type": list("ABCD"), "id": [*range(4)], "lower": [low for low, _ in bounds],
            "upper": [low + size for low, size in bounds],
        }
    )  # fmt: skip
    with forced(HeldTimes.of), patch.object(held_times, "_FEW_TICKS", 0):
        rows = uc.match(events, query).to_pylist()
    assert len(rows) == (expected > 0)
    for row in rows:
        assert row["confidence"] == pytest.approx(float(expected), rel=1e-12)
        first = [int(np.broadcast_to(tick, holds.shape)[holds].min()) for tick in ticks]
        last = [int(np.broadcast_to(tick, holds.shape)[holds].max()) for tick in ticks]
        assert (row["range_lower"], row["range_upper"]) == (min(first), max(last))


@FEWER
@given(case=span_cases())
def test_events_that_last_are_their_worlds(case: SpanCase) -> None:
    note(case.text())
    with forced(HeldTimes.of), patch.object(held_times, "_FEW_TICKS", 0):
        check(case)


def test_conditions_that_bind_no_neighbours_cost_no_ticks() -> None:
    """Any unit of the ticks gives the same, but for the ticks themselves."""
    confidences = []
    for unit in (1, 100, 10_000):
        bounds = [(0, 60), (10, 30), (40, 60), (60, 60)]
        events = pa.table(
            {
                "type": list("ABCD"), "id": [*range(4)], "lower": [low * unit for low, _ in bounds],
                "upper": [(low + size) * unit for low, size in bounds],
            }
        )  # fmt: skip
        query = (
            f"PATTERN SEQ(A a, B b, C c, D d) WHERE TIME(c) - TIME(a) <= {50 * unit} "
            f"AND TIME(d) - TIME(b) >= {30 * unit} WITHIN {1000 * unit}"
        )
        with forced(HeldTimes.of) as taken:
            (row,) = uc.match(events, query).to_pylist()
        assert taken.count == 1
        confidences.append(row["confidence"])
    # What one tick has in a time goes with the unit.
    small, usual, large = confidences
    assert abs(large - usual) < abs(usual - small) / 50 < 1e-2
