"""Lengths of time, converted once at the edge: text to whole nanoseconds."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from uncertain_cep.errors import OptionError

__all__ = ["UNIT_NANOSECONDS", "format_duration", "number_unit", "parse_duration", "unit_nanoseconds"]

UNIT_NANOSECONDS: Final[dict[str, int]] = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}

_SPELLINGS: Final[dict[str, str]] = {
    **{unit: unit for unit in UNIT_NANOSECONDS},
    "nanosecond": "ns", "nanos": "ns",
    "microsecond": "us", "micros": "us", "µs": "us",
    "millisecond": "ms", "millis": "ms", "msec": "ms",
    "second": "s", "sec": "s",
    "minute": "min", "m": "min",
    "hour": "h", "hr": "h",
    "day": "d",
    "week": "w",
}  # fmt: skip

_DURATION: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d]+)\s*")


def unit_nanoseconds(unit: str) -> int | None:
    """Return the length of a unit of time (any usual spelling, any case), or None if unknown."""
    spelled = unit.lower()
    short = _SPELLINGS.get(spelled) or _SPELLINGS.get(spelled.removesuffix("s"))
    return None if short is None else UNIT_NANOSECONDS[short]


def number_unit(unit: str | None) -> int | None:
    """Return the nanoseconds of a unit of numbers; None for ``tick``, and where there is none.

    An OptionError says that it is unknown.
    """
    if unit is None or unit.lower() in ("tick", "ticks"):
        return None
    length = unit_nanoseconds(unit)
    if length is None:
        raise OptionError(f"unit {unit!r} is not known: write one of {', '.join(UNIT_NANOSECONDS)} or tick")
    return length


def parse_duration(text: str, *, what: str = "duration") -> int:
    """Return the nanoseconds of a text such as ``500ms``, ``15 s`` or ``1.5 hours``.

    An OptionError says that ``what`` it is for is not a number and a unit, or not whole nanoseconds.
    """
    found = _DURATION.fullmatch(text)
    length = unit_nanoseconds(found[2]) if found else None
    if found is None or length is None:
        raise OptionError(
            f"{what} {text!r} is not a length of time: write a number and one of "
            f"{', '.join(UNIT_NANOSECONDS)}, such as 500ms or 15s"
        )
    nanoseconds = Fraction(found[1]) * length
    if nanoseconds.denominator != 1:
        raise OptionError(f"{what} {text!r} is not a whole number of nanoseconds")
    return int(nanoseconds)


def format_duration(nanoseconds: int) -> str:
    """Return a length of time with the largest unit that keeps it whole, such as ``15s``."""
    for unit, length in reversed(UNIT_NANOSECONDS.items()):
        if unit != "w" and nanoseconds % length == 0 and nanoseconds >= length:
            return f"{nanoseconds // length}{unit}"
    return f"{nanoseconds}ns"
