"""HAVING, ORDER BY and LIMIT choose among the rows of the full answer and never change one."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import (
    RELATIVE_ERROR,
    Row,
    assert_answer,
    assert_same,
    by_key,
    rows_of,
    significant,
)
from tests.oracle.outputs import having
from uncertain_cep.testing.model import Key
from uncertain_cep.testing.worlds import sort_key

_THRESHOLDS = st.sampled_from(["0", "0.1", "0.25", "50%", "0.9", "1", "1.0", "0.037"])


def _fraction(text: str) -> Fraction:
    return Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)


@given(cases(), _THRESHOLDS)
def test_having_keeps_the_rows_at_or_above_the_threshold(case: Case, threshold: str) -> None:
    clause = f"HAVING CONFIDENCE >= {threshold}"
    note(case.script(clause))
    matches = case.answer()
    # On the threshold a rounding error decides; 0 and 1 are exact.
    assume(all(match.confidence in (0, 1) or match.confidence != _fraction(threshold) for match in matches))
    found = uc.match(case.trace.table(), case.text(clause))
    assert_answer(rows_of(found, case), having(matches, _fraction(threshold)))


@given(cases(), _THRESHOLDS)
def test_having_is_exact_where_float64_is(case: Case, threshold: str) -> None:
    """Uniform intervals: a quotient of small counts, rounded once, so the threshold itself is kept."""
    clause = f"HAVING CONFIDENCE >= {threshold}"
    uniform = Trace(tuple(replace(event, pmf=None) for event in case.trace.events), case.trace.types)
    case = replace(case, trace=uniform)
    note(case.script(clause))
    found = uc.match(case.trace.table(), case.text(clause))
    assert_answer(rows_of(found, case), having(case.answer(), _fraction(threshold)))


@given(cases(), _THRESHOLDS)
def test_having_needs_no_confidence_column(case: Case, threshold: str) -> None:
    clause = f"HAVING CONFIDENCE >= {threshold}"
    note(case.script(clause))
    table = case.trace.table()
    found = uc.match(table, case.text(clause), confidence=False)
    assert "confidence" not in found.column_names
    assert rows_of(found, case).keys() == rows_of(uc.match(table, case.text(clause)), case).keys()


@given(cases(), st.integers(1, 5))
def test_limit_returns_any_of_the_rows(case: Case, limit: int) -> None:
    clause = f"LIMIT {limit}"
    note(case.script("", clause))
    matches = case.answer()
    rows = rows_of(uc.match(case.trace.table(), case.text("", clause)), case)
    assert len(rows) == min(limit, len(matches))
    assert_answer(rows, [by_key(matches)[key] for key in rows])


@given(cases(), st.integers(1, 5), st.sampled_from(["", "HAVING CONFIDENCE >= 0.2"]))
def test_order_and_limit_return_the_best(case: Case, limit: int, threshold: str) -> None:
    clause = f"ORDER BY CONFIDENCE DESC LIMIT {limit}"
    note(case.script(threshold, clause))
    table = case.trace.table()
    everything = rows_of(uc.match(table, case.text(threshold)), case)
    result = uc.match(table, case.text(threshold, clause))
    rows = rows_of(result, case)
    assert_same(rows, {key: everything[key] for key in rows})
    expected = sorted(everything.items(), key=_best_first)[:limit]
    got = [_confidence(row) for row in rows.values()]
    rank = [significant(confidence) for confidence in got]
    assert rank == sorted(rank, reverse=True)
    assert len(got) == len(expected)
    for confidence, (_, row) in zip(got, expected, strict=True):
        assert math.isclose(confidence, _confidence(row), rel_tol=RELATIVE_ERROR)
    if not _open(everything):
        assert list(rows) == [key for key, _ in expected]


@given(cases(), st.integers(1, 5), st.sampled_from([1, 2, 7]))
def test_batches_of_the_best(case: Case, limit: int, batch_rows: int) -> None:
    clause = f"ORDER BY CONFIDENCE DESC LIMIT {limit}"
    note(case.script("", clause))
    table = case.trace.table()
    whole = uc.match(table, case.text("", clause))
    batches = list(uc.iter_matches(table, case.text("", clause), batch_rows=batch_rows))
    assert pa.Table.from_batches(batches, whole.schema).to_pylist() == whole.to_pylist()


@given(cases(), st.integers(1, 5))
def test_the_best_need_no_confidence_column(case: Case, limit: int) -> None:
    clause = f"ORDER BY CONFIDENCE DESC LIMIT {limit}"
    note(case.script("", clause))
    table = case.trace.table()
    found = uc.match(table, case.text("", clause), confidence=False)
    assert "confidence" not in found.column_names
    assert list(rows_of(found, case)) == list(rows_of(uc.match(table, case.text("", clause)), case))


def _confidence(row: Row) -> float:
    assert row.confidence is not None
    return row.confidence


def _best_first(item: tuple[Key, Row]) -> tuple[float, object, str]:
    (partition, signature), row = item
    return -significant(_confidence(row)), sort_key(signature), repr(partition)


def _open(rows: dict[Key, Row]) -> bool:
    """Tell whether two partitions with the same ids leave the order of two rows open."""
    return len({signature for _, signature in rows}) < len(rows)
