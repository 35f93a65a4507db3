"""Columns of numbers that a few rows make columns of text: an error about their kind names such a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import Fault, QueryError, TraceFault
from uncertain_cep.expressions.masks import mask_of
from uncertain_cep.plurals import shortened

__all__ = ["Spoiled", "naming_spoiled_rows", "spoiled_rows"]

_LONGEST: Final = 40
_NUMBER: Final = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"

_MOSTLY_NUMBERS: Final = 0.5
"""Share of the values of a column of text that are numbers, from which on the others are taken for faults."""


@contextmanager
def naming_spoiled_rows(
    table: pa.Table | None, placed: Callable[[TraceFault], TraceFault] | None = None
) -> Iterator[None]:
    """Have a `QueryError` say which row keeps a column from being one of numbers, if few of them do.

    Parameters
    ----------
    table : pyarrow.Table or None
        The events that the query is for, if they are known.
    placed : callable, optional
        Returns a fault with the file and the row in it, instead of the row of the table.

    Notes
    -----
    O(rows) for each column of text that a query takes for one of numbers, and nothing without an error.
    """
    try:
        yield
    except QueryError as error:
        if table is None:
            raise
        faults = [_naming_a_row(fault, table, placed) for fault in error.faults]
        if faults == list(error.faults):
            raise
        raise QueryError(faults, text=error.text) from None


class Spoiled(NamedTuple):
    """Rows that keep a column from being one of numbers."""

    row: int
    """The first one, from 0."""
    value: str
    """What it holds, as messages quote it."""
    further: int
    """How many more there are."""
    numbers: int
    """How many rows hold numbers."""

    @property
    def advice(self) -> str:
        """The cure, as the end of a message."""
        these = "them" if self.further else "it"
        return f"mend {these}, or leave {these} empty"


def spoiled_rows(column: pa.ChunkedArray) -> Spoiled | None:
    """Return the rows of a column of text that hold no number, if there are any and most hold one. O(n)."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_number = mask_of(pc.match_substring_regex(column, _NUMBER))
    is_other = mask_of(column.is_valid()) & ~is_number
    numbers, other_rows = int(np.count_nonzero(is_number)), int(np.count_nonzero(is_other))
    if not other_rows or numbers < _MOSTLY_NUMBERS * (numbers + other_rows):
        return None
    row = int(np.argmax(is_other))
    return Spoiled(row, repr(shortened(column[row].as_py(), _LONGEST)), other_rows - 1, numbers)


def _naming_a_row(fault: Fault, table: pa.Table, placed: Callable[[TraceFault], TraceFault] | None) -> Fault:
    for name in fault.text_columns:
        spoiled = spoiled_rows(table.column(name)) if name in table.column_names else None
        if spoiled is not None:
            return Fault(_message(name, spoiled, placed), fault.line, fault.column)
    return fault


def _message(name: str, spoiled: Spoiled, placed: Callable[[TraceFault], TraceFault] | None) -> str:
    fault = TraceFault(spoiled.value, row=spoiled.row + 1)
    first = str(fault if placed is None else placed(fault))
    rows = f"{spoiled.further + 1:,} rows hold no number (the first: {first})"
    if not spoiled.further:
        rows = f"one row holds no number ({first})"
    return f"{name} is text, as {rows}, while {spoiled.numbers:,} do: {spoiled.advice}"
