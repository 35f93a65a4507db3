"""Columns cut out of the text of other columns, such as a number at the end of a name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault, warn

__all__ = [
    "Extraction",
    "ExtractionUses",
    "extracted_names",
    "extraction_groups",
    "sources_of",
    "with_extracted",
]

Extraction = tuple[str, str]
"""A column and a regular expression whose named groups are the new columns."""


def extraction_groups(pattern: str) -> list[str]:
    """Return the groups' names of a regular expression; ValueError if Python or Arrow (RE2) take none."""
    try:
        names = list(re.compile(pattern).groupindex)
        if names:
            pc.extract_regex(pa.array([""]), pattern)
    except (re.error, pa.ArrowInvalid) as error:
        raise ValueError(str(error)) from None
    return names


def extracted_names(extract: Sequence[Extraction], present: Collection[str]) -> list[str]:
    """Return the columns that extraction adds to those present."""
    return [
        name for column, pattern in extract if column in present for name in re.compile(pattern).groupindex
    ]


def sources_of(extract: Sequence[Extraction], wanted: Set[str]) -> set[str]:
    """Return the columns that some of the wanted ones are cut out of."""
    return {column for column, pattern in extract if not wanted.isdisjoint(re.compile(pattern).groupindex)}


@dataclass(slots=True)
class ExtractionUses:
    """What extraction came to in the files that were read.

    ``present`` are the columns that some file has, ``tried`` those with rows to cut something out of,
    ``found`` those where the expression was found in a row.
    """

    present: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)

    def read(self, columns: Iterable[str]) -> None:
        """Learn of the columns of a file."""
        self.present.update(columns)

    def warn(self, extract: Sequence[Extraction]) -> None:
        """Warn of columns that no file has, and of expressions that were not found anywhere."""
        for column, pattern in extract:
            if self.present and column not in self.present:
                near = difflib.get_close_matches(column, self.present, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(self.present))}"
                warn(f"[extract] {column}: no file has such a column; {hint}")
            elif column in self.tried and column not in self.found:
                warn(f"[extract] {column}: {pattern!r} is not found in any row: correct the expression")


def with_extracted(
    table: pa.Table, extract: Sequence[Extraction], file: str, uses: ExtractionUses | None = None
) -> pa.Table:
    """Return a table with the extracted columns, as text; null where the expression is not found.

    A TraceError says that the table has such a column already, or that the source cannot be read as text.
    """
    for column, pattern in extract:
        if column not in table.column_names:
            continue
        names = list(re.compile(pattern).groupindex)
        taken = [name for name in names if name in table.column_names]
        if taken:
            message = (
                f"[extract] makes a column of this name out of {column!r}, but the file has one: rename it"
            )
            raise TraceError([TraceFault(message, file=file, column=name) for name in taken])
        try:
            text = table.column(column).cast(pa.string())
        except pa.ArrowNotImplementedError:
            message = f"its type is {table.column(column).type}, and [extract] needs text"
            raise TraceError(TraceFault(message, file=file, column=column)) from None
        found = pc.extract_regex(text, pattern)
        if uses is not None and table.num_rows:
            uses.tried.add(column)
            if found.null_count < len(found):
                uses.found.add(column)
        for name in names:
            table = table.append_column(name, pc.struct_field(found, name))
    return table
