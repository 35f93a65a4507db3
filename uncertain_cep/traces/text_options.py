"""How text is written in files that a schema is proposed for: its letters, and lines before a table."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from uncertain_cep.errors import TraceError, ignoring
from uncertain_cep.traces.file_kinds import columns_declared, kind_of
from uncertain_cep.traces.file_options import FileOptions
from uncertain_cep.traces.formats import TraceFile, delimiter_of
from uncertain_cep.traces.unpacking import has_wide_letters, unpacked

__all__ = ["with_text_options"]

_PIECE: Final = 2**20
_LOOKED_LINES: Final = 100
_FEWEST_ROWS: Final = 2


def with_text_options(files: Sequence[TraceFile], options: FileOptions) -> FileOptions:
    """Return options with the encoding of text that is not UTF-8, and the lines before a table.

    Files that do not agree have neither. O(bytes).
    """
    kinds = {file.path: kind_of(file.path, options) for file in files}
    encodings = {_encoding(path) for path, kind in kinds.items() if kind != "parquet"} - {"ascii"}
    if len(encodings) == 1:
        options = replace(options, encoding=encodings.pop())
    skipped = {
        _lines_before(path, delimiter_of(path, options), options)
        for path, kind in kinds.items()
        if kind == "csv" and columns_declared(path, options) is None
    }
    options = replace(options, skip_rows=skipped.pop()) if len(skipped) == 1 else options
    named = {_known_columns(path, options) for path, kind in kinds.items() if kind == "csv"}
    return replace(options, columns=named.pop()) if len(named) == 1 else options


_OF_POSTGRESQL: Final = (
    "log_time", "user_name", "database_name", "process_id", "connection_from", "session_id",
    "session_line_num", "command_tag", "session_start_time", "virtual_transaction_id", "transaction_id",
    "error_severity", "sql_state_code", "message", "detail", "hint", "internal_query",
    "internal_query_pos", "context", "query", "query_pos", "location", "application_name",
    "backend_type", "leader_pid", "query_id",
)  # fmt: skip
"""The columns of PostgreSQL's csvlog (its manual, "Using CSV-Format Log Output"); older ones have fewer."""

_FEWEST_OF_POSTGRESQL: Final = 23
_SEVERITIES: Final = frozenset(
    (
        "DEBUG", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4", "DEBUG5", "LOG", "INFO", "NOTICE", "WARNING",
        "ERROR", "FATAL", "PANIC",
    )
)  # fmt: skip


def _known_columns(path: Path, options: FileOptions) -> tuple[str, ...]:
    """Return the names of the columns of a file without a line of names, if its first row tells them."""
    if options.columns or delimiter_of(path, options) != ",":
        return options.columns
    with ignoring(OSError, ValueError, EOFError, TraceError, pa.ArrowException, csv.Error):
        with unpacked(path, encoding=options.encoding) as stream:
            lines = bytes(stream.read(_PIECE)).decode("utf-8-sig", "replace").splitlines(keepends=True)
        row = next(csv.reader(lines), [])
        is_known = _FEWEST_OF_POSTGRESQL <= len(row) <= len(_OF_POSTGRESQL)
        if is_known and row[_OF_POSTGRESQL.index("error_severity")] in _SEVERITIES:
            return _OF_POSTGRESQL[: len(row)]
    return ()


def _encoding(path: Path) -> str | None:
    """Return the encoding of a text: ascii, None for UTF-8 and UTF-16, or the likeliest of others."""
    if has_wide_letters(path):
        return None
    utf8, windows = codecs.getincrementaldecoder("utf-8")(), codecs.getincrementaldecoder("cp1252")()
    fits = {"utf-8": True, "cp1252": True, "ascii": True}
    with ignoring(OSError, ValueError, EOFError, TraceError, pa.ArrowException), unpacked(path) as stream:
        while data := bytes(stream.read(_PIECE)):
            if b"\0" in data:
                return None
            fits["ascii"] &= data.isascii()
            for name, decoder in (("utf-8", utf8), ("cp1252", windows)):
                try:
                    decoder.decode(data)
                except UnicodeDecodeError:
                    fits[name] = False
    if fits["ascii"]:
        return "ascii"
    return None if fits["utf-8"] else "cp1252" if fits["cp1252"] else "latin-1"


def _lines_before(path: Path, delimiter: str, options: FileOptions) -> int:
    """Return how many lines stand before the first of as many values as nearly all others have."""
    with ignoring(OSError, ValueError, EOFError, TraceError, pa.ArrowException, csv.Error):
        with unpacked(path, encoding=options.encoding) as stream:
            lines = bytes(stream.read(_PIECE)).decode("utf-8-sig", "replace").splitlines()[:_LOOKED_LINES]
        counts_by = [
            [len(row) for row in csv.reader(lines, delimiter=each)] for each in (delimiter, ";", "\t", "|")
        ]
        # Where one splits all lines alike, the first one too, numbers with a comma are no columns.
        if any(counts and set(counts) == {counts[0]} != {1} for counts in counts_by):
            return 0
        for counts in counts_by:
            if len(counts) != len(lines) or not counts:
                continue
            usual, _ = max(Counter(counts).items(), key=lambda pair: (pair[1], pair[0]))
            if usual > 1:
                first = counts.index(usual)
                rows = counts[first:]
                return first if len(rows) >= _FEWEST_ROWS and {*rows} <= {usual, 0} else 0
    return 0
