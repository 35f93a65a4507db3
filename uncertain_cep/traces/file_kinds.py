"""The kind of a file: by its name, and for logs by their first bytes."""

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
from uncertain_cep.traces.file_options import SUFFIXES, FileOptions
from uncertain_cep.traces.readers import LOOKED_AT
from uncertain_cep.traces.text_lines import LINE
from uncertain_cep.traces.unpacking import COMPRESSIONS, unpacked

__all__ = ["delimiter_in", "format_of", "kind_of", "stem_suffix"]

_DEFAULT: Final = FileOptions()


def stem_suffix(path: Path) -> str:
    """Return the ending of a file's name, without that of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def format_of(path: Path) -> str | None:
    """Return the format that the name of a file says, or None."""
    return SUFFIXES.get(stem_suffix(path))


def kind_of(path: Path, options: FileOptions = _DEFAULT) -> str | None:
    """Return the format of a file: the one given, or what its name says, or None.

    A log of JSON lines is JSON, unless an expression for lines of text fits it.
    """
    if options.format is not None:
        return SUFFIXES.get(f".{options.format}")
    kind = format_of(path)
    return "json" if kind == "text" and _holds_json(path, options) else kind


def _holds_json(path: Path, options: FileOptions) -> bool:
    """Tell whether a text begins with lines of which each is a JSON object."""
    # What cannot be read is met again.
    with ignoring(OSError, ValueError, EOFError, pa.ArrowException):
        with unpacked(path) as stream:
            begin: bytes = stream.read(LOOKED_AT).removeprefix(codecs.BOM_UTF8)
        if not begin.startswith(b"{"):
            return False
        lines = begin.split(b"\n")
        if len(lines) > 1 and len(begin) >= LOOKED_AT:
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
