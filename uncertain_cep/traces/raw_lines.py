"""The lines of text files around the rows that ids name, as they stand there."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from uncertain_cep.errors import UncertainCepError, UncertainCepWarning
from uncertain_cep.traces.csv_files import opened_table
from uncertain_cep.traces.documents import json_lines
from uncertain_cep.traces.file_kinds import columns_declared, kind_of
from uncertain_cep.traces.file_options import FileOptions
from uncertain_cep.traces.formats import TraceFile, list_files
from uncertain_cep.traces.rows import PLACE
from uncertain_cep.traces.schema import TraceSchema
from uncertain_cep.traces.unpacking import unpacked

__all__ = ["RowOfFile", "rows_around", "rows_named", "text_files"]

RowOfFile = tuple[str, int]
"""A file, and the number of a row in it, from 1."""

_ROW: Final = re.compile(r"([0-9]{1,18})(?::.*)?", re.DOTALL)


def rows_named(
    ids: Iterable[Any], files: Collection[str], schema: TraceSchema | None
) -> list[RowOfFile | None]:
    """Return the file and the row that each id names, None for an id that names none.

    Ids name rows only where the schema says ``id = "place"``.
    """
    if schema is None or not any(events.id == PLACE for events in schema.events):
        return [None for _ in ids]
    # The name of one file may be the beginning of another one's.
    longest_first = sorted(files, key=len, reverse=True)
    rows: list[RowOfFile | None] = []
    for id in map(str, ids):
        file = next((name for name in longest_first if id.startswith(f"{name}:")), None)
        named = None if file is None else _ROW.fullmatch(id, len(file) + 1)
        rows.append((file, int(named[1])) if file is not None and named is not None else None)
    return rows


def text_files(paths: Sequence[str], options: FileOptions) -> dict[str, TraceFile]:
    """Return the files of which rows are lines of text, by name."""
    with warnings.catch_warnings():
        # They were said when the files were read.
        warnings.simplefilter("ignore", UncertainCepWarning)
        files, _ = list_files(paths, options.format, with_schema=True)
    texts = ("text", "csv", "json")
    return {
        str(file.path): file for file in files if not file.reader and kind_of(file.path, options) in texts
    }


def rows_around(
    rows: Iterable[RowOfFile], files: Mapping[str, TraceFile], options: FileOptions, beside: int, longest: int
) -> dict[RowOfFile, str]:
    """Return the text of some rows of files, and of those beside each, a line each or more.

    Parameters
    ----------
    rows : iterable of (str, int)
    files : mapping
        Those of `text_files`.
    options : FileOptions
    beside : int
        How many rows before and behind each.
    longest : int
        Characters of a row that are kept.

    Notes
    -----
    Reads each file up to the last row.
    """
    numbers_of: dict[str, set[int]] = {}
    for file, row in rows:
        numbers_of.setdefault(file, set()).update(range(max(row - beside, 1), row + beside + 1))
    texts = {}
    for file, numbers in numbers_of.items():
        last = max(numbers)
        try:
            for row, text in enumerate(_records(files[file], options), 1):
                if row in numbers:
                    texts[file, row] = text if len(text) <= longest else f"{text[:longest]}…"
                if row >= last:
                    break
        except (OSError, UncertainCepError):
            # The file has changed since it was read.
            continue
    return texts


def _records(file: TraceFile, options: FileOptions) -> Iterator[str]:
    """Yield the rows of a file as they stand there: lines of a log, rows of a table, objects of JSON."""
    kind, path = kind_of(file.path, options), file.path
    with ExitStack() as held:
        if kind == "csv":
            stream = held.enter_context(opened_table(path, options))
        else:
            stream = held.enter_context(unpacked(path, encoding=options.encoding))
        if kind == "json":
            stream = held.enter_context(json_lines(stream))
        lines = io.TextIOWrapper(io.BufferedReader(stream), "utf-8", errors="replace", newline="\n")
        plain = (line.rstrip("\r\n") for line in lines)
        if kind == "text":
            yield from plain
        elif kind == "json":
            yield from (line for line in plain if line.strip())
        else:
            declared = columns_declared(path, options)
            table = _rows_of_table(plain, quoted=declared is None or declared.is_quoted)
            if not options.columns:
                next(table, None)
            yield from table


def _rows_of_table(lines: Iterator[str], *, quoted: bool) -> Iterator[str]:
    """Yield the rows of a CSV file, whose values may hold line breaks; empty lines are none."""
    for line in lines:
        if not line:
            continue
        row = line
        while quoted and row.count('"') % 2 and (further := next(lines, None)) is not None:
            row = f"{row}\n{further}"
        yield row
