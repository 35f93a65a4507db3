"""Confidences with forbidden events against the formula summed over every choice of times, as fractions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from confidence import Forbidden, Intervals, Limits, Pmfs, forbidden_confidence, workspace
from confidence.chain.uniform import tight_bounds
from confidence.config import FEW_STEPS
from confidence.gaps.chains import BUDGET, COUPLED, DONE, IMPOSSIBLE, TOO_DEAR
from confidence.gaps.monte_carlo import sampled_confidence

Pmf = tuple[Fraction, ...]


@dataclass(frozen=True)
class Interval:
    """An event: its first tick, its probabilities, and whether they are given as a pmf."""

    lower: int
    pmf: Pmf
    explicit: bool

    @property
    def upper(self) -> int:
        return self.lower + len(self.pmf) - 1

    def at(self, t: int) -> Fraction:
        return self.pmf[t - self.lower] if self.lower <= t <= self.upper else Fraction(0)


@st.composite
def intervals(draw: st.DrawFn, longest: int = 5) -> Interval:
    size = draw(st.integers(1, longest))
    lower = draw(st.integers(0, 8))
    if draw(st.booleans()):
        return Interval(lower, (Fraction(1, size),) * size, explicit=False)
    weights = [draw(st.integers(1, 4)), *draw(st.lists(st.integers(0, 4), max_size=size - 1))]
    return Interval(lower, tuple(Fraction(weight, sum(weights)) for weight in weights), explicit=True)


def arrays_of(
    match: tuple[Interval, ...], others: tuple[tuple[Interval, frozenset[int]], ...], gaps: int
) -> tuple[Intervals, Pmfs, int, Forbidden]:
    """Return events, probabilities, and the number of other events and these as kernels take them."""
    events = [*match, *(x for x, _ in others)]
    lower = np.array([part.lower for part in events])
    upper = np.array([part.upper for part in events])
    offset = np.full(len(events), -1)
    pmf: list[float] = []
    for k, part in enumerate(events):
        if part.explicit:
            offset[k] = len(pmf)
            pmf += [float(p) for p in part.pmf]
    length, count = len(match), len(others)
    forbids = np.array([[g in found for g in range(gaps)] for _, found in others], dtype=np.bool_)
    return (
        Intervals(lower[:length], upper[:length], offset[:length]),
        Pmfs.of(np.array(pmf, dtype=np.float64), lower, upper, offset),
        count,
        Forbidden(
            lower[length:], upper[length:], offset[length:], np.arange(count), forbids.reshape(count, gaps)
        ),
    )


@dataclass(frozen=True)
class Chain:
    """A match, its window, and other events with the gaps that forbid them."""

    match: tuple[Interval, ...]
    window: int
    others: tuple[tuple[Interval, frozenset[int]], ...]

    def within(self) -> list[tuple[int, ...]]:
        """Return the choices of times in order within the window."""
        return [
            times
            for times in itertools.product(*(range(part.lower, part.upper + 1) for part in self.match))
            if all(s < t for s, t in itertools.pairwise(times)) and times[-1] - times[0] <= self.window - 1
        ]

    def truth(self) -> tuple[Fraction, int, int]:
        total, first, last = Fraction(0), 10**9, -(10**9)
        for times in self.within():
            weight = math.prod(
                (part.at(t) for part, t in zip(self.match, times, strict=True)), start=Fraction(1)
            )
            for x, gaps in self.others:
                weight *= 1 - sum(x.at(t) for g in gaps for t in range(times[g - 1] + 1, times[g]))
            if weight:
                total, first, last = total + weight, min(first, times[0]), max(last, times[-1])
        return total, first, last

    def arguments(self, most_steps: float) -> tuple[Any, ...]:
        match, pmfs, count, forbidden = arrays_of(self.match, self.others, len(self.match) + 1)
        a, b = np.empty((2, len(self.match)), dtype=np.int64)
        position = np.arange(len(self.match))
        possible = tight_bounds(
            match.lower - position, match.upper - position, self.window - len(self.match), a, b
        )
        assert possible == bool(self.within())
        return (
            match, a, b, pmfs, self.window, count, forbidden, False, Limits(most_steps),
            workspace(len(self.match), 400, 40, count).go_on(),
        )  # fmt: skip


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    match = tuple(draw(st.lists(intervals(), min_size=2, max_size=4)))
    # Most matches are possible.
    if draw(st.integers(0, 2)):
        match = tuple(sorted(match, key=lambda part: part.lower))
    gaps = st.frozensets(st.integers(1, len(match) - 1), min_size=1)
    others = tuple(draw(st.lists(st.tuples(intervals(), gaps), max_size=3)))
    return Chain(match, len(match) + draw(st.integers(0, 12)), others)


@given(chains())
def test_confidence_is_the_formula(chain: Chain) -> None:
    assume(chain.within())
    total, first, last = chain.truth()
    status, value, low, high = forbidden_confidence(*chain.arguments(1e9))
    assert status == (DONE if total else IMPOSSIBLE)
    if total:
        assert (low, high) == (first, last)
        assert math.isclose(value, total, rel_tol=1e-9)


def wide(count: int, size: int) -> Chain:
    """Three events and others around all of them that two gaps forbid."""

    def uniform(lower: int, ticks: int) -> Interval:
        return Interval(lower, (Fraction(1, ticks),) * ticks, explicit=False)

    match = (uniform(0, size), uniform(2, size), uniform(4, size))
    return Chain(match, 40, tuple((uniform(k - 3, size + 9), frozenset({1, 2})) for k in range(count)))


@pytest.mark.compiled
@pytest.mark.parametrize(("count", "size"), [(1, 9), (2, 9), (5, 3), (7, 5)])
def test_coupled_gaps_by_the_places_of_what_couples_them(count: int, size: int) -> None:
    chain = wide(count, size)
    total, first, last = chain.truth()
    status, value, low, high = forbidden_confidence(*chain.arguments(1e9))
    assert (status, low, high) == (DONE, first, last)
    assert math.isclose(value, total, rel_tol=1e-9)


def test_what_is_too_dear_is_not_computed() -> None:
    assert forbidden_confidence(*wide(0, 9).arguments(10.0))[0] == TOO_DEAR
    assert forbidden_confidence(*wide(7, 9).arguments(2000.0))[0] == COUPLED
    status, steps, count, _ = forbidden_confidence(*wide(12, 9).arguments(1e9))
    assert (status, count) == (COUPLED, 12)
    assert steps > FEW_STEPS


def sampled(chain: Chain, seed: int, std_error: float) -> tuple[float, float, int, int]:
    arguments = chain.arguments(1900.0)
    match, _, _, pmfs, window, _, forbidden, *_, work = arguments
    work.progress[BUDGET] = math.inf
    status, _, count, _ = forbidden_confidence(*arguments)
    assert status == COUPLED
    status, value, error, low, high = sampled_confidence(
        match, pmfs, window, count, forbidden, Limits(1e9, std_error, seed), work
    )
    assert status == DONE
    return value, error, low, high


@pytest.mark.compiled
@pytest.mark.parametrize("window", [40, 7])
def test_samples_cover_the_truth_as_often_as_their_errors_say(window: int) -> None:
    chain = Chain(wide(6, 8).match, window, wide(6, 8).others)
    total, first, last = chain.truth()
    distances = []
    for seed in range(200):
        value, error, low, high = sampled(chain, seed, 0.01)
        assert error <= 0.0101
        assert low <= first
        assert high >= last
        distances.append(abs(value - float(total)) / error)
    # Of 200 draws of a normal distance, 95% lie within 1.96: between 183 and 197 with probability 0.9999.
    assert sum(distance <= 1.96 for distance in distances) >= 180
    assert max(distances) < 5.0


def test_the_same_seed_gives_the_same_estimate() -> None:
    chain = wide(6, 8)
    assert sampled(chain, 3, 0.02) == sampled(chain, 3, 0.02)
    assert sampled(chain, 3, 0.02)[0] != sampled(chain, 4, 0.02)[0]
