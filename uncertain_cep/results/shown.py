"""Rows as people read them: in a terminal, in a notebook."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.query import Query
from uncertain_cep.query.syntax import Aggregate, AllAttributes, Attribute, expressions_in
from uncertain_cep.wording import counted

__all__ = ["MatchTable", "as_text", "match_table", "shown_rows"]


def as_text(table: pa.Table) -> pa.Table:
    """Return a table with its timestamps as ISO 8601 text, and lengths of time as seconds."""
    for number, field in enumerate(table.schema):
        if pa.types.is_duration(field.type):
            column = table.column(number).cast(pa.duration("ns")).cast(pa.int64())
            table = table.set_column(
                number, field.name, pc.divide(column.cast(pa.float64(), safe=False), 1e9)
            )
        if pa.types.is_timestamp(field.type):
            column = table.column(number)
            pattern = "%Y-%m-%dT%H:%M:%S"
            if field.type.tz is not None:
                column = column.cast(pa.timestamp(field.type.unit, "UTC"))
                pattern += "Z"
            table = table.set_column(number, field.name, pc.strftime(column, pattern))
    return table


_TRAILING_ZEROS: Final = re.compile(r"(?:\.0+|(\.\d*[1-9])0+)(Z?)$")


def shown_rows(table: pa.Table, indent: str = "  ") -> str:
    """Return a table as text: a line of names, a line for each row, numbers to the right."""
    columns = []
    for name, cells, numeric in _columns(table):
        width = max(map(len, (name, *cells)))
        columns.append([cell.rjust(width) if numeric else cell.ljust(width) for cell in (name, *cells)])
    return "\n".join(indent + "  ".join(row).rstrip() for row in zip(*columns, strict=True))


def _columns(table: pa.Table) -> Iterable[tuple[str, list[str], bool]]:
    """Yield the name of each column, its cells as text, and whether they are numbers."""
    for field, column in zip(table.schema, as_text(table).columns, strict=True):
        cells = list(map(_cell, column.to_pylist()))
        if pa.types.is_timestamp(field.type):
            cells = [_TRAILING_ZEROS.sub(r"\1\2", cell) for cell in cells]
        yield field.name, cells, pa.types.is_integer(field.type) or pa.types.is_floating(field.type)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    # A value of a log must not steer the reader's terminal.
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def percent(probability: float) -> str:
    """Return a probability in words that never call certain what is not, nor impossible what is possible.

    >>> [percent(p) for p in (1.0, 0.99999, 0.25, 0.00001)]
    ['certain', '>99.9%', '25%', '<0.1%']
    """
    if probability >= 1.0:
        return "certain"
    if not 0.0005 <= probability < 0.9995:
        return "" if math.isnan(probability) else "<0.1%" if probability < 0.5 else ">99.9%"
    return f"{100 * probability:.1f}".removesuffix(".0") + "%"


@dataclass(frozen=True, slots=True, repr=False)
class MatchTable:
    """Matches to look at: notebooks show a table, a shell and ``print`` the same as text."""

    rows: pa.Table
    """What is shown, with ``range`` and ``probability`` as text."""
    caption: str

    def __repr__(self) -> str:
        return f"{self.caption}\n{shown_rows(self.rows)}" if self.rows.num_columns else self.caption

    def _repr_html_(self) -> str:
        """Return the table for a notebook; what is in the trace is text there."""
        parts = list(_columns(self.rows))
        heads = "".join(f"<th>{escape(name)}</th>" for name, _, _ in parts)
        styles = [' style="text-align:right"' if numeric else "" for _, _, numeric in parts]
        lines = [
            "".join(f"<td{style}>{escape(cell)}</td>" for style, cell in zip(styles, row, strict=True))
            for row in zip(*(cells for _, cells, _ in parts), strict=True)
        ]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        caption = f"<caption>{escape(self.caption)}</caption>"
        return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def match_table(matches: pa.Table, query: Query | None, limit: int, total: int | None) -> MatchTable:
    """Return some matches as a table, the best first.

    Parameters
    ----------
    matches : pyarrow.Table
        With columns of a result; those that it lacks are not shown.
    query : Query, optional
        Leaves out the ids of variables of which its RETURN shows something else.
    limit : int
        Most rows.
    total : int, optional
        Matches that there are; None if nobody counted.
    """
    names = matches.column_names
    ranked = "confidence" in names
    if ranked:
        matches = matches.sort_by([("confidence", "descending")])
    matches = matches.slice(0, min(limit, matches.num_rows))
    hidden = _described(query) if query is not None else frozenset()
    ranges = {"range_lower", "range_upper"} <= set(names)
    columns: list[tuple[str, Any]] = []
    for name in names:
        if name == "range_lower" and ranges:
            columns.append(("range", pa.array(_ranges(matches), pa.string())))
        elif name == "confidence":
            sure = map(percent, matches.column(name).fill_null(math.nan).to_pylist())
            columns.append(("probability", pa.array(sure, pa.string())))
        elif name not in hidden and not (name == "range_upper" and ranges):
            columns.append((name, matches.column(name)))
    rows = pa.Table.from_arrays([column for _, column in columns], names=[name for name, _ in columns])
    return MatchTable(rows, _caption(matches.num_rows, total, ranked))


def _described(query: Query) -> frozenset[str]:
    """Return the variables that RETURN shows by something else than their ids."""
    spoken = [part for item in query.returns for part in expressions_in(item.expression)]
    return frozenset(
        part.variable for part in spoken if isinstance(part, Attribute | AllAttributes | Aggregate)
    )


def _ranges(matches: pa.Table) -> list[str]:
    lower, upper = (cells for _, cells, _ in _columns(matches.select(["range_lower", "range_upper"])))
    return [_range(*ends) for ends in zip(lower, upper, strict=True)]


def _range(lower: str, upper: str) -> str:
    """Return a range as text, which says a day once."""
    if lower == upper:
        return lower
    day, mark, clock = upper.partition("T")
    return f"{lower} \N{EN DASH} {clock if mark and lower.startswith(day + mark) else upper}"


def _caption(shown: int, total: int | None, ranked: bool) -> str:
    if total is None or total <= shown:
        found = counted(shown, "match", "matches")
        return f"{found}, the best first" if ranked and shown > 1 else found
    which = "the best" if ranked else "the first"
    return f"{which} {shown:,} of {counted(total, 'match', 'matches')}"
