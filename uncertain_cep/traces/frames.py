"""Frames of rows, of whatever library, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.timedomain import Names, with_noted_tick

__all__ = ["as_arrow", "event_table", "library_of"]


def as_arrow(frame: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a pyarrow, pandas or Polars frame as a table, of these columns only as far as they are there.

    A TraceError says that a column holds values of different types; an OptionError, that it is another
    object.
    """
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return frame if columns is None else frame.select([c for c in columns if c in frame.column_names])
    kind = library_of(frame)
    if kind == "polars":
        if not hasattr(frame, "to_arrow"):
            raise OptionError("a LazyFrame has no rows yet: collect() it first")
        wanted = frame if columns is None else frame.select([c for c in columns if c in frame.columns])
        return wanted.to_arrow()
    if kind == "pandas":
        wanted = frame if columns is None else frame[[c for c in columns if c in frame.columns]]
        try:
            return pa.Table.from_pandas(wanted, preserve_index=False).replace_schema_metadata(None)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            said = "; ".join(map(str, error.args))
            raise TraceError(f"a column of the DataFrame holds values of different types: {said}") from None
    raise OptionError(f"a {type(frame).__name__} is no pyarrow, pandas or Polars frame")


def library_of(frame: object) -> str:
    """Return the name of the library whose kind of frame this is."""
    return type(frame).__module__.partition(".")[0]


def event_table(events: Any, names: Names) -> pa.Table:
    """Return the events of a reader, or what `as_arrow` takes, as a table whose schema notes their tick."""
    if isinstance(events, pa.RecordBatchReader):
        return with_noted_tick(events.read_all(), names)
    return with_noted_tick(_with_texts(as_arrow(events), names), names)


def _with_texts(table: pa.Table, names: Names) -> pa.Table:
    """Return a table whose type and id columns are text if they hold nothing, as in an empty frame."""
    for name in (names.type, names.id):
        place = table.schema.get_field_index(name)
        if place < 0:
            continue
        found = table.schema.field(place).type
        if pa.types.is_null(found.value_type if pa.types.is_dictionary(found) else found):
            table = table.set_column(place, name, pa.nulls(table.num_rows, pa.string()))
    return table
