"""The kernels written out for one length each, against exact fractions, at edges of intervals and window."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import exact_chain_confidence, tight_bounds
from confidence.chain.side_by_side import CHAINS, fill_confidences, new_chains, tight_ranges
from confidence.chain.write_out import LENGTHS, PLACE, written_out
from confidence.config import MOST_EXACT_TICKS
from tests.cases.sampling import sampled_from

Intervals = list[tuple[int, int]]

WORST_DIFFERENCE = Fraction(1, 10**11)
"""Largest relative difference from the exact value where a sum is trusted."""


def side_by_side(chains: list[Intervals], window: int, origin: int = 0) -> list[float]:
    """Return the confidences of chains of equal length; positions are counted from ``origin``."""
    length = len(chains[0])
    room = new_chains(length, window - length)
    assert room is not None
    # What is not asked for stays as it was, and places need not be in order.
    out = np.full(len(chains) + 1, -1.0)
    for n, intervals in enumerate(chains):
        for j, (low, high) in enumerate(intervals):
            room.bounds[2 * j : 2 * j + 2, n] = low - j - origin, high - j - origin
        room.place[n] = len(chains) - n
    fill_confidences(room, len(chains), window - length, out)
    assert out[0] == -1.0
    return [float(value) for value in out[:0:-1]]


def exact(intervals: Intervals, window: int) -> Fraction:
    return exact_chain_confidence([low for low, _ in intervals], [high for _, high in intervals], window)


def assert_close(found: float, expected: Fraction) -> None:
    if expected == 0:
        assert found == 0.0
    elif not math.isnan(found):
        assert abs(Fraction(found) - expected) <= expected * WORST_DIFFERENCE


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Intervals], int]:
    """Draw chains side by side: intervals that touch, nest, are equal or certain, windows that just bind."""
    length = draw(st.integers(LENGTHS[0], LENGTHS[-1]))
    scale = draw(sampled_from((3, 20, 1_000, 10**6)))
    ticks = st.integers(0, scale)
    chains: list[Intervals] = []
    for _ in range(draw(st.integers(1, 4))):
        chain = [(draw(ticks), draw(ticks))]
        for _ in range(length - 1):
            low, size = chain[-1]
            step = draw(sampled_from((0, 1, size, size + 1, draw(ticks), -draw(ticks) // 4)))
            chain.append((low + step, draw(sampled_from((0, size, scale, draw(ticks))))))
        chains.append([(low, low + size) for low, size in chain])
    reach = chains[0][-1][1] - chains[0][0][0] + 1
    spread = max(low for low, _ in chains[0]) - min(high for _, high in chains[0]) + 1
    window = draw(sampled_from((reach, reach - 1, spread, spread + 1, length + 2 * draw(ticks))))
    return chains, max(window, length)


def test_written_kernels_are_those_of_the_generator() -> None:
    assert PLACE.read_text() == written_out(), "run python -m confidence.chain.write_out"


@given(cases())
def test_a_confidence_is_exact_or_asked_for_again(case: tuple[list[Intervals], int]) -> None:
    chains, window = case
    for intervals, found in zip(chains, side_by_side(chains, window), strict=True):
        assert_close(found, exact(intervals, window))


@given(cases(), st.integers(-(10**9), 10**9))
def test_no_value_depends_on_its_neighbours_or_the_origin(
    case: tuple[list[Intervals], int], origin: int
) -> None:
    chains, window = case
    together = np.array(side_by_side(chains, window))
    alone = np.array([side_by_side([intervals], window, origin)[0] for intervals in chains])
    assert together.tobytes() == alone.tobytes()


@given(cases(), st.lists(st.integers(-3, 3), min_size=4, max_size=4))
def test_ranges_are_the_tightest_of_each_chain(case: tuple[list[Intervals], int], wider: list[int]) -> None:
    chains, window = case
    length = len(chains[0])
    lower, upper = np.array(chains).transpose(2, 1, 0) - np.arange(length)[:, None]
    w = window - length + np.array(wider[: len(chains)])
    first, last, possible = tight_ranges(lower, upper, w)
    for n, intervals in enumerate(chains):
        a, b = np.empty((2, length), dtype=np.int64)
        can_be = w[n] >= 0 and tight_bounds(lower[:, n].copy(), upper[:, n].copy(), int(w[n]), a, b)
        assert possible[n] == can_be == (exact(intervals, length + int(w[n])) > 0)
        if can_be:
            assert (first[n], last[n]) == (a[0], b[-1])


@pytest.mark.parametrize("length", LENGTHS)
def test_short_chains_of_equal_intervals_do_not_cancel(length: int) -> None:
    """A fifth of the window and all of it; from seven events on, their sums are too small for the terms."""
    chains: list[Intervals] = [[(0, size)] * length for size in (19, 99)]
    for intervals, found in zip(chains, side_by_side(chains, 100), strict=True):
        assert math.isnan(found) == (length > 7)
        assert_close(found, exact(intervals, 100))


@pytest.mark.parametrize("length", LENGTHS)
def test_certain_times_are_one_or_nothing(length: int) -> None:
    apart: Intervals = [(10 * j, 10 * j) for j in range(length)]
    reach = 10 * (length - 1) + 1
    assert side_by_side([apart, apart[::-1]], reach) == [1.0, 0.0]
    assert side_by_side([apart, apart[::-1]], reach - 1) == [0.0, 0.0]


def test_sums_that_round_to_more_than_all_are_one() -> None:
    """Intervals that hardly meet: the sums of both ended at 1.0000000000000002."""
    for bounds in (
        [(2, 4254), (4256, 82269), (82270, 172464), (172466, 197315), (197316, 269276), (269276, 312951)],
        [(1, 60103), (60103, 66609), (66609, 68147), (68147, 137918), (137919, 154067), (154067, 178021)],
    ):
        chain = [(low + j, high + j) for j, (low, high) in enumerate(bounds)]
        found = side_by_side([chain], 10**6)[0]
        assert found <= 1.0
        assert_close(found, exact(chain, 10**6))


def test_chains_that_float64_cannot_place_are_asked_for_again() -> None:
    far = MOST_EXACT_TICKS
    assert math.isnan(side_by_side([[(0, 9), (far, far + 9)]], MOST_EXACT_TICKS // 2 + 2)[0])
    # Rounded, none of the ticks that are left would be.
    assert math.isnan(side_by_side([[(-(2**61), 2**61 - 1), (2**61, 2**61)]], 2)[0])
    found = side_by_side([[(0, far), (0, far)], [(0, 9), (5, 14)]], MOST_EXACT_TICKS // 2 + 2)
    assert math.isnan(found[0])
    assert found[1] == float(exact([(0, 9), (5, 14)], 100))
    assert new_chains(3, MOST_EXACT_TICKS) is None
    assert new_chains(9, 100) is None


def test_all_places_can_be_filled() -> None:
    room = new_chains(2, 98)
    assert room is not None
    room.bounds[:] = [[0.0], [9.0], [4.0], [13.0]]
    room.place[:] = np.arange(len(room.place))
    out = np.zeros(CHAINS)
    fill_confidences(room, CHAINS, 98, out)
    assert set(out.tolist()) == {float(exact([(0, 9), (5, 14)], 100))}
