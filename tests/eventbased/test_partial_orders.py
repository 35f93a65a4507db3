"""The search for sets and their confidences against the oracle, so that they also run as plain Python."""

from __future__ import annotations

from hypothesis import given, note, settings

from tests.cases.nested import NestedCase, nested_cases


@settings(max_examples=25)
@given(nested_cases("AS", most=4))
def test_engine_is_the_oracle(case: NestedCase) -> None:
    note(case.text())
    case.check()
