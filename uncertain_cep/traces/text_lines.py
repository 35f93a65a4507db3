"""Text logs as rows: lines, joined where they go on with the one before."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confidence.parsing.finding import copy_spans
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.running.compiling import compiled_for_reading
from uncertain_cep.traces.bounded import LONGEST_LINE
from uncertain_cep.traces.faulty_rows import BoolArray
from uncertain_cep.traces.searching import fitting

__all__ = ["CONTINUATION", "LINE", "record_blocks"]

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

_BLOCK: Final = 2**23
_MOST_JOINED: Final = 100_000
"""Lines of one record: a file without any beginning of one is not a single record."""


_OPEN: Final = r"^\S+ (?:stdout|stderr) P"
_OPEN_MARK: Final = re.compile(rb" std(?:out|err) P")
_PART: Final = re.compile(r"\S+ (stdout|stderr) ([FP])(?::\S+)? ?")


def record_blocks(
    stream: Any,
    continuation: str | None,
    *,
    parts: bool = False,
    begins: str | None = None,
    joined: Callable[[pa.Array], None] | None = None,
) -> Iterator[tuple[pa.Array, Any]]:
    """Yield the records of a text, and the number of the line that each begins with, (n,) int64 from 0.

    A line on which ``continuation`` is found goes on with the record before it, behind a line break (None:
    no line does), and is given to ``joined``. Where ``begins`` is an expression, all lines go on on which it
    is not found. With ``parts`` those that P marks go on in the next line of their stream. A TraceError,
    without the file's name, says that the text is no UTF-8, or a line too long.
    """

    def whole(lines: pa.Array, begin: Any, first: int) -> tuple[pa.Array, Any]:
        if joined is not None and not begin.all():
            joined(lines.filter(pa.array(~begin)))
        return _joined(lines, begin, first, parts)

    kept = pa.array([], pa.string())
    kept_from = 0
    for lines, first in _line_blocks(stream):
        if not len(kept) and not len(lines):
            return
        block = pa.concat_arrays([kept, lines]) if len(kept) else lines
        begin = np.ones(len(block), np.bool_)
        if begins is not None:
            begin = np.array(pc.match_substring_regex(block, begins))
        elif continuation is not None:
            begin = ~_found_in(block, continuation)
        begin[0] = True
        if not len(lines):
            yield whole(block, begin, kept_from)
            return
        start = first - len(kept)
        last = int(np.flatnonzero(begin)[-1])
        if parts:
            last = _first_open(block, last)
        if len(block) - last > _MOST_JOINED:
            raise TraceError(
                TraceFault(
                    f"more than {_MOST_JOINED:,} lines belong to one record: correct continuation",
                    row=start + last + 1,
                )
            )
        if last:
            yield whole(block.slice(0, last), begin[:last], start)
        kept, kept_from = block.slice(last), start + last


def _line_blocks(stream: Any) -> Iterator[tuple[pa.Array, int]]:
    """Yield lines, and the number of the first of them; none at last."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    unfinished, count, begun = b"", 0, False
    while True:
        data: bytes = stream.read(_BLOCK)
        while not begun and len(data) < len(codecs.BOM_UTF8) and (more := stream.read(_BLOCK)):
            data += more
        pending: bytes = decoder.getstate()[0]
        if pending or not data.isascii():
            try:
                decoder.decode(data, not data)
            except UnicodeDecodeError as error:
                row = count + 1 + (pending + data).count(b"\n", 0, error.start)
                raise TraceError(TraceFault("its text is not UTF-8: convert the file", row=row)) from None
        text = unfinished + data
        text = text if begun else text.removeprefix(codecs.BOM_UTF8)
        begun = True
        end = text.rfind(b"\n") + 1 if data else len(text)
        unfinished = text[end:]
        lines = _lines(text[:end])
        if len(unfinished) > LONGEST_LINE and _letters(unfinished) > LONGEST_LINE:
            message = f"the line is longer than {LONGEST_LINE:,} characters, the most that is read"
            raise TraceError(TraceFault(message, row=count + len(lines) + 1))
        if len(lines):
            yield lines, count
            count += len(lines)
        if not data:
            yield lines[:0], count
            return


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


def _joined(lines: pa.Array, begins: Any, first: int, parts: bool) -> tuple[pa.Array, Any]:
    numbers = np.flatnonzero(begins)
    if len(numbers) < len(lines):
        offsets = pa.array(np.append(numbers, len(lines)), pa.int32())
        lines = pc.binary_join(pa.ListArray.from_arrays(offsets, lines), "\n")
    if parts:
        lines, numbers = _whole(lines, numbers)
    return lines, numbers + first


def _has_open(lines: pa.Array) -> bool:
    """Tell whether a line is a part that is not the last one of its record."""
    data = lines.buffers()[2] or b""
    if _OPEN_MARK.search(data) is None:
        return False
    return bool(pc.any(pc.match_substring_regex(lines, _OPEN)).as_py())


def _first_open(lines: pa.Array, last: int) -> int:
    """Return the first line of the records that may go on; the last one of the block begins at ``last``."""
    opened: dict[str, int] = {}
    if not _has_open(lines):
        return last
    for number, line in enumerate(lines.slice(0, last).to_pylist()):
        if (part := _PART.match(line)) is not None:
            if part[2] == "P":
                opened.setdefault(part[1], number)
            else:
                opened.pop(part[1], None)
    return min(opened.values(), default=last)


def _whole(records: pa.Array, numbers: Any) -> tuple[pa.Array, Any]:
    """Return records with their parts put together."""
    if not _has_open(records):
        return records, numbers
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
