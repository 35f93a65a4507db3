"""The forms of the oracle agree: literal worlds, worlds of the events that matter, and the one formula."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.sampling import FEWER
from tests.oracle import Event, Query, answer, answer_literally, formula_answer
from tests.oracle.strategies import clocked, doubtful, queries, traces
from uncertain_cep.testing import one, seq
from uncertain_cep.testing.model import Clock, Law
from uncertain_cep.testing.worlds import worlds

EVENTS = {
    "times": traces(),
    "clocks": clocked(),
    "doubtful times": doubtful(traces()),
    "doubtful clocks": doubtful(clocked()),
}


@given(traces())
def test_the_worlds_of_a_trace_have_probability_one(events: list[Event]) -> None:
    everything = list(worlds(events))
    assert sum(probability for probability, _ in everything) == 1
    assert len({tuple(world[event] for event in events) for _, world in everything}) == len(everything)


@pytest.mark.parametrize("drawn", EVENTS.values(), ids=EVENTS)
@FEWER
@given(query=queries(), data=st.data())
def test_worlds_of_the_events_that_matter_suffice(
    drawn: st.SearchStrategy[list[Event]], query: Query, data: st.DataObject
) -> None:
    events = data.draw(drawn)
    assert answer(query, events) == answer_literally(query, events)


@pytest.mark.parametrize("drawn", EVENTS.values(), ids=EVENTS)
@FEWER
@given(query=queries(sequences_only=True), data=st.data())
def test_the_formula_agrees_with_the_worlds(
    drawn: st.SearchStrategy[list[Event]], query: Query, data: st.DataObject
) -> None:
    events = data.draw(drawn)
    assert formula_answer(query, events) == {
        (match.partition, match.signature): (match.range_lower, match.range_upper, match.confidence)
        for match in answer_literally(query, events)
    }


def test_a_tie_that_sequences_break_is_an_order() -> None:
    clock = Clock(0, 0)
    events = [Event("A", n, 1, 1, clock=clock, sequence=n) for n in (1, 2)]
    query = Query(seq(one("A", "a"), one("A", "b")), 1)
    (match,) = answer(query, events)
    assert [match] == answer_literally(query, events)
    assert match.signature == (("a", 1), ("b", 2))


@given(queries(sequences_only=True), traces())
def test_a_strategy_only_takes_away(query: Query, events: list[Event]) -> None:
    """The strategies are conditions on top of those of skip till any, and contiguity is ordered."""
    by_strategy = {
        strategy: {
            (match.partition, match.signature): match
            for match in answer(replace(query, strategy=strategy), events)
        }
        for strategy in (
            "skip_till_any_match",
            "skip_till_next_match",
            "partition_contiguity",
            "strict_contiguity",
        )
    }
    for stricter, laxer in (
        ("strict_contiguity", "partition_contiguity"),
        ("partition_contiguity", "skip_till_any_match"),
        ("strict_contiguity", "skip_till_next_match"),
        ("skip_till_next_match", "skip_till_any_match"),
    ):
        for key, match in by_strategy[stricter].items():
            other = by_strategy[laxer][key]
            assert match.confidence <= other.confidence
            assert match.range_lower >= other.range_lower
            assert match.range_upper <= other.range_upper


@given(clocked(ordered=True))
def test_the_worlds_of_clocks_have_probability_one(events: list[Event]) -> None:
    try:
        everything = list(worlds(events))
    except ValueError:
        return
    assert sum(probability for probability, _ in everything) == 1
    for event in events:
        if event.clock is None or not event.clock.ordered:
            marginal: dict[int, Fraction] = defaultdict(Fraction)
            for probability, world in everything:
                marginal[world[event]] += probability
            assert sorted(marginal.items()) == event.ticks()


@given(queries(), clocked())
def test_clocks_only_take_combinations_of_times_away(query: Query, events: list[Event]) -> None:
    """An answer with clocks is one without, but for ties that sequences break."""
    apart = [
        replace(event, clock=None, sequence=None, pmf=_weights(event.ticks(), event)) for event in events
    ]
    bare = [replace(event, sequence=None) for event in events]
    independent = {(match.partition, match.signature): match for match in answer(query, apart)}
    for match in answer(query, bare):
        other = independent[match.partition, match.signature]
        assert other.range_lower <= match.range_lower
        assert match.range_upper <= other.range_upper
    alone = [replace(event, clock=event.clock and replace(event.clock)) for event in bare]
    assert answer(query, alone) == list(independent.values())


def _weights(ticks: Law, event: Event) -> tuple[Fraction, ...]:
    weights = dict(ticks)
    return tuple(weights.get(tick, Fraction(0)) for tick in range(event.lower, event.upper + 1))
