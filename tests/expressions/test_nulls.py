"""Conditions that are null for every event fail for what they speak of, and for nothing else."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.expressions.codes import codes_of
from uncertain_cep.streaming.stream_methods import INCREMENTAL_EVALUATIONS

TYPES = [pa.null(), pa.int64(), pa.float64(), pa.decimal128(9, 2)]


def events(null: pa.DataType) -> pa.Table:
    """Return an A, an N and a B, one after the other, with a column z of nulls."""
    return pa.table(
        {
            "type": ["A", "N", "B"],
            "id": [1, 2, 3],
            "lower": [0, 1, 2],
            "upper": [0, 1, 2],
            "w": [1, 2, 3],
            "s": ["a", "b", "c"],
            "z": pa.nulls(3, null),
        }
    )


SPARED = [
    "n.z = 3",
    "NOT (n.z = 3)",
    "n.w = NULL",
    "NULL != n.s",
    "NOT n.w = NULL",
    "n.w + NULL < 5",
    "NULL / 2 < n.w",
    "-n.z < 1 OR n.w = 9",
    "n.z / 2 = a.w",
    "n.z % a.w = 1 OR n.w = 9",
    "n.z = a.z",
    "n.z >= a.w AND b.w = 3",
    "n.s > NULL",
]
FORBIDDEN = ["n.z = 3 OR n.w = 2", "NOT (n.z = 3 AND n.w = 9)", "n.w = NULL OR a.w < n.w"]
KLEENE = {
    "c[i].z >= c[i-1].z": 1,
    "c[i].z = 1": 0,
    "c[1].z = 1 OR c[c.LEN].w = 3": 1,
    "count(c[].z) = 0": 1,
    "count(c[].z) > 0": 0,
    "avg(c[].z) >= 0": 0,
    "NOT avg(c[].z) >= 0": 0,
    "sum(c[].z) = 0 OR count(c[]) = 1": 1,
    "max(c[].z) < a.w": 0,
    "min(c[..i-1].z) > c[i].w": 1,
}
PLAIN = {
    "a.z = 1": 0,
    "a.z = b.z": 0,
    "a.z = 1 OR b.w = 3": 1,
    "NOT (a.z = b.w AND b.w = 9)": 1,
    "a.z * 2.5 < b.w OR a.w < b.w": 1,
    "a.w - NULL = b.w OR a.s < b.s": 1,
    "NULL": 0,
    "NULL OR a.w = 1": 1,
    "NULL + 1 = 2 OR b.w = 3": 1,
}
QUERIES: dict[str, int] = {
    **{f"SEQ(A a, !N n, B b) WHERE {asked}": 1 for asked in SPARED},
    **{f"SEQ(A a, !N n, B b) WHERE {asked}": 0 for asked in FORBIDDEN},
    **{f"SEQ(A a, B+ c[]) WHERE {asked}": count for asked, count in KLEENE.items()},
    "OR(SEQ(A a, B b), SEQ(A c, B d)) WHERE a.z = 1": 1,
    "OR(SEQ(A a, B b), SEQ(A c, B d)) WHERE a.w = NULL AND d.z = NULL": 0,
    "SEQ(A a, OR(!N n, !A m), B b) WHERE n.z = 1 AND m.z = 1": 1,
}


def _streamed(table: pa.Table, query: str, evaluation: str) -> int:
    matcher = uc.IncrementalMatcher(query, table.schema, evaluation=evaluation, largest_interval=3)
    batches = [*(matcher.push(table.slice(n, 1)) for n in range(3)), matcher.close()]
    return sum(batch.num_rows for batch in batches)


@pytest.mark.parametrize("null", TYPES, ids=str)
@pytest.mark.parametrize("query", QUERIES)
def test_negation_kleene_and_branches(query: str, null: pa.DataType) -> None:
    table, text = events(null), f"PATTERN {query} WITHIN 10"
    for evaluation in ("auto", "point"):
        assert uc.match(table, text, evaluation=evaluation).num_rows == QUERIES[query]
        stream = "sliced" if evaluation == "auto" else evaluation
        assert _streamed(table, text, stream) == QUERIES[query]
    counted = uc.match(table, f"{text} RETURN EXPECTED COUNT").to_pylist()
    assert counted == [{"expected_count": float(QUERIES[query])}]


@pytest.mark.parametrize("null", TYPES, ids=str)
@pytest.mark.parametrize("asked", PLAIN)
def test_plain_sequences(asked: str, null: pa.DataType) -> None:
    table, text = events(null), f"PATTERN SEQ(A a, B b) WHERE {asked} WITHIN 10"
    for evaluation in ("auto", "query_order", "any_state", "selectivity", "point"):
        assert uc.match(table, text, evaluation=evaluation).num_rows == PLAIN[asked]
    assert uc.match(table, text, planner="(b a)").num_rows == PLAIN[asked]
    for evaluation in INCREMENTAL_EVALUATIONS:
        assert _streamed(table, text, evaluation) == PLAIN[asked]


def test_a_column_of_no_type_goes_with_any() -> None:
    table = events(pa.null())
    for condition in (
        "n.s < n.z",
        "n.z = TRUE",
        "n.z",
        "n.z = '2024-05-01'",
        "n.z + 1 = n.s",
        "n.lower = n.z",
    ):
        matches = uc.match(table, f"PATTERN SEQ(A a, !N n, B b) WHERE {condition} WITHIN 10")
        assert matches.num_rows == 1, condition


def test_explain_shows_what_is_asked() -> None:
    text = uc.explain("PATTERN SEQ(A a, !N n, B b) WHERE n.z = 3 WITHIN 10", events(pa.null()))
    assert "n: N and n.z = 3" in text


@pytest.mark.parametrize("null", TYPES, ids=str)
def test_returned(null: pa.DataType) -> None:
    expected: dict[str, Any] = {
        "a.z": None, "a.w + a.z": None, "a.z = 3": None, "a.z = 3 OR a.w = 1": True, "a.w % a.z": None,
        "count(c[].z)": 0, "sum(c[].z)": None, "avg(c[].z)": None, "max(c[].z)": None, "c[1].z": None,
        "min(c[].w)": 3,
    }  # fmt: skip
    items = ", ".join(f"{text} AS r{number}" for number, text in enumerate(expected))
    rows = uc.match(events(null), f"PATTERN SEQ(A a, B+ c[]) WITHIN 10 RETURN {items}").to_pylist()
    assert [[row[f"r{number}"] for number in range(len(expected))] for row in rows] == [[*expected.values()]]


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.date32(), pa.duration("s"), pa.string()])
def test_no_values_have_no_codes(kind: pa.DataType) -> None:
    (first, second), count = codes_of([pa.chunked_array([], kind), pa.array([], kind)])
    assert len(first) == len(second) == count == 0
