"""Files whose columns are those of the model, read without a schema."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.conftest import ROOT
from tests.traces.files import flags, messages, put, validation_report
from uncertain_cep.errors import TraceError
from uncertain_cep.timeline.domain import MODEL_COLUMNS, TimeDomain
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS
from uncertain_cep.traces import read_traces

CANONICAL = "type,id,lower,upper,x\nA,1,5,7,0.5\nB,2,6,6,1.5\n"


def test_files_of_the_model_need_no_schema(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", CANONICAL)
    rows = read_traces(path).to_pylist()
    assert rows[0] == {"type": "A", "id": 1, "lower": 5, "upper": 7, "x": 0.5}
    assert read_traces(path).schema.metadata is None
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(CANONICAL.encode()))
    assert read_traces(str(packed)).to_pylist() == rows
    times = put(tmp_path / "b.csv", "id,type,upper,lower\nx,A,2024-01-02,2024-01-01\n")
    table = read_traces(times)
    assert table.schema.names == ["type", "id", "lower", "upper", "tick"]
    assert TimeDomain.of(table.schema).describe() == "1d"
    text = put(
        tmp_path / "c.jsonl",
        '{"id":1,"type":"A","lower":"2024-01-01T00:00:00.25","upper":"2024-01-01T00:00:01"}\n',
    )
    assert TimeDomain.of(read_traces(text).schema).describe() == "1us"
    pmf = put(
        tmp_path / "d.jsonl",
        '{"id":1,"type":"A","lower":1,"upper":2,"pmf":[0.5,0.5]}\n{"id":2,"type":"A","lower":1,"upper":2}\n',
    )
    assert read_traces([pmf, path]).column("pmf").to_pylist() == [[0.5, 0.5], None, None, None]


def test_an_empty_trace_is_empty(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "type,id,lower,upper,x\n")
    table = read_traces(path)
    assert table.num_rows == 0
    assert [str(field.type) for field in table.schema][:4] == [
        "string", "int64", "timestamp[us]", "timestamp[us]",
    ]  # fmt: skip
    filled = put(tmp_path / "b.csv", CANONICAL)
    assert read_traces([path, filled]).schema.field("lower").type == pa.int64()
    pq.write_table(read_traces(filled).slice(0, 0), tmp_path / "c.parquet")
    assert read_traces(tmp_path / "c.parquet").schema == read_traces(filled).schema


def test_files_of_the_model_keep_their_tick(tmp_path: Path) -> None:
    raw = put(tmp_path / "a.csv", "type,t\nA,1\nA,2\n")
    coarse = read_traces(raw, flags(unit="s", tick="500ms"))
    pq.write_table(coarse, tmp_path / "a.parquet")
    assert read_traces(tmp_path / "a.parquet").equals(coarse)
    assert TimeDomain.of(read_traces(tmp_path / "a.parquet").schema).describe() == "500ms"
    pq.write_table(read_traces(raw, flags(unit="s", tick="1s")), tmp_path / "b.parquet")
    (message,) = messages(tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert "b.parquet: mixed ticks: a tick is 1s here, a tick is 500ms in" in message
    plain = put(tmp_path / "c.csv", "type,id,lower,upper\nA,5,2024-01-01 00:00:00,2024-01-01 00:00:01\n")
    (message,) = messages(tmp_path / "a.parquet", plain)
    assert "c.csv: mixed ticks: none is named here, a tick is 500ms in" in message
    assert len(messages(plain, put(tmp_path / "d.csv", CANONICAL))) == 2


def test_bounds_of_a_file_of_the_model_may_be_written_differently(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "type,id,lower,upper\nA,5,2024-01-01 00:00:00,2024-01-01 00:00:00.5\n")
    table = read_traces(path)
    assert table.schema.field("lower").type == table.schema.field("upper").type == pa.timestamp("ns")
    dates = put(tmp_path / "b.csv", "type,id,lower,upper\nA,5,2024-01-01,2024-01-01 10:00:00\n")
    assert TimeDomain.of(read_traces(dates).schema).describe() == "1us"


def test_files_that_are_not_of_the_model(tmp_path: Path) -> None:
    faults = messages(put(tmp_path / "a.csv", "kind,id,at\nA,1,5\n"))
    assert [message.partition(": ")[0].rpartition(", ")[2] for message in faults] == [
        "column 'type'", "column 'lower'", "column 'upper'",
    ]  # fmt: skip
    assert (
        "the file has kind, id, at. Name the columns type, id, lower and upper, or say in a schema"
        in faults[-1]
    )
    assert "the file has" not in faults[0]
    faults = messages(put(tmp_path / "b.csv", "type,id,lower,upper\n,1,9,7\nB,,,6\n"))
    assert [message.partition(": ")[0].partition(", ")[2] for message in faults] == [
        "row 1, column 'type', value null",
        "row 2, column 'id', value null",
        "row 2, column 'lower', value null",
        "row 1, column 'lower', value 9",
    ]
    (message,) = messages(put(tmp_path / "c.csv", "type,id,lower,upper,pmf\nA,1,5,7,0.5\n"))
    assert "column 'pmf': its type is double: a pmf is a list of numbers" in message
    (message,) = messages(put(tmp_path / "d.csv", "type,id,lower,upper\nA,1,soon,7\n"))
    assert "row 1, column 'lower', value 'soon': no ISO 8601 time" in message or "column 'upper'" in message


def test_every_file_is_read_before_giving_up(tmp_path: Path) -> None:
    good = put(tmp_path / "a.csv", CANONICAL)
    bad = put(tmp_path / "b.csv", "type,id,lower,upper,x\nA,1\n")
    cut = tmp_path / "c.parquet"
    cut.write_bytes(b"PAR1")
    faults = messages(good, bad, cut, tmp_path / "none.csv")
    assert [message.partition(": ")[0] for message in faults] == [
        f"{tmp_path / 'none.csv'}",
        f"{bad}, row 1, value 'A,1'",
        f"{cut}",
    ]
    with pytest.raises(TraceError, match="no file is given"):
        read_traces([])


def test_ids_used_twice_are_for_validation(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "type,id,lower,upper,job\nA,1,5,7,x\nA,2,5,7,x\nA,1,5,7,y\nA,2,5,7,x\n")
    assert read_traces(path).num_rows == 4
    assert [(fault.file, fault.row, fault.value) for fault in validation_report([path]).faults] == [
        (str(path), 3, "1"),
        (str(path), 4, "2"),
    ]
    assert [fault.row for fault in validation_report(path, partition=["job"]).faults] == [4]
    (fault,) = validation_report(path, partition=["task"]).faults
    assert fault.column == "task"


def test_bounds_of_different_kinds_are_one_fault(tmp_path: Path) -> None:
    stamp = pa.array([1], pa.timestamp("ms"))
    pq.write_table(pa.table({"type": ["A"], "id": [1], "lower": [1], "upper": stamp}), tmp_path / "a.parquet")
    (message,) = messages(tmp_path / "a.parquet")
    assert "column 'upper': its type is timestamp[ms], but column 'lower' is int64" in message


def test_every_column_of_the_model_is_documented() -> None:
    table = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8").partition("\n## ")[0]
    named = [
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall("`(\\w+)`", line.split("|")[1])
    ]
    assert sorted(named) == sorted((*MODEL_COLUMNS, *SPAN_COLUMNS, *SPAN_LAWS))
    assert uc.read_traces.__doc__ is not None
    assert all(name in uc.read_traces.__doc__ for name in MODEL_COLUMNS)
