"""Every evaluation method gives the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given, note

import uncertain_cep as uc
from tests.properties.cases import Case, cases
from tests.properties.comparison import assert_answer, rows_of
from uncertain_cep.plan import EVALUATIONS


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@given(case=cases())
def test_every_method_is_the_oracle(evaluation: str, case: Case) -> None:
    note(case.script())
    found = uc.match(case.trace.table(), case.text(), evaluation=evaluation)
    assert_answer(rows_of(found, case), case.answer())
