"""CSV files as Arrow tables, and what is wrong with those that cannot be read."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.config.limits import FAULT_LIMIT
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.arrow_files import python_file
from uncertain_cep.traces.bounded import CSV_BLOCKS, header_names, long_line_fault, straddles
from uncertain_cep.traces.declared_columns import table_without_directives
from uncertain_cep.traces.exact_numbers import WatchedStream, marked, with_exact_numbers
from uncertain_cep.traces.faulty_rows import shown
from uncertain_cep.traces.file_kinds import columns_declared
from uncertain_cep.traces.file_options import FileOptions
from uncertain_cep.traces.ragged import read_ragged
from uncertain_cep.traces.unpacking import unpacked

__all__ = ["opened_table", "read_csv"]

LONG: Final = 1 << 26
"""Bytes of a file that is read a block at a time."""

_LOOSER: Final = (
    pa.null(),
    pa.int64(),
    pa.bool_(),
    pa.date32(),
    pa.time32("s"),
    pa.timestamp("s"),
    pa.timestamp("ns"),
    pa.float64(),
    pa.string(),
)
"""What Arrow takes a column for, in the order in which it tries: of text that does not fit, the next one."""

_NO_UTF8: Final = (
    'its text is not UTF-8: say encoding = "latin-1", or another, in a schema file, or convert it'
)
_MOST_TRIES: Final = 100
_UNFIT: Final = re.compile(r"In CSV column #([0-9]+): (?:.*: )?CSV conversion error to ")


def read_csv(
    path: Path,
    columns: list[str] | None,
    delimiter: str,
    options: FileOptions,
    span: tuple[int, int] | None = None,
) -> pa.Table:
    """Return the rows of a CSV file, or of a span of its bytes, of these columns only."""
    import pyarrow.csv as pacsv

    declared = columns_declared(path, options)
    nulls = ["", *options.nulls, *(() if declared is None else declared.nulls)]
    convert = pacsv.ConvertOptions(
        include_columns=columns,
        # Given types are converted afterwards, where the row of a bad value can be told.
        column_types=dict.fromkeys(
            (*(name for name, _ in options.types), *options.texts, *options.as_text), pa.string()
        ),
        null_values=nulls,
        strings_can_be_null=True,
    )
    # Without newlines_in_values Arrow may cut a value that holds a line break in two, and say nothing.
    has_quotes = declared is None or declared.is_quoted
    parse = pacsv.ParseOptions(
        delimiter=delimiter, newlines_in_values=has_quotes, quote_char='"' if has_quotes else False
    )
    if options.columns_by is not None:
        convert.include_columns, convert.include_missing_columns = columns or (), True
        with opened_table(path, options) as stream:
            return read_ragged(stream, options.columns, options.columns_by, parse.delimiter, convert, path)
    watched: list[WatchedStream] = []

    def opened() -> Any:
        watched.append(WatchedStream(opened_table(path, options, span), delimiter))
        return watched[-1]

    named = list(options.columns) or None
    if span is not None and span[0] and named is None:
        with opened_table(path, options) as stream:
            named = header_names(stream, delimiter)
    try:
        table = None
        if span is None and path.stat().st_size >= LONG:
            table = _read_blocks(opened, parse, convert, named)
        if table is None:
            table = _csv_table(opened, parse, convert, named)
    except pa.ArrowInvalid as error:
        if span is not None:
            raise
        faults = _faults_of(error, path, parse, named, options)
        if not faults:
            raise
        raise TraceError(faults) from None
    table = _with_texts(table, path, options)

    def texts(names: list[str]) -> pa.Table:
        as_text = pacsv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, pa.string()),
            null_values=nulls,
            strings_can_be_null=True,
        )
        return _csv_table(partial(opened_table, path, options, span), parse, as_text, named)

    return with_exact_numbers(table, any(each.has_zero for each in watched), texts, str(path))


def _faults_of(
    error: pa.ArrowInvalid, path: Path, parse: Any, named: list[str] | None, options: FileOptions
) -> list[TraceFault]:
    """Return the faults of a file that Arrow refuses; none if it seems sound."""
    if straddles(error):
        with opened_table(path, options) as stream:
            return [long_line_fault(io.BufferedReader(stream))]
    # Arrow cannot hand on a broken row that is no text.
    faults = _broken_text(path, options)
    if not faults and "CSV parse" in str(error):
        faults = _broken_rows(path, parse, named, options)
    return faults


def _with_texts(table: pa.Table, path: Path, options: FileOptions) -> pa.Table:
    """Return a table with the columns as texts that have to be; a TraceError says that one is no UTF-8."""
    faults = [
        TraceFault(_NO_UTF8, file=str(path), column=field.name)
        for field in table.schema
        if pa.types.is_binary(field.type)
    ]
    if faults:
        raise TraceError(faults)
    for name in options.as_text:
        if name in table.column_names:
            table = table.set_column(
                table.schema.get_field_index(name), marked(name), table.column(name).cast(pa.string())
            )
    return table


def opened_table(path: Path, options: FileOptions, span: tuple[int, int] | None = None) -> Any:
    """Return a stream of a CSV file as UTF-8, without the lines before its names."""
    stream = unpacked(path, span, encoding=options.encoding, skip_rows=options.skip_rows)
    declared = columns_declared(path, options)
    return stream if declared is None else table_without_directives(stream, declared)


def _read_blocks(
    opened: Callable[[], Any], parse: Any, convert: Any, names: list[str] | None
) -> pa.Table | None:
    """Return the rows of a long file; None if its blocks cannot be read one by one.

    Arrow finds out the types of columns either in the whole file, all of which it keeps until then, or in the
    first block. A type that does not fit a later one gives way to the next, from the beginning of the file.
    """
    import pyarrow.csv as pacsv

    with opened() as stream:
        columns = names or header_names(stream, parse.delimiter)
    declared_types = dict(convert.column_types)
    types: dict[str, pa.DataType] = dict(declared_types)
    read = pacsv.ReadOptions(block_size=CSV_BLOCKS[0], column_names=names, use_threads=False)
    for _ in range(_MOST_TRIES):
        convert.column_types = types
        try:
            with (
                opened() as stream,
                pacsv.open_csv(
                    python_file(stream), read_options=read, parse_options=parse, convert_options=convert
                ) as reader,
            ):
                types |= dict(zip(reader.schema.names, reader.schema.types, strict=True))
                return pa.Table.from_batches(list(reader), reader.schema)
        except pa.ArrowInvalid as error:
            unfit = _UNFIT.search(str(error))
            name = columns[int(unfit[1])] if unfit and int(unfit[1]) < len(columns) else ""
            if types.get(name) not in _LOOSER[:-1] or name in declared_types:
                break
            types[name] = _LOOSER[_LOOSER.index(types[name]) + 1]
    convert.column_types = declared_types
    return None


def _csv_table(opened: Callable[[], Any], parse: Any, convert: Any, names: list[str] | None) -> pa.Table:
    import pyarrow.csv as pacsv

    for block_size in CSV_BLOCKS:
        read = pacsv.ReadOptions(block_size=block_size, column_names=names)
        try:
            with opened() as stream:
                file = python_file(stream)
                return pacsv.read_csv(file, read_options=read, parse_options=parse, convert_options=convert)
        except pa.ArrowInvalid as error:
            if block_size == CSV_BLOCKS[-1] or not straddles(error):
                raise
    raise AssertionError("there is a last block size")


def _broken_text(path: Path, options: FileOptions) -> list[TraceFault]:
    """Return a fault if a file is no UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with opened_table(path, options) as stream:
        try:
            while block := stream.read(2**20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return [TraceFault(_NO_UTF8, file=str(path))]
    return []


def _broken_rows(path: Path, parse: Any, names: list[str] | None, options: FileOptions) -> list[TraceFault]:
    import pyarrow.csv as pacsv

    faults: list[TraceFault] = []
    broken = 0

    def note(row: pacsv.InvalidRow) -> str:
        nonlocal broken
        broken += 1
        if broken <= FAULT_LIMIT:
            # Arrow counts the line of the column names as row 1.
            number = row.number if row.number is None or names else row.number - 1
            message = f"it has {row.actual_columns} values for {row.expected_columns} columns: correct it"
            faults.append(TraceFault(message, file=str(path), row=number, value=shown(row.text)))
        return "skip"

    parse.invalid_row_handler = note
    with opened_table(path, options) as stream:
        # Only a single thread can number the rows.
        read = pacsv.ReadOptions(use_threads=False, block_size=CSV_BLOCKS[-1], column_names=names)
        pacsv.read_csv(python_file(stream), read_options=read, parse_options=parse)
    if broken > FAULT_LIMIT:
        more = broken - FAULT_LIMIT
        faults.append(TraceFault(f"{more:,} more rows are broken like these", file=str(path), count=more))
    return faults
