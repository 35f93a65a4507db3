"""Factors of the confidences of events that last: each product is that of worlds, by exact fractions."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.operators.test_span_facts import spans
from tests.operators.test_spans import KINDS
from tests.reporting.pages import data_of

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_products_of_factors_are_those_of_worlds(kind: str, data: st.DataObject) -> None:
    """The last ones ask for one condition after the other, of the events of the match alone."""
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    table = case.table()
    names = [name for name, _ in case.variables]
    conditions = tuple(one for one in case.conditions if set(one.variables) <= set(names))
    matches = uc.match(table, case.text())
    for number, row in enumerate(matches.to_pylist()):
        result = uc.why(matches.slice(number, 1), table, case.text())
        assert result.confidence == result.factors[-1].product == row["confidence"]
        key = tuple(row[name] for name in names)
        alone = replace(
            case, events=tuple(one for one in case.events if one.id in key), negated=None, conditions=()
        )
        parts = [replace(alone, conditions=conditions[:count]) for count in range(len(conditions) + 1)]
        # Of one event there is no window, and nothing behind the conditions where nothing is negated.
        stages = parts if len(names) > 1 else parts[1:]
        products = [factor.product for factor in result.factors]
        products = products[: len(products) - (case.negated is not None)]
        expected = [float(part.answer()[key][2]) for part in stages]
        assert products[len(products) - len(stages) :] == pytest.approx(expected, rel=1e-9)


RELATIONS = ("a CONTAINS b", "b DURING a", "a OVERLAPS b", "b OVERLAPS a", "a BEFORE b", "b AFTER a")


@pytest.mark.parametrize("shown", [*RELATIONS, "NOT (b OVERLAPS a)", "NOT (a OVERLAPS b)", "DURATION(a) > 2"])
def test_relations_are_in_the_words_of_the_query(shown: str) -> None:
    events = spans(("A", 1, (0, 3), (2, 6), None), ("B", 2, (0, 6), None, None))
    query = f"PATTERN AND(A a, B b) WHERE {shown} AND DURATION(a) > 1 WITHIN 100"
    factors = uc.why(uc.match(events, query), events, query).factors
    assert [factor.what for factor in factors] == ["all within 100 ticks", shown, "DURATION(a) > 1"]
    sentence = f"Of the times it holds that {shown} and DURATION(a) > 1."
    assert sentence in unescape(str(uc.report(events, query)))
    plan = json.loads(uc.explain(query, events, format="json"))
    assert plan["time_conditions"] == [shown, "DURATION(a) > 1"]


def test_without_a_whole_relation_there_is_a_match() -> None:
    events = spans(("A", 1, (0, 0), (2, 2), None), ("B", 2, (5, 6), None, None))
    page = str(uc.report(events, "PATTERN AND(A a, B b) WHERE b DURING a AND a.type = 'A' WITHIN 100"))
    assert "b DURING a" in data_of(page)["nothing"]
