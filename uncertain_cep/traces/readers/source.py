"""The bytes of a file as lines, blocks of them or documents, and faults that name the row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Generic, TypeVar

import msgspec

from uncertain_cep.errors import TraceError, TraceFault

__all__ = [
    "MOST_BYTES",
    "Block",
    "Source",
    "decoded",
    "long_line",
    "numbered_lines",
    "shown_text",
    "values_at",
]

MOST_BYTES: Final = 1 << 26
"""Bytes of a line that can be read."""

MOST_DOCUMENT: Final = 1 << 28
"""Bytes of a document that can be read."""

_BLOCK: Final = 1 << 21
"""Bytes that are read at once; what is done a block costs as much as a thousand lines."""

_ANY: Final = msgspec.json.Decoder()
_BETWEEN: Final = re.compile(rb"\}\s*\{")
"""Between two objects that stand one after another; within one a comma or a text is around it."""

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
"""What the decoder says of something behind a value: the place, from 1, of its first byte."""

ValueT = TypeVar("ValueT")


def numbered_lines(block: bytes, before: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each line, from 1 behind those before, and its bytes without spaces around it."""
    for number, line in enumerate(block.split(b"\n"), before + 1):
        if text := line.strip():
            yield number, text


@dataclass(frozen=True, slots=True)
class Block(Generic[ValueT]):
    """Lines of JSON: what each holds, a dict of all that each holds if that is asked for, and their text."""

    values: list[ValueT]
    raws: list[Any]
    text: bytes
    before: int
    """The lines of the file before."""

    def lines(self) -> list[tuple[int, bytes]]:
        """Return the number of each line, from 1, and its text, in the order of the values."""
        return list(numbered_lines(self.text, self.before))


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its decompressed bytes, its path, and the further fields to read (None: all)."""

    stream: BinaryIO
    path: str
    further: frozenset[str] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The paths of the further fields to read."""
        return tuple(sorted(self.further or ()))

    def line(self, number: int) -> bytes:
        """Return the next line, the ``number``th from 1; none at the end."""
        line = self.stream.readline(MOST_BYTES + 1)
        if len(line) > MOST_BYTES:
            raise long_line(number, line)
        return line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each line, from 1, and its bytes without spaces around it; no blank ones."""
        for before, block in self.blocks():
            yield from numbered_lines(block, before)

    def blocks(self, before: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield whole lines, many at a time, behind the number of lines before: ``before`` at first."""
        parts: list[bytes] = []
        held, begun = 0, before > 0
        while data := self.stream.read(_BLOCK):
            data = data if begun else data.removeprefix(b"\xef\xbb\xbf")
            begun = True
            end = data.rfind(b"\n") + 1
            if end:
                whole = b"".join((*parts, memoryview(data)[:end]))
                yield before, whole
                before += whole.count(b"\n")
                parts, held, data = [], 0, data[end:]
            parts.append(data)
            held += len(data)
            if held > MOST_BYTES:
                raise long_line(before + 1, b"".join(parts))
        if held:
            yield before, b"".join(parts)

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes, as whole lines unless these are longer than can be."""
        parts: list[bytes] = []
        held = 0
        while data := self.stream.read(_BLOCK):
            end = data.rfind(b"\n") + 1
            held += len(data)
            if end or held > MOST_BYTES:
                end = end or len(data)
                yield b"".join((*parts, memoryview(data)[:end]))
                data = data[end:]
                parts, held = [], len(data)
            parts.append(data)
        if held:
            yield b"".join(parts)

    def records(
        self,
        decoder: msgspec.json.Decoder[ValueT],
        one_by_one: Callable[[bytes, int], ValueT | None] | None = None,
        before: int = 0,
    ) -> Iterator[Block[ValueT]]:
        """Yield the values of the lines, a block at a time.

        Where a block cannot be decoded, each line is decoded by ``one_by_one``, which takes its number, from
        1, besides: it returns None for a line that is passed over, or raises a TraceError. ``before`` is the
        number of lines that were read already.
        """
        for begin, block in self.blocks(before):
            yield self.decoded_block(begin, block, decoder, one_by_one)

    def decoded_block(
        self,
        begin: int,
        block: bytes,
        decoder: msgspec.json.Decoder[ValueT],
        one_by_one: Callable[[bytes, int], ValueT | None] | None = None,
    ) -> Block[ValueT]:
        """Return the values of some lines, before which ``begin`` lines stand; see `records`."""
        try:
            values: list[Any] = decoder.decode_lines(block)
            breaks = block.count(b"\n") + (not block.endswith(b"\n"))
            # Beside blank lines, the decoder takes several objects in a line, and one in several lines.
            if len(values) != breaks and len(values) != sum(1 for _ in numbered_lines(block, begin)):
                raise msgspec.DecodeError
            return Block(values, _ANY.decode_lines(block) if self.further else [], block, begin)
        except _UNREADABLE:
            kept = []
            values, raws = [], []
            for number, line in numbered_lines(block, begin):
                value = decoded(decoder, line, number) if one_by_one is None else one_by_one(line, number)
                if value is not None:
                    kept.append(line)
                    values.append(value)
                    raws += [decoded(_ANY, line, number)] if self.further else []
            return Block(values, raws, b"\n".join(kept), begin)

    def document(self) -> bytes:
        """Return all bytes of the file, at most ``MOST_DOCUMENT``."""
        text = self.stream.read(MOST_DOCUMENT + 1)
        if len(text) > MOST_DOCUMENT:
            raise TraceError(f"the document is longer than {MOST_DOCUMENT:,} bytes, the most that is read")
        return text.removeprefix(b"\xef\xbb\xbf")

    def values(
        self, decoder: msgspec.json.Decoder[ValueT], before: int = 0
    ) -> Iterator[tuple[int, ValueT, bytes]]:
        """Yield JSON objects that stand one after another: the number of each, it, and its text.

        Numbers begin behind those of the objects ``before``.
        """
        buffer, begin, searched, number = b"", 0, 0, before
        while block := self.stream.read(_more(len(buffer) - begin)):
            # A border may stand on both sides of where a block ends.
            buffer, searched, begin = buffer[begin:] + block, max(searched, len(buffer) - 64) - begin, 0
            while boundary := _BETWEEN.search(buffer, searched):
                text = buffer[begin : boundary.start() + 1]
                try:
                    value = decoder.decode(text)
                except _UNREADABLE as error:
                    if "truncated" in str(error):
                        # The border is within a text. The next one is looked for behind as much again, so
                        # that all that is decoded in vain is no more than the object.
                        searched = max(boundary.end() - 1, begin + 2 * len(text))
                        continue
                    text = _first_object(text, error)
                    value = decoded(decoder, text, number + 1)
                number += 1
                yield number, value, text
                begin = searched = begin + len(text)
            if len(buffer) - begin > MOST_DOCUMENT:
                raise TraceError(f"an object is longer than {MOST_DOCUMENT:,} bytes, the most that is read")
        while text := buffer[begin:].lstrip():
            begin = len(buffer) - len(text)
            try:
                value = decoder.decode(text)
            except _UNREADABLE as error:
                text = _first_object(text, error)
                value = decoded(decoder, text, number + 1)
            number += 1
            yield number, value, text
            begin += len(text)


def _more(held: int) -> int:
    """Return how many bytes to read behind those of an object that goes on: what it is doubles."""
    return max(min(max(held, 1 << 20), MOST_DOCUMENT + 1 - held), 1)


def _first_object(text: bytes, error: Exception) -> bytes:
    """Return the object that a text begins with, if the decoder refused what stands behind it; else all."""
    behind = _TRAILING.search(str(error))
    return text if behind is None else text[: int(behind[1]) - 1].rstrip()


def long_line(row: int, text: bytes) -> TraceError:
    """Return the error of a line that is too long."""
    message = f"the line is longer than {MOST_BYTES:,} bytes, the most that is read"
    return TraceError(TraceFault(message, row=row, value=shown_text(text)))


def decoded(decoder: msgspec.json.Decoder[ValueT], text: bytes, row: int | None = None) -> ValueT:
    """Return the decoded JSON text; a TraceError names the row if it is no such thing."""
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


def values_at(value: Any, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the values at some paths; see `_value_at`."""
    return {field: _value_at(value, field) for field in fields}


def _value_at(value: Any, path: str) -> Any:
    """Return the value at a path such as ``Task Info.Launch Time``, nested ones as JSON text, or None."""
    while isinstance(value, dict):
        if path in value:
            inner = value[path]
            return msgspec.json.encode(inner).decode() if isinstance(inner, (dict, list)) else inner
        head, _, path = path.partition(".")
        value = value.get(head)
    return None


def shown_text(text: bytes) -> str:
    """Return the beginning of a line as it is shown in a fault."""
    shown = "".join(
        letter if letter.isprintable() else " " for letter in text[:240].decode("utf-8", "replace").strip()
    )
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
