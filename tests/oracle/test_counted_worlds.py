"""The probability of at least one match by enumeration of worlds, against worked facts and other sums."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.occurrence_facts import FACTS
from tests.oracle import Event, Query, answer_literally
from tests.oracle.strategies import clocked, doubtful, queries, traces
from uncertain_cep.testing.counted_worlds import Group, probabilities

EVENTS = st.one_of(traces(), doubtful(traces()), clocked())


@pytest.mark.parametrize("name", FACTS)
def test_the_oracle_knows_the_worked_facts(name: str) -> None:
    fact = FACTS[name]
    by_group = probabilities(fact.query, fact.events, by=fact.by, every=fact.every, at_least=fact.at_least)
    assert by_group == fact.expected


@given(EVENTS, queries(), st.sampled_from([None, 1, 3]))
def test_probabilities_of_more_and_more_matches_add_up_to_the_expected_number(
    events: list[Event], query: Query, every: int | None
) -> None:
    """The sum over k of P(at least k matches) is the expected number of matches, bucket by bucket."""
    expected: dict[Group, Fraction] = defaultdict(Fraction)
    for match in answer_literally(query, events):
        for tick, mass in match.first_times.items():
            expected[(), None if every is None else tick // every * every] += mass
    added: dict[Group, Fraction] = defaultdict(Fraction)
    number = 1
    while by_group := probabilities(query, events, every=every, at_least=number):
        for group, mass in by_group.items():
            added[group] += mass
        number += 1
    assert added == expected


@given(EVENTS, queries())
def test_it_lies_between_the_best_confidence_and_the_expected_number(
    events: list[Event], query: Query
) -> None:
    matches = answer_literally(query, events)
    by_group = probabilities(query, events)
    if len(matches) == 1:
        assert by_group == {((), None): matches[0].confidence}
    elif matches:
        (mass,) = by_group.values()
        assert max(match.confidence for match in matches) <= mass
        assert mass <= min(1, sum(match.confidence for match in matches))
    else:
        assert not by_group
