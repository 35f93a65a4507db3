"""Frames of rows, of whatever library, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from uncertain_cep.errors import OptionError, TraceError

__all__ = ["as_arrow", "library_of"]


def as_arrow(frame: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a pyarrow, pandas or Polars frame as a table, of these columns only as far as they are there.

    Raises
    ------
    TraceError
        If a column holds values of different types.
    OptionError
        If it is another kind of object.
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
