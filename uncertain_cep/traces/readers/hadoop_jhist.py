"""The job history of Hadoop 0.21 and later, ``.jhist``: JSON of Avro records, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta, Struct

from confidence.parsing.json_rows import ESCAPED, NULL, TEXT, WHOLE
from confidence.parsing.json_trees import NESTED
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.running.in_order import in_order
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.readers.hadoop_events import ATTRIBUTES, NOTHING, hadoop_batch, hosts_of
from uncertain_cep.traces.readers.json_columns import Leaf, Object, One, Paths, Tree
from uncertain_cep.traces.readers.source import Source, shown_text, values_at

__all__ = ["ATTRIBUTES", "events"]

_LEAST: Final = -1
_LARGEST: Final = 2**62
Stamp = Annotated[int, Meta(ge=_LEAST, le=_LARGEST)] | None
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

_STAMPS: Final = (
    *("submitTime", "launchTime", "startTime", "shuffleFinishTime", "sortFinishTime", "finishTime"),
)
_STAMP_KINDS: Final = (WHOLE, NULL)
_NAMES: Final = ("jobid", "taskid", "attemptId", "taskType", "jobName")
_NAME_KINDS: Final = (TEXT, ESCAPED, NULL)
_TEXTS: Final = ("hostname", "trackerName", "status", "taskStatus", "jobStatus")
_WRITTEN: Final = (
    *("jobid", "jobName", "taskid", "taskType", "attemptId", "submitTime", "launchTime", "startTime"),
    *("taskStatus", "shuffleFinishTime", "sortFinishTime", "finishTime", "trackerName", "hostname"),
    *("status", "jobStatus"),
)
"""About in the order in which Hadoop writes them, in which they are read faster."""
_RECORD: Final = Object({name: Leaf(name) for name in _WRITTEN})
_PATHS: Final = Paths(Object({"type": Leaf("type"), "event": One("kind", _RECORD)}))

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

    def events_of(lines: tuple[int, bytes]) -> pa.RecordBatch:
        tree = None if source.fields else _PATHS.read(lines[1])
        columns = None if tree is None else _columns(tree)
        return hadoop_batch(source, _records(source, *lines) if columns is None else columns)

    yield from in_order(reading_threads(), source.blocks(before=2), events_of)


def _columns(tree: Tree) -> Sequence[Any] | None:
    """Return the columns of records; None if some need to be read one by one."""
    if not (
        tree.has_all("type", TEXT)
        and tree.has_all("kind", TEXT)
        and all(tree.has_only(name, *_STAMP_KINDS) for name in _STAMPS)
        and all(tree.has_only(name, *_NAME_KINDS) for name in _NAMES)
        and all(tree.has_only(name, *_NAME_KINDS, NESTED) and _has_plain(tree, name) for name in _TEXTS)
    ):
        return None
    for name in _STAMPS:
        lowest, highest = pc.min_max(tree.integers(name)).values()
        if lowest.is_valid and (lowest.as_py() < _LEAST or highest.as_py() > _LARGEST):
            return None
    rows: Any = slice(None)
    updates = np.asarray(pc.match_substring_regex(tree.texts("kind"), f"(?:{'|'.join(_UPDATES)})$"))
    if updates.any():
        rows = np.flatnonzero(~updates)
    stamps = {name: tree.integers(name, rows) for name in _STAMPS}
    types = tree.texts("type", rows)
    return (
        _first_said(tree, rows, "attemptId", "taskid", "jobid"),
        stamps["submitTime"],
        pc.coalesce(stamps["launchTime"], stamps["startTime"]),
        *(stamps[name] for name in ("shuffleFinishTime", "sortFinishTime", "finishTime")),
        pa.repeat("ApplicationMaster", len(types)),
        tree.texts("taskType", rows),
        hosts_of(_first_said(tree, rows, "hostname", "trackerName")),
        pc.coalesce(
            _first_said(tree, rows, "status", "taskStatus", "jobStatus"),
            pc.if_else(pc.is_in(types, _ENDS), "SUCCEEDED", NOTHING),
        ),
        tree.texts("jobName", rows),
        None,
    )


def _first_said(tree: Tree, rows: Any, *names: str) -> pa.Array:
    """Return the first text of each row that is not empty."""
    texts = [_plain(tree, name, rows) for name in names]
    said = [text for text in texts if text.null_count < len(text)] or texts[:1]
    return pc.coalesce(*(pc.if_else(pc.not_equal(text, ""), text, NOTHING) for text in said))


def _plain(tree: Tree, column: str, rows: Any) -> pa.Array:
    """Return texts, also those that Avro writes as ``{"string": "..."}``."""
    texts = tree.texts(column, rows)
    nested = np.flatnonzero(tree.kinds(column)[rows] == NESTED)
    if not len(nested):
        return texts
    values = tree.values(column, np.arange(len(tree.kinds(column)))[rows][nested])
    mask = np.zeros(len(texts), np.bool_)
    mask[nested] = True
    return pc.replace_with_mask(
        texts, pa.array(mask), pa.array([next(iter(value.values())) for value in values], pa.string())
    )


def _has_plain(tree: Tree, column: str) -> bool:
    """Tell whether all objects of a column have one text in them that is not empty."""
    nested = np.flatnonzero(tree.kinds(column) == NESTED)
    return all(
        isinstance(value, dict)
        and len(value) == 1
        and all(isinstance(text, str) and text for text in value.values())
        for value in tree.values(column, nested)
    )


def _records(source: Source, before: int, lines: bytes) -> Sequence[Any]:
    block = source.decoded_block(before, lines, _DECODER)
    kinds = [kind for line in block.values for kind in line.event]
    records = [record for line in block.values for record in line.event.values()]
    places = np.repeat(np.arange(len(block.values)), [len(line.event) for line in block.values])
    told_again = {kind for kind in set(kinds) if kind.endswith(_UPDATES)}
    if told_again:
        kept = [number for number, kind in enumerate(kinds) if kind not in told_again]
        kinds, records, places = [kinds[n] for n in kept], [records[n] for n in kept], places[kept]
    types = pa.array([line.type for line in block.values], pa.string()).take(pa.array(places))
    return (
        [record.attempt_id or record.taskid or record.jobid or None for record in records],
        [record.submit_time for record in records],
        [record.start_time if record.launch_time is None else record.launch_time for record in records],
        [record.shuffle_finish_time for record in records],
        [record.sort_finish_time for record in records],
        [record.finish_time for record in records],
        pa.repeat("ApplicationMaster", len(records)),
        [record.task_type for record in records],
        hosts_of(_text_array([record.hostname or record.tracker_name or None for record in records])),
        pc.coalesce(
            _text_array(
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


def _text_array(values: Sequence[Text]) -> pa.Array:
    """Return texts; Avro may write ``{"string": "..."}``."""
    try:
        return pa.array(values, pa.string())
    except pa.ArrowTypeError:
        texts = [next(iter(text.values()), None) if isinstance(text, dict) else text for text in values]
        return pa.array([text or None for text in texts], pa.string())
