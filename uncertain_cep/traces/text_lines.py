"""Text logs as rows: lines, joined where they go on with the one before."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.bounded import LONGEST_LINE

__all__ = ["CONTINUATION", "LINE", "record_blocks"]

LINE: Final = "line"
"""The column that has a record of a text file."""

CONTINUATION: Final = (
    r"^(?:\s|$|Caused by: |Suppressed: |Traceback \(most recent call last\)"
    r"|[A-Za-z_][\w.$]*(?:Exception|Error)\b)"
)
"""What begins a line that goes on with the one before: stack traces of Java and Python."""

_BLOCK: Final = 2**23
_MOST_JOINED: Final = 100_000
"""Lines of one record: a file without any beginning of one is not a single record."""


_OPEN: Final = r"^\S+ (?:stdout|stderr) P"
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

    kept: list[str] = []
    kept_from = 0
    for lines, first in _line_blocks(stream):
        if not kept and not lines:
            return
        block = pa.array(kept + lines, pa.string())
        begin = np.ones(len(block), np.bool_)
        if begins is not None:
            begin = np.array(pc.match_substring_regex(block, begins))
        elif continuation is not None:
            begin = ~np.asarray(pc.match_substring_regex(block, continuation))
        begin[0] = True
        if not lines:
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
        kept, kept_from = (kept + lines)[last:], start + last


def _line_blocks(stream: Any) -> Iterator[tuple[list[str], int]]:
    """Yield lines, and the number of the first of them; none at last."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    unfinished, count = "", 0
    while True:
        data = stream.read(_BLOCK)
        try:
            text = unfinished + decoder.decode(data, not data)
        except UnicodeDecodeError as error:
            row = count + 1 + unfinished.count("\n") + data[: error.start].count(b"\n")
            raise TraceError(TraceFault("its text is not UTF-8: convert the file", row=row)) from None
        lines = text.split("\n")
        unfinished = lines.pop() if data else ""
        if not data and lines[-1] == "":
            lines.pop()
        if len(unfinished) > LONGEST_LINE:
            message = f"the line is longer than {LONGEST_LINE:,} characters, the most that is read"
            raise TraceError(TraceFault(message, row=count + len(lines) + 1))
        if lines:
            if "\r" in text:
                lines = [line.removesuffix("\r") for line in lines]
            yield lines, count
            count += len(lines)
        if not data:
            yield [], count
            return


def _joined(lines: pa.Array, begins: Any, first: int, parts: bool) -> tuple[pa.Array, Any]:
    numbers = np.flatnonzero(begins)
    if len(numbers) < len(lines):
        offsets = pa.array(np.append(numbers, len(lines)), pa.int32())
        lines = pc.binary_join(pa.ListArray.from_arrays(offsets, lines), "\n")
    if parts:
        lines, numbers = _whole(lines, numbers)
    return lines, numbers + first


def _first_open(lines: pa.Array, last: int) -> int:
    """Return the first line of the records that may go on; the last one of the block begins at ``last``."""
    opened: dict[str, int] = {}
    if not pc.any(pc.match_substring_regex(lines, _OPEN)).as_py():
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
    if not pc.any(pc.match_substring_regex(records, _OPEN)).as_py():
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
