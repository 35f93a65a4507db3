"""Predicates, aggregates and first times where their meaning is easily mistaken."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.oracle import Event, Query, answer, conj, disj, no, one, plus, seq, where
from tests.oracle.outputs import expected_counts
from uncertain_cep.streaming.stream_methods import INCREMENTAL_EVALUATIONS
from uncertain_cep.testing.model import Match


def event(kind: str, id: int, lower: int, upper: int, x: int | None = None) -> Event:
    return Event(kind, id, lower, upper, None, {"x": x})


def table_of(events: Sequence[Event]) -> pa.Table:
    rows = [
        {"type": event.type, "id": event.id, "lower": event.lower, "upper": event.upper, "x": event["x"]}
        for event in events
    ]
    types = {"type": pa.string(), "id": pa.int64(), "lower": pa.int64(), "upper": pa.int64(), "x": pa.int64()}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(types.items())))


def check(text: str, query: Query, events: Sequence[Event], methods: Sequence[str]) -> list[Match]:
    """Assert that the engine gives the oracle's answer, and return that."""
    expected = answer(query, events)
    for evaluation in methods:
        rows = uc.match(table_of(events), text, evaluation=evaluation).to_pylist()
        answer_by_ids: dict[Any, Any] = {}
        for row in rows:
            ids = tuple(tuple(x) if isinstance(x := row[name], list) else x for name in row if len(name) == 1)
            answer_by_ids[ids] = (
                row["range_lower"],
                row["range_upper"],
                pytest.approx(row["confidence"], rel=1e-9),
            )
        assert len(answer_by_ids) == len(rows)
        assert answer_by_ids == {
            match.ids: (match.range_lower, match.range_upper, float(match.confidence)) for match in expected
        }
    return expected


def test_a_predicate_is_asked_of_the_branches_with_all_its_variables() -> None:
    """``a.x < d.x`` is of no branch; ``c.x > 1`` of the second."""
    events = [event("A", 1, 0, 1, 1), event("B", 2, 1, 3, 0), event("C", 3, 2, 4, 0)]
    query = Query(
        disj(seq(one("A", "a"), one("B", "b")), seq(one("A|B", "c"), one("C", "d"))),
        10,
        (where("a d", lambda a, d: a["x"] < d["x"]), where("c", lambda c: c["x"] < 1)),
    )
    text = "PATTERN OR(SEQ(A a, B b), SEQ((A|B) c, C d)) WHERE a.x < d.x AND c.x < 1 WITHIN 10"
    matches = check(text, query, events, ["auto", "point"])
    assert [match.ids for match in matches] == [(1, 2, None, None), (None, None, 2, 3)]


def test_a_predicate_on_a_negation_is_asked_of_its_reading() -> None:
    events = [event("A", 1, 0, 0, 5), event("N", 2, 1, 4, 3), event("M", 3, 2, 3, 7), event("C", 4, 3, 6)]
    query = Query(
        seq(one("A", "a"), disj(no("N", "n"), no("M", "m")), one("C", "c")),
        10,
        (where("n a", lambda n, a: n["x"] > a["x"]),),
    )
    text = "PATTERN SEQ(A a, OR(!N n, !M m), C c) WHERE n.x > a.x WITHIN 10"
    matches = check(text, query, events, ["auto", "point"])
    assert [match.confidence for match in matches] == [1]


@pytest.mark.parametrize(
    ("asked", "test", "found"),
    [
        ("count(b[]) <= 1", where("b[]", lambda b: len(b) <= 1), [((2,), 1)]),
        ("b[b.LEN].x > 5", where("b[b.LEN]", lambda b: b["x"] > 5), [((2, 3), 1)]),
        ("max(b[].x) > 5", where("b[]", lambda b: max(x["x"] for x in b) > 5), [((2, 3), 1)]),
        ("b[i].x > 5", where("b[i]", lambda b: b["x"] > 5), [((3,), 1)]),
    ],
)
def test_only_the_finished_list_decides_what_is_asked_of_it(
    asked: str, test: Any, found: list[tuple[tuple[int, ...], int]]
) -> None:
    """The first B could have been taken, whatever the list as a whole must be: no match is without it."""
    events = [event("A", 1, 0, 0), event("B", 2, 1, 1, 1), event("B", 3, 2, 2, 9), event("C", 4, 3, 3)]
    query = Query(
        seq(one("A", "a"), plus("B", "b"), one("C", "c")), 10, (test,), strategy="skip_till_next_match"
    )
    text = f"PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) {{ {asked} }} WITHIN 10"
    matches = check(text, query, events, ["auto", "point"])
    taken: list[Any] = [(match.ids[1], match.confidence) for match in matches]
    assert taken == found


AGGREGATES = {
    "count(b[].x) = 1 AND count(b[]) = 2": [(2, 3), (3, 2)],
    "avg(b[].x) = 4": [(2, 3), (3,), (3, 2)],
    "sum(b[].x) = 4 AND min(b[].x) = max(b[].x)": [(2, 3), (3,), (3, 2)],
    "count(b[].x) = 0": [(2,)],
    "NOT (sum(b[].x) = 4)": [],
    "max(b[..i-1].x) = 4": [(2,), (3,), (3, 2)],
}


@pytest.mark.parametrize("asked", AGGREGATES)
@pytest.mark.parametrize("evaluation", ["auto", "point"])
def test_aggregates_leave_nulls_out(asked: str, evaluation: str) -> None:
    """Over nothing but nulls the count is 0, and all else null."""
    events = [event("A", 1, 0, 0), event("B", 2, 1, 4, None), event("B", 3, 2, 4, 4)]
    matches = uc.match(
        table_of(events), f"PATTERN SEQ(A a, B+ b[]) WHERE {asked} WITHIN 10", evaluation=evaluation
    )
    assert sorted(tuple(ids) for ids in matches.column("b").to_pylist()) == AGGREGATES[asked]


def _numbers() -> pa.Table:
    return pa.table(
        {
            "type": ["A", "B"], "id": [1, 2], "lower": [0, 1], "upper": [0, 1],
            "x": [-7, 7], "y": [3, 0], "f": [-3.5, 3.5], "g": [2.0, 0.0],
        }
    )  # fmt: skip


RULES = {
    "a.x % a.y = -1": True,
    "a.x % -3 = -1": True,
    "b.x % -3 = 1": True,
    "b.x % a.y = 1": True,
    "a.x % b.x = 0": True,
    "a.x % b.y = 0 OR a.x % b.y != 0": False,
    "NOT (b.x % b.y = 0)": False,
    "a.x % 0 = 0 OR a.x / 0 > 0 OR b.f % 0.0 = 0": False,
    "a.x / b.y > 0 OR NOT (a.x / b.y > 0)": False,
    "a.x / b.y > 0 OR a.y = 3": True,
    "a.x / a.y < -2.3 AND a.x / 2 = -3.5": True,
    "a.f % a.g = -1.5": True,
    "b.f % -2.0 = 1.5": True,
    "b.f % b.g = 0 OR NOT (a.f / b.g < 0)": False,
    "a.x % b.g = 0 OR a.x % a.g = -1": True,
}


@pytest.mark.parametrize("asked", RULES)
def test_division_and_remainder(asked: str) -> None:
    """By zero they are null; the remainder has the sign of the dividend; wherever that is worked out."""
    table, expected = _numbers(), int(RULES[asked])
    text = f"PATTERN SEQ(A a, B b) WHERE {asked} WITHIN 10"
    for evaluation in ("query_order", "any_state", "selectivity", "point"):
        assert uc.match(table, text, evaluation=evaluation).num_rows == expected
    assert uc.match(table, text, planner="(b a)").num_rows == expected
    for evaluation in INCREMENTAL_EVALUATIONS:
        matcher = uc.IncrementalMatcher(text, table.schema, evaluation=evaluation)
        assert matcher.push(table).num_rows + matcher.close().num_rows == expected
    kleene = asked.replace("b.", "b[i].")
    for evaluation in ("query_order", "point"):
        matches = uc.match(table, f"PATTERN SEQ(A a, B+ b[]) WHERE {kleene} WITHIN 10", evaluation=evaluation)
        assert matches.num_rows == expected
        spared = uc.match(table, f"PATTERN SEQ(A a, !B b) WHERE {asked} WITHIN 10", evaluation=evaluation)
        assert spared.num_rows == 1 - expected
    returned = uc.match(table, f"PATTERN SEQ(A a, B b) WITHIN 10 RETURN ({asked}) AS r").to_pylist()
    assert bool(returned[0]["r"]) == RULES[asked]


_WHOLE = st.one_of(
    st.integers(-9, 9), st.sampled_from([1 - 2**63, 2**63 - 1, 2**62]), st.integers(1 - 2**63, 2**63 - 1)
)


@given(st.lists(_WHOLE | st.none(), min_size=1, max_size=6), st.booleans(), _WHOLE.filter(bool), st.data())
def test_the_remainder_by_a_constant(
    values: list[int | None], only_positive: bool, divisor: int, data: st.DataObject
) -> None:
    """It is exact for all of int64: whole numbers are divided with signs or without."""
    if only_positive:
        values = [None if x is None or x < 0 else x for x in values]
    rests = [None if x is None else abs(x) % abs(divisor) * (-1 if x < 0 else 1) for x in values]
    remainder = data.draw(st.sampled_from([remainder for remainder in rests if remainder is not None] or [0]))
    count = len(values)
    table = pa.table(
        {"type": ["A"] * count, "id": range(count), "lower": range(count), "upper": range(count),
         "x": pa.array(values, pa.int64())}
    )  # fmt: skip
    matches = uc.match(table, f"PATTERN SEQ(A a) WHERE a.x % {divisor} = {remainder} WITHIN 99")
    assert matches["a"].to_pylist() == [row for row, left in enumerate(rests) if left == remainder]


def test_division_and_remainder_returned() -> None:
    matches = uc.match(
        _numbers(),
        """PATTERN SEQ(A a, B b) WITHIN 10
        RETURN a.x % a.y AS p, a.x % b.y AS q, a.x / b.y AS r, b.f % b.g AS s""",
    )
    assert [matches.to_pylist()[0][name] for name in "pqrs"] == [-1, None, None, None]


def test_the_first_time_of_a_set_is_that_of_its_earliest_event() -> None:
    events = [event("A", 1, 0, 3), event("B", 2, 1, 5), event("C", 3, 4, 6)]
    query = Query(seq(conj(one("A", "a"), one("B", "b")), one("C", "c")), 6)
    check("PATTERN SEQ(AND(A a, B b), C c) WITHIN 6", query, events, ["auto"])
    counts = expected_counts(answer(query, events), (), (), 2)
    assert set(counts) == {((), 0), ((), 2)}
    rows = uc.match(
        table_of(events), "PATTERN SEQ(AND(A a, B b), C c) WITHIN 6 RETURN EXPECTED COUNT EVERY 2"
    ).to_pylist()
    assert {((), row["bucket"]): row["expected_count"] for row in rows} == {
        key: pytest.approx(float(value), rel=1e-9) for key, value in counts.items()
    }
    apart = [event("A", 1, 2, 3), event("B", 2, 0, 1)]
    rows = uc.match(
        table_of(apart), "PATTERN AND(A a, B b) WITHIN 6 RETURN EXPECTED COUNT EVERY 2"
    ).to_pylist()
    assert rows == [{"bucket": 0, "expected_count": pytest.approx(float(Fraction(1)))}]
