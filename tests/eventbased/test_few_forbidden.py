"""Confidence and range as signed sums of chains, against the possible worlds of a few events."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eventbased.gaps.few_forbidden import FewForbidden
from eventbased.gaps.survival_tables import Classes
from tests.cases.layouts import candidates_of
from tests.eventbased.test_narrowing import Intervals

_EVENTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=2, max_size=6)


def described(
    events: Intervals, taken: list[list[int]], matches: list[tuple[int, ...]], w: int
) -> tuple[list[bool], list[int], list[int], list[float]]:
    """Return the numbers of events of matches that are described, their ranges and confidences."""
    lower = [np.array([events[e][0] for e in part]) for part in taken]
    upper = [np.array([events[e][1] for e in part]) for part in taken]
    candidates = candidates_of(lower, upper)
    first = candidates.first
    rows = np.concatenate([
        np.array(part)[candidates.source[first[j] : first[j + 1]]] for j, part in enumerate(taken)
    ])  # fmt: skip
    chosen = np.array([
        [int(first[j] + np.flatnonzero(rows[first[j] : first[j + 1]] == e)[0]) for j, e in enumerate(match)]
        for match in matches
    ]).T.copy()  # fmt: skip
    classes = Classes(
        candidates.first_class, candidates.class_start, candidates.class_stop, candidates.class_longest
    )
    few = FewForbidden(len(taken), w, candidates.lower, candidates.upper, rows, classes)
    low, high = np.zeros((2, len(matches)), dtype=np.int64)
    confidence = np.zeros(len(matches))
    done = few.describe(chosen, low, high, confidence)
    base = candidates.base[chosen[0]]
    return done.tolist(), (low - base).tolist(), (high - base).tolist(), confidence.tolist()


def worlds(
    events: Intervals, taken: list[list[int]], match: tuple[int, ...], window: int
) -> list[tuple[int, ...]]:
    """Return the times of a match in each world in which it is one."""

    def is_next(world: tuple[int, ...]) -> bool:
        t = [world[e] for e in match]
        return t[-1] - t[0] < window and all(
            before < own and not any(before < world[e] < own for e in part if e not in match)
            for before, own, part in zip(t, t[1:], taken[1:], strict=False)
        )

    times = itertools.product(*(range(low, high + 1) for low, high in events))
    return [tuple(world[e] for e in match) for world in times if is_next(world)]


@given(_EVENTS, st.integers(2, 3), st.integers(0, 12), st.data())
def test_confidence_and_range_are_those_of_the_worlds(
    drawn: list[tuple[int, int]], length: int, w: int, data: st.DataObject
) -> None:
    assume(len(drawn) >= length)
    events = [(low, low + size) for low, size in drawn]
    numbers = st.sets(st.integers(0, len(events) - 1), min_size=1)
    taken = [sorted(data.draw(numbers)) for _ in range(length)]
    window = w + length
    matches = [match for match in itertools.product(*taken) if len(set(match)) == length]
    # What order and window allow is what a join finds.
    matches = [
        match for match in matches if worlds([events[e] for e in match], _alone(length), _own(length), window)
    ]
    assume(matches)
    all_worlds = math.prod(high - low + 1 for low, high in events)
    found = zip(matches, *described(events, taken, matches, w), strict=True)
    for match, done, first, last, confidence in found:
        if done:
            good = worlds(events, taken, match, window)
            assert confidence == pytest.approx(len(good) / all_worlds, rel=1e-9, abs=0)
            if good:
                assert (first, last) == (min(t[0] for t in good), max(t[-1] for t in good))
            else:
                assert first > last


def _own(length: int) -> tuple[int, ...]:
    return tuple(range(length))


def _alone(length: int) -> list[list[int]]:
    return [[j] for j in range(length)]


def test_what_has_to_be_weighed_otherwise() -> None:
    """Events that overlap in one gap, that two gaps forbid, and more than two in a gap."""
    match = [(0, 9), (20, 29), (40, 49)]
    events = [*match, (5, 8), (8, 14), (15, 25), (1, 1), (3, 3), (6, 6)]

    def is_done(*forbidden: list[int]) -> bool:
        taken = [[0], [1, *forbidden[0]], [2, *forbidden[1]]]
        return described(events, taken, [(0, 1, 2)], 97)[0][0]

    assert is_done([3], [5])
    assert not is_done([3, 4], [])
    assert is_done([], [5])
    assert not is_done([5], [5])
    assert is_done([6, 7], [])
    assert not is_done([6, 7, 8], [])
