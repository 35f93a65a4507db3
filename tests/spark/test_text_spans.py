"""Long text files that workers read in spans of bytes hold the same events as when they are read whole."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.cases.sampling import sampled_from
from tests.spark.traces import as_rows
from uncertain_cep.spark import match_to_parquet, read_traces, text_spans
from uncertain_cep.spark.dataframes import as_spark_keeps
from uncertain_cep.spark.file_parts import described_files
from uncertain_cep.spark.file_reading import Reading, describe_files
from uncertain_cep.spark.text_spans import files_to_read_whole, in_spans
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces import load_schema
from uncertain_cep.traces.formats import FileOptions, list_files
from uncertain_cep.traces.reading_steps import reading_steps
from uncertain_cep.traces.schema import TraceSchema

NAMES: Final = Names()
QUERY: Final = "PATTERN SEQ(A a, B b) WHERE [value] WITHIN 9"
CSV_VALUES: Final = (
    "1", "22", "", "2.5", "true", "2024-05-31", "2024-05-31 10:00:00", "x", "é", 'a"b', '"q"', '"a,b"',
    '"say ""x"""', '"two\nlines"', '"two\r\nlines"', '"open', 'b"c,"d', "08", "12345678901234567890",
    "9007199254740993", "2024-05-31T10:00:00Z",
)  # fmt: skip
JSON_VALUES: Final = (
    "1", "2.5", "null", '"x"', '"2024-05-31"', "true", "[1, 2]", '"a\\nb"', "12345678901234567890",
    "9007199254740993", '"2024-05-31T10:00:00Z"', '"2024-05-31T10:00:00"',
)  # fmt: skip


def read_in_spans(path: Path, schema: TraceSchema | None = None) -> tuple[int, pa.Table | None]:
    """Return in how many spans a file is described, and its events; None if it has to be read whole."""
    faults: list[uc.errors.TraceFault] = []
    files, _ = list_files([path])
    steps = reading_steps(files, schema, faults)
    options = FileOptions() if schema is None else schema.options
    work = tuple(
        (span, tuple(steps_of_file))
        for file, steps_of_file in steps.items()
        for span in in_spans(file, steps_of_file, options)
    )
    tick = None if schema is None else schema.tick
    reading = Reading(work, options, tick, tick)
    batches = describe_files([pa.record_batch({"file": list(range(len(work)))})], reading=reading)
    rows = [row for batch in batches for row in batch.to_pylist()]
    descriptions = {work[row["file"]][0]: row for row in rows}
    if len(work) == 1 or files_to_read_whole(descriptions):
        return len(work), None
    kept = as_spark_keeps(uc.read_traces([path], schema).schema)
    firsts = np.cumsum([1, *(row["rows"] for row in rows)]).tolist()
    described = {row["file"]: json.loads(row["events"]) for row in rows}
    event_files = described_files(described, kept, reading, described[0]["days"], tuple(firsts))
    assert event_files is not None
    parts_read = [
        events for part in event_files.parts for events in event_files.read(part, NAMES, kept.names)
    ]
    assert np.concatenate([places for _, places in parts_read]).tolist() == list(range(event_files.rows))
    return len(work), pa.concat_tables([table for table, _ in parts_read])


def check(text: str, ending: str, cut: int) -> bool:
    """Return whether a text was read in spans; these must have its events, and it must have no fault."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_spans, "BYTES_PER_SPAN", cut)
        path = Path(folder, f"events.{ending}")
        path.write_bytes(text.encode())
        _, events = read_in_spans(path)
        if events is not None:
            # A span of which there is something to say is read with the rest: this has nothing to say.
            expected = uc.read_traces([path])
            assert events.cast(as_spark_keeps(expected.schema)).equals(
                expected.cast(as_spark_keeps(expected.schema)).replace_schema_metadata(None)
            )
        return events is not None


@settings(max_examples=40)
@given(
    values=st.lists(sampled_from(CSV_VALUES), min_size=2, max_size=12),
    usual=sampled_from(["1", "x", '"q"', "", "2.5", "8"]),
    every=st.integers(1, 12),
    end=sampled_from(["\n", "\r\n"]),
    blank=st.booleans(),
    cut=st.integers(20, 90),
)
@example(values=['"two\nlines"'], usual="x", every=3, end="\n", blank=False, cut=20)
@example(values=['b"c,"d', "x"], usual="x", every=2, end="\n", blank=False, cut=20)
def test_spans_of_csv(values: list[str], usual: str, every: int, end: str, blank: bool, cut: int) -> None:
    rows = [usual if place % every else values[place % len(values)] for place in range(20)]
    lines = [f"A,{place},{place},{place + 1},{value}{end}" for place, value in enumerate(rows)]
    text = f"type,id,lower,upper,value{end}" + "".join(lines)
    check(text + (end + lines[-1] if blank else ""), "csv", cut)


@settings(max_examples=20)
@given(
    values=st.lists(sampled_from(JSON_VALUES), min_size=1, max_size=12),
    usual=sampled_from(["1", '"x"', "null", "2.5", '"2024-05-31T10:00:00"']),
    every=st.integers(1, 12),
    cut=st.integers(30, 200),
)
def test_spans_of_json_lines(values: list[str], usual: str, every: int, cut: int) -> None:
    rows = [usual if place % every else values[place % len(values)] for place in range(20)]
    text = [
        f'{{"type": "A", "id": {place}, "lower": {place}, "upper": {place}, "value": {value}}}\n'
        for place, value in enumerate(rows)
    ]
    check("".join(text), "jsonl", cut)


def lines(*values: str) -> str:
    rows = [f"A,{place},{place},{place + 1},{value}\n" for place, value in enumerate(values)]
    return "type,id,lower,upper,value\n" + "".join(rows)


@pytest.mark.parametrize(
    ("text", "ending", "apart"),
    [
        (lines(*["x"] * 30), "csv", True),
        (lines(*['"a,b"'] * 30), "csv", True),
        (lines(*["x"] * 20, *[""] * 10), "csv", True),
        (lines(*["x"] * 29, '"two\nlines"'), "csv", False),
        (lines(*["x"] * 29, '"open'), "csv", False),
        (lines(*["1"] * 15, *["2.5"] * 15), "csv", False),
        (lines(*["1"] * 15, *["x"] * 15), "csv", False),
        (lines(*["x"] * 10, "x,y", *["x"] * 19), "csv", False),
        (lines(*["x"] * 30).replace("\n", "\r\n"), "csv", True),
        (lines(*["x"] * 30).replace("\n", "\r"), "csv", False),
        ('{"type": "A", "id": 1, "lower": 1, "upper": 2}\n' * 20, "jsonl", True),
        ('[{"type": "A", "id": 1, "lower": 1, "upper": 2}\n]' + " " * 200, "json", False),
        ('{"type": "A", "id": 1, "lower": 1, "upper": 2}\n' * 20 + "{}}\n", "jsonl", False),
    ],
)
def test_which_files_are_read_in_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, ending: str, apart: bool
) -> None:
    monkeypatch.setattr(text_spans, "BYTES_PER_SPAN", 60)
    path = tmp_path / f"events.{ending}"
    path.write_bytes(text.encode())
    _, events = read_in_spans(path)
    assert (events is not None) is apart
    assert events is None or events.num_rows == uc.read_traces([path]).num_rows


SCHEMA: Final = """
[[events]]
type_column = "type"
time = "lower"
attributes = ["value"]
{more}
uncertainty = {{ kind = "plus_minus", by = "1s" }}
"""
STAMP: Final = "2024-05-31 10:00:{:02}"


@pytest.mark.parametrize(
    ("stamp", "more", "apart"),
    [
        (STAMP, "", True),
        (STAMP + "Z", "", True),
        ("31.05.2024 10:00:{:02}", 'time_format = "%d.%m.%Y %H:%M:%S"', True),
        ("May 31 10:00:{:02}", 'time_format = "%b %d %H:%M:%S"\nyear = 2024', False),
        ("31.05.2024 10:00:{:02} +0200", 'time_format = "%d.%m.%Y %H:%M:%S %z"', False),
        (STAMP, 'types = { value = "timestamp" }', False),
    ],
)
def test_stamps_of_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stamp: str, more: str, apart: bool
) -> None:
    monkeypatch.setattr(text_spans, "BYTES_PER_SPAN", 100)
    path, schema = tmp_path / "events.csv", tmp_path / "schema.toml"
    rows = [f"A,{stamp.format(place)},2024-05-31T10:00:00\n" for place in range(20)]
    path.write_text("type,lower,value\n" + "".join(rows))
    schema.write_text(SCHEMA.format(more=more))
    spans, events = read_in_spans(path, load_schema(schema))
    assert (events is not None) is apart
    assert (spans > 1) is apart
    if events is not None:
        expected = uc.read_traces([path], schema)
        assert events.column("id").to_pylist() == list(range(1, 21)) == expected.column("id").to_pylist()


def test_zones_of_some_spans_are_no_zones_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_spans, "BYTES_PER_SPAN", 100)
    path, schema = tmp_path / "events.csv", tmp_path / "schema.toml"
    rows = [f"A,{STAMP.format(place)}{'Z' if place < 10 else ''},1\n" for place in range(20)]
    path.write_text("type,lower,value\n" + "".join(rows))
    schema.write_text(SCHEMA.format(more='types = { lower = "string" }'))
    assert read_in_spans(path, load_schema(schema)) == (5, None)
    with pytest.raises(uc.TraceError, match="row 11, column 'lower'"):
        uc.read_traces([path], schema)


@pytest.fixture
def long_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CSV file of several spans and tasks."""
    monkeypatch.setattr(text_spans, "BYTES_PER_SPAN", 500)
    monkeypatch.setattr("uncertain_cep.spark.file_tasks.ROWS_WORTH_A_TASK", 100)
    rows = [f"{'AB'[place % 2]},{place},{place},{place + 2},{place // 2 % 3}\n" for place in range(300)]
    path = tmp_path / "events.csv"
    path.write_text("type,id,lower,upper,value\n" + "".join(rows))
    return path


def test_one_file_is_read_by_several_workers(spark: SparkSession, long_file: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    # So ids are running numbers.
    long_file.write_text(long_file.read_text().replace(",id,", ",number,", 1))
    schema.write_text(SCHEMA.format(more='unit = "s"'))
    frame = read_traces(spark, long_file, schema)
    query = QUERY.replace("9", "9 seconds")
    assert "workers read the files: 9 parts in 2 tasks" in str(uc.explain(query, frame))
    expected = as_rows(uc.match(uc.read_traces(long_file, schema), query))
    assert len(expected) > 200
    assert match_to_parquet(frame, query, tmp_path / "out") == len(expected)
    output = ds.dataset(sorted(map(str, tmp_path.glob("out/*.parquet"))), format="parquet")
    assert as_rows(output.to_table()) == expected
    assert frame.filter("value = 1").count() == 100


def test_what_spans_do_not_tell(spark: SparkSession, long_file: Path) -> None:
    text = long_file.read_text()
    long_file.write_text(text.replace("B,299,", "B,5,"))
    with pytest.raises(uc.TraceError, match="an earlier event with the same value has this id"):
        uc.match(read_traces(spark, long_file), QUERY)
    long_file.write_text(text.replace(",299,301,2", ',299,301,"2\n"'))
    assert read_traces(spark, long_file).count() == 300
    long_file.write_text(text.replace("A,250,250,", "A,250,x,"))
    with pytest.raises(uc.TraceError, match="column 'lower'"):
        read_traces(spark, long_file).count()
