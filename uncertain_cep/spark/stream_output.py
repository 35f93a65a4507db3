"""Writes the batches of a stream as folders of Parquet files, each of which is there whole or not at all.

A batch is written beside the output folder and moved into it by one rename. The folder is named by the number
of the batch. So a batch that is computed again after a kill finds its folder there already, with the same
rows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from uncertain_cep.config.limits import END_SECONDS
from uncertain_cep.errors import OptionError
from uncertain_cep.spark.dataframes import as_spark_path
from uncertain_cep.spark.jobs import within_seconds
from uncertain_cep.streaming.stream_layout import check_fingerprint

__all__ = ["begin_output", "read_note", "written"]

_NOTE: Final = "_stream.json"
"""The file in the output folder and in that of the checkpoint that says which two belong together."""


def begin_output(out: Path, checkpoint: Path, fingerprint: Mapping[str, Any], columns: str) -> str:
    """Check that a folder and a checkpoint are of one stream, or mark new ones; return the kept columns.

    Raises
    ------
    OptionError
        If one of them is that of another stream, or holds something else.
    """
    marks = [read_note(folder) for folder in (out, checkpoint)]
    for folder, mark in zip((out, checkpoint), marks, strict=True):
        if mark is None and folder.exists() and any(folder.iterdir()) and not any(marks):
            raise OptionError(f"{folder} holds something that is of no stream: name another folder")
    if marks[0] is None and marks[1] is None:
        mark = {"stream": uuid4().hex, "fingerprint": dict(fingerprint), "columns": columns}
        # The checkpoint is marked first: as long as the output has no mark, the stream can still begin.
        for folder in (checkpoint, out):
            _write_note(folder, mark)
        marks = [mark, mark]
    elif marks[0] is None and marks[1] is not None and not any(checkpoint.glob("offsets/*")):
        # A run was killed between the two marks, before its first batch.
        _write_note(out, marks[1])
        marks[0] = marks[1]
    if marks[0] is None or marks[1] is None or marks[0]["stream"] != marks[1]["stream"]:
        raise OptionError(
            f"{out} and the checkpoint {checkpoint} are not of the same stream: name the two that belong "
            "together, or two new folders"
        )
    check_fingerprint(marks[1]["fingerprint"], fingerprint)
    for abandoned in out.parent.glob(f".{out.name}.*.batches"):
        shutil.rmtree(abandoned, ignore_errors=True)
    return str(marks[1]["columns"])


def read_note(folder: Path) -> dict[str, Any] | None:
    """Return the mark of a stream in a folder."""
    try:
        note: dict[str, Any] = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return note


def _write_note(folder: Path, mark: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{_NOTE}.{uuid4().hex}"
    made.write_text(json.dumps(mark), encoding="utf-8")
    made.replace(folder / _NOTE)


@contextmanager
def written(
    matches: DataFrame, out: Path, checkpoint: Path, trigger: Mapping[str, Any]
) -> Iterator[StreamingQuery]:
    """Yield a query that writes each batch of matches as a folder; it ends with the context."""
    aside = out.parent / f".{out.name}.{uuid4().hex[:12]}.batches"
    batches = _Batches(out, aside)
    writer = matches.writeStream.foreachBatch(batches.put)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()
    try:
        yield query
    finally:
        # A stop that came between two states of the stream's thread may be lost.
        if not within_seconds(query.stop, END_SECONDS):
            within_seconds(query.stop, END_SECONDS)
        batches.end()


class _Batches:
    """Puts batches into a folder, in a thread of Spark's, until the stream ends."""

    def __init__(self, out: Path, aside: Path) -> None:
        self._out, self._aside = out, aside
        self._lock = Lock()
        self._has_ended = False

    def put(self, frame: DataFrame, number: int) -> None:
        """Write a batch beside the folder, and move it there."""
        with self._lock:
            if self._has_ended:
                # To return would be to say that the batch is written.
                raise RuntimeError("the stream has ended")
            _put(frame, number, out=self._out, aside=self._aside)

    def end(self) -> None:
        """Put no more batches, and remove what is left of one, unless it is written all the same."""
        self._has_ended = True
        if self._lock.acquire(timeout=END_SECONDS):
            shutil.rmtree(self._aside, ignore_errors=True)
            self._lock.release()


def _put(frame: DataFrame, number: int, *, out: Path, aside: Path) -> None:
    made, place = aside / f"batch={number}", out / f"batch={number}"
    shutil.rmtree(made, ignore_errors=True)
    # Computed even if there are no rows, as the state moves on with it.
    frame.write.parquet(as_spark_path(made))
    parts = sorted(made.glob("part-*.parquet"))
    for path in made.iterdir():
        if path not in parts:
            path.unlink()
    if place.exists():
        # A run that was killed had moved it there, but had not committed the batch to Spark.
        shutil.rmtree(made)
        return
    filled = [part for part in parts if _has_rows(part)]
    for part in set(parts) - set(filled):
        part.unlink()
    for position, part in enumerate(filled):
        part.rename(made / f"part-{position:05}.parquet")
    if filled:
        made.rename(place)
    else:
        made.rmdir()


def _has_rows(part: Path) -> bool:
    import pyarrow.parquet as pq

    return bool(pq.ParquetFile(part).metadata.num_rows)
