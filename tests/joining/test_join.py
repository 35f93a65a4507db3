"""Joins of events by their times, against all worlds of the events by exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.moments import moments, table_of, times_of
from tests.joining.sides import Trace, traces
from uncertain_cep.joining.near_intervals import Intervals, overlapping

WHENS: dict[str, Callable[[int, int], bool]] = {
    "before": lambda left, right: left < right,
    "after": lambda left, right: left > right,
    "overlaps": lambda left, right: left == right,
    "contains": lambda left, right: left == right,
    "during": lambda left, right: left == right,
    "within 0": lambda left, right: left == right,
    "within 2": lambda left, right: abs(left - right) <= 2,
}


@given(traces(), st.sampled_from([*WHENS]), st.booleans(), st.sampled_from(["inner", "left"]))
def test_pairs_are_those_of_all_worlds(trace: Trace, when: str, keyed: bool, how: str) -> None:
    left, right, clocks = trace
    holds = WHENS[when]
    expected: dict[tuple[int, int | None], Fraction] = {}
    for row, event in enumerate(left):
        partners = [r for r, other in enumerate(right) if not keyed or (event.key and event.key == other.key)]
        alone = Fraction()
        for weight, (tick, *ticks) in times_of([event, *(right[r] for r in partners)], clocks):
            none = Fraction(1)
            for r, other in zip(partners, ticks, strict=True):
                if holds(tick, other):
                    pair = weight * event.probability * right[r].probability
                    expected[row, r] = expected.get((row, r), Fraction()) + pair
                    none *= 1 - right[r].probability
            alone += weight * event.probability * none
        if how == "left" and alone:
            expected[row, None] = alone
    tables = table_of(left, clocks), table_of(right, clocks)
    rows = uc.join(*tables, on="key" if keyed else None, when=when, how=how).to_pylist()
    assert [(row["left_id"], row["right_id"]) for row in rows] == sorted(
        expected, key=lambda pair: (pair[0], len(right) if pair[1] is None else pair[1])
    )
    for pair in rows:
        exact = expected[pair["left_id"], pair["right_id"]]
        assert math.isclose(pair["probability"], exact, rel_tol=1e-9), (pair, exact)


@given(
    st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 40), st.integers(0, 20)), max_size=8),
    st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 40), st.integers(-1, 40)), max_size=8),
)
def test_overlaps_are_listed_once(first: list[tuple[int, ...]], second: list[tuple[int, ...]]) -> None:
    sides = []
    for side in (first, second):
        group, low, length = np.array(side, dtype=np.int64).reshape(-1, 3).T
        sides.append(Intervals(group, low, low + length))
    x, y = overlapping(*sides)
    expected = [
        (i, j)
        for i, (g, low, length) in enumerate(first)
        for j, (h, begin, more) in enumerate(second)
        if g == h >= 0 and more >= 0 and begin <= low + length and low <= begin + more
    ]
    assert list(zip(x.tolist(), y.tolist(), strict=True)) == expected


def test_columns_of_both_sides() -> None:
    left = moments(["p"], [5], [5], host=["h"], load=[1.5])
    right = moments([7, 8], [5, 50], [6, 50], host=["h", "g"], load=[2.5, 0.0], disk=["d", "e"])
    joined = uc.join(left, right, on="host", how="left").to_pylist()
    none = {"right_id": None, "load_right": None, "disk": None, "probability": 0.5}
    of_left = {"left_id": "p", "host": "h", "load": 1.5}
    assert joined == [
        {**of_left, "right_id": 7, "load_right": 2.5, "disk": "d", "probability": 0.5}, {**of_left, **none},
    ]  # fmt: skip
    assert [row["right_id"] for row in uc.join(left, right, when="before").to_pylist()] == [7, 8]
    assert uc.join(left, right.slice(0, 0)).num_rows == 0
    assert uc.join(left.slice(0, 0), right, how="left").num_rows == 0


def test_long_intervals_cost_what_short_ones_do() -> None:
    left = moments([1], [0], [10**12 - 1])
    right = moments([2], [0], [10**12 - 1])
    for when, expected in ((f"within {10**11}", 0.19), ("before", 0.5), ("overlaps", 1e-12)):
        assert uc.join(left, right, when=when)["probability"].to_pylist() == [
            pytest.approx(expected, rel=1e-6)
        ]
    certain = moments([1], [10**11], [10**11])
    near = uc.join(certain, right, when=f"within {10**11}", how="left")["probability"].to_pylist()
    assert near == [pytest.approx(0.2, rel=1e-6), pytest.approx(0.8, rel=1e-6)]


def test_events_at_both_ends_of_time() -> None:
    early, late = moments([1], [-(2**61)], [-(2**61)]), moments([2], [2**61 - 1], [2**61 - 1])
    assert uc.join(early, late, when="before")["probability"].to_pylist() == [1.0]
    latest = moments([2], [2**61], [2**61])
    with pytest.raises(uc.TraceError, match="ticks apart: choose a longer tick"):
        uc.join(early, latest, when="before")


def test_kinds_of_frames_and_times() -> None:
    start = datetime(2026, 3, 1)
    left = moments(["x"], [start], [start + timedelta(seconds=4)])
    lower = pa.array([start + timedelta(seconds=4)], pa.timestamp("ns"))
    right = moments(["y"], lower, lower)
    whole = uc.join(left, right, when="within 2s", tick="1s")
    assert whole["probability"].to_pylist() == [pytest.approx(3 / 5)]
    assert uc.join(left.to_pandas(), right, when="within 2s", tick="1s").equals(whole.to_pandas())
    assert uc.join(pl.from_arrow(left), right, when="within 2s", tick="1s").equals(pl.from_arrow(whole))
    assert isinstance(uc.join(left.to_pandas(), right.to_pandas(), tick="1s"), pd.DataFrame)


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ({}, {"when": "near"}, "when='near' is unknown: use overlaps"),
        ({}, {"when": "within 5s"}, "plain ticks of unknown length"),
        ({}, {"how": "outer"}, "how='outer' is unknown"),
        ({}, {"on": "host"}, "host"),
        ({"left_id": [1]}, {}, "two columns of the result would be called 'left_id'"),
        ({"probability": [2.0]}, {}, "the left table, row 1, column 'probability'"),
    ],
)
def test_wrong_calls(columns: dict[str, Any], options: dict[str, Any], text: str) -> None:
    with pytest.raises(uc.UncertainCepError, match=text):
        uc.join(moments([1], [0], [2], **columns), moments([2], [1], [4]), **options)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1, 2]), pa.array([1.5, 2.0])),
        (pa.array([1.5, 2.0]), pa.array([1, 2])),
        (pa.array([7, 2], pa.uint64()), pa.array([-1, 2])),
        (pa.array([-1, 2], pa.int32()), pa.array([7, 2], pa.uint64())),
    ],
)
def test_keys_of_several_kinds_of_numbers(left: pa.Array, right: pa.Array) -> None:
    one, other = (moments([1, 2], [0, 0], [0, 0], key=key) for key in (left, right))
    pairs = [(row["left_id"], row["right_id"]) for row in uc.join(one, other, on="key").to_pylist()]
    assert pairs == [(2, 2)]


def test_keys_that_are_rounded_or_too_large() -> None:
    one = moments([1], [0], [0], key=[2.0**54])
    with pytest.warns(uc.UncertainCepWarning, match="column key is a key of floats beyond"):
        assert uc.join(one, one, on="key").num_rows == 1
    large = moments([1], [0], [0], key=pa.array([2**63], pa.uint64()))
    with pytest.raises(uc.TraceError, match="column 'key'"):
        uc.join(large, large, on="key")


def test_sides_that_do_not_go_together() -> None:
    left = moments([1], [0], [2], host=[1])
    with pytest.raises(uc.OptionError, match="int64 on the left and string on the right"):
        uc.join(left, moments([2], [1], [4], host=["h"]), on="host")
    stamps = moments([2], [datetime(2026, 3, 1)], [datetime(2026, 3, 2)])
    with pytest.raises(uc.UncertainCepError, match="on the left and"):
        uc.join(left, stamps)
    with pytest.raises(uc.TraceError, match="the right table, row 2"):
        uc.join(left, moments([2, 3], [1, 9], [4, 8]))
