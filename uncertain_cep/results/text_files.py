"""The text of CSV files and of files of JSON lines, the same whoever writes it: this process or Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import pyarrow as pa
import pyarrow.csv

from uncertain_cep.results.display import Unit, as_csv_text, as_json_text, plain_text

__all__ = ["TEXT_COLUMN", "TextFormat", "text_batches", "text_of"]

TextFormat = Literal["csv", "json"]

TEXT_COLUMN: Final = "value"
"""The column of `text_batches`."""


def text_of(
    table: pa.Table, format_name: TextFormat, unit: Unit | None = None, *, header: bool = False
) -> bytes:
    """Return the rows of a table as lines of text, in CSV with a line of names before them if ``header``.

    Times are ISO 8601 text, in UTC with a Z if the column has a time zone; ranges have the digits of a
    ``unit``, see :func:`as_text`. In CSV lists and objects are JSON text.
    """
    if format_name == "csv":
        sink = pa.BufferOutputStream()
        options = pyarrow.csv.WriteOptions(include_header=header)
        pyarrow.csv.write_csv(as_csv_text(table, unit), sink, options)
        text: bytes = sink.getvalue().to_pybytes()
        return text
    rows = as_json_text(table, unit).to_pylist()
    lines = (json.dumps(row, ensure_ascii=False, default=plain_text) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def text_batches(
    batches: Iterable[pa.RecordBatch], *, schema: pa.Schema, format_name: TextFormat, unit: Unit | None
) -> Iterator[pa.RecordBatch]:
    """Yield the text of a file of batches, whose columns have other names: many lines in each row.

    The last line of a row has no line break. A CSV file has a line of names, even without rows.
    """
    header = format_name == "csv"
    for batch in batches:
        if batch.num_rows:
            table = pa.Table.from_batches([batch]).rename_columns(schema.names)
            yield _row(text_of(table, format_name, unit, header=header))
            header = False
    if header:
        yield _row(text_of(schema.empty_table(), format_name, unit, header=True))


def _row(text: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({TEXT_COLUMN: [text.removesuffix(b"\n").decode()]})
