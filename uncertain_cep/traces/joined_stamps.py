"""Stamps that stand in several columns, such as a day and a time of day, as one column of text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault

__all__ = ["joined_name", "joined_names", "with_joined"]

Joined = Sequence[tuple[str, tuple[str, ...]]]


def joined_name(parts: Sequence[str]) -> str:
    """Return the name of the column that columns are put together in."""
    return " ".join(parts)


def joined_names(joined: Joined, present: Collection[str]) -> list[str]:
    """Return the columns that can be put together of those present."""
    return [name for name, parts in joined if name not in present and all(part in present for part in parts)]


def with_joined(table: pa.Table, joined: Joined) -> pa.Table:
    """Return a table with the texts of some columns put together, a space between them.

    A stamp of which a part is null is null. Dates and times of day are written as in ISO 8601. A TraceError
    says that a column holds something else, or that the table has a column of the new name.
    """
    for name, parts in joined:
        if not all(part in table.column_names for part in parts):
            continue
        if name in table.column_names:
            message = f"time puts {' and '.join(parts)} together in a column of this name: rename the file's"
            raise TraceError(TraceFault(message, column=name))
        texts = [_as_text(table.column(part), part) for part in parts]
        table = table.append_column(name, pc.binary_join_element_wise(*texts, " "))
    return table


def _as_text(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type) or pa.types.is_date64(column.type):
        # Frames keep days as the times at which they begin.
        days = column.cast(pa.date32())
        if pc.any(pc.not_equal(days.cast(column.type), column)).as_py():
            message = "it holds times of day, too: name it alone in time, or the column of days"
            raise TraceError(TraceFault(message, column=name))
        column = days
    try:
        return column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        message = f"its type is {column.type}, which cannot be a part of a time"
        raise TraceError(TraceFault(message, column=name)) from None
