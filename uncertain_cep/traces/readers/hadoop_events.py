"""What the histories of Hadoop have in common: the events of jobs, tasks and attempts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

__all__ = ["ATTRIBUTES", "PHASES", "hadoop_event", "host_of"]

ATTRIBUTES: Final = pa.schema(
    [
        ("job_id", pa.string()),
        ("task_id", pa.string()),
        ("attempt_id", pa.string()),
        ("attempt", pa.int64()),
        ("task_type", pa.string()),
        ("host", pa.string()),
        ("status", pa.string()),
        ("clock", pa.string()),
        ("name", pa.string()),
    ]
)

PHASES: Final = ("start", "shuffle", "sort", "end")
"""Of an attempt, in their order."""

_TYPES: Final = {
    "submit": "Submit", "start": "Start", "end": "End", "shuffle": "ShuffleEnd", "sort": "SortEnd",
}  # fmt: skip
_ID: Final = re.compile(r"(?:job|task|attempt)_([0-9]+_[0-9]+)(?:_([a-z]+_[0-9]+)(?:_([0-9]+))?)?\Z")


def hadoop_event(
    identifier: str,
    phase: str,
    time: int | None,
    *,
    clock: str,
    task_type: str | None = None,
    host: str | None = None,
    status: str | None = None,
    name: str | None = None,
    others: dict[str, Any] | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield the event of a phase of a job, task or attempt, unless it has no time: none, 0 or -1."""
    if time is None or time <= 0:
        return
    found = _ID.match(identifier)
    job, task, attempt = (None, None, None) if found is None else found.groups()
    what = "Attempt" if attempt else "Task" if task else "Job"
    kind = _TYPES[phase] if phase in ("shuffle", "sort") else what + _TYPES[phase]
    yield (
        kind,
        f"{identifier}:{phase}",
        time,
        time,
        f"job_{job}" if job else None,
        f"task_{job}_{task}" if task else None,
        identifier if attempt else None,
        int(attempt) if attempt else None,
        task_type,
        host,
        status,
        clock,
        name,
        {} if others is None else others,
    )


def host_of(name: str | None) -> str | None:
    """Return the host of a name such as ``/rack/host`` or ``tracker_host:localhost/127.0.0.1:54153``."""
    if name is None:
        return None
    if name.startswith("tracker_"):
        return name.removeprefix("tracker_").partition(":")[0]
    return name.rpartition("/")[2] or None
