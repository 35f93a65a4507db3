"""Output controls over Kleene components, negation, contiguity, sets and OR."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.comparison import RELATIVE_ERROR, assert_answer
from tests.cases.cut import REPEATED, cut
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.oracle.outputs import by_falling_confidence, expected_counts, is_clear, non_overlapping

_CASES = st.one_of(language_cases(), nested_cases("AAS"), nested_cases("OAS"))
_AnyCase = LanguageCase | NestedCase


def _distinct(case: _AnyCase) -> None:
    """Leave out the cases in which ids of two partitions, or the twelfth digit, could decide."""
    matches = case.answer()
    assume(all(is_clear(match.confidence) for match in matches))
    assume(len({match.signature for match in matches}) == len(matches))


@given(_CASES)
def test_non_overlapping(case: _AnyCase) -> None:
    text = case.text("OUTPUT NON OVERLAPPING")
    note(text)
    # An equality of all components, drawn by chance, makes partitions of which the case does not know.
    assume(not re.search(r"\(\w+(\[\w?\])?\.x = \w+(\[\w?\])?\.x\)", text))
    _distinct(case)
    found = uc.match(case.trace.table(), text)
    assert_answer(case.rows(found), non_overlapping(case.answer()))


@given(_CASES, st.integers(1, 4), st.sampled_from([1, 2, 5]), REPEATED)
def test_the_best(case: _AnyCase, limit: int, threads: int, repeated: float) -> None:
    text = case.text(f"ORDER BY CONFIDENCE DESC LIMIT {limit}")
    note(text)
    _distinct(case)
    with cut(repeated):
        found = case.rows(uc.match(case.trace.table(), text, threads=threads))
    best = by_falling_confidence(case.answer())[:limit]
    assert_answer(found, best)
    assert list(found) == [(match.partition, match.signature) for match in best]


@given(_CASES, st.sampled_from([None, 1, 2, 3, 7, 1000]), st.sampled_from([1, 2, 5]), REPEATED)
def test_expected_counts(case: _AnyCase, every: int | None, threads: int, repeated: float) -> None:
    by = case.query().partition
    clause = f"RETURN EXPECTED COUNT{' BY ' + ', '.join(by) if by else ''}"
    text = case.text(clause if every is None else f"{clause} EVERY {every}")
    note(text)
    with cut(repeated):
        rows = uc.match(case.trace.table(), text, threads=threads).to_pylist()
    found = {(tuple(row[name] for name in by), row.get("bucket")): row["expected_count"] for row in rows}
    assert len(found) == len(rows)
    counts = expected_counts(case.answer(), case.query().partition, by, every)
    if not counts and not by and every is None:
        counts = {((), None): Fraction(0)}
    assert found.keys() == counts.keys()
    for key, value in counts.items():
        assert math.isclose(found[key], value, rel_tol=RELATIVE_ERROR)
