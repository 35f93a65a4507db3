"""Names that a misspelt one may be meant for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["nearest", "slips", "unit_meant"]

_UNITS: Final = ("nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week")
_UNEVEN: Final = ("month", "quarter", "year")
_SEPARATORS: Final = re.compile(r"[\W_]+")
_FEWEST: Final = 3
"""Letters that a word must have to be taken for a misspelt one."""

_LETTERS_A_SLIP: Final = 4
"""A word of so many letters may have one slip, one of twice as many two, and so on; the first of three."""


def nearest(word: str, names: Iterable[str]) -> str | None:
    """Return the known name that a word is most likely meant for; None if it is like none of them.

    Case and signs between words do not count, half of a name stands for it, and else a quarter of the letters
    may be wrong, missing, too many or swapped. A name is no misspelling of itself.
    """
    plain_word = _SEPARATORS.sub("", word).casefold()
    best: tuple[int, str] | None = None
    for name in names:
        plain_name = _SEPARATORS.sub("", name).casefold()
        if name == word:
            continue
        if plain_word == plain_name and plain_word:
            return name
        if min(len(plain_word), len(plain_name)) < _FEWEST:
            continue
        shorter, longer = sorted((plain_word, plain_name), key=len)
        limit = max(len(longer) // _LETTERS_A_SLIP, 1)
        distance = slips(plain_word, plain_name, limit)
        if distance > limit and not (longer.startswith(shorter) and 2 * len(shorter) >= len(longer)):
            continue
        if best is None or distance < best[0]:
            best = distance, name
    return None if best is None else best[1]


def slips(one: str, other: str, limit: int) -> int:
    """Return how many letters to add, drop, change or swap with the next make a text another one.

    More than ``limit`` are not counted on. O(n m). (Optimal string alignment, after Damerau 1964.)
    """
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before, row = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        following = [i]
        for j, another in enumerate(other, 1):
            cost = min(row[j] + 1, following[-1] + 1, row[j - 1] + (letter != another))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == another:
                cost = min(cost, before[j - 2] + 1)
            following.append(cost)
        before, row = row, following
    return row[-1]


def unit_meant(word: str) -> str:
    """Return the unit of time that a word may mean, as the end of a message; "" if none."""
    single = word.lower().removesuffix("s")
    if single in _UNEVEN:
        return f": a {single} has no fixed length, so count in days, such as 30 days"
    unit = nearest(single, _UNITS)
    return "" if unit is None else f": did you mean {unit}{'s' * word.lower().endswith('s')}?"
