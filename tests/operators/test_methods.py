"""Every evaluation method gives the same answer, whatever the strategy."""

from __future__ import annotations

import pytest
from hypothesis import given, note

import uncertain_cep as uc
from tests.cases.cases import Case, cases
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from uncertain_cep.plan import EVALUATIONS
from uncertain_cep.testing.model import Strategy


@STRATEGIES
@pytest.mark.parametrize("evaluation", EVALUATIONS)
@FEWER
@given(case=cases())
def test_every_method_is_the_oracle(evaluation: str, strategy: Strategy, case: Case) -> None:
    note(case.script())
    found = uc.match(case.trace.table(), text_of(case, strategy), evaluation=evaluation)
    assert_answer(rows_of(found, case), answer_of(case, strategy))
