"""Folders of files that keep coming, as streaming frames of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.files.special_files import is_url
from uncertain_cep.spark.dataframes import arrow_schema, as_spark_path, in_workers
from uncertain_cep.spark.file_reading import Reading, events_of_files
from uncertain_cep.spark.reading import used_of_traces
from uncertain_cep.timeline.domain import TICK_METADATA, Names
from uncertain_cep.traces import TraceSchema
from uncertain_cep.traces.folders import link_in_circle
from uncertain_cep.traces.formats import FileOptions, TraceFile, list_files
from uncertain_cep.traces.local_times import repeats_hours
from uncertain_cep.traces.readers import READERS
from uncertain_cep.traces.reading_steps import Step, reading_steps
from uncertain_cep.traces.schema import given_schema

__all__ = [
    "ANY_AGE",
    "FolderReading",
    "events_of_file",
    "learned_columns",
    "read_stream",
    "reading_of",
    "stream_of_files",
]

ANY_AGE: Final = f"{2**63 - 1}ms"
"""How much older than the newest file another may be; by default Spark ignores files older by seven days."""

_NAMES: Final = Names()
_FILE: Final = t.StructType(
    [
        t.StructField("path", t.StringType()),
        t.StructField("modificationTime", t.TimestampType()),
        t.StructField("length", t.LongType()),
        t.StructField("content", t.BinaryType()),
    ]
)

_FILES_LEARNED_FROM: Final = 8
"""Files of a folder that are read beforehand, to learn the columns of a stream."""


@dataclass(frozen=True, slots=True)
class FolderReading:
    """How the files of a folder are read, including those to come."""

    root: Path
    schema: TraceSchema | None
    tick: str | None


@public
def read_stream(
    spark: SparkSession,
    folder: str | Path,
    schema: TraceSchema | str | Path | None = None,
    *,
    tick: str | None = None,
    files_per_batch: int | None = None,
) -> DataFrame:
    """Return the events of the files that are put into a folder, as a streaming frame.

    Parameters
    ----------
    spark : SparkSession
    folder : path
        A path that the workers share. Each file is read once, as a whole, however old it is: move files there
        by renaming. Names that start with ``_`` or ``.`` are passed over.
    schema, tick
        As for `read_traces`. The ids have to be in the files: running numbers would begin anew in each.
    files_per_batch : int, optional
        Most files that a batch reads. Default: all there are.

    Raises
    ------
    OptionError
        If the ids are running numbers, or there is no file to infer the columns from.
    TraceError
        If the first files have faults.
    """
    schema = given_schema(schema)
    columns = learned_columns(spark, folder, schema, tick)
    return stream_of_files(spark, folder, schema, columns, files_per_batch)


def learned_columns(
    spark: SparkSession, folder: str | Path, schema: TraceSchema | None, tick: str | None
) -> t.StructType:
    """Return the columns of the events of a folder, inferred from its first files."""
    if schema is not None and any(events.id is None for events in schema.events):
        raise OptionError("a stream needs ids: name a column of them, or a template, in the schema")
    options = FileOptions() if schema is None else schema.options
    if options.deduplicate:
        raise OptionError(
            'deduplicate reads all files before the first match: duplicates="drop" is for streams'
        )
    place = folder if is_url(folder) else Path(folder).absolute()
    files, faults = list_files([place], options.format, with_schema=schema is not None)
    if faults:
        raise TraceError(faults)
    if options.format is None and (named := {file.reader for file in files} - {None}):
        formats = " and ".join(sorted(map(str, named)))
        raise OptionError(
            f"{folder} has files of {formats}: say format = in a schema file, as others will come"
        )
    if not files:
        raise OptionError(f"{folder} has no file yet to learn the columns from: put one there first")
    first_files = [file.path for file in files[:_FILES_LEARNED_FROM]]
    columns = used_of_traces(spark, first_files, schema, tick, None).schema
    zones = () if schema is None else (events.time_zone for events in schema.events)
    if any(map(repeats_hours, zones)) and _NAMES.pmf not in columns.names:
        # Files to come may have stamps of an hour that clocks show twice.
        behind = columns.names.index(_NAMES.upper) + 1
        pmf = t.StructField(_NAMES.pmf, t.ArrayType(t.DoubleType()))
        columns = t.StructType([*columns.fields[:behind], pmf, *columns.fields[behind:]])
    return columns


def stream_of_files(
    spark: SparkSession,
    folder: str | Path,
    schema: TraceSchema | None,
    columns: t.StructType,
    files_per_batch: int | None = None,
) -> DataFrame:
    """Return the frame of `read_stream`, with known columns."""
    if files_per_batch is not None and files_per_batch < 1:
        raise OptionError(f"files_per_batch={files_per_batch}: it must be at least 1")
    root = Path(folder).absolute()
    if (link := link_in_circle(root)) is not None:
        raise OptionError(f"{link} is a link to a folder that it is in, and Spark follows links: remove it")
    reading, event_schema = reading_of(spark, root, schema, columns)
    source = spark.readStream.format("binaryFile").schema(_FILE).option("recursiveFileLookup", True)
    source = source.option("maxFileAge", ANY_AGE)
    if files_per_batch is not None:
        source = source.option("maxFilesPerTrigger", files_per_batch)
    paths = source.load(as_spark_path(root)).select("path")
    read = partial(_events_of_paths, reading=reading, schema=event_schema)
    return in_workers(paths, read, columns)


def reading_of(
    spark: SparkSession, root: Path, schema: TraceSchema | None, columns: t.StructType
) -> tuple[FolderReading, pa.Schema]:
    """Return how files are read, and the columns of their events for workers."""
    event_schema = arrow_schema(spark.createDataFrame([], columns))
    noted = (event_schema.metadata or {}).get(TICK_METADATA)
    return FolderReading(
        root, schema, None if noted is None else noted.decode()
    ), event_schema.remove_metadata()


def _events_of_paths(
    batches: Iterable[pa.RecordBatch], *, reading: FolderReading, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the events of the files named in the batches."""
    for batch in batches:
        for uri in batch.column(0).to_pylist():
            path = Path("/" + uri.removeprefix("file:").lstrip("/"))
            yield from events_of_file(path, reading, schema)


def events_of_file(path: Path, reading: FolderReading, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the events of a file, with the columns of a schema."""
    options = FileOptions() if reading.schema is None else reading.schema.options
    file = TraceFile(path, reading.root, options.format if options.format in READERS else None)
    work = ((file, tuple(_steps(file, reading))),)
    how = Reading(work, options, reading.tick, reading.tick)
    zero = pa.RecordBatch.from_pylist([{"file": 0}])
    yield from events_of_files([zero], reading=how, days=False, firsts=(1,), schema=schema, described=False)


def _steps(file: TraceFile, reading: FolderReading) -> list[Step]:
    schema = reading.schema
    if schema is not None:
        # A table of the schema for other files is no fault of this one.
        tables_of_file = tuple(e for e in schema.events if e.files is None or file.matches(e.files))
        schema = replace(schema, events=tables_of_file)
    faults: list[TraceFault] = []
    steps = reading_steps([file], schema, faults).get(file, [])
    if faults:
        raise TraceError(faults)
    return steps
