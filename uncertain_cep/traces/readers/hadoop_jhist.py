"""The job history of Hadoop 0.21 and later, ``.jhist``: JSON of Avro records, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta, Struct

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.hadoop_events import ATTRIBUTES, NOTHING, hadoop_batches, hosts_of
from uncertain_cep.traces.readers.source import Source, shown_text, values_at

__all__ = ["ATTRIBUTES", "events"]

Stamp = Annotated[int, Meta(ge=-1, le=2**62)] | None
Text = str | dict[str, str] | None


class _Record(Struct, rename="camel", gc=False):
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


class _Event(Struct, gc=False):
    type: str
    event: dict[str, _Record]


_DECODER: Final = msgspec.json.Decoder(_Event)
_ENDS: Final = pa.array(["JOB_FINISHED", "TASK_FINISHED"])
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
        kinds = [kind for line in block.values for kind in line.event]
        records = [record for line in block.values for record in line.event.values()]
        places = np.repeat(np.arange(len(block.values)), [len(line.event) for line in block.values])
        told_again = {kind for kind in set(kinds) if kind.endswith(_UPDATES)}
        if told_again:
            kept = [number for number, kind in enumerate(kinds) if kind not in told_again]
            kinds, records, places = [kinds[n] for n in kept], [records[n] for n in kept], places[kept]
        types = pa.array([line.type for line in block.values], pa.string()).take(pa.array(places))
        yield (
            [record.attempt_id or record.taskid or record.jobid or None for record in records],
            [record.submit_time for record in records],
            [record.start_time if record.launch_time is None else record.launch_time for record in records],
            [record.shuffle_finish_time for record in records],
            [record.sort_finish_time for record in records],
            [record.finish_time for record in records],
            pa.repeat("ApplicationMaster", len(records)),
            [record.task_type for record in records],
            hosts_of(_texts([record.hostname or record.tracker_name or None for record in records])),
            pc.coalesce(
                _texts(
                    [record.status or record.task_status or record.job_status or None for record in records]
                ),
                pc.if_else(pc.is_in(types, _ENDS), "SUCCEEDED", NOTHING),
            ),
            [record.job_name for record in records],
            [
                values_at(block.raws[place]["event"][kind], source.fields)
                for place, kind in zip(places, kinds, strict=True)
            ]
            if source.fields
            else None,
        )


def _texts(values: Sequence[Text]) -> pa.Array:
    """Return texts; Avro may write ``{"string": "..."}``."""
    try:
        return pa.array(values, pa.string())
    except pa.ArrowTypeError:
        texts = [next(iter(text.values()), None) if isinstance(text, dict) else text for text in values]
        return pa.array([text or None for text in texts], pa.string())
