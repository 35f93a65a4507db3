"""Columns of lengths of time, such as clock offsets."""

from __future__ import annotations

import pyarrow as pa

from uncertain_cep.durations import UNIT_NANOSECONDS, unit_nanoseconds
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray
from uncertain_cep.traces.instants import StampKind, counts_of

__all__ = ["lengths_of"]


def lengths_of(values: pa.ChunkedArray, column: str, unit: str | None) -> tuple[IntArray, BoolArray]:
    """Return a column of numbers or durations as nanoseconds.

    Parameters
    ----------
    values : (n,) chunked array
    column : str
        For the message of an error.
    unit : str or None
        Unit of the numbers; None for ticks, which stay ticks.

    Returns
    -------
    lengths : (n,) int64
        0 where there is none.
    present : (n,) bool
        Where there is one.

    Raises
    ------
    TraceError
        If the column holds something else, or a length beyond 292 years.
    """
    length = None if unit is None else unit_nanoseconds(unit)
    if pa.types.is_duration(values.type):
        length = UNIT_NANOSECONDS[values.type.unit]
        values = values.cast(pa.int64())
    numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if not numeric and not pa.types.is_null(values.type):
        raise TraceError(
            TraceFault(f"its type is {values.type}, but a length of time is a number", column=column)
        )
    step = length
    if length is not None and pa.types.is_floating(values.type):
        step = min(length, UNIT_NANOSECONDS["us"])
    counts, present = counts_of(values, column, StampKind(step), unit)
    factor = step or 1
    if len(counts) and max(abs(int(counts.min())), abs(int(counts.max()))) * factor >= 2**63:
        raise TraceError(
            TraceFault("a length of time is beyond 292 years: is its unit right?", column=column)
        )
    return counts * factor, present
