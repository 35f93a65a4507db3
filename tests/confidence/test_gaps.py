"""Confidences with gaps, those at either end included, against the formula summed over times as fractions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import Limits, gap_confidence, workspace
from confidence.chain.uniform import chain_confidence
from confidence.gaps.chains import (
    BUDGET,
    COUPLED,
    DONE,
    IMPOSSIBLE,
    INEXACT,
    NO_SPACE,
    PAUSED,
    SPENT,
    TOO_DEAR,
)
from confidence.gaps.monte_carlo import sampled_confidence
from tests.confidence.test_forbidden import Interval, arrays_of, intervals


@dataclass(frozen=True)
class Match:
    """The events of a match, its window, and other events with the gaps that forbid them."""

    events: tuple[Interval, ...]
    window: int
    others: tuple[tuple[Interval, frozenset[int]], ...]

    def truth(self) -> tuple[Fraction, int, int]:
        total, first, last = Fraction(0), 10**9, -(10**9)
        length = len(self.events)
        for times in itertools.product(*(range(part.lower, part.upper + 1) for part in self.events)):
            if any(s >= t for s, t in itertools.pairwise(times)) or times[-1] - times[0] > self.window - 1:
                continue
            weight = math.prod(
                (part.at(t) for part, t in zip(self.events, times, strict=True)), start=Fraction(1)
            )
            inside = [
                range(times[-1] - self.window + 1, times[0]),
                *(range(times[g - 1] + 1, times[g]) for g in range(1, length)),
                range(times[-1] + 1, times[0] + self.window),
            ]
            for x, gaps in self.others:
                weight *= 1 - sum(x.at(t) for g in gaps if g <= length for t in inside[g])
            if weight:
                total, first, last = total + weight, min(first, times[0]), max(last, times[-1])
        return total, first, last

    def arguments(self, most_steps: float, edges: int = 400, ticks: int = 40) -> tuple[Any, ...]:
        match, pmfs, count, forbidden = arrays_of(self.events, self.others, len(self.events) + 1)
        work = workspace(len(self.events) + 1, edges, ticks, count)
        return match, pmfs, self.window, count, forbidden, most_steps, work.go_on()


def assert_true(match: Match, most_steps: float = 1e9) -> None:
    total, first, last = match.truth()
    status, value, low, high = gap_confidence(*match.arguments(most_steps))
    assert status == (DONE if total else IMPOSSIBLE)
    if total:
        assert (low, high) == (first, last)
        assert math.isclose(value, total, rel_tol=1e-9)


@st.composite
def matches(draw: st.DrawFn) -> Match:
    events = tuple(draw(st.lists(intervals(), min_size=1, max_size=4)))
    gaps = st.frozensets(st.integers(0, len(events)), min_size=1)
    others = tuple(draw(st.lists(st.tuples(intervals(), gaps), max_size=3)))
    return Match(events, len(events) + draw(st.integers(0, 12)), others)


@given(matches())
def test_confidence_is_the_formula(match: Match) -> None:
    assert_true(match)


@given(matches(), st.sampled_from(["leading", "trailing", "both", "all", "inner"]))
def test_every_event_forbidden_in_the_same_gaps(match: Match, kind: str) -> None:
    length = len(match.events)
    gaps = {
        "leading": {0}, "trailing": {length}, "both": {0, length}, "all": set(range(length + 1)),
        "inner": set(range(1, length)),
    }[kind]  # fmt: skip
    assert_true(Match(match.events, match.window, tuple((x, frozenset(gaps)) for x, _ in match.others)))


def uniform(lower: int, ticks: int) -> Interval:
    return Interval(lower, (Fraction(1, ticks),) * ticks, explicit=False)


def wide(length: int, count: int, size: int, gaps: frozenset[int], window: int = 40) -> Match:
    """Overlapping events, and others around all of them."""
    events = tuple(uniform(2 * j, size) for j in range(length))
    return Match(events, window, tuple((uniform(k - 9, size + 14), gaps) for k in range(count)))


@pytest.mark.parametrize(
    ("length", "count", "size", "gaps", "window"),
    [
        (3, 1, 9, {1, 2}, 40),
        (3, 8, 9, {1, 2}, 40),
        (4, 8, 5, {1, 2, 3}, 40),
        (4, 8, 5, {1, 2, 3}, 9),
        (5, 4, 4, {1, 2, 3, 4}, 40),
        (5, 4, 4, {0, 2, 5}, 12),
        (4, 6, 5, {0}, 12),
        (4, 6, 5, {4}, 12),
        (4, 6, 5, {0, 4}, 12),
        (3, 9, 3, {0, 1, 3}, 9),
        (1, 5, 9, {0, 1}, 4),
    ],
)
def test_many_coupled_events(length: int, count: int, size: int, gaps: set[int], window: int) -> None:
    assert_true(wide(length, count, size, frozenset(gaps), window))


def test_what_is_too_dear_is_not_computed() -> None:
    assert gap_confidence(*wide(3, 1, 9, frozenset({1})).arguments(10.0))[0] == TOO_DEAR
    assert gap_confidence(*wide(4, 9, 9, frozenset({1, 2, 3})).arguments(4000.0))[0] == COUPLED
    assert gap_confidence(*wide(4, 9, 9, frozenset({0, 4}), 12).arguments(4000.0))[0] == COUPLED


def test_small_work_arrays_are_told() -> None:
    assert gap_confidence(*wide(3, 1, 9, frozenset({1})).arguments(1e9, edges=10))[0] == NO_SPACE
    status, _, edges, ticks = gap_confidence(*wide(3, 1, 9, frozenset({0})).arguments(1e9, ticks=3))
    assert (status, edges, ticks) == (NO_SPACE, 2 * 9 * 9, 9)


def test_nothing_forbidden_is_the_closed_form() -> None:
    """Intervals of a million ticks, and an event that is forbidden only where it cannot be."""
    match = Match(
        (uniform(0, 10**6), uniform(10**5, 10**6)), 10**6, ((uniform(-(10**7), 5), frozenset({1})),)
    )
    status, value, first, last = gap_confidence(*match.arguments(1.0))
    bounds, floats = np.empty((6, 2), np.int64), np.empty((4, 5))
    lower, upper = np.array([0, 10**5 - 1]), np.array([10**6 - 1, 11 * 10**5 - 2])
    expected = chain_confidence(lower, upper, 10**6 - 2, bounds[4], bounds[5], bounds[:4], floats)
    assert (status, value, first, last) == (DONE, expected, 0, 11 * 10**5 - 1)


def test_what_cancels_is_left_to_exact_arithmetic() -> None:
    match = Match((uniform(0, 10**5),) * 60, 10**6, ())
    assert gap_confidence(*match.arguments(1e6))[0] == INEXACT


def sampled(
    match: Match, seed: int, std_error: float, budget: float = math.inf
) -> tuple[float, float, int, int]:
    arguments = match.arguments(1500.0)
    given, pmfs, window, _, forbidden, _, work = arguments
    work.progress[BUDGET] = budget
    status, _, count, _ = gap_confidence(*arguments)
    assert status == COUPLED
    status = PAUSED
    while status == PAUSED:
        work.progress[SPENT] = 0.0
        status, value, error, low, high = sampled_confidence(
            given, pmfs, window, count, forbidden, Limits(1e9, std_error, seed), work
        )
    assert status == DONE
    return value, error, low, high


@pytest.mark.compiled
@pytest.mark.parametrize(("gaps", "window"), [({0, 4}, 14), ({1, 2, 3}, 40)])
def test_samples_cover_the_truth_as_often_as_their_errors_say(gaps: set[int], window: int) -> None:
    match = wide(4, 5, 6, frozenset(gaps), window)
    total, first, last = match.truth()
    distances = []
    for seed in range(100):
        value, error, low, high = sampled(match, seed, 0.02)
        assert error <= 0.0202
        assert low <= first
        assert high >= last
        distances.append(abs(value - float(total)) / error)
    assert sum(distance <= 1.96 for distance in distances) >= 87
    assert max(distances) < 5.0


@pytest.mark.parametrize(("gaps", "window"), [({0, 4}, 14), ({1, 2, 3}, 40)])
def test_an_estimate_does_not_depend_on_the_budget_of_a_call(gaps: set[int], window: int) -> None:
    match = wide(4, 5, 6, frozenset(gaps), window)
    assert sampled(match, 1, 0.02, budget=1.0) == sampled(match, 1, 0.02)
