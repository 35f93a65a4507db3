"""Text that is looked at before it is read: long lines, many columns and deep nesting are refused early.

A file of a few kilobytes can unpack to one line of any length, and a line can nest deeper than a parser's
stack. Neither may take the memory of the machine, or the process.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.errors import TraceError, TraceFault

__all__ = [
    "CSV_BLOCKS",
    "LONGEST_LINE",
    "MOST_COLUMNS",
    "MOST_LEVELS",
    "NestingGuard",
    "UnreadableLineError",
    "header_names",
    "levels_of",
    "long_line_fault",
    "straddles",
]

LONGEST_LINE: Final = 1 << 24
"""Bytes of a row, or of a line of column names, that can be read in any case; a longer one may be refused."""

CSV_BLOCKS: Final = (1 << 20, LONGEST_LINE)
"""Bytes that are parsed at a time: a row must fit into one block, and small ones are faster."""

MOST_COLUMNS: Final = 100_000
"""Most columns of a file."""

MOST_LEVELS: Final = 100
"""Deepest nesting of arrays and objects in a line of JSON."""

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_NULL: Final = re.compile(rb"[ \t\r]*(?:\xef\xbb\xbf)?[ \t\r]*n")
_OPENING: Final = np.zeros(256, np.int8)
_OPENING[list(b"[{")] = 1
_OPENING[list(b"]}")] = -1


def straddles(error: Exception) -> bool:
    """Return whether Arrow found a row that does not fit into a block."""
    return "straddles two block boundaries" in str(error)


def header_names(stream: BinaryIO, delimiter: str) -> list[str]:
    """Return the column names in the first line of a decompressed CSV stream; none if there is no text.

    Reads at most ``LONGEST_LINE`` characters. Raises a TraceError without the file's name if the line is too
    long or has too many names, and csv.Error if it is no CSV.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")

    def lines() -> Iterator[str]:
        remaining = LONGEST_LINE
        while line := text.readline(remaining + 1):
            remaining -= len(line)
            if remaining < 0:
                raise TraceError(
                    f"the line of the column names is longer than {LONGEST_LINE:,} characters: write each "
                    "row on a line of its own"
                )
            yield line

    try:
        names = next(csv.reader(lines(), delimiter=delimiter), [])
    except csv.Error as error:
        if "field larger than field limit" in str(error):
            raise TraceError(f"a column name is longer than {csv.field_size_limit():,} characters") from None
        raise
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        raise TraceError("the name of a column is no UTF-8 text: convert the file") from None
    if len(names) > MOST_COLUMNS:
        raise TraceError(f"it has {len(names):,} columns, and at most {MOST_COLUMNS:,} can be read")
    return names


def long_line_fault(stream: BinaryIO) -> TraceFault:
    """Return the fault of decompressed text with a row that does not fit into the largest block."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            return TraceFault(
                f"line {number:,} is longer than {LONGEST_LINE:,} bytes, the most that is read: write each "
                "row on a line of its own"
            )
    return TraceFault(f"a row is longer than {LONGEST_LINE:,} bytes: is a quote not closed?")


def levels_of(line: bytes) -> int:
    """Return how deep arrays and objects are nested in a line of JSON, closed or not."""
    codes = np.frombuffer(_STRING.sub(b"", line), np.uint8)
    return int(np.cumsum(_OPENING[codes], dtype=np.int64).max(initial=0))


class UnreadableLineError(ValueError):
    """A line of JSON nests deeper than ``MOST_LEVELS``, is far longer than ``LONGEST_LINE``, or is a null."""


class NestingGuard(io.RawIOBase):
    """Decompressed JSON lines, up to one that might end the process that parses it.

    That is one that nests too deep; and one that begins with a null, which Arrow writes to nowhere as the
    first row of a block (apache/arrow#47409). `read` raises `UnreadableLineError` before it returns the first
    byte beyond a limit. A line is looked at closely only if it has more than ``MOST_LEVELS`` opening brackets
    or begins with a space; the others are counted in one pass.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self._unfinished: list[bytes] = []
        self._openings = 0
        self._begun = False

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        data: bytes = self._stream.read(size) if size >= 0 else self._stream.read()
        codes = np.frombuffer(data, np.uint8)
        # 0x20 is all that tells [ from {.
        openings = np.flatnonzero((codes | 0x20) == ord("{"))
        ends = np.flatnonzero(codes == ord("\n"))
        self._check_begins(data, codes, ends)
        counts = np.searchsorted(openings, ends)
        of_lines = np.diff(counts, prepend=-self._openings)
        for number in np.flatnonzero(of_lines > MOST_LEVELS).tolist():
            begin = int(ends[number - 1]) + 1 if number else 0
            self._check(data[begin : int(ends[number])], unfinished=not number)
        unfinished = data[int(ends[-1]) + 1 :] if len(ends) else data
        since = len(openings) - (int(counts[-1]) if len(ends) else -self._openings)
        if len(ends):
            self._unfinished.clear()
        self._openings = since
        if unfinished:
            self._unfinished.append(unfinished)
            if sum(map(len, self._unfinished)) > 2 * LONGEST_LINE:
                raise UnreadableLineError
            if since > MOST_LEVELS:
                self._check(b"", unfinished=True)
        return data

    def _check_begins(self, data: bytes, codes: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        """Raise an error if a line begins with a null."""
        begins = ends[: np.searchsorted(ends, len(data) - 1)] + 1
        first = codes[begins]
        unclear = (first == ord("n")) | (first == 0xEF) | ((first <= ord(" ")) & (first != ord("\n")))
        places = ([] if self._begun else [0]) + begins[unclear].tolist()
        if any(_NULL.match(data, place) for place in places):
            raise UnreadableLineError
        unfinished = data[int(ends[-1]) + 1 :] if len(ends) else data
        self._begun = bool(unfinished.strip()) or (self._begun and not len(ends))

    def _check(self, line: bytes, *, unfinished: bool) -> None:
        whole = b"".join((*self._unfinished, line)) if unfinished else line
        if levels_of(whole) > MOST_LEVELS:
            raise UnreadableLineError
