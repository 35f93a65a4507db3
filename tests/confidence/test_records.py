"""Laws of records in a known order, against all choices of their ticks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, pairwise
from math import prod
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from confidence.shared.records import Records


class Case(NamedTuple):
    """How likely each record is at each tick, in whole numbers, and whether that is uniform."""

    weights: list[list[int]]
    is_uniform: bool

    @property
    def size(self) -> int:
        return len(self.weights[0])

    def records(self) -> Records:
        """Return the records, each with a law from its first possible tick to its last."""
        if self.is_uniform:
            return Records(len(self.weights), self.size)
        laws = []
        for own in self.weights:
            ticks = np.flatnonzero(own)
            laws.append((int(ticks[0]), np.array(own[ticks[0] : ticks[-1] + 1]) / sum(own)))
        return Records(len(self.weights), self.size, laws)

    def worlds(self, begin: int = 0, tick: int = 0) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield the ticks of the records from one on, none before a tick, and how likely they are."""
        rest = self.weights[begin:]
        for ticks in combinations_with_replacement(range(tick, self.size), len(rest)):
            yield ticks, prod(own[at] for own, at in zip(rest, ticks, strict=True))

    def law(self, place: int, begin: int = 0, tick: int = 0) -> list[float]:
        """Return the law of the tick of a record; zeros if there is no world."""
        found = [0] * self.size
        for ticks, weight in self.worlds(begin, tick):
            found[ticks[place - begin]] += weight
        return [weight / max(sum(found), 1) for weight in found]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count, size = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    if draw(st.booleans()):
        return Case([[1] * size] * count, True)
    weights = st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any)
    return Case([draw(weights) for _ in range(count)], False)


@given(cases())
def test_a_tick_is_that_of_all_worlds_in_order(case: Case) -> None:
    records = case.records()
    assert records.possible == any(weight for _, weight in case.worlds())
    assume(records.possible)
    for place in range(records.count):
        assert records.time(place).tolist() == pytest.approx(case.law(place), abs=1e-12)


@given(cases())
def test_a_later_tick_given_an_earlier_one(case: Case) -> None:
    records = case.records()
    for place, later in [*pairwise(range(records.count)), (0, records.count - 1)]:
        if place < later:
            for tick, row in enumerate(records.step(place, later).tolist()):
                assert row == pytest.approx(case.law(later, place + 1, tick), abs=1e-12)


def test_a_thousand_records_are_beyond_float64_and_not_beyond_this() -> None:
    law = Records(2001, 1001).time(1000)
    assert law.sum() == pytest.approx(1.0)
    assert law == pytest.approx(law[::-1])
    assert np.argmax(law) == 500
