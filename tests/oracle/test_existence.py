"""Events that may not have happened: the oracle knows worked facts."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.cases.existence import FACTS
from tests.oracle import Event, Query, answer, answer_literally, seq
from tests.oracle.examples import rows
from tests.oracle.strategies import clocked, doubtful
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


@pytest.mark.parametrize("name", FACTS)
def test_the_oracle_knows_it(name: str) -> None:
    fact = FACTS[name]
    query = Query(seq(*fact.components), fact.window, (), fact.strategy)
    matches = answer(query, fact.events)
    assert rows(matches) == fact.expected
    assert answer_literally(query, fact.events) == matches
