"""OR, alone and nested: the engine gives the oracle's answer, whatever the strategy."""

from __future__ import annotations

from hypothesis import given, note

import uncertain_cep as uc
from tests.cases.comparison import by_key, significant
from tests.cases.nested import NestedCase, nested_cases
from uncertain_cep.testing.worlds import sort_key


@given(nested_cases("OOS"))
def test_sequences_with_branches(case: NestedCase) -> None:
    note(case.text())
    case.check()


@given(nested_cases("OAS"))
def test_any_nesting(case: NestedCase) -> None:
    note(case.text())
    case.check()


@given(nested_cases("OAS"))
def test_ties_of_confidence_are_ordered_by_signature(case: NestedCase) -> None:
    note(case.text())
    table = uc.match(case.trace.table(), case.text("ORDER BY CONFIDENCE DESC"))
    confidence = [significant(value) for value in table.column("confidence").to_pylist()]
    assert confidence == sorted(confidence, reverse=True)
    rows = list(case.rows(table))
    assert set(rows) == set(by_key(case.answer()))
    for number in range(1, len(rows)):
        if confidence[number - 1] == confidence[number] and rows[number - 1][0] == rows[number][0]:
            assert sort_key(rows[number - 1][1]) < sort_key(rows[number][1])
