"""The job history of Hadoop 0.21 and later, ``.jhist``: JSON of Avro records, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.hadoop_events import ATTRIBUTES, hadoop_batches, host_of
from uncertain_cep.traces.readers.source import Source, shown_text, values_at

__all__ = ["ATTRIBUTES", "events"]

Stamp = Annotated[int, Meta(ge=-1, le=2**62)] | None
Text = str | dict[str, str] | None


class _Record(Struct, rename="camel"):
    jobid: str | None = None
    taskid: str | None = None
    attempt_id: str | None = None
    task_type: str | None = None
    job_name: str | None = None
    submit_time: Stamp = None
    launch_time: Stamp = None
    start_time: Stamp = None
    shuffle_finish_time: Stamp = None
    sort_finish_time: Stamp = None
    finish_time: Stamp = None
    hostname: Text = None
    tracker_name: Text = None
    status: Text = None
    task_status: Text = None
    job_status: Text = None


class _Event(Struct):
    type: str
    event: dict[str, _Record]


_DECODER: Final = msgspec.json.Decoder(_Event)
_ENDS: Final = frozenset(("JOB_FINISHED", "TASK_FINISHED"))
_FIRST: Final = b"Avro-Json"

_UPDATES: Final = ("JobInfoChange", "TaskUpdated")
"""Records that tell times again."""


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the submission, start and end of jobs, and the start and end of tasks and attempts.

    All stamps are those of the application's master. Fields are those of the Avro records.
    """
    for row in (1, 2):
        # The second line is the schema.
        line = source.line(row).strip()
        if row == 1 and line != _FIRST:
            message = "a job history as JSON begins with the line Avro-Json"
            if line.startswith(b"Avro-"):
                message = (
                    f"it is a job history as {shown_text(line)}, and JSON is read: write it with "
                    "mapreduce.jobhistory.jhist.format=json, or by avro-tools as JSON"
                )
            raise TraceError(TraceFault(message, row=row, value=shown_text(line)))
    yield from hadoop_batches(source, _records(source))


def _records(source: Source) -> Iterator[Sequence[Any]]:
    for block in source.records(_DECODER, before=2):
        found = [
            (place, kind, record)
            for place, line in enumerate(block.values)
            for kind, record in line.event.items()
            if not kind.endswith(_UPDATES)
        ]
        records = [record for _, _, record in found]
        succeeded = [line.type in _ENDS for line in block.values]
        stamps = [
            [record.submit_time for record in records],
            [record.start_time if record.launch_time is None else record.launch_time for record in records],
            [record.shuffle_finish_time for record in records],
            [record.sort_finish_time for record in records],
            [record.finish_time for record in records],
        ]
        statuses = [record.status or record.task_status or record.job_status for record in records]
        yield (
            [record.attempt_id or record.taskid or record.jobid for record in records],
            *stamps,
            ["ApplicationMaster"] * len(records),
            [record.task_type for record in records],
            [_host(_text(record.hostname or record.tracker_name)) for record in records],
            [
                _text(status) or ("SUCCEEDED" if succeeded[place] else None)
                for status, (place, _, _) in zip(statuses, found, strict=True)
            ],
            [record.job_name for record in records],
            [values_at(block.raws[place]["event"][kind], source.fields) for place, kind, _ in found]
            if source.fields
            else None,
        )


_host: Final = lru_cache(host_of)


def _text(value: Text) -> str | None:
    """Return the text of a field that Avro may write as ``{"string": "..."}``."""
    return next(iter(value.values()), None) if isinstance(value, dict) else value
