"""The pmf kernels against enumeration: probabilities with zeros, uniform intervals between, windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.resident import forget_peak, is_told, peak, resident
from confidence import chain_confidence_pmf, support_range
from confidence.chain import pmf as pmf_kernels
from confidence.chain.pmf import MOST_MATRIX_CELLS

Event = tuple[int, tuple[float, ...], bool]


@st.composite
def event(draw: st.DrawFn) -> Event:
    """Its lower bound, its probabilities, and whether they are given (and not merely uniform)."""
    lower = draw(st.integers(-5, 5))
    size = draw(st.integers(1, 6))
    if draw(st.booleans()):
        return lower, (1 / size,) * size, False
    weights = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=size, max_size=size))
    if not any(weights):
        weights[0] = 1
    # Of an event that is cut there is a part of its probabilities.
    whole = sum(weights) * draw(st.sampled_from([1, 1, 2]))
    return lower, tuple(weight / whole for weight in weights), True


def arrays_of(events: list[Event]) -> tuple[Any, ...]:
    """Return lower and upper bounds, where probabilities start, and these."""
    values: list[float] = []
    offset: list[int] = []
    for _, pmf, explicit in events:
        offset.append(len(values) if explicit else -1)
        values += pmf if explicit else ()
    lower = np.array([low for low, _, _ in events])
    sizes = np.array([len(pmf) for _, pmf, _ in events])
    return lower, lower + sizes - 1, np.array(offset), np.array(values, dtype=np.float64)


@given(st.lists(event(), min_size=1, max_size=5), st.integers(1, 13))
def test_probability_and_range_are_those_of_the_possible_worlds(events: list[Event], window: int) -> None:
    total, first, last = 0.0, [], []
    for t in itertools.product(*(range(low, low + len(pmf)) for low, pmf, _ in events)):
        probability = float(np.prod([pmf[x - low] for x, (low, pmf, _) in zip(t, events, strict=True)]))
        if probability and all(x < y for x, y in itertools.pairwise(t)) and t[-1] - t[0] < window:
            total += probability
            first.append(t[0])
            last.append(t[-1])
    arrays = arrays_of(events)
    found = support_range(*arrays, window)
    if not first:
        assert found[0] > found[1]
        return
    assert found == (min(first), max(last))
    assert chain_confidence_pmf(*arrays, window, *found) == pytest.approx(total, rel=1e-12, abs=0)


@given(st.lists(event(), min_size=2, max_size=6), st.integers(2, 13), st.integers(1, 40))
def test_a_window_is_swept_in_parts_or_with_the_first_time_held(
    events: list[Event], window: int, cells: int
) -> None:
    """Neither depends on the memory that it may take, and both are the same sum of positive terms."""
    arrays = arrays_of(sorted(events))
    first, last = support_range(*arrays, window)
    assume(first <= last)
    swept: Any = pmf_kernels._with_window
    bounds = np.empty((2, len(events)), dtype=np.int64)
    tighten: Any = pmf_kernels._tighten
    ticks = tighten(*arrays[:2], first, last, bounds)
    held: Any = pmf_kernels._with_first_held
    whole = swept(*arrays, window, first, last, MOST_MATRIX_CELLS)
    assert swept(*arrays, window, first, last, cells) == whole > 0.0
    assert held(*arrays, window, bounds, np.empty(ticks)) == pytest.approx(whole, rel=1e-12, abs=0)


@pytest.mark.compiled
@pytest.mark.skipif(not is_told(), reason="needs Linux' /proc")
@pytest.mark.parametrize(
    ("length", "step", "width", "window"),
    [
        # A matrix of all pairs took 72 MB, twice.
        (3000, 1, 10, 3005),
        # Rows for each tick of the window took 96 MB.
        (3, 1, 5_000_000, 4_000_000),
    ],
)
def test_memory_grows_neither_with_pairs_of_events_nor_with_windows(
    length: int, step: int, width: int, window: int
) -> None:
    lower = step * np.arange(length)
    upper, offset = lower + width, np.zeros(length, dtype=np.int64)
    # Or so many would be in order with a probability that float64 does not hold.
    pmf = np.full(width + 1, 0.01 / width)
    pmf[width // 2] = 0.99
    few = slice(0, 2)
    assert chain_confidence_pmf(lower[few], upper[few], offset[few], pmf, 3, 0, width + 1) > 0.0
    first, last = support_range(lower, upper, offset, pmf, window)
    assert last - first >= window
    forget_peak()
    before = resident()
    assert 0.0 < chain_confidence_pmf(lower, upper, offset, pmf, window, first, last) < 1.0
    assert peak() - before < 2**26
