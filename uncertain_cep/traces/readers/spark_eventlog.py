"""Event logs of Spark: one JSON object a line, one line for each thing that the driver heard of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct, field

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.source import Source, decoded, field_values, shown_text

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = pa.schema(
    [
        ("app", pa.string()),
        ("job_id", pa.int64()),
        ("stage_id", pa.int64()),
        ("stage_attempt", pa.int64()),
        ("task_id", pa.int64()),
        ("index", pa.int64()),
        ("attempt", pa.int64()),
        ("executor", pa.string()),
        ("host", pa.string()),
        ("failed", pa.bool_()),
        ("end_reason", pa.string()),
        ("name", pa.string()),
    ]
)

_KIND: Final = re.compile(rb'\{\s*"Event"\s*:\s*"(\w*)')
_ROLLED: Final = re.compile(r"events_([0-9]+)_(.+)")
Stamp = Annotated[int, Meta(ge=0, le=2**62)]
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Event(Struct):
    event: str = field(name="Event")


class _Application(Struct):
    time: Stamp = field(name="Timestamp")
    app: str | None = field(name="App ID", default=None)
    name: str | None = field(name="App Name", default=None)


class _JobStart(Struct):
    job: Number = field(name="Job ID")
    time: Stamp = field(name="Submission Time")
    stages: list[Number] = field(name="Stage IDs", default_factory=list)


class _Result(Struct):
    result: str = field(name="Result")


class _JobEnd(Struct):
    job: Number = field(name="Job ID")
    time: Stamp = field(name="Completion Time")
    result: _Result = field(name="Job Result")


class _StageInfo(Struct):
    stage: Number = field(name="Stage ID")
    attempt: Number = field(name="Stage Attempt ID", default=0)
    name: str | None = field(name="Stage Name", default=None)
    submitted: Stamp | None = field(name="Submission Time", default=None)
    completed: Stamp | None = field(name="Completion Time", default=None)
    failure: str | None = field(name="Failure Reason", default=None)


class _Stage(Struct):
    info: _StageInfo = field(name="Stage Info")


class _TaskInfo(Struct, gc=False):
    task: Number = field(name="Task ID")
    launch: Stamp = field(name="Launch Time")
    finish: Stamp = field(name="Finish Time", default=0)
    index: Number | None = field(name="Index", default=None)
    attempt: Number | None = field(name="Attempt", default=None)
    executor: str | None = field(name="Executor ID", default=None)
    host: str | None = field(name="Host", default=None)
    failed: bool = field(name="Failed", default=False)


class _Metrics(Struct, gc=False):
    deserialize: Stamp = field(name="Executor Deserialize Time", default=0)
    run: Stamp = field(name="Executor Run Time", default=0)
    serialize: Stamp = field(name="Result Serialization Time", default=0)


class _Reason(Struct, gc=False):
    reason: str = field(name="Reason")


class _Task(Struct):
    stage: Number = field(name="Stage ID")
    info: _TaskInfo = field(name="Task Info")
    stage_attempt: Number = field(name="Stage Attempt ID", default=0)
    reason: _Reason | None = field(name="Task End Reason", default=None)
    metrics: _Metrics | None = field(name="Task Metrics", default=None)


class _ExecutorInfo(Struct):
    host: str | None = field(name="Host", default=None)


class _Executor(Struct):
    time: Stamp = field(name="Timestamp")
    executor: str = field(name="Executor ID")
    info: _ExecutorInfo = field(name="Executor Info", default_factory=_ExecutorInfo)
    reason: str | None = field(name="Removed Reason", default=None)


_ANY: Final = msgspec.json.Decoder(_Event)
_RECORDS: Final[dict[bytes, msgspec.json.Decoder[Any]]] = {
    b"SparkListener" + name: msgspec.json.Decoder(record)
    for name, record in {
        b"ApplicationStart": _Application, b"ApplicationEnd": _Application,
        b"JobStart": _JobStart, b"JobEnd": _JobEnd,
        b"StageSubmitted": _Stage, b"StageCompleted": _Stage,
        b"TaskStart": _Task, b"TaskEnd": _Task,
        b"ExecutorAdded": _Executor, b"ExecutorRemoved": _Executor,
    }.items()
}  # fmt: skip


def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the start and the end of the application, and of its jobs, stages, tasks and executors.

    All stamps are the driver's. Its times of a task's launch and end also hold the way to the executor and
    back. The executor worked for deserialize + run + serialize ms in between. So its start is in [launch,
    launch + slack] and its end in [finish - slack, finish], with slack = finish - launch - that sum. A task
    that did not end has a start in [launch, the last stamp of the log]; in rolled logs, of the last file.
    """
    fields = source.fields
    place = Path(source.path)
    rolled = _ROLLED.match(place.name)
    app = rolled[2].partition(".")[0] if rolled else None
    goes_on = rolled is not None and any(
        int(other[1]) > int(rolled[1])
        for path in place.parent.iterdir()
        if (other := _ROLLED.match(path.name))
    )
    jobs: dict[int, int] = {}
    hosts: dict[str, str | None] = {}
    running: dict[int, tuple[_Task, dict[str, Any]]] = {}
    latest = 0
    for row, line in _lines(source):
        kind = _kind(line, row)
        decoder = _RECORDS.get(kind)
        if decoder is None:
            continue
        given = decoded(decoder, line, row)
        others = field_values(line, row, fields)
        match kind[13:], given:
            case b"TaskStart", _Task(info=info):
                running[info.task] = given, others
                latest = max(latest, info.launch)
            case b"TaskEnd", _Task(info=info):
                running.pop(info.task, None)
                metrics = given.metrics
                slack = info.finish - info.launch
                if metrics is not None:
                    slack -= metrics.deserialize + metrics.run + metrics.serialize
                slack = max(slack, 0)
                reason = None if given.reason is None else given.reason.reason
                attributes = (
                    app, jobs.get(given.stage), given.stage, given.stage_attempt, info.task, info.index,
                    info.attempt, info.executor, info.host, info.failed, reason, None, others,
                )  # fmt: skip
                launch, finish = info.launch, max(info.finish, info.launch)
                latest = max(latest, finish)
                name = f"{app}:task:{info.task}"
                yield "TaskStart", f"{name}:start", launch, launch + slack, *attributes
                yield "TaskEnd", f"{name}:end", finish - slack, finish, *attributes
            case ((b"StageSubmitted" | b"StageCompleted"), _Stage(info=stage)):
                start = kind.endswith(b"Submitted")
                time = stage.submitted if start else stage.completed
                # Spark says of a stage that it skips that it was submitted, without a time.
                if time is not None:
                    yield (
                        *_named("Stage", f"{app}:stage:{stage.stage}.{stage.attempt}", start, time),
                        *(
                            app,
                            jobs.get(stage.stage),
                            stage.stage,
                            stage.attempt,
                            None,
                            None,
                            None,
                            None,
                            None,
                        ),
                        *(None if start else stage.failure is not None, stage.failure, stage.name, others),
                    )
                    latest = max(latest, time)
            case b"JobStart", _JobStart(job=job, time=time):
                for stage_id in given.stages:
                    jobs.setdefault(stage_id, job)
                yield *_named("Job", f"{app}:job:{job}", True, time), app, job, *[None] * 10, others
            case b"JobEnd", _JobEnd(job=job, time=time, result=_Result(result=result)):
                yield (
                    *_named("Job", f"{app}:job:{job}", False, time),
                    *(app, job, *[None] * 7, result != "JobSucceeded", result, None, others),
                )
                latest = max(latest, time)
            case ((b"ExecutorAdded" | b"ExecutorRemoved"), _Executor(executor=executor, time=time)):
                start = kind.endswith(b"Added")
                host = given.info.host if start else hosts.get(executor)
                hosts[executor] = host
                yield (
                    *_named("Executor", f"{app}:executor:{executor}", start, time),
                    *(app, *[None] * 6, executor, host, None, given.reason, None, others),
                )
            case _, _Application(time=time):
                start = kind.endswith(b"Start")
                app = given.app or app
                yield (
                    *_named("Application", str(app), start, time),
                    *(app, *[None] * 10, given.name, others),
                )
                latest = max(latest, time)
    for task, others in () if goes_on else running.values():
        info = task.info
        yield (
            *("TaskStart", f"{app}:task:{info.task}:start", info.launch, latest),
            *(app, jobs.get(task.stage), task.stage, task.stage_attempt, info.task, info.index, info.attempt),
            *(info.executor, info.host, None, None, None, others),
        )


def _lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield the lines; of a log that is still being written, without a last one that is cut off."""
    if not source.path.endswith(".inprogress"):
        yield from source.lines()
        return
    held: tuple[int, bytes] | None = None
    for line in source.lines():
        if held is not None:
            yield held
        held = line
    if held is not None:
        try:
            _ANY.decode(held[1])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        yield held


def _named(what: str, name: str, start: bool, time: int) -> tuple[str, str, int, int]:
    end = "Start" if start else "End"
    return what + end, f"{name}:{end.lower()}", time, time


def _kind(line: bytes, row: int) -> bytes:
    found = _KIND.match(line)
    if found is None:
        decoded(_ANY, line, row)
        raise TraceError(TraceFault('the line does not begin with "Event"', row=row, value=shown_text(line)))
    if not line.endswith(b"}"):
        raise TraceError(TraceFault("the line is cut off", row=row, value=shown_text(line)))
    return found[1]
