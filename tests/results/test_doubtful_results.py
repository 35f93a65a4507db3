"""Results of matches of events that may not have happened: the oracle's, by every way there is."""

from __future__ import annotations

import warnings
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, cases
from tests.cases.comparison import assert_answer
from tests.cases.cut import REPEATED, THREADS, cut
from tests.cases.existence import doubtful
from tests.cases.kernels import running
from tests.cases.language import STRATEGIES, LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases, reading_cases
from tests.cases.sampling import sampled_from
from tests.cases.strategies import answer_of, text_of
from tests.oracle.outputs import by_falling_confidence, having
from tests.results.test_counts_and_overlaps import assert_counts, clause_of, disjoint_cases, groups
from tests.results.test_posteriors import check
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.testing.model import Strategy

_ANY = st.one_of(doubtful(language_cases()), doubtful(nested_cases("AOS")))
_EVERY = sampled_from([None, 1, 2, 7])


@given(_ANY, st.data())
def test_a_threshold_that_is_just_reached(case: LanguageCase | NestedCase, data: st.DataObject) -> None:
    note(case.text())
    every = case.answer()
    least = float(data.draw(st.sampled_from([match.confidence for match in every] or [Fraction(1, 2)])))
    kept = case.rows(uc.match(case.trace.table(), f"{case.text()} HAVING CONFIDENCE >= {least!r}"))
    assert_answer(kept, having(every, Fraction(least)))
    above = least * (1 + 3 * CONFIDENCE_TOLERANCE)
    if above <= 1:
        kept = case.rows(uc.match(case.trace.table(), f"{case.text()} HAVING CONFIDENCE >= {above!r}"))
        assert kept.keys() == {
            (match.partition, match.signature) for match in every if match.confidence >= above * (1 - 1e-9)
        }


@given(_ANY, st.integers(1, 4))
def test_the_best(case: LanguageCase | NestedCase, limit: int) -> None:
    note(case.text())
    found = uc.match(case.trace.table(), f"{case.text()} ORDER BY CONFIDENCE DESC LIMIT {limit}")
    expected = by_falling_confidence(case.answer())[:limit]
    confidences = found["confidence"].to_pylist()
    assert len(confidences) == len(expected)
    for confidence, match in zip(confidences, expected, strict=True):
        assert abs(confidence - match.confidence) <= 1e-9 * confidence


@given(_ANY, THREADS, REPEATED, sampled_from([1, 3, 1000]))
def test_threads_batches_and_plain_python(
    case: LanguageCase | NestedCase, threads: int, repeated: float, batch_rows: int
) -> None:
    note(case.text())
    table = case.trace.table()
    with cut(repeated):
        case.check(threads=threads)
    with running("plain"):
        case.check()
    schema = uc.match(table, case.text()).schema
    batches = uc.iter_matches(table, case.text(), batch_rows=batch_rows)
    whole = case.rows(pa.Table.from_batches(batches, schema))
    assert_answer(whole, case.answer())
    without = case.rows(uc.match(table, case.text(), confidence=False))
    ranges = {key: (row.range_lower, row.range_upper) for key, row in whole.items()}
    assert {key: (row.range_lower, row.range_upper) for key, row in without.items()} == ranges


@given(st.data(), doubtful(st.one_of(cases(), disjoint_cases())), _EVERY, sampled_from(STRATEGIES[:2]))
def test_expected_counts(data: st.DataObject, case: Case, every: int | None, strategy: Strategy) -> None:
    by = data.draw(groups(case))
    clause = clause_of(by, every)
    note(case.script("", clause))
    text = f"{text_of(case, strategy)} {clause}"
    matches = answer_of(case, strategy)
    assert_counts(uc.match(case.trace.table(), text), matches, case, by, every)


@pytest.mark.parametrize("clause", ["BY k", "EVERY 1", "BY k EVERY 1"])
def test_what_never_happened_is_in_no_group(clause: str) -> None:
    columns = {"type": ["A", "B"], "id": [1, 2], "lower": [0, 1], "upper": [0, 1], "k": [2, 2]}
    table = pa.table(columns | {"probability": [1.0, 0.0]})
    query = f"PATTERN SEQ(A a, B b) WHERE [k] WITHIN 2 RETURN EXPECTED COUNT {clause}"
    with warnings.catch_warnings():
        # Such events are there, and meet all that is asked of them.
        warnings.simplefilter("error")
        assert uc.match(table, query).num_rows == 0


@given(doubtful(st.one_of(nested_cases("SAO"), reading_cases())), st.booleans())
def test_posteriors(case: NestedCase, listed: bool) -> None:
    note(case.text())
    check(case, listed)


@given(doubtful(cases()))
def test_the_order_of_joins_does_not_matter(case: Case) -> None:
    note(case.script())
    table, text = case.trace.table(), text_of(case, "skip_till_next_match")
    one = uc.match(table, text).sort_by([(name, "ascending") for name in case.variables])
    other = uc.match(table, text, planner="dp_bushy").sort_by(
        [(name, "ascending") for name in case.variables]
    )
    assert one.num_rows == other.num_rows
    assert one.drop(["confidence"]).equals(other.drop(["confidence"]))
