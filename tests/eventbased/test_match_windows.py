"""Segments of time against plain sets of ticks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from eventbased.match_windows import grouped, restricted, touching, union

Int64 = NDArray[np.int64]

_INTERVALS = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 6)), max_size=8)


def _bounds(intervals: list[tuple[int, int]]) -> tuple[Int64, Int64]:
    lower = np.array([low for low, _ in intervals], dtype=np.int64)
    return lower, lower + np.array([length for _, length in intervals], dtype=np.int64)


def _ticks(intervals: list[tuple[int, int]]) -> set[int]:
    return {tick for low, length in intervals for tick in range(low, low + length + 1)}


def _segments(times: Int64) -> set[int]:
    starts, stops = times.tolist()
    assert all(start <= stop for start, stop in zip(starts, stops, strict=True))
    assert all(stop + 1 < start for stop, start in zip(stops, starts[1:], strict=False))
    return {tick for start, stop in zip(starts, stops, strict=True) for tick in range(start, stop + 1)}


@given(_INTERVALS)
def test_union(intervals: list[tuple[int, int]]) -> None:
    assert _segments(union(*_bounds(sorted(intervals)))) == _ticks(intervals)


@given(_INTERVALS, _INTERVALS, st.integers(-9, 9), st.integers(-9, 9))
def test_restricted(
    intervals: list[tuple[int, int]], others: list[tuple[int, int]], least: int, most: int
) -> None:
    times, other_times = union(*_bounds(sorted(intervals))), union(*_bounds(sorted(others)))
    expected = {
        tick
        for tick in _ticks(intervals)
        if any(tick - other in range(least, most + 1) for other in _ticks(others))
    }
    assert _segments(restricted(times, other_times, least, most)) == expected


@given(
    _INTERVALS, st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 20), st.integers(0, 6)), max_size=9)
)
def test_touching_and_grouped(segments: list[tuple[int, int]], found: list[tuple[int, int, int]]) -> None:
    partition = np.array([number for number, _, _ in found], dtype=np.int64)
    lower, upper = _bounds([(low, length) for _, low, length in found])
    shift = np.array([-100, 0, 100], dtype=np.int64)
    times = union(*_bounds(sorted(segments)))
    out, hint = np.empty(len(found), dtype=np.int64), np.zeros(3, dtype=np.int64)
    count = touching(lower, upper, partition, shift, times, hint, out)
    moved = [(low + 100 * number - 100, length) for number, low, length in found]
    expected = [i for i, one in enumerate(moved) if _ticks([one]) & _ticks(segments)]
    assert out[:count].tolist() == expected
    lifted_lower, lifted_upper = np.empty_like(lower), np.empty_like(upper)
    ascends = grouped(lower, upper, partition, shift, lifted_lower, lifted_upper)
    order = sorted(range(len(found)), key=lambda i: found[i][0])
    assert lifted_lower.tolist() == [moved[i][0] for i in order]
    assert lifted_upper.tolist() == [sum(moved[i]) for i in order]
    assert ascends == (lifted_lower.tolist() == sorted(lifted_lower.tolist()))
