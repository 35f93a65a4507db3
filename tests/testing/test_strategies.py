"""Draws for users' tests: both forms of a query ask the same, and every construct occurs."""

from __future__ import annotations

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep import testing
from uncertain_cep.testing import strategies
from uncertain_cep.testing.strategies import Question


@given(strategies.events(), strategies.queries())
def test_both_forms_of_a_query_ask_the_same(events: list[testing.Event], question: Question) -> None:
    testing.assert_answer(uc.match(testing.table(events), question.text), question.query, events)


@pytest.mark.parametrize(
    "part", ["+ ", "!", "AND(", "OR(", "|", "skip_till_next", "strict_", "partition_", "[k]", "a.x = b.x"]
)
def test_every_construct_is_drawn(part: str) -> None:
    assert part in find(strategies.queries(), lambda question: part in question.text).text


def test_events_have_the_attributes_asked_for() -> None:
    drawn = strategies.events(["T"], most=1, last=0, longest=1, attributes={"host": st.just("h")})
    (event,) = find(drawn, bool)
    assert (event.type, event.lower, event.upper, dict(event.attributes)) == ("T", 0, 0, {"host": "h"})
