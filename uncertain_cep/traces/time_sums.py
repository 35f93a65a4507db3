"""Times of rows as sums of a column of stamps and of lengths, such as ``at - slack + 60 s``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from uncertain_cep.errors import OptionError
from uncertain_cep.timeline.durations import parse_duration, unit_nanoseconds

__all__ = ["TimeSum", "added_to", "columns_in", "named_column", "parse_sum", "stamps_in"]

_OPERATOR: Final = re.compile(r"`[^`]*`|\s+(?P<operator>[-+*])(?=\s)")
_QUOTED: Final = re.compile(r"`([^`]+)`")
_LENGTH: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?\s*[^\W\d_].*")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_CLOSE_SIGN: Final = re.compile(r"\S.*?(?P<sign>[-+])\s*[0-9]+(?:\.[0-9]+)?\s*(?P<unit>[^\W\d_]+)")


@dataclass(frozen=True, slots=True)
class TimeSum:
    """A time of each row.

    Attributes
    ----------
    column : str
        The column of stamps.
    lengths : tuple of (int, str)
        Columns of lengths, each with its whole factor.
    nanoseconds, ticks : int
        The sum of all lengths that have a unit, and of all numbers that have none.
    """

    column: str
    lengths: tuple[tuple[int, str], ...] = ()
    nanoseconds: int = 0
    ticks: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, that of the stamps first."""
        return (self.column, *(name for _, name in self.lengths))


@dataclass(frozen=True, slots=True)
class _Term:
    """One operand of a sum, with what stands before it and the place of its first character, from 1."""

    operator: str
    text: str
    place: int


@lru_cache(maxsize=1024)
def parse_sum(text: str) -> TimeSum:
    """Return the sum that a text writes.

    ``at - 60 s``, ``at + 2 * slack``: spaces stand around each sign, as names of columns may have signs. A
    name with such a sign is written in backticks. An OptionError says what cannot be read, and where.
    """
    terms = _terms(text)
    column = _column(terms[0], text)
    if column is None:
        raise _fault(terms[0], text, "a sum begins with the column of the stamps")
    lengths: list[tuple[int, str]] = []
    nanoseconds = ticks = place = 0
    while (place := place + 1) < len(terms):
        product = [terms[place]]
        while place + 1 < len(terms) and terms[place + 1].operator == "*":
            place += 1
            product.append(terms[place])
        if product[0].operator == "*":
            raise _fault(product[0], text, "only lengths can be multiplied, not the stamps")
        factor, last = _factor(product, text)
        factor = -factor if product[0].operator == "-" else factor
        if last is None:
            ticks += factor
        elif (name := _column(last, text)) is not None:
            lengths.append((factor, name))
        else:
            nanoseconds += factor * _length(last, text)
    if max(abs(nanoseconds), abs(ticks), *(abs(factor) for factor, _ in lengths), 0) >= 2**63:
        raise OptionError(f"{text!r} adds up to more than 292 years")
    return TimeSum(column, tuple(lengths), nanoseconds, ticks)


def stamps_in(bound: str) -> tuple[str]:
    """Return the column of stamps in a sum."""
    return (parse_sum(bound).column,)


def columns_in(bound: str) -> tuple[str, ...]:
    """Return all columns of a sum, that of the stamps first."""
    return parse_sum(bound).columns


def added_to(bound: str) -> str:
    """Return the lengths that a sum adds to its stamps, as they are written, with the first sign."""
    return bound.strip()[len(_terms(bound)[0].text) :]


def named_column(name: str) -> str:
    """Return the sum that is a column alone: its name, in backticks if it reads as a sum without them."""
    try:
        alone = parse_sum(name) == TimeSum(name)
    except OptionError:
        alone = False
    return name if alone or "`" in name else f"`{name}`"


def _terms(text: str) -> list[_Term]:
    padded = f" {text} "
    operators = [match for match in _OPERATOR.finditer(padded) if match["operator"]]
    begins = [0, *(match.end() for match in operators)]
    ends = [*(match.start() for match in operators), len(padded)]
    terms = []
    for operator, begin, end in zip(
        ["", *(match["operator"] for match in operators)], begins, ends, strict=True
    ):
        part = padded[begin:end]
        place = begin + len(part) - len(part.lstrip())
        terms.append(_Term(operator, part.strip(), place))
    if len(terms) > 1 and not terms[0].text:
        raise OptionError(f"{text!r}: a sum begins with the column of the stamps")
    for term in terms[1:]:
        if not term.text:
            raise OptionError(
                f"{text!r}, character {min(term.place, len(text))}: nothing stands behind {term.operator}"
            )
    return terms


def _fault(term: _Term, text: str, message: str) -> OptionError:
    return OptionError(f"{text!r}, character {term.place}, {term.text!r}: {message}")


def _column(term: _Term, text: str) -> str | None:
    """Return the column that a term names; None if it is a length."""
    if (quoted := _QUOTED.fullmatch(term.text)) is not None:
        return quoted[1]
    close = _CLOSE_SIGN.fullmatch(term.text)
    if close is not None and unit_nanoseconds(close["unit"]) is not None:
        message = f"write spaces around {close['sign']}, or `{term.text}` if it is the name of a column"
        raise _fault(term, text, message)
    is_sum = term.operator != "" or term.text != text.strip()
    return None if is_sum and (_LENGTH.fullmatch(term.text) or _NUMBER.fullmatch(term.text)) else term.text


def _factor(product: list[_Term], text: str) -> tuple[int, _Term | None]:
    """Return the whole factor of a product, and its length or column; None if there is none."""
    factor, last = 1, None
    for term in product:
        if term.text.isdecimal():
            factor *= int(term.text)
        elif _NUMBER.fullmatch(term.text):
            raise _fault(term, text, "write a unit, such as 1.5 s: ticks and factors are whole numbers")
        elif last is not None:
            raise _fault(term, text, "lengths are multiplied by whole numbers alone")
        else:
            last = term
    return factor, last


def _length(term: _Term, text: str) -> int:
    try:
        return parse_duration(term.text, what="length")
    except OptionError as error:
        named = f"; a column of this name is written `{term.text}`"
        raise OptionError(f"{text!r}, character {term.place}: {error}{named}") from None
