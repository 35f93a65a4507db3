"""Plans of texts are remembered, by all that they depend on."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from uncertain_cep.errors import QueryError, UncertainCepWarning
from uncertain_cep.operators.table import operator_of
from uncertain_cep.plan import MatchOptions, remembered_plan
from uncertain_cep.plan.planning import MOST_PLANS
from uncertain_cep.query import parse
from uncertain_cep.timeline.domain import TICK_METADATA

SCHEMA = pa.schema({"type": pa.string(), "id": pa.int64(), "lower": pa.int64(), "upper": pa.int64()})
QUERY = "PATTERN SEQ(A a, B b) WITHIN 2 seconds"


def noted(tick: str) -> pa.Schema:
    return SCHEMA.with_metadata({TICK_METADATA: tick.encode()})


def test_one_plan_for_one_text_schema_and_options() -> None:
    options = MatchOptions(tick="1ms")
    assert remembered_plan(QUERY, SCHEMA, options) is remembered_plan(QUERY, SCHEMA, MatchOptions(tick="1ms"))
    assert remembered_plan(QUERY, SCHEMA, options).window == 2000
    assert remembered_plan(QUERY, SCHEMA, MatchOptions(tick="1s")).window == 2
    assert remembered_plan(parse(QUERY), SCHEMA, options) == remembered_plan(QUERY, SCHEMA, options)


def test_the_tick_that_a_schema_notes_counts() -> None:
    assert [remembered_plan(QUERY, noted(tick), MatchOptions()).window for tick in ("1ms", "1s", "1ms")] == [
        2000,
        2,
        2000,
    ]


def test_faults_and_warnings_come_each_time() -> None:
    times = SCHEMA.set(2, pa.field("lower", pa.timestamp("us"))).set(3, pa.field("upper", pa.timestamp("us")))
    for _ in range(2):
        with pytest.raises(QueryError, match="unknown length"):
            remembered_plan(QUERY, SCHEMA, MatchOptions())
        with pytest.warns(UncertainCepWarning, match="WITHIN 7 counts ticks"):
            remembered_plan("PATTERN SEQ(A a, B b) WITHIN 7", times, MatchOptions())


def test_the_oldest_plans_go() -> None:
    options = MatchOptions(tick="1ms")
    first = remembered_plan(QUERY, SCHEMA, options)
    for window in range(3, MOST_PLANS + 4):
        remembered_plan(f"PATTERN SEQ(A a, B b) WITHIN {window}", SCHEMA, options)
    again = remembered_plan(QUERY, SCHEMA, options)
    assert again is not first
    assert again == first


def test_what_is_worked_out_of_a_plan_stays_with_it() -> None:
    plan = remembered_plan(QUERY, SCHEMA, MatchOptions(tick="1ms"))
    assert operator_of(plan) is operator_of(plan)
    assert plan.derived
    sent = pickle.loads(pickle.dumps(plan))
    assert sent == plan
    assert not sent.derived
    assert not replace(plan, evaluation="point").derived
    assert operator_of(replace(plan, evaluation="point")) is not operator_of(plan)
