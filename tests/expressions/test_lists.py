"""Elements of lists: x IN a.items, and SHARES of two lists, against Python's own answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc

Row = dict[str, Any]

TEXTS = st.sampled_from(["", "a", "b", "ab", "é", "a\x1fb", "\x1e", "\x1e1"])
NUMBERS = st.sampled_from([0, 1, -7, 2**53 + 1])
FLOATS = st.sampled_from([0.0, 1.0, 0.5, -7.0, float("inf")])


def trace(rows: list[tuple[str, Any, Any]], x_type: pa.DataType, element: pa.DataType) -> pa.Table:
    """Return events of certain times one after the other, by type, x and items."""
    return pa.table(
        {
            "type": [kind for kind, _, _ in rows],
            "id": pa.array(range(len(rows)), pa.int64()),
            "lower": pa.array(range(len(rows)), pa.int64()),
            "upper": pa.array(range(len(rows)), pa.int64()),
            "x": pa.array([x for _, x, _ in rows], x_type),
            "items": pa.array([items for _, _, items in rows], pa.list_(element)),
        }
    )


@st.composite
def list_traces(draw: st.DrawFn) -> pa.Table:
    x_type, element, values, elements = draw(
        st.sampled_from(
            [
                (pa.string(), pa.string(), TEXTS, TEXTS),
                (pa.int64(), pa.int64(), NUMBERS, NUMBERS),
                (pa.int64(), pa.float64(), NUMBERS, FLOATS),
                (pa.float64(), pa.int64(), FLOATS, NUMBERS),
                (pa.bool_(), pa.bool_(), st.booleans(), st.booleans()),
            ]
        )
    )
    lists = st.none() | st.lists(elements | st.none(), max_size=3)
    row = st.tuples(st.sampled_from("ABN"), values | st.none(), lists)
    return trace(draw(st.lists(row, max_size=6)), x_type, element)


def is_in(x: Any, items: list[Any] | None) -> bool | None:
    return None if x is None or items is None else x in [each for each in items if each is not None]


def shares(one: list[Any] | None, other: list[Any] | None) -> bool | None:
    return None if one is None else any(is_in(x, other) for x in one) if other is not None else None


def pairs(table: pa.Table, query: str) -> set[tuple[int, int]]:
    return {(row["a"], row["b"]) for row in uc.match(table, query).to_pylist()}


@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
@given(list_traces())
def test_elements_are_those_of_python(table: pa.Table) -> None:
    rows = table.to_pylist()
    couples = [
        (a, b) for a in rows for b in rows if a["type"] == "A" and b["type"] == "B" and a["id"] < b["id"]
    ]
    base = "PATTERN SEQ(A a, B b) WHERE {} WITHIN 99"
    spoiling = [row for row in rows if row["type"] == "N"]
    cases: dict[str, Callable[[Row, Row], bool | None]] = {
        "a.x IN b.items": lambda a, b: is_in(a["x"], b["items"]),
        "b.x NOT IN a.items": lambda a, b: is_in(b["x"], a["items"]) is False,
        "a.x IN a.items": lambda a, _: is_in(a["x"], a["items"]),
        "SHARES(a.items, b.items)": lambda a, b: shares(a["items"], b["items"]),
        "NOT SHARES(b.items, a.items)": lambda a, b: shares(b["items"], a["items"]) is False,
    }
    for condition, holds in cases.items():
        expected = {(a["id"], b["id"]) for a, b in couples if holds(a, b)}
        assert pairs(table, base.format(condition)) == expected, condition
    negated = "PATTERN SEQ(A a, !N n, B b) WHERE {} WITHIN 99"
    spoiled: dict[str, Callable[[Row, Row], bool | None]] = {
        "n.x IN a.items": lambda n, a: is_in(n["x"], a["items"]),
        "SHARES(n.items, a.items)": lambda n, a: shares(n["items"], a["items"]),
    }
    for condition, spoils in spoiled.items():
        expected = {
            (a["id"], b["id"])
            for a, b in couples
            if not any(spoils(n, a) and a["id"] < n["id"] < b["id"] for n in spoiling)
        }
        assert pairs(table, negated.format(condition)) == expected, condition


TABLE = trace(
    [("A", "u", ["p", "q"]), ("B", "p", ["q", "r"]), ("B", "r", []), ("A", "q", None), ("B", "q", ["q"])],
    pa.string(),
    pa.string(),
)
QUERY = "PATTERN SEQ(A a, B b) WHERE b.x IN a.items AND SHARES(a.items, b.items) WITHIN 99"


@pytest.mark.parametrize(
    "frame", [lambda t: t, pl.from_arrow, lambda t: t.to_pandas()], ids=["arrow", "polars", "pandas"]
)
def test_frames(frame: Any) -> None:
    answer = uc.match(frame(TABLE), QUERY)
    rows = answer.to_dict("records") if isinstance(answer, pd.DataFrame) else pl.DataFrame(answer).to_dicts()
    assert [(row["a"], row["b"]) for row in rows] == [(0, 1), (0, 4)]


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_list(pa.string()),
        pa.list_(pa.large_string()),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_kinds_of_lists(kind: pa.DataType) -> None:
    items = TABLE["items"].combine_chunks().to_pylist()
    table = TABLE.set_column(5, "items", pa.array(items, kind))
    assert uc.match(table, QUERY).num_rows == 2
    chunked = pa.concat_tables([table.slice(0, 2), table.slice(2, 1), table.slice(3)])
    assert uc.match(chunked, QUERY).num_rows == 2


def test_lists_that_are_all_empty() -> None:
    table = TABLE.set_column(5, "items", pa.array([[], [None], None, [], []], pa.list_(pa.null())))
    base = "PATTERN SEQ(A a, B b) WHERE {} WITHIN 99"
    assert uc.match(table, base.format("b.x IN a.items OR SHARES(a.items, b.items)")).num_rows == 0
    assert uc.match(table, base.format("b.x NOT IN a.items AND NULL IN a.items")).num_rows == 0
    assert uc.match(table, base.format("b.x NOT IN a.items")).num_rows == 4


def test_lists_in_kleene_and_streams() -> None:
    query = "PATTERN SEQ(A a, B+ b[]) WHERE b[i].x IN a.items AND 'q' IN b[1].items WITHIN 99"
    matches = uc.match(TABLE, query)
    assert sorted(matches["b"].to_pylist()) == [[1], [1, 4], [4]]
    matcher = uc.IncrementalMatcher(query, TABLE.schema)
    parts = [matcher.push(TABLE.slice(row, 1)) for row in range(5)] + [matcher.close()]
    assert sorted(pa.Table.from_batches(parts)["b"].to_pylist()) == [[1], [1, 4], [4]]


def test_single_events_of_a_stream() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE 'q' IN b.items AND b.x IN a.items WITHIN 99"
    matcher = uc.IncrementalMatcher(query, TABLE.schema, evaluation="any_state")
    parts = [matcher.push(TABLE.slice(row, 1)) for row in range(5)] + [matcher.close()]
    assert pa.Table.from_batches(parts).num_rows == uc.match(TABLE, query).num_rows == 2


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_files(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"events.{ending}"
    if ending == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(TABLE, path)
    else:
        path.write_text("\n".join(json.dumps(row) for row in TABLE.to_pylist()))
    assert uc.match(uc.read_traces(path), QUERY).num_rows == 2


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a.items = b.items", "ask for its elements"),
        ("a.x IN b.x", "not a list"),
        ("1 IN b.items", "needs one kind"),
        ("a.x IN b.times", "only lists of numbers"),
        ("SHARES(a.x, b.items)", "not a list"),
        ("SHARES(a.items, 'x')", "a list is an attribute"),
    ],
)
def test_what_is_refused(condition: str, message: str) -> None:
    table = TABLE.append_column("times", pa.array([[0]] * 5, pa.list_(pa.timestamp("us"))))
    with pytest.raises(uc.QueryError, match=message):
        uc.match(table, f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 9")


def test_conditions_are_shown_as_written() -> None:
    shown = str(uc.explain(QUERY, TABLE))
    assert "b.x IN a.items" in shown
    assert "SHARES(a.items, b.items)" in shown
