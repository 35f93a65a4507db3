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

__all__ = ["NUMBER", "Spoiled", "naming_spoiled", "naming_spoiled_rows", "spoiled_of", "spoiled_rows"]

_LONGEST: Final = 40
NUMBER: Final = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"

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

    def message(name: str) -> str | None:
        spoiled = (
            spoiled_rows(table.column(name)) if table is not None and name in table.column_names else None
        )
        if spoiled is None:
            return None
        fault = TraceFault(spoiled.value, row=spoiled.row + 1)
        return spoiled.message(name, "the first: ", str(fault if placed is None else placed(fault)))

    with naming_spoiled(message):
        yield


@contextmanager
def naming_spoiled(message: Callable[[str], str | None]) -> Iterator[None]:
    """Have a `QueryError` say what keeps a column from being one of numbers.

    ``message`` returns what a fault says of a column of text instead, if values of it are at fault.
    """
    try:
        yield
    except QueryError as error:
        faults = [_naming_a_row(fault, message) for fault in error.faults]
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

    def message(self, column: str, one_of: str, first: str) -> str:
        """Return the message; ``one_of`` says which of several rows is named as ``first``."""
        rows = f"{self.further + 1:,} rows hold no number ({one_of}{first})"
        if not self.further:
            rows = f"one row holds no number ({first})"
        return f"{column} is text, as {rows}, while {self.numbers:,} do: {self.advice}"


def spoiled_of(row: int, value: str, texts: int, numbers: int) -> Spoiled | None:
    """Return the rows at fault of so many that hold numbers and ``texts``, if most hold numbers."""
    if not texts or numbers < _MOSTLY_NUMBERS * (numbers + texts):
        return None
    return Spoiled(row, repr(shortened(value, _LONGEST)), texts - 1, numbers)


def spoiled_rows(column: pa.ChunkedArray) -> Spoiled | None:
    """Return the rows of a column of text that hold no number, if there are any and most hold one. O(n)."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_number = mask_of(pc.match_substring_regex(column, NUMBER))
    is_other = mask_of(column.is_valid()) & ~is_number
    numbers, other_rows = int(np.count_nonzero(is_number)), int(np.count_nonzero(is_other))
    row = int(np.argmax(is_other)) if other_rows else 0
    return spoiled_of(row, column[row].as_py() or "", other_rows, numbers) if len(column) else None


def _naming_a_row(fault: Fault, message: Callable[[str], str | None]) -> Fault:
    for name in fault.text_columns:
        if (text := message(name)) is not None:
            return Fault(text, fault.line, fault.column)
    return fault
