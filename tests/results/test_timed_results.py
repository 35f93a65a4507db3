"""Conditions on times in what is made of matches: posteriors, counts, the best, streams."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.comparison import assert_same
from tests.cases.language import LanguageCase
from tests.cases.times import timed_cases
from uncertain_cep.testing.worlds import times_given


@given(timed_cases(most=4))
def test_posteriors_are_the_laws_of_times(case: LanguageCase) -> None:
    note(case.text())
    events = case.trace.table()
    matches = uc.match(events, case.text())
    laws = times_given(case.query(), case.trace.events)
    assert len(laws) == matches.num_rows
    found = uc.posteriors(matches, events, case.text()).to_pylist()
    means = [row["mean"] for row in found]
    expected = [
        float(sum(tick * weight for tick, weight in law.items()))
        for key in case.rows(matches)
        for law in laws[key]
    ]
    assert sorted(means) == pytest.approx(sorted(expected))


@given(timed_cases(), st.sampled_from([0.05, 0.2, 0.5, 0.9, 1.0]))
def test_having_keeps_the_likely_ones(case: LanguageCase, least: float) -> None:
    note(case.text())
    table = case.trace.table()
    every = case.rows(uc.match(table, case.text()))
    kept = case.rows(uc.match(table, f"{case.text()} HAVING CONFIDENCE >= {least}"))
    assert_same(kept, {key: row for key, row in every.items() if (row.confidence or 0.0) >= least})


@given(timed_cases())
def test_the_best_are_the_first(case: LanguageCase) -> None:
    note(case.text())
    table = case.trace.table()
    result = uc.match(table, f"{case.text()} ORDER BY CONFIDENCE DESC")
    best = uc.match(table, f"{case.text()} ORDER BY CONFIDENCE DESC LIMIT 2")
    assert best.to_pylist() == result.to_pylist()[:2]


@given(timed_cases(), st.sampled_from(["", " EVERY 2"]))
def test_expected_counts_add_up(case: LanguageCase, every: str) -> None:
    note(case.text())
    table = case.trace.table()
    total = sum(uc.match(table, case.text())["confidence"].to_pylist())
    counts = uc.match(table, f"{case.text()} RETURN EXPECTED COUNT{every}")
    assert sum(counts["expected_count"].to_pylist()) == pytest.approx(total)


@given(timed_cases(), st.booleans())
def test_without_confidences_the_signatures_and_ranges_are_the_same(
    case: LanguageCase, by_batches: bool
) -> None:
    note(case.text())
    table = case.trace.table()
    with_confidence = case.rows(uc.match(table, case.text()))
    expected = {key: replace(row, confidence=None) for key, row in with_confidence.items()}
    if by_batches:
        schema = uc.match(table, case.text(), confidence=False).schema
        batches = list(uc.iter_matches(table, case.text(), confidence=False, batch_rows=2))
        found = pa.Table.from_batches(batches, schema)
    else:
        found = uc.match(table, case.text(), confidence=False)
    assert_same(case.rows(found), expected)
