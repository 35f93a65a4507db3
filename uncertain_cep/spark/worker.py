"""The functions that run in Spark's Python workers; nothing here imports pyspark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from uncertain_cep.candidates.span_times import check_spans
from uncertain_cep.executor import Slicing, execute
from uncertain_cep.occurrence.probability_rows import merged_rows
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.order import non_overlapping
from uncertain_cep.results.ranking import ranked
from uncertain_cep.spark.task_diagnostics import TaskDiagnostics
from uncertain_cep.traces.held_rows import naming_no_rows

__all__ = [
    "check_spans_of_partition",
    "match_partition",
    "non_overlapping_in_partition",
    "parquet_writer",
    "rank_groups",
    "rank_partition",
    "unused_name",
    "weigh_groups_of_parts",
    "write_batches",
    "write_partition",
]

_WRITTEN: Final = pa.schema([("name", pa.string()), ("rows", pa.int64()), ("undecided", pa.int64())])


def match_partition(
    batches: Iterable[pa.RecordBatch],
    *,
    plan: EvaluationPlan,
    schema: pa.Schema,
    slicing: Slicing | None,
    diagnostics: TaskDiagnostics | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the matches among all events of some keys and slices, whose columns have any names.

    ``schema`` is that of the plan; a session may hand over larger string types and another time zone. Holds
    the events of the partition, and one batch of matches at a time.
    """
    received = list(batches)
    if not received:
        return
    table = pa.Table.from_batches(received).rename_columns(schema.names)
    received.clear()
    if table.schema != schema:
        table = table.cast(schema)
    with naming_no_rows(plan.names, plan.partition_attributes):
        yield from execute(plan, table, slicing=slicing, diagnostics=diagnostics)


def check_spans_of_partition(
    batches: Iterable[pa.RecordBatch], *, plan: EvaluationPlan, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield nothing; a TraceError says which events cannot begin and end as their columns say."""
    for batch in batches:
        table = pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)
        with naming_no_rows(plan.names, plan.partition_attributes):
            check_spans(plan, table)
    yield from ()


def non_overlapping_in_partition(
    batches: Iterable[pa.RecordBatch], *, plan: EvaluationPlan
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of a partition that OUTPUT NON OVERLAPPING keeps.

    Parameters
    ----------
    batches : iterable of RecordBatch
        All matches of some values of the partition attributes; columns have any names.
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


def weigh_groups_of_parts(
    batches: Iterable[pa.RecordBatch], *, plan: EvaluationPlan
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the groups of some parts.

    Parameters
    ----------
    batches : iterable of RecordBatch
        All matches of these parts, of ``plan.batch_schema``; columns have any names.
    """
    blobs: dict[int, list[bytes]] = {}
    for batch in batches:
        for part, blob in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
            blobs.setdefault(part, []).append(blob)
    while blobs:
        yield merged_rows(plan, *blobs.popitem())


def rank_groups(
    batches: Iterable[pa.RecordBatch],
    *,
    evaluate: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    name: str,
    probability: str,
) -> Iterator[pa.RecordBatch]:
    """Yield the groups of `evaluate` with one more column, `name`: probabilities as rankings compare them."""
    for batch in evaluate(batches):
        column = batch.column(probability)
        rank = ranked(np.asarray(column.fill_null(0.0).to_numpy()))
        yield batch.append_column(name, pa.array(rank, mask=np.asarray(column.is_null())))


def unused_name(schema: pa.Schema, name: str) -> str:
    """Return a name that no column of a schema has, whatever its case, which Spark ignores."""
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
    last_tick: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Write the matches of `match_partition` to a Parquet file in a folder that all machines share.

    Yields the name of the file, None without matches, its number of matches, and that of undecided ones, for
    which ``last_tick`` is the last tick of any event if there is no known end.
    """
    diagnostics = TaskDiagnostics(last_tick)
    matches = match_partition(batches, plan=plan, schema=schema, slicing=slicing, diagnostics=diagnostics)
    name, rows = write_batches(matches, plan.output_schema, folder)
    yield pa.RecordBatch.from_pylist(
        [{"name": name, "rows": rows, "undecided": diagnostics.left_out}], _WRITTEN
    )


def write_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: str
) -> tuple[str | None, int]:
    """Write matches to a new Parquet file; return its name, None without matches, and their number."""
    # Each attempt has its own name: a task that is tried again must not find a half-written file.
    name = f"part-{uuid4().hex}.parquet"
    rows = 0
    writer: pq.ParquetWriter | None = None
    try:
        for batch in batches:
            if writer is None:
                writer = parquet_writer(f"{folder}/{name}", schema)
            writer.write_batch(batch)
            rows += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    return (None if writer is None else name), rows


def parquet_writer(path: str, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of matches."""
    # Ids, times and confidences rarely repeat: dictionaries of them would cost more than all the rest.
    repeating = [field.name for field in schema if not pa.types.is_primitive(field.type)]
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=repeating)
