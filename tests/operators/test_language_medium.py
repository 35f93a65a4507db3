"""Traces of some hundred events, too many for the possible worlds: two ways through the engine agree."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.plan import EvaluationPlan

Rows = dict[tuple[object, ...], tuple[int, int, float]]


def _trace(seed: int, count: int = 250) -> pa.Table:
    rng = np.random.default_rng(seed)
    lower = rng.integers(0, 400, count)
    length = np.where(rng.random(count) < 0.05, rng.integers(20, 60, count), rng.integers(0, 6, count))
    pmfs = [
        None if rng.random() < 0.7 else (weights := rng.random(size + 1) + 0.1) / weights.sum()
        for size in length
    ]
    return pa.table(
        {
            "type": rng.choice(["A", "B", "C"], count),
            "id": np.arange(count),
            "lower": lower,
            "upper": lower + length,
            "pmf": pa.array([None if pmf is None else pmf.tolist() for pmf in pmfs], pa.list_(pa.float64())),
            "k": rng.integers(0, 3, count),
            "x": rng.integers(0, 10, count),
        }
    )


def _rows(table: pa.Table, *variables: str) -> Rows:
    rows: Rows = {}
    for row in table.to_pylist():
        key: list[object] = []
        for variable in variables:
            key += row[variable] if isinstance(row[variable], list) else [row[variable]]
        assert tuple(key) not in rows
        rows[tuple(key)] = row["range_lower"], row["range_upper"], row["confidence"]
    return rows


def _assert_same(one: Rows, other: Rows) -> None:
    assert one.keys() == other.keys()
    assert one
    for key, (first, last, confidence) in one.items():
        assert other[key][:2] == (first, last)
        assert confidence == pytest.approx(other[key][2], rel=1e-9)


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
@pytest.mark.parametrize("asked", ["", "[k]", "a.x < c.x", "[k] AND b.x != a.x"])
def test_plain_sequences_grow_as_they_join(
    strategy: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _trace(7)
    query = f"PATTERN SEQ(A a, B b, C c) WHERE {strategy}(a, b, c) {{ {asked} }} WITHIN 25"
    joined = _rows(uc.match(table, query), "a", "b", "c")
    monkeypatch.setattr(EvaluationPlan, "is_plain", property(lambda _: False))
    _assert_same(_rows(uc.match(table, query), "a", "b", "c"), joined)


@pytest.mark.parametrize("asked", ["", "[k] AND"])
def test_a_series_is_as_many_components_in_a_row(asked: str) -> None:
    table = _trace(8)
    series = f"PATTERN SEQ(A a, B+ b[], C c) WHERE {asked} b[i].x > a.x AND count(b[]) <= 2 WITHIN 20"
    one = f"PATTERN SEQ(A a, B b, C c) WHERE {asked} b.x > a.x WITHIN 20"
    two = f"PATTERN SEQ(A a, B b, B d, C c) WHERE {asked} b.x > a.x AND d.x > a.x WITHIN 20"
    expected = _rows(uc.match(table, one), "a", "b", "c")
    expected |= _rows(uc.match(table, two), "a", "b", "d", "c")
    _assert_same(_rows(uc.match(table, series), "a", "b", "c"), expected)


def test_certain_times_and_contiguity_are_neighbours_in_a_list() -> None:
    table = _trace(9)
    order = np.arange(table.num_rows)
    times = pa.array(2 * order)
    certain = table.drop_columns(["pmf"]).set_column(2, "lower", times).set_column(3, "upper", times)
    types = certain.column("type").to_pylist()
    found = uc.match(certain, "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) WITHIN 10")
    neighbours = {(i, i + 1) for i in order[:-1].tolist() if (types[i], types[i + 1]) == ("A", "B")}
    assert {(row["a"], row["b"]) for row in found.to_pylist()} == neighbours
    assert set(found.column("confidence").to_pylist()) == {1.0}
