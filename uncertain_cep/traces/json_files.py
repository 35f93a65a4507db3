"""Files of JSON as Arrow tables, and what is wrong with those that cannot be read."""

from __future__ import annotations

import codecs
import io
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.running.compiling import compiled_for_reading, spent_reading
from uncertain_cep.running.in_order import in_order
from uncertain_cep.traces.arrow_files import python_file
from uncertain_cep.traces.bounded import (
    CSV_BLOCKS,
    LONGEST_LINE,
    NestingGuard,
    UnreadableLineError,
    straddles,
)
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.documents import json_lines
from uncertain_cep.traces.file_options import FileOptions
from uncertain_cep.traces.flat_json import flat_table
from uncertain_cep.traces.instants import is_text, zoned_rows
from uncertain_cep.traces.json_numbers import LongNumbers, with_marks, with_text
from uncertain_cep.traces.json_types import wider_type
from uncertain_cep.traces.jsonlines import json_line_faults, kept_columns
from uncertain_cep.traces.nested import Path as FieldPath
from uncertain_cep.traces.nested import leaves_of, roots_of, text_fields, with_leaf_types
from uncertain_cep.traces.unpacking import unpacked

__all__ = ["JSON_BLOCK", "first_names", "json_table", "read_json"]

JSON_BLOCK: Final = 1 << 23
"""Bytes of a file that are parsed at once; a few such blocks are in memory, which docs/tables.md names."""

_PIECE: Final = 1 << 20

_SOMETHING: Final = re.compile(rb"[^ \t\r\n\v\f]")

_CHANGED: Final = "some of its lines cannot be read any more: does something write to the file?"


def read_json(
    path: Path,
    columns: Collection[str] | None,
    options: FileOptions,
    span: tuple[int, int] | None = None,
) -> pa.Table:
    """Return all columns of a JSON file, or of a span of its bytes.

    At least these columns and fields, if it is long or others are bad.

    A block at a time is in memory, and of a long file what is of no use is dropped.
    """
    texts = [name for name in options.texts if columns is None or name in columns]
    declared_texts = [name for name, type_name in options.types if type_name == "string"]
    roots = None if columns is None else roots_of({*columns, *(name for name, _ in options.types)})
    as_text = {(name,) for name in options.as_text}

    def blocks() -> Iterator[bytes]:
        whole = span is None
        opened = unpacked(path, span, encoding=options.encoding)
        with json_lines(opened) if whole else opened as stream:
            yield from _blocks(stream, JSON_BLOCK)

    def kept_blocks() -> Iterator[bytes]:
        for block in blocks():
            yield kept_columns(io.BytesIO(block), columns, declared_texts).getvalue()

    for forced in (texts, []) if texts else ([],):
        try:
            table = _joined(blocks, forced, roots, as_text, declared_texts, path)
            break
        except (pa.ArrowInvalid, UnreadableLineError, UnicodeDecodeError) as error:
            if forced and isinstance(error, pa.ArrowInvalid):
                continue
            if span is not None:
                raise TraceError(_CHANGED) from None
            faults = _line_faults(path, columns, declared_texts, options.encoding)
            if not faults and columns is None and not declared_texts:
                raise
            if faults:
                raise TraceError(faults) from None
            table = _joined(kept_blocks, [], roots, as_text, declared_texts, path)
    # Arrow reads a whole number of 400 digits as an infinity, and JSON has none.
    names = table.column_names if columns is None else roots_of(columns)
    if _infinite(table.select([name for name in table.column_names if name in names])):
        raise TraceError(_CHANGED if span else _line_faults(path, columns, (), options.encoding))
    return table


def first_names(path: Path) -> list[str]:
    """Return the columns of the lines that a file begins with, a megabyte or so."""
    with json_lines(unpacked(path)) as stream:
        names: list[str] = json_table(next(_blocks(stream, _PIECE)), []).column_names
    return names


def _joined(
    blocks: Callable[[], Iterator[bytes]],
    texts: Sequence[str],
    roots: Collection[str] | None,
    as_text: Collection[tuple[str, ...]],
    declared_texts: Collection[str],
    path: Path,
) -> pa.Table:
    """Return the rows of blocks of lines; of several blocks the columns ``roots`` only (None: all).

    ``texts`` and the numbers ``as_text`` are read as they stand there, and the ``declared_texts`` whose
    numbers would be rounded. Blocks that hold another type than all of them together are parsed again as
    that: where one holds dates and another words, all is text as it stands there.
    """
    long = LongNumbers()
    tables = _parsed(blocks, text_fields(texts), roots, as_text, long)
    # Numbers and text in one field are told before numbers become text.
    types = _types_of(tables.values())
    if more := long.as_text(declared_texts).difference(as_text):
        as_text = more.union(as_text)
        tables = _parsed(blocks, text_fields(texts), roots, as_text, long)
        types = _types_of(tables.values())
    types_of_blocks = {
        number: wide
        for number, table in tables.items()
        if (
            wide := {field.name for field in table.schema if field.type not in (pa.null(), types[field.name])}
        )
    }
    if types_of_blocks:
        wide = set().union(*types_of_blocks.values())
        fields = [field for field in text_fields(texts) if field.name not in wide]
        fields += [pa.field(name, types[name]) for name in sorted(wide)]
        tables |= _parsed(blocks, fields, roots, as_text, long, types_of_blocks)
    long.warn(str(path), roots)
    # Of columns that hold nothing in some blocks the others tell the type.
    whole = pa.concat_tables([tables[number] for number in sorted(tables)], promote_options="default")
    return with_marks(whole, as_text)


def _types_of(tables: Iterable[pa.Table]) -> dict[str, pa.DataType]:
    """Return the types that hold the values of the columns of all tables."""
    types: dict[str, pa.DataType] = {}
    for table in tables:
        for field in table.schema:
            types[field.name] = wider_type(types.get(field.name, pa.null()), field.type, field.name)
    return types


def _parsed(
    blocks: Callable[[], Iterator[bytes]],
    fields: Sequence[pa.Field],
    roots: Collection[str] | None,
    as_text: Collection[tuple[str, ...]],
    long: LongNumbers,
    numbers: Collection[int] | None = None,
) -> dict[int, pa.Table]:
    """Return the rows of blocks of lines: of those with these ``numbers`` (None: of all)."""

    def parsed(numbered: tuple[int, bytes]) -> tuple[int, bytes, pa.Table]:
        number, block = numbered
        lines = with_text(block, as_text) if as_text else block
        return number, lines, json_table(lines, fields)

    numbered_blocks = (
        (number, block)
        for number, block in enumerate(blocks())
        if (numbers is None or number in numbers) and _holds_something(block)
    )
    tables: dict[int, pa.Table] = {}
    for number, lines, table in in_order(reading_threads(), numbered_blocks, parsed):
        tables[number] = table
        long.learn(number, lines, table)
        if roots is not None and (numbers is not None or len(tables) > 1):
            for place in {min(tables), number}:
                names = [name for name in tables[place].column_names if name in roots]
                tables[place] = tables[place].select(names)
    if not tables:
        raise TraceError("the file is empty: one JSON object a line is expected")
    return tables


def _holds_something(block: bytes) -> bool:
    return _SOMETHING.search(block, len(codecs.BOM_UTF8) * block.startswith(codecs.BOM_UTF8)) is not None


def _blocks(stream: Any, least_size: int) -> Iterator[bytes]:
    """Yield whole lines of a stream, at least so many bytes at a time, and the rest at last.

    A line that is too long raises `UnreadableLineError`.
    """
    parts: list[bytes] = []
    size = since = 0
    while data := stream.read(_PIECE):
        end = data.rfind(b"\n") + 1
        since = len(data) - end if end else since + len(data)
        if since > LONGEST_LINE:
            raise UnreadableLineError
        if end and size + end >= least_size:
            yield b"".join((*parts, data[:end]))
            parts, size, data = [], 0, data[end:]
        parts.append(data)
        size += len(data)
    if remainder := b"".join(parts):
        yield remainder


def _infinite(table: pa.Table) -> bool:
    """Tell whether a column of numbers holds an infinity."""
    numbers = [column for column in table.columns if pa.types.is_floating(column.type)]
    return any(pc.any(pc.is_inf(column)).as_py() for column in numbers)


def _line_faults(
    path: Path, columns: Collection[str] | None, texts: Collection[str], encoding: str | None
) -> list[TraceFault]:
    with json_lines(unpacked(path, encoding=encoding)) as stream:
        faults = json_line_faults(io.BufferedReader(stream), columns, texts)
        return [replace(fault, file=str(path)) for fault in faults]


def json_table(block: bytes, fields: Sequence[pa.Field]) -> pa.Table:
    """Return the rows of some lines, in which these columns have these types."""
    if compiled_for_reading() and (rows := flat_table(block, fields, _arrow_table)) is not None:
        return rows
    begun = time.perf_counter()
    table = _arrow_table(block, fields)
    spent_reading(time.perf_counter() - begun)
    return table


def _arrow_table(block: bytes, fields: Sequence[pa.Field]) -> pa.Table:
    """Return the same rows as `json_table`, as Arrow reads them."""
    table = _parsed_json(block, fields, unexpected="infer")
    # Arrow takes any bytes for text, and for names.
    table.validate(full=True)
    fixed = {field.name for field in fields}
    return _with_dates(block, _with_zones(block, table, fixed), fixed)


def _with_zones(block: bytes, table: pa.Table, fixed: Collection[str]) -> pa.Table:
    """Return a table in which times that all have a zone are in UTC, also within fields and lists.

    Arrow reads those without a zone as UTC, too: where some times of a field have a zone and some have none,
    they are the text that stands there. Columns in ``fixed`` keep their types.
    """
    free = [field for field in table.schema if field.name not in fixed]
    texts = _retyped(free, lambda _, dtype: pa.string() if pa.types.is_timestamp(dtype) else dtype)
    if not texts or not _may_have_zones(block):
        return table
    read = _parsed_json(block, texts, unexpected="ignore")
    seen: dict[FieldPath, set[bool]] = {}
    for path, values in leaves_of(zip(read.column_names, read.columns, strict=True), is_text):
        seen.setdefault(path, set()).update(zoned_rows(values).unique().drop_null().to_pylist())

    def change(path: FieldPath, dtype: pa.DataType) -> pa.DataType:
        zoned = seen.get(path, set())
        if not pa.types.is_timestamp(dtype) or True not in zoned:
            return dtype
        return pa.string() if False in zoned else pa.timestamp(dtype.unit, "UTC")

    mixed = {path[0] for path, zoned in seen.items() if len(zoned) > 1}
    changed = _retyped(free, change)
    # Arrow cannot cast all lists of objects.
    again = [field for field in changed if field.name in mixed or pa.types.is_nested(field.type)]
    parsed = _parsed_json(block, again, unexpected="ignore") if again else table
    for field in changed:
        column = parsed.column(field.name) if field in again else table.column(field.name).cast(field.type)
        table = table.set_column(table.schema.get_field_index(field.name), field, column)
    return table


def _retyped(
    fields: Sequence[pa.Field], change: Callable[[FieldPath, pa.DataType], pa.DataType]
) -> list[pa.Field]:
    """Return the fields with values, at any depth, whose type ``change`` changes."""
    types = [with_leaf_types(field.type, (field.name,), change) for field in fields]
    return [
        pa.field(field.name, dtype) for field, dtype in zip(fields, types, strict=True) if dtype != field.type
    ]


def _parsed_json(block: bytes, fields: Sequence[pa.Field], *, unexpected: str) -> pa.Table:
    """Return the rows of some lines: these columns, and what is to be done with others."""
    import pyarrow.json as pajson

    options = pajson.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior=unexpected)
    for block_size in CSV_BLOCKS:
        guarded = python_file(NestingGuard(io.BytesIO(block)))
        try:
            return pajson.read_json(guarded, pajson.ReadOptions(block_size=block_size), options)
        except pa.ArrowInvalid as error:
            if block_size == CSV_BLOCKS[-1] or not straddles(error):
                raise
    raise AssertionError("there is a last block size")


def _with_dates(block: bytes, table: pa.Table, fixed: Collection[str]) -> pa.Table:
    """Return a table in which texts such as 2024-05-31 are dates, as Arrow finds them in CSV files.

    Columns in ``fixed`` keep their types.
    """

    def all_hold(test: Callable[[Any], Any], column: pa.ChunkedArray) -> bool:
        return bool(pc.all(test(column), min_count=1).as_py())

    def is_midnight(stamps: Any) -> Any:
        return pc.equal(pc.floor_temporal(stamps, unit="day"), stamps)

    def is_day(texts: Any) -> Any:
        return pc.equal(pc.utf8_length(texts), len("2024-05-31"))

    midnights = [
        field.name
        for field in table.schema
        if field.type == pa.timestamp("s")
        and field.name not in fixed
        and all_hold(is_midnight, table.column(field.name))
    ]
    if not midnights:
        return table
    texts = _parsed_json(block, [pa.field(name, pa.string()) for name in midnights], unexpected="ignore")
    for name in midnights:
        if all_hold(is_day, texts.column(name)):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table.column(name).cast(pa.date32()))
    return table


_QUOTE: Final = 0x22


def _may_have_zones(block: bytes) -> bool:
    """Tell whether a text in some lines may end in a time zone. O(n)."""
    if b'Z"' in block or b'z"' in block:
        return True
    letters = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(letters == _QUOTE)
    ends = ends[ends > len("+02:00")]
    for before in (len("+02:00"), len("+0200"), len("+02")):
        sign = letters[ends - before]
        # A day, such as 2024-05-31, ends in what looks like an hour.
        if ((sign == 0x2B) | ((sign == 0x2D) & (letters[ends - before - 3] == 0x3A))).any():
            return True
    return False
