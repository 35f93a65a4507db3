"""Logs that name their columns in a line of their own: Zeek, and the extended format of the W3C.

``#fields<tab>ts<tab>uid`` and ``#Fields: date time s-ip`` stand among the first lines, which begin with
``#``. So these files are tables whatever they are called. IIS, CloudFront and Exchange write the second form.
"""

from __future__ import annotations

import codecs
import io
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from uncertain_cep.errors import TraceError, ignoring
from uncertain_cep.traces.unpacking import first_bytes

__all__ = ["DeclaredColumns", "declared_columns", "table_without_directives"]

_PIECE: Final = 1 << 20
_FIELDS: Final = re.compile(rb"(?m)^#(?:fields\t|Fields:[ \t]*)([^\r\n]*)", re.IGNORECASE)
_DIRECTIVE: Final = re.compile(rb"(?m)^#[^\n]*(?:\n|\Z)")
_NULLS: Final = re.compile(rb"(?m)^#(?:unset|empty)_field[\t ]([^\r\n]+)")


class DeclaredColumns(NamedTuple):
    """The columns that the first lines of a log name, and how its rows are written."""

    names: tuple[str, ...]
    delimiter: str
    nulls: tuple[str, ...]
    """Texts that stand for no value."""
    is_quoted: bool
    """Whether values may stand in quotes."""


def declared_columns(path: Path, encoding: str | None = None) -> DeclaredColumns | None:
    """Return the columns that a log names; None if it names none, or cannot be read."""
    with ignoring(OSError, ValueError, EOFError, TraceError, pa.ArrowException):
        begin = first_bytes(path, encoding).removeprefix(codecs.BOM_UTF8)
        fields = _FIELDS.search(begin) if begin.startswith(b"#") else None
        names = () if fields is None else tuple(fields[1].decode().split())
        if len(names) < 2 or len({*names}) < len(names):
            return None
        rows = [line for line in begin.splitlines() if line and not line.startswith(b"#")]
        has_tabs = b"\t" in rows[0] if rows else b"\t" in fields[0]  # type: ignore[index]
        nulls = [text.decode() for text in _NULLS.findall(begin)]
        return DeclaredColumns(
            names, "\t" if has_tabs else " ", tuple(dict.fromkeys((*nulls, "-"))), not has_tabs
        )
    return None


def table_without_directives(stream: Any, declared: DeclaredColumns) -> Any:
    """Return a stream of a table: a line of names, and the lines that do not begin with ``#``."""
    return io.BufferedReader(_Rows(stream, declared), _PIECE)


class _Rows(io.RawIOBase):
    """The rows of a log that names its columns; a TraceError says that it names others later."""

    def __init__(self, stream: Any, declared: DeclaredColumns) -> None:
        super().__init__()
        self._stream = stream
        self._names = declared.names
        self._ready = declared.delimiter.join(declared.names).encode() + b"\n"
        self._cut = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            data = bytes(self._stream.read(_PIECE))
            self._ended = not data
            whole, newline, left = (self._cut + data).rpartition(b"\n")
            if self._ended:
                whole, newline, left = self._cut, b"", b""
            self._cut = left
            self._ready = self._rows(whole + newline)
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        self._stream.close()
        super().close()

    def _rows(self, lines: bytes) -> bytes:
        for fields in _FIELDS.findall(lines):
            if tuple(fields.decode().split()) != self._names:
                later = fields.decode()
                raise TraceError(
                    f"its columns are {' '.join(self._names)}, and later {later}: cut the file there"
                )
        return _DIRECTIVE.sub(b"", lines)
