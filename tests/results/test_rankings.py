"""Thresholds, rankings and ties at their edges: neither the method nor float64 decides them (SEMANTICS 7)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import assert_answer, rows_of, significant
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.oracle.outputs import by_falling_confidence, having, is_clear, non_overlapping
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.results.ranking import least_passing, least_ranked_as, passing, ranked
from uncertain_cep.testing.model import Match

EVALUATIONS = st.sampled_from(["auto", "query_order", "any_state", "selectivity", "point"])
_FACTORS = (1 - 3e-9, 1.0, 1 + 5e-10, 1 + 9e-10, 1 + 2e-9)
_PMF_SCALES = (1.0, 1 + 9e-10, 1 - 9e-10, 1 + 4e-16)


@st.composite
def thresholds(draw: st.DrawFn, matches: list[Match]) -> str:
    """Draw a threshold at, a little above or a little below a confidence that occurs."""
    confidence = float(draw(st.sampled_from([match.confidence for match in matches] or [Fraction(1, 2)])))
    return repr(min(confidence * draw(st.sampled_from(_FACTORS)), 1.0))


def unclear(match: Match, threshold: str) -> bool:
    """Return whether rounding decides if a match passes, even with the tolerance."""
    edge = Fraction(threshold) * (1 - Fraction(1, 10**9))
    return abs(match.confidence - edge) <= edge / 10**12


def distinct(matches: list[Match]) -> bool:
    """Return whether no two partitions have matches of the same ids, whose order is open."""
    return len({match.signature for match in matches}) == len(matches)


def scaled_pmfs(case: Case | LanguageCase | NestedCase, scale: float) -> pa.Table:
    """Return a case's trace with pmfs that do not quite sum to 1."""
    table = case.trace.table()
    if "pmf" not in table.column_names:
        return table
    pmfs = [None if pmf is None else [p * scale for p in pmf] for pmf in table["pmf"].to_pylist()]
    return table.set_column(table.column_names.index("pmf"), "pmf", pa.array(pmfs, pa.list_(pa.float64())))


@given(st.data(), cases(), EVALUATIONS)
def test_having_at_a_confidence_that_occurs(data: st.DataObject, case: Case, evaluation: str) -> None:
    matches = case.answer()
    threshold = data.draw(thresholds(matches))
    assume(not any(unclear(match, threshold) for match in matches))
    clause = f"HAVING CONFIDENCE >= {threshold}"
    note(case.script(clause))
    found = uc.match(case.trace.table(), case.text(clause), evaluation=evaluation)
    assert_answer(rows_of(found, case), having(matches, Fraction(threshold)))


@given(st.data(), cases())
def test_having_of_a_stream(data: st.DataObject, case: Case) -> None:
    matches = case.answer()
    threshold = data.draw(thresholds(matches))
    assume(not any(unclear(match, threshold) for match in matches))
    clause = f"HAVING CONFIDENCE >= {threshold}"
    note(case.script(clause))
    table = case.trace.table()
    evaluation = data.draw(st.sampled_from(["auto", "sliced"]))
    matcher = uc.IncrementalMatcher(case.text(clause), table.schema, evaluation=evaluation)
    found = pa.Table.from_batches([matcher.push(table), matcher.close()])
    assert_answer(rows_of(found, case), having(matches, Fraction(threshold)))


@given(st.data(), cases(), st.integers(1, 5), EVALUATIONS)
def test_every_clause_in_its_order(data: st.DataObject, case: Case, limit: int, evaluation: str) -> None:
    """HAVING, then NON OVERLAPPING, then ORDER BY, then LIMIT; any of them may be missing."""
    matches = case.answer()
    assume(distinct(matches))
    assume(all(is_clear(match.confidence) for match in matches))
    threshold = data.draw(st.one_of(st.none(), thresholds(matches)))
    assume(threshold is None or not any(unclear(match, threshold) for match in matches))
    apart = data.draw(st.booleans())
    wanted = matches if threshold is None else having(matches, Fraction(threshold))
    wanted = non_overlapping(wanted) if apart else wanted
    wanted = by_falling_confidence(wanted)[:limit]
    head = "" if threshold is None else f"HAVING CONFIDENCE >= {threshold}"
    tail = ("OUTPUT NON OVERLAPPING " if apart else "") + f"ORDER BY CONFIDENCE DESC LIMIT {limit}"
    note(case.script(head, tail))
    rows = rows_of(uc.match(case.trace.table(), case.text(head, tail), evaluation=evaluation), case)
    assert_answer(rows, wanted)
    assert list(rows) == [(match.partition, match.signature) for match in wanted]


@given(cases(), st.sampled_from(_PMF_SCALES), EVALUATIONS)
def test_no_confidence_exceeds_one(case: Case, scale: float, evaluation: str) -> None:
    """A pmf's surplus or deficit is taken from all its ticks."""
    note(case.script())
    table = scaled_pmfs(case, scale)
    found = uc.match(table, case.text(), evaluation=evaluation)
    assert_close(rows_of(found, case), case.answer())
    matcher = uc.IncrementalMatcher(case.text(), table.schema)
    streamed = pa.Table.from_batches([matcher.push(table), matcher.close()])
    assert_close(rows_of(streamed, case), case.answer())


def assert_close(rows: Any, matches: list[Match]) -> None:
    """Assert the answer, with confidences far closer than a pmf may be off."""
    assert_answer(rows, matches)
    for match in matches:
        confidence = rows[match.partition, match.signature].confidence
        assert confidence <= 1.0
        assert math.isclose(confidence, match.confidence, rel_tol=1e-12)


@given(st.one_of(language_cases(), nested_cases("OAS")), st.sampled_from(_PMF_SCALES))
def test_no_confidence_of_any_pattern_exceeds_one(case: LanguageCase | NestedCase, scale: float) -> None:
    note(case.text())
    assert_close(case.rows(uc.match(scaled_pmfs(case, scale), case.text())), case.answer())


@given(cases(max_components=3), st.sampled_from(_PMF_SCALES))
def test_certain_matches_whatever_their_pmfs_sum_to(case: Case, scale: float) -> None:
    """Times so far apart that the order is certain: nothing but the pmfs decides the confidence."""
    events = tuple(
        replace(event, id=type(event.id)(n), lower=1000 * n, upper=1000 * n + event.upper - event.lower)
        for n, event in enumerate(case.trace.events)
    )
    case = replace(case, trace=Trace(events, case.trace.types), window=100_000, conditions=(), agree=())
    note(case.script())
    table = scaled_pmfs(case, scale)
    found = uc.match(table, case.text())
    assert all(1 - 1e-12 <= value <= 1.0 for value in found["confidence"].to_pylist())
    assert uc.match(table, case.text("HAVING CONFIDENCE >= 1")).num_rows == found.num_rows


def test_a_pmf_that_sums_to_a_little_more_than_one() -> None:
    table = pa.table(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": [0, 5],
            "upper": [1, 5],
            "pmf": [[0.5, 0.5 + 9e-10], None],
        }
    )
    for evaluation in ("auto", "any_state", "point"):
        found = uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 9", evaluation=evaluation)
        assert found["confidence"].to_pylist() == [pytest.approx(1.0, rel=1e-14)]
        assert found["confidence"].to_pylist()[0] <= 1.0


def test_a_certain_match_passes_one_though_its_sum_falls_short() -> None:
    pmf = [0.1] * 10
    assert reduce(add, pmf) < 1.0
    table = pa.table(
        {"type": ["A", "B"], "id": [1, 2], "lower": [0, 20], "upper": [9, 29], "pmf": [pmf, pmf]}
    )
    query = "PATTERN SEQ(A a, B b) WITHIN 99 HAVING CONFIDENCE >= 1"
    assert uc.match(table, query).num_rows == 1


def _tied() -> pa.Table:
    """Return two events A before B whose probabilities to be early are 0.3 and 0.1 + 0.2, which is more."""
    return pa.table(
        {
            "type": ["A", "A", "B"],
            "id": [9, 10, 1],
            "lower": [0, 0, 2],
            "upper": [3, 3, 2],
            "pmf": [[0.3, 0.0, 0.7, 0.0], [0.1, 0.2, 0.7, 0.0], None],
        }
    )


@pytest.mark.parametrize("clause", ["ORDER BY CONFIDENCE DESC", "ORDER BY CONFIDENCE DESC LIMIT 1"])
def test_ties_are_ties_though_float64_sees_a_difference(clause: str) -> None:
    table = _tied()
    for rows in (table, table.take([1, 0, 2])):
        found = uc.match(rows, f"PATTERN SEQ(A a, B b) WITHIN 9 {clause}")
        assert found["a"].to_pylist()[0] == 9


def test_the_smaller_id_is_kept_of_two_that_overlap() -> None:
    found = uc.match(_tied(), "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON OVERLAPPING")
    assert found["a"].to_pylist() == [9]


def test_nulls_come_last_and_lists_element_by_element() -> None:
    table = pa.table(
        {
            "type": ["A", "C", "C", "D"],
            "id": ["é", "b", "a", "d"],
            "lower": [0, 2, 4, 6],
            "upper": [0, 2, 4, 6],
        }
    )
    query = "PATTERN SEQ(A a, OR(C+ c[], D d)) WITHIN 99 ORDER BY CONFIDENCE DESC"
    found = uc.match(table, query).select(["c", "d"]).to_pylist()
    assert found == [
        {"c": ["a"], "d": None}, {"c": ["b"], "d": None}, {"c": ["b", "a"], "d": None}, {"c": None, "d": "d"},
    ]  # fmt: skip


@given(st.floats(1e-11, 1.0))
def test_rounding_to_digits(confidence: float) -> None:
    rank = float(ranked(np.array([confidence]))[0])
    # Half a unit, and what float64 adds to it, is all that the two may differ by where it lies in between.
    assert rank == significant(confidence) or not is_clear(Fraction(confidence), Fraction(1, 10**15))
    assert float(ranked(np.array([rank]))[0]) == rank


@given(st.floats(0.0, 1.0 + 1e-12), st.floats(0.0, 1.0))
def test_bounds_of_ranks_and_thresholds(confidence: float, threshold: float) -> None:
    rank = float(ranked(np.array([confidence]))[0])
    assert rank <= 1.0
    assert confidence >= least_ranked_as(rank)
    assert bool(passing(np.array([confidence]), threshold)[0]) == (confidence >= least_passing(threshold))
    assert bool(passing(np.array([threshold]), threshold)[0])
    assert (confidence >= 1e-300 and threshold >= 1e-300) or least_passing(threshold) <= threshold
    if threshold > 1e-300:
        assert not passing(np.array([threshold * (1 - 2 * CONFIDENCE_TOLERANCE)]), threshold)[0]
