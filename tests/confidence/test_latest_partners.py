"""The latest of uniform times that is not behind another one, against sums over all ticks by fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.chain.discrete_gauss import MOST_NODES, gauss_nodes
from confidence.timed.latest_partners import UNBOUNDED, Candidates, PartnerWork
from confidence.timed.partners import PartnerRules, partners

ALWAYS: Final = 2**60


class Event(NamedTuple):
    low: int
    length: int
    happened: Fraction

    def until(self, tick: int) -> Fraction:
        """The probability that it happened, at a tick or before."""
        return self.happened * Fraction(min(max(tick - self.low + 1, 0), self.length), self.length)


LENGTHS = st.sampled_from([1, 2, 3, 5, 8, 13, 30, 45])
EVENTS = st.builds(
    Event, st.integers(0, 60), LENGTHS, st.sampled_from([Fraction(1), Fraction(1), Fraction(1, 4)])
)


def literal(low: int, length: int, width: int, all_tied: bool, events: list[Event]) -> list[Fraction]:
    """Return the probabilities of each event, and of none, from the definition."""
    sums = [Fraction(0) for _ in range(len(events) + 1)]
    for x in range(low, low + length):
        none = Fraction(1)
        for event in events:
            none *= 1 - event.until(x) + event.until(x - width - 1)
        sums[-1] += none / length
        for i, event in enumerate(events):
            for s in range(max(event.low, x - width), min(event.low + event.length - 1, x) + 1):
                share = event.happened / event.length / length
                for j, other in enumerate(events):
                    if j != i:
                        wins_tie = j > i and not all_tied
                        share *= 1 - other.until(x) + other.until(s - 1 if wins_tie else s)
                sums[i] += share
    return sums


def computed(
    low: int, length: int, width: int, all_tied: bool, events: list[Event], gap: int | None = None
) -> list[float]:
    """Return the answers of the kernels: of the latest ones, or with a gap of the nearest ones."""
    columns = zip(*events, strict=True) if events else ((), (), ())
    begin, lengths, happened = (np.array([*column]) for column in columns)
    candidates = Candidates(
        np.array([0, len(events)]),
        begin.astype(np.int64),
        (begin + lengths - 1).astype(np.int64),
        happened.astype(np.float64),
    )
    partner, alone = np.zeros(len(events)), np.zeros(1)
    bounds = np.array([low]), np.array([low + length - 1])
    rules = PartnerRules(gap is not None, gap or 0, width, all_tied)
    work = PartnerWork.of(len(events), rules.is_nearest)
    done = partners(*bounds, rules, candidates, 0, ALWAYS, ALWAYS, work, partner, alone)
    assert done == 1
    return [*partner.tolist(), *alone.tolist()]


def nearest(
    low: int, length: int, gap: int, reach: int, all_tied: bool, events: list[Event]
) -> list[Fraction]:
    """Return the probabilities of each event to be the nearest one, and of none, from the definition."""
    sums = [Fraction(0) for _ in range(len(events) + 1)]

    def rank(i: int, s: int, t: int) -> tuple[int, ...]:
        """Less: nearer, or the winner of a tie."""
        if all_tied:
            return (abs(s - t),)
        return (abs(s - t), 0, -i) if s <= t else (abs(s - t), 1, i)

    def not_before(j: int, t: int, limit: tuple[int, ...]) -> Fraction:
        """The probability that an event is none that is ranked below another one."""
        event = events[j]
        ticks = [s for s in range(event.low, event.low + event.length) if gap <= abs(s - t) <= reach]
        return 1 - event.happened * Fraction(sum(rank(j, s, t) < limit for s in ticks), event.length)

    for t in range(low, low + length):
        sums[-1] += math.prod(not_before(j, t, (2**62,)) for j in range(len(events))) / Fraction(length)
        for i, event in enumerate(events):
            for s in range(event.low, event.low + event.length):
                if gap <= abs(s - t) <= reach:
                    limit = rank(i, s, t)
                    apart = (not_before(j, t, limit) for j in range(len(events)) if j != i)
                    sums[i] += event.happened / event.length / length * math.prod(apart)
    return sums


WIDTHS = st.sampled_from([UNBOUNDED, UNBOUNDED, 0, 3, 20, 47, -1])


@given(st.integers(20, 70), LENGTHS, WIDTHS, st.booleans(), st.lists(EVENTS, max_size=4))
def test_partners(low: int, length: int, width: int, all_tied: bool, events: list[Event]) -> None:
    exact = literal(low, length, width, all_tied, events)
    for value, expected in zip(computed(low, length, width, all_tied, events), exact, strict=True):
        assert math.isclose(value, expected, rel_tol=1e-11)
        assert (value == 0.0) == (expected == 0)
    if not all_tied:
        assert sum(exact) == 1


@given(
    st.integers(20, 70), st.sampled_from([1, 2, 3, 8, 20]), st.integers(0, 1),
    st.sampled_from([UNBOUNDED, 0, 1, 3, 20]), st.booleans(), st.lists(EVENTS, max_size=3),
)  # fmt: skip
def test_nearest_partners(
    low: int, length: int, gap: int, reach: int, all_tied: bool, events: list[Event]
) -> None:
    exact = nearest(low, length, gap, reach, all_tied, events)
    for value, expected in zip(computed(low, length, reach, all_tied, events, gap), exact, strict=True):
        assert math.isclose(value, expected, rel_tol=1e-11)
        assert (value == 0.0) == (expected == 0)
    if not all_tied:
        assert sum(exact) == 1


@pytest.mark.compiled
def test_what_many_candidates_have_sums_to_one() -> None:
    """Degrees up to those that few values tell, and ticks up to microseconds of a year."""
    rng = np.random.default_rng(5)
    for count in (6, 12, 20, 31, 40):
        for scale in (10**4, 10**9, 3 * 10**13):
            events = [
                Event(10**15 + int(low), int(length), Fraction(share).limit_denominator(100))
                for low, length, share in zip(
                    rng.integers(0, scale, count),
                    rng.integers(scale // 2, scale, count),
                    rng.random(count),
                    strict=True,
                )
            ]
            values = computed(10**15 + scale, scale, UNBOUNDED, all_tied=False, events=events)
            assert math.isclose(sum(values), 1.0, rel_tol=1e-10), (count, scale)


def test_a_budget_is_kept_and_too_many_steps_are_told() -> None:
    events = [Event(0, 45, Fraction(1, 4)) for _ in range(8)]
    low, high = np.array([20, 20, 20]), np.array([64, 64, 64])
    begin = np.array([0, 8, 16, 24])
    candidates = Candidates(
        begin, np.zeros(24, np.int64), np.full(24, 44), np.full(24, float(events[0].happened))
    )
    partner, alone = np.zeros(24), np.zeros(3)
    work, rules = PartnerWork.of(8, False), PartnerRules(False, 0, UNBOUNDED, False)
    done, calls = 0, 0
    while done < 3:
        done = partners(low, high, rules, candidates, done, 1, ALWAYS, work, partner, alone)
        calls += 1
    assert calls == 3
    assert partner[:8].tolist() == partner[8:16].tolist() == partner[16:].tolist()
    assert math.isclose(partner[:8].sum() + alone[0], 1.0)
    partners(low, high, rules, candidates, 0, ALWAYS, 100, work, partner, alone)
    assert alone.tolist() == [-1.0] * 3


@given(
    st.one_of(st.integers(1, 80), st.integers(1, 10**6)),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=12),
)
def test_few_values_tell_the_sum_of_a_polynomial(count: int, factors: list[tuple[int, int]]) -> None:
    """A product of linear factors that are positive on the ticks; its sum by fractions, from power sums."""
    node, weight = np.zeros(2 * MOST_NODES), np.zeros(2 * MOST_NODES)
    nodes = gauss_nodes(count, len(factors), node, weight)
    assert nodes <= max(len(factors) // 2 + 1, min(count, 2 * (len(factors) // 2 + 1)))
    assert (weight[:nodes] > 0).all()
    if count > 3000:
        count_of_ticks = count
        assert math.isclose(weight[:nodes].sum(), count_of_ticks, rel_tol=1e-13)
        return
    last = max(count - 1, 1)
    exact = sum(math.prod(Fraction(a * (last - x) + b * x, last) for a, b in factors) for x in range(count))
    values = [weight[k] * math.prod(a + (b - a) * node[k] / last for a, b in factors) for k in range(nodes)]
    assert math.isclose(sum(values), exact, rel_tol=1e-12)


def test_sums_of_a_high_degree() -> None:
    node, weight = np.zeros(2 * MOST_NODES), np.zeros(2 * MOST_NODES)
    assert gauss_nodes(10**6, 2 * MOST_NODES - 1, node, weight) == MOST_NODES
    assert gauss_nodes(10**6, 2 * MOST_NODES, node, weight) == -1
    assert gauss_nodes(2 * MOST_NODES, 2 * MOST_NODES, node, weight) == 2 * MOST_NODES
