"""Certain bounds and estimates of groups that take too many steps, against exact probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from confidence.groups import (
    Groups,
    bounding,
    certain_bounds,
    estimated,
    estimates,
    parts_of_groups,
    weigh_groups,
)
from tests.cases.groups import Matches, Time, arrays_of, counted, groups
from tests.cases.sampling import FEWER

MOST_STEPS = 10**7
ROUNDING = 1e-12


def exact(group: Groups, at_least: int) -> float:
    weighed = weigh_groups(group, at_least, MOST_STEPS)
    assert weighed.is_exact.all()
    return float(weighed.probability[0, -1])


def stream(matches: int, ticks: int = 1_000, seed: int = 1) -> Groups:
    """Return a group of pairs of neighbours among events that overlap."""
    random = np.random.default_rng(seed)
    lower = np.sort(random.integers(0, 250 * matches, matches + 1))
    times = tuple(Time(int(low), int(low) + ticks) for low in lower)
    pairs = tuple((n, ((n + 1, n + 2, 1), (n + 2, n + 1, -ticks // 2)), ()) for n in range(matches))
    return arrays_of([Matches(times, pairs)])


@given(groups(), st.integers(1, 3), st.sampled_from([0, 40, 400, 10**6]))
def test_bounds_hold_the_probability(group: Matches, at_least: int, steps: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounding, "_FEWEST_STEPS", steps // 4)
        lower, upper = certain_bounds(arrays_of([group]), at_least, steps)
    probability = float(counted(group, at_least)[-1])
    assert lower <= probability * (1 + ROUNDING)
    assert upper >= probability * (1 - ROUNDING)
    assert lower >= 0.0
    assert upper <= 1.0


@pytest.mark.compiled
def test_bounds_of_a_long_chain_are_close() -> None:
    """Halves of it are exact where the whole is not; a plain estimate is between them."""
    group = stream(24)
    assert not weigh_groups(group, 1, 50_000).is_exact.any()
    lower, upper = certain_bounds(group, 1, 500_000)
    estimate = estimated(group, 1, 0.01, 0, 10**6)
    assert estimate is not None
    assert 0.98 < lower < upper <= 1.0
    assert lower - 5 * estimate.std_error < estimate.probability <= upper


@given(groups(), st.integers(1, 2))
def test_parts_are_the_groups_of_their_matches(group: Matches, at_least: int) -> None:
    """Each match alone, the first half, and all: as if the others were not there."""
    arrays = arrays_of([group, group])
    count = len(group.matches)
    order = sorted(range(count), key=lambda k: group.matches[k][0])
    chosen = [[k] for k in range(count)] + [order[: (count + 1) // 2], order]
    flat = np.array([k + count for part in chosen for k in part])
    start = np.cumsum([0] + [len(part) for part in chosen])
    weighed = weigh_groups(parts_of_groups(arrays, flat, start)[0], at_least, MOST_STEPS)
    for part, row in zip(chosen, weighed.probability, strict=True):
        alone = Matches(group.times, tuple(group.matches[k] for k in part))
        for value, expected in zip(row, counted(alone, at_least), strict=True):
            assert math.isclose(value, expected, rel_tol=1e-11)


@pytest.mark.parametrize("way", ["plain", "held"])
@FEWER
@given(groups(), st.integers(1, 2), st.integers(0, 2**32))
# Matches of one signature that do not stand side by side count once, too.
@example(Matches((Time(0, 0), Time(0, 1)), ((0, (), ()), (1, ((2, 0, 0),), ()), (0, (), ()))), 2, 0)
def test_both_estimators_have_no_bias(way: str, group: Matches, at_least: int, seed: int) -> None:
    """Within five standard errors, of a mean whose draws are as many as make them normal."""
    arrays = arrays_of([group])
    random = np.random.Generator(np.random.PCG64(seed))
    if way == "plain":
        weights = np.concatenate(list(estimates._plain(arrays, at_least, 2_000, random)))
    else:
        weights, _ = estimates._held(arrays, at_least, 2_000, random, MOST_STEPS)
    probability = float(counted(group, at_least)[-1])
    spread = max(float(weights.std()), math.sqrt(probability * (1 - probability)) / 10)
    assert abs(float(weights.mean()) - probability) <= 5 * spread / math.sqrt(2_000) + 1e-12


@pytest.mark.compiled
def test_standard_errors_are_those_of_the_estimates() -> None:
    """Sixty seeds: the z-scores have a standard deviation of about 1."""
    group = stream(4)
    probability = exact(group, 1)
    scores = []
    for seed in range(60):
        estimate = estimated(group, 1, 0.02, seed, 10**7)
        assert estimate is not None
        assert estimate.std_error <= 0.02 * 1.2
        scores.append((estimate.probability - probability) / estimate.std_error)
    assert 0.7 < float(np.std(scores)) < 1.3
    assert abs(float(np.mean(scores))) < 0.5


def test_the_same_seed_gives_the_same_estimate() -> None:
    group = stream(4)
    one, same, other = (estimated(group, 1, 0.05, seed, MOST_STEPS) for seed in (3, 3, 4))
    assert one == same != other


def rare(leaves: int) -> Groups:
    """Return matches of three events that have to be at one tick, of which one is in all matches."""
    times = tuple(Time(0, 999) for _ in range(2 * leaves + 1))
    matches = tuple(
        (n, ((1, 2 * n + 2, 0), (2 * n + 2, 2 * n + 3, 0), (2 * n + 3, 1, 0)), ()) for n in range(leaves)
    )
    return arrays_of([Matches(times, matches)])


@pytest.mark.compiled
def test_what_is_rare_is_estimated_by_held_ticks() -> None:
    """Plain worlds would hardly ever have a match of probability 5e-6."""
    group = rare(5)
    probability = exact(group, 1)
    assert probability < 1e-5
    estimate = estimated(group, 1, 0.01, 0, MOST_STEPS)
    assert estimate is not None
    assert math.isclose(estimate.probability, probability, rel_tol=0.1)


def test_no_draw_that_differs_is_no_certainty() -> None:
    """Of draws that are all alike the rule of three tells the standard error."""
    for weights in (np.zeros(300), np.ones(300)):
        assert estimates._summed(weights).std_error == pytest.approx(0.01)


def test_estimates_that_take_too_many_steps_are_none() -> None:
    assert estimated(stream(4), 1, 1e-6, 0, 10**6) is None


@pytest.mark.compiled
def test_steps_are_not_spent_on_bounds_without_end() -> None:
    count = 300
    times = (Time(0, 10**6), *(Time(n, n + 10**6) for n in range(count)))
    matches = tuple((n, ((1, n + 2, 1), (n + 2, 1, -n)), ()) for n in range(count))
    lower, upper = certain_bounds(arrays_of([Matches(times, matches)]), 1, 50_000)
    assert 0.0 < lower < upper <= 1.0
