"""Sums over the times of matches, and over what is forbidden in spans of ticks, against all worlds."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import Pmfs
from confidence.chain.distribution import doubtful
from confidence.gaps.describing import ALL, COSTLY, PAUSED
from confidence.timed.bounded_matches import describe_bounded
from confidence.timed.bounds import UNBOUND, tightened
from confidence.timed.cycles import CycleWork
from confidence.timed.forbidden_tables import NO_TIME, OTHER, Others, spans
from confidence.timed.summed_matches import SummedTimes, describe_summed, tighten_all
from confidence.timed.tables import clear, table_over, tables
from confidence.timed.time_laws import law_of

Constraint = tuple[int, int, int, int]
"""Two times and the bounds of their difference."""


class Event(NamedTuple):
    """The ticks of an event, their probabilities, and the probability that it happened."""

    lower: int
    pmf: list[float]
    probability: float = 1.0
    is_uniform: bool = True

    def ticks(self) -> list[tuple[int, float]]:
        return [(self.lower + k, weight) for k, weight in enumerate(self.pmf)]


class Case(NamedTuple):
    """The times of a match, bounds of their differences, and others with the rules that forbid them."""

    own: list[Event]
    bounds: list[Constraint]
    others: list[tuple[Event, list[list[Constraint]]]]


@st.composite
def events(draw: st.DrawFn, longest: int, near: int, doubts: bool = False) -> Event:
    size = draw(st.integers(1, longest))
    probability = draw(st.sampled_from([1.0, 0.0, 0.25])) if doubts else 1.0
    weights = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    lower = near + draw(st.integers(0, 3))
    if draw(st.booleans()) or not any(weights):
        return Event(lower, [1 / size] * size, probability)
    return Event(lower, [weight / sum(weights) for weight in weights], probability, False)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw times that are long beside those of others, or short, so that these are held or not."""
    longest, shortest = draw(st.sampled_from([(3, 4), (7, 2)]))
    own = [draw(events(longest, 2 * k)) for k in range(3)]

    def constraint(sides: list[int]) -> Constraint:
        low = draw(st.sampled_from([-UNBOUND, -2, 0, 1, 3]))
        high = draw(st.sampled_from([UNBOUND, max(low, -3), max(low, -3) + 2, 5]))
        return draw(st.sampled_from(sides)), draw(st.sampled_from(sides)), low, high

    def rule() -> list[Constraint]:
        i = draw(st.integers(0, 1))
        gap = [(OTHER, i, 1, UNBOUND), (OTHER, i + 1, -UNBOUND, -1)]
        return gap + [
            (OTHER, *constraint([0, 1, 2, NO_TIME])[1:])
            if draw(st.booleans())
            else constraint([0, 1, 2, OTHER])
            for _ in range(draw(st.integers(0, 2)))
        ]

    chords = [constraint([0, 1, 2]) for _ in range(draw(st.integers(0, 1)))]
    return Case(
        own,
        [(1, 0, 1, UNBOUND), (2, 1, 1, UNBOUND), *chords],
        [
            (draw(events(shortest, 2, True)), [rule() for _ in range(draw(st.integers(1, 3)))])
            for _ in range(draw(st.integers(0, 2)))
        ],
    )  # fmt: skip


def enumerated(case: Case) -> tuple[float, int, int]:
    """Return confidence and range, by all worlds."""
    total, first, last = 0.0, 10**9, -(10**9)
    for world in product(*(event.ticks() for event in case.own)):
        ticks = [tick for tick, _ in world]

        def holds(constraint: Constraint, other: int, ticks: list[int] = ticks) -> bool:
            i, j, low, high = constraint
            at = {OTHER: other, NO_TIME: 0} | dict(enumerate(ticks))
            return low <= at[i] - at[j] <= high

        weight = float(np.prod([chance for _, chance in world]))
        weight *= all(holds(bound, 0) for bound in case.bounds)
        for event, rules in case.others:
            inside = sum(
                chance
                for tick, chance in event.ticks()
                if any(all(holds(found, tick) for found in rule) for rule in rules)
            )
            weight *= max(1.0 - event.probability * inside, 0.0)
        # What rounding leaves of a sum that is 1.
        if weight > 1e-12:
            total, first, last = total + weight, min(first, ticks[0]), max(last, ticks[2])
    return total, first, last


def summed(case: Case, most: float = 1e6, budget: float = 1e9) -> tuple[int, float, int, int]:
    """Return how the kernel ends, confidence and range."""
    every = [*case.own, *(event for event, _ in case.others)]
    lower = np.array([event.lower for event in every])
    upper = lower + [len(event.pmf) - 1 for event in every]
    starts = np.cumsum([0, *(len(event.pmf) for event in every)])[:-1]
    offset = np.where([event.is_uniform for event in every], -1, starts)
    values = np.array([weight for event in every for weight in event.pmf])
    chances = np.array([event.probability for event in every])
    pmfs, coded = doubtful(Pmfs.of(values, lower, upper, offset), offset, chances)
    own, other = slice(3), slice(3, None)
    sides = np.array([bound[:2] for bound in case.bounds])
    low, high = np.array([[bound[side] for bound in case.bounds] for side in (2, 3)])
    size = np.where(offset[own] < 0, upper[own] - lower[own] + 1.0, 0.0)
    times = SummedTimes(
        lower[None, own].copy(), upper[None, own].copy(), size[None], (offset - lower)[None, own].copy(),
        sides, low[None], high[None], np.array([[True, False, False], [False, False, True]]),
    )  # fmt: skip
    kernel: Any = tighten_all
    kernel(times)
    rules = [rule for _, own_rules in case.others for rule in own_rules]
    count = np.array([len(rule) for rule in rules], dtype=np.int64)
    shape = len(rules), int(count.max(initial=1))
    ends, least, most_of = np.zeros((*shape, 2), dtype=np.int64), *np.zeros((2, *shape), dtype=np.int64)
    for k, rule in enumerate(rules):
        for c, (i, j, small, large) in enumerate(rule):
            ends[k, c], least[k, c], most_of[k, c] = (i, j), small, large
    others = Others(
        np.array([0, len(case.others)]), lower[other].copy(), upper[other].copy(), coded[other].copy(),
        np.cumsum([0, *(len(own_rules) for _, own_rules in case.others)]), np.arange(len(rules)), ends, count,
        least, most_of,
    )  # fmt: skip
    length = len(every)
    ticks = int((upper - lower).max()) + 2
    out = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64), np.empty(1)
    kernel = describe_summed
    room = tables(length, 2 * length + len(case.bounds) + len(rules) + 1, 100_000, ticks)
    work = spans(max(len(rules), 1), shape[1], length)
    first, law = np.empty(length, dtype=np.int64), np.empty(ticks)
    calls, reason = 0, PAUSED
    while reason == PAUSED:
        _, reason, _ = kernel(
            times, others, pmfs, 0, True, np.array([most, most], dtype=np.float64), budget, room, work,
            first, law, out,
        )  # fmt: skip
        calls += 1
    assert calls == 1 or budget < 1e9
    return reason, float(out[2][0]), int(out[0][0]), int(out[1][0])


@given(cases(), st.sampled_from([1.0, 30.0, 1e9]))
def test_sums_are_those_over_all_worlds(case: Case, budget: float) -> None:
    confidence, first, last = enumerated(case)
    reason, found, lower, upper = summed(case, budget=budget)
    assert reason == ALL
    assert found == pytest.approx(confidence, rel=1e-12, abs=1e-12)
    assert (lower, upper) == ((first, last) if confidence else (0, -1))


@st.composite
def factors(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, ...]]]:
    """Draw how many ticks each time has, and the times of each table; none depends on a time of one tick."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=7))
    long = [v for v, size in enumerate(sizes) if size > 1]
    if not long:
        return sizes, [()]
    scopes = draw(st.lists(st.sets(st.sampled_from(long), max_size=3), max_size=12))
    return sizes, [tuple(sorted(scope)) for scope in scopes]


@given(factors(), st.integers(0, 2**32))
def test_laws_are_products_summed_over_all_other_times(
    case: tuple[list[int], list[tuple[int, ...]]], seed: int
) -> None:
    sizes, scopes = case
    cells = 64 * (len(scopes) + len(sizes) + 8) * 8
    room = tables(len(sizes), 2 * (len(scopes) + len(sizes)) + 2, cells, max(sizes))
    kernels: Any = (clear, table_over, law_of)
    empty, over, law_over = kernels
    empty(room, len(sizes))
    room.size[:] = sizes
    room.limits[:] = 1e9
    drawn = np.random.default_rng(seed)
    axes = np.empty(len(sizes), dtype=np.int64)
    operands: list[Any] = []
    for scope in scopes:
        axes[: len(scope)] = scope
        table = over(room, axes, len(scope))
        shape = [sizes[v] for v in scope]
        values = drawn.choice([0.0, 0.5, 1.0, 3.0], size=shape)
        begin = room.start[table]
        room.cells[begin : begin + values.size] *= values.ravel()
        operands += [values, list(scope)]
    for v, size in enumerate(sizes):
        operands += [np.ones(size), [v]]
    law = np.empty(max(sizes))
    # The second time tells what the first one left behind.
    for kept in [*range(len(sizes))] * 2:
        assert law_over(room, kept, law) == 0
        assert law[: sizes[kept]] == pytest.approx(np.einsum(*operands, [kept]), rel=1e-12)


@pytest.mark.compiled
def test_one_match_of_thousands_of_events_takes_little_memory() -> None:
    """Each table had a place for each time: 1.6 GB for 10,000 events, and half a minute to go through."""
    length, step = 10_000, 3
    room = tables(length, 3 * length + 1, 1 << 20, step + 2)
    assert sum(array.nbytes for array in room) < 2**26
    # Neighbours share one tick, and the last one is as far behind the first as without, less one tick.
    lower = step * np.arange(length)[None]
    sides = np.array([*zip(range(1, length), range(length - 1), strict=True), (length - 1, 0)])
    low = np.append(np.ones(length - 1, dtype=np.int64), step * (length - 1) - 1)[None]
    ends = np.zeros((2, length), dtype=np.bool_)
    ends[0, 0] = ends[1, -1] = True
    times = SummedTimes(
        lower.copy(), lower + step, np.full((1, length), step + 1.0), np.zeros_like(lower), sides, low,
        np.full_like(low, UNBOUND), ends,
    )  # fmt: skip
    kernel: Any = tighten_all
    kernel(times)
    nothing, none = np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64)
    others = Others(
        np.zeros(2, dtype=np.int64), nothing, nothing, nothing, nothing, nothing,
        np.zeros((0, 1, 2), dtype=np.int64), nothing, none, none,
    )  # fmt: skip
    out = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64), np.empty(1)
    pmfs = Pmfs.of(np.zeros(0), lower[0], lower[0] + step, np.full(length, -1))
    kernel = describe_summed
    _, reason, _ = kernel(
        times, others, pmfs, 0, True, np.array([1e9, 1e9]), 1e12, room, spans(1, 1, length),
        np.empty(length, dtype=np.int64), np.empty(step + 2), out,
    )  # fmt: skip
    expected = 0.0
    for first in range(step + 1):
        behind = np.where(np.arange(step + 1) == first, 0.25, 0.0)
        for _ in range(length - 1):
            tied = 0.25 * behind[step]
            behind = np.full(step + 1, 0.25 * behind.sum())
            behind[0] -= tied
        expected += float(behind[max(first - 1, 0) :].sum())
    assert reason == ALL
    assert out[2][0] == pytest.approx(expected, rel=1e-9, abs=0.0)
    assert (out[0][0], out[1][0]) == (0, step * length)


def test_too_many_cells_are_refused_before_they_are_made() -> None:
    tick = Event(0, [0.1] * 10)
    case = Case([tick, tick, tick], [(1, 0, 1, UNBOUND), (2, 1, 1, UNBOUND)], [])
    assert summed(case, 99)[0] == COSTLY
    assert summed(case)[1] == pytest.approx(0.12)


@given(st.data())
def test_bounds_at_the_ends_of_the_range_of_times_are_tightened(data: st.DataObject) -> None:
    """Sums of bounds would leave int64, if they went on where no tick is left."""
    length = data.draw(st.integers(2, 6))
    ends = [-(2**61), -(2**61) + 1, 0, 5, 2**61 - 1, 2**61]
    pairs = [sorted(data.draw(st.tuples(*[st.sampled_from(ends)] * 2))) for _ in range(length)]
    lower, upper = np.array(pairs).T.copy()
    far = st.sampled_from([2**61 + 1, 2**61, 2**61 - 5, 7, 1])
    bounds = {}
    for j in range(1, length):
        low = data.draw(far)
        bounds[j, j - 1] = (low, data.draw(st.sampled_from([UNBOUND, 2**61, low])))
    expected = tightened(lower, upper, bounds)
    low, high = np.array(list(bounds.values())).T.copy()
    times = SummedTimes(
        lower[None].copy(), upper[None].copy(), np.ones((1, length)), np.zeros((1, length), dtype=np.int64),
        np.array(list(bounds)), low[None], high[None], np.ones((2, length), dtype=np.bool_),
    )  # fmt: skip
    kernel: Any = tighten_all
    kernel(times)
    is_left = times.first[0, 0] <= times.last[0, 0]
    assert is_left == (expected is not None)
    if expected is not None:
        assert times.first[0].tolist() == expected[0].tolist()
        assert times.last[0].tolist() == expected[1].tolist()
    g, h = np.array([[1, *low]]), np.array([[UNBOUND, *high]])
    out = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64), np.empty(1)
    kernel = describe_bounded
    kernel(
        lower[None], upper[None], (upper - lower + 1.0)[None], g, h, np.array([2**62]), True,
        np.empty((10, length), dtype=np.int64), np.empty((4, 2 * length + 1)), CycleWork.of(length), out,
    )  # fmt: skip
    if expected is None:
        assert (out[0][0], out[1][0]) == (0, -1)
    elif expected[1][-1] - expected[0][0] < 2**62:
        assert (out[0][0], out[1][0]) == (expected[0][0], expected[1][-1])
