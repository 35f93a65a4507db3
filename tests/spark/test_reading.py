"""Files and frames of raw stamps become the events that the in-process readers make of them."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.api.test_types_nobody_asks_for import Note
from tests.spark.traces import KEYED, as_rows, random_trace
from tests.traces.readers.samples import SAMPLES
from uncertain_cep.errors import OptionError, TraceError, UncertainCepWarning
from uncertain_cep.spark import match, read_traces, to_intervals, worker_errors
from uncertain_cep.spark.reading import used_of_traces
from uncertain_cep.timeline.domain import TICK_METADATA
from uncertain_cep.traces import columns, histogram, intervals_of, load_schema, plus_minus
from uncertain_cep.traces import read_traces as read_table

SCHEMA = """
tick = "100ms"
[[events]]
files = "*tasks*"
type = "Start"
time = "start"
unit = "s"
attributes = ["host", "load"]
uncertainty = { kind = "clock_offset", table = "offsets.csv", key = "host", unit = "ms" }
[[events]]
files = "*tasks*"
type = "End"
id = "{host}:{start}:end"
where = "end > 0"
time = "end"
unit = "s"
attributes = ["host"]
uncertainty = { kind = "plus_minus", by = "300ms" }
[[events]]
files = "*metrics*"
type = "Metric"
time = "at"
attributes = ["host", "load"]
uncertainty = { kind = "window", length = "2s" }
"""


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "offsets.csv").write_text("host,offset_lo,offset_hi\nh1,-150,250\nh2,0,0\n")
    (folder / "tasks-1.csv").write_text("host,start,end,load\nh1,100,110,3\nh2,101,0,4\n")
    with gzip.open(folder / "tasks-2.csv.gz", "wt") as stream:
        stream.write("host,start,end,load\nh2,103,120,1.5\n")
    (folder / "metrics.jsonl").write_text('{"at": "1970-01-01T00:01:45Z", "host": "h1", "load": 0.5}\n')
    (folder / "tasks-0.csv").write_text("host,start,end,load\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def test_files_of_several_kinds(spark: SparkSession, raw: Path) -> None:
    schema = load_schema(raw / "schema.toml")
    paths = [raw / "raw" / name for name in ("tasks-0.csv", "tasks-1.csv", "tasks-2.csv.gz", "metrics.jsonl")]
    expected = read_table(paths, schema)
    frame = read_traces(spark, paths, raw / "schema.toml")
    assert frame.columns == expected.column_names
    assert as_rows(frame.toArrow()) == as_rows(expected)
    query = "PATTERN SEQ(Start s, Metric m) WITHIN 10 seconds"
    assert as_rows(match(frame, query).toArrow()) == as_rows(uc.match(expected, query))


GENERAL = """
tick = "1ms"
explode = "items"
file_column = "file"
deduplicate = true
[extract]
line = "log4j"
[[events]]
files = "*.jsonl"
type = "Item"
id = "{items.n}"
time = "items.at"
time_format = ["%d.%m.%Y %H:%M", "%d.%m.%Y"]
time_zone = "Europe/Berlin"
attributes = ["host.name", "file"]
uncertainty = { kind = "as_written" }
[[events]]
files = "*.log"
type_column = "level"
id = "{file}:{message}"
time = "time"
attributes = ["message"]
uncertainty = { kind = "as_written" }
[[events]]
files = "*.csv"
type_column = "variable"
id = "{start}:{variable}"
value_columns = ["cpu", "m*"]
time = "start + took"
unit = "ms"
attributes = ["value"]
uncertainty = { kind = "plus_minus", by = "2ms" }
"""


def test_files_that_schemas_say_more_of(spark: SparkSession, tmp_path: Path) -> None:
    item = (
        '{"host": {"name": "a"}, "items": [{"n": 1, "at": "31.05.2024"}, {"n": 2, "at": "31.05.2024 10:30"}]}'
    )
    (tmp_path / "a.jsonl").write_text(f"{item}\n{item}\n")
    (tmp_path / "b.log").write_text(
        "2024-05-31 15:37:56,547 INFO [main] a.B: x\n\tat y\n2024-05-31 15:37:57,1 WARN [main] a.B: z\n"
        "--- end\n"
    )
    (tmp_path / "c.csv").write_text("start,took,cpu,mem\n1717155000000,5,1,2.5\n1717155001000,5,,3\n")
    (tmp_path / "schema.toml").write_text(GENERAL)
    paths = [tmp_path / name for name in ("a.jsonl", "b.log", "c.csv")]
    with pytest.warns(uc.UncertainCepWarning) as said:
        expected = read_table(paths, tmp_path / "schema.toml")
    assert expected.num_rows == 2 + 2 + 3
    with pytest.warns(uc.UncertainCepWarning) as said_on_spark:
        frame = read_traces(spark, paths, tmp_path / "schema.toml")
    assert sorted(str(one.message) for one in said_on_spark) == sorted(str(one.message) for one in said)
    assert any("2 events agree in everything" in str(one.message) for one in said)
    assert any("fits 1 of 3 records" in str(one.message) for one in said)
    assert frame.columns == expected.column_names
    assert sorted(map(str, as_rows(frame.toArrow()))) == sorted(map(str, as_rows(expected)))
    # Rows without ids are numbered.
    plain = GENERAL.replace('id = "{items.n}"', "").replace('id = "{file}:{message}"', "")
    (tmp_path / "schema.toml").write_text(plain.replace('id = "{start}:{variable}"', ""))
    schema = load_schema(tmp_path / "schema.toml")
    with pytest.warns(uc.UncertainCepWarning) as said:
        rows = read_traces(spark, paths[:1], replace(schema, events=schema.events[:1])).toArrow()
    assert sorted(rows.column("id").to_pylist()) == [1, 2]
    assert any("2 events agree in everything" in str(one.message) for one in said)


def test_logs_that_need_no_schema(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in (1, 2):
        log = SAMPLES["spark-eventlog"].replace("app-1", f"app-{number}")
        (folder / f"app-{number}").write_text(log)
    expected = read_table(folder, format="spark-eventlog")
    frame = read_traces(spark, folder, format="spark-eventlog")
    assert as_rows(frame.toArrow()) == as_rows(expected)
    with pytest.warns(uc.UncertainCepWarning, match="app-1 and 1 more: read as spark-eventlog"):
        assert as_rows(read_traces(spark, folder).toArrow()) == as_rows(expected)
    query = "PATTERN SEQ(TaskStart a, TaskEnd b) WHERE [app] WITHIN 1 minute"
    assert as_rows(match(frame, query).toArrow()) == as_rows(uc.match(expected, query))
    (folder / "app-2").write_text("{")
    with pytest.raises(TraceError, match="app-2, row 1"), worker_errors():
        read_traces(spark, folder, format="spark-eventlog").collect()


def test_files_of_the_model(spark: SparkSession, tmp_path: Path) -> None:
    table = random_trace(1, 200, keys=3).drop_columns("not used")
    pyarrow.csv.write_csv(table.slice(0, 120), tmp_path / "one.csv")
    pyarrow.csv.write_csv(table.slice(120), tmp_path / "two.csv")
    frame = read_traces(spark, tmp_path)
    assert as_rows(frame.toArrow()) == as_rows(read_table(tmp_path))
    assert as_rows(match(frame, KEYED).toArrow()) == as_rows(uc.match(table, KEYED))


def test_parquet_is_scanned_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = random_trace(2, 100)
    times = [table.column(name).cast(pa.timestamp("ms")) for name in ("lower", "upper")]
    for name, column in zip(("lower", "upper"), times, strict=True):
        table = table.set_column(table.schema.get_field_index(name), name, column)
    pq.write_table(table.replace_schema_metadata({TICK_METADATA: b"1ms"}), tmp_path / "events.parquet")
    for path in (tmp_path, tmp_path / "events.parquet", f"file://{tmp_path}"):
        frame = read_traces(spark, path)
        assert frame.inputFiles()
        assert frame.count() == 100
    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    matches = match(read_traces(spark, tmp_path), query).toArrow()
    assert matches.num_rows == uc.match(table, query, tick="1ms").num_rows > 0


def test_nanoseconds_are_read_where_they_are_whole_microseconds(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([1000, 5_000], pa.timestamp("ns", "UTC"))
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": times, "upper": times})
    pq.write_table(table, tmp_path / "events.parquet")
    frame = read_traces(spark, tmp_path)
    assert dict(frame.dtypes)["lower"] == "timestamp"
    assert frame.count() == 2
    late = pa.array([1000, 5_001], pa.timestamp("ns", "UTC"))
    pq.write_table(table.set_column(3, "upper", late), tmp_path / "events.parquet")
    with pytest.raises(TraceError, match=r"events\.parquet.*cannot be kept by Spark"), worker_errors():
        read_traces(spark, tmp_path).collect()


def test_faults_name_file_row_and_column(spark: SparkSession, raw: Path) -> None:
    schema = load_schema(raw / "schema.toml")
    bad = raw / "raw" / "tasks-9.csv"
    bad.write_text("host,start,end,load\nh1,1,2,3\nh3,1,2,3\n")
    with pytest.raises(TraceError, match=r"tasks-9\.csv, row 2, column 'host', value 'h3'"), worker_errors():
        read_traces(spark, [bad, raw / "raw" / "metrics.jsonl"], schema).collect()
    with pytest.raises(TraceError, match="no such file"):
        read_traces(spark, raw / "nothing.csv")
    with pytest.raises(TraceError, match="no file is given"):
        read_traces(spark, [])
    bad.write_text("host,start\nh1,1\n")
    with pytest.raises(TraceError, match="no such column"):
        read_traces(spark, [bad, raw / "raw" / "metrics.jsonl"], schema)


def test_intervals_of_a_frame(spark: SparkSession) -> None:
    table = pa.table(
        {
            "type": ["A", "B", "C"],
            "id": [1, 2, 3],
            "at.time": pa.array([1_000_000, 2_500_000, None], pa.timestamp("us", "UTC")),
            "nested": [{"a": 1}] * 3,
        }
    )
    frame = spark.createDataFrame(table)
    intervals = to_intervals(
        frame, time="at.time", uncertainty=plus_minus("300ms"), tick="100ms", missing="drop"
    )
    expected = intervals_of(
        table, time="at.time", uncertainty=plus_minus("300ms"), tick="100ms", missing="drop"
    )
    assert as_rows(intervals.toArrow()) == as_rows(expected)
    # The tick has come along: 15 ticks are 1.5 s.
    query = "PATTERN SEQ(A a, B b) WITHIN 15"
    assert as_rows(match(intervals, query).toArrow()) == as_rows(
        uc.match(expected.drop_columns("nested"), query)
    )
    with pytest.raises(TraceError, match="missing="), worker_errors():
        to_intervals(frame, time="at.time", uncertainty=plus_minus("300ms"), tick="100ms").collect()


def test_intervals_with_probabilities(spark: SparkSession) -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [3, 9], "pmf": [[0.5, 0.5], [1.0]]})
    intervals = to_intervals(spark.createDataFrame(table), uncertainty=histogram("pmf", lower="lower"))
    expected = intervals_of(table, time=None, uncertainty=histogram("pmf", lower="lower"))
    assert intervals.columns == expected.column_names
    assert intervals.select("type", "lower", "upper").collect() == [("A", 3, 4), ("B", 9, 9)]


def test_columns_at_fault(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("A", True)], "type string, at boolean")
    with pytest.raises(TraceError, match="no such column"):
        to_intervals(frame, time="when", uncertainty=plus_minus(1))
    with pytest.raises(TraceError, match="at"):
        to_intervals(frame, time="at", uncertainty=plus_minus(1))
    with pytest.raises(OptionError):
        to_intervals(frame, time="at", uncertainty=plus_minus(1), missing="keep")  # type: ignore[arg-type]


def test_bounds_of_which_one_has_no_zone(spark: SparkSession) -> None:
    frame = spark.sql("SELECT timestamp_ntz'2024-05-31 10:00:00' AS lo, timestamp'2024-05-31 11:00:00' AS hi")
    with pytest.warns(UncertainCepWarning, match="^no time zone in lo, and UTC in hi"):
        to_intervals(frame, uncertainty=columns("lo", "hi"))


def test_columns_that_nobody_asks_for_may_hold_anything(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"type": "A", "id": n, "lower": n, "upper": n + 1, "x": n, "note": n or "text"} for n in range(3)]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    events = used_of_traces(spark, [path], None, None, frozenset({"x"}))
    assert sorted(row["x"] for row in events.collect()) == [0, 1, 2]
    assert "note" not in events.columns


def test_codes_and_long_whole_numbers(spark: SparkSession, tmp_path: Path) -> None:
    long = 12345678901234567890
    rows = ["type,id,lower,upper,code,key,mixed"]
    (tmp_path / "a.csv").write_text("\n".join([*rows, f"A,1,1,1,8,{long},0.5", ""]))
    (tmp_path / "b.csv").write_text("\n".join([*rows, f"B,2,2,2,08,{long + 1},0.25", ""]))
    (tmp_path / "c.jsonl").write_text(
        f'{{"type":"B","id":3,"lower":3,"upper":3,"code":7,"key":7,"mixed":0.5}}\n'
        f'{{"type":"B","id":4,"lower":3,"upper":3,"code":7,"key":7,"mixed":{2**53 + 1}}}\n'
    )
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.jsonl")]
    with pytest.warns(uc.UncertainCepWarning, match="rounded") as said:
        expected = read_table(paths)
    with pytest.warns(uc.UncertainCepWarning, match="rounded") as said_on_spark:
        frame = read_traces(spark, paths)
    assert {str(one.message) for one in said_on_spark} == {str(one.message) for one in said}
    assert expected.column("code").to_pylist() == ["8", "08", "7", "7"]
    assert expected.column("key").to_pylist() == [str(long), str(long + 1), "7", "7"]
    assert sorted(map(str, as_rows(frame.toArrow()))) == sorted(map(str, as_rows(expected)))


@pytest.mark.parametrize("scanned", [True, False])
def test_a_type_of_a_user_is_what_it_is_stored_as(spark: SparkSession, tmp_path: Path, scanned: bool) -> None:
    note = Note(pa.string())
    pa.register_extension_type(note)
    try:
        events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 5], "upper": [1, 5]})
        events = events.append_column("note", pa.ExtensionArray.from_storage(note, pa.array(["x", None])))
        if not scanned:
            # Spark reads no files with times to the nanosecond itself.
            events = events.append_column("at", pa.array([0, 1], pa.timestamp("ns")))
        pq.write_table(events, tmp_path / "t.parquet")
        frame = read_traces(spark, tmp_path / "t.parquet")
        query = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN a.note"
        assert match(frame, query).toArrow()["a.note"].to_pylist() == ["x"]
        used = used_of_traces(spark, tmp_path / "t.parquet", None, None, frozenset())
        assert match(used, "PATTERN SEQ(A a, B b) WITHIN 9").count() == 1
    finally:
        pa.unregister_extension_type(note.extension_name)


def test_hours_that_clocks_showed_twice_and_days_that_change(spark: SparkSession, tmp_path: Path) -> None:
    """Rows tell each other the same on Spark, and so are the pmfs of those with two possible times."""
    (tmp_path / "schema.toml").write_text(
        'tick = "1min"\n[[events]]\nfiles = "[ab].*"\ntype_column = "what"\ntime = "at"\n'
        'time_zone = "Europe/Berlin"\nuncertainty = { kind = "exact" }\n[[events]]\nfiles = "c.csv"\n'
        'type_column = "what"\ntime = "at"\ntime_format = "%H:%M"\ndate = 2026-10-25\n'
        'time_zone = "Europe/Berlin"\nuncertainty = { kind = "exact" }\n'
    )
    (tmp_path / "a.csv").write_text("what,at\nA,2026-10-25T02:45:00\nB,2026-10-25T02:10:00\n")
    stamps = pa.array([1, 2], pa.timestamp("s"))
    pq.write_table(pa.table({"what": ["A", "B"], "at": stamps}), tmp_path / "b.parquet")
    (tmp_path / "c.csv").write_text("what,at\nA,23:00\nB,01:00\n")
    paths = [tmp_path / name for name in ("a.csv", "b.parquet", "c.csv")]
    with pytest.warns(uc.UncertainCepWarning) as said:
        expected = read_table(paths, tmp_path / "schema.toml")
    with pytest.warns(uc.UncertainCepWarning) as said_on_spark:
        frame = read_traces(spark, paths, tmp_path / "schema.toml")
    messages = {str(one.message) for one in said_on_spark}
    assert messages == {str(one.message) for one in said}
    assert sum("stand for two times" in message for message in messages) == 1
    assert sum("the day changes 1 time" in message for message in messages) == 1
    assert frame.columns == expected.column_names
    assert expected.column("pmf").null_count == 4
    assert sorted(map(str, as_rows(frame.toArrow()))) == sorted(map(str, as_rows(expected)))
    query = "PATTERN SEQ(B b, A a) WITHIN 1 hour"
    assert match(frame, query).toArrow().num_rows == uc.match(expected, query).num_rows == 1


def test_frames_of_local_times(spark: SparkSession) -> None:
    raw = spark.createDataFrame(
        [("A", 1, "2026-10-25T02:30:00"), ("B", 2, "2026-10-25T12:00:00")], ["type", "id", "at"]
    )
    options: dict[str, Any] = {"time": "at", "uncertainty": "exact", "tick": "1min"}
    options["time_zone"] = "Europe/Berlin"
    events = to_intervals(raw, **options)
    pmfs = {row["type"]: row["pmf"] for row in events.select("type", "pmf").collect()}
    assert pmfs == {"A": [0.5, *[0.0] * 59, 0.5], "B": None}
    with pytest.warns(UncertainCepWarning, match="each has both times"):
        assert uc.to_intervals(raw.toArrow(), **options).column("pmf").to_pylist() == [pmfs["A"], None]


def test_a_unit_without_effect_is_said_on_spark_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(
        '[[events]]\ntype = "A"\ntime = "at"\nunit = "ms"\nuncertainty = { kind = "exact" }\n'
    )
    (tmp_path / "a.csv").write_text("at,x\n2026-01-05T10:30:00,1\n2026-01-05T10:30:01,2\n")
    paths = [tmp_path / "a.csv"]
    with pytest.warns(UncertainCepWarning, match=r"^events\[1\]\.unit 'ms' has no effect") as said:
        frame = read_traces(spark, paths, tmp_path / "schema.toml")
    assert len(said) == 1
    assert frame.count() == 2
    raw = spark.createDataFrame([("A", "2026-01-05 10:30")], "type string, at string")
    with pytest.warns(UncertainCepWarning, match="^unit 'ms' has no effect on stamps"):
        to_intervals(raw, time="at", uncertainty="exact", unit="ms")
