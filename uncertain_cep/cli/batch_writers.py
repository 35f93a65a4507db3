"""Batches of matches as Parquet, CSV or JSON lines, one batch in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from uncertain_cep.cli.arguments import Compression, Format
from uncertain_cep.results.display import Unit
from uncertain_cep.results.text_files import text_of

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
