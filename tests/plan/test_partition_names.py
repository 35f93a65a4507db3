"""Partitions whose keys the components call differently (SEMANTICS 9, in tests/oracle's words)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc

Row = dict[str, Any]

WHERE = {
    "two": ("SEQ(A a, B b)", "a.k = b.node"),
    "chain": ("SEQ(A a, B b, C c)", "a.k = b.node AND b.node = c.k"),
    "negated": ("SEQ(A a, !C n, B b)", "a.k = b.k AND n.node = a.k"),
    "Kleene": ("SEQ(A+ a[], B b)", "[j] AND a[i].k = b.node"),
    "two keys": ("SEQ(A a, B b)", "[j] AND a.k = b.node"),
    "text": ("SEQ(A a, B b)", "a.name = b.other"),
}


def table_of(rows: list[tuple[str, int, int, int, int, int]]) -> pa.Table:
    kinds, lower, length, k, node, j = zip(*rows, strict=True) if rows else ((),) * 6
    return pa.table(
        {
            "type": pa.array(kinds, pa.string()),
            "id": pa.array(range(len(rows)), pa.int64()),
            "lower": pa.array(lower, pa.int64()),
            "upper": pa.array([low + more for low, more in zip(lower, length, strict=True)], pa.int64()),
            "k": pa.array(k, pa.int64()),
            "node": pa.array(node, pa.int64()),
            "j": pa.array(j, pa.int64()),
            "name": pa.array([f"n{value}" for value in k], pa.string()).dictionary_encode(),
            "other": pa.array([f"n{value}" for value in node], pa.string()),
        }
    )


def chosen(matches: list[Row], variables: list[str], keys: list[str]) -> list[Row]:
    """Choose, in each partition, matches whose ranges do not overlap, best first, ties by signature."""
    order = sorted(
        matches, key=lambda row: (-float(f"{row['confidence']:.12g}"), *(row[name] for name in variables))
    )
    taken: list[Row] = []
    for row in order:
        same = [other for other in taken if all(other[key] == row[key] for key in keys)]
        if all(
            other["range_upper"] < row["range_lower"] or row["range_upper"] < other["range_lower"]
            for other in same
        ):
            taken.append(row)
    return taken


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("AABBC"),
        st.integers(0, 12),
        st.integers(0, 3),
        st.integers(0, 1),
        st.integers(0, 1),
        st.integers(0, 1),
    ),
    max_size=9,
)


@pytest.mark.parametrize("name", list(WHERE))
@given(rows=EVENTS, window=st.integers(2, 9))
def test_non_overlapping_works_per_partition_however_its_keys_are_called(
    name: str, rows: list[tuple[str, int, int, int, int, int]], window: int
) -> None:
    pattern, where = WHERE[name]
    table = table_of(rows)
    query = f"PATTERN {pattern} WHERE {where} WITHIN {window}"
    last = "c" if name == "chain" else "b"
    key = {"chain": "c.k", "negated": "b.k", "text": "b.other"}.get(name, "b.node")
    returned = f" RETURN {key} AS own_key, {last}.j AS own_j"
    matches_read = uc.match(table, query + returned).to_pylist()
    variables = ["a", "b", "c"] if name == "chain" else ["a", "b"]
    keys = ["own_key"] + (["own_j"] if "[j]" in where else [])
    assert "k" not in (matches_read[0] if matches_read else {})
    chosen_rows = chosen(matches_read, variables, keys)
    # The clause comes before RETURN or behind it, as the language page says.
    answer = uc.match(table, f"{query}{returned} OUTPUT NON OVERLAPPING")
    assert sorted(answer.to_pylist(), key=repr) == sorted(chosen_rows, key=repr)
    bare = uc.match(table, f"{query} OUTPUT NON OVERLAPPING", confidence=False)
    assert bare.column_names == [*(["j"] if "[j]" in where else []), *variables, "range_lower", "range_upper"]
    assert bare.num_rows == len(chosen_rows)


def test_a_partition_attribute_is_a_column_where_all_components_call_it_the_same() -> None:
    table = table_of([("A", 0, 0, 1, 1, 1), ("C", 1, 0, 0, 0, 0), ("B", 2, 0, 1, 1, 1)])

    def names(pattern: str, where: str) -> list[str]:
        column_names: list[str] = uc.match(table, f"PATTERN {pattern} WHERE {where} WITHIN 9").column_names
        return column_names[:2]

    assert names("SEQ(A a, B b)", "a.k = b.k") == ["k", "a"]
    assert names("SEQ(A a, B b)", "a.k = b.node") == ["a", "b"]
    assert names("SEQ(A a, !C n, B b)", "a.k = b.k AND n.k = a.k") == ["k", "a"]
    assert names("SEQ(A a, !C n, B b)", "a.k = b.k AND n.node = a.k") == ["a", "b"]
    assert names("SEQ(A a, B b)", "a.k = b.node AND a.node = b.node AND a.k = b.k") == ["k", "a"]


def test_counts_are_by_attributes_that_all_components_share() -> None:
    table = table_of([("A", 0, 0, 1, 1, 1), ("B", 2, 0, 1, 1, 1)])
    query = "PATTERN SEQ(A a, B b) WHERE {} WITHIN 9 RETURN EXPECTED COUNT BY {}"
    counted = uc.match(table, query.format("a.k = b.k", "k")).to_pylist()
    assert counted == [{"k": 1, "expected_count": 1.0}]
    for where, by in (("a.k = b.node", "k"), ("a.k = b.node", "node"), ("a.k = b.k", "node")):
        with pytest.raises(uc.QueryError, match=f"BY {by}: the events of a match need not agree on {by}"):
            uc.match(table, query.format(where, by))
