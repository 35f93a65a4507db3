"""Time zones beside none, and extractions that come to nothing, are not passed over in silence."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.traces.files import schema_of
from uncertain_cep.traces import TraceSchema, json_files, load_schema, read_traces

EXACT = TraceSchema.from_flags(type="A", time="at", uncertainty="exact")
BOUNDS = TraceSchema.from_flags(type="A", uncertainty="columns:lo,hi")


def said(ask: Callable[..., object], *arguments: object, **options: object) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask(*arguments, **options)
    return [str(warning.message) for warning in caught]


def csv(folder: Path, name: str, *lines: str) -> Path:
    file = folder / name
    file.write_text("\n".join([*lines, ""]))
    return file


@pytest.mark.parametrize("naive", ["2024-05-31T10:00:00", "2024-05-31 10:00:00.250", "2024-05-31"])
@pytest.mark.parametrize("zoned", ["2024-05-31T10:00:00Z", "2024-05-31 10:00:00.5+02:00"])
@pytest.mark.parametrize("typed", [False, True])
def test_rows_of_one_column_agree(tmp_path: Path, naive: str, zoned: str, typed: bool) -> None:
    file = csv(tmp_path, "a.csv", "at,x", *(f"{stamp},1" for stamp in (zoned, naive, zoned, "", naive)))
    schema = 'types = { at = "timestamp" }\n' if typed else ""
    schema += '[[events]]\ntype = "A"\ntime = "at"\nmissing = "drop"\nuncertainty = { kind = "exact" }\n'
    text = tmp_path / "schema.toml"
    text.write_text(schema)
    with pytest.raises(
        uc.TraceError, match="no time zone, and other stamps of this column have one"
    ) as error:
        read_traces([file], load_schema(text))
    assert [(fault.file, fault.row, fault.column) for fault in error.value.faults] == [
        (str(file), 2, "at"), (str(file), 5, "at"),
    ]  # fmt: skip


@pytest.mark.parametrize("stamp", ["2024-05-31T10:00:00", "2024-05-31T10:00:00Z"])
def test_rows_that_agree_are_read(tmp_path: Path, stamp: str) -> None:
    file = csv(tmp_path, "a.csv", "at,x", f"{stamp},1", f"{stamp},2")
    assert said(read_traces, [file], EXACT) == []


def rows_of(kind: str, folder: Path, *stamps: str | None) -> Path:
    """Write a row for each stamp, in a column or in a field of an object or of the items of a list."""
    if kind == "csv":
        return csv(folder, "z.csv", "at,x", *(f'"{stamp or ""}",1' for stamp in stamps))
    file = folder / "z.jsonl"
    rows: list[object] = [{"at": stamp} for stamp in stamps]
    if kind == "field":
        rows = [{"o": row} for row in rows]
    elif kind == "list":
        rows = [{"l": [row]} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


TIMES = {"csv": "at", "json": "at", "field": "o.at", "list": "l.at"}


def schema_for(kind: str, folder: Path) -> TraceSchema:
    explode = 'explode = "l"\n' if kind == "list" else ""
    return schema_of(
        folder,
        f'{explode}[[events]]\ntype = "A"\ntime = "{TIMES[kind]}"\nmissing = "drop"\nattributes = []\n'
        'uncertainty = { kind = "exact" }\n',
    )


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("block", [1 << 26, 8])
@pytest.mark.parametrize("zoned", ["2024-05-31T10:00:00Z", "2024-05-31T10:00:00-0200"])
@pytest.mark.parametrize("naive", ["2024-05-31T10:00:00", "2024-05-31"])
def test_rows_of_every_format_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, block: int, zoned: str, naive: str
) -> None:
    monkeypatch.setattr(json_files, "JSON_BLOCK", block)
    monkeypatch.setattr(json_files, "_PIECE", block)
    schema = schema_for(kind, tmp_path)
    with pytest.raises(
        uc.TraceError, match="no time zone, and other stamps of this column have one"
    ) as error:
        read_traces([rows_of(kind, tmp_path, zoned, naive, None, naive)], schema)
    assert [fault.row for fault in error.value.faults] == [2, 4]
    for stamp in (zoned, naive):
        assert said(read_traces, [rows_of(kind, tmp_path, stamp, None, stamp)], schema) == []


@pytest.mark.parametrize("kind", TIMES)
def test_files_of_every_format_of_which_one_has_no_zone(tmp_path: Path, kind: str) -> None:
    schema = schema_for(kind, tmp_path)
    (tmp_path / "other").mkdir()
    files = [
        rows_of(kind, tmp_path, "2024-05-31T10:00:00+02:00"),
        rows_of(kind, tmp_path / "other", "2024-05-31T10:00:00"),
    ]
    assert said(read_traces, files, schema) == [
        f"no time zone in the times of {files[1]}, and UTC in {files[0]}: what has none is read as UTC; "
        "give all a zone, or none"
    ]


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("2026-01-05 08:00:00 UTC", "2026-01-05T08:00:00Z"),
        ("2026-01-05 08:00:00GMT", "2026-01-05T08:00:00Z"),
        ("2026-01-05 08:00:00.25 UTC", "2026-01-05T08:00:00.25Z"),
        ("2026-01-05 08:00:00 +0200", "2026-01-05T06:00:00Z"),
        ("2026-01-05 08:00:00,250", "2026-01-05T08:00:00.25"),
    ],
)
def test_iso_is_read_alike_by_default_and_by_name(tmp_path: Path, kind: str, text: str, usual: str) -> None:
    (tmp_path / "other").mkdir()
    schema = schema_for(kind, tmp_path)
    named = TraceSchema((replace(schema.events[0], time_format=("iso",)),), options=schema.options)
    file = rows_of(kind, tmp_path, text)
    other = read_traces([rows_of(kind, tmp_path / "other", usual)], schema)
    for each in (schema, named):
        lower = read_traces([file], each).column("lower")
        assert lower.cast(pa.int64()) == other.column("lower").cast(pa.int64())
    # Written as text in the model's columns, and in a frame.
    frame = pa.table({"type": ["A"], "id": [1], "at": [text]})
    intervals = uc.to_intervals(frame, time="at", uncertainty=uc.exact())
    assert intervals.column("lower").cast(pa.int64()) == other.column("lower").cast(pa.int64())
    model = csv(tmp_path, "m.csv", "type,id,lower,upper", f'A,1,"{text}","{text}"')
    assert read_traces([model]).column("lower").cast(pa.int64()) == other.column("lower").cast(pa.int64())


def test_a_zone_written_as_utc_in_a_query_and_in_types(tmp_path: Path) -> None:
    file = csv(tmp_path, "a.csv", "at,x", "2026-01-05 08:00:00 UTC,1", "2026-01-05 09:00:00 UTC,2")
    schema = schema_of(
        tmp_path,
        '[types]\nat = "timestamp"\n[[events]]\ntype = "A"\ntime = "at"\nuncertainty = { kind = "exact" }\n',
    )
    events = read_traces([file], schema)
    query = "PATTERN SEQ(A a) WHERE TIME(a) <= TIMESTAMP '2026-01-05 08:30:00 UTC' WITHIN 1 min"
    assert uc.match(events, query).column("a").to_pylist() == [1]
    mixed = csv(tmp_path, "b.csv", "at,x", "2026-01-05 08:00:00 UTC,1", "2026-01-05 09:00:00,2")
    for each in (schema, EXACT):
        with pytest.raises(uc.TraceError, match="no time zone, and other stamps"):
            read_traces([mixed], each)


def test_files_of_which_one_has_no_zone(tmp_path: Path) -> None:
    files = [
        csv(tmp_path, "a.csv", "at,x", "2024-05-31T10:00:00Z,1"),
        csv(tmp_path, "b.csv", "at,x", "2024-05-31T10:00:00,2"),
    ]
    assert said(read_traces, files, EXACT) == [
        f"no time zone in the times of {files[1]}, and UTC in {files[0]}: what has none is read as UTC; "
        "give all a zone, or none"
    ]


def test_bounds_of_which_one_has_no_zone(tmp_path: Path) -> None:
    file = csv(tmp_path, "a.csv", "lo,hi", "2024-05-31T10:00:00Z,2024-05-31T11:00:00")
    message = "no time zone in hi, and UTC in lo: what has none is read as UTC; give all a zone, or none"
    assert said(read_traces, [file], BOUNDS) == [message]


def test_attributes_of_several_files(tmp_path: Path) -> None:
    stamps = pa.array([0], pa.timestamp("us"))
    for name, column in (("a", stamps), ("b", stamps.cast(pa.timestamp("us", "Europe/Berlin")))):
        table = pa.table({"type": ["A"], "id": [name], "lower": [1], "upper": [1], "seen": column})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    lines = said(read_traces, [tmp_path])
    assert lines == [
        f"no time zone in column seen of {tmp_path / 'a.parquet'}, and Europe/Berlin in "
        f"{tmp_path / 'b.parquet'}: what has none is read as UTC; give all a zone, or none"
    ]


def test_frames_of_every_library() -> None:
    stamps = pa.array([0, 1], pa.timestamp("us"))
    table = pa.table({"lo": stamps, "hi": stamps.cast(pa.timestamp("us", "UTC"))})
    rule = uc.columns("lo", "hi")
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        lines = said(uc.to_intervals, frame, uncertainty=rule)
        assert len(lines) == 1
        assert lines[0].startswith("no time zone in lo, and ")
    for frame in (table.select(["lo"]), pd.DataFrame({"lo": stamps.to_pandas()})):
        assert said(uc.to_intervals, frame, time="lo", uncertainty=uc.exact()) == []


def extraction(folder: Path, extract: str) -> TraceSchema:
    file = folder / "extract.toml"
    file.write_text(
        f"[extract]\n{extract}\n"
        '[[events]]\ntype = "A"\ntime = "at"\nunit = "s"\nuncertainty = { kind = "exact" }\n'
    )
    return load_schema(file)


def test_an_extraction_from_a_column_that_no_file_has(tmp_path: Path) -> None:
    file = csv(tmp_path, "a.csv", "at,name", "1,x_1")
    schema = extraction(tmp_path, "nmae = '_(?P<attempt>[0-9]+)$'")
    assert said(read_traces, [file], schema) == [
        "[extract] nmae: no file has such a column; did you mean name?"
    ]


def test_an_extraction_that_is_never_found(tmp_path: Path) -> None:
    files = [csv(tmp_path, "a.csv", "at,name", "1,x-1"), csv(tmp_path, "b.csv", "at,name", "2,x-2")]
    schema = extraction(tmp_path, "name = '_(?P<attempt>[0-9]+)$'")
    assert said(read_traces, files, schema) == [
        "[extract] name: '_(?P<attempt>[0-9]+)$' is not found in any row: correct the expression"
    ]
    # One row of one file is enough, and some files need not have the column.
    csv(tmp_path, "b.csv", "at,name", "2,x-2", "3,x_3")
    files.append(csv(tmp_path, "c.csv", "at,host", "2,h"))
    assert said(read_traces, files, schema) == []
    lines = tmp_path / "d.jsonl"
    lines.write_text('{"at": 1, "name": "x-1"}\n')
    assert len(said(read_traces, [lines], schema)) == 1


def test_files_without_rows_say_nothing_of_extractions(tmp_path: Path) -> None:
    file = csv(tmp_path, "a.csv", "at,name")
    schema = extraction(tmp_path, "name = '_(?P<attempt>[0-9]+)$'")
    assert said(read_traces, [file], schema) == []
