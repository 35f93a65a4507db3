"""Functions and conditions of SQL mean what DuckDB's do, of one event and across events."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import sampled_from
from tests.expressions.drawn import STRINGS, Drawn, expressions
from uncertain_cep.expressions.scalar import plain_attribute, scalar
from uncertain_cep.expressions.vectorised import evaluate_mask
from uncertain_cep.query import bind_row_condition, parse_row_condition

TIMES = [datetime(2024, 5, 1, 10), datetime(2024, 2, 29, 23, 59, 59, 500_000), datetime(1969, 12, 31, 23, 30)]
SCHEMA = pa.schema(
    {
        "type": pa.string(), "id": pa.int64(), "lower": pa.int64(), "upper": pa.int64(),
        "x": pa.int64(), "w": pa.int64(), "y": pa.float64(), "s": pa.string(), "t": pa.string(),
        "f": pa.bool_(), "ts": pa.timestamp("us"),
    }
)  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "x": [None, -4, 0, 1, 7, 25], "w": [None, -1, 2, 3], "y": [None, -2.5, 0.0, 0.5, 2.5, 3.75, 1e15, 1e-5],
    "s": [None, *(text.replace("''", "'") for text in STRINGS)], "t": [None, "a", "ab", "b"],
    "f": [None, True, False], "ts": [None, *TIMES],
}  # fmt: skip
DUCK = duckdb.connect()
DUCK.execute("CREATE MACRO clean(x) AS CASE WHEN isnan(x) THEN NULL ELSE x END")

rows = st.fixed_dictionaries({name: sampled_from(values) for name, values in VALUES.items()})


def table_of(records: list[dict[str, Any]]) -> pa.Table:
    """Return events A at tick 0 and events B at tick 1, by turns."""
    model = [
        {"type": "AB"[n % 2], "id": n, "lower": n % 2, "upper": n % 2, **row} for n, row in enumerate(records)
    ]
    return pa.Table.from_pylist(model, SCHEMA)


def alike(ours: Any, theirs: Any) -> bool:
    """Return whether two values are the same but for the last digits of a float."""
    if isinstance(ours, float) and theirs is not None:
        return math.isclose(ours, theirs, rel_tol=1e-12)
    return bool(ours == theirs)


def asked(records: list[dict[str, Any]], condition: Drawn, returned: list[Drawn]) -> None:
    table = table_of(records)
    items = "".join(f", {part.text} AS r{n}" for n, part in enumerate(returned))
    query = f"PATTERN SEQ(A a, B b) WHERE {condition.text} WITHIN 9 RETURN a.id AS i{items}"
    ours = {(row["a"], row["b"]): row for row in uc.match(table, query).to_pylist()}
    DUCK.register("events", table)
    columns = "".join(f", {part.duck} AS r{n}" for n, part in enumerate(returned))
    theirs = DUCK.execute(
        f"SELECT a.id AS a, b.id AS b{columns} FROM events a, events b "
        f"WHERE a.type = 'A' AND b.type = 'B' AND {condition.duck}"
    ).fetchall()
    assert ours.keys() == {row[:2] for row in theirs}
    for row in theirs:
        for n, value in enumerate(row[2:]):
            assert alike(ours[row[:2]][f"r{n}"], value), (returned[n].text, ours[row[:2]], value)


@given(
    st.lists(rows, min_size=2, max_size=8),
    expressions("bool", ("a", "b"), 3),
    st.tuples(*(expressions(kind, ("a", "b"), 2) for kind in ("int", "float", "string", "bool", "time"))),
)
def test_as_duckdb(found: list[dict[str, Any]], condition: Drawn, returned: tuple[Drawn, ...]) -> None:
    asked(found, condition, list(returned))


@given(st.lists(rows, min_size=1, max_size=8), expressions("bool", ("a",), 3))
@settings(max_examples=30)
def test_of_one_event_and_one_by_one(found: list[dict[str, Any]], condition: Drawn) -> None:
    text = re.sub(r"('[^']*')|\ba\.", r"\1", condition.text)
    table = table_of(found)
    typed = bind_row_condition(parse_row_condition(text), SCHEMA)
    DUCK.register("events", table)
    expected = [bool(row[0]) for row in DUCK.execute(f"SELECT {condition.duck} FROM events a").fetchall()]
    assert evaluate_mask(typed, table).tolist() == expected
    single = scalar(typed, plain_attribute)
    if single is not None:
        assert [single(row) is True for row in table.to_pylist()] == expected


@pytest.mark.parametrize("texts", [[None], [None, None], ["x", None], [None, "x", None]])
def test_nulls_put_together_are_no_text_in_each_row(texts: list[str | None]) -> None:
    table = table_of([dict.fromkeys(VALUES) | {"s": text} for text in texts])
    typed = bind_row_condition(parse_row_condition("LOWER(CONCAT(s, t, s)) = ''"), SCHEMA)
    assert evaluate_mask(typed, table).tolist() == [text is None for text in texts]
    single = scalar(typed, plain_attribute)
    assert single is not None
    assert [single(row) for row in table.to_pylist()] == [text is None for text in texts]


@pytest.mark.parametrize("evaluation", ["auto", "sliced", "point"])
def test_in_streams(evaluation: str) -> None:
    table = table_of([{name: values[n % len(values)] for name, values in VALUES.items()} for n in range(12)])
    table = table.sort_by("lower")
    query = """PATTERN SEQ(A a, B b)
    WHERE LOWER(a.t) = LOWER(SUBSTRING(b.s, 1, 2))
      OR COALESCE(a.x, b.x) > 3 AND (b.y IS NULL OR FLOOR(a.y + b.y) IN (2, 3))
    WITHIN 9 RETURN CONCAT(a.s, b.s) AS both, b.ts - a.ts AS took"""
    matcher = uc.IncrementalMatcher(query, table.schema, evaluation=evaluation, largest_interval=3)
    batches = [*(matcher.push(table.slice(n, 1)) for n in range(table.num_rows)), matcher.close()]
    answer_rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    expected = [tuple(row.values()) for row in uc.match(table, query).to_pylist()]
    assert len(expected) > 3
    assert sorted(answer_rows, key=str) == sorted(expected, key=str)
