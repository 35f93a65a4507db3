"""Files of JSON as Arrow tables, and what is wrong with those that cannot be read."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.bounded import LONGEST_LINE, NestingGuard, UnreadableLineError
from uncertain_cep.traces.documents import json_lines
from uncertain_cep.traces.file_options import FileOptions
from uncertain_cep.traces.jsonlines import json_line_faults, kept_columns
from uncertain_cep.traces.nested import roots_of, text_fields
from uncertain_cep.traces.unpacking import unpacked

__all__ = ["JSON_BLOCK", "read_json"]

JSON_BLOCK: Final = 1 << 26
"""Bytes of a long file that are in memory at a time."""

_PIECE: Final = 1 << 20


def read_json(path: Path, columns: Collection[str] | None, options: FileOptions) -> pa.Table:
    """Return all columns of a JSON file; at least these columns and fields, if it is long or others are bad.

    Of a long file a block at a time is read, and what is of no use is dropped, so that little is in memory.
    """
    found = None if options.texts else _read_blocks(path, columns, options)
    return _read_whole(path, columns, options) if found is None else found


def _read_blocks(path: Path, columns: Collection[str] | None, options: FileOptions) -> pa.Table | None:
    """Return the rows of a long file; None if it is short, or its blocks cannot be read by themselves."""
    roots = None if columns is None else roots_of({*columns, *(name for name, _ in options.types)})
    tables: list[pa.Table] = []
    try:
        with json_lines(unpacked(path)) as stream:
            for block in _blocks(stream):
                if not tables and len(block) < JSON_BLOCK:
                    return None
                table = _json_table(partial(io.BytesIO, block), [])
                if roots is not None:
                    table = table.select([name for name in table.column_names if name in roots])
                if _infinite(table):
                    return None
                tables.append(table)
    except (pa.ArrowInvalid, UnreadableLineError, UnicodeDecodeError):
        return None
    try:
        # Of columns that hold nothing in some blocks the others tell the type.
        return pa.concat_tables(tables, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _blocks(stream: Any) -> Iterator[bytes]:
    """Yield whole lines of a stream, at least ``JSON_BLOCK`` bytes at a time, and the rest at last.

    A line that is too long raises `UnreadableLineError`.
    """
    parts: list[bytes] = []
    size = since = 0
    while data := stream.read(_PIECE):
        end = data.rfind(b"\n") + 1
        since = len(data) - end if end else since + len(data)
        if since > LONGEST_LINE:
            raise UnreadableLineError
        if end and size + end >= JSON_BLOCK:
            yield b"".join((*parts, data[:end]))
            parts, size, data = [], 0, data[end:]
        parts.append(data)
        size += len(data)
    if rest := b"".join(parts):
        yield rest


def _read_whole(path: Path, columns: Collection[str] | None, options: FileOptions) -> pa.Table:
    def opened() -> Any:
        return json_lines(unpacked(path))

    texts = [name for name in options.texts if columns is None or name in columns]
    for forced in (texts, []) if texts else ([],):
        try:
            table = _json_table(opened, forced)
            break
        except (pa.ArrowInvalid, UnreadableLineError, UnicodeDecodeError) as error:
            if forced and isinstance(error, pa.ArrowInvalid):
                continue
            if str(error).startswith("Empty JSON file"):
                message = "the file is empty: one JSON object a line is expected"
                raise TraceError(TraceFault(message, file=str(path))) from None
            given = [name for name, wanted in options.types if wanted == "string"]
            faults = _line_faults(path, columns, given)
            if not faults and columns is None and not given:
                raise
            if faults:
                raise TraceError(faults) from None
            with opened() as stream:
                kept = kept_columns(io.BufferedReader(stream), columns, given).getvalue()
            table = _json_table(lambda: io.BytesIO(kept), [])  # noqa: B023
    # Arrow reads a whole number of 400 digits as an infinity, and JSON has none.
    roots = table.column_names if columns is None else roots_of(columns)
    if _infinite(table.select([name for name in table.column_names if name in roots])):
        raise TraceError(_line_faults(path, columns))
    return table


def _infinite(table: pa.Table) -> bool:
    """Tell whether a column of numbers holds an infinity."""
    numbers = [column for column in table.columns if pa.types.is_floating(column.type)]
    return any(pc.any(pc.is_inf(column)).as_py() for column in numbers)


def _line_faults(
    path: Path, columns: Collection[str] | None, texts: Collection[str] = ()
) -> list[TraceFault]:
    with json_lines(unpacked(path)) as stream:
        found = json_line_faults(io.BufferedReader(stream), columns and roots_of(columns), texts)
        return [replace(fault, file=str(path)) for fault in found]


def _json_table(opened: Callable[[], Any], texts: Sequence[str]) -> pa.Table:
    table = _parsed_json(opened, texts, others="infer")
    # Arrow takes any bytes for text, and for names.
    table.validate(full=True)
    return _with_dates(opened, table)


def _parsed_json(opened: Callable[[], Any], texts: Sequence[str], *, others: str) -> pa.Table:
    """Return the rows of a JSON file: ``texts`` as they stand there, and what is to be done with others."""
    import pyarrow.json as pajson

    schema = pa.schema(text_fields(texts))
    options = pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)
    with opened() as stream:
        block = pajson.ReadOptions(block_size=LONGEST_LINE)
        guarded = pa.PythonFile(NestingGuard(stream), "r")
        return pajson.read_json(guarded, read_options=block, parse_options=options)


def _with_dates(opened: Callable[[], Any], table: pa.Table) -> pa.Table:
    """Return a table in which texts such as 2024-05-31 are dates, as Arrow finds them in CSV files."""

    def all_hold(test: Callable[[Any], Any], column: pa.ChunkedArray) -> bool:
        return bool(pc.all(test(column), min_count=1).as_py())

    def is_midnight(stamps: Any) -> Any:
        return pc.equal(pc.floor_temporal(stamps, unit="day"), stamps)

    def is_day(texts: Any) -> Any:
        return pc.equal(pc.utf8_length(texts), len("2024-05-31"))

    midnights = [
        field.name
        for field in table.schema
        if field.type == pa.timestamp("s") and all_hold(is_midnight, table.column(field.name))
    ]
    if not midnights:
        return table
    texts = _parsed_json(opened, midnights, others="ignore")
    for name in midnights:
        if all_hold(is_day, texts.column(name)):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table.column(name).cast(pa.date32()))
    return table
