"""Bounds by one forbidden event in a gap, against the possible worlds of a few events."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventbased.gaps.nearest import filter_gaps
from tests.eventbased.test_narrowing import Intervals, laid_out

_EVENTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=3)


def probability(first: tuple[int, int], others: Intervals, window: int) -> Fraction:
    """Return P(the first one of the others is next to an event, and within the window)."""
    intervals = [first, *others]
    worlds = itertools.product(*(range(low, high + 1) for low, high in intervals))
    good = sum(t < own < t + window and not any(t < x < own for x in rest) for t, own, *rest in worlds)
    return Fraction(good, math.prod(high - low + 1 for low, high in intervals))


@given(_EVENTS, _EVENTS, st.integers(0, 12))
def test_no_match_of_the_confidence_is_left_out(
    first: list[tuple[int, int]], second: list[tuple[int, int]], w: int
) -> None:
    components = [[(low, low + size) for low, size in events] for events in (first, second)]
    candidates = laid_out(components)
    total = len(first) + len(second)
    for a, b in itertools.product(range(len(first)), range(len(first), total)):
        i, j = candidates.source[[a, b]]
        own = components[1][j]
        exact = probability(components[0][i], [own, *(components[1][:j] + components[1][j + 1 :])], w + 2)
        arguments = candidates, np.arange(total), w, np.array([False, True])
        assert filter_gaps(np.array([[a], [b]]), *arguments, float(exact)).shape == (2, 1)


def test_what_surely_comes_between_leaves_a_match_out() -> None:
    candidates = laid_out([[(0, 5)], [(10, 15), (20, 25), (24, 29)]])
    matches, rows = np.array([[0, 0, 0], [1, 2, 3]]), np.arange(4)
    found = filter_gaps(matches, candidates, rows, 98, np.array([False, True]), 0.01)
    assert found.T.tolist() == [[0, 1]]
    # An event of the match itself is not forbidden, nor is one that only some matches forbid.
    rows[1] = 0
    assert filter_gaps(matches, candidates, rows, 98, np.array([False, True]), 0.01).shape == (2, 3)
    assert filter_gaps(matches, candidates, np.arange(4), 98, np.zeros(2, np.bool_), 0.01).shape == (2, 3)
