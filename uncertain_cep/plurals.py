"""Numbers with their nouns, and long texts, as messages give them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "first_few", "listed", "shortened"]


def counted(number: float, noun: str, plural: str | None = None, *, shown: str | None = None) -> str:
    """Return a number, ``shown`` as such or whole with commas, and a noun, in the plural unless that is 1."""
    text = f"{number:,.0f}" if shown is None else shown
    return f"{text} {noun if text == '1' else plural or f'{noun}s'}"


def listed(names: Sequence[str]) -> str:
    """Return names with commas between them, and a word before the last one."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def first_few(texts: Sequence[str], limit: int = 5) -> str:
    """Return the first texts with commas between them, and how many more there are."""
    more = len(texts) - limit
    return ", ".join(texts[:limit]) + (f" and {more:,} more" if more > 0 else "")


def shortened(text: str, limit: int) -> str:
    """Return a text, or its beginning where it has more than ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
