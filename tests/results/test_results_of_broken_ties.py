"""Posteriors, expected counts, batches and the best matches where sequences break ties."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import in_sequence
from tests.cases.comparison import assert_same
from tests.cases.existence import doubtful
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.times import timed_cases
from tests.results.test_posteriors import check


@given(in_sequence(st.one_of(nested_cases("SAO"), timed_cases())), st.booleans())
def test_posteriors_are_those_of_the_worlds(case: NestedCase, listed: bool) -> None:
    note(case.text())
    note(str(case.trace.table().to_pylist()))
    check(case, listed)


@given(in_sequence(st.one_of(language_cases(), doubtful(nested_cases("SA")))), st.integers(1, 7))
def test_expected_counts_by_when_matches_begin(case: NestedCase | LanguageCase, every: int) -> None:
    note(case.text())
    note(str(case.trace.table().to_pylist()))
    expected: dict[int, Fraction] = {}
    for match in case.answer():
        for tick, share in match.first_times.items():
            bucket = tick // every * every
            expected[bucket] = expected.get(bucket, Fraction(0)) + share
    rows = uc.match(case.trace.table(), case.text(f"RETURN EXPECTED COUNT EVERY {every}")).to_pylist()
    assert {row["bucket"]: pytest.approx(row["expected_count"], rel=1e-9) for row in rows} == expected


@given(in_sequence(st.one_of(language_cases(), nested_cases("SA"))), st.integers(1, 3), st.integers(1, 3))
def test_batches_threads_and_the_best(case: NestedCase | LanguageCase, batch_rows: int, threads: int) -> None:
    note(case.text())
    table, query = case.trace.table(), case.text()
    whole = uc.match(table, query)
    case.check_batches(batch_rows)
    case.check(threads=threads)
    best = case.text("ORDER BY CONFIDENCE DESC LIMIT 2")
    assert uc.match(table, best).num_rows == min(whole.num_rows, 2)
    above_half = uc.match(table, case.text("HAVING CONFIDENCE >= 0.5"))
    kept = whole.filter(
        pa.array([found >= 0.5 - 1e-12 for found in whole["confidence"].to_pylist()], pa.bool_())
    )
    assert_same(case.rows(above_half), case.rows(kept))
    without = uc.match(table, query, confidence=False)
    assert without.num_rows == whole.num_rows
