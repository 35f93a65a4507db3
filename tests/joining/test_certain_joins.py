"""Joins of certain times, beside those of DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc

KEYS = st.sampled_from("uv")
MOMENTS = st.lists(st.tuples(st.integers(0, 9), KEYS), min_size=1, max_size=6)
APART = st.lists(st.tuples(st.integers(0, 9), KEYS), min_size=1, max_size=6, unique=True)
SPANS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), KEYS), min_size=1, max_size=6)


def spans(side: list[tuple[int, int, str]]) -> pa.Table:
    """Return events that last, by begins, lengths and keys."""
    begins, lengths, keys = zip(*side, strict=True)
    ends = [begin + length for begin, length in zip(begins, lengths, strict=True)]
    bounds = {"begin_lower": begins, "begin_upper": begins, "end_lower": ends, "end_upper": ends}
    columns: dict[str, Any] = {
        "type": ["E"] * len(side),
        "id": range(len(side)),
        "lower": begins,
        "upper": ends,
    }
    return pa.table({name: pa.array(values) for name, values in {**columns, "key": keys, **bounds}.items()})


def rows_of_duckdb(left: pa.Table, right: pa.Table, text: str) -> list[tuple[int | None, ...]]:
    with duckdb.connect() as connection:
        connection.register("l", left)
        connection.register("r", right)
        return sorted(connection.sql(text).fetchall(), key=str)


def certain_rows(joined: pa.Table) -> list[tuple[int | None, ...]]:
    """Return the ids of the pairs, which all are certain."""
    rows = joined.to_pylist()
    assert [row["probability"] for row in rows] == pytest.approx([1.0] * len(rows))
    return sorted(((row["left_id"], row["right_id"]) for row in rows), key=str)


@given(MOMENTS, APART, st.sampled_from([">=", ">", "<=", "<"]))
def test_the_partner_is_that_of_an_asof_join(
    left: list[tuple[int, str]], right: list[tuple[int, str]], sign: str
) -> None:
    events, partners = (spans([(tick, 0, key) for tick, key in side]) for side in (left, right))
    direction = "backward" if ">" in sign else "forward"
    joined = uc.join_asof(events, partners, "key", direction, allow_exact_matches="=" in sign)
    text = f"SELECT l.id, r.id FROM l ASOF LEFT JOIN r ON l.key = r.key AND l.lower {sign} r.lower"
    assert certain_rows(joined) == rows_of_duckdb(events, partners, text)


@given(
    SPANS,
    SPANS,
    st.sampled_from(
        [
            ("overlaps", "l.lower <= r.upper AND r.lower <= l.upper"),
            ("contains", "l.lower <= r.lower AND r.upper <= l.upper"),
            ("before", "l.upper < r.lower"),
            ("within 2", "l.lower - r.upper <= 2 AND r.lower - l.upper <= 2"),
        ]
    ),
    st.sampled_from(["inner", "left"]),
)
def test_pairs_are_those_of_a_join_of_ranges(
    left: list[tuple[int, int, str]], right: list[tuple[int, int, str]], relation: tuple[str, str], how: str
) -> None:
    tables = spans(left), spans(right)
    when, condition = relation
    text = f"SELECT l.id, r.id FROM l {how} JOIN r ON l.key = r.key AND {condition}"
    assert certain_rows(uc.join(*tables, on="key", when=when, how=how)) == rows_of_duckdb(*tables, text)
