"""The kind of a file: by its name, and where that does not tell by its first bytes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import ignoring
from uncertain_cep.traces.declared_columns import DeclaredColumns, declared_columns
from uncertain_cep.traces.file_options import FileOptions
from uncertain_cep.traces.table_formats import SUFFIXES
from uncertain_cep.traces.text_lines import LINE
from uncertain_cep.traces.unpacking import COMPRESSIONS, FIRST_BYTES, first_bytes

__all__ = ["columns_declared", "content_kind", "delimiter_in", "format_of", "kind_of", "stem_suffix"]

_ROTATED: Final = re.compile(
    r"[._-](?:[0-9]{1,4}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:[T_.-]?[0-9]{2}(?:[:_-]?[0-9]{2}){0,2})?|old|bak|prev)$"
)
"""The end of the name of a log that another one took the place of."""
_MOST_ROTATIONS: Final = 3

_DEFAULT: Final = FileOptions()


def stem_suffix(path: Path) -> str:
    """Return the ending of a file's name, without those of compression and rotation, as ``.2.gz``."""
    plain = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    name = plain.name
    for _ in range(_MOST_ROTATIONS):
        suffix = Path(name).suffix.lower()
        if suffix in SUFFIXES or not _ROTATED.search(name):
            return suffix
        name = _ROTATED.sub("", name)
    return Path(name).suffix.lower()


def format_of(path: Path) -> str | None:
    """Return the format that the name of a file says, or None."""
    return SUFFIXES.get(stem_suffix(path))


def kind_of(path: Path, options: FileOptions = _DEFAULT) -> str | None:
    """Return the format of a file: the one given, or what its name says, or None.

    A log of JSON lines is JSON, unless an expression for lines of text fits it. One that names its columns
    is a table, unless there is an expression for lines of text. A file whose name says
    nothing is JSON if it begins so, and text if there is an expression for lines of text.
    """
    if options.format is not None:
        return SUFFIXES.get(f".{options.format}")
    kind = format_of(path)
    if kind in ("text", None) and _holds_json(path, options):
        return "json"
    if columns_declared(path, options) is not None:
        return "csv"
    if kind is None and any(column == LINE for column, _ in options.extract) and content_kind(path) == "text":
        return "text"
    return kind


def columns_declared(path: Path, options: FileOptions) -> DeclaredColumns | None:
    """Return the columns that a log names; None if it names none, or a schema says how it is read."""
    by_expression = any(column == LINE for column, _ in options.extract)
    if (
        options.format is not None
        or options.columns
        or by_expression
        or format_of(path) not in ("text", None)
    ):
        return None
    return declared_columns(path, options.encoding)


def content_kind(path: Path) -> str | None:
    """Return the format that a file begins as: parquet, json, csv or text; None of anything else."""
    if _holds_json(path, _DEFAULT):
        return "json"
    with ignoring(OSError, ValueError, EOFError, pa.ArrowException):
        begin = first_bytes(path)
        if begin.startswith(b"PAR1"):
            return "parquet"
        text = begin.decode("utf-8-sig", "ignore")
        # What is cut off in the middle of a letter is text.
        if not text.strip() or "\0" in text or len(text.encode()) < len(begin) - 8:
            return None
        return "csv" if _has_columns(text.splitlines()[:_LOOKED_LINES]) else "text"
    return None


_LOOKED_LINES: Final = 5


def _has_columns(lines: Sequence[str]) -> bool:
    """Tell whether lines have the same number of values, below a line of names."""
    for delimiter in (",", ";", "\t", "|"):
        rows = [line.split(delimiter) for line in lines]
        names = [name.strip().strip('"') for name in rows[0]]
        if len(names) > 1 and len(rows) > 1 and len({len(row) for row in rows}) == 1:
            return len({*names}) == len(names) and all(re.fullmatch(r"[^\W\d][^:]*", name) for name in names)
    return False


def _holds_json(path: Path, options: FileOptions) -> bool:
    """Tell whether a text begins with lines of which each is a JSON object."""
    # What cannot be read is met again.
    with ignoring(OSError, ValueError, EOFError, pa.ArrowException):
        begin = first_bytes(path, options.encoding).removeprefix(codecs.BOM_UTF8)
        if not begin.startswith(b"{"):
            return False
        lines = begin.split(b"\n")
        if len(lines) > 1 and len(begin) >= FIRST_BYTES:
            lines.pop()
        values = [json.loads(line) for line in lines if line.strip()]
        expressions = [pattern for column, pattern in options.extract if column == LINE]
        first = pa.array([lines[0].decode()])
        return all(isinstance(each, dict) for each in values) and not any(
            pc.match_substring_regex(first, re.sub(r"\(\?P<\w+>", "(?:", pattern))[0].as_py()
            for pattern in expressions
        )
    return False


def delimiter_in(names: Sequence[str]) -> str | None:
    """Guess the delimiter where a line of names was taken for one name."""
    return next((each for each in (";", "\t", "|") if len(names) == 1 and each in names[0]), None)
