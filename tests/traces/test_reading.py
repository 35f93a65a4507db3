"""Files to canonical events through schemas, and everything that can be wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.traces.files import flags, messages, put, schema_of, validation_report
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.traces import TraceSchema, read_traces

ATTEMPTS = (
    "attempt,job,host,result,start,finish\n"
    "a1,7,n1,OK,1000,1500\n"
    "a2,7,n2,FAILED,1100,1700\n"
    "a3,8,n9,OK,1200,1800\n"
)
OFFSETS = "host,lo,hi\nn1,-5,5\nn2,10,20\n"
TWO_EVENTS = """
tick = "1ms"
[[events]]
files = "attempts*"
type = "Start"
id = "{attempt}:start"
time = "start"
unit = "ms"
attributes = ["job", "host"]
uncertainty = { kind = "plus_minus", by = "2ms" }
[[events]]
files = "attempts*"
type = "Failed"
id = "{attempt}:end"
time = "finish"
unit = "ms"
where = "result = 'FAILED' OR attempt = 'a3'"
attributes = { job = "job", node = "host" }
uncertainty = { kind = "clock_offset", table = "offsets.csv", lower = "lo", upper = "hi", key = "host" }
missing = "drop"
"""


def test_one_row_gives_several_events(tmp_path: Path) -> None:
    data = tmp_path / "data"
    put(data / "attempts.csv", ATTEMPTS)
    put(data / "offsets.csv", OFFSETS)
    schema = schema_of(tmp_path, TWO_EVENTS)
    table = read_traces(data / "attempts.csv", schema)
    assert table.schema.names == ["type", "id", "lower", "upper", "tick", "job", "host", "node"]
    assert TimeDomain.of(table.schema).describe() == "1ms"
    rows = (
        table.set_column(2, "lower", table.column("lower").cast(pa.int64()))
        .drop_columns(["upper", "tick"])
        .to_pylist()
    )
    assert rows == [
        {"type": "Start", "id": "a1:start", "lower": 998, "job": 7, "host": "n1", "node": None},
        {"type": "Start", "id": "a2:start", "lower": 1098, "job": 7, "host": "n2", "node": None},
        {"type": "Start", "id": "a3:start", "lower": 1198, "job": 8, "host": "n9", "node": None},
        {"type": "Failed", "id": "a2:end", "lower": 1710, "job": 7, "host": None, "node": "n2"},
    ]
    report = validation_report([data / "attempts.csv"], schema)
    assert (report.faults, report.rows, report.events, report.dropped) == ((), 3, 4, 1)


def test_a_folder_may_hold_other_files_too(tmp_path: Path) -> None:
    put(tmp_path / "data" / "attempts.csv", ATTEMPTS)
    offsets = put(tmp_path / "data" / "offsets.csv", OFFSETS)
    schema = schema_of(tmp_path, TWO_EVENTS)
    assert read_traces([tmp_path / "data"], schema).num_rows == 4
    (message,) = messages(tmp_path / "data" / "attempts.csv", offsets, schema=schema)
    assert message.startswith(f"{offsets}: no table of the schema takes this file, only 'attempts*'")
    faults = messages(offsets, schema=schema)
    assert "events[1].files: 'attempts*' fits none of the files given: offsets.csv" in faults[0]


def test_a_table_of_the_schema_without_a_file_is_warned_of(tmp_path: Path) -> None:
    put(tmp_path / "data" / "offsets.csv", OFFSETS)
    attempts = put(tmp_path / "data" / "attempts.csv", ATTEMPTS)
    metrics = (
        '\n[[events]]\nfiles = "metrics*"\ntype = "M"\ntime = "t"\nunit = "ms"\nuncertainty.kind = "exact"\n'
    )
    schema = schema_of(tmp_path, TWO_EVENTS + metrics)
    said = (
        r"schema.toml: events\[3\].files: 'metrics\*' fits none of the files given: .*write optional = true"
    )
    for paths in ([attempts], [tmp_path / "data"]):
        with pytest.warns(UncertainCepWarning, match=said):
            assert read_traces(paths, schema).num_rows == 4
    optional = schema_of(tmp_path, f"{TWO_EVENTS}{metrics}optional = true\n")
    assert read_traces(attempts, optional).num_rows == 4
    more = put(tmp_path / "metrics.csv", "t\n7\n")
    assert read_traces([attempts, more], optional).column("type").to_pylist()[-1] == "M"
    # Without a file for any table there is nothing to read.
    other = put(tmp_path / "other.csv", "x\n1\n")
    only = schema_of(tmp_path, metrics)
    (message, *_) = messages(other, schema=only)
    assert "events[1].files: 'metrics*' fits none of the files given: other.csv" in message
    with pytest.raises(TraceError, match="no table of the schema takes this file"):
        read_traces(other, schema_of(tmp_path, f"{metrics}optional = true\n"))
    with pytest.raises(TraceError, match=r"events\[1\].optional: .*true"):
        schema_of(tmp_path, f'{metrics}optional = "yes"\n')


def test_the_table_beside_the_schema_goes_first(tmp_path: Path) -> None:
    put(tmp_path / "data" / "attempts.csv", ATTEMPTS)
    put(tmp_path / "data" / "offsets.csv", "host,lo,hi\nn2,0,0\n")
    put(tmp_path / "offsets.csv", OFFSETS)
    table = read_traces(tmp_path / "data" / "attempts.csv", schema_of(tmp_path, TWO_EVENTS))
    assert table.column("lower").cast(pa.int64()).to_pylist()[-1] == 1710


def test_a_table_of_offsets_that_is_not_there_or_wrong(tmp_path: Path) -> None:
    attempts = put(tmp_path / "data" / "attempts.csv", ATTEMPTS)
    schema = schema_of(tmp_path, TWO_EVENTS)
    (message,) = messages(attempts, schema=schema)
    assert "offsets.csv: the table of clock offsets is not there; looked for " in message
    assert "(for events[2])" in message
    offsets = put(tmp_path / "offsets.csv", "host,lo\nn1,x\n")
    (message,) = messages(attempts, schema=schema)
    assert message.startswith(f"{offsets}, column 'hi': the table of clock offsets has no such column")


def test_rows_are_named_as_they_stand_in_their_file(tmp_path: Path) -> None:
    text = "type,t,keep\n" + "".join(
        f"A,{t},{keep}\n" for t, keep in [(1, 1), ("", 0), (2, 1), ("", 1), (4, 1)]
    )
    first = put(tmp_path / "a.csv", text)
    second = put(tmp_path / "b.csv", text)
    schema = flags(where="keep = 1")
    faults = messages(first, second, schema=schema)
    assert [message.partition(": ")[0] for message in faults] == [
        f"{first}, row 4, column 't', value null",
        f"{second}, row 4, column 't', value null",
    ]
    report = validation_report([first, second], flags(where="keep = 1", missing="drop"))
    assert (report.rows, report.events, report.dropped, report.faults) == (10, 6, 2, ())


def test_faults_of_the_model_are_named_by_file_and_row_too(tmp_path: Path) -> None:
    text = "type,lo,hi,keep\nA,1,2,1\nA,9,3,0\nA,9,3,1\n,5,6,1\nA,,6,1\n"
    first, second = put(tmp_path / "a.csv", text), put(tmp_path / "b.csv", text)
    schema = TraceSchema.from_flags(uncertainty="columns:lo,hi", where="keep = 1", missing="drop")
    faults = messages(first, second, schema=schema)
    assert [message.partition(": ")[0] for message in faults] == [
        f"{first}, row 4, column 'type', value null",
        f"{second}, row 4, column 'type', value null",
        f"{first}, row 3, column 'lower', value 9",
        f"{second}, row 3, column 'lower', value 9",
    ]


def test_ids(tmp_path: Path) -> None:
    numbers = put(tmp_path / "a.csv", "type,t\nA,1\nA,2\n")
    more = put(tmp_path / "b.csv", "type,t\nA,3\n")
    assert read_traces([numbers, more], flags()).column("id").to_pylist() == [1, 2, 3]
    assert read_traces(numbers, flags(where="t > 1")).column("id").to_pylist() == [2]
    named = put(tmp_path / "c.csv", "type,t,id,k\nA,1,x,5\nB,2,y,6\n")
    assert read_traces(named, flags()).column("id").to_pylist() == ["x", "y"]
    (message,) = messages(named, schema=flags(id="k"))
    assert 'renaming this one, as in attributes = { raw_id = "id" }' in message
    keyed = put(tmp_path / "k.csv", "type,t,k\nA,1,5\nB,2,6\n")
    assert read_traces(keyed, flags(id="k")).column("id").to_pylist() == [5, 6]
    assert read_traces(keyed, flags(id="{k}/{type}/{k}")).column("id").to_pylist() == ["5/A/5", "6/B/6"]
    mixed = read_traces([numbers, named], flags())
    assert mixed.column("id").to_pylist() == ["1", "2", "x", "y"]
    nulls = put(tmp_path / "d.csv", "type,t,k\nA,1,\nA,2,5\n")
    (message,) = messages(nulls, schema=flags(id="{k}!"))
    assert "row 1, column 'id', value null: an event needs an id" in message
    pq.write_table(
        pa.table({"t": [1], "type": ["A"], "k": [1.5], "u": pa.array([2**63], pa.uint64())}),
        tmp_path / "e.parquet",
    )
    (message,) = messages(tmp_path / "e.parquet", schema=flags(id="k"))
    assert "column 'k': its type is double, but ids are whole numbers or text" in message
    (message,) = messages(tmp_path / "e.parquet", schema=flags(id="u"))
    assert "beyond 64 bits" in message


def test_types(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "t,code,x\n1,17,0.5\n")
    assert read_traces(path, flags(type_column="code")).column("type").to_pylist() == ["17"]
    (message,) = messages(path, schema=flags(type_column="x"))
    assert "column 'x': its type is double: the type of an event is text" in message
    (message,) = messages(path, schema=flags())
    assert "column 'type': there is no such column, but events[1].type_column names it" in message


def test_attributes_keep_their_types_and_may_be_renamed(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "type,id,t,lower,serial,CPU(%)\nA,1,5,x,007,0.5\n")
    (message,) = messages(path, schema=flags())
    assert "column 'lower': the column has a name that events use themselves" in message
    schema = schema_of(
        tmp_path,
        """
        [types]
        serial = "string"
        [[events]]
        type_column = "type"
        time = "t"
        attributes = { raw_lower = "lower", cpu = "CPU(%)", serial = "serial" }
        uncertainty = { kind = "exact" }
        """,
    )
    assert read_traces(path, schema).to_pylist() == [
        {"type": "A", "id": 1, "lower": 5, "upper": 5, "raw_lower": "x", "cpu": 0.5, "serial": "007"}
    ]


def test_every_missing_column_is_named_once_per_key(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "a,b\n1,2\n")
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"a": 1, "b": 2}\n', encoding="utf-8")
    schema = flags(id="{x}-{a}", where="y = 1", type_column="z", uncertainty="columns:lo,b")
    for file in (path, lines):
        faults = messages(file, schema=schema)
        assert [message.partition(": ")[0] for message in faults] == [
            f"{file}, column {name!r}" for name in ("z", "x", "t", "lo", "y")
        ]
        assert faults[-1].endswith("there is no such column, but events[1].where names it; the file has a, b")


def test_several_files_with_different_columns(tmp_path: Path) -> None:
    first = put(tmp_path / "a.csv", "type,t,x,only\nA,1,5,k\n")
    second = put(tmp_path / "b.csv", "type,t,x\nB,2,0.5\n")
    empty = put(tmp_path / "c.csv", "type,t,x,rare\n")
    table = read_traces([first, empty, second], flags())
    assert table.drop_columns(["id", "lower", "upper"]).to_pylist() == [
        {"type": "A", "x": 5.0, "only": "k", "rare": None},
        {"type": "B", "x": 0.5, "only": None, "rare": None},
    ]
    third = put(tmp_path / "d.csv", "type,t,x\nB,2,many\n")
    (message,) = messages(first, third, schema=flags())
    assert message == (
        f"{third}, column 'x': its type is string here, but int64 in {first}: "
        "give it one type, or set it in [types]"
    )


def test_without_tick_it_is_a_microsecond_however_the_stamps_are_written(tmp_path: Path) -> None:
    seconds = put(tmp_path / "a.csv", "type,t\nA,2024-01-01 00:00:01\n")
    text = put(tmp_path / "b.jsonl", '{"type": "B", "t": "2024-01-01T00:00:02.5Z"}\n')
    assert TimeDomain.of(read_traces(seconds, flags()).schema).describe() == "1us"
    with pytest.warns(
        UncertainCepWarning, match=r"no time zone in the times of .*a.csv, and UTC in .*b.jsonl"
    ):
        table = read_traces([seconds, text], flags())
    assert TimeDomain.of(table.schema).describe() == "1us"
    assert table.column("lower").cast(pa.string()).to_pylist() == [
        "2024-01-01 00:00:01.000000",
        "2024-01-01 00:00:02.500000",
    ]
    numbers = put(tmp_path / "c.csv", "type,t\nC,7\n")
    first, second = messages(seconds, numbers, schema=flags())
    assert first.startswith(
        f"{numbers}, column 'lower': its type is int64 here, but timestamp[us] in {seconds}"
    )
    assert "say the unit of the numbers" in second


def test_lengths_of_time_need_to_know_what_a_tick_is(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "type,t\nA,1\n")
    (message,) = messages(path, schema=flags(uncertainty="window:15s"))
    assert "events[1]: window 15s is a length of time, but the times are plain whole numbers" in message


def test_uncertainty_by_the_value_of_a_column(tmp_path: Path) -> None:
    records: list[dict[str, object]] = [
        {"type": "CPU", "t": 60, "p": None},
        {"type": "Task", "t": 70, "p": None},
        {"type": "GPS", "t": 80, "p": [0.25, 0.75]},
    ]
    path = put(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in records))
    schema = schema_of(
        tmp_path,
        """
        [[events]]
        type_column = "type"
        time = "t"
        [events.uncertainty_by.type]
        CPU = { kind = "window", length = 15 }
        GPS = { kind = "histogram", pmf = "p" }
        "*" = { kind = "plus_minus", by = 1 }
        """,
    )
    rows = read_traces(path, schema).to_pylist()
    assert [(row["lower"], row["upper"], row["pmf"]) for row in rows] == [
        (46, 60, None), (69, 71, None), (80, 81, [0.25, 0.75]),
    ]  # fmt: skip


def test_conditions_that_do_not_fit_the_columns(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "type,t,x\nA,1,word\n")
    (message,) = messages(path, schema=flags(where="x > 5"))
    assert message.startswith(f"{path}: where: ")
    assert "Traceback" not in message


def test_a_raw_trace_without_rows_is_empty_too(tmp_path: Path) -> None:
    put(tmp_path / "offsets.csv", OFFSETS)
    path = put(tmp_path / "attempts.csv", ATTEMPTS.partition("\n")[0] + "\n")
    table = read_traces(path, schema_of(tmp_path, TWO_EVENTS))
    assert table.num_rows == 0
    assert table.schema.field("lower").type == pa.timestamp("ms")
    assert TimeDomain.of(table.schema).describe() == "1ms"
    filled = put(tmp_path / "attempts2.csv", ATTEMPTS)
    assert read_traces([path, filled], schema_of(tmp_path, TWO_EVENTS)).num_rows == 4


def test_layouts_of_the_same_type_go_together(tmp_path: Path) -> None:
    basis = {"type": ["A"], "id": [1], "lower": [1], "upper": [2]}
    first = {
        **basis,
        "n": pa.array([1], pa.int8()),
        "s": pa.array(["x"], pa.large_string()),
        "p": pa.array([[1]], pa.list_(pa.int8())),
        "d": pa.array([0], pa.date32()),
        "pmf": pa.array([[0.5, 0.5]], pa.list_(pa.float32())),
    }
    second = {
        **basis,
        "n": pa.array([2], pa.uint16()),
        "s": pa.array(["y"]).dictionary_encode(),
        "p": pa.array([[0.5]]),
        "d": pa.array([1], pa.timestamp("ms", "UTC")),
        "pmf": pa.array([[0.25, 0.75]]),
    }
    for name, columns in (("a", first), ("b", second)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    table = read_traces(tmp_path)
    assert [str(table.schema.field(name).type) for name in ("n", "s", "p", "d", "pmf")] == [
        "int64",
        "string",
        "list<item: double>",
        "timestamp[ms, tz=UTC]",
        "list<item: double>",
    ]
    assert table.column("pmf").to_pylist() == [[0.5, 0.5], [0.25, 0.75]]


def test_values_that_do_not_fit_the_type_of_other_files(tmp_path: Path) -> None:
    basis = {"type": ["A"], "id": [1], "lower": [1], "upper": [2]}
    pq.write_table(pa.table({**basis, "x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({**basis, "x": pa.array([2**63], pa.uint64())}), tmp_path / "b.parquet")
    (message,) = messages(tmp_path)
    assert "b.parquet, column 'x': it cannot be read as int64, as other files have it" in message


@pytest.mark.parametrize("name", ["{", "}", "{}", "a{b", "{{"])
def test_braces_around_no_column_are_part_of_a_name(tmp_path: Path, name: str) -> None:
    named = put(tmp_path / "a.csv", f"type,t,{name}\nA,1,7\nA,2,8\n")
    assert read_traces(named, flags(id=name)).column("id").to_pylist() == [7, 8]
    other = put(tmp_path / "b.csv", "type,t\nA,1\n")
    (message,) = messages(other, schema=flags(id=name))
    assert f"column '{name}': there is no such column" in message


def test_columns_that_cannot_be_part_of_an_id(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", '{"type": "A", "t": 1, "tags": ["x"]}\n')
    (message,) = messages(path, schema=flags(id="{tags}!"))
    assert message == f"{path}, column 'tags': its type is list<item: string>, which cannot be part of an id"


def test_the_column_of_a_histogram_is_no_attribute(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", '{"type": "A", "t": 1, "pmf": [0.5, 0.5], "x": 3}\n')
    table = read_traces(path, flags(uncertainty="histogram:pmf"))
    assert table.to_pylist() == [{"type": "A", "id": 1, "lower": 1, "upper": 2, "pmf": [0.5, 0.5], "x": 3}]
