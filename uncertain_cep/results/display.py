"""Rows as people read them: in a terminal, in a notebook."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.plurals import counted
from uncertain_cep.query import Query
from uncertain_cep.query.syntax import Aggregate, AllAttributes, Attribute, expressions_in

__all__ = [
    "MatchTable",
    "Unit",
    "as_csv_text",
    "as_json_text",
    "as_text",
    "match_table",
    "plain_text",
    "shown_rows",
    "shown_times",
    "visible",
]


Unit = Literal["s", "ms", "us", "ns"]

_RANGES: Final = ("range_lower", "range_upper", "bucket")


def as_text(table: pa.Table, unit: Unit | None = None) -> pa.Table:
    """Return a table with its timestamps as ISO 8601 text, and lengths of time as seconds.

    They have the digits of their unit. Of matches ``unit`` is that of the tick: ranges and buckets have its
    digits, others those of microseconds at least, as Spark knows no coarser ones. Those with a time zone are
    in UTC and end in Z. Lists of times are lists of such text.
    """
    for number, field in enumerate(table.schema):
        if _is_of_time(field.type) or (pa.types.is_list(field.type) and _is_of_time(field.type.value_type)):
            column = table.column(number)
            if unit is not None and field.name in _RANGES and pa.types.is_timestamp(field.type):
                column = column.cast(pa.timestamp(unit, field.type.tz), safe=False)
                table = table.set_column(number, field.name, _clock_text(column))
                continue
            table = table.set_column(number, field.name, _time_text(column, is_fine=unit is not None))
    return table


def _is_of_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_duration(type_))


def _time_text(column: pa.ChunkedArray | pa.Array, *, is_fine: bool) -> pa.ChunkedArray | pa.Array:
    type_ = column.type
    if pa.types.is_list(type_):
        # A slice of lists keeps the offsets of the whole.
        lists = pc.take(column, pa.array(range(len(column)), pa.int64()))
        lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
        return pa.ListArray.from_arrays(
            lists.offsets, _time_text(lists.values, is_fine=is_fine), mask=lists.is_null()
        )
    if pa.types.is_duration(type_):
        nanoseconds = column.cast(pa.duration("ns")).cast(pa.int64())
        return pc.divide(nanoseconds.cast(pa.float64(), safe=False), 1e9)
    is_coarse = is_fine and type_.unit in ("s", "ms")
    return _clock_text(column.cast(pa.timestamp("us", type_.tz)) if is_coarse else column)


def _clock_text(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return timestamps as text, with the digits of their unit."""
    zone = column.type.tz
    column = column if zone is None else column.cast(pa.timestamp(column.type.unit, "UTC"))
    return pc.strftime(column, f"%Y-%m-%dT%H:%M:%S{'' if zone is None else 'Z'}")


def as_json_text(table: pa.Table, unit: Unit | None = None) -> pa.Table:
    """Return a table as :func:`as_text` does, with null for NaN and infinity, which JSON does not have."""
    table = as_text(table, unit)
    for number, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            column = table.column(number)
            table = table.set_column(number, field, pc.if_else(pc.is_finite(column), column, None))
    return table


def as_csv_text(table: pa.Table, unit: Unit | None = None) -> pa.Table:
    """Return a table as :func:`as_text` does, with lists and what else CSV does not know as JSON text."""
    table = as_text(table, unit)
    for number, field in enumerate(table.schema):
        if pa.types.is_list(field.type) and _is_written(field.type.value_type):
            lists = table.column(number).combine_chunks()
            distinct = lists.flatten().dictionary_encode()
            written = [
                json.dumps(value, ensure_ascii=False, default=plain_text)
                for value in distinct.dictionary.to_pylist()
            ]
            texts = pa.array(written, pa.string()).take(distinct.indices).fill_null("null")
            starts = lists.offsets.to_numpy() - lists.offsets[0].as_py() if len(lists) else [0]
            joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(starts, pa.int32()), texts), ", ")
            column = pc.if_else(lists.is_valid(), pc.binary_join_element_wise("[", joined, "]", ""), None)
            table = table.set_column(number, field.name, column)
        elif not _is_written(field.type):
            texts = pa.array(map(_json_text, table.column(number).to_pylist()), pa.string())
            table = table.set_column(number, field.name, texts)
    return table


def _is_written(dtype: pa.DataType) -> bool:
    """Return whether Arrow writes any values of a type as CSV."""
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype) or pa.types.is_fixed_size_binary(dtype):
        return False
    try:
        column = pa.table({"values": pa.nulls(1, dtype)})
        pyarrow.csv.write_csv(column, pa.BufferOutputStream())
    except MemoryError:
        raise
    except pa.ArrowException:
        return False
    return True


def _json_text(value: Any) -> str | None:
    """Return a value as JSON; text, which needs no quotes in a column of its own, as it is."""
    if isinstance(value, bytes):
        return plain_text(value)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=plain_text)


def plain_text(value: Any) -> str:
    """Return a value that JSON does not have as text."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


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


def shown_times(times: pa.ChunkedArray) -> list[str]:
    """Return times as pages and notebooks show them: ISO 8601 text without zeros at its end, or numbers."""
    ((_, cells, _),) = _columns(pa.table({"time": times}))
    return cells


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return visible(f"{value:.6g}" if isinstance(value, float) else str(value))


def visible(text: str) -> str:
    """Return a line of text in which nothing of a trace can steer the reader's terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def percent(probability: float) -> str:
    """Return a probability in words that never call certain what is not, nor impossible what is possible.

    A sum of float64 may end a little below what is certain.

    >>> [percent(p) for p in (1.0, 0.9999999999999999, 0.99999, 0.25, 0.00001)]
    ['certain', 'certain', '>99.9%', '25%', '<0.1%']
    """
    if probability >= CERTAIN:
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
