"""Lengths of time, converted once at the edge: text to whole nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, TypeAlias

from uncertain_cep.errors import OptionError

__all__ = [
    "UNIT_NANOSECONDS",
    "Duration",
    "duration_text",
    "falls",
    "format_duration",
    "number_unit",
    "parse_duration",
    "unit_nanoseconds",
]

Duration: TypeAlias = str | timedelta
"""A length of time: text such as ``15s``, or a timedelta of the standard library, pandas or NumPy."""

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

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([^\W\d]+)\s*")
_SIGN: Final = re.compile(r"\s+([+-])\s+")
_DURATION: Final = re.compile(rf"\s*(?:{_PART.pattern})+")


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


def parse_duration(length: Duration, *, what: str = "duration") -> int:
    """Return the nanoseconds of a text such as ``500ms``, ``15 s`` or ``1 min + 200 ms``, or of a timedelta.

    An OptionError says that ``what`` it is for is something else, no whole number of nanoseconds, negative,
    or beyond 64 bits (292 years).
    """
    exact = _exact(length, what)
    if exact.denominator != 1:
        raise OptionError(f"{what} {length!r} is not a whole number of nanoseconds")
    if not 0 <= exact < 2**63:
        raise OptionError(f"{what} {length!r}: it must be at least 0 and less than 292 years")
    return int(exact)


_NUMPY_PARTS: Final = {"ns": 1, "ps": 10**3, "fs": 10**6, "as": 10**9}
"""Units of NumPy, of which so many are a nanosecond."""


def _exact(length: Any, what: str) -> Fraction:
    if type(length).__name__ == "timedelta64":
        # A timedelta, or None; a number where a timedelta would lose some of it, and of months and years.
        number = length.item()
        if isinstance(number, int):
            # Help and errors of usage load no NumPy.
            from numpy import datetime_data

            unit, step = datetime_data(length.dtype)
            if unit in _NUMPY_PARTS:
                return Fraction(number * step, _NUMPY_PARTS[unit])
        else:
            length = number
    if isinstance(length, timedelta):
        seconds = length.days * 86_400 + length.seconds
        return Fraction(
            (seconds * 1_000_000 + length.microseconds) * 1_000 + getattr(length, "nanoseconds", 0)
        )
    if isinstance(length, str) and len(terms := _SIGN.split(length)) > 1:
        signs = (1 if sign == "+" else -1 for sign in ["+", *terms[1::2]])
        return sum(
            (
                sign * _exact(term, f"{what} {length!r}:")
                for sign, term in zip(signs, terms[::2], strict=True)
            ),
            Fraction(),
        )
    whole = isinstance(length, str) and _DURATION.fullmatch(length) is not None
    parts = _PART.findall(length) if whole else []
    units = [unit_nanoseconds(unit) for _, unit in parts]
    if not parts or not falls(units):
        raise OptionError(
            f"{what} {length!r} is not a length of time: write a number and one of "
            f"{', '.join(UNIT_NANOSECONDS)}, such as 500ms, 15s or 1min 30s, or give a timedelta"
        )
    return sum(
        (Fraction(number) * (unit or 0) for (number, _), unit in zip(parts, units, strict=True)), Fraction()
    )


def falls(units: Sequence[int | None]) -> bool:
    """Return whether units of time are known, and go from the longest to the shortest, each once."""
    units_known = [unit for unit in units if unit is not None]
    return len(units_known) == len(units) and all(
        longer > shorter for longer, shorter in pairwise(units_known)
    )


def format_duration(nanoseconds: int) -> str:
    """Return a length of time with the largest unit that keeps it whole, such as ``15s``."""
    for unit, length in reversed(UNIT_NANOSECONDS.items()):
        if unit != "w" and nanoseconds % length == 0 and nanoseconds >= length:
            return f"{nanoseconds // length}{unit}"
    return f"{nanoseconds}ns"


def duration_text(length: Duration | None, *, what: str = "duration") -> str | None:
    """Return a length of time as text; None for none.

    Raises
    ------
    OptionError
        As :func:`parse_duration`.
    """
    return None if length is None else format_duration(parse_duration(length, what=what))
