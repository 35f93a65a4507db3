"""Makes events of raw stamps and of files, in Spark's Python workers; nothing here imports pyspark."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncertain_cep.config.limits import BATCH_ROWS, MOST_COMPARED_TYPES
from uncertain_cep.errors import TraceError, TraceFault, UncertainCepError, UncertainCepWarning
from uncertain_cep.spark.task_remarks import TaskRemarks
from uncertain_cep.spark.text_spans import lines_are_rows, zones_of
from uncertain_cep.timeline.domain import Names, is_text, with_noted_tick
from uncertain_cep.traces.common_types import is_number
from uncertain_cep.traces.exact_numbers import check_kept_as_numbers
from uncertain_cep.traces.extracting import ExtractionUses
from uncertain_cep.traces.faulty_rows import ROW
from uncertain_cep.traces.file_columns import types_of
from uncertain_cep.traces.file_kinds import format_of
from uncertain_cep.traces.formats import FileOptions, TraceFile
from uncertain_cep.traces.intervals import IntervalOptions, merged_times
from uncertain_cep.traces.raw_stamps import stamps_of_step
from uncertain_cep.traces.reading_steps import Step, all_days, model_events, raw_tables
from uncertain_cep.traces.rows import Events, Place, events_of_rows, id_source
from uncertain_cep.traces.stamp_remarks import collected_remarks

__all__ = [
    "FileWork",
    "Reading",
    "add_intervals",
    "describe_files",
    "events_of_files",
    "raw_table",
    "row_groups",
    "step_events",
    "with_types",
]

ROWS_PER_PART: Final = 1 << 20
"""Rows of small neighbouring row groups that are read together."""


def add_intervals(
    batches: Iterable[pa.RecordBatch],
    *,
    columns: tuple[str, ...],
    result: tuple[str, ...],
    added: pa.Schema,
    options: dict[str, Any],
    tell: Callable[[TaskRemarks], object] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of raw stamps, their columns renamed, with those that `intervals_of` adds.

    ``result`` is the columns wanted, in order. At the end ``tell`` hears the remarks about the stamps.
    """
    all_remarks, intervals = TaskRemarks(), IntervalOptions(**options)
    for batch in batches:
        with collected_remarks() as remarks:
            raw = pa.Table.from_batches([batch]).rename_columns(columns)
            table, made = intervals.applied(raw)
        # Without a tick that was chosen nothing is rounded off.
        all_remarks.note(remarks, None if intervals.tick is None else made.rounding)
        for field in added:
            if field.name not in table.column_names:
                # No stamp of this batch has two possible times.
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
            place = table.schema.get_field_index(field.name)
            table = table.set_column(place, field, table.column(place).cast(field.type))
        yield from table.select(list(result)).to_batches()
    if tell is not None:
        tell(all_remarks)


FileWork = tuple[tuple[TraceFile, tuple[Step, ...]], ...]
"""Files, and the steps that make events of the rows of each."""


_NAMES: Final = Names()
_DESCRIBED: Final = pa.schema(
    [
        ("file", pa.int64()),
        ("rows", pa.int64()),
        ("schema", pa.binary()),
        ("merged", pa.int64()),
        ("events", pa.string()),
        ("uses", pa.string()),
        ("said", pa.list_(pa.string())),
        ("pmf", pa.bool_()),
        ("zones", pa.list_(pa.string())),
        ("types", pa.list_(pa.list_(pa.string()))),
        ("stamps", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read."""

    work: FileWork
    options: FileOptions
    tick: str | None
    """The length of a tick, if the caller chose one."""
    own_tick: str | None
    """The length of a tick of events that are not yet in the columns of the model, if it is known."""
    used: frozenset[str] | None = None
    """The attributes to read if the schema lists none; None: all."""
    stamp: str | None = None
    """The column of raw stamps to add, if one is."""
    places: tuple[tuple[str, int], ...] = ()
    """The path of each file as the caller wrote it, and the rows before a span; for ids that name places."""


def step_events(
    raw: pa.Table,
    step: Step,
    reading: Reading,
    *,
    number: int,
    days: bool = True,
    first_id: int = 1,
    before: int | None = None,
) -> Events:
    """Return the events that a table of a schema makes of rows of the file, or span of one, of a number.

    ``before`` is how many rows of the file stand before these (None: those before the span).
    """
    if step.model:
        return model_events(raw, reading.tick)
    place = None
    if reading.places:
        file, before_span = reading.places[number]
        several = len(reading.work[number][1]) > 1
        place = Place.of_step(
            file, step.events, several=several, before=before_span if before is None else before
        )
    events = events_of_rows(
        raw, step.events, step.rule, tick=reading.own_tick, days=days, first_id=first_id, place=place
    )
    if reading.stamp is None:
        return events
    stamps = stamps_of_step(raw, step, events, reading.own_tick)
    if stamps is None:
        stamps = pa.nulls(events.table.num_rows, events.table.schema.field(_NAMES.lower).type)
    return replace(events, table=events.table.append_column(reading.stamp, stamps))


def describe_files(batches: Iterable[pa.RecordBatch], *, reading: Reading) -> Iterator[pa.RecordBatch]:
    """Yield a description of each file, or span of one, numbered in the batches.

    That is its number, its count of raw rows, the raw schema, with the tick that the rows name in the
    metadata, how many certain times share a tick that was chosen for them with different ones, what
    `_described` says of its events, what extraction came to, what was warned of, whether events have a pmf,
    which stamps have time zones, the types of events, and whether raw stamps can be told. Of a span that
    cannot be read, or is warned of, nothing is: it is read with the rest of its file.
    """
    for number in _numbers(batches):
        uses = ExtractionUses()
        is_span = reading.work[number][0].span is not None
        try:
            with _recorded_warnings() as said:
                raw = raw_table(number, reading, uses=uses)
                merged, described, events = _described(raw, number, replace(reading, stamp=None))
        except UncertainCepError:
            if not is_span:
                raise
            yield pa.RecordBatch.from_pylist([_unknown(number)], _DESCRIBED)
            continue
        noted = with_noted_tick(raw) if reading.work[number][1][0].model else raw
        description = {
            "file": number,
            "rows": raw.num_rows,
            "schema": noted.schema.serialize().to_pybytes(),
            "merged": merged,
            "events": None if is_span and said else described,
            "uses": json.dumps(uses.told()),
            "said": said,
            "pmf": any(_NAMES.pmf in one.table.column_names for one in events),
            "zones": [one.zones for one in events],
            "types": [_few_types(one.table) for one in events],
            "stamps": reading.stamp is not None and _has_stamps(raw, number, reading, events),
        }
        yield pa.RecordBatch.from_pylist([description], _DESCRIBED)


def _unknown(number: int) -> dict[str, Any]:
    schema = pa.schema([]).serialize().to_pybytes()
    uses = json.dumps(ExtractionUses().told())
    return {
        "file": number,
        "rows": 0,
        "schema": schema,
        "merged": 0,
        "events": None,
        "uses": uses,
        "said": [],
        "pmf": False,
        "zones": [],
        "types": [],
        "stamps": False,
    }


def _has_stamps(raw: pa.Table, number: int, reading: Reading, events: list[Events]) -> bool:
    """Return whether the raw stamps of all events of a file can be told."""
    _, steps = reading.work[number]
    return len(events) == len(steps) and all(
        stamps_of_step(raw, step, events_of_step, reading.own_tick) is not None
        for step, events_of_step in zip(steps, events, strict=True)
    )


def _few_types(table: pa.Table) -> list[str]:
    """Return the types of events; some of very many."""
    return sorted(types_of(table))[:MOST_COMPARED_TYPES]


@contextmanager
def _recorded_warnings() -> Iterator[list[str]]:
    """Collect the messages of the library's warnings, which a worker can show to nobody."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UncertainCepWarning)
        yield said
    said += [str(one.message) for one in caught if issubclass(one.category, UncertainCepWarning)]


def _described(raw: pa.Table, number: int, reading: Reading) -> tuple[int, str | None, list[Events]]:
    """Return how many certain times of a file are merged, as JSON what is known of its events, and these.

    The JSON says whether the default tick is a day, whether ids are running numbers, and for each part of the
    file with events what a `FilePart` has. It is None if events do not follow from rows one by one, or if
    there is a fault, which is reported when the events are read; for a span also if it cannot be read apart.
    """
    file, steps = reading.work[number]
    model = steps[0].model
    days = model or reading.own_tick is not None or all_days([(file, raw)], {file: list(steps)})
    changed = reading.options.deduplicate or bool(reading.options.explode) or ROW in raw.column_names
    if changed or any(step.events.value_columns or step.events.spans for step in steps):
        # Its events do not follow from its rows one by one.
        groups: Sequence[tuple[tuple[int, int] | None, int, int]] | None = None
    else:
        groups = _groups(raw, file, steps, reading)
    parts: list[_Extremes] = [[] for _ in groups or ()]
    made: list[Events] = []
    sound = True
    for step in steps:
        try:
            events = step_events(raw, step, reading, number=number, days=days)
            made.append(events)
            for extremes, (_, before, rows) in zip(parts, groups or (), strict=True):
                extremes += _extremes(events, before, before + rows)
        except MemoryError:
            raise
        except (UncertainCepError, pa.ArrowException):
            sound = False
    roundings = [events.rounding for events in made if events.rounding is not None]
    if file.span is not None:
        # Certain times of other spans may share ticks with these.
        floored = any(one.rests is not None and one.rests.any() for one in roundings)
        sound = sound and not floored and lines_are_rows(file, raw.num_rows, reading.options)
    merged = 0 if reading.own_tick is None or model else merged_times(roundings)
    if not sound or groups is None:
        return merged, None, made
    described = {
        "days": days,
        "numbered": not model and all(id_source(step.events, raw) is None for step in steps),
        "zones": {} if file.span is None else zones_of(raw, steps),
        "parts": [
            [*group, *_widest(extremes)] for group, extremes in zip(groups, parts, strict=True) if extremes
        ],
    }
    return merged, json.dumps(described), made


_Extremes = list[tuple[int, int, tuple[int, int] | None]]
"""The smallest `lower`, the largest `upper`, and the smallest and largest id of events, if known."""


def _groups(
    raw: pa.Table, file: TraceFile, steps: Sequence[Step], reading: Reading
) -> Sequence[tuple[tuple[int, int] | None, int, int]]:
    """Return the row groups in which to read a file, with the rows before and in each; None: the file."""
    stamps = [name for step in steps for name in step.rule.stamps(step.events.time)]
    # Either all texts of a column have a time zone, or none has.
    is_text_column = any(is_text(raw.schema.field(name).type) for name in stamps if name in raw.schema.names)
    # Rows tell each other which of two readings a local time has.
    by_rows = any(step.events.format is not None and step.events.format.by_rows for step in steps)
    is_parquet = format_of(file.path) == "parquet" and reading.options.format is None and file.reader is None
    if not is_parquet or is_text_column or by_rows or reading.options.types:
        return [(None, 0, raw.num_rows)]
    with file.path.open("rb") as stream:
        return row_groups(pq.read_metadata(stream))


def _extremes(events: Events, begin: int, end: int) -> _Extremes:
    """Return the extreme times and ids of the events of some rows; nothing if there are none."""
    table = events.table
    if events.rows is not None:
        begin, end = np.searchsorted(events.rows, [begin, end]).tolist()
    table = table.slice(begin, end - begin)
    if not table.num_rows:
        return []
    times = []
    for name, extreme in ((_NAMES.lower, pc.min), (_NAMES.upper, pc.max)):
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        times.append(extreme(column.cast(pa.int64())).as_py())
    if None in times:
        raise TraceError("an event needs a time")
    ids = table.column(_NAMES.id)
    has_ids = pa.types.is_integer(ids.type) and not ids.null_count
    return [(*times, tuple(pc.min_max(ids).as_py().values()) if has_ids else None)]


def _widest(extremes: _Extremes) -> tuple[int, int, tuple[int, int] | None]:
    earliest, latest, ids = zip(*extremes, strict=True)
    range_of_ids = None if None in ids else (min(low for low, _ in ids), max(high for _, high in ids))
    return min(earliest), max(latest), range_of_ids


def row_groups(metadata: pq.FileMetaData) -> list[tuple[tuple[int, int], int, int]]:
    """Return neighbouring row groups that are read together, with the rows before them and their number.

    Small row groups are read together; those without rows are left out.
    """
    groups: list[tuple[tuple[int, int], int, int]] = []
    before = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if groups and groups[-1][2] + rows <= ROWS_PER_PART:
            (first, _), begin, rows_before = groups.pop()
            groups.append(((first, group + 1), begin, rows_before + rows))
        elif rows:
            groups.append(((group, group + 1), before, rows))
        before += rows
    return groups


def events_of_files(
    batches: Iterable[pa.RecordBatch],
    *,
    reading: Reading,
    days: bool,
    firsts: tuple[int, ...],
    schema: pa.Schema,
    described: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the events of the files numbered in the batches, of the schema of all files together.

    ``days`` says whether the default tick is a day; ``firsts`` has the running number of each file's first
    row; ``described`` that `describe_files` has told what there is to warn of.
    """
    quiet = _recorded_warnings if described else nullcontext
    for number in _numbers(batches):
        with quiet():
            raw = raw_table(number, reading)
        file, steps = reading.work[number]
        for place, step in enumerate(steps):
            first = firsts[number] + place * raw.num_rows
            try:
                with quiet():
                    events = step_events(raw, step, reading, number=number, days=days, first_id=first)
                table = with_types(events.table, schema)
            except TraceError as error:
                raise TraceError([replace(fault, file=str(file.path)) for fault in error.faults]) from None
            yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def raw_table(
    number: int,
    reading: Reading,
    groups: tuple[int, int] | None = None,
    uses: ExtractionUses | None = None,
) -> pa.Table:
    """Return the raw rows of a file or of some of its row groups; a TraceError says why it cannot be read."""
    file, steps = reading.work[number]
    faults: list[TraceFault] = []
    raw_tables_of_file = list(
        raw_tables({file: list(steps)}, reading.options, faults, uses, reading.used, groups)
    )
    if faults:
        raise TraceError(faults)
    return raw_tables_of_file[0][1]


def with_types(table: pa.Table, schema: pa.Schema, encoded: str | None = None) -> pa.Table:
    """Return the columns of a schema, in its types and order; a column that is missing is null.

    The column ``encoded`` may be encoded by a dictionary.

    Raises
    ------
    TraceError
        If a value does not have the type of its column.
    """
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        try:
            if field.name == encoded and pa.types.is_dictionary(column.type):
                field = field.with_type(column.type)
            if is_number(field.type):
                check_kept_as_numbers(column, field.name)
            columns.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            message = f"it cannot be kept by Spark as {field.type}: {error}"
            raise TraceError(TraceFault(message, column=field.name)) from None
    return pa.table(columns, names=schema.names)
