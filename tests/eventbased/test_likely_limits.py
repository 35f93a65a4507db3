"""How far the next event of a likely match may be, against the possible worlds of three events."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventbased.gaps import likely_limits as module
from eventbased.gaps.likely_limits import likely_limits
from eventbased.layout import Candidates
from tests.cases.sampling import sampled_from
from tests.eventbased.test_narrowing import Intervals, laid_out

ANY = np.iinfo(np.int64).max


@st.composite
def components(draw: st.DrawFn) -> list[Intervals]:
    """Draw the candidates of two or three components, of few lengths."""
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=2))
    event = st.tuples(st.integers(0, 30), sampled_from(sizes))
    return [
        [(low, low + size) for low, size in draw(st.lists(event, min_size=1, max_size=6))]
        for _ in range(draw(st.integers(2, 3)))
    ]


def between(candidates: Candidates, i: int, x: int, e: int) -> Fraction:
    """Return P(t_i < t_x < t_e), for x and e of the component behind that of i."""

    def ticks(of: int, position: int) -> range:
        return range(int(candidates.lower[of]) + position, int(candidates.upper[of]) + position + 1)

    worlds = list(itertools.product(ticks(i, 0), ticks(x, 1), ticks(e, 1)))
    return Fraction(sum(a < b < c for a, b, c in worlds), len(worlds))


def neighbours(candidates: Candidates) -> Iterator[tuple[int, range]]:
    """Yield each candidate with those of the component behind its own."""
    first = candidates.first.tolist()
    for j in range(len(first) - 2):
        for i in range(first[j], first[j + 1]):
            yield i, range(first[j + 1], first[j + 2])


@given(components(), sampled_from([3, module.MOST_DISTANCES]), st.data())
def test_what_is_out_of_reach_is_too_unlikely(
    found: list[Intervals], distances: int, data: st.DataObject
) -> None:
    candidates = laid_out(found)
    count = int(candidates.first[-1])
    several = data.draw(st.sets(st.integers(0, count - 1), max_size=2))
    event = np.array([0 if i in several else -1 for i in range(count)])
    plain = np.array([False, *data.draw(st.lists(st.booleans(), min_size=2, max_size=2))])[: len(found)]
    # Just below, at and just above what the likeliest of three events leaves.
    left = [
        1 - between(candidates, i, x, e)
        for i, behind in neighbours(candidates)
        for x, e in itertools.permutations(behind, 2)
    ]
    least = float(data.draw(st.sampled_from(sorted(left)))) if left else 0.5
    least += data.draw(st.sampled_from([-1e-6, 0.0, 1e-6]))
    given_limit = np.array(data.draw(st.lists(sampled_from([5, 20, ANY]), min_size=count, max_size=count)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MOST_DISTANCES", distances)
        limit = likely_limits(candidates, event, plain, least, given_limit)
    assert (limit <= given_limit).all()
    component = np.repeat(np.arange(len(found)), np.diff(candidates.first))
    for i, behind in neighbours(candidates):
        for e in behind:
            if not limit[i] < candidates.lower[e] <= given_limit[i]:
                continue
            assert plain[component[e]]
            forbidden = [x for x in behind if x != e and event[x] < 0]
            assert any(1 - between(candidates, i, x, e) < least for x in forbidden)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(0, 9), st.integers(0, 100))
def test_of_equal_intervals_nothing_else_is_left_out(lows: list[int], size: int, percent: int) -> None:
    candidates = laid_out([[(15, 15 + size)], [(low, low + size) for low in lows]])
    limit = likely_limits(
        candidates, np.full(len(lows) + 1, -1), np.array([False, True]), percent / 100,
        np.full(len(lows) + 1, ANY),
    )[0]  # fmt: skip
    lower = candidates.lower
    for e in range(1, len(lows) + 1):
        before = [x for x in range(1, len(lows) + 1) if lower[x] < lower[e]]
        likely = all(1 - between(candidates, 0, x, e) >= Fraction(percent, 100) - 10**-10 for x in before)
        assert (lower[e] <= limit) == likely


def test_no_table_is_made_of_intervals_that_float64_does_not_tell_apart() -> None:
    candidates = laid_out([[(0, 2**54)], [(5, 2**54 + 5), (9, 2**54 + 9)]])
    none = np.full(3, -1)
    limit = likely_limits(candidates, none, np.array([False, True]), 0.9, np.full(3, ANY))
    assert (limit == ANY).all()


@pytest.mark.compiled
def test_long_intervals_take_a_table_of_the_same_size() -> None:
    ticks = 10**9
    lows = [0, ticks // 2, ticks, 3 * ticks]
    candidates = laid_out([[(0, ticks)], [(low, low + ticks) for low in lows]])
    limit = likely_limits(candidates, np.full(5, -1), np.array([False, True]), 0.6, np.full(5, ANY))
    # Half an interval behind, one is in between with a probability of 0.4 if the next one begins with it.
    assert 0.5 * ticks < limit[0] - candidates.lower[1] < 0.52 * ticks
    room, step = module._room(ticks, 3 * ticks, ticks, 0.6)
    assert len(room) <= module.MOST_DISTANCES + 2
    assert step == -(-(4 * ticks - 1) // module.MOST_DISTANCES)
