"""How far events of a likely match are apart at least: its lemmas and its answer against exact counts."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eventbased import least_gaps
from eventbased.config import CONFIDENCE_ERROR
from eventbased.least_gaps import best_of, least_gap
from tests.cases.sampling import sampled_from


@cache
def worlds(lower: tuple[int, ...], sizes: tuple[int, ...], w: int) -> int:
    """Count the worlds with ``u_1 <= .. <= u_l <= u_1 + w``, one by one."""
    ticks = [range(low, low + size) for low, size in zip(lower, sizes, strict=True)]
    return sum(
        all(one <= two for one, two in pairwise(found)) and found[-1] <= found[0] + w
        for found in product(*ticks)
    )


@cache
def confidences(length: int, size: int, w: int) -> dict[int, Fraction]:
    """Return for each first gap the confidence of the best match, whatever its other gaps."""
    best: dict[int, Fraction] = {}
    reach = range(1 - size, w + size)
    for gaps in product(reach, repeat=length - 1):
        lower = tuple(sum(gaps[:j]) for j in range(length))
        found = Fraction(worlds(lower, (size,) * length, w), size**length)
        best[gaps[0]] = max(best.get(gaps[0], Fraction(0)), found)
    return best


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, int]:
    """Draw a length, ticks of an interval and W - l."""
    length = draw(sampled_from((2, 3, 4)))
    size = draw(st.integers(1, {2: 7, 3: 4, 4: 2}[length]))
    return length, size, draw(st.integers(0, {2: 12, 3: 6, 4: 4}[length]))


_POINTS = st.lists(
    st.tuples(st.integers(-4, 5), st.integers(-4, 5), st.integers(1, 4)), min_size=2, max_size=4
)


@given(_POINTS, st.integers(0, 6))
def test_worlds_are_log_concave(points: list[tuple[int, int, int]], w: int) -> None:
    one, two, sizes = zip(*points, strict=True)
    low = tuple((x + y) // 2 for x, y in zip(one, two, strict=True))
    high = tuple(-(-(x + y) // 2) for x, y in zip(one, two, strict=True))
    product_ = worlds(one, sizes, w) * worlds(two, sizes, w)
    assert product_ <= worlds(low, sizes, w) * worlds(high, sizes, w)


@given(cases())
def test_equal_gaps_are_best(case: tuple[int, int, int]) -> None:
    length, size, w = case
    lower = tuple(j * w // length for j in range(length))
    best = confidences(length, size, w)
    assert Fraction(worlds(lower, (size,) * length, w), size**length) == max(best.values())
    assert best[min(w // length, size - 1)] == max(best.values())


@given(cases(), st.integers(1, 4))
def test_no_match_with_a_gap_is_better(case: tuple[int, int, int], most_climbed: int) -> None:
    length, size, w = case
    best = confidences(length, size, w)
    gaps = np.array([gap for gap in range(1 - size, size) if gap <= w // length])
    expected = np.array([float(best[int(gap)]) for gap in gaps])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(least_gaps, "MOST_CLIMBED", most_climbed)
        found = best_of(gaps, length, size, w)
    # What is computed may itself be too large.
    assert (found >= expected * (1.0 - 1e-12)).all()
    if most_climbed == 4:
        assert (found <= expected * (1.0 + 1e-4)).all()


@given(cases(), st.data())
def test_the_least_gap(case: tuple[int, int, int], data: st.DataObject) -> None:
    length, size, w = case
    best = confidences(length, size, w)
    occurs = sorted({confidence for confidence in best.values() if confidence})
    need = float(data.draw(st.sampled_from(occurs))) * data.draw(sampled_from((1.0, 1.0 - 1e-3, 1.0 + 1e-3)))
    assume(need <= 1.0)
    likely = [gap for gap, confidence in best.items() if confidence >= need * (1.0 - CONFIDENCE_ERROR)]
    found = least_gap(length, size, w, need)
    assert found == (min(*likely, size - 1) if likely else None)


@pytest.mark.compiled
@given(st.integers(2, 8), st.integers(1, 10**7), st.integers(0, 10**8), st.floats(1e-6, 1.0))
def test_long_intervals(length: int, size: int, w: int, share: float) -> None:
    """Equal gaps have the best confidence, and what has it is never left out."""
    high = np.array([min(w // length, size - 1)])
    top = float(best_of(high, length, size, w)[0])
    found = least_gap(length, size, w, top * share)
    assert found is not None
    assert 1 - size <= found <= high[0]
    # Where float64 cannot give some confidence, nothing is left out.
    assert (least_gap(length, size, w, 0.5 + top / 2.0) is None) == (top < 1.0)
