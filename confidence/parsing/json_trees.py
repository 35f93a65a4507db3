"""The kernel that reads JSON objects with objects and lists in them: the values at some paths as columns."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from confidence.kernel import POSITIVE as INDEX
from confidence.kernel import kernel
from confidence.parsing.json_rows import ESCAPED, FLOAT, NULL, TEXT, WHOLE, _is_escape, _word

__all__ = ["LEAF", "LIST", "NESTED", "NUMERAL", "OBJECT", "ONE", "Cells", "Shape", "read_trees"]

LEAF, NUMERAL, OBJECT, ONE, LIST = range(5)
"""Kinds of nodes: a value, one whose text may be a whole number, an object, one of one member, and a list."""
NESTED: Final = 9
"""The kind of a value that is an object or a list, beside those of `json_rows`."""

KIND, PLACE, FIRST, LAST, NULLABLE = range(5)
"""The columns of ``Shape.nodes``."""

MOST_LEVELS: Final = 60
"""Levels of what is passed over: each has a bit of an integer."""
LARGEST: Final = 2**63 - 1


class Shape(NamedTuple):
    """The paths of values.

    A value of a column lies in a level: the objects of one list. Level 0 are the outermost objects.
    """

    names: Any
    """(l,) uint8: the names of all members, one behind the other, each with its quotes."""
    name_ends: Any
    """(m + 1,) int64: where each name begins, and where the last one ends."""
    targets: Any
    """(m,) int64: the node of each member."""
    nodes: Any
    """(n, 5) int64: the kind of each node; its column (of a list: its level; of an object: -1 for none); its
    first member, and the one behind the last (of a list, and of one member: the node within); 1 if it may be
    null. Node 0 is an object.
    """
    levels: Any
    """(c,) int64: the level of each column."""
    outer: Any
    """(v,) int64: the level around each level; of level 0 it is 0."""


class Cells(NamedTuple):
    """The values of some objects. There is room for ``k`` objects of any level."""

    kinds: Any
    """(c, k) uint8: the kinds of values; 0 at first."""
    firsts: Any
    """(c, k) int64: whole numbers, or where a value begins, of a text behind its quote."""
    lasts: Any
    """(c, k) int64: where a value ends, of a text at its quote."""
    seen: Any
    """(c,) int64: a bit for each kind of a column's values."""
    counts: Any
    """(v,) int64: the objects of each level."""
    parents: Any
    """(v, k) int64: the object around each object; of level 0 where it begins."""
    ends: Any
    """(k,) int64: where each outermost object ends."""


@kernel
def read_trees(letters: Any, breaks: bool, shape: Any, cells: Any, frames: Any) -> bool:
    """Read objects that stand one behind the other; O(bytes).

    Parameters
    ----------
    letters : (m,) uint8
    breaks : bool
        Whether there may be line breaks within objects. If not, there is one behind each.
    shape : Shape
    cells : Cells
    frames : (3, d) int64
        Room for the nodes that a value lies in.

    Returns
    -------
    bool
        Whether all was read. Nothing is if the text is of another form: numbers that are too long, names with
        escapes or that stand there twice, values of another kind than their node.
    """
    place = _blank(letters, 0, True)
    while place < letters.shape[0]:
        row = cells.counts[0]
        if letters[place & INDEX] != 0x7B or row >= cells.ends.shape[0]:
            return False
        cells.counts[0] += 1
        cells.parents[0, row] = place
        place = _read_object(letters, place, breaks, shape, cells, frames)
        if place < 0:
            return False
        cells.ends[row] = place
        behind = _blank(letters, place, breaks)
        if not breaks and behind < letters.shape[0] and letters[behind] != 0x0A:
            return False
        place = _blank(letters, behind, True)
    return True


@kernel(inline=True)
def _read_object(letters: Any, place: int, breaks: bool, shape: Any, cells: Any, frames: Any) -> int:
    """Read an outermost object; return the place behind it, or -1."""
    node, depth = 0, -1
    while True:
        before = depth
        place, depth = _read_value(letters, place, breaks, shape, cells, frames, node, depth)
        if place < 0:
            return -1
        opened = depth > before
        while True:
            if depth < 0:
                return place
            place = _blank(letters, place, breaks)
            if place >= letters.shape[0]:
                return -1
            letter = letters[place & INDEX]
            in_list = shape.nodes[frames[0, depth], KIND] == LIST
            if letter == (0x5D if in_list else 0x7D):
                place += 1
                depth -= 1
                opened = False
                continue
            if not opened:
                if letter != 0x2C:
                    return -1
                place = _blank(letters, place + 1, breaks)
            break
        if in_list:
            node = _next_item(letters, place, shape, cells, frames[0, depth])
        else:
            place, node = _next_member(letters, place, breaks, shape, cells, frames, depth)
        if place < 0 or node < -1:
            return -1


@kernel(inline=True)
def _next_item(letters: Any, place: int, shape: Any, cells: Any, node: int) -> int:
    """Begin an object of a list; return its node, or -2 if it is none."""
    level = shape.nodes[node, PLACE]
    row = cells.counts[level]
    if place >= letters.shape[0] or letters[place & INDEX] != 0x7B or row >= cells.ends.shape[0]:
        return -2
    cells.parents[level, row] = cells.counts[shape.outer[level]] - 1
    cells.counts[level] = row + 1
    return int(shape.nodes[node, FIRST])


@kernel(inline=True)
def _next_member(
    letters: Any, place: int, breaks: bool, shape: Any, cells: Any, frames: Any, depth: int
) -> tuple[int, int]:
    """Read the name of a member; return the place of its value, or -1, and its node, or -1 for no path."""
    node = frames[0, depth]
    if shape.nodes[node, KIND] == ONE:
        # There is but one.
        if frames[1, depth] != 0 or place >= letters.shape[0] or letters[place & INDEX] != 0x22:
            return -1, -1
        frames[1, depth] = 1
        first = place + 1
        last, escaped = _text_end(letters, first)
        place = _value_place(letters, last + 1, breaks) if last >= 0 and not escaped else -1
        if place < 0:
            return -1, -1
        column = shape.nodes[node, PLACE]
        row = cells.counts[shape.levels[column]] - 1
        cells.firsts[column, row] = first
        cells.lasts[column, row] = last
        cells.kinds[column, row] = TEXT
        cells.seen[column] |= 1 << TEXT
        return place, int(shape.nodes[node, FIRST])
    begin, end = shape.nodes[node, FIRST], shape.nodes[node, LAST]
    member = _member(letters, place, shape, begin, end, frames[2, depth])
    if member < 0:
        return _value_of_member(letters, place, breaks), -1
    bit = np.int64(1) << (member - begin)
    if frames[1, depth] & bit:
        return -1, -1
    frames[1, depth] |= bit
    frames[2, depth] = member + 1
    place += shape.name_ends[member + 1] - shape.name_ends[member]
    return _value_place(letters, place, breaks), int(shape.targets[member])


@kernel(inline=True)
def _member(letters: Any, place: int, shape: Any, begin: int, end: int, expected: int) -> int:
    """Return the member whose name stands at a place, looked for from the expected one on; -1: none."""
    member = expected
    for _ in range(end - begin):
        if member >= end:
            member = begin
        first = shape.name_ends[member]
        size = shape.name_ends[member + 1] - first
        # Where the closing quote stands tells most names apart.
        if place + size <= letters.shape[0] and letters[(place + size - 1) & INDEX] == 0x22:
            same = 0
            while same < size and letters[(place + same) & INDEX] == shape.names[(first + same) & INDEX]:
                same += 1
            if same == size:
                return member
        member += 1
    return -1


@kernel(inline=True)
def _read_value(
    letters: Any, place: int, breaks: bool, shape: Any, cells: Any, frames: Any, node: int, depth: int
) -> tuple[int, int]:
    """Read a value, or what opens it; return the place behind it, or -1, and the depth."""
    if place >= letters.shape[0]:
        return -1, depth
    if node < 0:
        return _passed(letters, place, breaks), depth
    kind = shape.nodes[node, KIND]
    if kind <= NUMERAL:
        column = shape.nodes[node, PLACE]
        row = cells.counts[shape.levels[column]] - 1
        return _read_leaf(letters, place, breaks, cells, column, row, kind == NUMERAL), depth
    if letters[place & INDEX] == (0x5B if kind == LIST else 0x7B):
        if depth + 1 >= frames.shape[1]:
            return -1, depth
        depth += 1
        column = shape.nodes[node, PLACE]
        if kind == OBJECT and column >= 0:
            cells.kinds[column, cells.counts[shape.levels[column]] - 1] = NESTED
            cells.seen[column] |= 1 << NESTED
        frames[0, depth] = node
        frames[1, depth] = 0
        frames[2, depth] = shape.nodes[node, FIRST]
        return place + 1, depth
    word, behind = _word(letters, place, letters.shape[0])
    return (behind if word == NULL and shape.nodes[node, NULLABLE] else -1), depth


@kernel(inline=True)
def _read_leaf(
    letters: Any, place: int, breaks: bool, cells: Any, column: int, row: int, numeral: bool
) -> int:
    """Read the value of a column; return the place behind it, or -1."""
    end = letters.shape[0]
    letter = letters[place & INDEX]
    first, last, kind = place, place, NESTED
    if letter == 0x22:
        first = place + 1
        last, escaped = _text_end(letters, first)
        kind = ESCAPED if escaped else TEXT
        place = last + 1 if last >= 0 else -1
        if numeral and place >= 0:
            value, size = _whole(letters, first, last)
            if size == last - first and size > 0:
                kind, first = WHOLE, value
    elif letter == 0x2D or (0x30 <= letter <= 0x39):
        place = last = _number_end(letters, first)
        kind = FLOAT
        value, size = _whole(letters, first, last)
        if size == last - first:
            kind, first = WHOLE, value
    elif letter == 0x7B or letter == 0x5B:
        place = last = _passed(letters, place, breaks)
    else:
        kind, place = _word(letters, place, end)
        last = place
    if place < 0:
        return -1
    cells.kinds[column, row] = kind
    cells.firsts[column, row] = first
    cells.lasts[column, row] = last
    cells.seen[column] |= 1 << kind
    return place


@kernel(inline=True)
def _whole(letters: Any, first: int, last: int) -> tuple[int, int]:
    """Return a whole number of int64 without needless zeros, and how many letters it has; 0: it is none."""
    place = first
    negative = place < last and letters[place & INDEX] == 0x2D
    if negative:
        place += 1
    begin = place
    value = np.int64(0)
    while place < last and 0x30 <= letters[place & INDEX] <= 0x39:
        digit = np.int64(letters[place & INDEX]) - 0x30
        if value > (LARGEST - digit) // 10:
            return 0, 0
        value = value * 10 + digit
        place += 1
    if place == begin or (letters[begin & INDEX] == 0x30 and (place - begin > 1 or negative)):
        return 0, 0
    return int(-value if negative else value), place - first


@kernel(inline=True)
def _number_end(letters: Any, place: int) -> int:
    """Return the place behind a number, or -1 if it is none."""
    if letters[place & INDEX] == 0x2D:
        place += 1
    first = place
    place = _digits_end(letters, place)
    if place == first or (letters[first & INDEX] == 0x30 and place - first > 1):
        return -1
    if place < letters.shape[0] and letters[place & INDEX] == 0x2E:
        first = place + 1
        place = _digits_end(letters, first)
        if place == first:
            return -1
    if place < letters.shape[0] and (letters[place & INDEX] == 0x65 or letters[place & INDEX] == 0x45):
        place += 1
        if place < letters.shape[0] and (letters[place & INDEX] == 0x2B or letters[place & INDEX] == 0x2D):
            place += 1
        first = place
        place = _digits_end(letters, first)
        if place == first:
            return -1
    return place


@kernel(inline=True)
def _digits_end(letters: Any, place: int) -> int:
    """Return the first place from one on that is no digit."""
    while place < letters.shape[0] and 0x30 <= letters[place & INDEX] <= 0x39:
        place += 1
    return place


@kernel(inline=True)
def _blank(letters: Any, place: int, breaks: bool) -> int:
    """Return the first place from one on that is no space; a line break is one if there may be ``breaks``."""
    while place < letters.shape[0]:
        letter = letters[place & INDEX]
        if letter > 0x20:
            break
        if letter != 0x20 and letter != 0x09 and letter != 0x0D and (letter != 0x0A or not breaks):
            break
        place += 1
    return place


@kernel(inline=True)
def _value_of_member(letters: Any, place: int, breaks: bool) -> int:
    """Return the place of the value behind a name; -1 if there is none, or if the name has escapes."""
    if place >= letters.shape[0] or letters[place & INDEX] != 0x22:
        return -1
    place, escaped = _text_end(letters, place + 1)
    return _value_place(letters, place + 1, breaks) if place >= 0 and not escaped else -1


@kernel(inline=True)
def _value_place(letters: Any, place: int, breaks: bool) -> int:
    """Return the place of the value behind a name's end; -1 if there is no colon."""
    place = _blank(letters, place, breaks)
    if place >= letters.shape[0] or letters[place & INDEX] != 0x3A:
        return -1
    return int(_blank(letters, place + 1, breaks))


@kernel
def _passed(letters: Any, place: int, breaks: bool) -> int:
    """Return the place behind a value of any form; -1 if it is none."""
    depth, objects = 0, 0
    while True:
        if place >= letters.shape[0]:
            return -1
        letter = letters[place & INDEX]
        opened = letter == 0x7B or letter == 0x5B
        if opened:
            if depth >= MOST_LEVELS:
                return -1
            depth += 1
            objects = objects << 1 | int(letter == 0x7B)
            place += 1
        elif letter == 0x22:
            place, _ = _text_end(letters, place + 1)
            place = place + 1 if place >= 0 else -1
        elif letter == 0x2D or (0x30 <= letter <= 0x39):
            place = _number_end(letters, place)
        else:
            _, place = _word(letters, place, letters.shape[0])
        while depth > 0:
            if place < 0:
                return -1
            place = _blank(letters, place, breaks)
            if place >= letters.shape[0]:
                return -1
            letter = letters[place & INDEX]
            if letter == (0x7D if objects & 1 else 0x5D):
                place += 1
                depth -= 1
                objects >>= 1
                opened = False
                continue
            if not opened:
                if letter != 0x2C:
                    return -1
                place = _blank(letters, place + 1, breaks)
            break
        if depth == 0 or place < 0:
            return place
        if objects & 1:
            place = _value_of_member(letters, place, breaks)
            if place < 0:
                return -1


@kernel(inline=True)
def _text_end(letters: Any, place: int) -> tuple[int, bool]:
    """Return the place of the quote that ends a text, -1 for none, and whether the text has escapes.

    Half a letter, two of which JSON may write by escapes, is none.
    """
    escaped = False
    end = letters.shape[0]
    while place < end and letters[place & INDEX] != 0x22:
        letter = letters[place & INDEX]
        if letter < 0x20:
            return -1, escaped
        if letter == 0x5C:
            escaped = True
            place += 1
            if place >= end or not _is_escape(letters[place & INDEX]):
                return -1, escaped
            if letters[place & INDEX] == 0x75:
                place = _code_end(letters, place + 1)
                if place < 0:
                    return -1, escaped
                continue
        place += 1
    return place if place < end else -1, escaped


@kernel(inline=True)
def _code_end(letters: Any, place: int) -> int:
    """Return the place behind four hexadecimal digits of a letter; -1 if they are none, or half a letter."""
    code = np.int64(0)
    if place + 4 > letters.shape[0]:
        return -1
    for offset in range(4):
        letter = np.int64(letters[(place + offset) & INDEX])
        if 0x30 <= letter <= 0x39:
            code = code * 16 + (letter - 0x30)
        elif 0x61 <= letter | 0x20 <= 0x66:
            code = code * 16 + ((letter | 0x20) - 0x57)
        else:
            return -1
    return -1 if 0xD800 <= code < 0xE000 else place + 4
