"""Stamps that stand in two columns, a day and a time of day, in files of every format."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.errors import TraceError

SCHEMA = """
tick = "1s"
{above}
[[events]]
type_column = "what"
time = ["Date", "Time"]
{more}
uncertainty = {{ kind = "as_written" }}
"""
ROWS = (("2026-01-05", "08:00:10", "Start"), ("2026-01-05", "09:30", "Stop"), ("2026-01-06", None, "Start"))
TIMES = [(dt.datetime(2026, 1, 5, 8, 0, 10), dt.datetime(2026, 1, 5, 8, 0, 10)),
         (dt.datetime(2026, 1, 5, 9, 30), dt.datetime(2026, 1, 5, 9, 30, 59))]  # fmt: skip


def written(folder: Path, kind: str, rows: tuple[tuple[str | None, ...], ...]) -> Path:
    table = pa.table(dict(zip(("Date", "Time", "what"), zip(*rows, strict=True), strict=True)))
    lines = [",".join(table.column_names), *(",".join(value or "" for value in row) for row in rows)]
    path = folder / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
    elif kind == "jsonl":
        put(path, "\n".join(map(json.dumps, table.to_pylist())))
    elif kind == "log":
        put(path, "\n".join("|".join(value or "" for value in row) for row in rows))
    else:
        put(path, "\n".join(lines))
    return path


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet", "log"])
def test_a_day_and_a_time_of_day_are_one_stamp(tmp_path: Path, kind: str) -> None:
    above = "[extract]\nline = '(?P<Date>[^|]*)[|](?P<Time>[^|]*)[|](?P<what>.*)'" if kind == "log" else ""
    schema = schema_of(tmp_path, SCHEMA.format(above=above, more='missing = "drop"\nattributes = []'))
    events = uc.read_traces(written(tmp_path, kind, ROWS), schema)
    bounds = zip(events["lower"].to_pylist(), events["upper"].to_pylist(), strict=True)
    assert list(bounds) == TIMES
    assert events["type"].to_pylist() == ["Start", "Stop"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_all_that_texts_of_one_column_can_say(tmp_path: Path, kind: str) -> None:
    rows = (("05.01.2026", "8:00 PM", "A"), ("13.01.2026", "12:05 AM", "A"))
    more = 'time_format = "%d.%m.%Y %I:%M %p"\ntime_zone = "+02:00"'
    path = written(tmp_path, kind, rows)
    events = uc.read_traces(path, schema_of(tmp_path, SCHEMA.format(above="", more=more)))
    assert [str(lower)[:16] for lower in events["lower"].to_pylist()] == [
        "2026-01-05 18:00", "2026-01-12 22:05"]  # fmt: skip
    # The parts of a stamp are no attributes.
    assert events.column_names == ["type", "id", "lower", "upper", "tick"]
    used = SCHEMA.format(above="", more=more + '\nattributes = ["Date"]')
    assert uc.read_traces(path, schema_of(tmp_path, used))["Date"].to_pylist() == ["05.01.2026", "13.01.2026"]


@pytest.mark.parametrize("day", [pa.date32(), pa.date64(), pa.timestamp("ns")])
@pytest.mark.parametrize("time", [pa.time32("s"), pa.time64("us")])
def test_columns_of_days_and_of_times_of_day(tmp_path: Path, day: pa.DataType, time: pa.DataType) -> None:
    table = pa.table(
        {
            "Date": pa.array([dt.date(2026, 1, 5)]).cast(day),
            "Time": pa.array([dt.time(8, 0, 10)], time),
            "what": ["A"],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    text = SCHEMA.format(above="", more="").replace("as_written", "exact")
    events = uc.read_traces(tmp_path / "t.parquet", schema_of(tmp_path, text))
    assert events["lower"].to_pylist() == [dt.datetime(2026, 1, 5, 8, 0, 10)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["Date", "Time"]', '["Date", "Tim"]', "column 'Tim': there is no such column, but events[1].time"),
        ('["Date", "Time"]', "[]", 'events[1].time: names no column: write one, or such as ["Date", "Time"]'),
        ('["Date", "Time"]', '["Date", "Date"]', "events[1].time: names Date twice"),
        ('["Date", "Time"]', '["Date", 3]', "events[1].time: must be a list of texts"),
        ('"what"\n', '"what"\nunit = "ms"\n', "events[1].unit: is for numbers, and time puts texts together"),
    ],
)
def test_what_a_schema_may_say(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = written(tmp_path, "csv", ROWS[:2])
    text = SCHEMA.format(above="", more="").replace(old, new)
    with pytest.raises(TraceError) as caught:
        uc.read_traces(path, schema_of(tmp_path, text))
    assert message in str(caught.value)
    assert "Date Time" not in str(caught.value)


def test_files_that_cannot_be_put_together(tmp_path: Path) -> None:
    schema = schema_of(tmp_path, SCHEMA.format(above="", more=""))
    path = put(tmp_path / "t.csv", "Date,Time,Date Time,what\n2026-01-05,08:00,x,A\n")
    with pytest.raises(TraceError, match="time puts Date and Time together in a column of this name"):
        uc.read_traces(path, schema)
    table = pa.table({"Date": [dt.datetime(2026, 1, 5, 8)], "Time": ["08:00"], "what": ["A"]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TraceError, match="column 'Date': it holds times of day, too"):
        uc.read_traces(tmp_path / "t.parquet", schema)
    path = put(tmp_path / "bad.csv", "Date,Time,what\n2026-01-05,8am,A\n")
    with pytest.raises(TraceError, match="row 1, column 'Date Time', value '2026-01-05 8am'"):
        uc.read_traces(path, schema)


def test_one_column_in_a_list_is_that_column(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "at,what\n1,A\n")
    text = '[[events]]\ntype_column = "what"\ntime = ["at"]\nuncertainty = { kind = "exact" }\n'
    assert uc.read_traces(path, schema_of(tmp_path, text))["lower"].to_pylist() == [1]
