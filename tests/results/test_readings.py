"""OR of negations: readings that give one signature are one match, in the worlds of any of them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.comparison import RELATIVE_ERROR, assert_answer
from tests.cases.nested import NestedCase, reading_cases
from tests.cases.sampling import FEWER
from tests.oracle.outputs import by_falling_confidence, expected_counts, non_overlapping
from tests.streaming.arrivals import arrivals
from tests.streaming.test_sliced import streamed
from tests.weighers.forcing import leave_out
from uncertain_cep.operators import backtracking as growing
from uncertain_cep.weighers.held_ends import HeldChains

EVENTS = pa.table(
    {"type": ["A", "N", "M", "C"], "id": [1, 2, 3, 4], "lower": [0, 1, 2, 3], "upper": [0, 4, 3, 6]}
)
PATTERN = "PATTERN SEQ(A a, OR(!N n, !M m), C c) WITHIN 10"
ROW = {"a": 1, "c": 4, "range_lower": 0, "range_upper": 4, "confidence": 0.25}


@pytest.mark.parametrize("evaluation", ["auto", "query_order", "point"])
def test_one_signature_is_one_row(evaluation: str) -> None:
    assert uc.match(EVENTS, PATTERN, evaluation=evaluation).to_pylist() == [ROW]
    without = uc.match(EVENTS, PATTERN, evaluation=evaluation, confidence=False).to_pylist()
    assert without == [{name: value for name, value in ROW.items() if name != "confidence"}]


def test_a_tree_over_what_the_readings_share() -> None:
    assert uc.match(EVENTS, PATTERN, planner="(c a)").to_pylist() == [ROW]


@pytest.mark.parametrize("evaluation", ["any_state", "selectivity"])
def test_runs_refuse_it(evaluation: str) -> None:
    with pytest.raises(uc.OptionError, match="does not support negation: leave evaluation= out"):
        uc.match(EVENTS, PATTERN, evaluation=evaluation)


@pytest.mark.parametrize(("least", "rows"), [(0.25, 1), (0.19, 1), (0.2500001, 0)])
def test_a_threshold_that_no_reading_passes_alone(least: float, rows: int) -> None:
    assert uc.match(EVENTS, f"{PATTERN} HAVING CONFIDENCE >= {least}").num_rows == rows


def test_counts_are_those_of_the_union() -> None:
    found = uc.match(EVENTS, f"{PATTERN} RETURN EXPECTED COUNT EVERY 2").to_pylist()
    assert found == [{"bucket": 0, "expected_count": 0.25}]


def test_a_negation_that_ends_one_reading_does_not_end_the_other() -> None:
    table = pa.table({"type": ["A", "N", "C"], "id": [1, 2, 3], "lower": [0, 1, 2], "upper": [0, 1, 2]})
    assert uc.match(table, PATTERN).column("confidence").to_pylist() == [1.0]
    assert not uc.match(table, "PATTERN SEQ(A a, OR(!N n, !(M|N) m), C c) WITHIN 10").num_rows


@given(reading_cases())
def test_by_the_default_evaluation(case: NestedCase) -> None:
    note(case.text())
    case.check()


@given(reading_cases(linear=True))
def test_by_points(case: NestedCase) -> None:
    note(case.text())
    case.check(evaluation="point")


@given(reading_cases(), st.sampled_from(["dp_bushy", "greedy"]))
def test_by_other_plans(case: NestedCase, planner: str) -> None:
    note(case.text())
    case.check(planner=planner)


@given(reading_cases(), st.sampled_from([1, 2, 5]))
def test_batches_hold_the_same_rows(case: NestedCase, batch_rows: int) -> None:
    note(case.text())
    case.check_batches(batch_rows)


@given(reading_cases())
def test_ranges_without_confidences(case: NestedCase) -> None:
    note(case.text())
    found = case.rows(uc.match(case.trace.table(), case.text(), confidence=False))
    expected = {(match.partition, match.signature): match for match in case.answer()}
    assert found.keys() == expected.keys()
    for key, row in found.items():
        assert (row.range_lower, row.range_upper) == (expected[key].range_lower, expected[key].range_upper)


@given(reading_cases(), st.data())
def test_a_threshold_that_is_just_reached(case: NestedCase, data: st.DataObject) -> None:
    note(case.text())
    answer = case.answer()
    reached = sorted({match.confidence for match in answer}) or [Fraction(1, 2)]
    least = data.draw(st.sampled_from(reached))
    found = uc.match(case.trace.table(), case.text(f"HAVING CONFIDENCE >= {float(least) * (1 - 1e-6)!r}"))
    assert_answer(case.rows(found), [match for match in answer if match.confidence >= least])


def _distinct(case: NestedCase) -> None:
    """Leave out the cases in which rounding, or ids of two partitions, could decide."""
    matches = case.answer()
    confidences = sorted({match.confidence for match in matches})
    assume(all(b - a > 1e-9 for a, b in pairwise(confidences)))
    assume(len({match.signature for match in matches}) == len(matches))


@given(reading_cases(), st.integers(1, 3))
def test_the_best(case: NestedCase, limit: int) -> None:
    text = case.text(f"ORDER BY CONFIDENCE DESC LIMIT {limit}")
    note(text)
    _distinct(case)
    found = case.rows(uc.match(case.trace.table(), text))
    best = by_falling_confidence(case.answer())[:limit]
    assert_answer(found, best)
    assert list(found) == [(match.partition, match.signature) for match in best]


@given(reading_cases().filter(lambda case: not case.asked))
def test_non_overlapping(case: NestedCase) -> None:
    text = case.text("OUTPUT NON OVERLAPPING")
    note(text)
    _distinct(case)
    assert_answer(case.rows(uc.match(case.trace.table(), text)), non_overlapping(case.answer()))


@given(reading_cases(), st.integers(0, 2))
def test_most_matches(case: NestedCase, most: int) -> None:
    note(case.text())
    expected = len(case.answer())
    if expected > most:
        with pytest.raises(uc.MatchLimitError):
            uc.match(case.trace.table(), case.text(), max_matches=most)
    else:
        assert uc.match(case.trace.table(), case.text(), max_matches=most).num_rows == expected
    some = uc.match(case.trace.table(), case.text(f"LIMIT {most + 1}"))
    assert some.num_rows == min(most + 1, expected)


@given(reading_cases(), st.sampled_from([None, 1, 2, 5]))
def test_expected_counts(case: NestedCase, every: int | None) -> None:
    by = case.query().partition
    clause = f"RETURN EXPECTED COUNT{' BY ' + ', '.join(by) if by else ''}"
    text = case.text(clause if every is None else f"{clause} EVERY {every}")
    note(text)
    rows = uc.match(case.trace.table(), text).to_pylist()
    found = {(tuple(row[name] for name in by), row.get("bucket")): row["expected_count"] for row in rows}
    counts = expected_counts(case.answer(), by, by, every)
    if not counts and not by and every is None:
        counts = {((), None): Fraction(0)}
    assert found.keys() == counts.keys()
    for key, value in counts.items():
        assert math.isclose(found[key], value, rel_tol=RELATIVE_ERROR)


@pytest.mark.parametrize("evaluation", ["sliced", "point"])
@FEWER
@given(data=st.data(), length=st.sampled_from([None, 1, 2, 7]))
def test_streams(evaluation: str, data: st.DataObject, length: int | None) -> None:
    case = data.draw(reading_cases(linear=evaluation == "point"))
    note(case.text())
    stream = data.draw(arrivals(case.trace.events))
    found = streamed(case.trace, stream, case.text(), length, evaluation)
    assert_answer(case.rows(found), case.answer())


def _crowd() -> pa.Table:
    lower = [0, 2, 5, 9, 10, 14, 18]
    return pa.table(
        {"type": ["A"] * 7, "id": list(range(7)), "lower": lower, "upper": [low + 59 for low in lower]}
    )


@pytest.mark.compiled
def test_estimates_are_near_and_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(HeldChains, monkeypatch)
    query = """PATTERN SEQ(!A l, A a, A b, A c, OR(!A n, !A o))
        WHERE l.id < a.id AND n.id > c.id WITHIN 100"""
    expected = {
        (row["a"], row["b"], row["c"]): row["confidence"] for row in uc.match(_crowd(), query).to_pylist()
    }
    monkeypatch.setattr(growing, "MOST_CONFIDENCE_STEPS", 400_000)
    with pytest.raises(uc.ConfidenceCostError, match="approximate="):
        uc.match(_crowd(), query)
    allowed = uc.match(_crowd(), query, approximate=uc.Approximation(0.06, seed=3)).to_pylist()
    assert {(row["a"], row["b"], row["c"]) for row in allowed} == set(expected)
    assert not all(row["exact"] for row in allowed)
    for row in allowed:
        truth = expected[row["a"], row["b"], row["c"]]
        assert row["std_error"] <= 0.061
        assert row["confidence"] == pytest.approx(truth, rel=1e-9, abs=5 * row["std_error"])
        assert (row["std_error"] == 0.0) == row["exact"]


def test_eight_alternatives_are_added_up_and_nine_refused() -> None:
    def pattern(count: int) -> str:
        return f"PATTERN SEQ(A a, OR({', '.join(f'!N n{k}' for k in range(count))}), C c) WITHIN 10"

    found = uc.match(EVENTS, pattern(8)).to_pylist()
    alone = uc.match(EVENTS, "PATTERN SEQ(A a, !N n, C c) WITHIN 10").to_pylist()
    assert found[0]["confidence"] == pytest.approx(alone[0]["confidence"], rel=1e-12)
    with pytest.raises(uc.QueryError, match="a sum of 511 terms, and at most 255 are added"):
        uc.match(EVENTS, pattern(9))


def test_explain_names_the_readings() -> None:
    text = uc.explain("PATTERN SEQ(A a, OR(!N n, SEQ(!M m, !N k)), C c) WITHIN 10", EVENTS)
    assert "without n, or without m and k: a match is one of any of them" in text
