"""The common part of the histories of Hadoop: the events of jobs, tasks and attempts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.traces.readers.event_columns import batch_of, pivoted
from uncertain_cep.traces.readers.source import Source

__all__ = [
    "ATTRIBUTES",
    "NOTHING",
    "PHASES",
    "WIDTH",
    "hadoop_batch",
    "hadoop_batches",
    "host_of",
    "hosts_of",
]

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

WIDTH: Final = 12
"""The columns of records of Hadoop."""

PHASES: Final = ("submit", "start", "shuffle", "sort", "end")
"""In their order."""

_ENDS: Final = PHASES.index("shuffle")
_KINDS: Final = ("Submit", "Start", "ShuffleEnd", "SortEnd", "End")
_TYPES: Final = pa.array(
    [kind if len(kind) > 6 else what + kind for what in ("Job", "Task", "Attempt") for kind in _KINDS]
)
_SUFFIXES: Final = pa.array([f":{phase}" for phase in PHASES])
_ID: Final = (
    r"^(?:job|task|attempt)_(?P<job>[0-9]+_[0-9]+)(?:_(?P<task>[a-z]+_[0-9]+)(?:_(?P<attempt>[0-9]+))?)?$"
)
NOTHING: Final = pa.scalar(None, pa.string())


def hadoop_batches(source: Source, records: Iterable[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
    """Yield the events of the phases of jobs, tasks and attempts; see `hadoop_batch`."""
    for columns in records:
        yield hadoop_batch(source, columns)


def hadoop_batch(source: Source, records: Sequence[Any]) -> pa.RecordBatch:
    """Return the events of the phases of jobs, tasks and attempts.

    ``records`` are columns of many: identifiers, the times of the ``PHASES`` (no event: None, 0 or -1), the
    clock, the type of the task, the host, the status, the name of the job, and dicts of the fields asked for.
    """
    identifiers, *stamps, clock, kind, host, status, name, further_fields = records
    whole = pa.array(identifiers, pa.string())
    times = np.stack([np.asarray(pa.array(column, pa.int64()).fill_null(-1)) for column in stamps], axis=1)
    times[np.asarray(whole.is_null())] = -1
    rows, phases = np.nonzero(times > 0)
    phase = pa.array(phases)
    parts = pc.extract_regex(whole, _ID)
    job, task, number = (pc.struct_field(parts, place) for place in range(3))
    is_task = pc.fill_null(pc.not_equal(task, ""), False)
    is_attempt = pc.fill_null(pc.not_equal(number, ""), False)
    what = np.asarray(is_task).astype(np.int64) + np.asarray(is_attempt)
    attributes = [
        pc.binary_join_element_wise("job", job, "_"),
        pc.if_else(is_task, pc.binary_join_element_wise("task", job, task, "_"), NOTHING),
        pc.if_else(is_attempt, whole, NOTHING),
        pc.if_else(is_attempt, number, NOTHING).cast(pa.int64()),
        *(pa.array(column, pa.string()) for column in (kind, host, status, clock, name)),
    ]
    taken = pa.array(rows)
    columns = [column.take(taken) for column in attributes]
    columns[6] = pc.if_else(pa.array(phases >= _ENDS), columns[6], NOTHING)
    bounds = times[rows, phases]
    further = {}
    if source.fields:
        further = {key: column.take(taken) for key, column in pivoted(further_fields, source.further).items()}
    return batch_of(
        ATTRIBUTES,
        [
            _TYPES.take(pa.array(what[rows] * len(PHASES) + phases)),
            pc.binary_join_element_wise(whole.take(taken), _SUFFIXES.take(phase), ""),
            *(bounds, bounds),
            *columns,
        ],
        further,
    )


def hosts_of(names: pa.Array) -> pa.Array:
    """Return the hosts of many names; see `host_of`."""
    encoded = names.dictionary_encode()
    hosts = [host_of(name) for name in encoded.dictionary.to_pylist()]
    return pa.array(hosts, pa.string()).take(encoded.indices)


def host_of(name: str | None) -> str | None:
    """Return the host of a name such as ``/rack/host`` or ``tracker_host:localhost/127.0.0.1:54153``."""
    if name is None:
        return None
    if name.startswith("tracker_"):
        return name.removeprefix("tracker_").partition(":")[0]
    return name.rpartition("/")[2] or None
