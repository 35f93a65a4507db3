"""An expression on one event's values is what it is on a table of that row."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

from tests.cases.cases import ATTRIBUTES, Case, Trace
from tests.cases.expressions import conditions
from tests.expressions.test_predicates import _TYPES, _comparisons
from uncertain_cep.expressions.scalar import plain_attribute, scalar
from uncertain_cep.expressions.vectorised import evaluate_mask
from uncertain_cep.plan import make_plan
from uncertain_cep.query import parse
from uncertain_cep.testing.model import Component, Event

LARGEST = 2**63 - 1
VALUES = {
    "x": st.sampled_from([0, 1, -4, -7, 10, 2**53 + 1, LARGEST, -LARGEST - 1, None]),
    "y": st.sampled_from([0.0, -0.0, 1.5, -2.75, float(2**53), 1e308, float("inf"), float("nan"), None]),
    "s": st.sampled_from(["u", "v", "", "it's", "\N{LATIN SMALL LETTER E WITH ACUTE}", None]),
    "f": st.sampled_from([True, False, None]),
}


@given(
    _comparisons(("a",)) | conditions(("a",), ATTRIBUTES, 3),
    st.lists(st.fixed_dictionaries(VALUES), max_size=6),
)
def test_an_event_is_a_row(condition: object, rows: list[dict[str, object]]) -> None:
    events = tuple(Event("A", number, number, number, None, row) for number, row in enumerate(rows))  # type: ignore[arg-type]
    case = Case(Trace(events, _TYPES), (Component("a", ("A",)),), (condition,), window=9)  # type: ignore[arg-type]
    note(case.script())
    table = case.trace.table()
    for predicate in make_plan(parse(case.text()), table.schema).components[0].local:
        evaluate = scalar(predicate, plain_attribute)
        assert evaluate is not None
        for number, row in enumerate(table.to_pylist()):
            assert (evaluate(row) is True) == evaluate_mask(predicate, table.slice(number, 1))[0]


def test_what_leaves_int64_is_a_float() -> None:
    schema = pa.schema({**dict.fromkeys(("id", "lower", "upper", "x"), pa.int64()), "type": pa.string()})
    (predicate,) = make_plan(parse("PATTERN SEQ(A a) WHERE a.x + 1 > 0 WITHIN 9"), schema).components[0].local
    evaluate = scalar(predicate, plain_attribute)
    assert evaluate is not None
    assert evaluate({"x": LARGEST - 1}) is True
    assert evaluate({"x": LARGEST}) is True


def test_times_and_aggregates_are_left_to_arrays() -> None:
    schema = pa.schema(
        {**dict.fromkeys(("id", "lower", "upper"), pa.int64()), "type": pa.string(), "t": pa.timestamp("us")}
    )
    plan = make_plan(parse("PATTERN SEQ(A a, A+ b[]) WHERE a.t > '2020-01-01' WITHIN 9"), schema)
    assert [scalar(predicate, plain_attribute) for part in plan.components for predicate in part.local] == [
        None
    ]
