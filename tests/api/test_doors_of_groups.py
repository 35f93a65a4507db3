"""RETURN PROBABILITY by every kind of frame, function and command: the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from uncertain_cep.cli import main

EVENTS: Final = pa.table(
    {
        "type": ["A", "B", "B", "A", "B", "A"],
        "id": [1, 2, 3, 4, 5, 6],
        "lower": [0, 2, 3, 10, 9, 20],
        "upper": [4, 5, 5, 12, 15, 22],
        "host": ["x", "x", "y", "y", "y", "x"],
    }
)
QUERY: Final = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN PROBABILITY BY a, b.host EVERY 6"
EXPECTED: Final = uc.match(EVENTS, QUERY).to_pylist()

FRAMES: Final[dict[str, Callable[[pa.Table], Any]]] = {
    "a table": lambda table: table,
    "batches": lambda table: pa.RecordBatchReader.from_batches(
        table.schema, table.to_batches(max_chunksize=2)
    ),
    "pandas": lambda table: table.to_pandas(),
    "Polars": pl.from_arrow,
}


def as_rows(answer: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame of any kind."""
    if isinstance(answer, pl.DataFrame):
        return answer.to_dicts()
    is_table = isinstance(answer, pa.Table)
    rows: list[dict[str, Any]] = answer.to_pylist() if is_table else answer.to_dict("records")
    return rows


def assert_expected(rows: list[dict[str, Any]]) -> None:
    assert len(EXPECTED) > 3
    assert [list(row) for row in rows] == [list(row) for row in EXPECTED]
    assert rows == [pytest.approx(row) for row in EXPECTED]


@pytest.mark.parametrize("kind", FRAMES)
def test_match(kind: str) -> None:
    assert_expected(as_rows(uc.match(FRAMES[kind](EVENTS), QUERY)))


@pytest.mark.parametrize("kind", FRAMES)
def test_iter_matches(kind: str) -> None:
    batches = list(uc.iter_matches(FRAMES[kind](EVENTS), QUERY))
    assert_expected(as_rows(pa.Table.from_batches(batches)))


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_the_command(ending: str, tmp_path: Path) -> None:
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    out = tmp_path / f"out.{ending}"
    done = CliRunner().invoke(main, ["match", QUERY, str(tmp_path / "events.parquet"), "-o", str(out)])
    assert done.exit_code == 0, done.output
    read = {"csv": pyarrow.csv.read_csv, "parquet": pq.read_table, "jsonl": pa.json.read_json}
    assert_expected(as_rows(read[ending](out)))


def test_the_last_of_several_queries(tmp_path: Path) -> None:
    """Matches of one query are the events of the next, whose groups are the answer."""
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    first = "PATTERN SEQ(A a, B b) WITHIN 9"
    last = "PATTERN SEQ(Pair p, A c) WITHIN 30 RETURN PROBABILITY BY c"
    out = tmp_path / "out.parquet"
    arguments = ["match", first, last, str(tmp_path / "events.parquet"), "--as", "Pair", "-o", str(out)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    pairs = uc.with_matches(EVENTS, uc.match(EVENTS, first), "Pair")
    rows = uc.match(pairs, last).to_pylist()
    assert rows
    assert pq.read_table(out).to_pylist() == rows
