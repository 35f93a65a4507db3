"""Event logs of Spark: one JSON object a line, one line for each thing that the driver heard of."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta, Struct, field

from uncertain_cep.errors import TraceError, TraceFault
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

    @property
    def busy(self) -> int:
        """The ms in which the executor worked."""
        return self.deserialize + self.run + self.serialize


class _Reason(Struct, gc=False):
    reason: str = field(name="Reason")


_NO_METRICS: Final = _Metrics()


class _Line(Struct):
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
_WIDTH: Final = len(TIMES) + len(ATTRIBUTES)
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
    told = place.stat()
    _AFTER.clear()
    _AFTER[place] = (told.st_size, told.st_mtime_ns), deepcopy(log)


def _log_before(place: Path, rolled: list[Path], source: Source) -> _Log:
    """Return what the files of a rolled log before one of them tell."""
    log = _Log(source.fields, app_of(place))
    before = rolled[: rolled.index(place)]
    for number in range(len(before), 0, -1):
        when, known = _AFTER.get(before[number - 1], (None, log))
        told = before[number - 1].stat()
        if when == (told.st_size, told.st_mtime_ns) and known.fields == source.fields:
            log, before = deepcopy(known), before[number:]
            break
    for path in before:
        # What is wrong there is told when it is read itself.
        with suppress(TraceError, OSError, pa.ArrowException), unpacked(path) as stream:
            buffered: Any = io.BufferedReader(stream, 1 << 20)
            for block in Source(buffered, str(path), source.asked).records(_DECODER):
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
            found = _KIND.match(line)
            if found is not None and not line.endswith(b"}"):
                raise TraceError(TraceFault("the line is cut off", row=row, value=shown_text(line)))
            kind = "" if found is None else found[1].decode()
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
    """What is known of a log after some of its lines."""

    def __init__(self, fields: tuple[str, ...], app: str | None = None) -> None:
        self.fields = fields
        self._app = app
        self._jobs: dict[int | None, int] = {}
        self._hosts: dict[str, str | None] = {}
        self._running: dict[int, tuple[_Line, Any]] = {}
        self._latest = 0

    def batches(self, block: Block[_Line]) -> Iterator[pa.RecordBatch]:
        """Yield the events of some lines."""
        rows = self.follow(block)
        places = list(rows)
        ended = [place for place, line in enumerate(block.values) if line.event == _TASK_END]
        parts = [batch_of(ATTRIBUTES, list(zip(*rows.values(), strict=True)))] if rows else []
        if ended:
            parts += self._tasks([block.values[place] for place in ended])
        order = np.array([*places, *ended, *ended], np.int64)
        if parts:
            found = [values_at(block.raws[place], self.fields) for place in order] if self.fields else []
            yield _ordered(parts, order, found)

    def follow(self, block: Block[_Line]) -> dict[int, tuple[Any, ...]]:
        """Note what some lines tell, and return the events of those that tell of no task, by their places."""
        kinds = [line.event for line in block.values]
        others = [place for place, kind in enumerate(kinds) if kind in _OTHERS]
        lines = block.lines() if others else []
        rows = {}
        for place in others:
            number, text = lines[place]
            row = self._row(decoded(_OTHERS[kinds[place]], text, number), kinds[place][13:])
            if row is not None:
                rows[place] = row
        for place, kind in enumerate(kinds):
            if kind in (_TASK_START, _TASK_END):
                line = block.values[place]
                if line.task is None or line.stage is None:
                    decoded(_TASKS, block.lines()[place][1], block.lines()[place][0])
                elif kind == _TASK_END:
                    self._running.pop(line.task.task, None)
                else:
                    self._running[line.task.task] = line, block.raws[place] if self.fields else None
                    self._latest = max(self._latest, line.task.launch)
        return rows

    def _tasks(self, lines: Sequence[_Line]) -> list[pa.RecordBatch]:
        """Return the starts and the ends of tasks that have ended."""
        tasks: list[Any] = [line.task for line in lines]
        launch = np.array([task.launch for task in tasks], np.int64)
        finish = np.array([task.finish for task in tasks], np.int64)
        slack = finish - launch - [(line.metrics or _NO_METRICS).busy for line in lines]
        slack = np.maximum(slack, 0)
        finish = np.maximum(finish, launch)
        self._latest = max(self._latest, int(finish.max()))
        begin = f"{self._app}:task:"
        names = pc.binary_join_element_wise(begin, pa.array([str(task.task) for task in tasks]), "")
        attributes = [
            pa.repeat(pa.scalar(self._app, pa.string()), len(tasks)),
            [self._jobs.get(line.stage) for line in lines],
            [line.stage for line in lines],
            [line.stage_attempt for line in lines],
            [task.task for task in tasks],
            [task.index for task in tasks],
            [task.attempt for task in tasks],
            [task.executor for task in tasks],
            [task.host for task in tasks],
            [task.failed for task in tasks],
            [None if line.reason is None else line.reason.reason for line in lines],
            pa.nulls(len(tasks), pa.string()),
        ]
        kinds = [pa.repeat(kind, len(tasks)) for kind in ("TaskStart", "TaskEnd")]
        ids = [pc.binary_join_element_wise(names, end, ":") for end in ("start", "end")]
        starts = batch_of(ATTRIBUTES, [kinds[0], ids[0], launch, launch + slack, *attributes])
        times = [pa.array(finish - slack), pa.array(finish)]
        return [starts, batch_of(ATTRIBUTES, [kinds[1], ids[1], *times, *starts.columns[len(TIMES) :]])]

    def _row(self, given: Any, kind: str) -> tuple[Any, ...] | None:
        """Return the event of a line that tells of no task, if it tells of one."""
        app = self._app
        start = kind.endswith(("Start", "Submitted", "Added"))
        match given:
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
                for stage_id in given.stages:
                    self._jobs.setdefault(stage_id, job)
                return *_named("Job", f"{app}:job:{job}", start, time), app, job, *_NOTHING * 10
            case _JobEnd(job=job, time=time, result=_Result(result=result)):
                self._latest = max(self._latest, time)
                return (
                    *_named("Job", f"{app}:job:{job}", start, time),
                    *(app, job, *_NOTHING * 7, result != "JobSucceeded", result, None),
                )
            case _Executor(executor=executor, time=time):
                host = given.info.host if start else self._hosts.get(executor)
                self._hosts[executor] = host
                return (
                    *_named("Executor", f"{app}:executor:{executor}", start, time),
                    *(app, *_NOTHING * 6, executor, host, None, given.reason, None),
                )
        self._app = given.app or app
        self._latest = max(self._latest, given.time)
        times = _named("Application", str(self._app), start, given.time)
        return *times, self._app, *_NOTHING * 10, given.name

    def unfinished(self) -> Iterator[pa.RecordBatch]:
        """Yield the starts of the tasks that did not end."""
        if not self._running:
            return
        rows, others = [], []
        for line, raw in self._running.values():
            task: Any = line.task
            rows.append(
                (
                    *("TaskStart", f"{self._app}:task:{task.task}:start", task.launch, self._latest),
                    *(self._app, self._jobs.get(line.stage), line.stage, line.stage_attempt, task.task),
                    *(task.index, task.attempt, task.executor, task.host, *_NOTHING * 3),
                )
            )
            others.append(values_at(raw, self.fields) if self.fields else {})
        yield batch_of(ATTRIBUTES, list(zip(*rows, strict=True)), pivoted(others, None))


def _ordered(
    parts: Sequence[pa.RecordBatch], places: Any, others: Sequence[dict[str, Any]]
) -> pa.RecordBatch:
    """Return the rows of parts in the order of their ``places``, (n,) int64, of all parts."""
    taken = pa.array(np.argsort(places, kind="stable"))
    columns = [
        pa.concat_arrays([part.column(number) for part in parts]).take(taken) for number in range(_WIDTH)
    ]
    further = {name: column.take(taken) for name, column in pivoted(others, None).items()}
    return batch_of(ATTRIBUTES, columns, further)


def _named(what: str, name: str, start: bool, time: int) -> tuple[str, str, int, int]:
    end = "Start" if start else "End"
    return what + end, f"{name}:{end.lower()}", time, time
