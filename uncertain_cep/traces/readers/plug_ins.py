"""Formats that other packages read: functions with entry points of the group ``uncertain_cep.formats``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import entry_points
from typing import Any, BinaryIO, Final

import pyarrow as pa

from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.traces.readers.event_columns import TIMES
from uncertain_cep.traces.readers.source import Source

__all__ = ["GROUP", "PlugIn", "plug_in"]

GROUP: Final = "uncertain_cep.formats"
"""The entry points of readers: functions of a binary stream, decompressed, that return a table of events."""

_UNITS: Final = ("s", "ms", "us", "ns")


class PlugIn:
    """A reader of another package, in the place of a module of this one.

    The table of its function has the columns type, id, lower and upper, whole units since 1970 or timestamps,
    and any attributes. Its ``unit`` is ``s``, ``ms``, ``us`` (the default) or ``ns``, and its ``tick`` a
    length, by default one unit.
    """

    ATTRIBUTES = pa.schema([])

    def __init__(self, name: str, function: Callable[[BinaryIO], Any]) -> None:
        self._name, self._function = name, function
        self.unit = str(getattr(function, "unit", "us"))
        self.tick = str(getattr(function, "tick", f"1{self.unit}"))
        if self.unit not in _UNITS:
            raise OptionError(
                f"the plug-in for {name} has the unit {self.unit}: use one of {', '.join(_UNITS)}"
            )

    def events(self, source: Source) -> Iterator[pa.RecordBatch]:
        """Yield the events of a file.

        Raises
        ------
        TraceError
            If the plug-in fails, or returns something else.
        """
        try:
            table = pa.table(self._function(source.stream))
            if absent := [name for name in TIMES.names if name not in table.column_names]:
                raise TraceError(f"its table lacks {', '.join(absent)}")
            names = [*TIMES.names, *(name for name in table.column_names if name not in TIMES.names)]
            table = table.select(names)
            for place, field in enumerate(TIMES):
                is_time = pa.types.is_int64(field.type)
                dtype = pa.timestamp(self.unit) if is_time else field.type
                table = table.set_column(place, field.name, _plain(table.column(place)).cast(dtype))
        except MemoryError:
            raise
        except Exception as error:
            raise TraceError(f"the plug-in for {self._name} fails: {error}") from error
        yield from table.to_batches()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column, in UTC without the name of a zone."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp(column.type.unit))
    return column


@cache
def plug_in(name: str) -> PlugIn | None:
    """Return the reader of another package for a format; None if there is none."""
    for point in entry_points(group=GROUP, name=name):
        try:
            function = point.load()
        except Exception as error:
            raise OptionError(
                f"the plug-in for {name}, {point.value}, cannot be imported: {type(error).__name__}: {error}"
            ) from error
        return PlugIn(name, function)
    return None
