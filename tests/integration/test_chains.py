"""The counting that the tests of real traces rest on, against all worlds one by one."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

from tests.integration.chains import Answer, Interval, chain, mirrored, pair, tight


def _all_worlds(intervals: list[Interval], window: int) -> Answer | None:
    worlds = list(itertools.product(*(range(lower, upper + 1) for lower, upper in intervals)))
    fitting = [
        world
        for world in worlds
        if all(before < after for before, after in itertools.pairwise(world))
        and world[-1] - world[0] < window
    ]
    if not fitting:
        return None
    return Answer(
        Fraction(len(fitting), len(worlds)),
        min(world[0] for world in fitting),
        max(world[-1] for world in fitting),
    )


@pytest.mark.parametrize("length", [2, 3, 4])
def test_counting_agrees_with_all_worlds(length: int) -> None:
    chance = random.Random(length)
    possible = 0
    for _ in range(300):
        lowers = [chance.randint(place, 4 + 2 * place) for place in range(length)]
        intervals = [(lower, lower + chance.randint(0, 5)) for lower in lowers]
        window = chance.randint(1, 14)
        expected = _all_worlds(intervals, window)
        possible += expected is not None
        assert chain(intervals, window) == expected
        assert mirrored(intervals, window) == expected
        bounds = tight(intervals, window)
        assert (bounds is None) == (expected is None)
        if bounds is not None and expected is not None:
            assert (bounds[0][0], bounds[-1][1]) == (expected.lower, expected.upper)
        if length == 2:
            first, second = intervals
            assert pair(first, second, window) == expected
    assert 50 < possible < 300
