"""What runs in Spark's Python workers; nothing here imports pyspark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from uncertain_cep.executor import Slicing, execute
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.order import non_overlapping
from uncertain_cep.results.ranking import ranked
from uncertain_cep.traces import intervals_of

__all__ = [
    "add_intervals",
    "choose_in_partition",
    "match_partition",
    "parquet_writer",
    "rank_partition",
    "unused_name",
    "write_partition",
]


def match_partition(
    batches: Iterable[pa.RecordBatch], *, plan: EvaluationPlan, schema: pa.Schema, slicing: Slicing | None
) -> Iterator[pa.RecordBatch]:
    """Yield the matches among the events of one partition.

    Parameters
    ----------
    batches : iterable of RecordBatch
        All events of some keys and slices, under any names.
    schema : pyarrow.Schema
        What the plan was made for; a session may hand out larger string types and another time zone.

    Notes
    -----
    Holds the events of the partition, and one batch of matches at a time.
    """
    received = list(batches)
    if not received:
        return
    table = pa.Table.from_batches(received).rename_columns(schema.names)
    received.clear()
    if table.schema != schema:
        table = table.cast(schema)
    yield from execute(plan, table, slicing=slicing)


def choose_in_partition(
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
    """Yield the matches that ``evaluate`` yields with one more column: the confidence as rankings compare it.

    Parameters
    ----------
    evaluate : callable
        Such as `match_partition` with its options.
    name : str
        Of the column.
    """
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
    """Write the matches among the events of one partition to a Parquet file.

    Parameters
    ----------
    batches, plan, schema, slicing
        As for `match_partition`.
    folder : str
        A path that this machine shares with the others.

    Yields
    ------
    pyarrow.RecordBatch
        The file's name and its number of matches; nothing without matches.
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
    """Yield batches of raw stamps with their interval columns.

    Parameters
    ----------
    columns : tuple of str
        What their columns are called.
    result : tuple of str
        The columns wanted, in order.
    added : pyarrow.Schema
        The new ones.
    options : dict
        Of `intervals_of`.
    """
    for batch in batches:
        table = intervals_of(pa.Table.from_batches([batch]).rename_columns(columns), **options)
        for field in added:
            place = table.schema.get_field_index(field.name)
            table = table.set_column(place, field, table.column(place).cast(field.type))
        yield from table.select(list(result)).to_batches()
