"""OR, alone and nested: the engine gives the oracle's answer, whatever the strategy."""

from __future__ import annotations

import pyarrow as pa
import pytest
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


def test_all_branches_are_asked_before_the_first_match() -> None:
    types = pa.array(["A", "B", "C", "C"])
    table = pa.table({"type": types, "id": [1, 2, 3, 3], "lower": [1, 2, 3, 4], "upper": [1, 2, 3, 4]})
    assert uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 9").num_rows == 1
    for branches in ("SEQ(A a, B b), SEQ(C c, C d)", "SEQ(C c, C d), SEQ(A a, B b)"):
        with pytest.raises(uc.TraceError, match="has this id"):
            next(uc.iter_matches(table, f"PATTERN OR({branches}) WITHIN 9"))
