"""Long files are read a piece at a time: what is in memory does not grow with them."""

from __future__ import annotations

import io
import resource
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from typing import Any, Final

import pyarrow as pa
import pytest

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
