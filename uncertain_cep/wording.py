"""Numbers with their nouns, as messages give them."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: float, noun: str, plural: str | None = None, *, shown: str | None = None) -> str:
    """Return a number, ``shown`` as such or whole with commas, and a noun, in the plural unless that is 1."""
    text = f"{number:,.0f}" if shown is None else shown
    return f"{text} {noun if text == '1' else plural or f'{noun}s'}"
