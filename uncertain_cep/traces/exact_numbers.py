"""Numbers in text that no type of numbers holds as they stand: codes such as 08, and long whole numbers.

Arrow reads 08 as 8, and a whole number beyond 64 bits as the nearest float64, which may be that of another
one. A column of such numbers is text here. Where long ones stand beside decimal numbers, the column is
float64, and a warning counts the numbers that are rounded.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.errors import TraceError, warn
from uncertain_cep.timeline.domain import is_text
from uncertain_cep.traces.common_types import is_number
from uncertain_cep.traces.faulty_rows import row_faults

__all__ = [
    "AS_TEXT",
    "LARGEST",
    "WatchedStream",
    "check_kept_as_numbers",
    "has_large",
    "kept_as_text",
    "marked",
    "mixed_columns",
    "with_exact_numbers",
    "with_numbers",
]

AS_TEXT: Final = {b"as_text": b"numbers that no type of numbers holds"}
"""The metadata of the field of a column of numbers that is read as text."""

LARGEST: Final = 2**53
"""Up to it float64 holds every whole number."""

_ZERO: Final = r"^\s*[-+]?0[0-9]"
_WHOLE: Final = r"^\s*[-+]?[0-9]+\s*$"
_PIECE: Final = 1 << 16
"""Bytes that are looked at together: arrays of more are mapped anew each time, and no longer in the cache."""

_ZERO_DIGIT: Final = 0x30
_DOT: Final = 0x2E
_QUOTE: Final = 0x22
_LINE_BREAK: Final = 0x0A
_BEFORE: Final = 3
"""Bytes of a piece that are looked at again with the next one."""


class WatchedStream(io.RawIOBase):
    """A stream of the bytes of a CSV file that notes whether a value may begin with a 0 and another digit.

    It looks at each byte once, .15 to .5 ms a megabyte. Arrow reads ahead in a thread of its own, also after
    an error. So closing waits for a read: otherwise that read could take bytes of the file that is opened
    next.
    """

    def __init__(self, stream: Any, delimiter: str) -> None:
        super().__init__()
        self._stream = stream
        self._reading = Lock()
        self._delimiter = ord(delimiter) if ord(delimiter) < 128 else ord(",")
        self._last = np.array([_LINE_BREAK], np.uint8)
        self.has_zero = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most so many."""
        with self._reading:
            data: bytes = self._stream.read(size) if size >= 0 else self._stream.read()
            self._look(data)
        return data

    def read_buffer(self, size: int) -> pa.Buffer:
        """Return the next bytes, at most so many, as Arrow takes them without a copy."""
        if not isinstance(self._stream, pa.NativeFile):
            return pa.py_buffer(self.read(size))
        with self._reading:
            buffer = self._stream.read_buffer(size)
            self._look(buffer)
        return buffer

    def readinto(self, buffer: Any) -> int:
        """Write the next bytes to a buffer, and return how many there are."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stream of bytes, too."""
        with self._reading:
            self._stream.close()
            super().close()

    def _look(self, data: bytes | pa.Buffer) -> None:
        if self.has_zero:
            return
        letters = np.frombuffer(data, np.uint8)
        # What begins with the last bytes goes on in the next ones.
        border = np.concatenate((self._last, letters[:_BEFORE]))
        self._last = np.concatenate((self._last, letters[-_BEFORE:]))[-_BEFORE:]
        pieces = (letters[begin : begin + _PIECE + _BEFORE] for begin in range(0, len(letters), _PIECE))
        self.has_zero = any(_begins_with_zero(piece, self._delimiter) for piece in (border, *pieces))


def _begins_with_zero(letters: NDArray[np.uint8], delimiter: int) -> bool:
    """Tell whether a 0 and a digit stand behind a delimiter, a sign or a space between, in (n,) letters."""
    zero = letters == _ZERO_DIGIT
    # Commas, quotes, line breaks, signs and spaces are below the dot, and so below all letters.
    low = letters < _DOT
    if delimiter >= _DOT:
        low |= letters == delimiter
    low = low[:-1]
    low &= zero[1:]
    if not low.any():
        return False
    begins = letters == delimiter
    begins |= letters == _LINE_BREAK
    begins |= letters == _QUOTE
    at_once = begins[:-2] & zero[1:-1]
    apart = letters[1:-2] < _DOT
    apart &= begins[:-3]
    apart &= zero[2:-1]
    return any(
        zeros.any() and ((letters[np.flatnonzero(zeros) + behind] - np.uint8(_ZERO_DIGIT)) < 10).any()
        for zeros, behind in ((at_once, 2), (apart, 3))
    )


def has_large(column: pa.ChunkedArray | pa.Array) -> bool:
    """Tell whether a column of float64 holds a number from which on not all whole ones are held."""
    smallest, largest = pc.min_max(column).as_py().values()
    if smallest is None or max(-smallest, largest) < LARGEST:
        return False
    return bool(pc.any(pc.and_(pc.is_finite(column), pc.greater_equal(pc.abs(column), LARGEST))).as_py())


def with_exact_numbers(
    table: pa.Table, has_zero: bool, texts: Callable[[list[str]], pa.Table], file: str
) -> pa.Table:
    """Return the rows of a text file with those columns of numbers as text that numbers do not hold.

    ``has_zero`` tells whether a value may begin with 0 and another digit; ``texts`` reads columns as text.
    """
    suspects = [
        field.name
        for field in table.schema
        if is_number(field.type)
        and (has_zero or (pa.types.is_floating(field.type) and has_large(table.column(field.name))))
    ]
    if not suspects:
        return table
    again = texts(suspects)
    for name in suspects:
        text = again.column(name)
        if kept_as_text(text, table.column(name), name, file):
            table = table.set_column(table.schema.get_field_index(name), marked(name), text)
    return table


def marked(name: str) -> pa.Field:
    """Return the field of a column of numbers that is read as text."""
    return pa.field(name, pa.string(), metadata=AS_TEXT)


def kept_as_text(text: pa.ChunkedArray, numbers: pa.ChunkedArray, name: str, file: str) -> bool:
    """Tell whether a column of numbers is to be read as the text that stands there.

    Warns where whole numbers are rounded, as others of the column are decimal numbers.
    """
    if pc.any(pc.match_substring_regex(text, _ZERO)).as_py():
        return True
    if not pa.types.is_floating(numbers.type) or not has_large(numbers):
        return False
    whole = pc.match_substring_regex(text, _WHOLE)
    if pc.all(whole).as_py():
        return True
    large = pc.and_(whole, pc.greater_equal(pc.abs(numbers), float(LARGEST)))
    rows = np.flatnonzero(np.asarray(pc.fill_null(large, False)))
    texts = text.take(pa.array(rows)).to_pylist()
    lost = [
        (row + 1, each)
        for row, each in zip(rows.tolist(), texts, strict=True)
        if int(float(each)) != int(each)
    ]
    warn_of_rounded(name, len(lost), lost[:1], file)
    return False


def warn_of_rounded(name: str, count: int, first: Sequence[tuple[int, str]], file: str) -> None:
    """Warn that so many whole numbers of a column are rounded, the first of them in a row."""
    if not count:
        return
    ((row, value),) = first
    warn(
        f"{file}: column {name}: {count:,} whole numbers beyond 2^53 stand beside decimal numbers and are "
        f"rounded (the first: row {row}, {value.strip()}): to keep them, read the column as text, [types] "
        f'and then {name} = "string"'
    )


def mixed_columns(schemas: Iterable[pa.Schema]) -> set[str]:
    """Return the columns that are text in one file, as numbers do not hold them, and numbers in another."""
    texts: set[str] = set()
    numbers: set[str] = set()
    for schema in schemas:
        for field in schema:
            if field.metadata == AS_TEXT:
                texts.add(field.name)
            elif is_number(field.type):
                numbers.add(field.name)
    return texts & numbers


def with_numbers(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return a table in which these columns are numbers, though a number begins with 0 or is long."""
    for name in names:
        place = table.schema.get_field_index(name)
        if place < 0 or table.schema.field(place).metadata != AS_TEXT:
            continue
        for dtype in (pa.int64(), pa.float64()):
            try:
                table = table.set_column(
                    place, name, pc.utf8_trim_whitespace(table.column(place)).cast(dtype)
                )
                break
            except pa.ArrowInvalid:
                continue
    return table


def check_kept_as_numbers(column: pa.ChunkedArray, name: str) -> None:
    """Refuse, by a TraceError, text that loses something as numbers; ``column`` may be of any type."""
    if not is_text(column.type):
        return
    long = rf"^\s*[-+]?[0-9]{{{len(str(LARGEST))},}}\s*$"
    lost = pc.or_(pc.match_substring_regex(column, _ZERO), pc.match_substring_regex(column, long))
    bad = np.asarray(pc.fill_null(lost, False))
    if bad.any():
        message = (
            "it is no number, but a code or a long whole number, and the first files hold numbers: read the "
            f'column as text, [types] and then {name} = "string"'
        )
        raise TraceError(row_faults(bad, message, column=name, values=column))
