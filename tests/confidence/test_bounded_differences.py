"""Uniform times with bounds on the differences of neighbours, against sums over their ticks."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from confidence.timed.bounded_matches import describe_bounded
from confidence.timed.bounds import UNBOUND, tightened
from confidence.timed.cycles import LONGEST_CYCLE, CycleWork, bounded_probability
from confidence.timed.paths import PathWork, path_probability
from confidence.timed.ticks import describe_by_ticks
from tests.cases.sampling import FEWER


class Times(NamedTuple):
    """Intervals, bounds of the difference from the time before (None: unbound), and a window."""

    lower: list[int]
    upper: list[int]
    g: list[int]
    h: list[int | None]
    window: int


@st.composite
def times(draw: st.DrawFn, most: int = 6) -> Times:
    """Draw times that overlap a lot."""
    length = draw(st.integers(1, most))
    step = draw(st.integers(0, 5))
    lower = [draw(st.integers(0, 6)) + step * j for j in range(length)]
    size = st.sampled_from(draw(st.sampled_from([[0, 1, 3, 8], [3, 8, 20], [15, 30, 45]])))
    upper = [low + draw(size) for low in lower]
    g = [draw(st.integers(1, 4)) for _ in range(length)]
    h = [None if draw(st.integers(0, 2)) == 0 else low + draw(st.sampled_from([0, 1, 5, 20])) for low in g]
    return Times(lower, upper, g, h, draw(st.integers(1, 60)))


@st.composite
def bound_times(draw: st.DrawFn, least: int = 7, most: int = 8) -> Times:
    """Draw long intervals that overlap, with bounds on all differences and a window that binds."""
    length = draw(st.integers(least, most))
    lower = [draw(st.sampled_from([0, 0, 2, 9])) for _ in range(length)]
    upper = [low + draw(st.sampled_from([25, 40, 60])) for low in lower]
    g = [draw(st.integers(1, 3)) for _ in range(length)]
    h: list[int | None] = [low + draw(st.sampled_from([6, 15])) for low in g]
    return Times(lower, upper, g, h, draw(st.integers(20, 60)))


def counted(given: Times) -> tuple[Fraction, list[int], list[int]]:
    """Return the probability and the first and last tick of the first and the last time, by all ticks."""
    ticks = np.arange(min(given.lower), max(given.upper) + 1)
    apart = ticks[None, :] - ticks[:, None]
    inside = [(low <= ticks) & (ticks <= high) for low, high in zip(given.lower, given.upper, strict=True)]
    # Choices by their first time and their last.
    count = np.diag(inside[0]).astype(np.int64)
    for is_inside, g, h in zip(inside[1:], given.g[1:], given.h[1:], strict=True):
        most = np.iinfo(np.int64).max if h is None else h
        count = count @ ((g <= apart) & (apart <= most) & is_inside).astype(np.int64)
    count[apart >= given.window] = 0
    firsts, lasts = (ticks[found] for found in np.nonzero(count))
    total = Fraction(int(count.sum()))
    for low, high in zip(given.lower, given.upper, strict=True):
        total /= high - low + 1
    return total, firsts.tolist(), lasts.tolist()


def described(given: Times) -> tuple[int, int, float]:
    length = len(given.lower)
    lower, upper, g = (np.array([found]) for found in (given.lower, given.upper, given.g))
    h = np.array([[UNBOUND if high is None else high for high in given.h]])
    out = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64), np.empty(1)
    describe_bounded(
        lower, upper, (upper - lower + 1).astype(np.float64), g, h, np.array([given.window]), True,
        np.empty((10, length), dtype=np.int64), np.empty((4, 2 * length + 1)), CycleWork.of(length), out,
    )  # fmt: skip
    return int(out[0][0]), int(out[1][0]), float(out[2][0])


@given(times())
def test_range_and_confidence(given: Times) -> None:
    expected, firsts, lasts = counted(given)
    low, high, found = described(given)
    assert found == pytest.approx(float(expected), rel=1e-12, abs=0)
    if expected:
        assert (low, high) == (min(firsts), max(lasts))
    else:
        assert low > high


@FEWER
@given(bound_times())
def test_more_bounds_than_signed_sums_are_for(given: Times) -> None:
    assert described(given)[2] == pytest.approx(float(counted(given)[0]), rel=1e-12, abs=0)


def bounded(given: Times) -> float:
    """Return the sum over the cycle, by the function as it is written."""
    lower, upper, g = (np.array(found) for found in (given.lower, given.upper, given.g))
    h = np.array([UNBOUND if high is None else high for high in given.h])
    plain = getattr(bounded_probability, "plain", bounded_probability)
    work = CycleWork.of(len(lower))
    return float(plain(lower, upper, upper - lower + 1.0, g, h, given.window, work))


@FEWER
@given(st.one_of(times(), bound_times(2, 8)))
@example(Times([0] * 4, [200] * 4, [1] * 4, [None, 90, None, None], 150))
@example(Times([0] * 6, [200] * 6, [1] * 6, [None, 90, None, None, None, None], 150))
@example(Times([0] * 8, [200] * 8, [1] * 8, [None, 90, None, None, None, None, None, None], 150))
def test_sums_over_cycles(given: Times) -> None:
    """Rules of each length, and pieces that are long, short or of the few ticks of one time."""
    assert bounded(given) == pytest.approx(float(counted(given)[0]), rel=1e-11, abs=0)


def test_cycles_too_long_for_few_values_are_left_to_others() -> None:
    length = LONGEST_CYCLE + 1
    assert np.isnan(bounded(Times([0] * length, [99] * length, [1] * length, [None] * length, 90)))
    assert bounded(Times([0] * length, [11] * length, [1] * length, [None] * length, 11)) > 0.0


@pytest.mark.parametrize("scale", [10**3, 10**6])
@pytest.mark.parametrize("window", [4, 9])
def test_long_intervals_cost_no_more(scale: int, window: int) -> None:
    """Where all lengths grow, the probability tends to a volume, and two scales tell how fast."""
    found = []
    for times_longer in (scale, 2 * scale, 4 * scale):
        ticks = Times(
            [0, times_longer, 2 * times_longer, 2 * times_longer], [4 * times_longer] * 4,
            [1, times_longer // 2, 1, 1], [None, 2 * times_longer, times_longer, None],
            window * times_longer // 2,
        )  # fmt: skip
        found.append(described(ticks)[2])
    first, second = found[0] - found[1], found[1] - found[2]
    assert 0 < found[0] < 1
    assert second == pytest.approx(first / 2, rel=0.05, abs=1e-9)


def test_a_path_may_go_back() -> None:
    """The edge that a window makes bounds a difference by a negative one."""
    lower, upper = np.array([0, 0]), np.array([9, 9])
    size, work = np.full(2, 10.0), PathWork.of(2)
    found = path_probability(lower, upper, size, np.array([0, -2]), np.array([0, UNBOUND]), work)
    pairs = sum(t - s >= -2 for s in range(10) for t in range(10))
    assert found == pytest.approx(pairs / 100, rel=1e-14)


@given(times())
def test_any_bounds_are_tightened_alike(given: Times) -> None:
    bounds = {
        (j, j - 1): (given.g[j], UNBOUND if (high := given.h[j]) is None else high)
        for j in range(1, len(given.lower))
    }
    last = len(given.lower) - 1
    low, high = bounds.get((last, 0), (-UNBOUND, UNBOUND))
    if last:
        bounds[last, 0] = (low, min(high, given.window - 1))
    tight = tightened(np.array(given.lower), np.array(given.upper), bounds)
    expected, firsts, lasts = counted(given)
    assert (tight is None) == (not expected)
    if tight is not None:
        assert (tight[0][0], tight[1][-1]) == (min(firsts), max(lasts))


@given(times(), st.data())
def test_explicit_probabilities(given: Times, data: st.DataObject) -> None:
    """By a sum over the ticks of all times, where the window leaves all of them."""
    length = len(given.lower)
    pmfs = []
    for low, high in zip(given.lower, given.upper, strict=True):
        weights = data.draw(st.lists(st.integers(0, 3), min_size=high - low + 1, max_size=high - low + 1))
        pmfs.append([weight / max(sum(weights), 1) for weight in weights] if any(weights) else None)
    window = 1000

    def weight(j: int, tick: int) -> float:
        pmf = pmfs[j]
        return 1 / (given.upper[j] - given.lower[j] + 1) if pmf is None else pmf[tick - given.lower[j]]

    def carried(order: list[int]) -> dict[int, float]:
        """Return the weights of the last time of an order, the first carried to it."""
        front = {t: weight(order[0], t) for t in range(given.lower[order[0]], given.upper[order[0]] + 1)}
        for before, j in pairwise(order):
            edge = max(before, j)
            low, high = given.g[edge], given.h[edge]
            most = 10**9 if high is None else high
            front = {
                t: weight(j, t)
                * sum(
                    many for s, many in front.items() if low <= abs(t - s) <= most and (t > s) == (j > before)
                )
                for t in range(given.lower[j], given.upper[j] + 1)
            }
        return {t: many for t, many in front.items() if many > 0}

    last, first = carried(list(range(length))), carried(list(range(length))[::-1])
    lower, upper, g = (np.array([found]) for found in (given.lower, given.upper, given.g))
    h = np.array([[UNBOUND if high is None else high for high in given.h]])
    starts = np.cumsum([0, *(0 if pmf is None else len(pmf) for pmf in pmfs)])
    values = np.array([value for pmf in pmfs for value in pmf or ()])
    size = np.array(
        [[0.0 if pmf is not None else float(b - a + 1) for pmf, a, b in zip(pmfs, *given[:2], strict=True)]]
    )
    out = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64), np.empty(1)
    longest = int((upper - lower).max()) + 1
    describe_by_ticks(
        lower, upper, starts[:-1][None, :] - lower, size, values, g, h, np.array([window]),
        np.empty((2, length), dtype=np.int64), np.empty((2, longest)), np.empty((2, longest)), out,
    )  # fmt: skip
    assert out[2][0] == pytest.approx(sum(last.values()), rel=1e-12, abs=0)
    if last:
        assert (out[0][0], out[1][0]) == (min(first), max(last))
