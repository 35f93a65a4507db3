"""The pmf kernels against enumeration: probabilities with zeros, uniform intervals between, windows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import chain_confidence_pmf, support_range

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


@given(st.lists(event(), min_size=1, max_size=5), st.integers(1, 13))
def test_probability_and_range_are_those_of_the_possible_worlds(events: list[Event], window: int) -> None:
    total, first, last = 0.0, [], []
    for t in itertools.product(*(range(low, low + len(pmf)) for low, pmf, _ in events)):
        probability = float(np.prod([pmf[x - low] for x, (low, pmf, _) in zip(t, events, strict=True)]))
        if probability and all(x < y for x, y in itertools.pairwise(t)) and t[-1] - t[0] < window:
            total += probability
            first.append(t[0])
            last.append(t[-1])
    values: list[float] = []
    offset: list[int] = []
    for _, pmf, explicit in events:
        offset.append(len(values) if explicit else -1)
        values += pmf if explicit else ()
    arrays = (
        np.array([low for low, _, _ in events]),
        np.array([low + len(pmf) - 1 for low, pmf, _ in events]),
        np.array(offset),
        np.array(values, dtype=np.float64),
    )
    found = support_range(*arrays, window)
    if not first:
        assert found[0] > found[1]
        return
    assert found == (min(first), max(last))
    assert chain_confidence_pmf(*arrays, window, *found) == pytest.approx(total, rel=1e-12, abs=0)
