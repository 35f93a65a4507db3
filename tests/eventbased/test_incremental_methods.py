"""The incremental methods on arrays, against the feasibility condition tried on every choice."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import Limits
from confidence.config import EVER
from eventbased.gaps.next_match import NextConfidences
from eventbased.incremental.candidate_pool import PMF, CandidatePool, RunBytecode
from eventbased.incremental.completed import Matches
from eventbased.incremental.method import AnyState, IncrementalMethod
from eventbased.incremental.query_order import QueryOrder
from eventbased.incremental.run_pool import HEADER, LIST, MASK, NEXT, RunPool
from eventbased.incremental.selectivity import Selectivity
from tests.cases.incremental import thresholds

METHODS = (AnyState, Selectivity, QueryOrder)


@dataclass(frozen=True, slots=True)
class Event:
    """An event, and the components that can take it."""

    number: int
    partition: int
    lower: int
    upper: int
    components: tuple[int, ...]


@st.composite
def streams(draw: st.DrawFn, length: int) -> list[list[Event]]:
    """Draw events in the order of arrival, cut into pushes; any order is legal where nothing is promised."""
    lengths = draw(st.sampled_from([(0,), (3,), (0, 1, 4), (0, 20)]))
    reach = draw(st.sampled_from([6, 30, 80]))
    parts = draw(
        st.lists(
            st.lists(
                st.tuples(
                    st.integers(0, 1),
                    st.integers(0, reach),
                    st.sampled_from(lengths),
                    st.sets(st.integers(0, length - 1), max_size=2),
                ),
                max_size=6,
            ),
            max_size=6,
        )
    )
    number = itertools.count(100)
    return [
        [
            Event(next(number), partition, lower, lower + size, tuple(components))
            for partition, lower, size, components in part
        ]
        for part in parts
    ]


def expected(events: list[Event], length: int, window: int) -> list[tuple[int, ...]]:
    by_component = [[event for event in events if j in event.components] for j in range(length)]
    found = []
    for chosen in itertools.product(*by_component):
        low = [event.lower - j for j, event in enumerate(chosen)]
        high = [event.upper - j for j, event in enumerate(chosen)]
        ordered = all(low[i] <= high[j] for i in range(length) for j in range(i, length))
        alone = len({event.number for event in chosen}) == length
        together = len({event.partition for event in chosen}) == 1
        if ordered and alone and together and max(low) <= min(high) + window - length:
            found.append(tuple(event.number for event in chosen))
    return sorted(found)


def pushed(method: IncrementalMethod, events: list[Event], safe: int | None = None) -> Matches:
    rows = [
        (j, event.partition, event.lower, event.upper, event.number)
        for event in events
        for j in event.components
    ]
    component, partition, lower, upper, number = np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy()
    uniform = np.full(len(rows), -1, dtype=np.int64)
    found = method.push(component, partition, lower, upper, number, uniform, np.zeros(0), safe=safe)
    return Matches.joined(list(found), method.length)


def advanced(method: IncrementalMethod, safe: int = EVER) -> Matches:
    return Matches.joined(list(method.advance(safe)), method.length)


def check(pool: RunPool) -> None:
    """Assert the invariants: lists hold the living runs of their partition, bounds leave room."""
    rows, seen, length = pool.arrays.rows[: pool.size], [], pool.length
    for at, first in enumerate(pool.arrays.head.tolist()):
        r, count = first, 0
        while r >= 0:
            row = rows[r]
            low, high = row[HEADER : HEADER + length], row[HEADER + length :][:length]
            assert row[MASK]
            assert row[LIST] == at
            assert (low <= high).all()
            assert (np.diff(high) >= 0).all()
            assert (np.diff(low) >= 0).all()
            seen.append(r)
            count += 1
            r = int(row[NEXT])
        assert pool.arrays.held[at] == count
    assert sorted(seen) == np.flatnonzero(rows[:, MASK]).tolist()


def signatures(parts: list[Matches]) -> list[tuple[int, ...]]:
    return sorted(tuple(int(number) for number in column) for part in parts for column in part.events.T)


@pytest.mark.parametrize("kind", METHODS)
@given(data=st.data(), slack=st.integers(0, 20), small=st.booleans())
def test_every_feasible_choice_comes_out_once(
    kind: type[IncrementalMethod], data: st.DataObject, slack: int, small: bool
) -> None:
    length = data.draw(st.integers(2, 4))
    parts = data.draw(streams(length))
    if data.draw(st.booleans()):
        everything = sorted((event for part in parts for event in part), key=lambda event: event.lower)
        parts = [everything[at : at + 3] for at in range(0, len(everything), 3)]
    found = []
    with thresholds(small=small):
        method = kind(length, length + slack)
        for at, part in enumerate(parts):
            rest = min((event.lower for later in parts[at + 1 :] for event in later), default=EVER)
            tell = data.draw(st.sampled_from(["in the push", "afterwards", "never"]))
            found.append(pushed(method, part, rest if tell == "in the push" else None))
            check(method.runs)
            if tell == "afterwards":
                found.append(advanced(method, rest))
        found.append(advanced(method))
    assert signatures(found) == expected([event for part in parts for event in part], length, length + slack)
    assert method.size == 0


@pytest.mark.parametrize("kind", METHODS)
def test_the_window_of_figure_3c(kind: type[IncrementalMethod]) -> None:
    method = kind(3, 4)
    events = [Event(1, 0, 1, 3, (0,)), Event(5, 0, 1, 3, (1,)), Event(6, 0, 6, 7, (2,))]
    found = [pushed(method, [event]) for event in events]
    found.append(advanced(method))
    assert signatures(found) == []


@pytest.mark.parametrize("kind", [AnyState, Selectivity])
def test_a_match_comes_out_with_the_event_that_completes_it(kind: type[IncrementalMethod]) -> None:
    method = kind(3, 4)
    assert not len(pushed(method, [Event(1, 0, 1, 5, (0,))]).lower)
    assert not len(pushed(method, [Event(2, 0, 3, 5, (2,))]).lower)
    match = pushed(method, [Event(3, 0, 3, 5, (1,))])
    assert match.events.T.tolist() == [[1, 3, 2]]
    assert (match.lower.tolist(), match.upper.tolist()) == ([1], [5])
    assert match.confidence.tolist() == pytest.approx([25 / 225])


def test_sorted_events_wait_for_the_safe_time() -> None:
    method = QueryOrder(2, 10)
    pushed(method, [Event(1, 0, 1, 5, (0,)), Event(2, 0, 2, 6, (1,))])
    assert not len(advanced(method, 5).lower)
    assert signatures([advanced(method, 6)]) == [(1, 2)]


@pytest.mark.parametrize("kind", METHODS)
def test_held_signatures_come_out_once_nothing_can_lie_before_their_end(
    kind: type[IncrementalMethod],
) -> None:
    method = kind(2, 10, following=NextConfidences(2, 8, Limits(1e6)))
    events = [Event(1, 0, 1, 5, (0,)), Event(2, 0, 2, 8, (1,)), Event(3, 0, 3, 9, (1,))]
    assert not len(pushed(method, events).lower)
    assert not len(advanced(method, 7).lower)
    assert signatures([advanced(method, 8)]) == [(1, 2)]
    assert signatures([advanced(method)]) == [(1, 3)]


@pytest.mark.compiled
def test_a_rare_component_keeps_the_others_from_becoming_runs() -> None:
    size = {}
    for kind in (AnyState, Selectivity):
        method = kind(3, 50)
        for t in range(0, 1000, 10):
            events = [Event(t + k, 0, t + k, t + k + 3, (k % 2,)) for k in range(10)]
            pushed(method, events, t + 10)
        size[kind] = method.runs.size
    assert size[Selectivity] == 0 < size[AnyState]


@pytest.mark.compiled
@pytest.mark.parametrize("kind", METHODS)
def test_state_stays_flat(kind: type[IncrementalMethod]) -> None:
    method = kind(3, 20)
    sizes = []
    for t in range(0, 4000, 40):
        events = [Event(k, k % 2, k, k + 4, (k % 3,)) for k in range(t, t + 40)]
        pushed(method, events, t + 40)
        sizes.append(method.size)
    assert max(sizes) < 2 * max(sizes[:50]) + 10
    assert max(sizes) < 5000


def test_probabilities_follow_their_candidates() -> None:
    pool = CandidatePool(RunBytecode.none())
    pmf = np.array([0.5, 0.5, 0.25, 0.0, 0.75])
    offset = np.array([2, -1, 0])
    zeros, shared = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.bool_)
    pool.append(zeros, zeros, np.array([0, 5, 9]), np.array([2, 6, 10]), np.arange(3), shared, offset, pmf)
    mapping = pool.compact(np.array([False, True, True]))
    assert mapping.tolist() == [-1, 0, 1]
    start = int(pool.candidates[PMF, 1])
    assert pool.candidates[PMF, 0] == -1
    assert pool.pmfs.pmf[start : start + 2].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("kind", METHODS)
def test_patterns_that_cannot_be_are_refused(kind: type[IncrementalMethod]) -> None:
    for length, window in ((1, 5), (3, 2), (63, 100)):
        with pytest.raises(ValueError, match="components"):
            kind(length, window)


@pytest.mark.parametrize("kind", METHODS)
def test_an_event_right_at_the_bound_still_extends_a_run(kind: type[IncrementalMethod]) -> None:
    method = kind(3, 10)
    found = [pushed(method, [Event(3, 0, 7, 8, (2,)), Event(2, 0, 3, 6, (1,))])]
    # The last tick at which component 0 can be before event 2.
    found.append(advanced(method, 5))
    method.evict()
    found.append(pushed(method, [Event(1, 0, 5, 5, (0,))]))
    found.append(advanced(method))
    assert signatures(found) == [(1, 2, 3)]
