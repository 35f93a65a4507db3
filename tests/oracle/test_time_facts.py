"""Worked facts about conditions on times, by enumeration."""

from __future__ import annotations

import pytest

from tests.cases.time_facts import FACTS
from tests.oracle import Query, answer, answer_literally, formula_answer, seq, where
from tests.oracle.examples import rows


@pytest.mark.parametrize("name", FACTS)
def test_the_oracle_knows_it(name: str) -> None:
    fact = FACTS[name]
    several = (where("b[]", lambda elements: len(elements) >= 2),) if name == "series" else ()
    query = Query(seq(*fact.components), fact.window, several, fact.strategy, times=fact.times)
    matches = answer(query, fact.events)
    assert rows(matches) == fact.expected
    assert answer_literally(query, fact.events) == matches
    by_formula = formula_answer(query, fact.events)
    assert list(by_formula.values()) == [
        (match.range_lower, match.range_upper, match.confidence)
        for key in by_formula
        for match in matches
        if (match.partition, match.signature) == key
    ]
    assert len(by_formula) == len(matches)
