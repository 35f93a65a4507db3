"""Files of raw stamps to frames of interval events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, TraceFault, warn
from uncertain_cep.files.special_files import DOWNLOAD, is_of_web, is_url
from uncertain_cep.spark.dataframes import (
    as_spark_keeps,
    as_spark_path,
    column,
    from_arrow_schema,
    in_workers,
    noted_stamp,
    noting_files,
)
from uncertain_cep.spark.event_files import remember_columns, remember_files
from uncertain_cep.spark.file_parts import described_files
from uncertain_cep.spark.file_reading import (
    FileWork,
    Reading,
    describe_files,
    events_of_files,
    step_events,
)
from uncertain_cep.spark.jobs import errors_of_workers
from uncertain_cep.spark.text_spans import files_to_read_whole, in_spans
from uncertain_cep.timeline.domain import TICK_METADATA, Names
from uncertain_cep.traces import TraceSchema
from uncertain_cep.traces.duplicates import duplicates_message
from uncertain_cep.traces.exact_numbers import mixed_columns
from uncertain_cep.traces.extracting import ExtractionUses
from uncertain_cep.traces.file_columns import FileColumns
from uncertain_cep.traces.formats import FileOptions, TraceFile, list_files, reader_tick
from uncertain_cep.traces.intervals import merged_message
from uncertain_cep.traces.raw_stamps import NO_STAMPS, named_stamps, told_stamps
from uncertain_cep.traces.reading import chosen_tick, warn_of_units, warn_of_zones
from uncertain_cep.traces.reading_steps import Step, all_days, reading_steps, unused_keys
from uncertain_cep.traces.rows import Part, assembled
from uncertain_cep.traces.schema import given_schema

__all__ = ["read_traces", "used_of_traces"]

_NAMES: Final = Names()

_MOST_READING_TASKS: Final = 200
"""Most partitions that files are read in; each holds several files if there are more."""


@public
def read_traces(
    spark: SparkSession,
    paths: Sequence[str | Path] | str | Path,
    schema: TraceSchema | str | Path | None = None,
    *,
    format: str | None = None,
    tick: str | None = None,
    raw_stamps: bool = False,
) -> DataFrame:
    """Read files into a frame of events, as `uncertain_cep.read_traces` does into a table.

    Parameters
    ----------
    spark : SparkSession
    paths : path or sequence of paths
        Paths that the workers share; with `schema` None also the URI of Parquet files, such as
        ``s3a://bucket/events``.
    schema : path, TraceSchema or None
        A schema file of this machine, or the result of `load_schema`. None for files whose columns are those
        of the model.
    format : str, optional
        As for `uncertain_cep.read_traces`.
    tick : str or None
        Length of a tick. Default: that of the schema, the files or their format, else 1us; a day if all
        stamps are dates.
    raw_stamps : bool
        As for `uncertain_cep.read_traces`: `uncertain_cep.report` compares its answer with the raw stamps. A
        schema with ``deduplicate`` has none here.

    Returns
    -------
    pyspark.sql.DataFrame
        Parquet files of the model are scanned by Spark. All others are read by Python workers, a file,
        or a span of a long text, at a time: once here to learn the types of the columns, and again whenever
        the frame is used. ``cache()`` it, or write it as Parquet, to use it more than once.

    Raises
    ------
    TraceError
        With the faults of the first file that has any.

    Warns
    -----
    UncertainCepWarning
        If different certain times of one file are now in one tick, so that none is before the other; and
        about records and duplicates that are left out, and raw stamps that cannot be told, as
        `uncertain_cep.read_traces` warns.
    """
    events = used_of_traces(spark, paths, schema, tick, None, format, raw_stamps=raw_stamps)
    if raw_stamps and noted_stamp(events) is None:
        warn(NO_STAMPS)
    return events


def used_of_traces(
    spark: SparkSession,
    paths: Sequence[str | Path] | str | Path,
    schema: TraceSchema | str | Path | None,
    tick: str | None,
    used: frozenset[str] | None,
    format: str | None = None,
    *,
    raw_stamps: bool = False,
) -> DataFrame:
    """Return the frame of :func:`read_traces`, with only the attributes ``used`` if the schema lists none.

    Other attributes are not read, so they may hold anything. Parquet files of the model are scanned by
    columns.
    """
    schema = given_schema(schema)
    path_list = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if web := [TraceFault(DOWNLOAD, file=str(path)) for path in path_list if is_of_web(path)]:
        raise TraceError(web)
    if schema is None and any("://" in str(path) for path in path_list):
        return spark.read.parquet(*map(str, path_list))
    # The workers may have another working folder.
    options = FileOptions() if schema is None else schema.options
    if format is not None:
        options = replace(options, format=format)
    places = [path if str(path) == "-" or is_url(path) else Path(path).absolute() for path in path_list]
    files, faults = list_files(places, options.format, with_schema=schema is not None)
    if schema is None and files and not faults and _scannable([file.path for file in files]):
        scanned = [file.path for file in files]
        return remember_files(_scan(spark, scanned), scanned)
    steps = reading_steps(files, schema, faults, named_formats=options.format is None)
    if faults or not steps:
        raise TraceError(faults or "no file is given: name one or more")
    spans = {file: in_spans(file, parts, options) for file, parts in steps.items()}
    work = _work(steps, spans)
    if schema is not None:
        tick = chosen_tick(tick, schema)
        # Columns that are not read could tell events apart.
        used = None if schema.options.deduplicate else used
    asks_stamps = raw_stamps and told_stamps(schema) and not options.deduplicate
    stamp = "stamp" if asks_stamps else None
    reading = Reading(work, options, tick, tick or reader_tick(steps), used, stamp)
    roots = dict(zip(places, path_list, strict=True))
    reading = replace(reading, places=_places(work, roots, {}))
    descriptions = _told(spark, reading)
    if refused := files_to_read_whole(descriptions):
        whole = tuple((file, tuple(steps[file])) for file in refused)
        descriptions |= _told(spark, replace(reading, work=whole, places=_places(whole, roots, {})))
        spans |= {file: [file] for file in refused}
        work = _work(steps, spans)
        reading = replace(reading, work=work, places=_places(work, roots, {}))
    if mixed := mixed_columns(_schema(row) for row in descriptions.values()):
        reading = replace(reading, options=replace(options, as_text=tuple(sorted(mixed))))
        descriptions = _told(spark, reading)
    rows = [{**descriptions[file], "file": number} for number, (file, _) in enumerate(work)]
    # Of a file without rows the type of a stamp is a guess.
    asks_stamps = asks_stamps and all(row["stamps"] for row in rows if row["rows"])
    reading = replace(reading, stamp=None)
    numbers = _numbers(spark, reading)
    uses = ExtractionUses()
    for row in rows:
        uses.add(json.loads(row["uses"]))
    parts = (step for steps_of_file in steps.values() for step in steps_of_file)
    if unused := unused_keys(uses, options, parts, None if schema is None else schema.file):
        raise TraceError(unused)
    for message in dict.fromkeys(message for row in rows for message in row["said"]):
        warn(message)
    counts = {row["file"]: row["rows"] for row in rows}
    reading = replace(reading, places=_places(work, roots, counts))
    # The types of a file without rows are a guess.
    empty = {
        row["file"]: _schema(row).empty_table() for row in rows if row["rows"] or not any(counts.values())
    }
    raws = [(work[number][0], table) for number, table in empty.items()]
    days = schema is None or all_days(raws, {file: list(parts) for file, parts in work})
    merged = sum(row["merged"] for row in rows)
    if merged:
        warn(merged_message(merged, reading.own_tick))
    parts_with_events = [
        Part(str(file.path), step_events(table, step, reading, number=number, days=days))
        for number, table in empty.items()
        for file, parts in [work[number]]
        for step in parts
    ]
    _warn_of_zones(rows, empty, work, parts_with_events)
    warn_of_units((table.schema, work[number][1]) for number, table in empty.items() if counts[number])
    model, faults = assembled(parts_with_events)
    if model is None:
        raise TraceError(list(dict.fromkeys(faults)))
    if any(row["pmf"] for row in rows):
        model = _with_pmfs(model)
    if asks_stamps:
        model = named_stamps(model, model.column(_NAMES.lower))
        reading = replace(reading, stamp=model.column_names[-1])
    # Each table of the schema that takes a file numbers its rows anew.
    ids = [counts[number] * len(work[number][1]) for number in range(len(work))]
    firsts = tuple(accumulate(ids, initial=1))
    kept = as_spark_keeps(model.schema)
    read = partial(events_of_files, reading=reading, days=days, firsts=firsts[:-1], schema=kept)
    events = in_workers(numbers, read, from_arrow_schema(model.schema, _NAMES))
    events = noting_files(events, [str(Path(path).absolute()) for path in path_list])
    columns = _file_columns(rows, empty, work, parts_with_events)
    if reading.options.deduplicate:
        with errors_of_workers():
            events = _without_duplicates(events, {part.events.numbered for part in parts_with_events})
        return remember_columns(events, columns)
    described = {row["file"]: None if row["events"] is None else json.loads(row["events"]) for row in rows}
    event_files = described_files(described, kept, reading, days or reading.own_tick is not None, firsts)
    events = remember_columns(events, columns)
    return events if event_files is None else remember_files(events, event_files)


def _warn_of_zones(
    rows: Sequence[Mapping[str, Any]],
    empty: Mapping[int, pa.Table],
    work: FileWork,
    parts_with_events: Sequence[Part],
) -> None:
    """Warn of time zones beside none in files that are described."""
    stamps = {
        step.rule.stamps(step.events.time): table.schema
        for number, table in empty.items()
        for step in work[number][1]
    }
    zones = [zone for row in rows if row["file"] in empty for zone in row["zones"]]
    if len(zones) != len(parts_with_events):
        # Some have faults, which are met when the events are read.
        return
    parts = [
        replace(part, events=replace(part.events, zones=zone))
        for part, zone in zip(parts_with_events, zones, strict=True)
    ]
    warn_of_zones(stamps, parts)


def _file_columns(
    rows: Sequence[Mapping[str, Any]], empty: Mapping[int, pa.Table], work: FileWork, parts: Sequence[Part]
) -> list[FileColumns]:
    """Return the columns and types that each table of the schema makes of each file that is described."""
    types = [types for row in rows if row["file"] in empty for types in row["types"]]
    if len(types) != len(parts):
        # Some have faults, which are met when the events are read.
        return []
    steps = [(number, place) for number in empty for place in range(len(work[number][1]))]
    columns: dict[tuple[TraceFile, int], FileColumns] = {}
    for (number, place), part, types_of_part in zip(steps, parts, types, strict=True):
        one = FileColumns(part.file, frozenset(part.events.table.column_names), frozenset(types_of_part))
        of_file = replace(work[number][0], span=None), place
        columns[of_file] = columns[of_file] | one if of_file in columns else one
    return list(columns.values())


def _with_pmfs(model: pa.Table) -> pa.Table:
    """Return a table of events with a column of pmfs, which those with two possible times have."""
    if _NAMES.pmf in model.column_names:
        return model
    place = model.column_names.index(_NAMES.upper) + 1
    return model.add_column(place, _NAMES.pmf, pa.nulls(model.num_rows, pa.list_(pa.float64())))


def _schema(described: Mapping[str, Any]) -> pa.Schema:
    """Return the raw schema of a file that `describe_files` describes."""
    return pa.ipc.read_schema(pa.py_buffer(described["schema"]))


def _work(steps: Mapping[TraceFile, Sequence[Step]], spans: Mapping[TraceFile, list[TraceFile]]) -> FileWork:
    return tuple((span, tuple(parts)) for file, parts in steps.items() for span in spans[file])


def _places(
    work: FileWork, roots: Mapping[Any, str | Path], counts: Mapping[int, int]
) -> tuple[tuple[str, int], ...]:
    """Return the path of each file as the caller wrote it, and how many rows stand before a span of it.

    ``roots`` has the paths that the caller wrote by absolute ones, ``counts`` the rows of files by number.
    """
    rows: dict[Path, int] = {}
    places = []
    for number, (file, _) in enumerate(work):
        written = roots.get(file.root)
        path = str(file.path) if written is None else str(Path(written, file.path.relative_to(file.root)))
        places.append((path, rows.get(file.path, 0)))
        rows[file.path] = rows.get(file.path, 0) + counts.get(number, 0)
    return tuple(places)


def _numbers(spark: SparkSession, reading: Reading) -> DataFrame:
    """Return a frame of the numbers of the files to read."""
    return spark.range(0, len(reading.work), 1, min(len(reading.work), _MOST_READING_TASKS))


@errors_of_workers()
def _told(spark: SparkSession, reading: Reading) -> dict[TraceFile, dict[str, Any]]:
    """Return the description by `describe_files` of each file."""
    columns = "file long, rows long, schema binary, merged long, events string, uses string"
    columns += ", said array<string>, pmf boolean, zones array<string>"
    columns += ", types array<array<string>>, stamps boolean"
    rows = in_workers(_numbers(spark, reading), partial(describe_files, reading=reading), columns).collect()
    return {reading.work[row["file"]][0]: row.asDict() for row in rows}


def _without_duplicates(events: DataFrame, numbered: set[bool]) -> DataFrame:
    """Return one of the events that agree in all columns, but for ids that only number rows.

    Warns how many are left out, which takes a job of its own.
    """
    if len(numbered) > 1:
        raise OptionError("deduplicate: on Spark all events need ids, or none: name a column with id")
    compared = [column(name) for name in events.columns if name != _NAMES.id or numbered == {False}]
    counted = events.groupBy(*compared).agg(f.count("*"))
    # An attribute may have any name.
    counted = counted.toDF(*(f"c{place}" for place in range(len(compared))), "events")
    rows, kept = counted.agg(f.sum("events"), f.count("*")).first() or (0, 0)
    if rows and rows > kept:
        warn(duplicates_message(rows - kept, kept))
    if numbered == {False}:
        return events.dropDuplicates()
    first = events.groupBy(*compared).agg(f.min(column(_NAMES.id)).alias(_NAMES.id))
    return first.select(*(column(name) for name in events.columns))


def _scannable(paths: Sequence[Path]) -> bool:
    """Return whether all files are Parquet files of the model with types that Spark reads as they are."""
    if any(path.suffix not in (".parquet", ".pq") for path in paths):
        return False
    try:
        schemas = [pq.read_schema(path) for path in paths]
    except MemoryError:
        raise
    except (OSError, pa.ArrowException):
        return False
    first = schemas[0]
    times = [first.field(name).type for name in (_NAMES.lower, _NAMES.upper) if name in first.names]
    return (
        all(schema.equals(first, check_metadata=False) for schema in schemas)
        and all((schema.metadata or {}).get(TICK_METADATA) == _tick(first) for schema in schemas)
        and all(pa.types.is_int64(kind) or pa.types.is_timestamp(kind) for kind in times)
        # Spark reads durations as whole numbers of their units, and does not read nanoseconds.
        and not any(
            pa.types.is_duration(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns")
            for kind in first.types
        )
    )


def _tick(schema: pa.Schema) -> bytes | None:
    tick: bytes | None = (schema.metadata or {}).get(TICK_METADATA)
    return tick


def _scan(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    frame = spark.read.parquet(*(as_spark_path(path) for path in paths))
    tick = _tick(pq.read_schema(paths[0]))
    if tick is not None:
        for name in (_NAMES.lower, _NAMES.upper):
            frame = frame.withMetadata(name, {TICK_METADATA.decode(): tick.decode()})
    return frame
