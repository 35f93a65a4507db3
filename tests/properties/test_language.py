"""Kleene components, negation and contiguity in combination: the engine gives the oracle's answer."""

from __future__ import annotations

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.oracle.model import Strategy
from tests.properties.language import STRATEGIES, LanguageCase, language_cases


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(data=st.data())
def test_engine_is_the_oracle(strategy: Strategy, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(language_cases(strategy))
    note(case.text())
    case.check()
