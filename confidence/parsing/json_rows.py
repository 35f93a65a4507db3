"""The kernel that reads lines of flat JSON objects, which nearly all have the same names."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from confidence.kernel import kernel

__all__ = ["ABSENT", "ESCAPED", "FALSE", "FLOAT", "NULL", "STAMP", "TEXT", "TRUE", "WHOLE", "read_rows"]

ABSENT, NULL, TEXT, WHOLE, FLOAT, TRUE, FALSE, STAMP, ESCAPED = range(9)
"""Kinds of values; a text that may be a time is a `STAMP`, one with escapes `ESCAPED`."""

MOST_EXACT: Final = 2**53
"""Whole numbers up to it, times or by a power of ten up to 10**22, are one rounding away from their float."""
MOST_POWER: Final = 22
LARGEST: Final = 2**63 - 1
SHORTEST_STAMP: Final = 10


@kernel
def read_rows(
    letters: Any, begin: int, end: int, names: Any, name_ends: Any, powers: Any, longest: int,
    kinds: Any, firsts: Any, lasts: Any, floats: Any, seen: Any,
) -> int:  # fmt: skip
    """Read lines of flat objects; O(bytes).

    Parameters
    ----------
    letters : (m,) uint8
    begin, end : int
        Whole lines.
    names : (l,) uint8
        The names of all columns, one behind the other, each with its quotes.
    name_ends : (c + 1,) int64
        Where each name begins, and where the last one ends.
    powers : (23,) float64
        Powers of ten.
    longest : int
        Bytes of the longest line that is read.
    kinds : (c, n) uint8
        Takes the kinds of values; `ABSENT` at first.
    firsts, lasts : (c, n) int64
        Take whole numbers, or where texts begin and end.
    floats : (c, n) float64
        Takes numbers.
    seen : (c,) int64
        Takes a bit for each kind of a column's values.

    Returns
    -------
    int
        The rows; -1 if a line is of another form, such as one with nested values, names that are unknown or
        stand there twice, or numbers that are not exact.
    """
    columns = name_ends.shape[0] - 1
    row = 0
    place = begin
    while place < end:
        letter = letters[place]
        if letter == 0x0A or letter == 0x20 or letter == 0x0D or letter == 0x09:
            place += 1
            continue
        if letter != 0x7B or row >= kinds.shape[1]:
            return -1
        line = place
        place = _space(letters, place + 1, end)
        expected = 0
        if place < end and letters[place] == 0x7D:
            place += 1
            row += 1
            place = _line_end(letters, place, end)
            if place < 0:
                return -1
            continue
        while True:
            column = _column(letters, place, end, names, name_ends, expected)
            if column < 0 or kinds[column, row] != ABSENT:
                return -1
            expected = column + 1 if column + 1 < columns else 0
            place = _space(letters, place + name_ends[column + 1] - name_ends[column], end)
            if place >= end or letters[place] != 0x3A:
                return -1
            place = _space(letters, place + 1, end)
            if place >= end:
                return -1
            letter = letters[place]
            if letter == 0x22:
                first = place + 1
                place, escaped = _text_end(letters, first, end)
                if place < 0:
                    return -1
                firsts[column, row] = first
                lasts[column, row] = place
                kind = TEXT
                if escaped:
                    kind = ESCAPED
                elif _may_be_stamp(letters, first, place):
                    kind = STAMP
                place += 1
            elif letter == 0x2D or (0x30 <= letter <= 0x39):
                kind, place = _number(letters, place, end, powers, firsts, floats, column, row)
                if place < 0:
                    return -1
            else:
                kind, place = _word(letters, place, end)
                if place < 0:
                    return -1
            kinds[column, row] = kind
            seen[column] |= 1 << kind
            place = _space(letters, place, end)
            if place >= end:
                return -1
            letter = letters[place]
            place += 1
            if letter == 0x7D:
                break
            if letter != 0x2C:
                return -1
            place = _space(letters, place, end)
        if place - line > longest:
            return -1
        row += 1
        place = _line_end(letters, place, end)
        if place < 0:
            return -1
    return row


@kernel(inline=True)
def _space(letters: Any, place: int, end: int) -> int:
    """Return the first place from one on that is no space; line breaks are, but are not read within a row."""
    while place < end and (letters[place] == 0x20 or letters[place] == 0x09):
        place += 1
    return place


@kernel(inline=True)
def _line_end(letters: Any, place: int, end: int) -> int:
    """Return the place behind a line's end; -1 if something else stands before it."""
    while place < end:
        letter = letters[place]
        place += 1
        if letter == 0x0A:
            return place
        if letter != 0x20 and letter != 0x0D and letter != 0x09:
            return -1
    return place


@kernel(inline=True)
def _column(letters: Any, place: int, end: int, names: Any, name_ends: Any, expected: int) -> int:
    """Return the column whose name stands at a place, looked for from the expected one on; -1: none."""
    columns = name_ends.shape[0] - 1
    column = expected
    for _ in range(columns):
        begin = name_ends[column]
        size = name_ends[column + 1] - begin
        if place + size <= end:
            same = 0
            while same < size and letters[place + same] == names[begin + same]:
                same += 1
            if same == size:
                return column
        column = column + 1 if column + 1 < columns else 0
    return -1


@kernel(inline=True)
def _text_end(letters: Any, place: int, end: int) -> tuple[int, bool]:
    """Return the place of the quote that ends a text, -1 for none, and whether the text has escapes."""
    escaped = False
    while place < end and letters[place] != 0x22:
        letter = letters[place]
        if letter < 0x20:
            return -1, escaped
        if letter == 0x5C:
            escaped = True
            place += 1
            if place >= end or not _is_escape(letters[place]):
                return -1, escaped
        place += 1
    return place if place < end else -1, escaped


@kernel(inline=True)
def _is_escape(letter: Any) -> bool:
    """Tell whether a letter may stand behind a backslash."""
    is_sign = letter == 0x22 or letter == 0x5C or letter == 0x2F
    # These are b, f, n, r, t and u.
    is_letter = letter == 0x62 or letter == 0x66 or letter == 0x6E or letter == 0x72
    return bool(is_sign or is_letter or letter == 0x74 or letter == 0x75)


@kernel(inline=True)
def _may_be_stamp(letters: Any, first: int, end: int) -> bool:
    """Tell whether a text may be a time, such as 2024-05-31: Arrow takes such for times."""
    return (
        end - first >= SHORTEST_STAMP
        and 0x30 <= letters[first] <= 0x39
        and 0x30 <= letters[first + 3] <= 0x39
        and letters[first + 4] == 0x2D
    )


@kernel(inline=True)
def _word(letters: Any, place: int, end: int) -> tuple[int, int]:
    """Return the kind of null, true or false, and the place behind it; -1 if it is none of them."""
    letter = letters[place]
    if place + 4 <= end and (letter == 0x6E or letter == 0x74):
        second, third, fourth = letters[place + 1], letters[place + 2], letters[place + 3]
        if letter == 0x6E and second == 0x75 and third == 0x6C and fourth == 0x6C:
            return NULL, place + 4
        if letter == 0x74 and second == 0x72 and third == 0x75 and fourth == 0x65:
            return TRUE, place + 4
    if place + 5 <= end and letter == 0x66 and letters[place + 1] == 0x61 and letters[place + 2] == 0x6C:
        third, fourth = letters[place + 3], letters[place + 4]
        if third == 0x73 and fourth == 0x65:
            return FALSE, place + 5
    return NULL, -1


@kernel(inline=True)
def _number(
    letters: Any, place: int, end: int, powers: Any, firsts: Any, floats: Any, column: int, row: int
) -> tuple[int, int]:
    """Read a number; return its kind and the place behind it, or -1 if it is none, or not exact."""
    negative = letters[place] == 0x2D
    if negative:
        place += 1
    first = place
    value = np.int64(0)
    while place < end and 0x30 <= letters[place] <= 0x39:
        if value > (LARGEST - 9) // 10:
            return WHOLE, -1
        value = value * 10 + (np.int64(letters[place]) - 0x30)
        place += 1
    if place == first or (letters[first] == 0x30 and place - first > 1):
        return WHOLE, -1
    if place >= end or (letters[place] != 0x2E and letters[place] != 0x65 and letters[place] != 0x45):
        if negative and value == 0:
            # As a float it is another zero.
            return WHOLE, -1
        firsts[column, row] = -value if negative else value
        floats[column, row] = -float(value) if negative else float(value)
        return WHOLE, place
    scale = 0
    if letters[place] == 0x2E:
        place += 1
        first = place
        while place < end and 0x30 <= letters[place] <= 0x39:
            if value > (LARGEST - 9) // 10:
                return FLOAT, -1
            value = value * 10 + (np.int64(letters[place]) - 0x30)
            scale -= 1
            place += 1
        if place == first:
            return FLOAT, -1
    if place < end and (letters[place] == 0x65 or letters[place] == 0x45):
        return FLOAT, -1
    if value > MOST_EXACT or scale < -MOST_POWER or (value == 0 and negative):
        return FLOAT, -1
    number = float(value) / powers[-scale]
    floats[column, row] = -number if negative else number
    return FLOAT, place
