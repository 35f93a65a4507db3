"""The random cases under each selection strategy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import oracle
from tests.cases.cases import Case
from uncertain_cep.testing.model import Match, Strategy

STRATEGIES = pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])


def text_of(case: Case, strategy: Strategy) -> str:
    """Return the query of a case with a strategy."""
    return replace(case, block=True).text().replace("skip_till_any_match", strategy)


def answer_of(case: Case, strategy: Strategy) -> list[Match]:
    """Return the oracle's answer to it."""
    return oracle.answer(replace(case.query(), strategy=strategy), case.trace.events)
