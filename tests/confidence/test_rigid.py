"""Events that are certain but for shared clocks, against every choice of offsets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import chain_confidence
from confidence.shared.rigid import collapse, conditions, rigid_count

Events = list[tuple[int, int, int]]
"""Clock, reading and step of each."""


@st.composite
def matches(draw: st.DrawFn, most: int = 4) -> tuple[Events, list[tuple[int, int]], int]:
    clocks = draw(st.integers(1, most))
    bounds = []
    for _ in range(clocks):
        lower = draw(st.integers(-3, 3))
        bounds.append((lower, lower + draw(st.integers(0, 6))))
    events, reading = [], 0
    order = draw(st.lists(st.integers(0, clocks - 1), max_size=3)) + draw(st.permutations(range(clocks)))
    order += draw(st.lists(st.integers(0, clocks - 1), max_size=2))
    for number, clock in enumerate(order):
        reading += draw(st.integers(-1, 4))
        step = draw(st.sampled_from([0, 1, 1])) if number and order[number - 1] == clock else int(number > 0)
        events.append((clock, reading, step))
    return events, bounds, draw(st.integers(1, 25))


def worlds(events: Events, bounds: list[tuple[int, int]], window: int) -> list[tuple[int, ...]]:
    """Return the choices of offsets with which the events are in order and in the window."""
    found = []
    for offsets in itertools.product(*(range(low, high + 1) for low, high in bounds)):
        times = [reading + offsets[clock] for clock, reading, _ in events]
        in_order = all(
            later - earlier >= step
            for earlier, later, (_, _, step) in zip(times, times[1:], events[1:], strict=False)
        )
        if in_order and times[-1] - times[0] < window:
            found.append(offsets)
    return found


def arrays_of(events: Events, bounds: list[tuple[int, int]]) -> tuple[Any, ...]:
    source, reading, step = (np.array(column) for column in zip(*events, strict=True))
    lower, upper = (np.array(column) for column in zip(*bounds, strict=True))
    return reading, source, step, lower, upper


def counted(events: Events, bounds: list[tuple[int, int]], window: int) -> tuple[float, Any]:
    """Return the number of worlds in pieces, and the closed conditions; None if there is none."""
    reading, source, step, lower, upper = arrays_of(events, bounds)
    least = np.empty((len(bounds) + 1, len(bounds) + 1), np.int64)
    if not conditions(reading, source, step, window, lower, upper, least):
        return 0.0, None
    works = np.empty((4, 4), np.int64), np.empty(9, np.int64), np.empty(337, np.int64)
    return float(rigid_count(least, *works)), least


def collapsed(events: Events, bounds: list[tuple[int, int]], window: int) -> float | None:
    """Return the confidence as that of a chain; None where clocks have several blocks."""
    reading, source, step, lower, upper = arrays_of(events, bounds)
    low, high, seen = (np.empty(len(bounds), np.int64) for _ in range(3))
    length, w = collapse(reading, source, step, window, lower, upper, seen, low, high)
    if length <= 0:
        return None if length < 0 else 0.0
    works = [np.empty(length, np.int64) for _ in range(2)]
    return float(
        chain_confidence(
            low[:length], high[:length], w, *works, np.empty((4, length), np.int64),
            np.empty((4, 2 * length + 1)),
        )
    )  # fmt: skip


@given(matches())
def test_worlds_are_counted(match: tuple[Events, list[tuple[int, int]], int]) -> None:
    found = worlds(*match)
    count, least = counted(*match)
    assert count == pytest.approx(len(found), rel=1e-12, abs=0)
    assert (least is None) == (not found)
    if found:
        origin = len(match[1])
        assert least[origin, :-1].tolist() == np.min(found, axis=0).tolist()
        assert (-least[:-1, origin]).tolist() == np.max(found, axis=0).tolist()


@given(matches())
def test_blocks_of_clocks_are_events_of_a_chain(match: tuple[Events, list[tuple[int, int]], int]) -> None:
    events, bounds, _ = match
    confidence = collapsed(*match)
    blocks = [clock for clock, _ in itertools.groupby(event[0] for event in events)]
    several = len(blocks) - (len(blocks) > 1 and blocks[0] == blocks[-1]) > len(bounds)
    assert (confidence is None) <= several
    if confidence is not None:
        share = Fraction(len(worlds(*match)), math.prod(high - low + 1 for low, high in bounds))
        assert confidence == pytest.approx(float(share), rel=1e-12, abs=1e-300)


def exact_count(events: Events, bounds: list[tuple[int, int]], window: int) -> int:
    """Return the number of worlds exactly, going through all offsets but two."""
    reading, source, step, lower, upper = arrays_of(events, bounds)
    total = 0
    for fixed in itertools.product(*(range(low, high + 1) for low, high in bounds[2:])):
        narrow = np.array([*lower[:2], *fixed]), np.array([*upper[:2], *fixed])
        least = np.empty((len(bounds) + 1, len(bounds) + 1), np.int64)
        if conditions(reading, source, step, window, *narrow, least):
            m = least.tolist()
            o = len(bounds)
            first, second = range(m[o][0], 1 - m[0][o]), range(m[o][1], 1 - m[1][o])
            cut = [m[0][1] - 1 - second[0] + first[-1], second[-1] - first[0] + m[1][0] - 1]
            total += len(first) * len(second)
            total -= sum((z + 1) * (z + 2) // 2 for z in cut if z >= 0)
    return total


@pytest.mark.compiled
@pytest.mark.parametrize("order", [(0, 1, 2, 0, 1, 2), (0, 1, 0, 2, 1, 2), (2, 0, 1, 0, 2)])
@pytest.mark.parametrize("width", [300, 2_001])
def test_long_offsets_of_three_clocks(order: tuple[int, ...], width: int) -> None:
    spread = width // 7
    events = [(clock, place * spread // 3, int(place > 0)) for place, clock in enumerate(order)]
    bounds = [(-width // 2, width // 2), (-width // 3, width // 2), (-width // 2, width // 3)]
    for window in (width // 2, 10 * width):
        exact = exact_count(events, bounds, window)
        assert exact > 0
        assert counted(events, bounds, window)[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.compiled
def test_long_offsets_of_four_clocks() -> None:
    order = (0, 1, 2, 0, 1, 3)
    events = [(clock, 5 * place, int(place > 0)) for place, clock in enumerate(order)]
    bounds = [(-30, 29), (-31, 30), (-17, 26), (-20, 21)]
    for window in (40, 500):
        exact = exact_count(events, bounds, window)
        assert exact > 0
        assert counted(events, bounds, window)[0] == pytest.approx(exact, rel=1e-12)


def test_the_number_of_ticks_costs_no_accuracy() -> None:
    """ABAB of two clocks and a million ticks each: a strip of offsets, by its exact number."""
    width = 10**6
    events = [(0, 0, 0), (1, 0, 1), (0, 9, 1), (1, 9, 1)]
    bounds = [(0, width - 1)] * 2
    exact = sum(width - difference for difference in range(1, 9))
    assert counted(events, bounds, 10 * width)[0] == pytest.approx(exact, rel=1e-15)
