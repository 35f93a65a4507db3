"""JSON that is not one object a line: arrays of objects, and objects over several lines, as JSON lines."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.bounded import LONGEST_LINE, MOST_LEVELS

__all__ = ["are_documents", "json_lines"]

_PIECE: Final = 2**20
_BETWEEN: Final = re.compile(r"[ \t\r\n\ufeff]*,?[ \t\r\n]*")
_INCOMPLETE: Final = re.compile(rb"[\[{,:]$")


def json_lines(stream: Any) -> Any:
    """Return a stream of JSON lines: the one given or, if it holds documents, one that makes lines of them.

    Documents are an array of objects, or objects of which the first one takes several lines. What is no JSON
    there raises TraceError, without the file's name, as it is read.
    """
    head: bytes = stream.read(_PIECE)
    whole = _Resumed(head, stream)
    return _Lines(whole) if are_documents(head) else whole


def are_documents(head: bytes) -> bool:
    """Return whether a text that begins so holds documents."""
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    first = text.partition(b"\n")[0].rstrip()
    return text.startswith(b"[") or (text.startswith(b"{") and _INCOMPLETE.search(first) is not None)


class _Resumed(io.RawIOBase):
    """A stream of which the beginning was read already."""

    def __init__(self, head: bytes, stream: Any) -> None:
        super().__init__()
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            data: bytes = self._stream.read() if size < 0 else self._stream.read(size)
            return data
        if size < 0:
            data = self._head + self._stream.read()
            self._head = b""
        else:
            data, self._head = self._head[:size], self._head[size:]
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Lines(_Resumed):
    """The documents of a stream, each as a line."""

    def __init__(self, stream: Any) -> None:
        super().__init__(b"", stream)
        self._lines = _documents(stream)

    def read(self, size: int = -1) -> bytes:
        parts, missing = [self._head], (1 << 62 if size < 0 else size) - len(self._head)
        while missing > 0 and (line := next(self._lines, None)) is not None:
            parts.append(line)
            missing -= len(line)
        data = b"".join(parts)
        self._head = b"" if size < 0 else data[size:]
        return data if size < 0 else data[:size]


def _documents(stream: Any) -> Iterator[bytes]:
    """Yield the values in a stream as lines, those of an array one by one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    scan = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    text, place, ended, number, inside = "", 0, False, 0, None
    while True:
        between = _BETWEEN.match(text, place)
        place = place if between is None else between.end()
        if inside is None and place < len(text):
            inside = text[place] == "["
            place += inside
            continue
        # A value that ends where the text does may go on: a number, or an object cut in two.
        try:
            if inside and text[place : place + 1] == "]":
                after = text[place + 1 :]
                _check_end(after + _decoded(decoder, stream.read(), final=True), number)
                return
            _, end = scan(text, place) if place < len(text) else (None, len(text))
            if end < len(text) or (ended and place < end):
                number += 1
                yield text[place:end].replace("\r", " ").replace("\n", " ").encode() + b"\n"
                place = end
                continue
            error = "it ends within the array: is it cut off?" if ended and inside else None
        except json.JSONDecodeError as found:
            end = found.pos
            wrong = end < len(text) - 16 and not found.msg.startswith("Unterminated")
            error = f"it is no JSON: {found.msg}" if ended or wrong else None
        except RecursionError:
            error = f"arrays and objects are nested more than {MOST_LEVELS} levels deep: make the row flat"
        if error is not None:
            raise TraceError(TraceFault(error, row=number + 1, value=repr(text[place : place + 60])))
        if ended:
            return
        if len(text) - place > LONGEST_LINE:
            message = f"the value is longer than {LONGEST_LINE:,} characters, the most that is read"
            raise TraceError(TraceFault(message, row=number + 1))
        # Each attempt begins anew, so the text doubles.
        piece = stream.read(max(_PIECE, len(text) - place))
        ended = not piece
        text = text[place:] + _decoded(decoder, piece, final=ended)
        place = 0


def _decoded(decoder: codecs.IncrementalDecoder, data: bytes, *, final: bool) -> str:
    try:
        return decoder.decode(data, final)
    except UnicodeDecodeError:
        raise TraceError("its text is not UTF-8: convert the file") from None


def _check_end(after: str, number: int) -> None:
    if after.strip():
        message = "there is something behind the end of the array: write all rows into it"
        raise TraceError(TraceFault(message, row=number + 1, value=repr(after.strip()[:60])))
