"""Text of other forms than ISO 8601 as times, and the length of time that each text was written to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, warn
from uncertain_cep.plurals import counted
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, renumbered, row_faults
from uncertain_cep.traces.local_times import in_utc
from uncertain_cep.traces.stamp_remarks import Remark, say
from uncertain_cep.traces.stamp_texts import NO_ZONE, YEARS, StampTexts
from uncertain_cep.traces.written_names import MONTH_NAMES, ZONES, any_name

__all__ = [
    "EPOCHS",
    "ISO",
    "StampTimes",
    "TimeFormat",
    "base_fault",
    "expression_of",
    "format_groups",
    "told_with",
]

EPOCHS: Final = {f"epoch_{unit}": unit for unit in ("s", "ms", "us", "ns")}
"""Formats that are numbers since 1970, and their units."""

_ZONE: Final = rf"(?P<z>Z|z|{'|'.join(sorted(ZONES, key=len, reverse=True))}|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)"
_DIRECTIVES: Final = {
    "Y": r"(?P<Y>[0-9]{4})",
    "y": r"(?P<y>[0-9]{2})",
    "m": r"(?P<m>[0-9]{1,2})",
    "b": f"(?P<b>{any_name(MONTH_NAMES)})",
    "d": r"(?P<d>[ 0-9]?[0-9])",
    "j": r"(?P<j>[0-9]{1,3})",
    "H": r"(?P<H>[ 0-9]?[0-9])",
    "I": r"(?P<I>[ 0-9]?[0-9])",
    "p": r"(?P<p>(?i:am|pm))",
    "M": r"(?P<M>[0-9]{1,2})",
    "S": r"(?P<S>[0-9]{1,2})",
    "f": r"(?P<f>[0-9]{1,9})",
    "z": _ZONE,
    "a": r"(?P<a>[A-Za-z]+)",
    "%": "%",
}  # fmt: skip
_NUMBERS: Final = {
    _DIRECTIVES[letter]: f"(?P<{letter}>{digits})"
    for letters, digits in (
        ("Y", "[0-9]{4}"),
        ("ymMS", "[0-9]{2}"),
        ("dHI", "[ 0-9][0-9]"),
        ("j", "[0-9]{3}"),
    )
    for letter in letters
}
"""Expressions of numbers, and those of the same with all of their digits."""
_SAME: Final = {"e": "d", "h": "b", "B": "b", "A": "a", "Z": "z", "k": "H", "l": "I"}
_SHORT: Final = {"T": "%H:%M:%S", "D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M"}
_ISO: Final = (
    r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})(?:[T ](?P<H>[0-9]{2})(?::(?P<M>[0-9]{2})"
    rf"(?::(?P<S>[0-9]{{2}})(?:[.,](?P<f>[0-9]{{1,9}}))?)?)? ?{_ZONE}?)?"
)


@cache
def expression_of(form: str) -> str:
    """Return the regular expression of a format; ValueError if it is none."""
    if form == "iso":
        return _ISO
    for letter, written in _SHORT.items():
        form = re.sub(rf"(?<!%)%{letter}", written, form)
    parts, place = [], 0
    while place < len(form):
        if form[place] != "%":
            parts.append(r"\s+" if form[place].isspace() else re.escape(form[place]))
            place += 1
            continue
        letter = _SAME.get(form[place + 1 : place + 2], form[place + 1 : place + 2])
        if letter not in _DIRECTIVES:
            directives = ", ".join(f"%{name}" for name in (*_DIRECTIVES, *_SAME, *_SHORT))
            raise ValueError(f"there is no %{letter}: known are {directives}")
        if f"(?P<{letter}>" in "".join(parts):
            raise ValueError(f"it has %{letter} twice")
        parts.append(_DIRECTIVES[letter])
        place += 2
    # 1405 of %H%M%S is no 14:0:5: numbers without a sign between them have all of their digits.
    beside = [
        part in _NUMBERS and (before in _NUMBERS or after in _NUMBERS)
        for before, part, after in zip(["", *parts], parts, [*parts[1:], ""], strict=False)
    ]
    return "".join(
        _NUMBERS[part] if is_beside else part for part, is_beside in zip(parts, beside, strict=True)
    )


def format_groups(form: str) -> frozenset[str]:
    """Return the letters of what a format tells; ValueError if it is no format of times."""
    groups = frozenset(re.compile(expression_of(form)).groupindex)
    day, hour = groups & {"d", "j"}, groups & {"H", "I"}
    if not (day or hour):
        raise ValueError("it tells neither a day nor an hour, such as %Y-%m-%d %H:%M:%S")
    if "d" in groups and not groups & {"m", "b"}:
        raise ValueError("it tells a day without a month: add %m or %b")
    if "I" in groups and "p" not in groups:
        raise ValueError("it tells hours to 12 without %p: use %H, or add %p")
    return groups


def told_with(forms: Sequence[str], base: str | None) -> tuple[str, ...]:
    """Return the formats that tell the day and year, together with a year or a day as base."""
    complete = []
    for form in forms:
        groups = frozenset("Yd") if form in EPOCHS else format_groups(form)
        dated, yearly = groups & {"d", "j"}, groups & {"Y", "y"}
        if (dated and yearly) or (base is not None and (dated or "-" in base)):
            complete.append(form)
    return tuple(complete)


@dataclass(frozen=True, slots=True)
class StampTimes:
    """The times of stamps.

    ``counts``, (n,) int64, are nanoseconds since 1970 in UTC (or without a zone), 0 where not ``present``,
    (n,) bool; ``lengths``, (n,) int64, the nanoseconds of the last unit that each text tells; ``again``, (n,)
    int64, how much later each may be, see `in_utc`. ``zoned`` tells whether they have a time zone.
    """

    counts: IntArray
    present: BoolArray
    lengths: IntArray
    again: IntArray
    zoned: bool

    def placed(self, rows: IntArray, count: int) -> StampTimes:
        """Return the times of a table of so many rows in which these stand in some ``rows``, (n,) int64."""

        def spread(values: Any) -> Any:
            whole = np.zeros(count, values.dtype)
            whole[rows] = values
            return whole

        return self._each(spread)

    def take(self, rows: IntArray) -> StampTimes:
        """Return the times of some rows, (k,) int64."""
        return self._each(lambda values: values[rows])

    def _each(self, change: Callable[[Any], Any]) -> StampTimes:
        return StampTimes(
            change(self.counts), change(self.present), change(self.lengths), change(self.again), self.zoned
        )


def _leap_message(column: str, leap_seconds: int) -> str:
    times = counted(leap_seconds, "leap second")
    return f"{column}: {times}, :60, read as the beginning of the next minute"


def _no_cure(text: str, formats: tuple[str, ...]) -> str:  # noqa: ARG001
    return ""


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How text is read as times.

    Attributes
    ----------
    formats : tuple of str
        Tried in this order: ``iso``, keys of `EPOCHS`, or formats as of strptime.
    base : str or None
        The year, ``2015``, or day, ``2015-10-17``, of the first stamp, where formats tell none. From one row
        to the next the year changes where it would else go back, or forth, by more than half a year; likewise
        the day.
    zone : str or None
        Time zone of what tells none: a name, or an offset such as ``+02:00``. None: UTC.
    fixed : bool
        Whether all stamps have the year, or the day, of the base.
    in_order : bool or None
        Whether rows stand in the order of their times, see `in_utc`.
    """

    formats: tuple[str, ...] = ("iso",)
    base: str | None = None
    zone: str | None = None
    fixed: bool = False
    in_order: bool | None = False

    @property
    def by_rows(self) -> bool:
        """Whether what a stamp means may depend on the rows before and after it."""
        return self.base is not None or self.zone is not None

    @property
    def unit(self) -> str | None:
        """The unit of numbers, if it is told."""
        return next((EPOCHS[form] for form in self.formats if form in EPOCHS), None)

    def read(
        self, values: pa.ChunkedArray, column: str, cure: Callable[[str, tuple[str, ...]], str] = _no_cure
    ) -> StampTimes:
        """Return the times of texts, or of timestamps without a zone; a TraceError names what is none.

        ``cure`` says of a text and formats that do not fit it what would.
        """
        if pa.types.is_timestamp(values.type):
            present = np.asarray(values.is_valid())
            counts = np.asarray(values.cast(pa.timestamp("ns")).cast(pa.int64()).fill_null(0)).copy()
            return self._in_utc(counts, present, present, np.ones(len(counts), np.int64), values, column)
        text = values.cast(pa.large_string())
        present = np.asarray(text.is_valid())
        stamps, turned = self._stamps(text, present)
        bad = present & ~stamps.good
        if bad.any():
            first = text[int(np.argmax(bad))].as_py()
            message = f"no time as {self.describe()}{cure(first, self.formats)}"
            raise TraceError(row_faults(bad, message, column=column, values=text))
        if turned is not None:
            warn(f"{column}: {turned}")
        if leap_seconds := int(stamps.leap.sum()):
            say(Remark(_leap_message, (column,), (leap_seconds,)))
        zoned = stamps.offset != NO_ZONE
        counts = np.where(zoned, stamps.counts - np.where(zoned, stamps.offset, 0), stamps.counts)
        counts = np.where(present, counts, 0)
        if self.zone is None and (zoned & present).any() and not zoned[present].all():
            message = (
                "it has no time zone, and other stamps of this column have one: name it with time_zone, or "
                "give each one"
            )
            raise TraceError(row_faults(present & ~zoned, message, column=column, values=text))
        return self._in_utc(counts, present, present & ~zoned, stamps.length, text, column)

    def _in_utc(
        self,
        counts: IntArray,
        present: BoolArray,
        local: BoolArray,
        lengths: IntArray,
        values: pa.ChunkedArray,
        column: str,
    ) -> StampTimes:
        """Return the times of stamps of which those that are ``local``, (n,) bool, tell no zone."""
        again = np.zeros(len(counts), np.int64)
        has_zone = self.zone is not None or not local[present].all()
        if self.zone is not None:
            # What is absent is in nobody's way.
            rows = np.flatnonzero(present)
            present_values = values if len(rows) == len(values) else values.take(pa.array(rows))
            try:
                counts[rows], again[rows] = in_utc(
                    counts[rows],
                    local[rows],
                    self.zone,
                    column=column,
                    values=present_values,
                    in_order=self.in_order,
                )
            except TraceError as error:
                raise TraceError(renumbered(error.faults, rows)) from None
        return StampTimes(counts, present, lengths, again, has_zone)

    def fits(self, values: pa.ChunkedArray) -> BoolArray:
        """Return a mask, (n,) bool, of the texts that are times of these formats."""
        text = values.cast(pa.large_string())
        present = np.asarray(text.is_valid())
        fits: BoolArray = present & self._stamps(text, present)[0].good
        return fits

    def _stamps(self, text: pa.ChunkedArray, present: BoolArray) -> tuple[StampTexts, str | None]:
        """Read each text by the first format that fits it; return the stamps and the warnings."""
        encoded = text.dictionary_encode().combine_chunks()
        if not 0 < 2 * len(encoded.dictionary) <= len(text):
            stamps = self._parsed(text, present)
            return stamps, stamps.complete(self.base, fixed=self.fixed)
        # Many lines of a log have one stamp. The last of the distinct ones is null.
        distinct = pa.chunked_array([encoded.dictionary, pa.nulls(1, text.type)])
        stamps = self._parsed(distinct, np.arange(len(distinct)) < len(encoded.dictionary))
        places = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))
        if not self.fixed and stamps.turn(places):
            stamps = stamps.take(places)
            return stamps, stamps.complete(self.base, fixed=False)
        # Without a turn a stamp means the same in every row.
        stamps.complete(self.base, fixed=True)
        return stamps.take(places), None

    def _parsed(self, text: pa.ChunkedArray, present: BoolArray) -> StampTexts:
        """Read each text by the first format that fits it."""
        stamps = StampTexts.of(len(text))
        todo = present.copy()
        for form in self.formats:
            if not todo.any():
                break
            expression = r"-?[0-9]{1,19}(?:[.,][0-9]{1,9})?" if form in EPOCHS else expression_of(form)
            plain = expression.replace("(?P<", "(?P<_")
            fits = np.asarray(pc.fill_null(pc.match_substring_regex(text, f"^(?:{plain})$"), False))
            rows = np.flatnonzero(fits & todo)
            if not len(rows):
                continue
            texts = text.take(pa.array(rows)).combine_chunks()
            if form in EPOCHS:
                stamps.put_numbers(rows, texts, UNIT_NANOSECONDS[EPOCHS[form]])
            else:
                stamps.put(rows, texts, re.compile(expression.encode()))
            todo[rows[stamps.good[rows]]] = False
        return stamps

    def describe(self) -> str:
        """Return the formats, for a message."""
        if self.formats == ("iso",):
            return "ISO 8601, such as 2024-05-31 23:59:59.250"
        return " or ".join(self.formats)


ISO: Final = TimeFormat()


def base_fault(base: str) -> str | None:
    """Return the fault of a year or a day, if it has one."""
    try:
        year = date.fromisoformat(base).year if "-" in base else int(base)
    except ValueError:
        return "must be a year, such as 2015, or a day, such as 2015-10-17"
    return None if YEARS[0] <= year <= YEARS[1] else f"must be from {YEARS[0]} to {YEARS[1]}"
