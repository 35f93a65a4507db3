"""Variables that, once known, take something off the doubt of a group's answer, against sums over ticks."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.groups import resolve_variables, weigh_groups
from confidence.groups.known_variables import SHORT
from tests.cases.groups import Matches, Time, arrays_of, groups, worlds
from tests.cases.sampling import FEWER

MOST_STEPS = 10**7


def resolved(group: Matches, at_least: int) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Return for each variable P, the variance of P given the variable, and how likely that is 0 or 1."""
    weight_of: list[defaultdict[int, Fraction]] = [defaultdict(Fraction) for _ in group.times]
    mass_of: list[defaultdict[int, Fraction]] = [defaultdict(Fraction) for _ in group.times]
    for ticks, weight, matches in worlds(group):
        for number, tick in enumerate(ticks):
            weight_of[number][tick] += weight
            mass_of[number][tick] += weight if matches >= at_least else 0
    expected = []
    for weights, masses in zip(weight_of, mass_of, strict=True):
        mean = sum(masses.values(), Fraction(0))
        square = sum((masses[tick] ** 2 / weights[tick] for tick in weights), Fraction(0))
        sure = sum((weights[tick] for tick in weights if masses[tick] in (0, weights[tick])), Fraction(0))
        expected.append((mean, square - mean * mean, sure))
    return expected


def assert_resolved(drawn: list[Matches], at_least: int) -> None:
    arrays = arrays_of(drawn)
    have = resolve_variables(arrays, at_least, MOST_STEPS)
    assert have.is_exact.all()
    expected = [row for group in drawn for row in resolved(group, at_least)]
    for number, (mean, variance, sure) in enumerate(expected):
        assert math.isclose(have.probability[number], mean, rel_tol=1e-11), number
        assert math.isclose(have.taken_off[number], variance, rel_tol=1e-9, abs_tol=1e-12), number
        size = arrays.upper[number] - arrays.lower[number] + 1
        few_ticks = 8 / size if size > SHORT else 1e-12
        assert math.isclose(have.made_certain[number], sure, rel_tol=1e-9, abs_tol=few_ticks), number


@given(st.lists(groups(), min_size=1, max_size=3), st.integers(1, 3))
def test_variables_are_resolved_as_by_ticks(drawn: list[Matches], at_least: int) -> None:
    assert_resolved(drawn, at_least)


@pytest.mark.compiled
@FEWER
@given(groups(longest=60, most_times=2), st.integers(1, 2))
def test_long_intervals_are_resolved_by_few_ticks(group: Matches, at_least: int) -> None:
    assert_resolved([group], at_least)


def by_clock(ticks: int) -> Matches:
    """Return matches of an event by a clock with each of several others behind it within a window."""
    times = [Time(-ticks, ticks), Time(0, 5 * ticks, 1)]
    times += [Time(n * ticks, n * ticks + 3 * ticks) for n in range(3)]
    matches = [(n, ((2, n + 3, 1), (n + 3, 2, -2 * ticks)), ()) for n in range(3)]
    return Matches(tuple(times), tuple(matches))


@pytest.mark.compiled
def test_the_cost_does_not_depend_on_the_length_of_a_tick() -> None:
    """The variance that is taken off does neither, but for what a tick less or more is."""
    arrays = arrays_of([by_clock(ticks) for ticks in (10**5, 10**7)])
    taken_off = resolve_variables(arrays, 1, MOST_STEPS).taken_off.reshape(2, -1)
    np.testing.assert_allclose(taken_off[0], taken_off[1], rtol=1e-3)
    assert (taken_off > 0.0).all()


def test_what_an_answer_does_not_depend_on_takes_nothing_off() -> None:
    group = Matches((Time(0, 9), Time(0, 9)), ((0, ((0, 1, 5),), ()),))
    have = resolve_variables(arrays_of([group]), 1, MOST_STEPS)
    assert have.probability.tolist() == pytest.approx([0.5, 0.5])
    assert have.taken_off.tolist() == pytest.approx([0.25, 0.0])
    assert have.made_certain.tolist() == pytest.approx([1.0, 0.0])


@pytest.mark.compiled
def test_a_variable_that_is_too_dear_is_said() -> None:
    group = by_clock(10**5)
    have = resolve_variables(arrays_of([group]), 1, 50)
    assert not have.is_exact.all()
    assert weigh_groups(arrays_of([group]), 1, MOST_STEPS).is_exact.all()
