"""The worked facts of SEMANTICS 10 and the examples of the paper, by the oracle."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.oracle import Query, answer, answer_literally, formula_answer, one, seq, where
from tests.oracle.examples import event, ids, rows
from uncertain_cep.testing.model import Strategy

FIGURE_1 = (
    event("A", 1, 1, 5),
    event("C", 2, 3, 5),
    event("B", 3, 3, 5),
    event("C", 4, 4, 8),
)
A_B_C = Query(seq(one("A", "a"), one("B", "b"), one("C", "c")), window=4)
A_B = Query(seq(one("A", "a"), one("B", "b")), window=100)


def test_figure_1_skip_till_any() -> None:
    assert rows(answer_literally(A_B_C, FIGURE_1)) == {
        (1, 3, 2): (1, 5, Fraction(25, 225)),
        (1, 3, 4): (1, 7, Fraction(27, 225)),
    }


def test_figure_1_skip_till_next() -> None:
    query = replace(A_B_C, strategy="skip_till_next_match")
    assert rows(answer_literally(query, FIGURE_1)) == {
        (1, 3, 2): (1, 5, Fraction(24, 225)),
        (1, 3, 4): (1, 7, Fraction(25, 225)),
    }


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
def test_figure_1_by_all_three_ways(strategy: Strategy) -> None:
    query = replace(A_B_C, strategy=strategy)
    literal = answer_literally(query, FIGURE_1)
    assert answer(query, FIGURE_1) == literal
    assert formula_answer(query, FIGURE_1) == {
        (match.partition, match.signature): (match.range_lower, match.range_upper, match.confidence)
        for match in literal
    }


def test_figure_3b_time_range_without_a_binding_window() -> None:
    first_three = FIGURE_1[:3]
    assert rows(answer(replace(A_B_C, window=5), first_three))[1, 3, 2][:2] == (1, 5)


@pytest.mark.parametrize("upper_of_a", [2, 3, 5])
def test_figure_3c_the_window_prunes(upper_of_a: int) -> None:
    events = (event("A", 1, 1, upper_of_a), event("B", 5, 2, 3), event("C", 6, 6, 7))
    assert answer(A_B_C, events) == []
    # b5 cannot be later than 3, so a1 not later than 2, and c6 not earlier than 6: 5 ticks are needed.
    assert rows(answer(replace(A_B_C, window=5), events))[1, 5, 6][:2] == (2, 6)


def test_figure_2c_next_events_latest_time() -> None:
    """The events next to a1 start by NELT, the upper bound of b5; b6 starts after it."""
    events = (
        event("A", 1, 1, 4),
        event("B", 2, 2, 4),
        event("B", 3, 3, 5),
        event("B", 4, 5, 8),
        event("B", 5, 5, 7),
        event("B", 6, 8, 9),
    )
    query = replace(A_B, strategy="skip_till_next_match")
    assert ids(answer(query, events)) == {(1, 2), (1, 3), (1, 4), (1, 5)}
    assert ids(answer(A_B, events)) == {(1, 2), (1, 3), (1, 4), (1, 5), (1, 6)}


def test_strategies_agree_when_nothing_is_forbidden() -> None:
    events = (event("A", 1, 1, 5), event("B", 3, 3, 5), event("C", 4, 4, 8))
    expected = answer(A_B_C, events)
    assert expected
    for strategy in ("skip_till_next_match", "partition_contiguity", "strict_contiguity"):
        assert answer(replace(A_B_C, strategy=strategy), events) == expected


def test_query_1_of_the_paper_takes_both_metrics_or_the_next_only() -> None:
    events = (
        event("TaskStart", "a", 1),
        event("CPU", "b1", 2, value=0.99),
        event("CPU", "b2", 3, value=0.97),
        event("TaskFinish", "c", 4),
        event("CPU", "d", 5, value=0.5),
    )
    query = Query(
        seq(one("TaskStart", "a"), one("CPU", "b"), one("TaskFinish", "c"), one("CPU", "d")),
        window=15,
        where=(
            where("b", lambda b: b["value"] > 0.95),
            where("d", lambda d: d["value"] <= 0.7),
        ),
    )
    assert ids(answer(query, events)) == {("a", "b1", "c", "d"), ("a", "b2", "c", "d")}
    assert ids(answer(replace(query, strategy="skip_till_next_match"), events)) == {("a", "b1", "c", "d")}
