"""Faults of single rows: which rows of a column are bad, and what stands there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from uncertain_cep.config.limits import FAULT_LIMIT
from uncertain_cep.errors import TraceFault

__all__ = [
    "IN_ORDER",
    "ROW",
    "BoolArray",
    "IntArray",
    "Values",
    "renumbered",
    "row_faults",
    "shown",
    "unreadable_rows",
]

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Values: TypeAlias = "pa.ChunkedArray | pa.Array | IntArray"


ROW: Final = "\0row"
"""In a table of raw rows, the column of their rows or lines in the file, from 0, where these are others."""

IN_ORDER: Final = {b"order": b"of time"}
"""The metadata of that column's field where the rows are lines of a log, which stand in the order of time."""


def row_faults(
    bad: BoolArray,
    message: str,
    *,
    column: str | None = None,
    values: Values | None = None,
    limit: int = FAULT_LIMIT,
) -> list[TraceFault]:
    """Return a fault for each marked row, (n,) bool, with its value; beyond ``limit`` one counts the rest."""
    rows = np.flatnonzero(bad)
    faults = []
    for row in rows[:limit].tolist():
        value = None if values is None else shown(values[row])
        faults.append(TraceFault(message, row=row + 1, column=column, value=value))
    if len(rows) > limit:
        more = len(rows) - limit
        faults.append(TraceFault(f"the same in {more:,} more rows: {message}", column=column, count=more))
    return faults


def renumbered(faults: Sequence[TraceFault], rows: IntArray) -> list[TraceFault]:
    """Return faults of selected rows by the numbers in the whole, (m,) int64 from 0, that these rows have."""
    return [
        fault if fault.row is None else replace(fault, row=int(rows[fault.row - 1]) + 1) for fault in faults
    ]


_UNITS_OF_DATES: Final = {pa.date32(): "days", pa.date64(): "ms"}


def shown(value: Any) -> str:
    """Return a value as it is shown in a fault: short, text in quotes."""
    try:
        plain = value.as_py() if isinstance(value, pa.Scalar) else value
    except OverflowError:
        # A year that Python's times do not have.
        return f"{value.value} {_UNITS_OF_DATES.get(value.type) or value.type.unit}"
    text = "null" if plain is None else repr(plain) if isinstance(plain, str) else str(plain)
    return text if len(text) <= 80 else f"{text[:77]}..."


def unreadable_rows(
    values: pa.ChunkedArray | pa.Array, read: Callable[[pa.Array], object], limit: int
) -> list[int]:
    """Return the first rows, counted from 0, whose value ``read`` refuses, by halving.

    ``read`` takes a part of the values and raises pyarrow.ArrowInvalid if one of them is bad. For an error's
    message only: O(limit log n) calls.
    """
    bad_rows: list[int] = []
    pending = [(0, len(values))]
    while pending and len(bad_rows) < limit:
        start, stop = pending.pop()
        try:
            read(values.slice(start, stop - start))
        except pa.ArrowInvalid:
            if stop - start == 1:
                bad_rows.append(start)
            else:
                middle = (start + stop) // 2
                pending += [(middle, stop), (start, middle)]
    return bad_rows
