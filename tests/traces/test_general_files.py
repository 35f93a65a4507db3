"""Schema files describe any file: fields within fields, lists, wide rows, forms of times, copies."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.traces import unpacking
from uncertain_cep.traces.formats import read_file
from uncertain_cep.traces.standard_input import spooled
from uncertain_cep.traces.time_formats import TimeFormat

EXACT = 'uncertainty = { kind = "exact" }'


def events(path: Path, schema: str, **options: Any) -> list[dict[str, Any]]:
    folder = path if path.is_dir() else path.parent
    table = uc.read_traces(path, schema_of(folder, schema), **options)
    for name in ("lower", "upper"):
        if pa.types.is_timestamp(table.schema.field(name).type):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table.column(name).cast(pa.timestamp("s"), safe=False))
    shown: list[dict[str, Any]] = table.select([n for n in table.column_names if n != "tick"]).to_pylist()
    return shown


def said(path: Path, schema: str) -> str:
    with pytest.raises(TraceError) as caught:
        events(path, schema)
    return str(caught.value)


NESTED = (
    '{"Event": "Start", "Task Info": {"Launch Time": 5, "ID": 1}, "x.y": 1, "odd": {"a.b": 7}, "no": [1]}\n'
    '{"Event": "End", "Task Info": {"Launch Time": 9, "ID": 2}, "x.y": 2, "odd": null, "no": "text"}\n'
)
PATHS = f"""
[[events]]
type_column = "Event"
id = "{{Task Info.ID}}!"
time = "Task Info.Launch Time"
attributes = {{ xy = "x.y", ab = 'odd."a.b"' }}
where = "`Task Info.Launch Time` > 0"
{EXACT}
"""
FIELDS = [
    {"type": "Start", "id": "1!", "lower": 5, "upper": 5, "xy": 1, "ab": 7},
    {"type": "End", "id": "2!", "lower": 9, "upper": 9, "xy": 2, "ab": None},
]


def test_fields_within_fields_are_named_by_their_path(tmp_path: Path) -> None:
    assert events(put(tmp_path / "t.jsonl", NESTED), PATHS) == FIELDS
    rows = [{**json.loads(line), "no": None} for line in NESTED.splitlines()]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert events(tmp_path / "t.parquet", PATHS) == FIELDS
    said_of = said(tmp_path / "t.parquet", PATHS.replace("Task Info.ID", "Task Info.Nr"))
    assert "column 'Task Info.Nr': there is no such column, but events[1].id names it" in said_of


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([json.loads(line) for line in NESTED.splitlines()]),
        json.dumps([json.loads(line) for line in NESTED.splitlines()], indent=2),
        "".join(json.dumps(json.loads(line), indent=1) + "\n" for line in NESTED.splitlines()),
        "\ufeff  [ " + NESTED.replace("}\n{", "}\n,\n{") + "]\n",
    ],
)
def test_json_that_is_not_one_object_a_line(tmp_path: Path, text: str) -> None:
    assert events(put(tmp_path / "t.json", text), PATHS) == FIELDS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1}, {"a": 2', "row 2, value '{\"a\": 2'"),
        ('[{"a": 1}, {"a" 2}' + " " * 99 + "]", "row 2"),
        ('[{"a": 1}] x', "something behind the end of the array"),
        ('[{"a": 1}, 7]', "row 2, value 7: the line is no JSON object"),
        ("[" * 100_000, "nested more than 100 levels"),
        ('{\n"a": 1', "row 1"),
        ("[]", "the file is empty"),
    ],
)
def test_documents_that_are_broken(tmp_path: Path, text: str, message: str) -> None:
    file = put(tmp_path / "t.json", text)
    message_text = said(file, f'[[events]]\ntype = "A"\ntime = "a"\n{EXACT}')
    assert message in message_text
    assert str(file) in message_text
    assert "Traceback" not in message_text


@given(
    st.lists(st.dictionaries(st.text('ab[]{}",\\\n é', max_size=3), st.text('ab[]{}",\\\n é', max_size=3))),
    st.integers(1, 9),
    st.sampled_from([None, 1]),
)
def test_documents_are_read_as_lines_are(rows: list[dict[str, str]], size: int, indent: int | None) -> None:
    from uncertain_cep.traces import documents

    whole = json.dumps(rows, indent=indent, ensure_ascii=False).encode()
    stream = documents.json_lines(io.BytesIO(whole))
    lines = b""
    while piece := stream.read(size):
        lines += piece
    assert [json.loads(line) for line in lines.splitlines()] == rows


def test_lists_become_rows(tmp_path: Path) -> None:
    rows = [
        {
            "host": "a",
            "data": {"spans": [{"at": 1, "tags": [{"k": "x"}, {"k": "y"}]}, {"at": 2, "tags": []}]},
        },
        {"host": "b", "data": None},
        {"host": "c", "data": {"spans": [{"at": 3, "tags": [{"k": "z"}]}]}},
    ]
    file = put(tmp_path / "t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    schema = f'[[events]]\ntype = "S"\ntime = "data.spans.at"\nattributes = ["host"]\n{EXACT}'
    span_rows = events(file, f'explode = "data.spans"\n{schema}')
    assert [(row["id"], row["lower"], row["host"]) for row in span_rows] == [
        (1, 1, "a"),
        (2, 2, "a"),
        (3, 3, "c"),
    ]
    twice = f'explode = ["data.spans", "data.spans.tags"]\n{schema}'.replace(
        '"host"]', '"host", "data.spans.tags.k"]'
    )
    assert [row["data.spans.tags.k"] for row in events(file, twice)] == ["x", "y", "z"]
    assert "explode makes rows of the items of lists" in said(file, f'explode = "host"\n{schema}')
    # Rows are those of the file.
    broken = put(tmp_path / "b.jsonl", '{"s": [{"at": 1}, {"at": 2}]}\n{"s": [{"at": null}]}\n')
    assert "b.jsonl, row 2, column 's.at'" in said(
        broken, f'explode = "s"\n[[events]]\ntype = "S"\ntime = "s.at"\n{EXACT}'
    )


def test_columns_may_depend_on_the_type_of_the_row(tmp_path: Path) -> None:
    csv = put(tmp_path / "t.csv", "1,CPU,a,0.5\n2,JOB,j1\n3,CPU,b,1\n4,OFF\n")
    schema = f"""
    columns = ["at", "kind"]
    [columns_by.kind]
    CPU = ["host", "usage"]
    JOB = ["job"]
    OFF = []
    [[events]]
    type_column = "kind"
    time = "at"
    {EXACT}
    """
    assert [(row["type"], row["host"], row["usage"], row["job"]) for row in events(csv, schema)] == [
        ("CPU", "a", 0.5, None),
        ("JOB", None, None, "j1"),
        ("CPU", "b", 1.0, None),
        ("OFF", None, None, None),
    ]
    message_text = said(put(tmp_path / "b.csv", "1,CPU,a\n2,JOB,j\n3,NEW,x\n"), schema)
    assert "b.csv, row 1, value '1,CPU,a': it has 3 values, and rows of kind 'CPU' have 4" in message_text
    assert (
        "row 3, value '3,NEW,x': it has 3 values, and rows with a kind that columns_by lacks have 2"
        in message_text
    )
    mixed = put(tmp_path / "t.jsonl", '{"k": "N", "t": 1, "v": 7}\n{"k": "S", "t": 2, "v": "up"}\n')
    both = f"""
    types = {{ v = "string" }}
    [[events]]
    type = "N"
    time = "t"
    where = "k = 'N'"
    types = {{ v = "float" }}
    attributes = {{ number = "v" }}
    {EXACT}
    [[events]]
    type = "S"
    time = "t"
    where = "k = 'S'"
    attributes = {{ state = "v" }}
    {EXACT}
    """
    assert [(row["type"], row["number"], row["state"]) for row in events(mixed, both)] == [
        ("N", 7.0, None),
        ("S", None, "up"),
    ]
    # A file without any such row lacks its columns.
    one = put(tmp_path / "one.jsonl", '{"k": "N", "t": 1, "v": 7}\n')
    assert len(events(one, both.replace('state = "v"', 'state = "deep.er"'))) == 1


def test_files_without_a_line_of_names(tmp_path: Path) -> None:
    schema = f'columns = ["at", "host"]\n[[events]]\ntype = "A"\ntime = "at"\n{EXACT}'
    rows = events(put(tmp_path / "t.csv", "1,a\n2,b\n"), schema)
    assert [(row["lower"], row["host"]) for row in rows] == [(1, "a"), (2, "b")]
    assert "row 2, value '2': it has 1 columns" not in said(put(tmp_path / "b.csv", "1,a\n2\n"), schema)
    assert "b.csv, row 2, value '2': it has 1 values for 2 columns" in said(tmp_path / "b.csv", schema)


WIDE = "time,host,cpu,mem\n10,a,1,2.5\n20,b,,3\n"


def test_wide_rows_give_an_event_for_each_value(tmp_path: Path) -> None:
    schema = f"""
    [[events]]
    type_column = "variable"
    time = "time"
    value_columns = ["cpu", "m*"]
    {EXACT}
    """
    assert events(put(tmp_path / "t.csv", WIDE), schema) == [
        {"type": "cpu", "id": "1:cpu", "lower": 10, "upper": 10, "host": "a", "value": 1.0},
        {"type": "mem", "id": "1:mem", "lower": 10, "upper": 10, "host": "a", "value": 2.5},
        {"type": "mem", "id": "2:mem", "lower": 20, "upper": 20, "host": "b", "value": 3.0},
    ]
    named = schema.replace(
        '["cpu", "m*"]', '{ load = "cpu" }\nid = "{host}:{variable}"\nattributes = ["value"]'
    )
    assert events(tmp_path / "t.csv", named) == [
        {"type": "load", "id": "a:load", "lower": 10, "upper": 10, "value": 1}
    ]
    assert "the file has no such column" in said(tmp_path / "t.csv", schema.replace('"cpu", "m*"', '"x*"'))
    assert "of different types" in said(tmp_path / "t.csv", schema.replace('"cpu"', '"host"'))
    broken = put(tmp_path / "b.csv", WIDE.replace("20,b", ",b"))
    assert "b.csv, row 2, column 'time'" in said(broken, schema)


def test_patterns_of_values_leave_columns_alone_that_have_a_name(tmp_path: Path) -> None:
    file = put(tmp_path / "t.csv", "time,id,cpu,load\n10,7,1,2\n20,8,3,\n")
    schema = """
    [[events]]
    type_column = "variable"
    time = "time"
    uncertainty = { kind = "exact" }
    value_columns = ["*"]
    types = { cpu = "float", load = "float" }
    """
    table = uc.read_traces(file, schema_of(tmp_path, schema))
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("cpu", 7, 10, 10, 1.0), ("load", 7, 10, 10, 2.0), ("cpu", 8, 20, 20, 3.0)
    ]  # fmt: skip
    for key, value in (
        ("attributes", '["cpu"]'), ("id", '"cpu"'), ("where", '"cpu > 1"'), ("probability", '"cpu"'),
        ("sequence", '"cpu"'),
    ):  # fmt: skip
        text = schema.replace('["*"]', f'["cpu"]\n{key} = {value}')
        assert f"column 'cpu': value_columns makes a row of it, and {key} names it" in said(file, text)
    assert "column 'x': there is no such column, but events[1].types names it" in said(
        file, schema.replace("{ cpu", '{ x = "int", cpu')
    )
    broken = put(tmp_path / "b.csv", "time,id,cpu,load\n10,7,1,2\n20,8,?,\n")
    assert "b.csv, row 2, column 'cpu', value '?': the value is no float" in said(broken, schema)


@given(
    st.lists(st.tuples(st.integers(0, 99), st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))),
    st.booleans(),
)
def test_wide_rows_say_what_long_ones_do(rows: list[tuple[int, int | None, int | None]], some: bool) -> None:
    from uncertain_cep.traces.reshaping import value_names, with_values

    table = pa.table(
        {name: pa.array([row[place] for row in rows], pa.int64()) for place, name in enumerate("tab")}
    )
    table = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    columns_given = [("a", "a"), ("b", "b")] if some else [("*", "[ab]")]
    long_rows, numbers = with_values(table, columns_given, value_names(columns_given, table.column_names))
    expected = [
        (number, row[0], name, row[place])
        for number, row in enumerate(rows)
        for place, name in ((1, "a"), (2, "b"))
        if row[place] is not None
    ]
    columns = (long_rows.column(name).to_pylist() for name in ("t", "variable", "value"))
    assert list(zip(numbers.tolist(), *columns, strict=True)) == expected


def test_times_may_be_sums(tmp_path: Path) -> None:
    file = put(tmp_path / "t.csv", "start_us,dur,gap\n1000,500,1\n2000,,1\n")
    schema = """
    tick = "1us"
    [[events]]
    type = "End"
    time = "start_us + dur - gap"
    unit = "us"
    missing = "drop"
    uncertainty = { kind = "plus_minus", by = "2us" }
    """
    table = uc.read_traces(file, schema_of(tmp_path, schema))
    assert table.column("lower").cast(pa.int64()).to_pylist() == [1497]
    assert table.column("upper").cast(pa.int64()).to_pylist() == [1501]
    assert table.column_names == ["type", "id", "lower", "upper", "tick", "dur", "gap"]
    whole = uc.to_intervals(pa.table({"a": [1, 2], "b": [10, 20]}), time="a + b", uncertainty=uc.exact())
    assert whole.column("upper").to_pylist() == [11, 22]


def test_places_of_files_as_attributes(tmp_path: Path) -> None:
    put(tmp_path / "node-1" / "cpu_7.csv", "at\n1\n")
    put(tmp_path / "node-2" / "cpu_8.csv", "at\n2\n")
    schema = f"""
    file_column = "file"
    folder_column = "node"
    [types]
    disk = "int"
    [extract]
    file = '_(?P<disk>[0-9]+)'
    [[events]]
    type = "A"
    time = "at"
    attributes = ["node", "disk"]
    {EXACT}
    """
    rows = events(tmp_path, schema)
    assert [(row["node"], row["disk"]) for row in rows] == [("node-1", 7), ("node-2", 8)]


PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
    ".zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def _lz4(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as out:
        out.write(data)
    return bytes(sink.getvalue())


PACKED[".lz4"] = _lz4


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("name", ["t.csv", "t.json"])
def test_every_compression(tmp_path: Path, name: str, suffix: str) -> None:
    text = "a\n1\n2\n" if name == "t.csv" else '[{"a": 1}, {"a": 2}]'
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(PACKED[suffix](text.encode()))
    assert read_file(path).column("a").to_pylist() == [1, 2]
    path.write_bytes(PACKED[suffix](text.encode() * 1000)[:-9])
    with pytest.raises(TraceError, match=r"damaged or cut off|no JSON|behind the end"):
        read_file(path)


@pytest.mark.parametrize("suffix", PACKED)
def test_files_that_unpack_to_far_too_much(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "ALWAYS", 2**17)
    monkeypatch.setattr(unpacking, "MOST_TIMES", 20)
    for name, text in (("t.csv", "a\n" + "1\n" * 2**18), ("t.jsonl", '{"a": 1}\n' * 2**17)):
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(PACKED[suffix](text.encode()))
        with pytest.raises(TraceError, match="it unpacks to more than") as caught:
            read_file(path)
        assert caught.value.faults[0].file == str(path)


def test_copies_of_events_count_once(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "at,host\n1,a\n1,a\n1,b\n")
    put(tmp_path / "b.csv", "at,host\n1,b\n2,\n2,\n")
    schema = f'deduplicate = true\n[[events]]\ntype = "A"\ntime = "at"\n{EXACT}'
    with pytest.warns(UncertainCepWarning, match="3 events agree in everything with an earlier one"):
        rows = events(tmp_path, schema)
    assert [(row["id"], row["lower"], row["host"]) for row in rows] == [
        (1, 1, "a"),
        (3, 1, "b"),
        (5, 2, None),
    ]
    put(tmp_path / "c" / "c.csv", "id,at,p\n7,1,x\n7,1,x\n8,1,x\n7,1,y\n")
    with pytest.warns(UncertainCepWarning, match="1 events agree"):
        assert [row["id"] for row in events(tmp_path / "c", schema)] == [7, 8, 7]
    with pytest.warns(UncertainCepWarning, match="1 events agree"):
        (fault,) = uc.validate(tmp_path / "c", tmp_path / "c" / "schema.toml")
    assert "c.csv, row 4, column 'id', value 7" in str(fault)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"type,id,lower,upper\nA,1,2,3\n"
    rows = [{"type": "A", "id": 1, "lower": 2, "upper": 3}]
    line = json.dumps(rows[0]).encode()
    for data, format in (
        (text, None),
        (gzip.compress(text), None),
        (line, None),
        (text, "csv"),
        (line, "json"),
    ):
        spooled.cache_clear()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False))
        assert uc.read_traces("-", format=format).to_pylist() == rows
        assert uc.read_traces("-", format=format).to_pylist() == rows
    spooled.cache_clear()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(TraceError, match="standard input"):
        uc.read_traces("-")


def times(text: list[str | None], **format: Any) -> list[str | None]:
    read = TimeFormat(**format).read(pa.chunked_array([pa.array(text, pa.string())]), "c")
    stamps = [str(value) for value in read.counts.astype("M8[ns]")]
    return [
        stamp.removesuffix("000") if is_present else None
        for stamp, is_present in zip(stamps, read.present, strict=True)
    ]


_moments = st.datetimes(datetime(1971, 1, 1), datetime(2068, 12, 31, 23, 59, 59))
_FORMATS = (
    "%Y-%m-%d %H:%M:%S.%f", "%d/%b/%Y:%H:%M:%S,%f", "%A, %d %B %Y %I:%M:%S %p .%f", "%j/%y %H %M %S %f",
    "%m/%d/%y %H:%M:%S %f", "%Y%m%dT%H%M%S%f",
)  # fmt: skip


@given(st.lists(st.none() | _moments, max_size=8), st.sampled_from(_FORMATS))
def test_formats_are_those_of_strptime(moments: list[datetime | None], form: str) -> None:
    text = [None if moment is None else moment.strftime(form) for moment in moments]
    expected = [None if moment is None else moment.isoformat(timespec="microseconds") for moment in moments]
    assert times(text, formats=(form,)) == expected


@given(st.lists(_moments, max_size=5), st.integers(-14 * 60, 14 * 60), st.booleans())
def test_zones_are_taken_off(moments: list[datetime], minutes: int, colon: bool) -> None:
    zone = timezone(timedelta(minutes=minutes))
    text: list[str | None] = [
        moment.replace(tzinfo=zone).strftime("%Y-%m-%d %H:%M:%S %z") for moment in moments
    ]
    if colon:
        text = [f"{each[:-2]}:{each[-2:]}" for each in text if each is not None]
    expected = [(moment - timedelta(minutes=minutes)).isoformat(timespec="seconds") for moment in moments]
    stamps = times(text, formats=("%Y-%m-%d %H:%M:%S %z",))
    assert [each and each.removesuffix(".000000") for each in stamps] == expected


@given(
    st.lists(st.integers(0, 300 * 86_400), min_size=1, max_size=12),
    st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)),
)
def test_years_that_are_not_told_go_on(steps: list[int], first: datetime) -> None:
    """As long as no step is longer than half a year."""
    moments = [first.replace(microsecond=0)]
    for step in steps:
        moments.append(moments[-1] + timedelta(seconds=step % (150 * 86_400)))
    text: list[str | None] = [moment.strftime("%b %d %H:%M:%S") for moment in moments]
    expected = [moment.isoformat(timespec="microseconds") for moment in moments]
    assert times(text, formats=("%b %d %H:%M:%S",), base=str(first.year)) == expected
    days: list[str | None] = [(first + timedelta(hours=7 * number)).strftime("%H:%M") for number in range(9)]
    begin = first.replace(second=0, microsecond=0)
    expected = [
        (begin + timedelta(hours=7 * number)).isoformat(timespec="microseconds") for number in range(9)
    ]
    with pytest.warns(UncertainCepWarning, match="the day changes 2 times|the day changes 3 times"):
        assert times(days, formats=("%H:%M",), base=first.date().isoformat()) == expected


TRIPS = ["22:30:00", "23:10:00", "05:00:00", "05:20:00", "23:00:00", "06:00:00"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "log"])
def test_days_that_change_are_told_and_may_be_held_fixed(tmp_path: Path, kind: str) -> None:
    texts = {
        "csv": "at\n" + "".join(f"{at}\n" for at in TRIPS),
        "jsonl": "".join(f'{{"at": "{at}"}}\n' for at in TRIPS),
        "log": "".join(f"{at} x\n" for at in TRIPS),
    }
    path = put(tmp_path / f"t.{kind}", texts[kind])
    extract = "[extract]\nline = '^(?P<at>\\S+) x'\n" if kind == "log" else ""
    text = (
        f'tick = "1s"\n{extract}[[events]]\ntype = "Stop"\ntime = "at"\ntime_format = "%H:%M:%S"\n'
        'date = 2018-01-02\nuncertainty = { kind = "exact" }\n'
    )
    message = (
        "at: the day changes 3 times from one row to the next, from 2018-01-02 to 2018-01-03: .*fixed_date"
    )
    with pytest.warns(UncertainCepWarning, match=message) as said:
        uc.read_traces(path, schema_of(tmp_path, text))
    assert len(said) == 1
    fixed = uc.read_traces(path, schema_of(tmp_path, f"{text}fixed_date = true\n"))
    stamps = fixed.column("lower").cast(pa.string()).to_pylist()
    assert stamps == [f"2018-01-02 {at}" for at in TRIPS]


def test_years_that_go_back_are_told_and_may_be_held_fixed() -> None:
    text: list[str | None] = ["Mar 01", "Nov 01", "Mar 02"]
    with pytest.warns(UncertainCepWarning, match=r"c: the year changes 2 times .* from 2014 to 2015: "):
        stamps = times(text, formats=("%b %d",), base="2015")
    assert [str(stamp)[:10] for stamp in stamps] == ["2015-03-01", "2014-11-01", "2015-03-02"]
    fixed = times(text, formats=("%b %d",), base="2015", fixed=True)
    assert [str(stamp)[:10] for stamp in fixed] == ["2015-03-01", "2015-11-01", "2015-03-02"]


def test_a_fixed_date_needs_a_date(tmp_path: Path) -> None:
    text = '[[events]]\ntype = "A"\ntime = "at"\nfixed_date = true\nuncertainty = { kind = "exact" }\n'
    with pytest.raises(TraceError, match=r"events\[1\].fixed_date: goes with date or year"):
        schema_of(tmp_path, text)


@given(
    _moments.filter(lambda moment: moment.year < 2037), st.sampled_from(["Europe/Berlin", "-03:30", "UTC"])
)
def test_local_times(moment: datetime, name: str) -> None:
    zone = timezone(-timedelta(hours=3.5)) if name == "-03:30" else ZoneInfo(name)
    utc = moment.replace(microsecond=0, tzinfo=UTC)
    local = utc.astimezone(zone)
    if local.fold or local.replace(fold=1).utcoffset() != local.utcoffset():
        return
    (utc_stamp,) = times([local.strftime("%Y-%m-%d %H:%M:%S")], zone=name)
    assert utc_stamp == utc.replace(tzinfo=None).isoformat(timespec="microseconds")


def test_times_of_several_forms_and_none(tmp_path: Path) -> None:
    file = put(tmp_path / "t.csv", "at\n1700000000\n17/Oct/2015:10:05:03 +0200\n2024-05-31T00:00Z\n\n")
    schema = """
    [[events]]
    type = "A"
    time = "at"
    time_format = ["epoch_s", "%d/%b/%Y:%H:%M:%S %z", "iso"]
    missing = "drop"
    uncertainty = { kind = "exact" }
    """
    stamps = [str(row["lower"]) for row in events(file, schema)]
    assert stamps == ["2023-11-14 22:13:20", "2015-10-17 08:05:03", "2024-05-31 00:00:00"]
    broken = put(tmp_path / "b.csv", "at\n31/Feb/2015:10:05:03 +0200\n2024-05-31T00:00Z\nsoon\n")
    assert "b.csv, row 1, column 'at', value '31/Feb/2015:10:05:03 +0200': no time as epoch_s or" in said(
        broken, schema
    )
    assert "row 3, column 'at', value 'soon'" in said(broken, schema)


MIXED = "case,at\n1,2024-05-31\n1,2024-05-31 10:30\n2,2024-05-31 10:30:15\n2,2024-05-31T10:30:15.250\n"


def test_stamps_of_days_and_minutes_in_one_column(tmp_path: Path) -> None:
    schema = """
    tick = "10ms"
    [[events]]
    type = "A"
    time = "at"
    uncertainty = { kind = "as_written" }
    """
    table = uc.read_traces(put(tmp_path / "t.csv", MIXED), schema_of(tmp_path, schema))
    lower, upper = (table.column(name).cast(pa.int64()).to_numpy() for name in ("lower", "upper"))
    assert (upper - lower + 10).tolist() == [86_400_000, 60_000, 1_000, 10]
    jsonl = "".join(json.dumps({"at": line.split(",")[1]}) + "\n" for line in MIXED.splitlines()[1:])
    again = uc.read_traces(put(tmp_path / "t.jsonl", jsonl), tmp_path / "schema.toml")
    assert again.column("upper").cast(pa.int64()).to_pylist() == upper.tolist()
    german = put(tmp_path / "g.csv", "at\n31.05.2024\n31.05.2024 10:30\n")
    forms = schema.replace('time = "at"', 'time = "at"\ntime_format = ["%d.%m.%Y %H:%M", "%d.%m.%Y"]')
    intervals = uc.read_traces(german, schema_of(tmp_path, forms))
    assert intervals.column("upper").cast(pa.int64()).to_pylist() == upper.tolist()[:2]
    zoned = schema.replace('time = "at"', 'time = "at"\ntime_zone = "+02:00"')
    shifted = uc.read_traces(tmp_path / "t.csv", schema_of(tmp_path, zoned))
    assert shifted.column("lower").cast(pa.int64()).to_pylist() == (lower - 7_200_000).tolist()
    numbers = uc.to_intervals(pa.table({"t": [5]}), time="t", unit="s", uncertainty="as_written", tick="1ms")
    assert numbers.column("upper").cast(pa.int64()).to_pylist() == [5999]
    stamps = pa.table({"t": pa.array([5], pa.timestamp("ms"))})
    with pytest.raises(TraceError, match="does not tell to what unit it was written"):
        uc.to_intervals(stamps, time="t", uncertainty=uc.as_written())


MISTAKES = {
    'columns = "a"': "columns: must be a list of texts",
    'columns = ["a", "a"]': "columns: names a twice",
    "columns_by = 5": "columns_by: must be a table for one of the columns",
    'columns = ["a"]\ncolumns_by = { b = { X = ["c"] } }': "columns_by.b: must be one of columns",
    'columns = ["a"]\ncolumns_by = { a = { X = ["a"] } }': "columns_by.a.X: names a, which stands in columns",
    "explode = [5]": "explode: must be a list of texts",
    "file_column = 5": "file_column: must be a text",
    "continuation = 5": "continuation: must be a regular expression, or false, not 5",
    "continuation = '('": "continuation: is no regular expression that can be used",
    'deduplicate = "yes"': "deduplicate: must be true or false, not 'yes'",
}
OF_EVENTS = {
    'time_format = "%Q"': "events[1].time_format: '%Q' cannot be read: there is no %Q",
    'time_format = "%Y %Y-%m-%d"': "it has %Y twice",
    'time_format = "%Y"': "it tells neither a day nor an hour",
    'time_format = "%d %H:%M"': "it tells a day without a month",
    'time_format = "%F %I:%M"': "it tells hours to 12 without %p",
    'time_format = "%b %d %H:%M"': "events[1].time_format: '%b %d %H:%M' tells no year: add year = 2015",
    'time_format = "%H:%M"': "events[1].time_format: '%H:%M' tells no date: add date",
    "time_format = 5": "events[1].time_format: must be a list of texts",
    'time_format = "epoch_s"\nunit = "ms"': "events[1].unit: is told by time_format, too",
    "year = 2015\ndate = 2015-10-17": "events[1].year: is told by date, too",
    'year = "x"': "events[1].year: must be a number",
    "year = 9999": "events[1].year: must be from 1678 to 2261, not '9999'",
    'date = "soon"': "events[1].date: must be a year, such as 2015, or a day",
    'time_zone = "Mars/Olympus"': "events[1].time_zone: there is no time zone 'Mars/Olympus'",
    "value_columns = 5": "events[1].value_columns: must be a list",
    'types = { a = "integer" }': "events[1].types.a: must be one of string, int",
}


@pytest.mark.parametrize("text", [*MISTAKES, *OF_EVENTS])
def test_mistakes_in_schema_files(tmp_path: Path, text: str) -> None:
    rows = f'[[events]]\ntype = "A"\ntime = "t"\n{EXACT}\n'
    whole = f"{text}\n{rows}" if text in MISTAKES else f"{rows}{text}\n"
    with pytest.raises(TraceError) as caught:
        schema_of(tmp_path, whole)
    message = (MISTAKES | OF_EVENTS)[text]
    assert message in str(caught.value)


def test_rows_are_numbered_though_there_is_a_column_of_ids(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "id,t\na,1\na,2\n")
    table = f'[[events]]\ntype = "A"\ntime = "t"\n{EXACT}\nattributes = {{ raw_id = "id" }}\n'
    other = table.replace('"A"', '"B"')
    numbered = uc.read_traces(path, schema_of(tmp_path, f"{table}id = false\n{other}id = false\n"))
    assert numbered.column("id").to_pylist() == [1, 2, 3, 4]
    assert numbered.column("raw_id").to_pylist() == ["a", "a"] * 2
    assert uc.read_traces(path, schema_of(tmp_path, table)).column("id").to_pylist() == ["a", "a"]
    with pytest.raises(TraceError, match=r"events\[1\]\.id: must be a text in quotes, not True"):
        schema_of(tmp_path, f"{table}id = true\n")
