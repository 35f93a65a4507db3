"""A join for matches of some confidence finds them all: narrowed bounds against exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from confidence import exact_chain_confidence
from eventbased import narrowing
from eventbased.layout import Candidates
from eventbased.narrowing import Narrowed, least_distances, narrowed, share_left
from tests.cases.layouts import candidates_of
from tests.cases.sampling import sampled_from

Intervals = list[tuple[int, int]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Intervals], int]:
    """Draw a chain, the first candidates of the components, others beside them, and W - l."""
    length = draw(st.integers(2, 5))
    scale = draw(sampled_from((4, 30, 1000)))
    ticks = st.integers(0, scale)
    size, are_equal = draw(ticks), draw(st.booleans())
    components = []
    for j in range(length):
        found = []
        for _ in range(draw(st.integers(1, 3))):
            low = draw(ticks) + j * draw(sampled_from((0, scale // 4, scale)))
            found.append((low, low + (size if are_equal else draw(sampled_from((size, draw(ticks)))))))
        components.append(found)
    return components, draw(ticks) + draw(sampled_from((0, scale)))


def laid_out(components: list[Intervals]) -> Candidates:
    lower = [np.array([low for low, _ in found]) for found in components]
    upper = [np.array([high for _, high in found]) for found in components]
    return candidates_of(lower, upper)


def likely(candidates: Candidates, w: int, least: float) -> Narrowed | None:
    """Return the arguments of a join for the matches of some confidence, None if there are none."""
    distance = least_distances(candidates, w, least)
    return None if distance is None else narrowed(candidates, w, distance)


def feasible(found: Narrowed, chosen: Sequence[int]) -> bool:
    """Return whether the join takes these candidates, see :mod:`eventbased.joins.pivot_join`."""
    low, high = found.candidates.lower[[*chosen]], found.candidates.upper[[*chosen]]
    in_order = all(low[i] <= high[j] for j in range(len(chosen)) for i in range(j + 1))
    return in_order and bool(low.max() <= high.min() + found.w)


@given(cases(), sampled_from((0, 10**9)))
def test_a_match_of_the_confidence_is_found(case: tuple[list[Intervals], int], climbing: int) -> None:
    components, w = case
    length = len(components)
    lower, upper = zip(*(found[0] for found in components), strict=True)
    exact = exact_chain_confidence(lower, upper, w + length)
    if not exact:
        return
    candidates = laid_out(components)
    with mock.patch.object(narrowing, "WORTH_CLIMBING", climbing):
        found = likely(candidates, w, float(exact))
    assert found is not None
    assert found.w >= 0
    found.candidates.check()
    first = candidates.first
    chosen = [
        int(first[j] + np.flatnonzero(candidates.source[first[j] : first[j + 1]] == 0)[0])
        for j in range(length)
    ]
    assert feasible(found, chosen)


def test_what_is_left_out_is_most() -> None:
    """Two events of 101 ticks: what is in order with a probability of 0.9, and nothing else, is kept."""
    candidates = laid_out([[(5 * k, 5 * k + 100) for k in range(50)]] * 2)
    found = likely(candidates, 10_000, 0.9)
    assert found is not None

    def probability(pair: tuple[int, int]) -> Fraction:
        lower = [5 * pair[0], 5 * (pair[1] - 50)]
        return exact_chain_confidence(lower, [low + 100 for low in lower], 10_002)

    pairs = [(i, 50 + j) for i in range(50) for j in range(50)]
    wanted = [pair for pair in pairs if probability(pair) >= Fraction(9, 10)]
    assert [pair for pair in pairs if feasible(found, pair)] == wanted
    assert likely(candidates, 0, 0.9) is None


def test_of_equally_long_intervals_little_is_left() -> None:
    """Three events of 101 ticks: of a thousand choices those that can be best, and few others, are kept."""
    candidates = laid_out([[(8 * k, 8 * k + 100) for k in range(10)]] * 3)
    choices = list(product(range(10), range(10, 20), range(20, 30)))

    def confidence(chosen: tuple[int, ...]) -> Fraction:
        lower = [8 * (place % 10) for place in chosen]
        return exact_chain_confidence(lower, [low + 100 for low in lower], 100)

    exact = {chosen: confidence(chosen) for chosen in choices}
    best = max(exact.values())
    with mock.patch.object(narrowing, "WORTH_CLIMBING", 0):
        found = likely(candidates, 97, float(best))
    assert found is not None
    kept = [chosen for chosen in choices if feasible(found, chosen)]
    assert {chosen for chosen in choices if exact[chosen] == best} <= {*kept}
    assert len(kept) < 40
    with mock.patch.object(narrowing, "WORTH_CLIMBING", 10**9):
        found = likely(candidates, 97, float(best))
    assert found is not None
    assert sum(feasible(found, chosen) for chosen in choices) > 4 * len(kept)


@given(st.integers(2, 4), st.integers(60, 200), sampled_from((0.001, 0.1, 0.3, 0.9)))
def test_about_how_many_are_left(length: int, size: int, least: float) -> None:
    """Of evenly spread events the share is foreseen, with room for those at the ends of the trace."""
    w, step = 200, 20
    count = 3 * (w + length * size) // step
    lower = [(step * k, step * k + size - 1) for k in range(count)]
    candidates = laid_out([lower] * length)
    distance = least_distances(candidates, w, least)
    if distance is None:
        return
    assert 0.0 <= share_left(candidates, w, distance) <= 1.0
    found = narrowed(candidates, w, distance)
    # Matches of an event in the middle.
    middle = count // 2
    numbers = []
    for low, high, reach in (
        (candidates.lower, candidates.upper, w),
        (found.candidates.lower, found.candidates.upper, found.w),
    ):
        first = candidates.first.tolist()
        partial = [(int(low[middle]), int(low[middle]), int(high[middle]))]
        for j in range(1, length):
            own = range(first[j], first[j] + count)
            partial = [
                (top, max(late, int(low[k])), min(early, int(high[k])))
                for top, late, early in partial
                for k in own
                if late <= high[k] and max(late, int(low[k])) <= min(early, int(high[k])) + reach
            ]
        numbers.append(len(partial))
    assert abs(numbers[1] / numbers[0] - share_left(candidates, w, distance)) < 0.25
