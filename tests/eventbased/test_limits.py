"""Limits on times by which candidates are left out, themselves, beside all times that a match can have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from confidence.config import NEVER
from eventbased.gaps.next_match import next_limits
from eventbased.search.sequences import completions
from eventbased.search.state import SearchCandidates, SequenceLimits
from tests.cases.sampling import sampled_from
from tests.eventbased.test_upper_bounds import before_each
from uncertain_cep.candidates.match_windows import time_differences
from uncertain_cep.plan.event_order import InSequence, InSets
from uncertain_cep.query.branches import PartialOrder
from uncertain_cep.query.time_conditions import FAR

Interval = tuple[int, int]
_INTERVALS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 3)).map(lambda pair: (pair[0], sum(pair))),
    min_size=1,
    max_size=3,
).map(sorted)


def _worlds(chosen: Sequence[Interval], window: int) -> Iterator[tuple[int, ...]]:
    for times in product(*(range(low, high + 1) for low, high in chosen)):
        if all(s < t for s, t in pairwise(times)) and times[-1] - times[0] < window:
            yield times


@given(st.lists(_INTERVALS, min_size=1, max_size=3), st.integers(1, 9))
def test_the_latest_time_with_which_what_follows_can_be_filled(
    components: list[list[Interval]], window: int
) -> None:
    starts = np.cumsum([0, *map(len, components)])
    lower, upper = (np.array([pair[k] for part in components for pair in part]) for k in range(2))
    latest, reach = np.empty_like(lower), np.empty_like(lower)
    classes = np.arange(len(components) + 1)
    none = np.zeros(0, dtype=np.int64)
    laid = SearchCandidates(classes, starts[:-1], starts[1:], none, lower, upper, none, none, upper, none)
    completions(laid, SequenceLimits(latest, reach, none, lower, upper), window)
    for choice in product(*(range(len(part)) for part in components)):
        chosen = [part[i] for part, i in zip(components, choice, strict=True)]
        for times in _worlds(chosen, window):
            for j, (time, i) in enumerate(zip(times, choice, strict=True)):
                assert time <= latest[starts[j] + i] <= reach[starts[j] + i]
    for j, part in enumerate(components):
        # It is the latest one that leaves the next component one of its own: what order alone allows.
        best = max(latest[starts[j + 1] : starts[j + 2]], default=None) if j + 1 < len(components) else None
        for i, (_, high) in enumerate(part):
            assert latest[starts[j] + i] <= high
            if best is not None and best > NEVER:
                assert latest[starts[j] + i] < best


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(1, 7)), min_size=1, max_size=7))
def test_behind_its_next_event_s_latest_time_nothing_is_next(events: list[tuple[int, int, int]]) -> None:
    """Each event is a candidate of the components whose bits it has, of three."""
    length = 3
    takes = [
        sorted((low, low + size, n) for n, (low, size, bits) in enumerate(events) if bits >> j & 1)
        for j in range(length)
    ]
    starts = np.cumsum([0, *map(len, takes)])
    lower = np.array([low - j for j, part in enumerate(takes) for low, _, _ in part], dtype=np.int64)
    upper = np.array([high - j for j, part in enumerate(takes) for _, high, _ in part], dtype=np.int64)
    limit = np.empty(len(lower), dtype=np.int64)
    # Components without candidates are not asked about.
    if not all(takes):
        return
    first_class, always = np.arange(length + 1), np.ones(length, dtype=np.bool_)
    next_limits(first_class, starts[:-1], starts[1:], lower, upper, always, limit)
    for chosen in product(*takes):
        places = [starts[j] + takes[j].index(event) for j, event in enumerate(chosen)]
        if len({n for _, _, n in chosen}) < length or not any(_worlds([event[:2] for event in chosen], 99)):
            continue
        for j, (i, k) in enumerate(pairwise(places)):
            if lower[k] <= limit[i]:
                continue
            # Something of the component, and not of the match, is between the two in every world.
            before, after = chosen[j][1], chosen[j + 1][0]
            own = {n for _, _, n in chosen}
            assert any(low > before and high < after and n not in own for low, high, n in takes[j + 1])


def test_events_that_several_components_can_take_limit_what_is_next() -> None:
    """Of events at 0, 10, 20 and 30 only the following one is next, whatever takes it later."""
    times = np.arange(4) * 10
    lower, starts = np.concatenate([times - j for j in range(3)]), np.arange(4) * 4
    limit = np.empty(12, dtype=np.int64)
    next_limits(np.arange(4), starts[:-1], starts[1:], lower, lower, np.ones(3, dtype=np.bool_), limit)
    for j in range(2):
        assert (limit[4 * j : 4 * j + 3] + j + 1).tolist() == [10, 20, 30]


@st.composite
def _orders(draw: st.DrawFn) -> PartialOrder:
    length = draw(st.integers(1, 4))
    return PartialOrder(before_each(draw, length), (True,) * length, ())


_BOUNDS = st.tuples(sampled_from([-3, 0, 1, 1, 2, 3]), sampled_from([0, 1, 2, 3, FAR]))


@given(_orders(), st.integers(1, 6), st.booleans(), st.none() | st.lists(_BOUNDS, min_size=4, max_size=4))
def test_how_far_events_of_two_components_are_apart(
    order: PartialOrder, window: int, chain: bool, bounds: list[tuple[int, int]] | None
) -> None:
    length = len(order.before)
    bounds = bounds[:length] if chain and bounds else None
    kleene = (False,) * length
    plan: Any = SimpleNamespace(
        components=[None] * length,
        event_order=InSequence(kleene, ()) if chain else InSets(kleene, order),
        table_distances=[(j - 1, j, *bound) for j, bound in enumerate(bounds or ()) if j],
    )
    before = [(1 << j) - 1 for j in range(length)] if chain else order.before
    found = time_differences(plan, window)
    pairs = [(i, j) for j in range(length) for i in range(j) if before[j] >> i & 1]
    matches = [
        times
        for times in product(range(window), repeat=length)
        if all(times[i] < times[j] for i, j in pairs)
        and all(g <= times[j] - times[j - 1] <= h for j, (g, h) in enumerate(bounds or ()) if j)
    ]
    for i, j in combinations(range(length), 2):
        for one, other in ((i, j), (j, i)):
            apart = [times[other] - times[one] for times in matches]
            if apart:
                assert min(apart) == found[one, other]
