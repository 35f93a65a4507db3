"""The bytes of a file as lines or documents, and faults that name the row."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from uncertain_cep.errors import TraceError, TraceFault

__all__ = ["MOST_BYTES", "Source", "decoded", "field_values", "shown_text", "value_at"]

MOST_BYTES: Final = 1 << 26
"""Bytes of a line that can be read."""

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its decompressed bytes, its path, and the fields that are asked for besides."""

    stream: BinaryIO
    path: str
    fields: tuple[str, ...] = ()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each line, from 1, and its bytes without spaces around it; no blank ones."""
        buffered = io.BufferedReader(self.stream, 1 << 20)  # type: ignore[type-var]
        number = 0
        while line := buffered.readline(MOST_BYTES + 1):
            number += 1
            if len(line) > MOST_BYTES:
                message = f"the line is longer than {MOST_BYTES:,} bytes, the most that is read"
                raise TraceError(TraceFault(message, row=number, value=shown_text(line)))
            line = line.strip()
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line:
                yield number, line


@contextmanager
def _faulty(row: int | None, text: bytes) -> Iterator[None]:
    try:
        yield
        return
    except msgspec.ValidationError as error:
        message = f"it is no such record: {error}"
    except msgspec.DecodeError as error:
        message = f"it is no JSON, or cut off: {error}"
    except UnicodeDecodeError:
        message = "its text is not UTF-8: convert the file"
    except RecursionError:
        message = "arrays and objects are nested too deep to be read"
    raise TraceError(TraceFault(message, row=row, value=shown_text(text)))


def decoded(decoder: msgspec.json.Decoder[ValueT], text: bytes, row: int | None = None) -> ValueT:
    """Return what JSON text holds; a TraceError names the row if it is no such thing."""
    with _faulty(row, text):
        return decoder.decode(text)


_ANY: Final = msgspec.json.Decoder()


def field_values(text: bytes, row: int | None, fields: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of some fields of a JSON object, by their paths."""
    if not fields:
        return ()
    value = decoded(_ANY, text, row)
    return tuple(value_at(value, field) for field in fields)


def value_at(value: Any, path: str) -> Any:
    """Return what a path such as ``Task Info.Launch Time`` leads to, nested values as JSON text, or None."""
    while isinstance(value, dict):
        if path in value:
            found = value[path]
            return msgspec.json.encode(found).decode() if isinstance(found, (dict, list)) else found
        head, _, path = path.partition(".")
        value = value.get(head)
    return None


def shown_text(text: bytes) -> str:
    """Return the beginning of a line as it is shown in a fault."""
    shown = text[:240].decode("utf-8", "replace").strip()
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
