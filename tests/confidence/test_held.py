"""Events uncertain by their own clock besides shared offsets, against every choice of offsets."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import exact_chain_confidence
from confidence.chain.distribution import law_of_sum
from confidence.shared.held import TOO_MANY, Offsets, OwnTimes, weigh_held

Own = list[tuple[int, int, int]]
"""Clock, -1 for none, and bounds of each event's time by it."""
Bounds = list[tuple[int, int]]


@st.composite
def sequences(draw: st.DrawFn, most: int = 2, width: int = 30) -> tuple[Own, Bounds, int]:
    clocks = []
    for _ in range(draw(st.integers(1, most))):
        lower = draw(st.integers(-9, 9))
        clocks.append((lower, lower + draw(st.integers(0, width))))
    events, place = [], 0
    for _ in range(draw(st.integers(2, 5))):
        place += draw(st.integers(-4, width // 2))
        clock = draw(st.integers(-1, len(clocks) - 1))
        events.append((clock, place, place + draw(st.sampled_from([0, 1, 5, width]))))
    return events, clocks, draw(st.integers(len(events), 5 * width))


def found(events: Own, clocks: Bounds, window: int, most: int = 100_000) -> tuple[int, int, float]:
    """Return range and confidence by the kernel."""
    clock, lower, upper = (np.array(column) for column in zip(*events, strict=True))
    low, high = (np.array(column) for column in zip(*clocks, strict=True))
    own = OwnTimes(clock, lower, upper, np.full(len(events), -1))
    offsets = Offsets(low, high, np.full(len(clocks), -1))
    out = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1)
    rows = np.arange(len(events))[:, None]
    assert weigh_held(rows, own, offsets, np.empty(0), window, True, (most, most), 0, *out) == 1
    return int(out[0][0]), int(out[1][0]), float(out[2][0])


def exact(events: Own, clocks: Bounds, window: int) -> Fraction:
    """Return the confidence exactly, going through all offsets of clocks that events name."""
    named = sorted({clock for clock, _, _ in events} - {-1})
    total, count = Fraction(0), 0
    for choice in itertools.product(*(range(clocks[clock][0], clocks[clock][1] + 1) for clock in named)):
        moved = [(0 if clock < 0 else choice[named.index(clock)], low, high) for clock, low, high in events]
        lower, upper = [low + move for move, low, _ in moved], [high + move for move, _, high in moved]
        total += exact_chain_confidence(lower, upper, window)
        count += 1
    return total / count


@given(sequences())
def test_confidences_are_sums_over_offsets(sequence: tuple[Own, Bounds, int]) -> None:
    wanted = exact(*sequence)
    lower, upper, confidence = found(*sequence)
    assert confidence == pytest.approx(float(wanted), rel=1e-11, abs=0)
    assert (lower <= upper) == (wanted > 0)


@pytest.mark.parametrize("own", [0, 40, 1_000])
@pytest.mark.parametrize("clocks", [(0, -1, 0), (0, 1, 0), (0, -1, 0, -1, 0), (0, 1, 0, 1)])
def test_pieces_are_exact_at_any_length(clocks: tuple[int, ...], own: int) -> None:
    """Pieces of several hundred ticks, of every degree."""
    events: Own = [
        (clock, 150 * place, 150 * place + (300 if clock < 0 else own)) for place, clock in enumerate(clocks)
    ]
    for window in (len(clocks) * 150 - 80, 10_000):
        sequence = events, [(-200, 300), (-150, 250)], window
        narrow = exact(*sequence) if 1 not in clocks else exact_of_two(*sequence)
        assert found(*sequence)[2] == pytest.approx(float(narrow), rel=1e-12)


def exact_of_two(events: Own, clocks: Bounds, window: int) -> Fraction:
    """Return the confidence where clock 1 has one event at least, by the law of what moves it."""
    (low, high), (other_low, other_high) = clocks
    if all(clock >= 0 for clock, _, _ in events):
        total = Fraction(0)
        for move in range(other_low - high, other_high - low + 1):
            weight = min(high, other_high - move) - max(low, other_low - move) + 1
            moved = [(first + move * clock, last + move * clock) for clock, first, last in events]
            lower, upper = zip(*moved, strict=True)
            total += weight * exact_chain_confidence(lower, upper, window)
        return total / ((high - low + 1) * (other_high - other_low + 1))
    raise AssertionError("all events are of the two clocks")


@pytest.mark.compiled
def test_a_million_ticks_cost_no_accuracy() -> None:
    """A rigid pair around an event that is anywhere: the number of its ticks in between, at each offset."""
    d = 10**6
    events: Own = [(0, 0, 0), (-1, 0, d - 1), (0, 1_000, 1_000)]
    wanted = sum(max(0, min(d - 1, x + 999) - max(0, x + 1) + 1) for x in range(-d, 2 * d))
    confidence = found(events, [(-d, 2 * d - 1)], 10**7)[2]
    assert confidence == pytest.approx(wanted / (3 * d) / d, rel=1e-12)


def test_too_many_offsets_are_told() -> None:
    events: Own = [(0, 0, 9), (1, 5, 9), (0, 20, 29), (1, 30, 39), (-1, 0, 99)]
    clocks = [(0, 999), (0, 999)]
    assert found(events, clocks, 500, most=100)[2] == TOO_MANY
    assert found(events, clocks, 500)[2] == pytest.approx(found(events, clocks[::-1], 500)[2], rel=1e-12)


@given(st.data())
def test_laws_of_sums(data: st.DataObject) -> None:
    laws: list[Any] = []
    for _ in range(2):
        size = data.draw(st.integers(1, 9))
        laws.append(
            data.draw(
                st.one_of(st.just([1.0] * size), st.lists(st.floats(0, 1), min_size=size, max_size=size))
            )
        )
    explicit = [data.draw(st.booleans()) or len(set(law)) > 1 or law[0] != 1.0 for law in laws]
    values = np.array([*laws[0], *laws[1]])
    low, other = data.draw(st.integers(-5, 5)), data.draw(st.integers(-5, 5))
    parts: Any = [
        np.array(law) if is_explicit else np.array(law) / len(law)
        for law, is_explicit in zip(laws, explicit, strict=True)
    ]
    out = np.full(40, np.nan)
    count = law_of_sum(
        low, low + len(laws[0]) - 1, 0 if explicit[0] else -1,
        other, other + len(laws[1]) - 1, len(laws[0]) if explicit[1] else -1, values, 3, out,
    )  # fmt: skip
    assert out[3 : 3 + count].tolist() == pytest.approx(np.convolve(*parts).tolist(), rel=1e-12, abs=1e-300)
