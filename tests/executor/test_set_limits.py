"""Refusals of AND and OR, their words, and how plans with them are explained."""

from __future__ import annotations

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.errors import ConfidenceCostError, OptionError


def table(*events: tuple[str, int, int]) -> pa.Table:
    return pa.table(
        {
            "type": pa.array([kind for kind, _, _ in events], pa.string()),
            "id": pa.array(range(len(events)), pa.int64()),
            "lower": pa.array([lower for _, lower, _ in events], pa.int64()),
            "upper": pa.array([upper for _, _, upper in events], pa.int64()),
        }
    )


EVENTS = table(("A", 0, 4), ("B", 2, 6), ("C", 5, 9))


@pytest.mark.parametrize("evaluation", ["point", "any_state", "selectivity"])
def test_other_evaluations_know_no_sets_but_branches(evaluation: str) -> None:
    with pytest.raises(OptionError, match=rf"evaluation='{evaluation}' does not support event sets, AND"):
        uc.match(EVENTS, "PATTERN SEQ(AND(A a, B b), C c) WITHIN 9", evaluation=evaluation)
    query = "PATTERN SEQ(A a, OR(B b, C c)) WITHIN 9 ORDER BY CONFIDENCE DESC"
    found, expected = uc.match(EVENTS, query, evaluation=evaluation), uc.match(EVENTS, query)
    assert found.drop_columns("confidence").equals(expected.drop_columns("confidence"))
    assert found.column("confidence").to_pylist() == pytest.approx(expected.column("confidence").to_pylist())


@pytest.mark.parametrize("pattern", ["AND(A a, B b)", "OR(SEQ(A a, B b), C c)"])
def test_runs_over_streams_refuse_them(pattern: str) -> None:
    with pytest.raises(OptionError, match=r"does not support .* over a stream"):
        uc.IncrementalMatcher(f"PATTERN {pattern} WITHIN 9", EVENTS.schema, evaluation="selectivity")


@pytest.mark.compiled
def test_a_dear_confidence_names_the_match_and_what_to_do() -> None:
    long = table(("A", 0, 900), ("N", 0, 900), ("B", 0, 900), ("C", 0, 900))
    with pytest.raises(ConfidenceCostError, match=r"match \(a=0, b=2, c=3\).*beside other events"):
        uc.match(long, "PATTERN AND(SEQ(A a, !N n, B b), C c) WITHIN 900")


def test_a_set_has_a_most_number_of_events() -> None:
    many = table(("B", 0, 0), *(("A", 0, 0) for _ in range(63)))
    with pytest.raises(ConfidenceCostError, match="takes more than 62 events"):
        uc.match(many, "PATTERN AND(A+ p[], B b) WITHIN 9")


def test_a_window_shorter_than_the_pattern_is_long_holds_sets() -> None:
    ties = table(("A", 0, 0), ("B", 0, 0), ("C", 0, 0), ("C", 1, 1))
    assert uc.match(ties, "PATTERN AND(A a, B b, C c) WITHIN 1").num_rows == 1
    assert uc.match(ties, "PATTERN SEQ(AND(A a, B b), C c) WITHIN 1").num_rows == 0


def test_they_are_explained() -> None:
    assert "partial-order search: events chosen" in uc.explain(
        "PATTERN SEQ(AND(A a, B b), C c) WITHIN 9", EVENTS
    )
    text = uc.explain("PATTERN SEQ(OR(A a, AND(A x, B y)), C c) WITHIN 9", EVENTS)
    assert text.startswith("branch 1 of 2\n")
    assert "branch 2 of 2\n" in text
    assert text.count("c: C  [1 candidate,") == 2
