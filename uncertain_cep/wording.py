"""Numbers with their nouns, as messages give them."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: float, noun: str, plural: str | None = None, *, shown: str | None = None) -> str:
    """Return a number and a noun, in the plural unless the number is 1.

    Parameters
    ----------
    number : float
    noun : str
    plural : str, optional
        Default: the noun with an s.
    shown : str, optional
        The number as it is to be shown. Default: whole, with commas.
    """
    text = f"{number:,.0f}" if shown is None else shown
    return f"{text} {noun if text == '1' else plural or f'{noun}s'}"
