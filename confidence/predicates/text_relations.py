"""Relations of two texts of different events, in the kernels that bind them.

Kernels know a text by its rank. The bytes of all texts stand among the integers that bytecode reads, as UTF-8
in words of eight: at a place P the number n of texts, then where each begins and the last one ends, counted
in bytes, then the words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel

__all__ = ["is_related", "text_words"]

# The relations, as the opcodes count them.
CONTAINS, STARTS_WITH, LIKE, SHARES = range(4)
SEPARATOR = 0x1F
"""Stands before, between and behind the elements of a list in its text."""
ANY_TEXT, ANY_CHARACTER = ord("%"), ord("_")


def text_words(begin: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return n texts as kernels read them, (n + 2 + bytes / 8,) int64.

    ``begin``, (n + 1,), tells where each text begins and the last one ends among ``data``.
    """
    padded = np.zeros(-(-len(data) // 8) * 8, np.uint8)
    padded[: len(data)] = data
    return np.concatenate((np.array([len(begin) - 1]), begin, padded.view("<i8").astype(np.int64)))


@kernel
def _byte(ints, words, at):
    """Return a byte of the texts whose words begin at a place."""
    return (ints[words + (at >> 3)] >> ((at & 7) << 3)) & 255


@kernel
def _begins(ints, words, at, part, size):
    """Return whether the bytes at a place are those of a part."""
    k = 0
    while k < size and _byte(ints, words, at + k) == _byte(ints, words, part + k):
        k += 1
    return k == size


@kernel
def _behind(ints, words, at, stop):
    """Return where the next character begins."""
    at += 1
    while at < stop and _byte(ints, words, at) & 192 == 128:
        at += 1
    return at


@kernel
def _is_like(ints, words, at, stop, pattern, pattern_stop):
    """Return whether a text is like a pattern: ``%`` is any text, ``_`` one character. O(n m) at worst."""
    # Where the last % stands, and the text behind what it has taken so far.
    star, taken = -1, 0
    while at < stop:
        sign = _byte(ints, words, pattern) if pattern < pattern_stop else -1
        if sign == ANY_TEXT:
            star, taken = pattern, at
            pattern += 1
        elif sign == ANY_CHARACTER:
            at = _behind(ints, words, at, stop)
            pattern += 1
        elif sign >= 0 and sign == _byte(ints, words, at):
            at += 1
            pattern += 1
        elif star >= 0:
            taken = _behind(ints, words, taken, stop)
            at = taken
            pattern = star + 1
        else:
            return False
    while pattern < pattern_stop and _byte(ints, words, pattern) == ANY_TEXT:
        pattern += 1
    return pattern == pattern_stop


@kernel
def _contains(ints, words, at, stop, part, size):
    """Return whether a text contains a part of some bytes. O(n m) at worst."""
    while at <= stop - size:
        if _begins(ints, words, at, part, size):
            return True
        at += 1
    return False


@kernel
def _shares(ints, words, at, stop, part, part_stop):
    """Return whether two lists, as texts, have an element in common. O(n m) at worst."""
    begin = at
    at += 1
    while at < stop:
        if _byte(ints, words, at) == SEPARATOR:
            # With the separators on both sides.
            if _contains(ints, words, part, part_stop, begin, at + 1 - begin):
                return True
            begin = at
        at += 1
    return False


@kernel
def is_related(relation, ints, place, x, y):
    """Return 1 if the text of rank ``x`` contains, starts with or is like that of rank ``y``, else 0.

    Or, of texts of lists, if these have an element in common.
    """
    words = place + 2 + ints[place]
    at, stop = ints[place + 1 + x], ints[place + 2 + x]
    part, part_stop = ints[place + 1 + y], ints[place + 2 + y]
    if relation == LIKE:
        return int(_is_like(ints, words, at, stop, part, part_stop))
    if relation == SHARES:
        return int(_shares(ints, words, at, stop, part, part_stop))
    size = part_stop - part
    if relation == STARTS_WITH:
        return int(at <= stop - size and _begins(ints, words, at, part, size))
    return int(_contains(ints, words, at, stop, part, size))
