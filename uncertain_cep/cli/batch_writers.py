"""Batches of matches as Parquet, CSV or JSON lines, one batch in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from uncertain_cep.cli.arguments import Compression, Format
from uncertain_cep.results.shown import as_text

__all__ = ["write_batches"]

BatchWriter = Callable[[pa.RecordBatch], None]


def write_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    sink: Path | BinaryIO,
    format_name: Format,
    compression: Compression | None = None,
) -> int:
    """Write batches of one schema to a file or an open stream and return the number of rows.

    CSV and JSON hold times as ISO 8601 text, in UTC with a Z if the column has a time zone. In CSV lists and
    objects are JSON text.
    """
    rows = 0
    with ExitStack() as closing:
        stream: Any = closing.enter_context(sink.open("wb")) if isinstance(sink, Path) else sink
        if compression is not None:
            stream = closing.enter_context(pa.CompressedOutputStream(stream, compression))
        write = closing.enter_context(_writer(schema, stream, format_name))
        for batch in batches:
            write(batch)
            if not isinstance(sink, Path):
                # What else is printed on the same terminal begins a line.
                sink.flush()
            rows += batch.num_rows
    return rows


@contextmanager
def _writer(schema: pa.Schema, stream: BinaryIO, format_name: Format) -> Iterator[BatchWriter]:
    if format_name == "parquet":
        with pq.ParquetWriter(stream, schema, compression="zstd") as parquet:
            yield parquet.write_batch
    elif format_name == "csv":
        with pyarrow.csv.CSVWriter(stream, _flat(schema.empty_table()).schema) as writer:
            yield lambda batch: writer.write_table(_flat(pa.Table.from_batches([batch])))
    else:
        yield lambda batch: _write_json(batch, stream)


def _write_json(batch: pa.RecordBatch, stream: BinaryIO) -> None:
    table = as_text(pa.Table.from_batches([batch]))
    for number, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            # JSON has no NaN and no infinity.
            column = table.column(number)
            table = table.set_column(number, field, pc.if_else(pc.is_finite(column), column, None))
    lines = (json.dumps(row, ensure_ascii=False, default=_plain) for row in table.to_pylist())
    stream.write("".join(f"{line}\n" for line in lines).encode())


def _flat(table: pa.Table) -> pa.Table:
    """Return a table with times as ISO 8601 text, and lists and what else CSV does not know as JSON text."""
    table = as_text(table)
    for number, field in enumerate(table.schema):
        if pa.types.is_list(field.type) and _is_written(field.type.value_type):
            lists = table.column(number).combine_chunks()
            distinct = lists.flatten().dictionary_encode()
            written = [
                json.dumps(value, ensure_ascii=False, default=_plain)
                for value in distinct.dictionary.to_pylist()
            ]
            texts = pa.array(written, pa.string()).take(distinct.indices)
            starts = lists.offsets.to_numpy() - lists.offsets[0].as_py() if len(lists) else [0]
            joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(starts, pa.int32()), texts), ", ")
            column = pc.binary_join_element_wise("[", joined, "]", "")
            table = table.set_column(number, field.name, column)
        elif not _is_written(field.type):
            texts = pa.array(map(_json_text, table.column(number).to_pylist()), pa.string())
            table = table.set_column(number, field.name, texts)
    return table


def _is_written(dtype: pa.DataType) -> bool:
    """Return whether Arrow writes any values of a type as CSV."""
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype) or pa.types.is_fixed_size_binary(dtype):
        return False
    try:
        column = pa.table({"values": pa.nulls(1, dtype)})
        pyarrow.csv.write_csv(column, pa.BufferOutputStream())
    except pa.ArrowException:
        return False
    return True


def _json_text(value: Any) -> str | None:
    """Return a value as JSON; text, which needs no quotes in a column of its own, as it is."""
    if isinstance(value, bytes):
        return _plain(value)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    """Return a value that JSON does not have as text."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
