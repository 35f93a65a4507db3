"""The output controls of SEMANTICS 7 on a small answer worked out by hand."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from tests.oracle import Event, Query, answer, one, seq
from tests.oracle.examples import event, ids
from tests.oracle.outputs import best, expected_counts, having, non_overlapping
from tests.oracle.strategies import queries, traces

QUERY = Query(seq(one("A", "a"), one("B", "b")), window=10, agree=("k",))
EVENTS = (
    event("A", 1, 1, k="u"),
    event("B", 2, 2, k="u"),
    event("B", 3, 1, 2, k="u"),
    event("A", 4, 3, 4, k="u"),
    event("B", 5, 4, k="u"),
    event("A", 6, 1, k="v"),
    event("B", 7, 2, k="v"),
)
# u: (1,2) 1, (1,3) 1/2, (1,5) 1, (4,5) 1/2; v: (6,7) 1


def test_having_includes_the_threshold() -> None:
    rows = answer(QUERY, EVENTS)
    assert ids(having(rows, Fraction(1, 2))) == {(1, 2), (1, 3), (1, 5), (4, 5), (6, 7)}
    assert ids(having(rows, Fraction(51, 100))) == {(1, 2), (1, 5), (6, 7)}


def test_best_breaks_ties_by_signature() -> None:
    rows = answer(QUERY, EVENTS)
    assert [row.ids for row in best(rows, 4)] == [(1, 2), (1, 5), (6, 7), (1, 3)]
    assert [row.ids for row in best(rows, 100)] == [(1, 2), (1, 5), (6, 7), (1, 3), (4, 5)]


def test_non_overlapping_is_greedy_in_each_partition() -> None:
    # (1,2) takes [1,2] and shuts out (1,5) and (1,3); (4,5) has [3,4]; v is on its own.
    assert ids(non_overlapping(answer(QUERY, EVENTS))) == {(1, 2), (4, 5), (6, 7)}


def test_ranges_that_share_one_tick_overlap() -> None:
    events = (event("A", 1, 1, k=1), event("B", 2, 2, k=1), event("A", 3, 2, k=1), event("B", 4, 3, k=1))
    assert ids(non_overlapping(answer(QUERY, events))) == {(1, 2)}


def test_expected_counts_by_group_and_bucket() -> None:
    rows = answer(QUERY, EVENTS)
    assert expected_counts(rows, QUERY.partition) == {((), None): 4}
    assert expected_counts(rows, QUERY.partition, by=("k",)) == {(("u",), None): 3, (("v",), None): 1}
    assert expected_counts(rows, QUERY.partition, by=("k",), every=3) == {
        (("u",), 0): Fraction(5, 2),
        (("u",), 3): Fraction(1, 2),
        (("v",), 0): 1,
    }


def test_buckets_of_negative_times_start_at_multiples_too() -> None:
    events = (event("A", 1, -1, k=1), event("B", 2, 5, k=1))
    assert expected_counts(answer(QUERY, events), QUERY.partition, every=4) == {((), -4): 1}


@given(queries(), traces())
def test_expected_counts_sum_to_the_confidences(query: Query, events: list[Event]) -> None:
    rows = answer(query, events)
    total = sum((row.confidence for row in rows), Fraction(0))
    assert sum(expected_counts(rows, query.partition, every=2).values()) == total
