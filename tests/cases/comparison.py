"""Reading the engine's result frames, and comparing them with the oracle's answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd
import polars as pl
import pyarrow as pa

from tests.cases.cases import Case
from uncertain_cep.testing.model import Identifier, Key, Match, Value

RELATIVE_ERROR = 1e-9
"""How far a confidence may be from the exact fraction (SEMANTICS 4)."""


Frame: TypeAlias = pa.Table | pa.RecordBatch | pd.DataFrame | pl.DataFrame


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the engine: its range in ticks, and its confidence if there is one."""

    range_lower: int
    range_upper: int
    confidence: float | None


def significant(confidence: float) -> float:
    """Return a confidence rounded to 12 significant digits, by which rankings and ties compare."""
    return float(f"{confidence:.11e}")


def records(frame: Frame) -> list[dict[str, Any]]:
    """Return the rows of a pyarrow, pandas or Polars frame as plain dictionaries."""
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        rows: list[dict[str, Any]] = frame.to_pylist()
        return rows
    if isinstance(frame, pl.DataFrame):
        return list(frame.to_dicts())
    return [{name: _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if hasattr(value, "item") else value


def same_time(value: int) -> int:
    """Return an int64 tick as it is."""
    return int(value)


def rows_of(
    frame: Frame,
    case: Case,
    *,
    to_tick: Callable[[Any], int] = same_time,
    to_id: Callable[[Any], Identifier] = lambda id: id,
) -> dict[Key, Row]:
    """Return the engine's rows by partition and signature; each may occur once only."""
    partition = case.query().partition
    rows: dict[Key, Row] = {}
    for record in records(frame):
        values: tuple[Value, ...] = tuple(record[name] for name in partition)
        key = values, tuple((variable, to_id(record[variable])) for variable in case.variables)
        assert key not in rows, f"the engine returned {key} twice"
        rows[key] = Row(
            to_tick(record["range_lower"]), to_tick(record["range_upper"]), record.get("confidence")
        )
    return rows


def by_key(matches: Iterable[Match]) -> dict[Key, Match]:
    """Return the oracle's matches by partition and signature."""
    return {(match.partition, match.signature): match for match in matches}


def assert_answer(rows: Mapping[Key, Row], matches: Iterable[Match]) -> None:
    """Assert that the engine's rows are the oracle's: same signatures, same ranges, close confidences."""
    expected = by_key(matches)
    assert rows.keys() == expected.keys(), (
        f"missing: {sorted(expected.keys() - rows.keys(), key=repr)}, "
        f"wrong: {sorted(rows.keys() - expected.keys(), key=repr)}"
    )
    for key, match in expected.items():
        row = rows[key]
        assert (row.range_lower, row.range_upper) == (match.range_lower, match.range_upper), key
        assert row.confidence is not None
        assert row.confidence <= 1.0, key
        assert math.isclose(row.confidence, match.confidence, rel_tol=RELATIVE_ERROR), (
            f"{key}: {row.confidence} instead of {match.confidence}"
        )


def assert_same(rows: Mapping[Key, Row], other_rows: Mapping[Key, Row]) -> None:
    """Assert that two results of the engine are one answer."""
    assert rows.keys() == other_rows.keys()
    for key, row in rows.items():
        other = other_rows[key]
        assert (row.range_lower, row.range_upper) == (other.range_lower, other.range_upper), key
        if row.confidence is None or other.confidence is None:
            assert row.confidence is other.confidence
        else:
            assert math.isclose(row.confidence, other.confidence, rel_tol=RELATIVE_ERROR), key
