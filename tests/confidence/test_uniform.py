"""The closed form for uniform intervals against enumeration, and its accuracy where terms cancel."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import (
    chain_confidence,
    confidence_of_three,
    confidence_of_two,
    exact_chain_confidence,
    tight_bounds,
)

Intervals = list[tuple[int, int]]

small = st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 5)), min_size=1, max_size=5).map(
    lambda parts: [(low, low + size) for low, size in parts]
)


def worlds(intervals: Intervals, window: int) -> list[tuple[int, ...]]:
    times = itertools.product(*(range(low, high + 1) for low, high in intervals))
    return [t for t in times if all(x < y for x, y in itertools.pairwise(t)) and t[-1] - t[0] <= window - 1]


def enumerated(intervals: Intervals, window: int) -> Fraction:
    return Fraction(len(worlds(intervals, window)), math.prod(high - low + 1 for low, high in intervals))


def exact(intervals: Intervals, window: int) -> Fraction:
    return exact_chain_confidence([low for low, _ in intervals], [high for _, high in intervals], window)


def computed(intervals: Intervals, window: int) -> float:
    length = len(intervals)
    lower = np.array([low - j for j, (low, _) in enumerate(intervals)])
    upper = np.array([high - j for j, (_, high) in enumerate(intervals)])
    bounds = np.empty((4, length), np.int64)
    a, b = np.empty(length, np.int64), np.empty(length, np.int64)
    return float(chain_confidence(lower, upper, window - length, a, b, bounds, np.empty((4, 2 * length + 1))))


@given(small, st.integers(1, 14))
def test_exact_form_is_the_enumeration(intervals: Intervals, window: int) -> None:
    assert exact(intervals, window) == enumerated(intervals, window)


@given(small, st.integers(0, 10))
def test_kernel_is_the_enumeration(intervals: Intervals, slack: int) -> None:
    window = len(intervals) + slack
    expected = enumerated(intervals, window)
    found = computed(intervals, window)
    assert found == pytest.approx(float(expected), rel=1e-12, abs=0)


@given(small, st.integers(0, 10))
def test_bounds_are_those_of_the_possible_worlds(intervals: Intervals, slack: int) -> None:
    window = len(intervals) + slack
    length = len(intervals)
    lower = np.array([low - j for j, (low, _) in enumerate(intervals)])
    upper = np.array([high - j for j, (_, high) in enumerate(intervals)])
    a, b = np.empty(length, np.int64), np.empty(length, np.int64)
    feasible = tight_bounds(lower, upper, slack, a, b)
    possible = worlds(intervals, window)
    assert feasible == bool(possible)
    if feasible:
        for j in range(length):
            assert a[j] + j == min(t[j] for t in possible)
            assert b[j] + j == max(t[j] for t in possible)


@st.composite
def large(draw: st.DrawFn, shortest: int, longest: int) -> tuple[Intervals, int]:
    """Long chains of long intervals, and windows from far shorter than them to far longer."""
    length = draw(st.integers(shortest, longest))
    scale = draw(st.sampled_from([10, 1_000, 10**6, 10**9]))
    lows = draw(st.lists(st.integers(0, scale), min_size=length, max_size=length))
    sizes = draw(st.lists(st.integers(0, scale), min_size=length, max_size=length))
    if draw(st.booleans()):
        lows.sort()
    slack = draw(st.integers(0, draw(st.sampled_from([scale // 100, scale, 2 * scale]))))
    return [(low, low + size) for low, size in zip(lows, sizes, strict=True)], length + slack


@given(large(2, 10))
def test_kernel_is_accurate_or_asks_for_exact_arithmetic(case: tuple[Intervals, int]) -> None:
    intervals, window = case
    expected = exact(intervals, window)
    found = computed(intervals, window)
    if expected == 0:
        assert found == 0.0
    elif not math.isnan(found):
        assert abs(Fraction(found) - expected) <= expected * Fraction(1, 10**9)


@given(large(2, 3))
def test_written_out_forms_are_the_general_one(case: tuple[Intervals, int]) -> None:
    intervals, window = case
    length = len(intervals)
    flat = [value for j, (low, high) in enumerate(intervals) for value in (low - j, high - j)]
    sizes = math.prod(float(high - low + 1) for low, high in intervals)
    kernel: Any = confidence_of_two if length == 2 else confidence_of_three
    found = float(kernel(*flat, window - length, sizes))
    expected = exact(intervals, window)
    assert not math.isnan(found)
    assert abs(Fraction(found) - expected) <= expected * Fraction(1, 10**9)


def test_intervals_much_longer_than_the_window_lose_no_digits() -> None:
    """A day's uncertainty in microseconds, a window of a second: the sum over the whole day cancels."""
    intervals = [(0, 86_400_000_000)] * 3
    expected = exact(intervals, 1_000_000)
    assert abs(Fraction(computed(intervals, 1_000_000)) / expected - 1) < Fraction(1, 10**9)
    assert 0 < expected < Fraction(1, 10**9)


def test_counts_beyond_float64_ask_for_exact_arithmetic() -> None:
    intervals = [(0, 10**12)] * 30
    assert math.isnan(computed(intervals, 10**13))
    assert exact(intervals, 10**13) > 0
