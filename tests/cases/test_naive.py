"""The naive twin gives the oracle's answer, so it may stand in for it on larger traces."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from tests.cases.cases import Case, cases
from tests.cases.naive import Row, chain_mass, feasible, naive_answer
from tests.oracle import Event, Query, answer, one, seq

_INTERVALS = st.tuples(st.integers(0, 6), st.integers(0, 3)).map(lambda pair: (pair[0], sum(pair)))


@given(cases())
def test_naive_is_the_oracle(case: Case) -> None:
    note(case.text())
    assert naive_answer(case.query(), case.trace.events) == {
        (match.partition, match.signature): Row(match.range_lower, match.range_upper, match.confidence)
        for match in case.answer()
    }


@given(st.lists(_INTERVALS, min_size=1, max_size=5), st.integers(1, 8))
def test_feasible_says_whether_some_world_has_the_match(
    intervals: list[tuple[int, int]], window: int
) -> None:
    events = [Event("A", number, *interval) for number, interval in enumerate(intervals)]
    assert feasible(intervals, window) == (chain_mass(events, window) is not None)


def test_neighbours_alone_do_not_decide() -> None:
    intervals = [(5, 6), (1, 10), (2, 3)]
    assert feasible(intervals[:2], 20)
    assert feasible(intervals[1:], 20)
    assert not feasible(intervals, 20)


def test_the_window_moves_the_first_event_too() -> None:
    events = [Event("A", 1, 1, 3), Event("B", 2, 6, 7)]
    query = Query(seq(one("A", "a"), one("B", "b")), window=5)
    (match,) = answer(query, events)
    assert (match.range_lower, match.range_upper) == (2, 7)
    assert chain_mass(events, 5) == Row(2, 7, match.confidence)
