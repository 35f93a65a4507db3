"""Events that may not have happened: the forms of the oracle agree, and know worked facts."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.cases.existence import FACTS
from tests.oracle import Event, Query, answer, answer_literally, formula_answer, seq
from tests.oracle.examples import rows
from tests.oracle.strategies import clocked, doubtful, queries, traces
from uncertain_cep.testing.worlds import worlds


@given(doubtful(clocked(ordered=True)))
def test_the_worlds_have_probability_one(events: list[Event]) -> None:
    try:
        everything = list(worlds(events))
    except ValueError:
        return
    assert sum(probability for probability, _ in everything) == 1
    for event in events:
        happened = sum(probability for probability, world in everything if event in world)
        assert happened == event.probability


@given(queries(), doubtful(traces()))
def test_worlds_of_the_events_that_matter_suffice(query: Query, events: list[Event]) -> None:
    assert answer(query, events) == answer_literally(query, events)


@given(queries(), doubtful(clocked()))
def test_worlds_of_the_clocks_that_matter_suffice(query: Query, events: list[Event]) -> None:
    assert answer(query, events) == answer_literally(query, events)


@given(queries(sequences_only=True), doubtful(clocked()))
def test_the_formula_agrees_with_the_worlds(query: Query, events: list[Event]) -> None:
    assert formula_answer(query, events) == {
        (match.partition, match.signature): (match.range_lower, match.range_upper, match.confidence)
        for match in answer_literally(query, events)
    }


@pytest.mark.parametrize("name", FACTS)
def test_the_oracle_knows_it(name: str) -> None:
    fact = FACTS[name]
    query = Query(seq(*fact.components), fact.window, (), fact.strategy)
    found = answer(query, fact.events)
    assert rows(found) == fact.expected
    assert answer_literally(query, fact.events) == found
