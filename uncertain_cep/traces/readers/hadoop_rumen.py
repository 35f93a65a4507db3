"""Traces of Rumen: one JSON object a job, one after another, with its tasks and their attempts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from uncertain_cep.traces.readers.event_columns import chunks
from uncertain_cep.traces.readers.hadoop_events import ATTRIBUTES, WIDTH, hadoop_batches, host_of
from uncertain_cep.traces.readers.source import Source, decoded, values_at

__all__ = ["ATTRIBUTES", "events"]

Stamp = Annotated[int, Meta(ge=-1, le=2**62)]
_ESCAPE: Final = re.compile(r"\\(.)")


class _Attempt(Struct, rename="camel"):
    attempt_id: str = msgspec.field(name="attemptID")
    host_name: str | None = None
    start_time: Stamp = -1
    shuffle_finished: Stamp = -1
    sort_finished: Stamp = -1
    finish_time: Stamp = -1
    result: str | None = None


class _Task(Struct, rename="camel"):
    task_id: str = msgspec.field(name="taskID")
    start_time: Stamp = -1
    finish_time: Stamp = -1
    task_type: str | None = None
    task_status: str | None = None
    attempts: list[_Attempt] | None = None


class _Job(Struct, rename="camel"):
    job_id: str = msgspec.field(name="jobID")
    job_name: str | None = None
    submit_time: Stamp = -1
    launch_time: Stamp = -1
    finish_time: Stamp = -1
    outcome: str | None = None
    map_tasks: list[_Task] | None = None
    reduce_tasks: list[_Task] | None = None
    other_tasks: list[_Task] | None = None


_ANY: Final = msgspec.json.Decoder()
_DECODER: Final = msgspec.json.Decoder(_Job)
_LISTS: Final = ("mapTasks", "reduceTasks", "otherTasks")


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the submission, start and end of jobs, and the start and end of tasks and attempts.

    Jobs and tasks have the stamps of the JobTracker. Attempts have those of the TaskTracker that ran them,
    also of the ends of shuffle and sort; but some failures were stamped by the JobTracker. Fields are those
    of the attempt, the task or the job; ``task.`` and ``job.`` lead from an attempt to its task and job.
    """
    yield from hadoop_batches(source, chunks(_records(source), WIDTH))


def _records(source: Source) -> Iterator[tuple[Any, ...]]:
    fields = source.fields
    attributes = None
    for row, job, text in source.values(_DECODER):
        document = decoded(_ANY, text, row) if fields else {}
        jobs = {name: value for name, value in document.items() if name not in _LISTS} if fields else {}
        if fields:
            attributes = values_at({**jobs, "job": jobs}, fields)
        name = job.job_name
        yield (
            *(job.job_id, job.submit_time, job.launch_time, -1, -1, job.finish_time, "JobTracker"),
            *(None, None, job.outcome, name, attributes),
        )
        for key, tasks in zip(_LISTS, (job.map_tasks, job.reduce_tasks, job.other_tasks), strict=True):
            for place, task in enumerate(tasks or ()):
                if fields:
                    raw = dict(document[key][place])
                    attempts = raw.pop("attempts", ())
                    above = {"task": raw, "job": jobs}
                    attributes = values_at({**raw, **above}, fields)
                kind = task.task_type
                yield (
                    *(task.task_id, -1, task.start_time, -1, -1, task.finish_time, "JobTracker"),
                    *(kind, None, task.task_status, name, attributes),
                )
                for number, attempt in enumerate(task.attempts or ()):
                    if fields:
                        attributes = values_at({**attempts[number], **above}, fields)
                    host = attempt.host_name
                    if host is not None:
                        host = host_of(_ESCAPE.sub(r"\1", host) if "\\" in host else host)
                    yield (
                        *(attempt.attempt_id, -1, attempt.start_time, attempt.shuffle_finished),
                        *(attempt.sort_finished, attempt.finish_time, "TaskTracker"),
                        *(kind, host, attempt.result, name, attributes),
                    )
