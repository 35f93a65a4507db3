"""Confidences through the tables that matches share against the formula of each match alone, as fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from confidence import Limits, Pmfs
from confidence.config import FEW_STEPS
from eventbased.gaps import next_match
from eventbased.gaps.next_match import Bytecode, EventArrays, NextConfidences
from eventbased.gaps.survival_tables import Classes, crowded
from eventbased.incremental.candidate_pool import CandidatePool, RunBytecode
from tests.confidence.test_forbidden import Chain, Interval, intervals


@dataclass(frozen=True)
class Candidates:
    """Events, each with the components that can take it, and matches over them."""

    events: tuple[tuple[Interval, frozenset[int]], ...]
    matches: tuple[tuple[int, ...], ...]
    window: int

    @property
    def length(self) -> int:
        return len(self.matches[0])

    def truth(self, match: tuple[int, ...]) -> tuple[Fraction, int, int]:
        others = tuple(
            (interval, components - {0})
            for event, (interval, components) in enumerate(self.events)
            if event not in match
        )
        return Chain(tuple(self.events[event][0] for event in match), self.window, others).truth()

    def described(self, few_steps: float = FEW_STEPS) -> tuple[NDArray[Any], ...]:
        """Return the first and last times and the confidences as the engine gives them, all at once."""
        offset = [-1] * len(self.events)
        pmf: list[float] = []
        for event, (interval, _) in enumerate(self.events):
            if interval.explicit:
                offset[event] = len(pmf)
                pmf += [float(p) for p in interval.pmf]
        rows: list[tuple[Any, ...]] = sorted(
            (j, interval.lower - j, interval.upper - j, event, len(components) > 1, offset[event])
            for event, (interval, components) in enumerate(self.events)
            for j in components
        )
        columns: list[Any] = [np.array(part) for part in zip(*rows, strict=True)]
        component, lower, upper, event, shared, offsets = columns
        arrays = EventArrays(lower, upper, event, shared, offsets, np.arange(len(rows)))
        first = np.searchsorted(component, np.arange(self.length + 1))
        longest = np.array([(upper - lower)[a:b].max() for a, b in itertools.pairwise(first)])
        place = {(row[0], row[3]): k for k, row in enumerate(rows)}
        matches = np.array([[place[j, match[j]] for match in self.matches] for j in range(self.length)])
        values = np.array(pmf, dtype=np.float64)
        count = len(self.matches)
        ranges = np.empty((2, count), dtype=np.int64)
        confidence, error = np.empty(count), np.empty(count)
        none = CandidatePool(RunBytecode.none()).bytecode
        limits = Limits(1e9, few_steps=few_steps)
        NextConfidences(self.length, self.window - self.length, limits).describe(
            matches, np.zeros(count, dtype=np.int64), arrays, arrays,
            Classes(np.arange(self.length + 1), first[:-1], first[1:], longest),
            Pmfs.of(values, lower, upper, offsets),
            Bytecode(
                np.zeros(self.length + 1, dtype=np.int64), none.code, none.ints, none.floats, none.nulls,
                none.slots,
            ),
            (ranges[0], ranges[1], confidence, error),
        )  # fmt: skip
        return ranges[0], ranges[1], confidence


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    """Draw events most of which can follow the first of a match only: tables begin with four in one gap."""
    length = draw(st.integers(2, 3))
    events = [(draw(intervals()), frozenset({j})) for j in range(length)]
    several = st.frozensets(st.integers(0, length - 1), min_size=1, max_size=2)
    follower = st.just(frozenset({1}))
    events += draw(st.lists(st.tuples(intervals(), follower), min_size=4, max_size=7))
    events += draw(st.lists(st.tuples(intervals(), several), max_size=3))
    takers = [
        [event for event, (_, components) in enumerate(events) if j in components] for j in range(length)
    ]
    match = st.tuples(*(st.sampled_from(part) for part in takers)).filter(
        lambda part: len(set(part)) == length
    )
    matches = tuple(draw(st.lists(match, min_size=1, max_size=4)))
    return Candidates(tuple(events), matches, length + draw(st.integers(0, 12)))


@pytest.fixture(autouse=True, scope="module")
def _always_crowded() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_match, "crowded", lambda *_: True)
        yield


@settings(max_examples=max(20, settings().max_examples // 3))
@given(candidates(), st.sampled_from([FEW_STEPS, 0.0]))
def test_confidences_are_the_formula_of_each_match(case: Candidates, few_steps: float) -> None:
    first, last, confidence = case.described(few_steps)
    for n, match in enumerate(case.matches):
        total, low, high = case.truth(match)
        assert math.isclose(confidence[n], total, rel_tol=1e-9)
        assert (first[n], last[n]) == (low, high) if total else first[n] > last[n]


def uniform(lower: int, ticks: int) -> Interval:
    return Interval(lower, (Fraction(1, ticks),) * ticks, explicit=False)


def test_tables_are_left_aside_where_gaps_are_coupled() -> None:
    followers = tuple((uniform(lower, 12), frozenset({1})) for lower in range(1, 7))
    coupling = tuple((uniform(lower, 14), frozenset({1, 2})) for lower in (2, 3))
    ends = (
        (uniform(0, 4), frozenset({0})),
        (uniform(9, 6), frozenset({2})),
        (uniform(11, 6), frozenset({2})),
    )
    case = Candidates((*ends, *followers, *coupling), ((0, 3, 1), (0, 5, 2), (0, 4, 9)), 60)
    for few_steps in (FEW_STEPS, 0.0):
        lower, upper, confidence = case.described(few_steps)
        for n, match in enumerate(case.matches):
            total, low, high = case.truth(match)
            assert total > 0
            assert (lower[n], upper[n]) == (low, high)
            assert math.isclose(confidence[n], total, rel_tol=1e-9)


@pytest.mark.compiled
def test_tables_grow_with_the_spread_of_a_gap() -> None:
    followers = tuple((uniform(lower, 70), frozenset({1})) for lower in range(1, 8))
    events = ((uniform(0, 2), frozenset({0})), (uniform(0, 70), frozenset({0})), *followers)
    case = Candidates(events, ((0, 2), (1, 3), (1, 8)), 200)
    for match, confidence in zip(case.matches, case.described()[2], strict=True):
        assert math.isclose(confidence, case.truth(match)[0], rel_tol=1e-9)


def test_a_sure_event_in_between_ends_a_row() -> None:
    between = tuple((uniform(lower, 2), frozenset({1})) for lower in (3, 5, 9))
    case = Candidates(
        ((uniform(0, 2), frozenset({0})), *between, (uniform(4, 9), frozenset({1}))), ((0, 4),), 50
    )
    total, low, high = case.truth((0, 4))
    first, last, confidence = case.described()
    assert (first[0], last[0]) == (low, high)
    assert high < 12
    assert math.isclose(confidence[0], total, rel_tol=1e-9)


def test_crowded_is_said_of_what_lies_in_many_layers() -> None:
    first_class, start, stop = np.arange(3), np.array([0, 4]), np.array([4, 12])
    lower = np.array([0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7])
    assert crowded(Classes(first_class, start, stop, stop), 2, lower, lower + 9)
    assert not crowded(Classes(first_class, start, stop, stop), 2, lower, lower + 3)
    # What only the first component can take is in nobody's way.
    assert not crowded(Classes(first_class, np.array([0, 12]), np.array([12, 12]), stop), 2, lower, lower + 9)
