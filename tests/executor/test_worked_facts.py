"""The worked facts of SEMANTICS 10 and small facts with known fractions, through the public API."""

from __future__ import annotations

import pyarrow as pa
import pytest

import uncertain_cep as uc

FIGURE_1 = pa.table(
    {
        "type": ["A", "C", "B", "C"],
        "id": [1, 2, 3, 4],
        "lower": [1, 3, 3, 4],
        "upper": [5, 5, 5, 8],
    }
)


def test_figure_1_skip_till_any() -> None:
    found = uc.match(FIGURE_1, "PATTERN SEQ(A a, B b, C c) WITHIN 4")
    assert found.sort_by("c").to_pylist() == [
        {
            "a": 1,
            "b": 3,
            "c": 2,
            "range_lower": 1,
            "range_upper": 5,
            "confidence": pytest.approx(25 / 225, rel=1e-12),
        },
        {
            "a": 1,
            "b": 3,
            "c": 4,
            "range_lower": 1,
            "range_upper": 7,
            "confidence": pytest.approx(27 / 225, rel=1e-12),
        },
    ]


@pytest.mark.parametrize(("window", "matches"), [(4, 0), (5, 1)])
def test_figure_3c_the_window_prunes(window: int, matches: int) -> None:
    table = pa.table({"type": ["A", "B", "C"], "id": [1, 5, 6], "lower": [1, 2, 6], "upper": [5, 3, 7]})
    assert uc.match(table, f"PATTERN SEQ(A a, B b, C c) WITHIN {window}").num_rows == matches


def test_the_range_is_tight_under_a_window_and_zeros() -> None:
    table = pa.table(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": [1, 6],
            "upper": [3, 9],
            "pmf": [None, [0.0, 0.5, 0.0, 0.5]],
        }
    )
    found = uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 6").to_pylist()
    # b happens at 7 or 9; 7 reaches back to 2, 9 is out of reach of 3.
    assert [(row["range_lower"], row["range_upper"]) for row in found] == [(2, 7)]
    assert found[0]["confidence"] == pytest.approx(1 / 3, rel=1e-12)
