"""Patterns that forbid, repeat or order partially, on events that share clocks, against all worlds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases, reading_cases
from tests.cases.options import option_cases
from tests.cases.times import timed_cases, timed_nested_cases


@given(by_clocks(language_cases(most=4)))
def test_kleene_negation_and_strategies(case: LanguageCase) -> None:
    case.check()


@given(by_clocks(language_cases("skip_till_next_match", most=4)))
def test_next_matches(case: LanguageCase) -> None:
    case.check()


@given(by_clocks(st.sampled_from(["SAO", "SA", "A"]).flatmap(lambda kinds: nested_cases(kinds, 4))))
def test_sets(case: NestedCase) -> None:
    case.check()


@given(by_clocks(reading_cases(4)))
def test_readings(case: NestedCase) -> None:
    case.check()


@given(by_clocks(option_cases(most=4)))
def test_options(case: NestedCase) -> None:
    case.check()


@given(by_clocks(timed_cases(most=4)))
def test_conditions_on_times(case: LanguageCase) -> None:
    case.check()


@given(doubtful(by_clocks(language_cases(most=4))))
def test_what_may_not_have_happened(case: LanguageCase) -> None:
    case.check()


@given(doubtful(by_clocks(st.sampled_from(["SA", "SAO"]).flatmap(lambda kinds: nested_cases(kinds, 4)))))
def test_sets_of_what_may_not_have_happened(case: NestedCase) -> None:
    case.check()


@given(doubtful(by_clocks(timed_cases(most=4))))
def test_conditions_on_times_of_what_may_not_have_happened(case: LanguageCase) -> None:
    case.check()


@given(by_clocks(timed_nested_cases()))
def test_conditions_on_times_of_sets(case: NestedCase) -> None:
    case.check()
