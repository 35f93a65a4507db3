"""The job history of Hadoop 0.20: lines of ``KEY="value"`` that end with a dot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.event_columns import chunks
from uncertain_cep.traces.readers.hadoop_events import ATTRIBUTES, WIDTH, hadoop_batches, host_of
from uncertain_cep.traces.readers.source import MOST_BYTES, Source, shown_text

__all__ = ["ATTRIBUTES", "events"]

_PAIR: Final = re.compile(r'(\w+)="([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ATTEMPT: Final = " TASK_ATTEMPT_ID="
_KINDS: Final = {
    "Job": " JOBID=",
    "Task": " TASKID=",
    "MapAttempt": _ATTEMPT,
    "ReduceAttempt": _ATTEMPT,
}
_BEGINS: Final = (b"Meta ", *map(str.encode, _KINDS))
_STAMPS: Final = (" SUBMIT_TIME=", " START_TIME=", " SHUFFLE_FINISHED=", " SORT_FINISHED=", " FINISH_TIME=")
_JOB_STAMPS: Final = (_STAMPS[0], " LAUNCH_TIME=", *_STAMPS[2:])


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the submission, start and end of jobs, and the start and end of tasks and attempts.

    Jobs and tasks have the stamps of the JobTracker, attempts those of the TaskTracker that ran them, with
    the ends of shuffle and sort. Fields are the keys of a record.
    """
    yield from hadoop_batches(source, chunks(_phases(source), WIDTH))


def _phases(source: Source) -> Iterator[tuple[Any, ...]]:
    fields = source.fields
    for row, record in _records(source):
        kind, _, rest = record.partition(" ")
        key = _KINDS.get(kind)
        if key is None:
            continue
        get = _pairs(rest).get
        identifier = get(key)
        if identifier is None:
            message = f"it is no such record: {kind} without {key[1:-1]}"
            raise TraceError(TraceFault(message, row=row, value=shown_text(record.encode())))
        times = map(get, _JOB_STAMPS if kind == "Job" else _STAMPS)
        yield (
            identifier,
            *[-1 if time is None else _time(time, row) for time in times],
            "TaskTracker" if key == _ATTEMPT else "JobTracker",
            get(" TASK_TYPE="),
            _host(get(" HOSTNAME=") or get(" TRACKER_NAME=")),
            get(" JOB_STATUS=" if kind == "Job" else " TASK_STATUS="),
            get(" JOBNAME="),
            {field: get(f" {field}=") for field in fields} if fields else None,
        )


_host: Final = lru_cache(host_of)


def _pairs(text: str) -> dict[str, str]:
    """Return the values of a record by their keys, each with a space before and an equals sign behind."""
    if '\\"' in text or "\\\\" in text:
        return {f" {name}=": _ESCAPE.sub(r"\1", value) for name, value in _PAIR.findall(text)}
    # Every quote begins or ends a value.
    parts = f" {text}".replace("\\", "").split('"')
    return dict(zip(parts[::2], parts[1::2], strict=False))


def _time(text: str, row: int) -> int:
    try:
        time = int(text)
    except ValueError:
        time = 2**63
    if abs(time) >= 2**62:
        raise TraceError(TraceFault("it is no number of ms", row=row, value=text[:80]))
    return time


def _records(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the records with the rows that they begin in; a dot in a value is written with a backslash."""
    begun, size, is_history = 0, 0, True
    parts: list[bytes] = []
    for row, line in source.lines():
        # Rumen keeps histories in one file, each behind its name, with XML files of configurations between.
        if line.startswith(b"!!FILE="):
            is_history = not line.endswith(b"_conf.xml!!")
            continue
        if not is_history:
            continue
        if not (parts or line.startswith(_BEGINS) or line.endswith(b" .")):
            raise TraceError(TraceFault("it is no such record", row=row, value=shown_text(line)))
        begun = begun if parts else row
        parts.append(line)
        size += len(line)
        if size > MOST_BYTES:
            break
        if line.endswith(b".") and not line.endswith(b"\\."):
            try:
                yield begun, b"\n".join(parts).decode()
            except UnicodeDecodeError:
                message = "its text is not UTF-8: convert the file"
                raise TraceError(TraceFault(message, row=row, value=shown_text(line))) from None
            parts, size = [], 0
    if parts:
        raise TraceError(TraceFault("the record is cut off", row=begun, value=shown_text(parts[0])))
