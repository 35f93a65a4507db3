"""Upper bounds of confidences are no smaller than these."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from confidence import exact_chain_confidence
from eventbased import filter_matches
from eventbased.upper_bounds import _in_order

_EVENTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 8)), min_size=2, max_size=5)


def _probability(first: range, second: range, shift: int) -> Fraction:
    pairs = sum(x <= y + shift for x in first for y in second)
    return Fraction(pairs, len(first) * len(second))


@given(_EVENTS, st.integers(0, 10))
def test_the_bound_of_a_chain(events: list[tuple[int, int]], spare: int) -> None:
    length = len(events)
    lower = np.array([low - j for j, (low, _) in enumerate(events)], dtype=np.int64)
    upper = np.array([low + size - j for j, (low, size) in enumerate(events)], dtype=np.int64)
    offset = np.empty(0, dtype=np.int64)
    times = [range(int(low), int(high) + 1) for low, high in zip(lower, upper, strict=True)]
    bound = 1.0
    for j in range(length):
        # The window closes the cycle: the last one is not above the first one by more than what is spare.
        x, y, shift = (j, j + 1, 0) if j + 1 < length else (length - 1, 0, spare)
        found = _in_order(x, y, shift, lower, upper, offset)
        exact = _probability(times[x], times[y], shift)
        assert exact <= Fraction(found) <= exact + Fraction(1, 10**9)
        bound *= found
    bounds = [low for low, _ in events], [low + size for low, size in events]
    exact = exact_chain_confidence(*bounds, length + spare)
    assert exact <= bound * (1 + 1e-12)
    kept = np.empty(1, dtype=np.bool_)
    ranks, chosen = np.arange(length), np.arange(length)[:, None]
    filter_matches(chosen, spare, lower, upper, offset, float(exact), ranks, 0, kept)
    assert kept[0]
    filter_matches(chosen, spare, lower, upper, offset, bound * (1 + 1e-6) + 1e-12, ranks, 0, kept)
    assert not kept[0]
    filter_matches(chosen, spare, lower, upper, offset, 0.0, ranks, -1, kept)
    assert not kept[0]


def test_an_event_with_a_pmf_has_no_bound() -> None:
    lower, upper = np.array([5, 0]), np.array([9, 1])
    assert _in_order(0, 1, 0, lower, upper, np.array([-1, -1])) == 0.0
    assert _in_order(0, 1, 0, lower, upper, np.array([-1, 3])) == 1.0
