"""Batches of matches as Parquet, CSV or JSON lines, one batch in memory at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from uncertain_cep.cli.arguments import Compression, Format, compression_of_name
from uncertain_cep.cli.outputs import result_written_aside
from uncertain_cep.cli.progress import check_stdout
from uncertain_cep.results.display import Unit
from uncertain_cep.results.text_files import text_of

__all__ = ["write_batches", "write_table"]

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

    CSV and JSON are the text of :func:`text_of`, whose ranges have the digits of a ``unit``.
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


def write_table(table: pa.Table, out: str | None, format_name: Format, *, overwrite: bool) -> None:
    """Write a table to a file, written aside first, or to stdout if it is None."""
    if out is None:
        check_stdout()
        write_batches(table.to_batches(), table.schema, sys.stdout.buffer, format_name)
        return
    with result_written_aside(Path(out), overwrite=overwrite) as aside:
        write_batches(table.to_batches(), table.schema, aside, format_name, compression_of_name(out))


@contextmanager
def _writer(
    schema: pa.Schema, stream: BinaryIO, format_name: Format, unit: Unit | None
) -> Iterator[BatchWriter]:
    if format_name == "parquet":
        with pq.ParquetWriter(stream, schema, compression="zstd") as parquet:
            yield parquet.write_batch
        return
    # The line of names goes out with the first matches: an error before leaves nothing behind.
    header = format_name == "csv"

    def write(batch: pa.RecordBatch) -> None:
        nonlocal header
        stream.write(text_of(pa.Table.from_batches([batch]), format_name, unit, header=header))
        header = False

    yield write
    if header:
        stream.write(text_of(schema.empty_table(), format_name, unit, header=True))
