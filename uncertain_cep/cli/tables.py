"""A few rows of a table as aligned text."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from uncertain_cep.cli.batch_writers import as_text

__all__ = ["shown_rows"]

_TRAILING_ZEROS: Final = re.compile(r"(?:\.0+|(\.\d*[1-9])0+)(Z?)$")


def shown_rows(table: pa.Table, indent: str = "  ") -> str:
    """Return a table as text: a line of names, a line for each row, numbers to the right."""
    columns = []
    for field, column in zip(table.schema, as_text(table).columns, strict=True):
        cells = [field.name, *map(_cell, column.to_pylist())]
        if pa.types.is_timestamp(field.type):
            cells[1:] = [_TRAILING_ZEROS.sub(r"\1\2", cell) for cell in cells[1:]]
        width = max(map(len, cells))
        numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        columns.append([cell.rjust(width) if numeric else cell.ljust(width) for cell in cells])
    return "\n".join(indent + "  ".join(row).rstrip() for row in zip(*columns, strict=True))


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    # A value of somebody's log must not steer the reader's terminal.
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
