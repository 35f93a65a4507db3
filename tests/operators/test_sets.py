"""Sets, sequences of sets and nesting: the engine gives the oracle's answer."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.comparison import assert_same
from tests.cases.nested import NestedCase, nested_cases


@given(nested_cases("AAS"))
def test_engine_is_the_oracle(case: NestedCase) -> None:
    note(case.text())
    case.check()


@given(nested_cases("AAS"))
def test_without_confidences_the_signatures_and_ranges_are_the_same(case: NestedCase) -> None:
    note(case.text())
    table = case.trace.table()
    expected = case.rows(uc.match(table, case.text()))
    found = case.rows(uc.match(table, case.text(), confidence=False))
    assert_same(found, {key: replace(row, confidence=None) for key, row in expected.items()})


@given(nested_cases("AAS"), st.sampled_from([1, 2, 7]))
def test_batches_hold_the_same_rows(case: NestedCase, batch_rows: int) -> None:
    note(case.text())
    case.check_batches(batch_rows)
