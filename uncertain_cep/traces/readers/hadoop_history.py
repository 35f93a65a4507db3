"""The job history of Hadoop 0.20: lines of ``KEY="value"`` that end with a dot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.running.in_order import in_order
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.readers.event_columns import chunks
from uncertain_cep.traces.readers.hadoop_events import (
    ATTRIBUTES,
    NOTHING,
    WIDTH,
    hadoop_batch,
    hadoop_batches,
    host_of,
    hosts_of,
)
from uncertain_cep.traces.readers.source import MOST_BYTES, Source, numbered_lines, shown_text

__all__ = ["ATTRIBUTES", "events"]

_PAIR: Final = re.compile(r'(\w+)="([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ATTEMPT: Final = " TASK_ATTEMPT_ID="
_KINDS: Final = {
    "Job": " JOBID=",
    "Task": " TASKID=",
    "MapAttempt": _ATTEMPT,
    "ReduceAttempt": _ATTEMPT,
}
_BEGINS: Final = (b"Meta ", *map(str.encode, _KINDS))
_STAMPS: Final = (" SUBMIT_TIME=", " START_TIME=", " SHUFFLE_FINISHED=", " SORT_FINISHED=", " FINISH_TIME=")
_JOB_STAMPS: Final = (_STAMPS[0], " LAUNCH_TIME=", *_STAMPS[2:])

_KEY: Final = re.compile(r"(?: \.\s*\n\s*(\w+))?( \w+=)")
"""What stands before a value: with the end of the record before and the kind of the next one, or without."""

_END: Final = re.compile(r" \.\s*")
_STANDS_FOR: Final = ((b"\\\\", b"\1"), (b'\\"', b"\2"))
"""What a backslash precedes, and what stands for both while a text is split at its quotes."""

_UNPLAIN: Final = (b"\\", b"\n", *(letter for _, letter in _STANDS_FOR))


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the submission, start and end of jobs, and the start and end of tasks and attempts.

    Jobs and tasks have the stamps of the JobTracker, attempts those of the TaskTracker that ran them, with
    the ends of shuffle and sort. Fields are the keys of a record.
    """

    def read(lines: tuple[int, bytes]) -> tuple[int, bytes, pa.RecordBatch | None]:
        columns = None if source.fields else _split(lines[1])
        return *lines, None if columns is None else hadoop_batch(source, columns)

    histories = _Histories()
    for before, text, batch in in_order(reading_threads(), _blocks(source), read):
        if batch is None:
            records = histories.records(numbered_lines(text, before))
            yield from hadoop_batches(source, chunks(_phases(source.fields, records), WIDTH))
        else:
            yield batch


def _blocks(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield whole records, many at a time, behind the number of lines before; the rest at last."""
    parts: list[bytes] = []
    held = begun = 0
    for before, block in source.blocks():
        begun = begun if held else before
        end = len(block)
        while (end := block.rfind(b"\n", 0, end)) >= 0:
            if _is_last(block[max(end - 8, 0) : end].rstrip()):
                yield begun, b"".join((*parts, memoryview(block)[: end + 1]))
                parts, held, begun = [], 0, before + block.count(b"\n", 0, end + 1)
                block = block[end + 1 :]
                break
        parts.append(block)
        held += len(block)
        if held > MOST_BYTES:
            break
    if held:
        yield begun, b"".join(parts)


def _is_last(line: bytes) -> bool:
    """Tell whether a line ends a record; a dot in a value is written with a backslash."""
    return line.endswith(b".") and not line.endswith(b"\\.")


def _split(text: bytes) -> Sequence[Any] | None:
    """Return the columns of some records; None if they have to be read one by one."""
    if any(letter in text for _, letter in _STANDS_FOR):
        return None
    for escaped, letter in _STANDS_FOR:
        text = text.replace(escaped, letter)
    try:
        pieces = pc.list_flatten(pc.split_pattern(pa.array([f" .\n{text.decode()}"]), '"'))
    except UnicodeDecodeError:
        return None
    # Every quote begins or ends a value.
    if len(pieces) < 3 or not len(pieces) % 2 or not _END.fullmatch(pieces[-1].as_py()):
        return None
    keys = pieces.take(pa.array(np.arange(0, len(pieces) - 1, 2))).dictionary_encode()
    values = pieces.take(pa.array(np.arange(1, len(pieces), 2)))
    codes = np.asarray(keys.indices)
    matches = [_KEY.fullmatch(key) for key in keys.dictionary.to_pylist()]
    if None in matches or matches[codes[0]][1] is None:
        return None
    kinds_and_keys = [(match[1], match[2]) for match in matches if match is not None]
    if not {kind for kind, _ in kinds_and_keys} <= {None, "Meta", *_KINDS}:
        return None
    begins = np.array([kind is not None for kind, _ in kinds_and_keys])[codes]
    record = np.cumsum(begins) - 1
    kinds = np.array([_KINDS.get(kind or "", "") for kind, _ in kinds_and_keys])[codes[begins]]
    kept = kinds != ""

    def column(key: str) -> pa.Array:
        places = np.flatnonzero(np.array([name == key for _, name in kinds_and_keys])[codes])
        of = np.full(len(kinds), -1)
        of[record[places]] = places
        return _plain(values.take(pa.array(of[kept], mask=of[kept] < 0)))

    is_job, is_attempt = (pa.array(kinds[kept] == _KINDS[kind]) for kind in ("Job", "MapAttempt"))
    identifiers = pc.if_else(
        is_job,
        column(_KINDS["Job"]),
        pc.if_else(is_attempt, column(_ATTEMPT), column(_KINDS["Task"])),
    )
    try:
        times = [pc.fill_null(column(key).cast(pa.int64()), -1) for key in _STAMPS]
        times[1] = pc.if_else(is_job, pc.fill_null(column(_JOB_STAMPS[1]).cast(pa.int64()), -1), times[1])
    except pa.ArrowInvalid:
        return None
    if identifiers.null_count or any(np.any(np.abs(np.asarray(column)) >= 2**62) for column in times):
        return None
    host = column(" HOSTNAME=")
    return (
        identifiers,
        *times,
        pc.if_else(is_attempt, "TaskTracker", "JobTracker"),
        column(" TASK_TYPE="),
        hosts_of(pc.coalesce(pc.if_else(pc.equal(host, ""), NOTHING, host), column(" TRACKER_NAME="))),
        pc.if_else(is_job, column(" JOB_STATUS="), column(" TASK_STATUS=")),
        column(" JOBNAME="),
        None,
    )


def _plain(values: pa.Array) -> pa.Array:
    """Return values without the backslashes, and without the spaces around the ends of lines."""
    data = values.buffers()[2].to_pybytes() if values.buffers()[2] else b""
    if not any(letter in data for letter in _UNPLAIN):
        return values
    encoded = values.dictionary_encode()
    texts = pc.replace_substring_regex(encoded.dictionary, r"[\t\v\f\r ]*\n\s*", "\n")
    texts = pc.replace_substring_regex(texts, r"(?s)\\(.)", r"\1")
    for escaped, letter in _STANDS_FOR:
        texts = pc.replace_substring(texts, letter.decode(), escaped[1:].decode())
    return texts.take(encoded.indices)


def _phases(fields: Sequence[str], records: Iterable[tuple[int, str]]) -> Iterator[tuple[Any, ...]]:
    for row, record in records:
        kind, _, pairs = record.partition(" ")
        key = _KINDS.get(kind)
        if key is None:
            continue
        get = _pairs(pairs).get
        identifier = get(key)
        if identifier is None:
            message = f"it is no such record: {kind} without {key[1:-1]}"
            raise TraceError(TraceFault(message, row=row, value=shown_text(record.encode())))
        times = map(get, _JOB_STAMPS if kind == "Job" else _STAMPS)
        yield (
            identifier,
            *[-1 if time is None else _time(time, row) for time in times],
            "TaskTracker" if key == _ATTEMPT else "JobTracker",
            get(" TASK_TYPE="),
            _host(get(" HOSTNAME=") or get(" TRACKER_NAME=")),
            get(" JOB_STATUS=" if kind == "Job" else " TASK_STATUS="),
            get(" JOBNAME="),
            {field: get(f" {field}=") for field in fields} if fields else None,
        )


_host: Final = lru_cache(host_of)


def _pairs(text: str) -> dict[str, str]:
    """Return the values of a record by their keys, each with a space before and an equals sign behind."""
    if '\\"' in text or "\\\\" in text:
        return {f" {name}=": _ESCAPE.sub(r"\1", value) for name, value in _PAIR.findall(text)}
    # Every quote begins or ends a value.
    parts = f" {text}".replace("\\", "").split('"')
    return dict(zip(parts[::2], parts[1::2], strict=False))


def _time(text: str, row: int) -> int:
    try:
        time = int(text)
    except ValueError:
        time = 2**63
    if abs(time) >= 2**62:
        raise TraceError(TraceFault("it is no number of ms", row=row, value=text[:80]))
    return time


class _Histories:
    """Reads records one by one; Rumen keeps histories in one file, each behind its name.

    XML files of configurations may stand between them.
    """

    def __init__(self) -> None:
        self._is_history = True

    def records(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
        """Yield the records of some lines, with the rows that they begin in."""
        begun, size = 0, 0
        parts: list[bytes] = []
        for row, line in lines:
            if line.startswith(b"!!FILE="):
                self._is_history = not line.endswith(b"_conf.xml!!")
                continue
            if not self._is_history:
                continue
            if not (parts or line.startswith(_BEGINS) or line.endswith(b" .")):
                raise TraceError(TraceFault("it is no such record", row=row, value=shown_text(line)))
            begun = begun if parts else row
            parts.append(line)
            size += len(line)
            if size > MOST_BYTES:
                break
            if _is_last(line):
                try:
                    yield begun, b"\n".join(parts).decode()
                except UnicodeDecodeError:
                    message = "its text is not UTF-8: convert the file"
                    raise TraceError(TraceFault(message, row=row, value=shown_text(line))) from None
                parts, size = [], 0
        if parts:
            raise TraceError(TraceFault("the record is cut off", row=begun, value=shown_text(parts[0])))
