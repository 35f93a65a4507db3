"""Formats of times that files usually have, and which of them a column of text has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.traces.faulty_rows import BoolArray
from uncertain_cep.traces.time_formats import TimeFormat, expression_of

__all__ = ["TIME_OF_DAY", "ZONE", "UsualFormat", "cure_of", "usual_format", "usual_formats"]

ZONE: Final = r":.*(?:Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)(?: [0-9]{4})?$"
"""What texts end in that tell their time zone."""

TIME_OF_DAY: Final = r"^[0-9]{1,2}[:.][0-9]{2}(?:[:.][0-9]{2}(?:[.,][0-9]{1,9})?)?(?: ?[AaPp][Mm])?$"
"""Texts that are times of day, without a day."""

_FAMILIES: Final = (
    ("iso",), ("%Y-%m-%d",), ("%Y/%m/%d",), ("%Y.%m.%d",),
    ("%m/%d/%Y", "%d/%m/%Y"), ("%d.%m.%Y", "%m.%d.%Y"), ("%d-%m-%Y", "%m-%d-%Y"),
    ("%y/%m/%d", "%m/%d/%y", "%d/%m/%y"), ("%d.%m.%y", "%y.%m.%d", "%m.%d.%y"),
    ("%y-%m-%d", "%d-%m-%y", "%m-%d-%y"),
    ("%d/%b/%Y",), ("%d-%b-%Y",), ("%d %b %Y",), ("%d-%b-%y",), ("%b %d %Y",), ("%b %d, %Y",),
    ("%d%b%Y",), ("%b/%d/%Y",), ("%b-%d-%Y",), ("%d. %b %Y",),
    ("%d %b. %Y",), ("%d de %b de %Y",), ("%Y年%m月%d日",), ("%Y년 %m월 %d일",),
    ("%a %b %d %Y",), ("%a, %d %b %Y",), ("%a %b %d %H:%M:%S %Y",), ("%a %b %d %H:%M:%S %z %Y",),
    ("%a %b %d %H:%M:%S %Y %z",), ("%Y%m%d",), ("%b %d",),
)  # fmt: skip
"""Days. Those of a family fit the same texts, the usual one first; each is for the days of one column."""

_LOOKS: Final = {"%y/%m/%d": "%m/%d/%y", "%y-%m-%d": "%m-%d-%y"}
"""Days of families whose first one has two digits, and days that look like all of them."""

_TIMES: Final = (
    "%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%H:%M:%S,%f", "%I:%M:%S %p", "%I:%M %p", "%I %p", "%H.%M.%S",
    "%H.%M", "%H%M%S", "%H%M", "%I:%M:%S.%f %p", "%H.%M.%S.%f", "%I.%M.%S %p", "%I.%M.%S.%f %p",
)  # fmt: skip
_GAPS: Final = (" ", "T", ":", ", ", "-", "_", " - ")
_ZONES: Final = ("", " %z", "%z")
_TAILS: Final = ("", *(f"{gap}{time}{zone}" for time, gap, zone in product(_TIMES, _GAPS, _ZONES)))
"""Times of day, as they stand behind days."""

_MOST_SHAPES: Final = 8
"""How many forms of times of day a column may have."""


@dataclass(frozen=True, slots=True)
class UsualFormat:
    """The format that all texts of a column have.

    ``alternatives`` are formats that fit all of them, too, as days and months in another order.
    """

    format: TimeFormat
    alternatives: tuple[TimeFormat, ...] = ()


@cache
def _compiled(form: str) -> re.Pattern[str]:
    return re.compile(expression_of(form)) if form else re.compile("")


def _shapes(text: str) -> Iterator[tuple[int, str]]:
    """Yield the families that a text fits by its form, each with the time of day behind the day."""
    for number, (first, *_) in enumerate(_FAMILIES):
        # The others of a family look like the first one.
        match = _compiled(_LOOKS.get(first, first)).match(text)
        if match is None:
            continue
        time_of_day = text[match.end() :]
        tails = ("",) if first == "iso" or "%H" in first else _TAILS
        for tail in tails:
            if _compiled(tail).fullmatch(time_of_day):
                yield number, tail
                break


def usual_formats(text: str) -> tuple[str, ...]:
    """Return the formats that a text has."""
    values = pa.chunked_array([pa.array([text])])
    return tuple(
        day + tail
        for number, tail in _shapes(text)
        for day in _FAMILIES[number]
        if TimeFormat((day + tail,), _base(day)).fits(values).all()
    )


def _base(day: str) -> str | None:
    """Return a year with 29 February for days that tell none."""
    return None if "%Y" in day or "%y" in day or day == "iso" else "2000"


def cure_of(text: str, formats: tuple[str, ...]) -> str:
    """Return the end of a message: the schema line that reads a text as a time; "" if none is known."""
    usual = [form for form in usual_formats(text) if form not in formats]
    if not usual:
        return ""
    forms = " or ".join(f'time_format = "{form}"' for form in usual)
    year = " and year = 2015, that of the first stamp" if not any(map(_has_year, usual)) else ""
    return f"; in a schema file {forms}{year} reads it"


def _has_year(form: str) -> bool:
    return "%Y" in form or "%y" in form or form == "iso"


def usual_format(column: pa.ChunkedArray) -> UsualFormat | None:
    """Return the format of all texts of a column without nulls; None if some are no times.

    Days are written in one way: where some texts leave open which number is the month, the others tell.
    """
    text = column.cast(pa.string())
    tails: dict[int, list[str]] = {}
    rows: dict[int, BoolArray] = {}
    remaining = np.ones(len(text), np.bool_)
    for _ in range(_MOST_SHAPES):
        if not remaining.any():
            break
        number, tail = next(_shapes(text[int(np.argmax(remaining))].as_py()), (-1, ""))
        if number < 0 or not _has_year(_FAMILIES[number][0]):
            return None
        like = remaining & _alike(text, _FAMILIES[number][0] + tail)
        if not like.any():
            return None
        tails.setdefault(number, []).append(tail)
        rows[number] = rows.get(number, np.zeros(len(text), np.bool_)) | like
        remaining &= ~like
    if remaining.any() or not tails:
        return None
    choices = [
        [forms for day in _FAMILIES[number] if (forms := _all_fit(text, rows[number], day, rows_of_tail))]
        for number, rows_of_tail in tails.items()
    ]
    if not all(choices):
        return None
    first, *alternatives = (
        TimeFormat(tuple(form for forms in chosen for form in forms)) for chosen in product(*choices)
    )
    return UsualFormat(first, tuple(alternatives))


def _alike(text: pa.ChunkedArray, form: str) -> BoolArray:
    for day, look in _LOOKS.items():
        form = form.replace(day, look)
    plain = expression_of(form).replace("(?P<", "(?P<_")
    return np.asarray(pc.fill_null(pc.match_substring_regex(text, f"^(?:{plain})$"), False))


def _all_fit(text: pa.ChunkedArray, rows: BoolArray, day: str, tails: list[str]) -> tuple[str, ...]:
    """Return the formats of a day and some times of day if they fit all of some rows."""
    forms = tuple(day + tail for tail in tails)
    return forms if TimeFormat(forms).fits(text.filter(pa.array(rows))).all() else ()
