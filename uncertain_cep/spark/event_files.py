"""The files of a frame, if it holds all events of these files and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from uncertain_cep.errors import OptionError
from uncertain_cep.results.output_place import local_path
from uncertain_cep.spark.dataframes import from_arrow_schema
from uncertain_cep.spark.file_parts import EventFiles, parquet_parts
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.file_columns import FileColumns

__all__ = ["files_of", "files_without", "remember_columns", "remember_files"]

_KNOWN: Final[WeakKeyDictionary[DataFrame, EventFiles | tuple[Path, ...]]] = WeakKeyDictionary()
_COLUMNS: Final[WeakKeyDictionary[DataFrame, tuple[FileColumns, ...]]] = WeakKeyDictionary()


def remember_files(frame: DataFrame, files: EventFiles | Sequence[Path]) -> DataFrame:
    """Note the files of a frame that holds all their events, and return it; paths are those of Parquet files.

    Frames that are derived from it are not noted.
    """
    _KNOWN[frame] = files if isinstance(files, EventFiles) else tuple(files)
    return frame


def remember_columns(frame: DataFrame, columns: Sequence[FileColumns]) -> DataFrame:
    """Note the columns and types of the files of a frame, and return it."""
    _COLUMNS[frame] = tuple(columns)
    return frame


def files_without(frame: DataFrame, column: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the files of a frame that lack a column which others have, each with the types of its events."""
    return ((one.file, one.types) for one in _COLUMNS.get(frame, ()) if column not in one.columns)


def files_of(frame: DataFrame, schema: pa.Schema, names: Names, columns: Sequence[str]) -> EventFiles | None:
    """Return the files of which a frame holds all events, for workers to read some columns themselves.

    ``schema`` is the schema of the frame's events. None if the frame holds anything else or is cached, or if
    its files do not tell the bounds of their times beforehand.
    """
    if frame.is_cached:
        return None
    remembered = _KNOWN.get(frame)
    if isinstance(remembered, EventFiles):
        return remembered
    paths = _scanned(frame) if remembered is None else remembered
    if not paths:
        return None
    try:
        return _with_footers(frame, paths, schema, names, columns)
    except MemoryError:
        raise
    except (OSError, OptionError, pa.ArrowException):
        # Spark decides which schema such files have.
        return None


def _scanned(frame: DataFrame) -> tuple[Path, ...] | None:
    """Return the Parquet files that a frame scans, if it does nothing else."""
    input_files = frame.inputFiles()
    paths = [local_path(path) for path in input_files]
    if not input_files or None in paths:
        return None
    scanned = tuple(path for path in paths if path is not None)
    reader = frame.sparkSession.read.schema(frame.schema)
    for roots in _spellings(scanned):
        if frame.sameSemantics(reader.parquet(*roots)):
            return scanned
    return None


def _spellings(paths: Sequence[Path]) -> Iterator[list[str]]:
    """Yield the names that a caller of Spark may have used for files: Spark compares names as written."""
    if len(paths) > 1:
        yield list(map(str, paths))
    folders = list(dict.fromkeys(path.parent for path in paths))
    for places in ([paths[0]] if len(paths) == 1 else [], folders if len(folders) == 1 else []):
        for place in places:
            yield from ([str(place)], [place.as_uri()], [f"file:{place}"], [f"{place}/"])
            if place.is_relative_to(Path.cwd()):
                yield [str(place.relative_to(Path.cwd()))]


def _with_footers(
    frame: DataFrame, paths: Sequence[Path], schema: pa.Schema, names: Names, columns: Sequence[str]
) -> EventFiles | None:
    parts = []
    for number, path in enumerate(paths):
        with path.open("rb") as file:
            metadata = pq.read_metadata(file)
        there = metadata.schema.to_arrow_schema()
        if any(there.names.count(name) != 1 for name in columns):
            return None
        kept = from_arrow_schema(pa.schema([there.field(name) for name in columns]))
        if any(frame.schema[field.name].dataType != field.dataType for field in kept.fields):
            return None
        parts_of_file = parquet_parts(number, metadata, schema, names)
        if not parts_of_file and metadata.num_rows:
            return None
        parts += parts_of_file
    return EventFiles(tuple(map(str, paths)), tuple(parts), schema)
