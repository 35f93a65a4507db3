"""The bytes of a file as lines or documents, and faults that name the row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from uncertain_cep.errors import TraceError, TraceFault

__all__ = ["MOST_BYTES", "Source", "decoded", "field_values", "shown_text", "values_at"]

MOST_BYTES: Final = 1 << 26
"""Bytes of a line that can be read."""

MOST_DOCUMENT: Final = 1 << 28
"""Bytes of a document that can be read."""

_ANY: Final = msgspec.json.Decoder()
_BETWEEN: Final = re.compile(rb"\}\s*\{")
"""Between two objects that stand one after another; within one a comma or a text is around it."""

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MOST_TRIES: Final = 1000
"""Times that a text within an object may look like the border to the next one."""

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its decompressed bytes, its path, and the fields that are asked for besides."""

    stream: BinaryIO
    path: str
    fields: tuple[str, ...] = ()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each line, from 1, and its bytes without spaces around it; no blank ones."""
        number = 0
        while line := self.stream.readline(MOST_BYTES + 1):
            number += 1
            if len(line) > MOST_BYTES:
                message = f"the line is longer than {MOST_BYTES:,} bytes, the most that is read"
                raise TraceError(TraceFault(message, row=number, value=shown_text(line)))
            line = line.strip()
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line:
                yield number, line

    def document(self) -> bytes:
        """Return all bytes of the file, at most ``MOST_DOCUMENT``."""
        text = self.stream.read(MOST_DOCUMENT + 1)
        if len(text) > MOST_DOCUMENT:
            raise TraceError(f"the document is longer than {MOST_DOCUMENT:,} bytes, the most that is read")
        return text.removeprefix(b"\xef\xbb\xbf")

    def values(self, decoder: msgspec.json.Decoder[ValueT]) -> Iterator[tuple[int, ValueT, bytes]]:
        """Yield JSON objects that stand one after another: the number of each, from 1, it, and its text."""
        rest, begin, number, tries = b"", 0, 0, 0
        while block := self.stream.read(1 << 20):
            rest, begin, searched = rest[begin:] + block, 0, max(len(rest) - begin - 64, 0)
            while found := _BETWEEN.search(rest, searched):
                searched = found.end() - 1
                text = rest[begin : found.start() + 1]
                try:
                    value = decoder.decode(text)
                except _UNREADABLE as error:
                    # A text within the object looks like its end.
                    tries += 1
                    if "truncated" in str(error) and tries <= _MOST_TRIES:
                        continue
                    value = decoded(decoder, text, number + 1)
                number, tries = number + 1, 0
                yield number, value, text
                begin = searched
            if len(rest) - begin > MOST_DOCUMENT:
                raise TraceError(f"an object is longer than {MOST_DOCUMENT:,} bytes, the most that is read")
        if text := rest[begin:].strip():
            yield number + 1, decoded(decoder, text, number + 1), text


def decoded(decoder: msgspec.json.Decoder[ValueT], text: bytes, row: int | None = None) -> ValueT:
    """Return what JSON text holds; a TraceError names the row if it is no such thing."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        message = f"it is no such record: {error}"
    except msgspec.DecodeError as error:
        message = f"it is no JSON, or cut off: {error}"
    except UnicodeDecodeError:
        message = "its text is not UTF-8: convert the file"
    except RecursionError:
        message = "arrays and objects are nested too deep to be read"
    raise TraceError(TraceFault(message, row=row, value=shown_text(text) or None))


def field_values(text: bytes, row: int | None, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of some fields of a JSON object, by their paths."""
    return values_at(decoded(_ANY, text, row), fields) if fields else {}


def values_at(value: Any, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return what some paths lead to; see `_value_at`."""
    return {field: _value_at(value, field) for field in fields}


def _value_at(value: Any, path: str) -> Any:
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
    shown = "".join(
        letter if letter.isprintable() else " " for letter in text[:240].decode("utf-8", "replace").strip()
    )
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
