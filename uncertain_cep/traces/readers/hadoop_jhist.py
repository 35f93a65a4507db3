"""The job history of Hadoop 0.21 and later, ``.jhist``: JSON of Avro records, one a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.hadoop_events import ATTRIBUTES, hadoop_event, host_of
from uncertain_cep.traces.readers.source import Source, decoded, shown_text, values_at

__all__ = ["ATTRIBUTES", "events"]

Stamp = Annotated[int, Meta(ge=-1, le=2**62)]
Text = str | dict[str, str] | None


class _Record(Struct, rename="camel"):
    jobid: str | None = None
    taskid: str | None = None
    attempt_id: str | None = None
    task_type: str | None = None
    job_name: str | None = None
    submit_time: Stamp | None = None
    launch_time: Stamp | None = None
    start_time: Stamp | None = None
    shuffle_finish_time: Stamp | None = None
    sort_finish_time: Stamp | None = None
    finish_time: Stamp | None = None
    hostname: Text = None
    tracker_name: Text = None
    status: Text = None
    task_status: Text = None
    job_status: Text = None


class _Event(Struct):
    type: str
    event: dict[str, _Record]


_ANY: Final = msgspec.json.Decoder()
_DECODER: Final = msgspec.json.Decoder(_Event)
_ENDS: Final = frozenset(("JOB_FINISHED", "TASK_FINISHED"))

_UPDATES: Final = ("JobInfoChange", "TaskUpdated")
"""Records that tell times again."""


def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the submission, start and end of jobs, and the start and end of tasks and attempts.

    All stamps are those of the application's master. Fields are those of the Avro records.
    """
    fields = source.fields
    for row, line in source.lines():
        if row == 1 and line != b"Avro-Json":
            message = "a job history as JSON begins with the line Avro-Json"
            raise TraceError(TraceFault(message, row=row, value=shown_text(line)))
        # The second line is the schema.
        if row <= 2:
            continue
        given = decoded(_DECODER, line, row)
        raw = decoded(_ANY, line, row) if fields else {}
        for kind, record in given.event.items():
            if kind.endswith(_UPDATES):
                continue
            others = values_at(raw["event"][kind], fields) if fields else {}
            identifier = record.attempt_id or record.taskid or record.jobid
            if identifier is None:
                continue
            said = _text(record.status) or _text(record.task_status) or _text(record.job_status)
            status = said or ("SUCCEEDED" if given.type in _ENDS else None)
            stamps = {
                "submit": record.submit_time,
                "start": record.start_time if record.launch_time is None else record.launch_time,
                "shuffle": record.shuffle_finish_time,
                "sort": record.sort_finish_time,
                "end": record.finish_time,
            }
            for phase, time in stamps.items():
                yield from hadoop_event(
                    identifier, phase, time,
                    clock="ApplicationMaster", task_type=record.task_type,
                    host=host_of(_text(record.hostname) or _text(record.tracker_name)),
                    status=None if phase in ("submit", "start") else status,
                    name=record.job_name, others=others,
                )  # fmt: skip


def _text(value: Text) -> str | None:
    """Return the text of a field that Avro may write as ``{"string": "..."}``."""
    return next(iter(value.values()), None) if isinstance(value, dict) else value
