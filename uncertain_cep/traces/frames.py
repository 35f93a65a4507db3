"""Frames of rows, of whatever library, as tables."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.timeline.domain import Names, with_noted_tick

__all__ = [
    "FRAMES",
    "as_arrow",
    "event_table",
    "is_whole_decimal",
    "library_of",
    "like",
    "takeable",
    "takeable_type",
    "whole_numbers",
]

FRAMES: Final = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars frame, or anything else "
    "with the Arrow PyCapsule interface, such as a DuckDB relation"
)
"""What is taken for events that are in this process."""

_LIBRARIES: Final = ("pyarrow", "pandas", "polars", "pyspark")
_UNHELD: Final = (pa.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError)
"""What the conversion of a column that Arrow cannot hold ends with."""

_INT64: Final = range(-(2**63), 2**63)


def library_of(frame: object) -> str:
    """Return the library whose kind of object this is, also of a class derived from it; else "".

    >>> library_of(pa.table({}))
    'pyarrow'
    """
    roots = (cls.__module__.partition(".")[0] for cls in type(frame).__mro__)
    return next((root for root in roots if root in _LIBRARIES), "")


def as_arrow(frame: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Return rows as a table, of these columns only as far as they are there.

    Parameters
    ----------
    frame : object
        One of :data:`FRAMES`. A Polars LazyFrame is collected, a reader read to its end.
    columns : sequence of str, optional
        Default: all.

    A TraceError says that two columns have one name, or that Arrow cannot hold what is in one; an
    OptionError, that it is another kind of object.
    """
    table = _table_of(frame, columns)
    _check_names(table.column_names, columns)
    if columns is not None:
        table = table.select([name for name in columns if name in table.column_names])
    return takeable(table)


def takeable(table: pa.Table) -> pa.Table:
    """Return a table with columns from which Arrow takes rows: views and runs of values written out."""
    for place, field in enumerate(table.schema):
        dtype = takeable_type(field.type)
        if dtype != field.type:
            column = table.column(place)
            runs = pa.types.is_run_end_encoded(field.type)
            column = pc.run_end_decode(column) if runs else column.cast(dtype)
            table = table.set_column(place, field.with_type(dtype), column)
    return table


def takeable_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type that a column has in `takeable`."""
    if pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_binary_view(dtype):
        return pa.binary()
    if pa.types.is_run_end_encoded(dtype):
        return takeable_type(dtype.value_type)
    if isinstance(dtype, pa.BaseExtensionType):
        storage = takeable_type(dtype.storage_type)
        return dtype if storage == dtype.storage_type else storage
    if pa.types.is_struct(dtype):
        return pa.struct([field.with_type(takeable_type(field.type)) for field in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(takeable_type(dtype.value_type)))
    if pa.types.is_large_list(dtype):
        return pa.large_list(dtype.value_field.with_type(takeable_type(dtype.value_type)))
    return dtype


def like(table: pa.Table, frame: object) -> Any:
    """Return a table as the kind of frame that was given; as it is where that is none of pandas or Polars."""
    library = library_of(frame)
    if library == "pandas":
        return table.to_pandas()
    if library == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table


def _table_of(frame: Any, columns: Sequence[str] | None) -> pa.Table:
    kind = library_of(frame)
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatchReader):
        return _read(frame, frame.read_all)
    if kind == "polars" and hasattr(frame, "collect"):
        frame = _read(frame, frame.collect)
    if kind == "polars" and hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        present = [name for name in frame.columns if columns is None or name in columns]
        return _converted(frame, present, lambda names: frame.select(names).to_arrow())
    if kind == "pandas" and hasattr(frame, "columns"):
        _check_names(list(frame.columns), columns)
        present = [name for name in frame.columns if columns is None or name in columns]
        return _converted(
            frame,
            present,
            lambda names: pa.Table.from_pandas(frame[names], preserve_index=False).replace_schema_metadata(
                None
            ),
        )
    if kind == "pyarrow" and hasattr(frame, "to_table"):
        return _read(frame, frame.to_table)
    if kind in ("", "pyarrow") and hasattr(frame, "__arrow_c_stream__"):
        return _read(frame, lambda: pa.RecordBatchReader.from_stream(frame).read_all())
    if kind == "" and hasattr(frame, "__arrow_c_array__"):
        return _read(frame, lambda: pa.Table.from_batches([pa.record_batch(frame)]))
    give = f"give {FRAMES}"
    if isinstance(frame, str | os.PathLike):
        give = f"read_traces makes one of the events in files; or {give}"
    raise OptionError(f"a {type(frame).__name__} is no frame of rows: {give}")


def _read(frame: Any, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (MemoryError, OptionError, TraceError):
        raise
    except Exception as error:
        raise TraceError(f"the {type(frame).__name__} could not be read: {error}") from error


def _converted(frame: Any, names: list[Any], convert: Callable[[list[Any]], pa.Table]) -> pa.Table:
    """Return columns of a DataFrame as a table, or an error that names the column that Arrow cannot hold."""
    try:
        return convert(names)
    except MemoryError:
        raise
    except _UNHELD:
        faults = []
        for name in names:
            try:
                convert([name])
            except MemoryError:
                raise
            except _UNHELD as error:
                said = "; ".join(str(part) for part in error.args) or type(error).__name__
                dtype = frame[name].dtype
                what = (
                    "it holds values of different types"
                    if str(dtype) == "object"
                    else f"Arrow has no {dtype}"
                )
                message = f"{what}: convert the column, or leave it out ({said})"
                faults.append(TraceFault(message, column=str(name)))
        if not faults:
            raise
        raise TraceError(faults) from None


def _check_names(names: Sequence[Any], chosen: Sequence[str] | None) -> None:
    if len(set(map(str, names))) == len(names):
        return
    twice = [
        str(name)
        for name, count in Counter(map(str, names)).items()
        if count > 1 and (chosen is None or name in chosen)
    ]
    if twice:
        message = "there are several columns of this name: rename them, or leave out all but one"
        raise TraceError([TraceFault(message, column=name) for name in twice])


def event_table(events: Any, names: Names) -> pa.Table:
    """Return events in this process as a table whose schema notes their tick.

    Times of any exact type of whole numbers are int64 then, and so are ids that were decimals. An id or type
    column that holds nothing, as in an empty frame, is text.

    Parameters
    ----------
    events : object
        One of :data:`FRAMES`.
    names : Names

    Raises
    ------
    TraceError
        If a column cannot be used, or the events have several ticks.
    OptionError
        If it is another kind of object.
    """
    table = as_arrow(events)
    for name in (names.type, names.id):
        place = table.schema.get_field_index(name)
        if place >= 0 and pa.types.is_null(_plain(table.schema.field(place).type)):
            table = table.set_column(place, name, pa.nulls(table.num_rows, pa.string()))
    whole = [names.lower, names.upper]
    if names.id in table.column_names and is_whole_decimal(table.schema.field(names.id).type):
        whole.append(names.id)
    return with_noted_tick(whole_numbers(table, whole), names)


def whole_numbers(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return a table that has integers of other types, and decimals without places, as int64.

    Raises
    ------
    TraceError
        If a number is beyond int64.
    """
    for name in dict.fromkeys(columns):
        place = table.schema.get_field_index(name)
        if place < 0:
            continue
        dtype = table.schema.field(place).type
        if pa.types.is_int64(dtype) or not (pa.types.is_integer(dtype) or is_whole_decimal(dtype)):
            continue
        column = table.column(place)
        try:
            whole = column.cast(pa.int64())
        except pa.ArrowInvalid:
            row, value = next(
                (row, value)
                for row, value in enumerate(column.to_pylist())
                if value is not None and int(value) not in _INT64
            )
            message = "a whole number beyond 64 bits with a sign: is its unit right?"
            raise TraceError(TraceFault(message, row=row + 1, column=name, value=str(value))) from None
        table = table.set_column(place, name, whole)
    return table


def is_whole_decimal(dtype: pa.DataType) -> bool:
    """Tell whether a column holds decimal numbers without places after the point."""
    return bool(pa.types.is_decimal(dtype)) and dtype.scale == 0


def _plain(dtype: pa.DataType) -> pa.DataType:
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype
