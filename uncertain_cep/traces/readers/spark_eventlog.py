"""Event logs of Spark: one JSON object a line, one line for each thing that the driver heard of."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault, ignoring
from uncertain_cep.running.in_order import in_order
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.readers.event_columns import TIMES, batch_of, pivoted
from uncertain_cep.traces.readers.json_columns import Tree
from uncertain_cep.traces.readers.rolled_logs import app_of, rolled_files
from uncertain_cep.traces.readers.source import Block, Source, decoded, shown_text, values_at
from uncertain_cep.traces.readers.spark_records import (
    DECODER,
    OTHERS,
    TASK_END,
    TASK_START,
    TASKS,
    Executor,
    JobEnd,
    JobStart,
    Line,
    Result,
    Stage,
)
from uncertain_cep.traces.readers.spark_tasks import (
    Tasks,
    phases_of,
    tasks_of_lines,
    tasks_of_tree,
    tree_of,
)
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
    yield from chain.from_iterable(in_order(reading_threads(), _steps(source, log), _called))
    if not rolled or place == rolled[-1]:
        yield from log.unfinished()
    else:
        _remember(place, log)


def _called(step: Callable[[], list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
    return step()


def _steps(source: Source, log: _Log) -> Iterator[Callable[[], list[pa.RecordBatch]]]:
    """Yield, for each block of lines that a log follows, a function that makes its events."""
    lines = _Lines(unfinished=source.path.endswith(".inprogress"))

    def read(block: tuple[int, bytes]) -> tuple[int, bytes, Tree | None]:
        return *block, None if source.fields else tree_of(block[1])

    for before, block, tree in in_order(reading_threads(), source.blocks(), read):
        if tree is None:
            decoded_block = source.decoded_block(before, block, DECODER, lines.read)
            lines.check()
            yield log.step(decoded_block)
        else:
            lines.check()
            yield log.step_of_tree(tree, before)


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
            for block in Source(buffered, str(path), source.further).records(DECODER):
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

    def read(self, line: bytes, row: int) -> Line | None:
        """Return a line that may tell of an event."""
        if self._cut is not None:
            raise self._cut
        try:
            match = _KIND.match(line)
            if match is not None and not line.endswith(b"}"):
                raise TraceError(TraceFault("the line is cut off", row=row, value=shown_text(line)))
            kind = "" if match is None else match[1].decode()
            if kind in (TASK_START, TASK_END):
                return decoded(TASKS, line, row)
            if kind in OTHERS:
                decoded(OTHERS[kind], line, row)
                return Line(kind)
            return None if kind else decoded(DECODER, line, row)
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
        self._running: dict[int, tuple[Line, Any]] = {}
        self._latest = 0

    def step(self, block: Block[Line]) -> Callable[[], list[pa.RecordBatch]]:
        """Follow some lines, and return a function that makes their events."""
        rows, ended = self.follow(block)
        tasks = tasks_of_lines([block.values[place] for place in ended])
        jobs = list(map(self._jobs.get, tasks.stages))
        self._end(tasks)
        fields = self.fields
        raws = block.raws

        def further(places: Any) -> list[dict[str, Any]]:
            return [values_at(raws[place], fields) for place in places] if fields else []

        return partial(_batches, self._app, rows, ended, tasks, jobs, further)

    def step_of_tree(self, tree: Tree, before: int) -> Callable[[], list[pa.RecordBatch]]:
        """Follow some lines, behind ``before`` more, and return a function that makes their events."""
        starts, ends = phases_of(tree)
        rows = {}
        between = np.flatnonzero(~(starts | ends))
        for place, kind in zip(between.tolist(), tree.texts("event", between).to_pylist(), strict=True):
            if kind in OTHERS:
                row = self._row(self._decoded(kind, tree, place, before), kind[13:])
                if row is not None:
                    rows[place] = row
        started, ended = np.flatnonzero(starts), np.flatnonzero(ends)
        self._follow_tree(tree, started, ended)
        tasks = tasks_of_tree(tree, ended)
        stages, inverse = np.unique(tree.wholes("stage", ended), return_inverse=True)
        jobs = pa.array(list(map(self._jobs.get, stages.tolist())), pa.int64()).take(pa.array(inverse))
        self._end(tasks)
        return partial(_batches, self._app, rows, ended, tasks, jobs, _nothing_further)

    def follow(self, block: Block[Line]) -> tuple[dict[int, tuple[Any, ...]], list[int]]:
        """Note what some lines tell.

        Returns the events of those that tell of no task by their places, and the places of tasks' ends.
        """
        kinds = [line.event for line in block.values]
        started = [place for place, kind in enumerate(kinds) if kind == TASK_START]
        ended = [place for place, kind in enumerate(kinds) if kind == TASK_END]
        rows = {}
        if len(started) + len(ended) < len(kinds):
            lines = block.lines()
            for place, kind in enumerate(kinds):
                if kind in OTHERS:
                    number, text = lines[place]
                    row = self._row(decoded(OTHERS[kind], text, number), kind[13:])
                    if row is not None:
                        rows[place] = row
        self._follow_tasks(block, started, ended)
        return rows, ended

    def _follow_tasks(self, block: Block[Line], started: list[int], ended: list[int]) -> None:
        """Note which tasks run, after those of some lines."""
        lines = [block.values[place] for place in (*started, *ended)]
        tasks: list[Any] = [line.task for line in lines]
        if not all(tasks) or None in [line.stage for line in lines]:
            # The first that lacks its task or its stage is an error.
            texts = block.lines()
            for place in sorted((*started, *ended)):
                decoded(TASKS, texts[place][1], texts[place][0])
        begun = {task.task: place for task, place in zip(tasks, started, strict=False)}
        done = {task.task: place for task, place in zip(tasks[len(started) :], ended, strict=True)}
        for number in done.keys() & self._running.keys():
            del self._running[number]
        for number, place in begun.items():
            if done.get(number, -1) < place:
                self._running[number] = block.values[place], block.raws[place] if self.fields else None
        self._latest = max([self._latest, *(task.launch for task in tasks[: len(started)])])

    def _follow_tree(self, tree: Tree, started: Any, ended: Any) -> None:
        """Note which tasks run, after those of some lines; see `_follow_tasks`."""
        numbers = tree.wholes("task")
        done, last_done = _last_of(numbers[ended], ended)
        if self._running and len(done):
            running = np.array(list(self._running), np.int64)
            for number in running[np.isin(running, done)].tolist():
                del self._running[number]
        if not len(started):
            return
        begun, last_begun = _last_of(numbers[started], started)
        _, first_begun = np.unique(numbers[started], return_index=True)
        last = np.full(len(begun), -1, np.int64)
        if len(done):
            place = np.minimum(np.searchsorted(done, begun), len(done) - 1)
            last = np.where(done[place] == begun, last_done[place], -1)
        by_first = np.argsort(first_begun)
        for row in last_begun[by_first][(last < last_begun)[by_first]].tolist():
            self._running[int(numbers[row])] = DECODER.decode(tree.text(row)), None
        self._latest = max(self._latest, int(tree.wholes("launch", started).max()))

    def _end(self, tasks: Tasks) -> None:
        """Note when tasks have ended."""
        for times in (tasks.launches, tasks.finishes):
            self._latest = max(self._latest, int(times.max(initial=0)))

    @staticmethod
    def _decoded(kind: str, tree: Tree, place: int, before: int) -> Any:
        text = tree.text(place)
        try:
            return OTHERS[kind].decode(text)
        except msgspec.MsgspecError:
            return decoded(OTHERS[kind], text, before + 1 + tree.breaks_before(place))

    def _row(self, line: Any, kind: str) -> tuple[Any, ...] | None:
        """Return the event of a line that tells of no task, if it tells of one."""
        app = self._app
        start = kind.endswith(("Start", "Submitted", "Added"))
        match line:
            case Stage(info=stage):
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
            case JobStart(job=job, time=time):
                for stage_id in line.stages:
                    self._jobs.setdefault(stage_id, job)
                return *_named("Job", f"{app}:job:{job}", start, time), app, job, *_NOTHING * 10
            case JobEnd(job=job, time=time, result=Result(result=result)):
                self._latest = max(self._latest, time)
                return (
                    *_named("Job", f"{app}:job:{job}", start, time),
                    *(app, job, *_NOTHING * 7, result != "JobSucceeded", result, None),
                )
            case Executor(executor=executor, time=time):
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


def _last_of(numbers: Any, places: Any) -> tuple[Any, Any]:
    """Return different numbers, sorted, and the last place of each."""
    different, last = np.unique(numbers[::-1], return_index=True)
    return different, places[::-1][last]


def _nothing_further(_: Any) -> list[dict[str, Any]]:
    return []


def _batches(
    app: str | None,
    rows: dict[int, tuple[Any, ...]],
    ended: Any,
    tasks: Tasks,
    jobs: Any,
    further: Callable[[Any], list[dict[str, Any]]],
) -> list[pa.RecordBatch]:
    """Return the events of some lines: of others, by their places, and of those that tell of tasks' ends."""
    if not rows and not len(ended):
        return []
    parts = [batch_of(ATTRIBUTES, list(zip(*rows.values(), strict=True)))] if rows else []
    bounds = np.zeros((2, 0), np.int64)
    if len(ended):
        of_tasks, bounds = _starts_of(app, tasks, jobs)
        parts.append(of_tasks)
    whole = parts[0]
    if len(parts) > 1:
        whole = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    places = np.array([*rows, *ended, *ended], np.int64)
    order = np.argsort(places, kind="stable")
    starts, both = len(rows), len(rows) + len(ended)
    rows_of = np.concatenate([np.arange(both), np.arange(starts, both)])[order]
    taken = whole.take(pa.array(rows_of)).columns
    phase = pa.array(np.repeat([0, 1, 2], [starts, len(ended), len(ended)])[order])
    begin = pa.array(["", *[f"{app}:task:"] * 2])
    names = pc.binary_join_element_wise(begin.take(phase), taken[1], _SUFFIXES.take(phase), "")
    kinds = pc.coalesce(taken[0], _TASK_TYPES.take(phase)) if rows else _TASK_TYPES.take(phase)
    lower, upper = (
        np.concatenate([np.asarray(whole.column(2 + number)), bounds[number]])[order] for number in (0, 1)
    )
    fields = pivoted(further(places), None)
    columns = {name: column.take(pa.array(order)) for name, column in fields.items()}
    return [batch_of(ATTRIBUTES, [kinds, names, lower, upper, *taken[len(TIMES) :]], columns)]


def _starts_of(app: str | None, tasks: Tasks, jobs: Any) -> tuple[pa.RecordBatch, Any]:
    """Return the starts of tasks that have ended, and the bounds of their ends, (2, n) int64.

    There are no types yet, and identifiers are the numbers of the tasks.
    """
    launch = tasks.launches
    slack = np.maximum(tasks.finishes - launch - tasks.busy, 0)
    finish = np.maximum(tasks.finishes, launch)
    count = len(launch)
    columns = [
        pa.nulls(count, pa.string()),
        tasks.numbers.cast(pa.string()),
        *(launch, launch + slack),
        pa.repeat(pa.scalar(app, pa.string()), count),
        jobs,
        *(tasks.stages, tasks.stage_attempts, tasks.numbers, tasks.indices, tasks.attempts),
        *(tasks.executors, tasks.hosts, tasks.failed, tasks.reasons),
        pa.nulls(count, pa.string()),
    ]
    return batch_of(ATTRIBUTES, columns), np.stack([finish - slack, finish])


def _named(what: str, name: str, start: bool, time: int) -> tuple[str, str, int, int]:
    end = "Start" if start else "End"
    return what + end, f"{name}:{end.lower()}", time, time
