"""P(at least k of some matches) against sums over all ticks of all variables."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.chain.spread_nodes import nodes_needed, spread_nodes
from confidence.groups import weigh_groups
from tests.cases.groups import Literal, Matches, Time, arrays_of, counted, groups
from tests.cases.sampling import FEWER

MOST_STEPS = 10**7
RELATIVE = 1e-11


def assert_counted(drawn: list[Matches], at_least: int) -> None:
    weighed = weigh_groups(arrays_of(drawn), at_least, MOST_STEPS)
    assert weighed.is_exact.all()
    for group, row in zip(drawn, weighed.probability, strict=True):
        for value, expected in zip(row, counted(group, at_least), strict=True):
            assert math.isclose(value, expected, rel_tol=RELATIVE), (group, row)


@given(st.lists(groups(), min_size=1, max_size=3), st.integers(1, 3))
def test_groups_are_counted_by_ticks(drawn: list[Matches], at_least: int) -> None:
    assert_counted(drawn, at_least)


@FEWER
@given(groups(longest=24, most_times=3), st.integers(1, 3))
def test_long_intervals_are_summed_by_few_ticks(group: Matches, at_least: int) -> None:
    assert_counted([group], at_least)


def _moved(literal: Literal, factor: int, order: list[int]) -> Literal:
    earlier, later, distance = literal
    return order[earlier], order[later], factor * distance


@given(groups(), st.data())
def test_neither_the_order_of_variables_nor_that_of_matches_matters(
    group: Matches, data: st.DataObject
) -> None:
    count = len(group.times)
    order = [0, *data.draw(st.permutations(range(1, count + 1)))]
    times: list[Time] = [Time(0, 0)] * count
    for number, time in enumerate(group.times, start=1):
        times[order[number] - 1] = replace(time, clock=order[time.clock])
    matches = [
        (
            signature,
            tuple(_moved(literal, 1, order) for literal in literals),
            tuple(tuple(_moved(literal, 1, order) for literal in box) for box in boxes),
        )
        for signature, literals, boxes in data.draw(st.permutations(group.matches))
    ]
    other = Matches(tuple(times), tuple(matches))
    probability = weigh_groups(arrays_of([group, other]), 2, MOST_STEPS).probability
    np.testing.assert_allclose(probability[0], probability[1], rtol=RELATIVE)


def star(leaves: int, ticks: int) -> Matches:
    """Return matches of one event with each of several others behind it within a window."""
    times = [Time(0, 10 * ticks)] + [Time(n * ticks, n * ticks + 3 * ticks) for n in range(leaves)]
    matches = [(n, ((1, n + 2, 1), (n + 2, 1, -2 * ticks)), ()) for n in range(leaves)]
    return Matches(tuple(times), tuple(matches))


@pytest.mark.parametrize("leaves", [1, 2, 7, 12])
def test_the_cost_does_not_depend_on_the_length_of_a_tick(leaves: int) -> None:
    """The probabilities neither, but for what a tick less or more is."""
    weighed = weigh_groups(arrays_of([star(leaves, ticks) for ticks in (10**4, 10**6, 10**9)]), 1, MOST_STEPS)
    assert len(set(weighed.steps.tolist())) == 1
    np.testing.assert_allclose(weighed.probability[:, 1], weighed.probability[-1, 1], rtol=1e-3)


def test_matches_are_counted_by_the_distribution_of_their_number() -> None:
    """Of n independent events within an interval that is certain the number is binomial."""
    count = 12
    times = tuple(Time(0, 3) for _ in range(count))
    matches = tuple((n, ((0, n + 1, 3),), ()) for n in range(count))
    (row,) = weigh_groups(arrays_of([Matches(times, matches)]), 5, MOST_STEPS).probability
    chances = [
        math.comb(count, n) * Fraction(1, 4) ** n * Fraction(3, 4) ** (count - n) for n in range(count)
    ]
    np.testing.assert_allclose(row[:5], [float(chance) for chance in chances[:5]], rtol=1e-12)
    assert math.isclose(row[5], 1 - sum(chances[:5]), rel_tol=1e-12)


def test_small_probabilities_are_as_exact_as_large_ones() -> None:
    """Two events of a thousand million ticks each have to share one with a third."""
    ticks = 10**9
    times = (Time(0, ticks - 1), Time(0, ticks - 1), Time(0, ticks - 1))
    tied = tuple((n, ((1, n + 2, 0), (n + 2, 1, 0)), ()) for n in range(2))
    (row,) = weigh_groups(arrays_of([Matches(times, tied)]), 1, MOST_STEPS).probability
    assert math.isclose(row[1], Fraction(2, ticks) - Fraction(1, ticks**2), rel_tol=1e-15)
    twice = weigh_groups(arrays_of([Matches(times, tied)]), 2, MOST_STEPS).probability[0]
    assert math.isclose(twice[2], Fraction(1, ticks**2), rel_tol=1e-12)


def test_a_group_that_is_too_dear_says_so_and_leaves_the_others() -> None:
    dear = star(12, 10**4)
    cheap = star(1, 10**4)
    weighed = weigh_groups(arrays_of([cheap, dear, cheap]), 1, 300)
    assert weighed.is_exact.tolist() == [True, False, True]
    assert weighed.probability[0, 1] == weighed.probability[2, 1] > 0


@pytest.mark.compiled
@pytest.mark.parametrize("degree", [8, 9, 15, 30, 60, 120, 255])
def test_few_ticks_tell_the_sums_of_polynomials_of_a_high_degree(degree: int) -> None:
    for count in (nodes_needed(degree) + 1, 10 * degree * degree, 10**12):
        points, matrix = np.zeros(degree + 1, dtype=np.int64), np.zeros((degree + 1, degree + 2))
        spread_nodes(count, degree, points, matrix)
        weights = matrix[:, degree + 1]
        assert points[0] == 0
        assert points[-1] == count - 1
        assert (np.diff(points) > 0).all()
        # The weights of a polynomial that is never negative cancel little.
        assert np.abs(weights).sum() < 1.5 * count
        # All of those of low degrees, some of high ones, the highest among them.
        even = range(0, degree + 1, 2)
        for power in even[:: -max(len(even) // 16, 1)]:
            moments = sum(
                Fraction(float(weight)) * Fraction(2 * int(point) - count + 1, count) ** power
                for weight, point in zip(weights, points, strict=True)
            )
            expected = _power_sum(count, power)
            assert math.isclose(moments, expected, rel_tol=1e-9), (count, power)


@cache
def _bernoulli(n: int) -> Fraction:
    """Return Bernoulli's number B_n, with B_1 = -1/2."""
    before = sum((math.comb(n + 1, k) * _bernoulli(k) for k in range(n)), Fraction(0))
    return -before / (n + 1) if n else Fraction(1)


def _power_sum(count: int, power: int) -> Fraction:
    """Return the sum of ((2 n - count + 1) / count) ** power over n < count, by Bernoulli's polynomials."""
    bernoulli = list(map(_bernoulli, range(power + 2)))

    def polynomial(x: Fraction) -> Fraction:
        degree = power + 1
        return sum(
            (math.comb(degree, k) * bernoulli[k] * x ** (degree - k) for k in range(degree + 1)), Fraction(0)
        )

    half = Fraction(1 - count, 2)
    total = (polynomial(count + half) - polynomial(half)) / (power + 1)
    return total * Fraction(2, count) ** power


@pytest.mark.compiled
def test_a_group_of_many_matches_is_given_up_at_its_budget() -> None:
    """Pairs of matches, and of literals of one variable, are looked at no longer than that."""
    count = 3_000
    times = (Time(0, 10**6), *(Time(n, n + 10**6) for n in range(count)))
    matches = tuple((n, ((1, n + 2, 1), (n + 2, 1, -n)), ()) for n in range(count))
    weighed = weigh_groups(arrays_of([Matches(times, matches)]), 1, 50_000)
    assert not weighed.is_exact[0]
    assert weighed.steps[0] < 100_000


@pytest.mark.compiled
@pytest.mark.parametrize("leaves", [2, 20, 60, 120, 255])
def test_one_event_before_any_of_many_that_overlap_it(leaves: int) -> None:
    """Given its tick the others are independent: the largest of them is behind it."""
    ticks = 10**6
    times = tuple(Time(0, ticks - 1) for _ in range(leaves + 1))
    matches = tuple((n, ((1, n + 2, 1),), ()) for n in range(leaves))
    weighed = weigh_groups(arrays_of([Matches(times, matches)]), 1, MOST_STEPS)
    (row,) = weighed.probability
    assert weighed.is_exact[0]
    # The sum of (n / ticks) ** leaves, 1 <= n <= ticks, but for ticks ** -4.
    none = 1 / (leaves + 1) + 1 / (2 * ticks) + leaves / (12 * ticks**2)
    assert math.isclose(row[0], none, rel_tol=1e-9)


@pytest.mark.compiled
def test_ticks_that_have_to_be_looked_at_one_by_one_are_within_the_budget() -> None:
    """A degree that is too high for few ticks, among a thousand million of them."""
    ticks, leaves = 10**9, 300
    times = tuple(Time(0, ticks - 1) for _ in range(leaves + 1))
    matches = tuple((n, ((1, n + 2, 1),), ()) for n in range(leaves))
    weighed = weigh_groups(arrays_of([Matches(times, matches)]), 1, MOST_STEPS)
    assert not weighed.is_exact[0]
