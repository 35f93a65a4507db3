"""Golden pairs of a query and the operator that takes it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep import executor as engine
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.table import OPERATORS, operator_of
from uncertain_cep.plan import make_plan

SCHEMA = pa.schema([("type", pa.string()), ("id", pa.int64()), ("lower", pa.int64()), ("upper", pa.int64())])

PLANS = [
    ("SEQ(A a, B b) WITHIN 5", {}, "join"),
    ("SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 5", {}, "join"),
    ("SEQ(A a, B b) WITHIN 5", {"planner": "(b a)"}, "join"),
    ("SEQ(A a, B b) WITHIN 5", {"evaluation": "any_state"}, "pool of runs"),
    ("SEQ(A a, B b) WITHIN 5", {"evaluation": "selectivity"}, "pool of runs"),
    ("SEQ(A a, B b) WITHIN 5", {"evaluation": "point"}, "point-based automaton"),
    ("SEQ(A a, !C c, B b) WITHIN 5", {"evaluation": "point"}, "point-based automaton"),
    ("SEQ(A a) WITHIN 5", {}, "single events"),
    ("SEQ(A a) WITHIN 5", {"evaluation": "point"}, "single events"),
    ("SEQ(A+ a[]) WITHIN 5", {}, "backtracking search"),
    ("SEQ(A a, !C c, B b) WITHIN 5", {}, "backtracking search"),
    ("SEQ(A a, B b) WHERE strict_contiguity(a, b) WITHIN 5", {}, "backtracking search"),
    ("SEQ(A+ a[], B b) WITHIN 5", {"kleene": "compressed"}, "compressed search"),
    ("AND(A a, B b) WITHIN 5", {}, "partial-order search"),
    ("SEQ(AND(A a, B+ b[]), !D d, C c) WITHIN 5", {}, "partial-order search"),
    ("SEQ(A a, B b) WHERE TIME(b) - TIME(a) >= 2 WITHIN 5", {}, "join at distances"),
    ("SEQ(A a, B b) WHERE TIME(b) - TIME(a) <= 2 WITHIN 5", {}, "join at distances"),
    (
        "SEQ(A a, B b) WHERE skip_till_next_match(a, b) AND TIME(b) - TIME(a) <= 2 WITHIN 5",
        {},
        "backtracking search",
    ),
    (
        "SEQ(A a, B b) WHERE TIME(b) - TIME(a) <= 2 WITHIN 5",
        {"evaluation": "any_state"},
        "choices, weighed by their times",
    ),
    ("SEQ(A a) WHERE TIME(a) <= 2 WITHIN 5", {"evaluation": "any_state"}, "backtracking search"),
    ("SEQ(A a) WHERE TIME(a) <= 2 WITHIN 5", {"evaluation": "point"}, "choices, weighed by their times"),
]

PLAIN = ("single events", "join", "pool of runs", "point-based automaton")


@pytest.mark.parametrize(("text", "options", "name"), PLANS)
def test_the_operator_of_a_plan(text: str, options: dict[str, str], name: str) -> None:
    plan = make_plan(uc.parse(f"PATTERN {text}"), SCHEMA, **options)  # type: ignore[arg-type]
    assert operator_of(plan).name == name


@pytest.mark.parametrize(("text", "options"), [plan[:2] for plan in PLANS if plan[2] in PLAIN])
def test_a_batch_owns_what_may_be_written_on(text: str, options: dict[str, str]) -> None:
    ticks = np.arange(4)
    table = pa.table({"type": ["A", "A", "B", "B"], "id": ticks, "lower": ticks, "upper": ticks + 1})
    plan = make_plan(uc.parse(f"PATTERN {text}"), table.schema, **options)  # type: ignore[arg-type]
    candidates, times = engine.candidates(plan, table), (ticks, ticks + 1)
    context = ExecutionContext(plan, table, candidates, times, None, None, True, 1000, tree=plan.tree)
    given = [*candidates.lower, *candidates.upper, *times]
    before = [column.copy() for column in given]
    chunks = list(operator_of(plan).matches(context))
    assert chunks
    for chunk in chunks:
        chunk.lower[:], chunk.upper[:] = -1, -1
    assert all(map(np.array_equal, given, before))


def test_explain_shows_the_operator_and_why() -> None:
    query, events = "PATTERN SEQ(A a, !C c, B b) WITHIN 5", SCHEMA.empty_table()
    with pytest.warns(uc.UncertainCepWarning, match="the trace has no events"):
        text = uc.explain(query, events)
    assert "backtracking search: Kleene components, negation, contiguity and conditions on times" in text
    with pytest.warns(uc.UncertainCepWarning, match="the trace has no events"):
        assert json.loads(uc.explain(query, events, format="json"))["operator"] == "backtracking search"


def test_every_operator_takes_some_plan() -> None:
    assert {name for _, _, name in PLANS} == {operator.name for operator in OPERATORS}
