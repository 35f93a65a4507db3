"""The records of Spark's event logs, as `msgspec` decodes them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

__all__ = [
    "DECODER",
    "LATEST",
    "LONGEST",
    "NO_METRICS",
    "OTHERS",
    "TASKS",
    "TASK_END",
    "TASK_START",
    "Application",
    "Executor",
    "JobEnd",
    "JobStart",
    "Line",
    "Metrics",
    "Result",
    "Stage",
]

LATEST: Final = 2**62
LONGEST: Final = 2**60
Stamp = Annotated[int, Meta(ge=0, le=LATEST)]
Length = Annotated[int, Meta(ge=0, le=LONGEST)]
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Application(Struct, gc=False):
    """The start or the end of the application."""

    time: Stamp = field(name="Timestamp")
    app: str | None = field(name="App ID", default=None)
    name: str | None = field(name="App Name", default=None)


class Result(Struct, gc=False):
    """How a job ended."""

    result: str = field(name="Result")


class JobStart(Struct):
    """The start of a job."""

    job: Number = field(name="Job ID")
    time: Stamp = field(name="Submission Time")
    stages: list[Number] = field(name="Stage IDs", default_factory=list)


class JobEnd(Struct):
    """The end of a job."""

    job: Number = field(name="Job ID")
    time: Stamp = field(name="Completion Time")
    result: Result = field(name="Job Result")


class StageInfo(Struct, gc=False):
    """A stage."""

    stage: Number = field(name="Stage ID")
    attempt: Number = field(name="Stage Attempt ID", default=0)
    name: str | None = field(name="Stage Name", default=None)
    submitted: Stamp | None = field(name="Submission Time", default=None)
    completed: Stamp | None = field(name="Completion Time", default=None)
    failure: str | None = field(name="Failure Reason", default=None)


class Stage(Struct):
    """The start or the end of a stage."""

    info: StageInfo = field(name="Stage Info")


class ExecutorInfo(Struct, gc=False):
    """Where an executor runs."""

    host: str | None = field(name="Host", default=None)


class Executor(Struct):
    """An executor that came or went."""

    time: Stamp = field(name="Timestamp")
    executor: str = field(name="Executor ID")
    info: ExecutorInfo = field(name="Executor Info", default_factory=ExecutorInfo)
    reason: str | None = field(name="Removed Reason", default=None)


class TaskInfo(Struct, gc=False, kw_only=True):
    """In the order in which Spark writes it, which is read faster."""

    task: Number = field(name="Task ID")
    index: Number | None = field(name="Index", default=None)
    attempt: Number | None = field(name="Attempt", default=None)
    launch: Stamp = field(name="Launch Time")
    executor: str | None = field(name="Executor ID", default=None)
    host: str | None = field(name="Host", default=None)
    finish: Stamp = field(name="Finish Time", default=0)
    failed: bool = field(name="Failed", default=False)


class Metrics(Struct, gc=False):
    """How long parts of a task took, in ms."""

    deserialize: Length = field(name="Executor Deserialize Time", default=0)
    run: Length = field(name="Executor Run Time", default=0)
    serialize: Length = field(name="Result Serialization Time", default=0)


class Reason(Struct, gc=False):
    """How a task ended."""

    reason: str = field(name="Reason")


NO_METRICS: Final = Metrics()


class Line(Struct, gc=False):
    """Any line; only of tasks it says all that is of use."""

    event: str = field(name="Event")
    stage: Number | None = field(name="Stage ID", default=None)
    stage_attempt: Number = field(name="Stage Attempt ID", default=0)
    reason: Reason | None = field(name="Task End Reason", default=None)
    task: TaskInfo | None = field(name="Task Info", default=None)
    metrics: Metrics | None = field(name="Task Metrics", default=None)


class Task(Line):
    """The same of a task, which needs both."""

    def __post_init__(self) -> None:
        for name, value in (("Stage ID", self.stage), ("Task Info", self.task)):
            if value is None:
                raise ValueError(f"Object missing required field `{name}`")


DECODER: Final = msgspec.json.Decoder(Line)
TASK_START: Final = "SparkListenerTaskStart"
TASK_END: Final = "SparkListenerTaskEnd"
OTHERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    f"SparkListener{name}": msgspec.json.Decoder(record)
    for name, record in {
        "ApplicationStart": Application, "ApplicationEnd": Application,
        "JobStart": JobStart, "JobEnd": JobEnd,
        "StageSubmitted": Stage, "StageCompleted": Stage,
        "ExecutorAdded": Executor, "ExecutorRemoved": Executor,
    }.items()
}  # fmt: skip
TASKS: Final = msgspec.json.Decoder(Task)
