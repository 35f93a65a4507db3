"""Columns that no query uses may hold anything: they are no fault of a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke
from uncertain_cep.query import attributes_in, parse
from uncertain_cep.traces import json_files
from uncertain_cep.traces.reading import load_traces

QUERY = "PATTERN SEQ(A a, B b) WHERE a.x + 1 = b.x WITHIN 5"
CHANGING: tuple[list[Any], ...] = (
    [1, 2, "text", "text"],
    ["2026-01-05", {"a": 1}, [1], None],
    [True, 1.5, "2026-01-05T08:00:00", 2],
)
SCHEMA = """
[[events]]
type_column = "type"
uncertainty = { kind = "columns", lower = "lower", upper = "upper" }
"""


def rows(note: list[Any], **attributes: list[Any]) -> list[dict[str, Any]]:
    columns = {
        "type": ["A", "B", "A", "B"],
        "id": [1, 2, 3, 4],
        "lower": [1, 2, 3, 4],
        "upper": [1, 3, 4, 5],
        "x": [1, 2, 3, 4],
        "note": note,
        **attributes,
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("schema", [None, SCHEMA, f'{SCHEMA}attributes = {{ x = "x" }}'])
@pytest.mark.parametrize("note", CHANGING, ids=range(len(CHANGING)))
def test_a_json_column_that_changes_its_type(
    invoke: Invoke, tmp_path: Path, note: list[Any], schema: str | None
) -> None:
    trace = written(tmp_path, rows(note))
    options = []
    if schema is not None:
        (tmp_path / "schema.toml").write_text(schema)
        options = ["--schema", tmp_path / "schema.toml"]
    result = invoke("match", QUERY, trace, *options)
    assert result.exit_code == 0, result.stderr
    assert [line.split(",")[:2] for line in result.stdout.splitlines()] == [
        ['"a"', '"b"'],
        ["1", "2"],
        ["3", "4"],
    ]
    assert invoke("explain", QUERY, trace, *options).exit_code == 0
    for more in (" RETURN a.note", ""):
        query = QUERY + more if more else QUERY.replace("WHERE", "WHERE [note] AND")
        refusal = invoke("match", query, trace, *options)
        assert refusal.exit_code == 2
        assert "damaged" not in refusal.stderr
        if schema is None or "attributes" not in schema:
            assert "column 'note'" in refusal.stderr


def test_the_rest_is_read_as_if_it_were_alone(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "day": ["2026-01-05", "2026-01-06", None, "2026-01-07"],
        "at": ["2026-01-05T08:00:00"] * 4,
        "f": [1, 2.5, None, 1e300],
        "deep": [{"a": 1}, {"b": [1]}, None, {}],
        "\u00fc": ["\u00e9", "\ud83d\ude00", "", None],
    }
    (tmp_path / "sound").mkdir()
    sound = written(tmp_path / "sound", rows([1, 2, 3, 4], **columns))
    changing = written(tmp_path, rows(CHANGING[0], **columns))
    used = ["x", *columns]
    loaded = load_traces(changing, used=used)
    assert loaded.faults == ()
    assert loaded.table == load_traces(sound, used=used).table
    assert loaded.table is not None
    assert "note" not in loaded.table.column_names


def test_python_reads_all_columns_and_names_the_one_at_fault(tmp_path: Path) -> None:
    trace = written(tmp_path, rows(CHANGING[0]))
    with pytest.raises(
        uc.TraceError, match=r"row 3, column 'note', value \"text\": it holds text, but a number"
    ):
        uc.read_traces(trace)
    assert [fault.column for fault in uc.validate(trace)] == ["note", "note"]


def test_a_csv_column_that_changes_its_type_is_text(tmp_path: Path) -> None:
    """However late it does, and whether it is used or not."""
    trace = tmp_path / "trace.csv"
    count = 120_000
    lines = (
        "AB"[row % 2] + f",{row},{row},{row},{'x' if row == count - 1 else row}\n" for row in range(count)
    )
    trace.write_text("type,id,lower,upper,note\n" + "".join(lines))
    assert trace.stat().st_size > 2**20
    table = uc.read_traces(trace)
    assert table.schema.field("note").type == pa.string()
    assert load_traces(trace, used=()).attributes() == {*table.column_names}


def test_a_type_that_is_given_for_an_unused_column(invoke: Invoke, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("type,id,lower,upper,note\nA,1,1,1,1\nB,2,2,2,text\n")
    (tmp_path / "schema.toml").write_text(f'[types]\nnote = "int"\n{SCHEMA}')
    for query, code in (("PATTERN SEQ(A a, B b) WITHIN 5", 0), (QUERY.replace("x", "note"), 2)):
        result = invoke("match", query, trace, "--schema", tmp_path / "schema.toml")
        assert result.exit_code == code
        assert ("column 'note', value 'text': the value is no int" in result.stderr) == (code == 2)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_errors_tell_of_the_columns_that_were_not_read(invoke: Invoke, tmp_path: Path, suffix: str) -> None:
    trace = written(tmp_path, rows([1, 2, 3, 4]))
    if suffix == "parquet":
        trace = tmp_path / "trace.parquet"
        pq.write_table(pa.Table.from_pylist(rows([1, 2, 3, 4])), trace)
    for command in ("match", "explain"):
        result = invoke(command, QUERY.replace("a.x", "a.noot"), trace)
        assert result.exit_code == 2
        assert "note" in result.stderr


def test_the_attributes_of_a_query() -> None:
    query = parse(
        "PATTERN SEQ(A a, B+ b[], C c) WHERE [k] AND a.x + b[i].y < -c.z AND avg(b[..i-1].w) > 1 "
        "AND count(b[]) > 1 WITHIN 5 RETURN a.r, max(b[].s) AS m"
    )
    assert attributes_in(query) == frozenset("kxyzwrs")
    assert attributes_in(parse("PATTERN SEQ(A a, B b) WITHIN 5 RETURN EXPECTED COUNT BY g")) == frozenset("g")
    assert attributes_in(parse("PATTERN SEQ(A a, B b) WHERE a.x > 1 WITHIN 5 RETURN a.*")) is None


def test_all_attributes_are_read_where_they_are_returned(invoke: Invoke, tmp_path: Path) -> None:
    trace = written(tmp_path, rows([1, 2, 3, 4]))
    result = invoke("match", f"{QUERY} RETURN a.*", trace)
    assert result.exit_code == 0, result.stderr
    assert "note" in result.stdout.splitlines()[0]
    several = invoke(
        "match", f"{QUERY} RETURN a.*", "PATTERN SEQ(C c, B b) WITHIN 9 RETURN c", trace, "--as", "C"
    )
    assert several.exit_code == 0, several.stderr


SPARK_TASK = (
    '{"Event":"SparkListenerTaskStart","Stage ID":1,"Stage Attempt ID":0,"Task Info":{"Task ID":7,"Index":0,'
    '"Attempt":0,"Launch Time":1700000000000,"Executor ID":"1","Host":"h"}}\n'
)
METRIC = """# TYPE up gauge
up{instance="a",job="node"} 1 1700000000000
"""


@pytest.mark.parametrize(
    ("name", "content", "asked", "meant"),
    [
        ("log.jsonl", SPARK_TASK, "task", "task_id"),
        ("log.prom", METRIC, "instanc", "instance"),
        ("trace.jsonl", "", "note_", "note"),
        ("trace.csv", "type,id,lower,upper,note\nA,1,1,1,x\n", "not", "note"),
    ],
)
@pytest.mark.parametrize("command", ["match", "explain"])
def test_a_misspelt_attribute_is_found_among_columns_that_were_not_read(
    invoke: Invoke,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: str,
    asked: str,
    meant: str,
    command: str,
) -> None:
    monkeypatch.setattr(json_files, "JSON_BLOCK", 64)
    monkeypatch.setattr(json_files, "_PIECE", 64)
    trace = tmp_path / name
    if content:
        trace.write_text(content)
    else:
        written(tmp_path, rows(["x", "y", None, "z"]))
    format_ = ["--input-format", "openmetrics"] if name.endswith(".prom") else []
    query = f"PATTERN SEQ(A a, B b) WHERE a.{asked} = b.{asked} WITHIN 5s"
    result = invoke(command, query, trace, *format_)
    assert result.exit_code == 2
    assert f"unknown attribute {asked}: did you mean {meant}?" in result.stderr


def test_attributes_that_a_schema_lists_are_all_that_is_meant(invoke: Invoke, tmp_path: Path) -> None:
    trace = written(tmp_path, rows([1, 2, 3, 4]))
    (tmp_path / "schema.toml").write_text(f'{SCHEMA}attributes = {{ value = "x" }}')
    query = "PATTERN SEQ(A a, B b) WHERE a.notes = 1 WITHIN 5"
    result = invoke("match", query, trace, "--schema", tmp_path / "schema.toml")
    assert "unknown attribute notes: the trace has type, id, lower, upper, value" in result.stderr
