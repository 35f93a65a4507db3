"""Text logs as rows: lines, joined where they go on with the one before."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confidence.parsing.finding import copy_spans
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.running.compiling import compiled_for_reading
from uncertain_cep.running.in_order import in_order
from uncertain_cep.traces.bounded import LONGEST_LINE
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.faulty_rows import BoolArray
from uncertain_cep.traces.searching import fitting

__all__ = ["CONTINUATION", "LINE", "RecordLines", "record_blocks"]

LINE: Final = "line"
"""The column that has a record of a text file."""

CONTINUATION: Final = (
    r"^(?:\s|$|Caused by: |Suppressed: |Traceback \(most recent call last\)"
    r"|[A-Za-z_][\w.$]*(?:Exception|Error)\b)"
)
"""What begins a line that goes on with the one before: stack traces of Java and Python."""

_TRACES: Final = (
    r"^(?:Caused by: |Suppressed: |Traceback \(most recent call last\)|[A-Za-z_][\w.$]*(?:Exception|Error))"
)
"""Fits each line that `CONTINUATION` fits, unless it is empty or begins with a space."""
_MARKS: Final = (b"Caused by: ", b"Suppressed: ", b"Traceback (most ", b"Exception", b"Error")
"""One of these is in each such line."""
_NEWLINE, _RETURN = b"\n\r"
_SPACES: Final = np.isin(np.arange(256), list(b"\t\n\f\r "))
_WORDS: Final = np.isin(np.arange(256), list(b"_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))

_BLOCK: Final = 2**21
"""Bytes of a text that one core cuts at once."""
_MOST_JOINED: Final = 100_000
"""Lines of one record: a file without any beginning of one is not a single record."""


_OPEN_MARKS: Final = (b" stdout P", b" stderr P")
"""One of these is in each line that is a part, but not the last one, of its record."""
_PART: Final = re.compile(r"\S+ (stdout|stderr) ([FP])(?::\S+)? ?")


@dataclass(frozen=True, slots=True)
class RecordLines:
    """The lines of some records.

    ``begins``, (n,) bool, tells which begin a record, as the first one does; ``first`` is its number in the
    file, from 0. With ``parts`` records are written in parts that may have to be put together.
    """

    lines: pa.Array
    begins: BoolArray
    first: int
    parts: bool = False

    def behind(self, before: RecordLines | None) -> RecordLines:
        """Return these lines behind those before, of which the first begins a record."""
        if before is None:
            begins = self.begins.copy()
            begins[:1] = True
            return replace(self, begins=begins)
        begins = np.append(before.begins, self.begins)
        begins[0] = True
        lines = pa.concat_arrays([before.lines, self.lines])
        return RecordLines(lines, begins, before.first, self.parts or before.parts)

    def split(self, at: int) -> tuple[RecordLines, RecordLines]:
        """Return the lines up to, but without, one that begins a record, and the others."""
        ends = slice(None, at), slice(at, None)
        lines = self.lines.slice(0, at), self.lines.slice(at)
        head, tail = (
            replace(self, lines=some_lines, begins=self.begins[end])
            for some_lines, end in zip(lines, ends, strict=True)
        )
        return head, replace(tail, first=self.first + at)

    def further(self) -> pa.Array:
        """Return the lines that go on with those before."""
        return self.lines.filter(pa.array(~self.begins))

    def records(self) -> tuple[pa.Array, Any]:
        """Return the records, and the number of the line that each begins with, (n,) int64."""
        lines, numbers = self.lines, np.flatnonzero(self.begins)
        if len(numbers) < len(lines):
            offsets = pa.array(np.append(numbers, len(lines)), pa.int32())
            lines = pc.binary_join(pa.ListArray.from_arrays(offsets, lines), "\n")
        if self.parts:
            lines, numbers = _whole(lines, numbers)
        return lines, numbers + self.first


def record_blocks(
    stream: Any, continuation: str | None, *, parts: bool = False, begins: str | None = None
) -> Iterator[RecordLines]:
    """Yield the records of a text, many at a time. All cores cut them.

    A line on which ``continuation`` is found goes on with the record before it, behind a line break (None:
    no line does). Where ``begins`` is an expression, all lines go on on which it is not found. With ``parts``
    those that P marks go on in the next line of their stream. A TraceError, without the file's name, says
    that the text is no UTF-8, or a line too long.
    """

    def cut(piece: tuple[bytes, int]) -> RecordLines:
        text, first = piece
        _check_utf8(text, first)
        lines = _lines(text)
        begin = np.ones(len(lines), np.bool_)
        if begins is not None:
            begin = np.array(pc.match_substring_regex(lines, begins))
        elif continuation is not None:
            begin = ~_found_in(lines, continuation)
        return RecordLines(lines, begin, first, parts and any(mark in text for mark in _OPEN_MARKS))

    kept: RecordLines | None = None
    for lines in in_order(reading_threads(), _pieces(stream), cut):
        block = lines.behind(kept)
        last = int(np.flatnonzero(block.begins)[-1])
        if block.parts:
            last = _first_open(block.lines, last)
        if len(block.lines) - last > _MOST_JOINED:
            raise TraceError(
                TraceFault(
                    f"more than {_MOST_JOINED:,} lines belong to one record: correct continuation",
                    row=block.first + last + 1,
                )
            )
        whole, kept = block.split(last)
        if last:
            yield whole
    if kept is not None:
        yield kept


def _pieces(stream: Any) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, some at a time, and the number of the first of them."""
    unfinished, count, begun = b"", 0, False
    while True:
        data: bytes = stream.read(_BLOCK)
        while not begun and len(data) < len(codecs.BOM_UTF8) and (more := stream.read(_BLOCK)):
            data += more
        text = unfinished + data
        text = text if begun else text.removeprefix(codecs.BOM_UTF8)
        begun = True
        end = text.rfind(b"\n") + 1 if data else len(text)
        unfinished = text[end:]
        if end:
            yield text[:end], count
            count += text.count(b"\n", 0, end)
        if len(unfinished) > LONGEST_LINE and _letters(unfinished) > LONGEST_LINE:
            message = f"the line is longer than {LONGEST_LINE:,} characters, the most that is read"
            raise TraceError(TraceFault(message, row=count + 1))
        if not data:
            return


def _check_utf8(text: bytes, before: int) -> None:
    """Refuse, by a TraceError, lines that are no UTF-8; so many stand before them."""
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError as error:
        row = before + 1 + text.count(b"\n", 0, error.start)
        raise TraceError(TraceFault("its text is not UTF-8: convert the file", row=row)) from None


def _letters(text: bytes) -> int:
    """Return the number of characters of a text whose last one may be cut in two."""
    return len(text) - int(((np.frombuffer(text, np.uint8) & 0xC0) == 0x80).sum())


def _lines(text: bytes) -> pa.Array:
    """Return whole lines of UTF-8, without what ends them. O(n)."""
    letters = np.frombuffer(text, np.uint8)
    dropped = letters == _NEWLINE
    ends = np.flatnonzero(dropped)
    if len(text) and not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    offsets = ends - np.arange(len(ends))
    if b"\r\n" in text or text.endswith(b"\r"):
        # Whole lines are longer than none, or another line ends before.
        returns = ends[(ends > 0) & (letters[ends - 1] == _RETURN)] - 1
        dropped[returns] = True
        offsets -= np.searchsorted(returns, ends)
    bounds = np.append(0, offsets).astype(np.int32)
    if compiled_for_reading():
        begins = np.append(0, ends + 1)[: len(ends)]
        kept = np.empty(bounds[-1], np.uint8)
        copy_spans(letters, begins, bounds, kept)
    else:
        kept = letters[~dropped]
    return pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(bounds), pa.py_buffer(kept)])


def _found_in(lines: pa.Array, continuation: str) -> BoolArray:
    """Return on which lines an expression is found, (n,) bool."""
    if continuation != CONTINUATION or not len(lines):
        return np.array(pc.match_substring_regex(lines, continuation))
    _, offsets, data = lines.buffers()
    begins = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    letters = np.append(np.frombuffer(data or b"", np.uint8), np.uint8(_NEWLINE))
    first = np.where(np.diff(begins) > 0, letters[begins[:-1]], _NEWLINE)
    fits = _SPACES[first]
    words = np.flatnonzero(_WORDS[first])
    if len(words):
        maybe = fitting(lines.take(pa.array(words)) if len(words) < len(lines) else lines, _TRACES)
        if maybe is not None:
            words = words[maybe]
        elif not any(trace in data.to_pybytes() for trace in _MARKS):
            return fits
        fits[words] = np.asarray(pc.match_substring_regex(lines.take(pa.array(words)), continuation))
    return fits


def _first_open(lines: pa.Array, last: int) -> int:
    """Return the first line of the records that may go on; the last one of the block begins at ``last``."""
    opened: dict[str, int] = {}
    for number, line in enumerate(lines.slice(0, last).to_pylist()):
        if (part := _PART.match(line)) is not None:
            if part[2] == "P":
                opened.setdefault(part[1], number)
            else:
                opened.pop(part[1], None)
    return min(opened.values(), default=last)


def _whole(records: pa.Array, numbers: Any) -> tuple[pa.Array, Any]:
    """Return records with their parts put together."""
    whole: list[str] = []
    begun: dict[str, int] = {}
    kept = []
    for record, number in zip(records.to_pylist(), numbers.tolist(), strict=True):
        part = _PART.match(record)
        place = None if part is None else begun.pop(part[1], None)
        if part is None or place is None:
            place = len(whole)
            whole.append(record)
            kept.append(number)
        else:
            whole[place] += record[part.end() :]
        if part is not None and part[2] == "P":
            begun[part[1]] = place
    return pa.array(whole, pa.string()), np.array(kept, np.int64)
