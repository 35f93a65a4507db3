"""Event logs of Spark: one JSON object a line, one line for each thing that the driver heard of."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta, Struct, field

from uncertain_cep.errors import TraceError, TraceFault, ignoring
from uncertain_cep.traces.readers.event_columns import TIMES, batch_of, pivoted
from uncertain_cep.traces.readers.rolled_logs import app_of, rolled_files
from uncertain_cep.traces.readers.source import Block, Source, decoded, shown_text, values_at
from uncertain_cep.traces.unpacking import unpacked

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
Stamp = Annotated[int, Meta(ge=0, le=2**62)]
Length = Annotated[int, Meta(ge=0, le=2**60)]
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Application(Struct, gc=False):
    time: Stamp = field(name="Timestamp")
    app: str | None = field(name="App ID", default=None)
    name: str | None = field(name="App Name", default=None)


class _Result(Struct, gc=False):
    result: str = field(name="Result")


class _JobStart(Struct):
    job: Number = field(name="Job ID")
    time: Stamp = field(name="Submission Time")
    stages: list[Number] = field(name="Stage IDs", default_factory=list)


class _JobEnd(Struct):
    job: Number = field(name="Job ID")
    time: Stamp = field(name="Completion Time")
    result: _Result = field(name="Job Result")


class _StageInfo(Struct, gc=False):
    stage: Number = field(name="Stage ID")
    attempt: Number = field(name="Stage Attempt ID", default=0)
    name: str | None = field(name="Stage Name", default=None)
    submitted: Stamp | None = field(name="Submission Time", default=None)
    completed: Stamp | None = field(name="Completion Time", default=None)
    failure: str | None = field(name="Failure Reason", default=None)


class _Stage(Struct):
    info: _StageInfo = field(name="Stage Info")


class _ExecutorInfo(Struct, gc=False):
    host: str | None = field(name="Host", default=None)


class _Executor(Struct):
    time: Stamp = field(name="Timestamp")
    executor: str = field(name="Executor ID")
    info: _ExecutorInfo = field(name="Executor Info", default_factory=_ExecutorInfo)
    reason: str | None = field(name="Removed Reason", default=None)


class _TaskInfo(Struct, gc=False, kw_only=True):
    """In the order in which Spark writes it, which is read faster."""

    task: Number = field(name="Task ID")
    index: Number | None = field(name="Index", default=None)
    attempt: Number | None = field(name="Attempt", default=None)
    launch: Stamp = field(name="Launch Time")
    executor: str | None = field(name="Executor ID", default=None)
    host: str | None = field(name="Host", default=None)
    finish: Stamp = field(name="Finish Time", default=0)
    failed: bool = field(name="Failed", default=False)


class _Metrics(Struct, gc=False):
    deserialize: Length = field(name="Executor Deserialize Time", default=0)
    run: Length = field(name="Executor Run Time", default=0)
    serialize: Length = field(name="Result Serialization Time", default=0)


class _Reason(Struct, gc=False):
    reason: str = field(name="Reason")


_NO_METRICS: Final = _Metrics()


class _Line(Struct, gc=False):
    """Any line; only of tasks it says all that is of use."""

    event: str = field(name="Event")
    stage: Number | None = field(name="Stage ID", default=None)
    stage_attempt: Number = field(name="Stage Attempt ID", default=0)
    reason: _Reason | None = field(name="Task End Reason", default=None)
    task: _TaskInfo | None = field(name="Task Info", default=None)
    metrics: _Metrics | None = field(name="Task Metrics", default=None)


class _Task(_Line):
    """The same of a task, which needs both."""

    def __post_init__(self) -> None:
        for name, value in (("Stage ID", self.stage), ("Task Info", self.task)):
            if value is None:
                raise ValueError(f"Object missing required field `{name}`")


_DECODER: Final = msgspec.json.Decoder(_Line)
_TASK_START: Final = "SparkListenerTaskStart"
_TASK_END: Final = "SparkListenerTaskEnd"
_OTHERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    f"SparkListener{name}": msgspec.json.Decoder(record)
    for name, record in {
        "ApplicationStart": _Application, "ApplicationEnd": _Application,
        "JobStart": _JobStart, "JobEnd": _JobEnd,
        "StageSubmitted": _Stage, "StageCompleted": _Stage,
        "ExecutorAdded": _Executor, "ExecutorRemoved": _Executor,
    }.items()
}  # fmt: skip
_TASKS: Final = msgspec.json.Decoder(_Task)
_TASK_TYPES: Final = pa.array([None, "TaskStart", "TaskEnd"])
_SUFFIXES: Final = pa.array(["", ":start", ":end"])
"""Of the identifiers of starts and ends of tasks, and of other events."""

_NOTHING: Final = (None,)


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the start and the end of the application, and of its jobs, stages, tasks and executors.

    All stamps are the driver's. Its times of a task's launch and end also hold the way to the executor and
    back. The executor worked for deserialize + run + serialize ms in between. So its start is in [launch,
    launch + slack] and its end in [finish - slack, finish], with slack = finish - launch - that sum. A task
    that did not end has a start in [launch, the last stamp of the log]; in rolled logs, of the last file.
    """
    place = Path(source.path)
    rolled = rolled_files(place)
    log = _Log(source.fields)
    if rolled:
        log = _log_before(place, rolled, source)
    lines = _Lines(unfinished=source.path.endswith(".inprogress"))
    for block in source.records(_DECODER, lines.read):
        lines.check()
        yield from log.batches(block)
    if not rolled or place == rolled[-1]:
        yield from log.unfinished()
    else:
        _remember(place, log)


_AFTER: Final[dict[Path, tuple[tuple[int, int], _Log]]] = {}
"""What is known of the last rolled log after one of its files, which has that size and time of change."""


def _remember(place: Path, log: _Log) -> None:
    status = place.stat()
    _AFTER.clear()
    _AFTER[place] = (status.st_size, status.st_mtime_ns), deepcopy(log)


def _log_before(place: Path, rolled: list[Path], source: Source) -> _Log:
    """Return the state of a log after the files that were rolled before one of them."""
    log = _Log(source.fields, app_of(place))
    before = rolled[: rolled.index(place)]
    for number in range(len(before), 0, -1):
        when, log_then = _AFTER.get(before[number - 1], (None, log))
        status = before[number - 1].stat()
        if when == (status.st_size, status.st_mtime_ns) and log_then.fields == source.fields:
            log, before = deepcopy(log_then), before[number:]
            break
    for path in before:
        # What is wrong there is told when it is read itself.
        with ignoring(TraceError, OSError, pa.ArrowException), unpacked(path) as stream:
            buffered: Any = io.BufferedReader(stream, 1 << 20)
            for block in Source(buffered, str(path), source.further).records(_DECODER):
                log.follow(block)
    return log


class _Lines:
    """Reads lines one by one; of a log that is still being written the last one may be cut off."""

    def __init__(self, *, unfinished: bool) -> None:
        self._unfinished = unfinished
        self._cut: TraceError | None = None
        self._last = False

    def check(self) -> None:
        """Raise the error of a line that another block comes behind; called for every block."""
        if self._cut is not None and self._last:
            raise self._cut
        self._last = self._cut is not None

    def read(self, line: bytes, row: int) -> _Line | None:
        """Return a line that may tell of an event."""
        if self._cut is not None:
            raise self._cut
        try:
            match = _KIND.match(line)
            if match is not None and not line.endswith(b"}"):
                raise TraceError(TraceFault("the line is cut off", row=row, value=shown_text(line)))
            kind = "" if match is None else match[1].decode()
            if kind in (_TASK_START, _TASK_END):
                return decoded(_TASKS, line, row)
            if kind in _OTHERS:
                decoded(_OTHERS[kind], line, row)
                return _Line(kind)
            return None if kind else decoded(_DECODER, line, row)
        except TraceError as error:
            if not self._unfinished:
                raise
            self._cut = error
            return None


class _Log:
    """The state of a log after some of its lines."""

    def __init__(self, fields: tuple[str, ...], app: str | None = None) -> None:
        self.fields = fields
        self._app = app
        self._jobs: dict[int | None, int] = {}
        self._hosts: dict[str, str | None] = {}
        self._running: dict[int, tuple[_Line, Any]] = {}
        self._latest = 0

    def batches(self, block: Block[_Line]) -> Iterator[pa.RecordBatch]:
        """Yield the events of some lines."""
        rows, ended = self.follow(block)
        if not rows and not ended:
            return
        parts = [batch_of(ATTRIBUTES, list(zip(*rows.values(), strict=True)))] if rows else []
        ends = np.zeros((2, 0), np.int64)
        if ended:
            tasks, ends = self._tasks([block.values[place] for place in ended])
            parts.append(tasks)
        whole = parts[0]
        if len(parts) > 1:
            whole = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
        places = np.array([*rows, *ended, *ended], np.int64)
        order = np.argsort(places, kind="stable")
        starts, both = len(rows), len(rows) + len(ended)
        rows_of = np.concatenate([np.arange(both), np.arange(starts, both)])[order]
        taken = whole.take(pa.array(rows_of)).columns
        phase = pa.array(np.repeat([0, 1, 2], [starts, len(ended), len(ended)])[order])
        begin = pa.array(["", *[f"{self._app}:task:"] * 2])
        names = pc.binary_join_element_wise(begin.take(phase), taken[1], _SUFFIXES.take(phase), "")
        kinds = pc.coalesce(taken[0], _TASK_TYPES.take(phase)) if rows else _TASK_TYPES.take(phase)
        lower, upper = (
            np.concatenate([np.asarray(whole.column(2 + number)), ends[number]])[order] for number in (0, 1)
        )
        further_fields = (
            [values_at(block.raws[place], self.fields) for place in places] if self.fields else []
        )
        further = {
            name: column.take(pa.array(order)) for name, column in pivoted(further_fields, None).items()
        }
        yield batch_of(ATTRIBUTES, [kinds, names, lower, upper, *taken[len(TIMES) :]], further)

    def follow(self, block: Block[_Line]) -> tuple[dict[int, tuple[Any, ...]], list[int]]:
        """Note what some lines tell.

        Returns the events of those that tell of no task by their places, and the places of tasks' ends.
        """
        kinds = [line.event for line in block.values]
        started = [place for place, kind in enumerate(kinds) if kind == _TASK_START]
        ended = [place for place, kind in enumerate(kinds) if kind == _TASK_END]
        rows = {}
        if len(started) + len(ended) < len(kinds):
            lines = block.lines()
            for place, kind in enumerate(kinds):
                if kind in _OTHERS:
                    number, text = lines[place]
                    row = self._row(decoded(_OTHERS[kind], text, number), kind[13:])
                    if row is not None:
                        rows[place] = row
        self._follow_tasks(block, started, ended)
        return rows, ended

    def _follow_tasks(self, block: Block[_Line], started: list[int], ended: list[int]) -> None:
        """Note which tasks run, after those of some lines."""
        lines = [block.values[place] for place in (*started, *ended)]
        tasks: list[Any] = [line.task for line in lines]
        if not all(tasks) or None in [line.stage for line in lines]:
            # The first that lacks its task or its stage is an error.
            texts = block.lines()
            for place in sorted((*started, *ended)):
                decoded(_TASKS, texts[place][1], texts[place][0])
        begun = {task.task: place for task, place in zip(tasks, started, strict=False)}
        done = {task.task: place for task, place in zip(tasks[len(started) :], ended, strict=True)}
        for number in done.keys() & self._running.keys():
            del self._running[number]
        for number, place in begun.items():
            if done.get(number, -1) < place:
                self._running[number] = block.values[place], block.raws[place] if self.fields else None
        self._latest = max([self._latest, *(task.launch for task in tasks[: len(started)])])

    def _tasks(self, lines: Sequence[_Line]) -> tuple[pa.RecordBatch, Any]:
        """Return the starts of tasks that have ended, and the bounds of their ends, (2, n) int64.

        There are no types yet, and identifiers are the numbers of the tasks.
        """
        tasks: list[Any] = [line.task for line in lines]
        launch = np.asarray(pa.array([task.launch for task in tasks], pa.int64()))
        finish = np.asarray(pa.array([task.finish for task in tasks], pa.int64()))
        worked = [line.metrics or _NO_METRICS for line in lines]
        busy = pa.array([each.deserialize + each.run + each.serialize for each in worked], pa.int64())
        slack = np.maximum(finish - launch - np.asarray(busy), 0)
        finish = np.maximum(finish, launch)
        self._latest = max(self._latest, int(finish.max()))
        numbers = pa.array([task.task for task in tasks], pa.int64())
        stages = [line.stage for line in lines]
        columns = [
            pa.nulls(len(tasks), pa.string()),
            numbers.cast(pa.string()),
            *(launch, launch + slack),
            pa.repeat(pa.scalar(self._app, pa.string()), len(tasks)),
            list(map(self._jobs.get, stages)),
            stages,
            [line.stage_attempt for line in lines],
            numbers,
            [task.index for task in tasks],
            [task.attempt for task in tasks],
            [task.executor for task in tasks],
            [task.host for task in tasks],
            [task.failed for task in tasks],
            [None if line.reason is None else line.reason.reason for line in lines],
            pa.nulls(len(tasks), pa.string()),
        ]
        return batch_of(ATTRIBUTES, columns), np.stack([finish - slack, finish])

    def _row(self, line: Any, kind: str) -> tuple[Any, ...] | None:
        """Return the event of a line that tells of no task, if it tells of one."""
        app = self._app
        start = kind.endswith(("Start", "Submitted", "Added"))
        match line:
            case _Stage(info=stage):
                time = stage.submitted if start else stage.completed
                # Spark says of a stage that it skips that it was submitted, without a time.
                if time is None:
                    return None
                self._latest = max(self._latest, time)
                return (
                    *_named("Stage", f"{app}:stage:{stage.stage}.{stage.attempt}", start, time),
                    *(app, self._jobs.get(stage.stage), stage.stage, stage.attempt, *_NOTHING * 5),
                    *(None if start else stage.failure is not None, stage.failure, stage.name),
                )
            case _JobStart(job=job, time=time):
                for stage_id in line.stages:
                    self._jobs.setdefault(stage_id, job)
                return *_named("Job", f"{app}:job:{job}", start, time), app, job, *_NOTHING * 10
            case _JobEnd(job=job, time=time, result=_Result(result=result)):
                self._latest = max(self._latest, time)
                return (
                    *_named("Job", f"{app}:job:{job}", start, time),
                    *(app, job, *_NOTHING * 7, result != "JobSucceeded", result, None),
                )
            case _Executor(executor=executor, time=time):
                host = line.info.host if start else self._hosts.get(executor)
                self._hosts[executor] = host
                return (
                    *_named("Executor", f"{app}:executor:{executor}", start, time),
                    *(app, *_NOTHING * 6, executor, host, None, line.reason, None),
                )
        self._app = line.app or app
        self._latest = max(self._latest, line.time)
        times = _named("Application", str(self._app), start, line.time)
        return *times, self._app, *_NOTHING * 10, line.name

    def unfinished(self) -> Iterator[pa.RecordBatch]:
        """Yield the starts of the tasks that did not end."""
        if not self._running:
            return
        rows, further_fields = [], []
        for line, raw in self._running.values():
            task: Any = line.task
            rows.append(
                (
                    *("TaskStart", f"{self._app}:task:{task.task}:start", task.launch, self._latest),
                    *(self._app, self._jobs.get(line.stage), line.stage, line.stage_attempt, task.task),
                    *(task.index, task.attempt, task.executor, task.host, *_NOTHING * 3),
                )
            )
            further_fields.append(values_at(raw, self.fields) if self.fields else {})
        yield batch_of(ATTRIBUTES, list(zip(*rows, strict=True)), pivoted(further_fields, None))


def _named(what: str, name: str, start: bool, time: int) -> tuple[str, str, int, int]:
    end = "Start" if start else "End"
    return what + end, f"{name}:{end.lower()}", time, time
