"""Patterns with more readings than are planned beforehand: those that events make possible, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.comparison import assert_answer, assert_same
from tests.cases.nested import NestedCase
from tests.cases.options import nested_option_cases, option_cases, timed_option_cases
from tests.cases.sampling import FEWER, sampled_from
from uncertain_cep.plan import EvaluationPlan, make_plan, plan_of_reading
from uncertain_cep.query import branches

MANY: Final = ", ".join(f"B{number}? b{number}" for number in range(1, 13))
QUERY: Final = f"PATTERN SEQ(A a, {MANY}, C c) WITHIN 50"


@contextmanager
def open_plans(most: int = 2) -> Iterator[None]:
    """Let plans be open that have more readings than so many."""
    with patch.object(branches, "MOST_BRANCHES", most):
        yield


def plan_of(text: str, schema: pa.Schema) -> EvaluationPlan:
    return make_plan(uc.parse(text), schema)


@given(
    timed_option_cases(fewest=2), sampled_from(["auto", "point", "threads", "stream", "sliced", "matches"])
)
def test_readings_one_by_one_are_the_branches(case: NestedCase, way: str) -> None:
    note(case.text())
    table, text = case.trace.table(), case.text()
    whole = uc.match(table, text)
    with open_plans():
        query = uc.parse(text)
        assume(make_plan(query, table.schema).is_open)
        if way in ("stream", "sliced"):
            matcher = uc.IncrementalMatcher(query, table.schema, evaluation=way.replace("stream", "auto"))
            parts = [matcher.push(table.slice(row, 1)) for row in range(table.num_rows)]
            found = pa.Table.from_batches([*parts, matcher.close()])
        elif way == "point":
            found = uc.match(table, query, evaluation="point")
        else:
            found = uc.match(table, query, threads=3 if way == "threads" else 1)
        if way == "matches":
            assert uc.events_of(found, table, query).to_pylist() == taken(whole, table, text)
            counted = uc.match(table, uc.parse(f"{text} RETURN EXPECTED COUNT"))["expected_count"][0].as_py()
            total = sum(found["confidence"].to_pylist())
            assert math.isclose(counted, total, rel_tol=1e-9, abs_tol=1e-12)
            assert uc.posteriors(found, table, query).num_rows == uc.posteriors(whole, table, text).num_rows
    assert found.schema == whole.schema
    assert_same(case.rows(found), case.rows(whole))


@given(nested_option_cases(), st.booleans())
def test_readings_of_or_are_the_branches(case: NestedCase, in_stream: bool) -> None:
    note(case.text())
    table, text = case.trace.table(), case.text()
    whole = uc.match(table, text)
    # Of two items of OR there are three alternatives, if both may be left out.
    with open_plans(3):
        query = uc.parse(text)
        assume(make_plan(query, table.schema).is_open)
        if in_stream:
            matcher = uc.IncrementalMatcher(query, table.schema)
            parts = [matcher.push(table.slice(row, 1)) for row in range(table.num_rows)]
            found = pa.Table.from_batches([*parts, matcher.close()])
        else:
            found = uc.match(table, query)
            events = uc.events_of(found, table, query).to_pylist()
    assert_same(case.rows(found), case.rows(whole))
    # The oracle does not tell a list that is empty from one of another branch.
    if all(item.least or not item.kleene for item in case.positives):
        assert_answer(case.rows(found), case.answer())
    if not in_stream:
        assert events == taken(found, table, text)


def taken(found: pa.Table, table: pa.Table, text: str) -> list[dict[str, Any]]:
    return uc.events_of(found, table, text).to_pylist()  # type: ignore[no-any-return]


@FEWER
@given(option_cases(most=4, fewest=2), st.booleans())
def test_the_best_of_all_readings(case: NestedCase, by_confidence: bool) -> None:
    order = "ORDER BY CONFIDENCE DESC LIMIT 3" if by_confidence else "HAVING CONFIDENCE >= 0.5"
    text, table = f"{case.text()} {order}", case.trace.table()
    with open_plans():
        query = uc.parse(text)
        assume(make_plan(query, table.schema).is_open)
        found = uc.match(table, query)
    expected = uc.match(table, text)
    assert found.drop_columns("confidence").sort_by("range_lower").num_rows == expected.num_rows
    one, other = (sorted(rows["confidence"].to_pylist()) for rows in (found, expected))
    assert one == pytest.approx(other)


def events(*rows: tuple[str, int, int]) -> pa.Table:
    types, lower, upper = (list(column) for column in zip(*rows, strict=True))
    columns = {"type": types, "id": list(range(len(rows))), "lower": lower, "upper": upper}
    return pa.table({**columns, "k": [number % 2 for number in range(len(rows))]})


FEW: Final = events(("A", 0, 2), ("B3", 2, 5), ("B7", 4, 6), ("B5", 70, 71), ("C", 7, 9))


def test_only_readings_with_candidates_in_reach_are_planned() -> None:
    with patch("uncertain_cep.executor.branching.plan_of_reading", wraps=plan_of_reading) as planned:
        found = uc.match(FEW, QUERY)
    # B5 is out of reach, and no event is of the other nine types.
    assert planned.call_count == 4
    assert [(row["b3"], row["b7"]) for row in found.to_pylist()] == [
        (None, None),
        (None, 2),
        (1, None),
        (1, 2),
    ]
    assert found.schema.names == ["a", *(f"b{number}" for number in range(1, 13)), "c", "range_lower",
                                  "range_upper", "confidence"]  # fmt: skip


@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
def test_streams_reports_and_explanations_take_them() -> None:
    whole = uc.match(FEW, QUERY)
    matcher = uc.IncrementalMatcher(QUERY, FEW.schema)
    found = pa.Table.from_batches([matcher.push(FEW), matcher.close()])
    assert found.sort_by("b3").to_pylist() == whole.sort_by("b3").to_pylist()
    assert "4,096 by what is left out" in uc.explain(QUERY, FEW)
    assert "4 matches in" in uc.explain(QUERY, FEW, analyze=True)
    assert '"of_readings": 4096' in uc.explain(QUERY, FEW, format="json")
    assert "b12: B12, none or one" in uc.explain(QUERY)
    assert "B12" in str(uc.report(FEW, QUERY))


def test_keys_of_all_readings_are_shown() -> None:
    tied = " AND ".join(f"b{number}.k = a.k" for number in range(1, 13))
    for asked, keys in (
        ("[k]", ("k",)),
        (f"{tied} AND a.k = c.k", ("k",)),
        (tied, ()),
        (f"{tied} AND b1.k = c.k", ()),
    ):
        plan = plan_of(QUERY.replace("WITHIN", f"WHERE {asked} WITHIN"), FEW.schema)
        assert plan.is_open
        assert plan.partition_attributes == plan.shared_keys == keys


INNER: Final = QUERY.removeprefix("PATTERN ").removesuffix(" WITHIN 50")


def test_or_takes_items_with_any_number_of_options() -> None:
    alone = uc.match(FEW, QUERY).to_pylist()
    for other, count in (("C d", 1), ("SEQ(A d, C? e)", 2), ("SEQ(D? d, D? e)", 0)):
        found = uc.match(FEW, f"PATTERN OR({INNER}, {other}) WITHIN 50").to_pylist()
        first = [{name: row[name] for name in alone[0]} for row in found if row["a"] is not None]
        assert (first, len(found)) == (alone, len(alone) + count)


def test_items_of_or_that_may_be_left_out_give_one_match_without_them() -> None:
    many = ", ".join(f"B{number}? d{number}" for number in range(1, 10))
    query = f"PATTERN SEQ(A a, OR(SEQ({MANY}), SEQ({many})), C c) WITHIN 50"
    found = uc.match(FEW, query).to_pylist()
    taken = [tuple(row[f"{name}{number}"] for name in "bd" for number in (3, 7)) for row in found]
    assert sorted(taken, key=str) == sorted(
        [(1, 2, None, None), (1, None, None, None), (None, 2, None, None), (None,) * 4,
         (None, None, 1, 2), (None, None, 1, None), (None, None, None, 2)],
        key=str,
    )  # fmt: skip
    assert "4,609 by what is left out" in uc.explain(query, FEW)


def test_too_many_alternatives_are_refused() -> None:
    either = ", ".join(
        f"OR(SEQ({MANY}), C c)".replace(" b", f" b{place}_").replace(" c", f" c{place}") for place in range(9)
    )
    with pytest.raises(uc.QueryError, match="give some alternatives of OR a query of their own"):
        uc.parse(f"PATTERN SEQ({either}) WITHIN 50")


def test_a_reading_without_events_is_none() -> None:
    found = uc.match(FEW, f"PATTERN SEQ({MANY}) WITHIN 50").to_pylist()
    taken = [[row[f"b{number}"] for number in (3, 5, 7)] for row in found]
    assert sorted(map(str, taken)) == sorted(
        map(str, [[1, None, None], [None, 3, None], [None, None, 2], [1, None, 2]])
    )


TIMES: Final = "TIME(b) - TIME(a) <= 2 AND TIME(c) - TIME(b) <= 2"


def test_what_bounds_an_option_does_not_shorten_the_window_without_it() -> None:
    table = events(("A", 0, 0), ("C", 15, 15), ("C", 40, 40))
    query = f"PATTERN SEQ(A a, B? b, C c) WHERE {TIMES} WITHIN 20"
    with pytest.warns(uc.UncertainCepWarning):
        whole = uc.match(table, query)
    assert whole["c"].to_pylist() == [1]
    matcher = uc.IncrementalMatcher(query, table.schema, largest_interval=1, slice_length=1)
    found = [matcher.push(table.slice(row, 1)) for row in range(table.num_rows)] + [matcher.close()]
    assert pa.Table.from_batches(found).to_pylist() == whole.to_pylist()
