"""What runs in Spark's Python workers; nothing here imports pyspark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from uncertain_cep.config import BATCH_ROWS
from uncertain_cep.errors import TraceError, TraceFault, UncertainCepError
from uncertain_cep.executor import Slicing, execute
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.order import non_overlapping
from uncertain_cep.results.ranking import ranked
from uncertain_cep.timedomain import with_noted_tick
from uncertain_cep.traces import intervals_of
from uncertain_cep.traces.formats import FileOptions, TraceFile
from uncertain_cep.traces.intervals import merged_times
from uncertain_cep.traces.reading import Step, model_events, raw_tables
from uncertain_cep.traces.rows import Events, events_of_rows

__all__ = [
    "Reading",
    "add_intervals",
    "describe_files",
    "events_of_files",
    "match_partition",
    "non_overlapping_in_partition",
    "parquet_writer",
    "rank_partition",
    "step_events",
    "unused_name",
    "write_partition",
]


def match_partition(
    batches: Iterable[pa.RecordBatch], *, plan: EvaluationPlan, schema: pa.Schema, slicing: Slicing | None
) -> Iterator[pa.RecordBatch]:
    """Yield the matches among all events of some keys and slices, which come under any names.

    ``schema`` is what the plan was made for; a session may hand out larger string types and another time
    zone. Holds the events of the partition, and one batch of matches at a time.
    """
    received = list(batches)
    if not received:
        return
    table = pa.Table.from_batches(received).rename_columns(schema.names)
    received.clear()
    if table.schema != schema:
        table = table.cast(schema)
    yield from execute(plan, table, slicing=slicing)


def non_overlapping_in_partition(
    batches: Iterable[pa.RecordBatch], *, plan: EvaluationPlan
) -> Iterator[pa.RecordBatch]:
    """Yield those matches of a partition that OUTPUT NON OVERLAPPING keeps.

    Parameters
    ----------
    batches : iterable of RecordBatch
        All matches of some partition attributes' values, under any names.
    """
    received = list(batches)
    if received:
        table = pa.Table.from_batches(received).rename_columns(plan.batch_schema.names)
        yield from non_overlapping(plan, table.cast(plan.batch_schema)).to_batches()


def rank_partition(
    batches: Iterable[pa.RecordBatch],
    *,
    evaluate: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    name: str,
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of `evaluate` with one more column, `name`: the confidence as rankings compare it."""
    for batch in evaluate(batches):
        rank = ranked(np.asarray(batch.column("confidence").to_numpy()))
        yield batch.append_column(name, pa.array(rank))


def unused_name(schema: pa.Schema, name: str) -> str:
    """Return a name that no column of a schema has, be it in capitals: Spark does not tell these apart."""
    taken = {column.lower() for column in schema.names}
    while name.lower() in taken:
        name += "_"
    return name


def write_partition(
    batches: Iterable[pa.RecordBatch],
    *,
    plan: EvaluationPlan,
    schema: pa.Schema,
    slicing: Slicing | None,
    folder: str,
) -> Iterator[pa.RecordBatch]:
    """Write the matches of `match_partition` to a Parquet file in a folder that all machines share.

    Yields the file's name and its number of matches; nothing without matches.
    """
    # A name of its own for each attempt: a task that is tried again must not find a half-written file.
    name = f"part-{uuid4().hex}.parquet"
    rows = 0
    writer: pq.ParquetWriter | None = None
    try:
        for batch in match_partition(batches, plan=plan, schema=schema, slicing=slicing):
            if writer is None:
                writer = parquet_writer(f"{folder}/{name}", plan.output_schema)
            writer.write_batch(batch)
            rows += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    if rows:
        yield pa.RecordBatch.from_pylist([{"name": name, "rows": rows}])


def parquet_writer(path: str, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of matches."""
    # Ids, times and confidences hardly repeat: a dictionary of them costs more than all the rest.
    repeating = [field.name for field in schema if not pa.types.is_primitive(field.type)]
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=repeating)


def add_intervals(
    batches: Iterable[pa.RecordBatch],
    *,
    columns: tuple[str, ...],
    result: tuple[str, ...],
    added: pa.Schema,
    options: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    """Yield batches of raw stamps, their columns renamed, with those that `intervals_of` adds.

    ``result`` is the columns wanted, in order.
    """
    for batch in batches:
        table = intervals_of(pa.Table.from_batches([batch]).rename_columns(columns), **options)
        for field in added:
            place = table.schema.get_field_index(field.name)
            table = table.set_column(place, field, table.column(place).cast(field.type))
        yield from table.select(list(result)).to_batches()


FileWork = tuple[tuple[TraceFile, tuple[Step, ...]], ...]
"""Files and what is made of the rows of each."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read."""

    work: FileWork
    options: FileOptions
    tick: str | None
    """Length of a tick, if one was chosen."""
    own_tick: str | None
    """Length of a tick of the events that are not in the columns of the model already, if there is one."""
    used: frozenset[str] | None = None
    """The attributes to read where the schema lists none; None: all."""


def step_events(
    raw: pa.Table, step: Step, reading: Reading, *, days: bool = True, first_id: int = 1
) -> Events:
    """Return what a table of a schema makes of the rows of a file."""
    if step.model:
        return model_events(raw, reading.tick)
    return events_of_rows(raw, step.events, step.rule, tick=reading.own_tick, days=days, first_id=first_id)


def describe_files(batches: Iterable[pa.RecordBatch], *, reading: Reading) -> Iterator[pa.RecordBatch]:
    """Yield what is known of each file numbered in the batches.

    That is its number, its count of raw rows, the raw schema, with the tick that the rows name in the
    metadata, and how many certain times share a tick that was chosen for them with different ones.
    """
    for number, raw in _raw_files(batches, reading):
        steps = reading.work[number][1]
        noted = with_noted_tick(raw) if steps[0].model else raw
        found = {
            "file": number,
            "rows": raw.num_rows,
            "schema": noted.schema.serialize().to_pybytes(),
            "merged": _merged(raw, steps, reading),
        }
        yield pa.RecordBatch.from_pylist([found])


def _merged(raw: pa.Table, steps: tuple[Step, ...], reading: Reading) -> int:
    if reading.own_tick is None or steps[0].model:
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
    """Yield the events of the files numbered in the batches, of the schema of all files together.

    ``days`` says whether a tick that nobody named is a day; ``firsts`` is the running number of each file's
    first row.
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
            found = list(raw_tables({file: list(steps)}, reading.options, faults, used=reading.used))
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
