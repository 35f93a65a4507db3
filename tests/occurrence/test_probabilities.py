"""RETURN PROBABILITY against the worlds in which there is a match."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.beside import beside_cases
from tests.cases.cases import Trace, cases
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.grouped import Grouping, assert_probabilities, groupings
from tests.cases.language import language_cases
from tests.cases.nested import nested_cases, reading_cases
from tests.cases.occurrence_facts import FACTS
from tests.cases.options import nested_option_cases, option_cases, timed_option_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases, timed_nested_cases, timed_sequences
from tests.oracle import no, one, seq
from uncertain_cep.testing import table as table_of
from uncertain_cep.testing.counted_worlds import probabilities
from uncertain_cep.testing.model import Clock, Event, Query

NESTED = st.sampled_from(["SAO", "SA", "SO", "A"]).flatmap(lambda kinds: nested_cases(kinds, 4))

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "language": language_cases(most=4),
    "skip till next": language_cases("skip_till_next_match", most=5),
    "nested": NESTED,
    "readings": reading_cases(4),
    "options": option_cases(most=4),
    # The oracle does not tell a list that is empty from one of another branch.
    "nested options": nested_option_cases(4).filter(
        lambda case: all(item.least or not item.kleene for item in case.positives)
    ),
    "times": timed_cases(most=4),
    "timed sequences": timed_sequences(),
    "timed sets": timed_nested_cases(),
    "timed options": timed_option_cases(4),
    "negations beside sets": doubtful(beside_cases(4)),
    "doubtful": doubtful(language_cases(most=4)),
    "doubtful sets": doubtful(NESTED),
    "doubtful options": doubtful(option_cases(most=4)),
    "doubtful times": doubtful(timed_cases(most=4)),
    "clocks": by_clocks(language_cases(most=4)),
    "clocks of sets": by_clocks(NESTED),
    "clocks of options": by_clocks(option_cases(most=4)),
    "clocks and times": by_clocks(timed_cases(most=4)),
    "doubtful clocks": doubtful(by_clocks(language_cases(most=4))),
}


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_probabilities_are_those_of_worlds(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    grouping: Grouping = data.draw(groupings(case.query()))
    text = case.text(grouping.clause)
    note(f"{text}\n{case.trace.events}")
    rows = uc.match(case.trace.table(), text)
    assert_probabilities(rows, grouping.answer(case), grouping)


@given(st.data())
def test_probabilities_of_sequences(data: st.DataObject) -> None:
    case = data.draw(cases())
    grouping: Grouping = data.draw(groupings(case.query()))
    note(case.script("", grouping.clause))
    rows = uc.match(case.trace.table(), case.text("", grouping.clause))
    assert_probabilities(rows, grouping.answer(case), grouping)


@pytest.mark.parametrize("name", FACTS)
def test_worked_facts(name: str) -> None:
    fact = FACTS[name]
    grouping = Grouping(fact.by, fact.every, fact.at_least)
    assert_probabilities(uc.match(table_of(fact.events), fact.text), dict(fact.expected), grouping)


def test_a_law_of_one_tick_is_not_that_of_the_time_by_a_clock() -> None:
    """Only x has an uncertain time, by the offset of its clock: it is before the others, or spoils nobody."""
    certain = Clock(1, 1)
    events = [Event("A", number, 1, 1, clock=certain) for number in range(3)]
    events.append(Event("A", 9, 0, 1, pmf=(Fraction(1),), clock=Clock(0, 1)))
    text = "PATTERN SEQ(!A a, A b) WITHIN 2 RETURN PROBABILITY OF AT LEAST 2 MATCHES"
    expected: dict[Any, Any] = {((), None): Fraction(1, 2)}
    query = Query(seq(no("A", "a"), one("A", "b")), 2)
    assert dict(probabilities(query, events, at_least=2)) == expected
    table = Trace(tuple(events), {"id": pa.int64()}).table()
    assert_probabilities(uc.match(table, text), expected, Grouping(at_least=2))


def test_one_signature_of_two_readings_counts_once_in_a_bucket() -> None:
    """Each bucket has one A, whatever spoils it."""
    rows = {
        "type": ["A", "N", "M", "A"],
        "id": [1, 2, 3, 4],
        "lower": [2, 0, 0, 50],
        "upper": [5, 3, 3, 52],
    }
    query = "PATTERN SEQ(OR(!N n, !M m), A a) WITHIN 3 RETURN PROBABILITY"
    events = pa.table(rows)
    assert uc.match(events, f"{query} OF AT LEAST 2 MATCHES EVERY 10").num_rows == 0
    assert uc.match(events, f"{query} EVERY 10").num_rows == 2
