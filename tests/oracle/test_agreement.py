"""The forms of the oracle agree: literal worlds, worlds of the events that matter, and the one formula."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from tests.oracle import Event, Query, answer, answer_literally, formula_answer
from tests.oracle.strategies import queries, traces
from tests.oracle.worlds import worlds


@given(traces())
def test_the_worlds_of_a_trace_have_probability_one(events: list[Event]) -> None:
    everything = list(worlds(events))
    assert sum(probability for probability, _ in everything) == 1
    assert len({tuple(world[event] for event in events) for _, world in everything}) == len(everything)


@given(queries(), traces())
def test_worlds_of_the_events_that_matter_suffice(query: Query, events: list[Event]) -> None:
    assert answer(query, events) == answer_literally(query, events)


@given(queries(sequences_only=True), traces())
def test_the_formula_agrees_with_the_worlds(query: Query, events: list[Event]) -> None:
    assert formula_answer(query, events) == {
        (match.partition, match.signature): (match.range_lower, match.range_upper, match.confidence)
        for match in answer_literally(query, events)
    }


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
