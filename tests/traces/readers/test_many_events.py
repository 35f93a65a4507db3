"""Long files are read a piece at a time: what is in memory does not grow with them."""

from __future__ import annotations

import io
import json
import resource
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count, product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertain_cep.errors import TraceError
from uncertain_cep.running.threads import available_cores
from uncertain_cep.traces import csv_files, json_files, text_lines
from uncertain_cep.traces.formats import FileOptions, read_file
from uncertain_cep.traces.readers import READERS
from uncertain_cep.traces.readers.source import Source

REST: Final = "x" * 400
"""What a line holds besides, which nothing asks for."""

LINES: Final[dict[str, tuple[str, Callable[[int], str]]]] = {
    "spark-eventlog": (
        "",
        lambda n: (
            f'{{"Event":"SparkListenerTaskEnd","Stage ID":1,"Task Info":{{"Task ID":{n},"Launch Time":{n},'
            f'"Finish Time":{n + 9}}},"more":"{REST}"}}\n'
        ),
    ),
    "hadoop-jhist": (
        'Avro-Json\n{"type":"record"}\n',
        lambda n: (
            '{"type":"TASK_STARTED","event":{"x.TaskStarted":'
            f'{{"taskid":"task_1_{n}_m_1","startTime":{n + 1},"splitLocations":"{REST}"}}}}}}\n'
        ),
    ),
    "hadoop-history": (
        'Meta VERSION="1" .\n',
        lambda n: f'Task TASKID="task_1_{n}_m_1" TASK_TYPE="MAP" START_TIME="{n + 1}" SPLITS="{REST}" .\n',
    ),
    "prometheus": (
        "",
        lambda n: (
            f'{{"metric":{{"__name__":"up"}},"values":[1,2],"timestamps":[{n},{n + 1}],"more":"{REST}"}}\n'
        ),
    ),
    "influx": ("", lambda n: f"up,note={REST} value=1 {n}\n"),
    "otlp-metrics": (
        "",
        lambda n: (
            '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"up","gauge":{"dataPoints":['
            f'{{"timeUnixNano":"{n}","asInt":"1"}}]}}}}]}}],"schemaUrl":"{REST}"}}]}}\n'
        ),
    ),
    "openmetrics": ("", lambda n: f'up{{note="{REST}"}} 1 {n}\n'),
    "otlp": (
        "",
        lambda n: (
            '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"1","spanId":"2",'
            f'"startTimeUnixNano":"{n}","endTimeUnixNano":"{n + 1}","traceState":"{REST}"}}]}}]}}]}}\n'
        ),
    ),
    "hadoop-rumen": ("", lambda n: f'{{"jobID":"job_1_{n}","submitTime":{n + 1},"user":"{REST}"}}\n'),
}
"""Formats of lines, or of objects one after another: what a file begins with, and its nth line."""


class Endless(io.RawIOBase):
    """A file of so many bytes, which is nowhere."""

    def __init__(self, pieces: Iterator[bytes], size: int) -> None:
        super().__init__()
        self._pieces, self.left, self._rest = pieces, size, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest and self.left > 0:
            self._rest = next(self._pieces)
            self.left -= len(self._rest)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def pieces(name: str) -> Iterator[bytes]:
    begin, line = LINES[name]
    for number in count(0, 1000):
        lines = "".join(line(number + place) for place in range(1000))
        yield (lines if number else begin + lines).encode()


def events(name: str, file: Endless) -> Iterator[pa.RecordBatch]:
    module = import_module(f"uncertain_cep.traces.readers.{READERS[name].module}")
    batches: Iterator[pa.RecordBatch] = module.events(Source(io.BufferedReader(file, 1 << 20), "file"))
    return batches


@pytest.mark.parametrize("name", LINES)
def test_events_come_before_the_file_ends(name: str) -> None:
    endless = Endless(pieces(name), 1 << 30)
    batches = events(name, endless)
    assert next(batches).num_rows >= 100
    # Each core reads some blocks.
    assert (1 << 30) - endless.left < (available_cores() + 2) << 22


@pytest.mark.thorough
@pytest.mark.parametrize("name", LINES)
def test_a_gigabyte_takes_little_memory(name: str) -> None:
    sum(batch.num_rows for batch in events(name, Endless(pieces(name), 1 << 22)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(batch.num_rows for batch in events(name, Endless(pieces(name), 1 << 30))) > 100_000
    # In KiB, on macOS in bytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


ROWS: Final[dict[str, tuple[str, str, Callable[[int], str]]]] = {
    "csv": ("csv", "id,time,rest\n", lambda n: f"{n},{n},{'x' * 1000}\n"),
    "json": ("jsonl", "", lambda n: f'{{"id":{n},"time":{n},"rest":"{"x" * 1000}"}}\n'),
    "text": ("log", "", lambda n: f"{n:010} {'x' * 1000}\n"),
}
"""Tables: how a file is called, what it begins with, and its nth line."""


def write(path: Path, name: str, size: int) -> int:
    """Write a file of about so many bytes, and return its lines."""
    _, begin, line = ROWS[name]
    number = 0
    with path.open("w") as file:
        file.write(begin)
        while file.tell() < size:
            file.write("".join(line(number + place) for place in range(1000)))
            number += 1000
    return number


def read(path: Path) -> pa.Table:
    return read_file(path, ["id", "time"], FileOptions(extract=(("line", "^(?P<time>[0-9]+) "),)))


@pytest.mark.parametrize("name", ROWS)
def test_a_long_table_is_read_as_a_short_one(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"t.{ROWS[name][0]}"
    rows = write(path, name, 1 << 21)
    whole = read(path)
    assert whole.num_rows == rows
    monkeypatch.setattr(csv_files, "LONG", 1)
    monkeypatch.setattr(json_files, "JSON_BLOCK", 1 << 16)
    monkeypatch.setattr(text_lines, "_BLOCK", 1 << 16)
    assert read(path).equals(whole)


VALUES: Final = ("", "7", "-3.5", "true", "2024-05-31", "10:30:00", "2024-05-31 10:30:00", "x")


def test_types_of_csv_files_are_those_of_all_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "CSV_BLOCKS", (1 << 10, 1 << 20))
    path = tmp_path / "t.csv"
    for first, second in product(VALUES, [*VALUES, "2024-05-31 10:30:00.5", "1e400"]):
        values = [first] * 300 + [second] * 300
        path.write_text("a,b\n" + "".join(f"{value},{number}\n" for number, value in enumerate(values)))
        outcomes: list[Any] = []
        for size in (1 << 40, 1 << 10):
            monkeypatch.setattr(csv_files, "LONG", size)
            outcomes.append(said_of(path, ["a", "b"]))
        assert outcomes[0] == outcomes[1], (first, second)


def said_of(path: Path, columns: list[str] | None, options: FileOptions | None = None) -> Any:
    """Return the rows of a file, or what is wrong with it."""
    try:
        return read_file(path, columns, options or FileOptions())
    except TraceError as error:
        return str(error)


JSON_VALUES: Final[tuple[Any, ...]] = (
    None, True, 7, -3.5, 2**70, "2024-05-31", "10:30:00", "2024-05-31 10:30:00", "2024-05-31 10:30:00.5", "x",
    [], [None], [7], [1.5], ["x"], ["2024-05-31"], {}, {"x": None}, {"x": 7}, {"x": 1.5, "y": "x"},
    {"x": "x"}, {"x": [{"z": 7}]}, [{"x": 7}], [{"x": -3.5, "y": {"z": "2024-05-31"}}], [[7], None],
)  # fmt: skip
OPTIONS: Final = (
    (None, FileOptions()),
    (["b", "a"], FileOptions()),
    (["a.x", "b"], FileOptions()),
    (["b"], FileOptions()),
    (["a", "b"], FileOptions(types=(("a", "string"),))),
    (["a", "b"], FileOptions(texts=("a",))),
    (["a.y", "b"], FileOptions(texts=("a.y",))),
)


def in_blocks_and_whole(
    path: Path, lines: list[str], columns: list[str] | None, options: FileOptions
) -> None:
    """Check that a file is read alike, or has the same faults, whatever is read of it at a time."""
    path.write_text("".join(lines))
    whole = said_of(path, columns, options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_files, "JSON_BLOCK", 1 << 6)
        patch.setattr(json_files, "_PIECE", 1 << 5)
        in_blocks = said_of(path, columns, options)
    if isinstance(whole, str) or isinstance(in_blocks, str):
        assert in_blocks == whole, lines
    else:
        names = (
            whole.column_names
            if columns is None
            else [name for name in columns if name in whole.column_names]
        )
        assert in_blocks.select(names).equals(whole.select(names)), lines


def test_types_of_json_lines_are_those_of_all_blocks(tmp_path: Path) -> None:
    for number, (first, second) in enumerate([*product(JSON_VALUES, repeat=2)][::3]):
        rows: list[dict[str, Any]] = [{"b": row, "a": first} for row in range(5)]
        rows += [{"b": row + 0.5, "a": second, "late": {"a": row}} for row in range(5)]
        lines = [f"{json.dumps(row)}\n" for row in rows]
        in_blocks_and_whole(tmp_path / "t.jsonl", lines, *OPTIONS[number % len(OPTIONS)])


def test_a_nested_field_of_two_types_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a":{"x":[1]}}\n{"a":{"x":[{"y":1}]}}\n{"a":{"x":"z"},"b":1}\n')
    advice = "but {} in row 1: give the column one type"
    first, second = said_of(path, None).splitlines()
    assert first.endswith(
        f"row 2, column 'a.x', value {{...}}: it holds an object, {advice.format('a number')}"
    )
    assert second.endswith(f"row 3, column 'a.x', value \"z\": it holds text, {advice.format('a list')}")
    assert said_of(path, ["b"]).column("b").to_pylist() == [None, None, 1]


@given(st.data())
def test_json_lines_in_blocks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    values = st.sampled_from(JSON_VALUES)
    rows = data.draw(
        st.lists(st.dictionaries(st.sampled_from("abc"), values, max_size=3), min_size=1, max_size=12)
    )
    lines = [data.draw(st.sampled_from(("", "\n", " "))) + f"{json.dumps(row)}\n" for row in rows]
    columns, options = data.draw(st.sampled_from(OPTIONS))
    in_blocks_and_whole(tmp_path_factory.mktemp("json") / "t.jsonl", lines, columns, options)


def test_a_date_behind_a_block_of_a_number_beyond_64_bits_is_a_fault(tmp_path: Path) -> None:
    lines = [f'{{"a": {2**70}, "b": "{"x" * 64}"}}\n', '{"a": "2024-05-31"}\n']
    in_blocks_and_whole(tmp_path / "t.jsonl", lines, None, FileOptions())
    assert "it holds text, but a number in row 1" in said_of(tmp_path / "t.jsonl", None)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ROWS)
def test_of_a_long_table_no_more_is_held_than_asked_for(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"t.{ROWS[name][0]}"
    write(path, name, 1 << 22)
    read(path)
    rows = write(path, name, 1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read(path).num_rows == rows
    path.unlink()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10
