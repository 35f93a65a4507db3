"""Ranges and confidences of matches that nothing forbids, against the possible worlds of their events."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.chain import side_by_side
from eventbased.gaps.free_matches import describe_free, forbids
from eventbased.gaps.gap_events import GapRules, MatchEvents, Placed, some_of

_INTERVALS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4)), min_size=1, max_size=8)


def _placed(events: list[tuple[int, int]], base: int) -> Placed:
    lower = np.array([low for low, _ in events], dtype=np.int64)
    upper = np.array([low + size for low, size in events], dtype=np.int64)
    shift = np.full(len(events), base, dtype=np.int64)
    return Placed(lower + shift, upper + shift, shift, np.arange(len(events), dtype=np.int64))


def _matches(chosen: list[list[int]]) -> MatchEvents:
    start = np.cumsum([0, *map(len, chosen)])
    place = np.array(list(itertools.chain.from_iterable(chosen)), dtype=np.int64)
    return MatchEvents(start, place, np.zeros_like(place))


def _described(
    placed: Placed, chosen: list[list[int]], window: int, offsets: list[int], wanted: bool = True
) -> tuple[list[int], list[tuple[int, int, float]]]:
    found = len(chosen)
    out = np.full(found, 7), np.full(found, 7), np.full(found, 7.0)
    left = describe_free(_matches(chosen), placed, np.array(offsets), window, wanted, out)
    return left.tolist(), list(zip(*(column.tolist() for column in out), strict=True))


def _worlds(events: list[tuple[int, int]], match: list[int], window: int) -> tuple[int, int, Fraction]:
    """Return range and confidence of a match; of none an empty range."""
    times = [range(events[e][0], events[e][0] + events[e][1] + 1) for e in match]
    held = [
        world
        for world in itertools.product(*times)
        if all(a < b for a, b in itertools.pairwise(world)) and world[-1] - world[0] < window
    ]
    total = int(np.prod([len(each) for each in times]))
    if not held:
        return 0, -1, Fraction(0)
    first, last = min(world[0] for world in held), max(world[-1] for world in held)
    return first, last, Fraction(len(held), total)


@given(events=_INTERVALS, window=st.integers(1, 14), base=st.integers(-20, 20), data=st.data())
def test_they_are_those_of_the_worlds(
    events: list[tuple[int, int]], window: int, base: int, data: st.DataObject
) -> None:
    numbers = st.lists(st.integers(0, len(events) - 1), min_size=1, max_size=4, unique=True)
    chosen = data.draw(st.lists(numbers, min_size=1, max_size=6))
    left, found = _described(_placed(events, base), chosen, window, [-1] * len(events))
    assert left == [n for n, match in enumerate(chosen) if len(match) > window]
    for n, match in enumerate(chosen):
        if n not in left:
            first, last, exact = _worlds(events, match, window)
            assert found[n][:2] == (first, last)
            assert found[n][2] == pytest.approx(float(exact), rel=1e-12, abs=0)


@given(events=_INTERVALS, window=st.integers(1, 14))
def test_a_range_needs_no_confidence(events: list[tuple[int, int]], window: int) -> None:
    chosen = [list(range(length)) for length in range(1, min(len(events), window, 4) + 1)]
    _, found = _described(_placed(events, 3), chosen, window, [-1] * len(events), wanted=False)
    assert [each[:2] for each in found] == [_worlds(events, match, window)[:2] for match in chosen]


def test_others_are_left() -> None:
    events = [(3 * n, 2) for n in range(12)]
    longest = max(side_by_side.LENGTHS)
    chosen = [list(range(longest)), list(range(longest + 1)), [0, 1], [10, 11]]
    offsets = [-1] * 11 + [0]
    assert _described(_placed(events, 0), chosen, 100, offsets)[0] == [1, 3]
    far = 2**54
    assert _described(_placed([(0, far), (far // 2, far)], 0), [[0, 1]], far, [-1, -1])[0] == [0]


@given(chosen=st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6), data=st.data())
def test_some_of_them(chosen: list[list[int]], data: st.DataObject) -> None:
    which = data.draw(st.lists(st.integers(0, len(chosen) - 1), max_size=6))
    some = some_of(_matches(chosen), np.array(which, dtype=np.int64))
    assert [part.tolist() for part in np.split(some.place, some.start[1:-1])][: len(which)] == [
        chosen[n] for n in which
    ]


def test_any_rule_forbids() -> None:
    nothing, none = np.full(2, -1), np.zeros(0, dtype=np.int64)
    assert not forbids(GapRules(nothing, -1, none, none))
    assert forbids(GapRules(np.array([-1, 0]), -1, none, none))
    assert forbids(GapRules(nothing, 0, none, none))
    assert forbids(GapRules(nothing, -1, np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)))
