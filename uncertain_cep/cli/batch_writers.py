"""Batches of matches as Parquet, CSV or JSON lines, one batch in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from uncertain_cep.cli.arguments import Compression, Format
from uncertain_cep.results.display import Unit, as_csv_text, as_json_text, plain_text

__all__ = ["write_batches"]

BatchWriter = Callable[[pa.RecordBatch], None]


def write_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    sink: Path | BinaryIO,
    format_name: Format,
    compression: Compression | None = None,
    unit: Unit | None = None,
) -> int:
    """Write batches of one schema to a file or an open stream and return the number of rows.

    In text, ranges have the digits of a ``unit``, see :func:`as_text`.

    CSV and JSON hold times as ISO 8601 text, in UTC with a Z if the column has a time zone. In CSV lists and
    objects are JSON text.
    """
    rows = 0
    with ExitStack() as closing:
        stream: Any = closing.enter_context(sink.open("wb")) if isinstance(sink, Path) else sink
        if compression is not None:
            stream = closing.enter_context(pa.CompressedOutputStream(stream, compression))
        write = closing.enter_context(_writer(schema, stream, format_name, unit))
        for batch in batches:
            write(batch)
            if not isinstance(sink, Path):
                # What else is printed on the same terminal begins a line.
                sink.flush()
            rows += batch.num_rows
    return rows


@contextmanager
def _writer(
    schema: pa.Schema, stream: BinaryIO, format_name: Format, unit: Unit | None
) -> Iterator[BatchWriter]:
    if format_name == "parquet":
        with pq.ParquetWriter(stream, schema, compression="zstd") as parquet:
            yield parquet.write_batch
    elif format_name == "csv":
        with ExitStack() as closing:
            writers: list[pyarrow.csv.CSVWriter] = []

            def write(table: pa.Table) -> None:
                # The line of names goes out with the first matches: an error before leaves nothing behind.
                if not writers:
                    writers.append(closing.enter_context(pyarrow.csv.CSVWriter(stream, table.schema)))
                writers[0].write_table(table)

            yield lambda batch: write(as_csv_text(pa.Table.from_batches([batch]), unit))
            if not writers:
                write(as_csv_text(schema.empty_table(), unit))
    else:
        yield lambda batch: _write_json(batch, stream, unit)


def _write_json(batch: pa.RecordBatch, stream: BinaryIO, unit: Unit | None) -> None:
    rows = as_json_text(pa.Table.from_batches([batch]), unit).to_pylist()
    lines = (json.dumps(row, ensure_ascii=False, default=plain_text) for row in rows)
    stream.write("".join(f"{line}\n" for line in lines).encode())
