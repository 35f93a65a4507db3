"""Reading raw files in Spark's Python workers; nothing here imports pyspark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from uncertain_cep.config import BATCH_ROWS
from uncertain_cep.errors import TraceError, TraceFault, UncertainCepError
from uncertain_cep.timedomain import with_noted_tick
from uncertain_cep.traces.formats import FileOptions, TraceFile
from uncertain_cep.traces.reading import Step, model_events, raw_tables
from uncertain_cep.traces.rounding import merged_times
from uncertain_cep.traces.rows import Events, events_of_rows

__all__ = ["FileWork", "Reading", "describe_files", "events_of_files", "step_events"]

FileWork = tuple[tuple[TraceFile, tuple[Step, ...]], ...]
"""Files and what is made of the rows of each."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read."""

    work: FileWork
    options: FileOptions
    model: bool
    """Whether the columns are those of the model already."""
    tick: str | None
    """Length of a tick, if one was chosen."""


def step_events(
    raw: pa.Table, step: Step, reading: Reading, *, days: bool = True, first_id: int = 1
) -> Events:
    """Return what a table of a schema makes of the rows of a file."""
    if reading.model:
        return model_events(raw, reading.tick)
    return events_of_rows(raw, step.events, step.rule, tick=reading.tick, days=days, first_id=first_id)


def describe_files(batches: Iterable[pa.RecordBatch], *, reading: Reading) -> Iterator[pa.RecordBatch]:
    """Yield what is known of each file numbered in the batches.

    Yields
    ------
    pyarrow.RecordBatch
        Its number, its count of raw rows, the raw schema, with the tick that the rows name in the metadata,
        and how many certain times share a tick that was chosen for them with different ones.
    """
    for number, raw in _raw_files(batches, reading):
        noted = with_noted_tick(raw) if reading.model else raw
        found = {
            "file": number,
            "rows": raw.num_rows,
            "schema": noted.schema.serialize().to_pybytes(),
            "merged": _merged(raw, reading.work[number][1], reading),
        }
        yield pa.RecordBatch.from_pylist([found])


def _merged(raw: pa.Table, steps: tuple[Step, ...], reading: Reading) -> int:
    if reading.tick is None or reading.model:
        return 0
    roundings = []
    for step in steps:
        # A fault here is met again when the events are asked for.
        with suppress(UncertainCepError):
            rounding = step_events(raw, step, reading).rounding
            roundings += [] if rounding is None else [rounding]
    return merged_times(roundings)


def events_of_files(
    batches: Iterable[pa.RecordBatch],
    *,
    reading: Reading,
    days: bool,
    firsts: tuple[int, ...],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Yield the events of the files numbered in the batches.

    Parameters
    ----------
    batches : iterable of RecordBatch
        One column: places in the work.
    days : bool
        Whether a tick that nobody named is a day.
    firsts : tuple of int
        The running number of each file's first row.
    schema : pyarrow.Schema
        Of all files together.
    """
    for number, raw in _raw_files(batches, reading):
        file, steps = reading.work[number]
        for place, step in enumerate(steps):
            first = firsts[number] + place * raw.num_rows
            try:
                events = step_events(raw, step, reading, days=days, first_id=first)
                table = _as(events.table, schema)
            except TraceError as error:
                raise TraceError([replace(fault, file=str(file.path)) for fault in error.faults]) from None
            yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _raw_files(batches: Iterable[pa.RecordBatch], reading: Reading) -> Iterator[tuple[int, pa.Table]]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            file, steps = reading.work[number]
            faults: list[TraceFault] = []
            found = list(raw_tables({file: list(steps)}, reading.options, faults))
            if faults:
                raise TraceError(faults)
            yield from ((number, raw) for _, raw in found)


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        try:
            columns.append(table.column(field.name).cast(field.type))
        except pa.ArrowInvalid as error:
            message = f"it cannot be kept by Spark as {field.type}: {error}"
            raise TraceError(TraceFault(message, column=field.name)) from None
    return pa.table(columns, schema=schema)
