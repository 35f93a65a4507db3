"""Traces of Rumen: one JSON object a job, one after another, with its tasks and their attempts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from uncertain_cep.traces.readers.hadoop_events import ATTRIBUTES, hadoop_event, host_of
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


def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the submission, start and end of jobs, and the start and end of tasks and attempts.

    Jobs and tasks have the stamps of the JobTracker. Attempts have those of the TaskTracker that ran them,
    also of the ends of shuffle and sort; but some failures were stamped by the JobTracker. Fields are those
    of the attempt, the task or the job; ``task.`` and ``job.`` lead from an attempt to its task and job.
    """
    fields = source.fields
    for row, job, text in source.values(_DECODER):
        given = decoded(_ANY, text, row) if fields else {}
        jobs = {name: value for name, value in given.items() if name not in _LISTS} if fields else {}
        others = values_at({**jobs, "job": jobs}, fields)
        name = job.job_name
        times = {"submit": job.submit_time, "start": job.launch_time, "end": job.finish_time}
        for phase, time in times.items():
            status = job.outcome if phase == "end" else None
            yield from hadoop_event(
                job.job_id, phase, time, clock="JobTracker", status=status, name=name, others=others
            )
        for key, tasks in zip(_LISTS, (job.map_tasks, job.reduce_tasks, job.other_tasks), strict=True):
            for place, task in enumerate(tasks or ()):
                raw = dict(given[key][place]) if fields else {}
                attempts = raw.pop("attempts", ())
                above = {"task": raw, "job": jobs}
                others = values_at({**raw, **above}, fields)
                for phase, time in (("start", task.start_time), ("end", task.finish_time)):
                    yield from hadoop_event(
                        task.task_id, phase, time,
                        clock="JobTracker", task_type=task.task_type,
                        status=task.task_status if phase == "end" else None, name=name, others=others,
                    )  # fmt: skip
                for number, attempt in enumerate(task.attempts or ()):
                    if fields:
                        others = values_at({**attempts[number], **above}, fields)
                    host = attempt.host_name and _ESCAPE.sub(r"\1", attempt.host_name)
                    stamps = {
                        "start": attempt.start_time, "shuffle": attempt.shuffle_finished,
                        "sort": attempt.sort_finished, "end": attempt.finish_time,
                    }  # fmt: skip
                    for phase, time in stamps.items():
                        yield from hadoop_event(
                            attempt.attempt_id, phase, time,
                            clock="TaskTracker", task_type=task.task_type, host=host_of(host),
                            status=None if phase == "start" else attempt.result, name=name, others=others,
                        )  # fmt: skip
