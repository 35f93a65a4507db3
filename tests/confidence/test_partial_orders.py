"""Confidences of partially ordered events against the sum over every choice of times, as fractions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.gaps.chains import BUDGET, DONE, IMPOSSIBLE, PAUSED, SPENT, TOO_DEAR
from confidence.partial_order.ideals import Order, tight_order_bounds
from confidence.partial_order.orders import order_confidence
from confidence.partial_order.times import BETWEEN, LEADING, TRAILING, OrderWork
from tests.confidence.test_forbidden import Interval, arrays_of, intervals


def bits(events: list[int]) -> int:
    return sum(1 << event for event in events)


@dataclass(frozen=True)
class Match:
    """Events in a sequence of sets or a set of sequences, and other events with the gaps that forbid them.

    Attributes
    ----------
    events : tuple of Interval
    order : tuple of (int, int)
        Pairs of which the first is before the second; transitively closed.
    gaps : tuple of (place, list of int, list of int)
    """

    events: tuple[Interval, ...]
    order: frozenset[tuple[int, int]]
    window: int
    gaps: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]
    others: tuple[tuple[Interval, frozenset[int]], ...]

    def truth(self) -> tuple[Fraction, int, int]:
        total, first, last = Fraction(0), 10**9, -(10**9)
        for times in itertools.product(*(range(part.lower, part.upper + 1) for part in self.events)):
            low, high = min(times), max(times)
            if any(times[i] >= times[j] for i, j in self.order) or high - low > self.window - 1:
                continue
            weight = math.prod(
                (part.at(t) for part, t in zip(self.events, times, strict=True)), start=Fraction(1)
            )
            inside = []
            for place, after, before in self.gaps:
                if place == LEADING:
                    inside.append(range(high - self.window + 1, low))
                elif place == TRAILING:
                    inside.append(range(high + 1, low + self.window))
                else:
                    inside.append(range(max(times[i] for i in after) + 1, min(times[i] for i in before)))
            for x, gaps in self.others:
                forbidden = {t for g in gaps for t in inside[g]}
                weight *= 1 - sum(x.at(t) for t in forbidden)
            if weight:
                total, first, last = total + weight, min(first, low), max(last, high)
        return total, first, last

    def arguments(self, most_steps: float) -> tuple[Any, ...] | None:
        """Return the arguments of `order_confidence`; None if order and window leave no times."""
        before = [bits([i for i, later in self.order if later == j]) for j in range(len(self.events))]
        order = Order.of(
            before, [(place, bits(list(after)), bits(list(behind))) for place, after, behind in self.gaps]
        )
        assert order is not None
        match, pmfs, count, forbidden = arrays_of(self.events, self.others, len(self.gaps))
        work = OrderWork.of(len(self.events)).go_on()
        a, b = np.empty((2, len(self.events)), dtype=np.int64)
        fits = tight_order_bounds(match.lower, match.upper, order.before, self.window, a, b)
        return (match, pmfs, self.window, order, a, b, count, forbidden, most_steps, work) if fits else None


def assert_true(match: Match, budget: float = math.inf) -> None:
    total, first, last = match.truth()
    arguments = match.arguments(1e9)
    if arguments is None:
        assert not total
        return
    work = arguments[-1]
    work.progress[BUDGET] = budget
    status, value, low, high = PAUSED, 0.0, 0, -1
    while status == PAUSED:
        work.progress[SPENT] = 0.0
        status, value, low, high = order_confidence(*arguments)
    assert status == (DONE if total else IMPOSSIBLE)
    if total:
        assert (low, high) == (first, last)
        assert math.isclose(value, total, rel_tol=1e-9)


@st.composite
def matches(draw: st.DrawFn, *, uniform: bool = False, several: bool = False) -> Match:
    """Draw a sequence of sets with gaps, or a set of two sequences with a gap in the first.

    With ``several`` what is forbidden is so in two gaps at least. Most matches are possible.
    """
    shapes: list[tuple[int, ...]] = [(1, 1), (2, 1), (1, 2), (2, 2), (1, 1, 1), (1, 2, 1)]
    sizes = draw(st.sampled_from(shapes if several else [(1,), (2,), (3,), (4,), *shapes]))
    count = sum(sizes)
    events = tuple(draw(st.lists(intervals(4), min_size=count, max_size=count)))
    if several or draw(st.integers(0, 2)):
        events = tuple(sorted(events, key=lambda part: part.lower))
    if uniform:
        size = len(events[0].pmf)
        events = tuple(Interval(part.lower, (Fraction(1, size),) * size, explicit=False) for part in events)
    parts: list[tuple[int, ...]] = []
    for size in sizes:
        begin = sum(len(part) for part in parts)
        parts.append(tuple(range(begin, begin + size)))
    gaps: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [(LEADING, (), ()), (TRAILING, (), ())]
    if count == 4 and draw(st.booleans()):
        order = frozenset({(0, 1), (2, 3)})
        gaps.append((BETWEEN, (0,), (1,)))
        gaps.append((BETWEEN, (2,), (3,)))
    else:
        pairs = itertools.combinations(range(len(parts)), 2)
        order = frozenset((i, j) for p, q in pairs for i in parts[p] for j in parts[q])
        gaps += [(BETWEEN, earlier, later) for earlier, later in itertools.pairwise(parts)]
    gap = st.sampled_from(range(len(gaps)))
    which = st.one_of(gap.map(lambda g: frozenset({g})), st.frozensets(gap, min_size=1))
    if several:
        which = st.frozensets(gap, min_size=2)
    others = tuple(draw(st.lists(st.tuples(intervals(), which), min_size=2 * several, max_size=2)))
    return Match(events, order, draw(st.integers(4 if several else 1, 14)), tuple(gaps), others)


BUDGETS = st.sampled_from([math.inf, 1.0, 20.0])


@given(matches(), BUDGETS)
def test_confidence_is_the_formula(match: Match, budget: float) -> None:
    assert_true(match, budget)


@given(matches(several=True), BUDGETS)
def test_events_forbidden_in_several_gaps(match: Match, budget: float) -> None:
    assert_true(match, budget)


@given(matches(), st.booleans())
def test_nothing_forbidden(match: Match, uniform: bool) -> None:
    assert_true(Match(match.events, match.order, match.window, match.gaps, ()))


@given(matches(uniform=True), BUDGETS)
def test_uniform_events(match: Match, budget: float) -> None:
    assert_true(Match(match.events, match.order, match.window, (), ()), budget)


@pytest.mark.compiled
def test_a_set_of_long_intervals() -> None:
    """P(|s - t| <= d) for two times in 0..n-1 is 1 - (n - d - 1) (n - d) / n^2."""
    n, d = 100_000, 1_000
    part = Interval(0, (Fraction(1, n),) * n, explicit=False)
    arguments = Match((part, part), frozenset(), d + 1, (), ()).arguments(1e9)
    assert arguments is not None
    status, value, first, last = order_confidence(*arguments)
    assert (status, first, last) == (DONE, 0, n - 1)
    assert math.isclose(value, 1 - Fraction((n - d - 1) * (n - d), n * n), rel_tol=1e-9)


@pytest.mark.parametrize("gaps", [frozenset[int](), frozenset({2}), frozenset({0, 2})])
def test_what_is_too_dear_is_not_computed(gaps: frozenset[int]) -> None:
    part = Interval(0, (Fraction(1, 50),) * 50, explicit=False)
    order = frozenset({(0, 1), (0, 2)})
    between = ((LEADING, (), ()), (TRAILING, (), ()), (BETWEEN, (0,), (1, 2)))
    match = Match((part,) * 3, order, 20, between, ((part, gaps),) if gaps else ())
    arguments = match.arguments(100.0)
    assert arguments is not None
    assert order_confidence(*arguments)[0] == TOO_DEAR


def test_an_order_with_too_many_ideals_is_not_listed() -> None:
    assert Order.of([0] * 20) is None
