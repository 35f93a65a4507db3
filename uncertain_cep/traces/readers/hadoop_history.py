"""The job history of Hadoop 0.20: lines of ``KEY="value"`` that end with a dot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.hadoop_events import ATTRIBUTES, hadoop_event, host_of
from uncertain_cep.traces.readers.source import MOST_BYTES, Source, shown_text

__all__ = ["ATTRIBUTES", "events"]

_PAIR: Final = re.compile(r'(\w+)="([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_KINDS: Final = {
    "Job": "JOBID",
    "Task": "TASKID",
    "MapAttempt": "TASK_ATTEMPT_ID",
    "ReduceAttempt": "TASK_ATTEMPT_ID",
}
_BEGINS: Final = (b"Meta ", *map(str.encode, _KINDS))
_STAMPS: Final = {
    "submit": "SUBMIT_TIME", "start": "START_TIME", "shuffle": "SHUFFLE_FINISHED", "sort": "SORT_FINISHED",
    "end": "FINISH_TIME",
}  # fmt: skip


def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the submission, start and end of jobs, and the start and end of tasks and attempts.

    Jobs and tasks have the stamps of the JobTracker, attempts those of the TaskTracker that ran them, with
    the ends of shuffle and sort. Fields are the keys of a record.
    """
    for row, record in _records(source):
        kind, _, rest = record.partition(" ")
        key = _KINDS.get(kind)
        if key is None:
            continue
        pairs = {
            name: _ESCAPE.sub(r"\1", value) if "\\" in value else value for name, value in _PAIR.findall(rest)
        }
        if key not in pairs:
            message = f"it is no such record: {kind} without {key}"
            raise TraceError(TraceFault(message, row=row, value=shown_text(record.encode())))
        status = next((value for name, value in pairs.items() if name.endswith("_STATUS")), None)
        others = {field: pairs.get(field) for field in source.fields}
        host = host_of(pairs.get("HOSTNAME") or pairs.get("TRACKER_NAME"))
        for phase, name in _STAMPS.items():
            if kind == "Job" and phase == "start":
                name = "LAUNCH_TIME"
            if name in pairs:
                yield from hadoop_event(
                    pairs[key], phase, _time(pairs[name], name, row),
                    clock="TaskTracker" if key == "TASK_ATTEMPT_ID" else "JobTracker",
                    task_type=pairs.get("TASK_TYPE"), host=host, status=None if phase == "start" else status,
                    name=pairs.get("JOBNAME"), others=others,
                )  # fmt: skip


def _time(text: str, name: str, row: int) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise TraceError(TraceFault("it is no number of ms", row=row, column=name, value=text[:80]))
    return int(text)


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
