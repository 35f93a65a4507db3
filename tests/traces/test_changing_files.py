"""A trace that changes or disappears while it is read: its events as they were, or an error that names it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from uncertain_cep.traces import formats

COUNT = 50_000


def trace(rows: int, **further: list[Any]) -> pa.Table:
    columns = {"type": ["A"] * rows, "id": range(rows), "lower": range(rows), "upper": range(rows)}
    return pa.table({**columns, **further})


def written(path: Path, table: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        path.write_text(table.to_pandas().to_json(orient="records", lines=True))
    return path


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return written(tmp_path / f"trace.{request.param}", trace(COUNT))


def meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Have something happen between a look at the columns of the file and reading its rows."""
    look = formats.column_names

    def look_and_change(*arguments: Any) -> Any:
        result = look(*arguments)
        change()
        return result

    monkeypatch.setattr("uncertain_cep.traces.reading_steps.column_names", look_and_change)


def test_one_that_disappears(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, path.unlink)
    with pytest.raises(uc.TraceError, match="there is no such file") as raised:
        uc.read_traces(path)
    assert raised.value.faults[0].file == str(path)


def test_one_of_a_folder_that_disappears(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = written(path.with_name(f"other{path.suffix}"), trace(2))
    meanwhile(monkeypatch, lambda: other.unlink(missing_ok=True))
    with pytest.raises(uc.TraceError, match="there is no such file") as raised:
        uc.read_traces(path.parent)
    assert [fault.file for fault in raised.value.faults] == [str(other)]


def test_one_that_is_replaced_is_read_as_it_is_then(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace() -> None:
        os.replace(written(path.with_name(f"new{path.suffix}"), trace(7)), path)

    meanwhile(monkeypatch, replace)
    assert uc.read_traces(path).num_rows == 7


def test_one_that_gets_other_columns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: written(path, trace(7).drop_columns(["upper"])))
    with pytest.raises(uc.TraceError) as raised:
        uc.read_traces(path)
    assert {fault.file for fault in raised.value.faults} == {str(path)}


def test_one_that_is_cut_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a row, as by a program that writes it anew."""
    size = path.stat().st_size // 2
    if path.suffix == ".csv":
        # Of the last row: one that lacks but digits cannot be told from a whole one.
        size = path.read_bytes().rfind(b",", 0, size)
    meanwhile(monkeypatch, lambda: os.truncate(path, size))
    said = r"damaged or cut off|the line is no JSON|values for 4 columns"
    with pytest.raises(uc.TraceError, match=said) as raised:
        uc.read_traces(path)
    assert raised.value.faults[0].file == str(path)


@pytest.mark.parametrize("path", ["csv", "jsonl"], indirect=True)
def test_one_that_grows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole rows that are appended are read or not; a row that is written in part is a fault."""
    row = {".csv": f'"A",{COUNT},1,1\n', ".jsonl": '{"type":"A","id":-1,"lower":1,"upper":1}\n'}[path.suffix]

    def append(text: str) -> None:
        with path.open("a") as file:
            file.write(text)

    with monkeypatch.context() as patched:
        meanwhile(patched, lambda: append(row))
        assert uc.read_traces(path).num_rows == COUNT + 1
    with monkeypatch.context() as patched:
        meanwhile(patched, lambda: append(row[:8]))
        with pytest.raises(uc.TraceError, match=f"row {COUNT + 2}"):
            uc.read_traces(path)
