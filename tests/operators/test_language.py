"""Kleene components, negation and contiguity in combination: the engine gives the oracle's answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Trace
from tests.cases.comparison import RELATIVE_ERROR, assert_answer, assert_same, significant
from tests.cases.language import STRATEGIES, LanguageCase, language_cases
from uncertain_cep.testing.model import Match, Strategy


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(data=st.data())
def test_engine_is_the_oracle(strategy: Strategy, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(language_cases(strategy))
    note(case.text())
    case.check()


@given(language_cases(), st.sampled_from([1, 2, 5]))
def test_batches_hold_the_same_rows(case: LanguageCase, batch_rows: int) -> None:
    note(case.text())
    case.check_batches(batch_rows)


@given(language_cases())
def test_without_confidences_the_signatures_and_ranges_are_the_same(case: LanguageCase) -> None:
    note(case.text())
    table = case.trace.table()
    with_confidence = case.rows(uc.match(table, case.text()))
    expected = {key: replace(row, confidence=None) for key, row in with_confidence.items()}
    assert_same(case.rows(uc.match(table, case.text(), confidence=False)), expected)


@given(language_cases(), st.sampled_from([0.05, 0.2, 0.5, 0.9, 1.0]))
def test_having_keeps_the_likely_ones(case: LanguageCase, least: float) -> None:
    note(case.text())
    table = case.trace.table()
    every = case.rows(uc.match(table, case.text()))
    kept = case.rows(uc.match(table, f"{case.text()} HAVING CONFIDENCE >= {least}"))
    # A confidence of 1/2 may end in 0.49999999999999994.
    passing = least * (1.0 - RELATIVE_ERROR)
    assert_same(kept, {key: row for key, row in every.items() if (row.confidence or 0.0) >= passing})


@given(language_cases(), st.data())
def test_the_order_of_the_rows_does_not_matter(case: LanguageCase, data: st.DataObject) -> None:
    note(case.text())
    shuffled = Trace(tuple(data.draw(st.permutations(case.trace.events))), case.trace.types)
    assert_same(
        case.rows(uc.match(shuffled.table(), case.text())),
        case.rows(uc.match(case.trace.table(), case.text())),
    )


@given(language_cases())
def test_ordered_by_confidence_and_then_signature(case: LanguageCase) -> None:
    note(case.text())
    table = case.trace.table()
    result = uc.match(table, f"{case.text()} ORDER BY CONFIDENCE DESC")
    variables = [component.variable for component in case.components if not component.negated]
    keys = [
        (-significant(row["confidence"]), *(row[name] for name in variables)) for row in result.to_pylist()
    ]
    assert keys == sorted(keys)
    best = uc.match(table, f"{case.text()} ORDER BY CONFIDENCE DESC LIMIT 2")
    assert best.equals(result.slice(0, 2).combine_chunks()) or best.to_pylist() == result.to_pylist()[:2]


@given(language_cases(asked=False), st.sampled_from([2**59, -(2**60)]))
def test_times_far_from_zero(case: LanguageCase, shift: int) -> None:
    note(case.text())
    rows = case.rows(uc.match(case.trace.table(shift=shift), case.text()))
    moved = {
        key: replace(row, range_lower=row.range_lower - shift, range_upper=row.range_upper - shift)
        for key, row in rows.items()
    }
    assert_answer(moved, case.answer())


@given(language_cases(asked=False), st.data())
def test_partitions_too_far_apart_for_one_time_line(case: LanguageCase, data: st.DataObject) -> None:
    shifts = [data.draw(st.sampled_from([0, 0, 2**60, -(2**60)])) for _ in case.trace.events]
    events = tuple(
        replace(event, lower=event.lower + shift, upper=event.upper + shift)
        for event, shift in zip(case.trace.events, shifts, strict=True)
    )
    moved = replace(case, trace=Trace(events, case.trace.types))
    note(moved.text())
    moved.check()


@given(language_cases(), st.integers(0, 3))
def test_max_matches_stops_exactly_above_the_limit(case: LanguageCase, limit: int) -> None:
    note(case.text())
    found: list[Match] = case.answer()
    if len(found) > limit:
        with pytest.raises(uc.MatchLimitError):
            uc.match(case.trace.table(), case.text(), max_matches=limit)
    else:
        assert uc.match(case.trace.table(), case.text(), max_matches=limit).num_rows == len(found)


@given(language_cases())
def test_explain_takes_every_query(case: LanguageCase) -> None:
    note(case.text())
    assert uc.explain(case.text())
    assert uc.explain(case.text(), case.trace.table())
