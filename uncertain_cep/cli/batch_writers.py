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

    CSV and JSON hold times as ISO 8601 text, in UTC with a Z if the column has a time zone. In CSV lists are
    JSON text.
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
    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in table.to_pylist())
    stream.write("".join(f"{line}\n" for line in lines).encode())


def _flat(table: pa.Table) -> pa.Table:
    """Return a table with times as ISO 8601 text and lists as JSON text, for CSV knows neither."""
    table = as_text(table)
    for number, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            lists = table.column(number).combine_chunks()
            distinct = lists.flatten().dictionary_encode()
            written = [
                json.dumps(value, ensure_ascii=False, default=str)
                for value in distinct.dictionary.to_pylist()
            ]
            texts = pa.array(written, pa.string()).take(distinct.indices)
            starts = lists.offsets.to_numpy() - lists.offsets[0].as_py() if len(lists) else [0]
            joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(starts, pa.int32()), texts), ", ")
            column = pc.binary_join_element_wise("[", joined, "]", "")
            table = table.set_column(number, field.name, column)
    return table
