"""Patterns of text: those of LIKE as regular expressions, and regular expressions of RE2 looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["extracting", "groups_of", "like_regex", "regex_fault"]

# Quoted text, an escaped character, a class, the beginning of a group that captures, any other character.
_ELEMENT = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\((?!\?)|\(\?P?<\w+>|.", re.DOTALL
)


def like_regex(pattern: str, escape: str | None = None, *, any_case: bool = False) -> str:
    """Return the regular expression of a LIKE pattern; of ILIKE, for text in lower case.

    ``%`` is any text, ``_`` any character, and what follows the escape character is that very character. A
    ValueError says that nothing follows it.
    """
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if not character:
                raise ValueError("the pattern ends with its escape character")
        elif character in "%_":
            parts.append(".*" if character == "%" else ".")
            continue
        if any_case:
            character = pc.utf8_lower(pa.scalar(character)).as_py()
        parts.append(re.escape(character))
    return f"(?s)\\A(?:{''.join(parts)})\\z"


def regex_fault(pattern: str) -> str | None:
    """Return the error of RE2 about a regular expression; None if it takes it."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None


def groups_of(pattern: str) -> int:
    """Return how many groups of a regular expression capture text."""
    return sum(_captures(element) for element in _elements(pattern))


def extracting(pattern: str, group: int) -> str:
    """Return a regular expression whose only group captures what a group of another one does; 0 is all."""
    parts, number = [], 0
    for element in _elements(pattern):
        if _captures(element):
            number += 1
            element = "(?P<found>" if number == group else "(?:"
        parts.append(element)
    whole = "".join(parts)
    return whole if group else f"(?P<found>{whole})"


def _elements(pattern: str) -> Iterator[str]:
    return (match[0] for match in _ELEMENT.finditer(pattern))


def _captures(element: str) -> bool:
    return element == "(" or (element.startswith("(?") and element.endswith(">"))
