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

from uncertain_cep.errors import TraceError
from uncertain_cep.traces import csv_files, json_files, text_lines
from uncertain_cep.traces.formats import FileOptions, read_file
from uncertain_cep.traces.readers import READERS
from uncertain_cep.traces.readers.source import Source

LINES: Final[dict[str, tuple[str, Callable[[int], str]]]] = {
    "spark-eventlog": (
        "",
        lambda n: (
            f'{{"Event":"SparkListenerTaskEnd","Stage ID":1,"Task Info":{{"Task ID":{n},"Launch Time":{n},'
            f'"Finish Time":{n + 9}}},"more":"{"x" * 900}"}}\n'
        ),
    ),
    "hadoop-jhist": (
        'Avro-Json\n{"type":"record"}\n',
        lambda n: (
            '{"type":"TASK_STARTED","event":{"x.TaskStarted":'
            f'{{"taskid":"task_1_{n}_m_1","startTime":{n + 1}}}}}}}\n'
        ),
    ),
    "hadoop-history": (
        'Meta VERSION="1" .\n',
        lambda n: f'Task TASKID="task_1_{n}_m_1" TASK_TYPE="MAP" START_TIME="{n + 1}" SPLITS="" .\n',
    ),
    "prometheus": (
        "",
        lambda n: f'{{"metric":{{"__name__":"up"}},"values":[1,2],"timestamps":[{n},{n + 1}]}}\n',
    ),
    "openmetrics": ("", lambda n: f"up 1 {n}\n"),
    "otlp": (
        "",
        lambda n: (
            '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"1","spanId":"2",'
            f'"startTimeUnixNano":"{n}","endTimeUnixNano":"{n + 1}"}}]}}]}}]}}\n'
        ),
    ),
    "hadoop-rumen": ("", lambda n: f'{{"jobID":"job_1_{n}","submitTime":{n + 1}}}\n'),
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
    found: Iterator[pa.RecordBatch] = module.events(Source(io.BufferedReader(file, 1 << 20), "file"))
    return found


@pytest.mark.parametrize("name", LINES)
def test_events_come_before_the_file_ends(name: str) -> None:
    endless = Endless(pieces(name), 1 << 30)
    found = events(name, endless)
    assert next(found).num_rows >= 100
    assert (1 << 30) - endless.left < 1 << 22


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


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_types_are_those_of_all_blocks(tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "CSV_BLOCKS", (1 << 10, 1 << 20))
    path = tmp_path / f"t.{format}"
    for first, second in product(VALUES, [*VALUES, "2024-05-31 10:30:00.5", "1e400"]):
        values = [first] * 300 + [second] * 300
        if format == "csv":
            path.write_text("a,b\n" + "".join(f"{value},{number}\n" for number, value in enumerate(values)))
        else:
            rows = [{"a": json_value(value), "b": number} for number, value in enumerate(values)]
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        found: list[Any] = []
        for size in (1 << 40, 1 << 10):
            monkeypatch.setattr(csv_files, "LONG", size)
            monkeypatch.setattr(json_files, "JSON_BLOCK", size)
            try:
                found.append(read_file(path, ["a", "b"]))
            except TraceError as error:
                found.append(str(error))
        assert found[0] == found[1], (first, second)


def json_value(text: str) -> Any:
    """Return what a text is written as in JSON."""
    if text in ("", "true"):
        return True if text else None
    try:
        return float(text) if text.startswith("-3") else int(text)
    except ValueError:
        return text


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
