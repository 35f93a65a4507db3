"""Text of other forms than ISO 8601 as times, and the length of time that each text was written to.

Rows of one length that look like the first of them are read together: the regular expression of a format
tells where its numbers stand there, and the others have theirs in the same places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.durations import UNIT_NANOSECONDS
from uncertain_cep.errors import TraceError, warn
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, renumbered, row_faults
from uncertain_cep.traces.local_times import in_utc
from uncertain_cep.wording import counted

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

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_NAMED: Final = "|".join((*reversed(_LONG_MONTHS), *_MONTHS))
_ZONE: Final = r"(?P<z>Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)"
_DIRECTIVES: Final = {
    "Y": r"(?P<Y>[0-9]{4})",
    "y": r"(?P<y>[0-9]{2})",
    "m": r"(?P<m>[0-9]{1,2})",
    "b": rf"(?P<b>(?i:{_NAMED}))",
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
_SAME: Final = {"e": "d", "h": "b", "B": "b", "A": "a", "Z": "z", "k": "H", "l": "I"}
_SHORT: Final = {"T": "%H:%M:%S", "D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M"}
_ISO: Final = (
    r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})(?:[T ](?P<H>[0-9]{2})(?::(?P<M>[0-9]{2})"
    rf"(?::(?P<S>[0-9]{{2}})(?:[.,](?P<f>[0-9]{{1,9}}))?)?)? ?{_ZONE}?)?"
)
_RESOLUTIONS: Final = (("S", "s"), ("M", "min"), ("H", "h"), ("I", "h"), ("d", "d"), ("j", "d"))
_MOST_LOOKS: Final = 200
"""How many rows are looked at for how others look, before the rest are read one by one."""

_YEARS: Final = (1678, 2261)
_SECOND: Final = 10**9
_DAY: Final = 86_400 * _SECOND


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
            known = ", ".join(f"%{name}" for name in (*_DIRECTIVES, *_SAME, *_SHORT))
            raise ValueError(f"there is no %{letter}: known are {known}")
        if f"(?P<{letter}>" in "".join(parts):
            raise ValueError(f"it has %{letter} twice")
        parts.append(_DIRECTIVES[letter])
        place += 2
    return "".join(parts)


def format_groups(form: str) -> frozenset[str]:
    """Return the letters of what a format tells; ValueError if it is no format of times."""
    found = frozenset(re.compile(expression_of(form)).groupindex)
    day, hour = found & {"d", "j"}, found & {"H", "I"}
    if not (day or hour):
        raise ValueError("it tells neither a day nor an hour, such as %Y-%m-%d %H:%M:%S")
    if "d" in found and not found & {"m", "b"}:
        raise ValueError("it tells a day without a month: add %m or %b")
    if "I" in found and "p" not in found:
        raise ValueError("it tells hours to 12 without %p: use %H, or add %p")
    return found


def told_with(forms: Sequence[str], base: str | None) -> tuple[str, ...]:
    """Return those of some formats that tell the day and year together with a year, or a day."""
    told = []
    for form in forms:
        groups = frozenset("Yd") if form in EPOCHS else format_groups(form)
        dated, yearly = groups & {"d", "j"}, groups & {"Y", "y"}
        if (dated and yearly) or (base is not None and (dated or "-" in base)):
            told.append(form)
    return tuple(told)


@dataclass(frozen=True, slots=True)
class StampTimes:
    """What stamps say.

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
        zoned = stamps.offset != _NO_ZONE
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
            some = values.take(pa.array(rows))
            try:
                counts[rows], again[rows] = in_utc(
                    counts[rows], local[rows], self.zone, column=column, values=some, in_order=self.in_order
                )
            except TraceError as error:
                raise TraceError(renumbered(error.faults, rows)) from None
        return StampTimes(counts, present, lengths, again, has_zone)

    def fits(self, values: pa.ChunkedArray) -> BoolArray:
        """Return which texts, (n,) bool, are times of these formats."""
        text = values.cast(pa.large_string())
        present = np.asarray(text.is_valid())
        fits: BoolArray = present & self._stamps(text, present)[0].good
        return fits

    def _stamps(self, text: pa.ChunkedArray, present: BoolArray) -> tuple[_Stamps, str | None]:
        """Return what is known of each text by the first format that fits it, and what to warn of."""
        stamps = _Stamps.of(len(text))
        todo = present.copy()
        for form in self.formats:
            if not todo.any():
                break
            expression = r"-?[0-9]{1,19}(?:\.[0-9]{1,9})?" if form in EPOCHS else expression_of(form)
            plain = expression.replace("(?P<", "(?P<_")
            fits = np.asarray(pc.fill_null(pc.match_substring_regex(text, f"^(?:{plain})$"), False))
            rows = np.flatnonzero(fits & todo)
            if not len(rows):
                continue
            some = text.take(pa.array(rows)).combine_chunks()
            if form in EPOCHS:
                stamps.put_numbers(rows, some, UNIT_NANOSECONDS[EPOCHS[form]])
            else:
                stamps.put(rows, some, re.compile(expression.encode()))
            todo[rows[stamps.good[rows]]] = False
        return stamps, stamps.complete(self.base, fixed=self.fixed)

    def describe(self) -> str:
        """Return the formats, for a message."""
        if self.formats == ("iso",):
            return "ISO 8601, such as 2024-05-31 23:59:59.250"
        return " or ".join(self.formats)


ISO: Final = TimeFormat()
_NO_ZONE: Final = np.iinfo(np.int64).min


@dataclass(slots=True)
class _Stamps:
    """What is known of each row: year, month and day (-1: not told), nanoseconds in the day, zone, length."""

    year: IntArray
    month: IntArray
    day: IntArray
    within: IntArray
    offset: IntArray
    length: IntArray
    counts: IntArray
    good: BoolArray
    number: BoolArray

    @classmethod
    def of(cls, size: int) -> _Stamps:
        def full(value: int) -> IntArray:
            return np.full(size, value, np.int64)

        no = np.zeros(size, np.bool_)
        return cls(full(-1), full(-1), full(-1), full(0), full(_NO_ZONE), full(1), full(0), no, no.copy())

    def put_numbers(self, rows: IntArray, text: pa.Array, unit: int) -> None:
        """Take numbers since 1970."""
        for row, number in zip(rows.tolist(), text.to_pylist(), strict=True):
            whole, _, rest = number.partition(".")
            digits = len(str(unit)) - 1
            part = int((rest + "0" * digits)[:digits] or 0)
            count = int(whole) * unit + (-part if whole.startswith("-") else part)
            if abs(count) < 2**63:
                self.counts[row] = count
                self.length[row] = max(1, unit // 10 ** len(rest))
                self.good[row] = self.number[row] = True
                self.offset[row] = 0

    def put(self, rows: IntArray, text: pa.Array, expression: re.Pattern[bytes]) -> None:
        """Take texts that an expression fits."""
        _, offsets, data = text.buffers()
        begins = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
        data = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        sizes = np.diff(begins)
        order = np.argsort(sizes, kind="stable")
        looks = 0
        for some in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
            left = some
            while len(left):
                looks += 1
                block = left if looks <= _MOST_LOOKS else left[:1]
                letters = data[begins[block][:, None] + np.arange(sizes[block[0]])]
                match = expression.fullmatch(letters[0].tobytes())
                if match is None:
                    # What the two libraries read in different ways is no time.
                    left = left[1:]
                    continue
                alike = self._take(rows[block], letters, match)
                alike[0] = True
                left = left[~alike] if len(block) == len(left) else left[1:]

    def _take(self, rows: IntArray, letters: Any, match: re.Match[bytes]) -> BoolArray:
        """Take rows of letters, (n, k) uint8, that look like the first one, and return which do."""
        alike = np.ones(len(letters), np.bool_)
        spans = {name: match.span(name) for name, found in match.groupdict().items() if found is not None}
        told: dict[str, IntArray] = {}
        fixed = np.ones(letters.shape[1], np.bool_)
        for name, (begin, end) in spans.items():
            fixed[begin:end] = False
            found = letters[:, begin:end]
            if name in "bpa":
                told[name] = _words(name, found)
                alike &= told[name] >= 0
            elif name == "z":
                told[name], same = _offsets(found)
                alike &= same
            else:
                # Only the first one of two digits may be a space.
                digits = np.where((found == 0x20) & (np.arange(end - begin) == 0), 0x30, found) - 0x30
                alike &= (digits < 10).all(axis=1)
                told[name] = digits.astype(np.int64) @ 10 ** np.arange(end - begin - 1, -1, -1)
        alike &= (letters[:, fixed] == letters[0, fixed]).all(axis=1)
        some = rows[alike]
        self._put_told(some, {name: values[alike] for name, values in told.items()}, spans)
        return alike

    def _put_told(
        self, rows: IntArray, told: Mapping[str, IntArray], spans: Mapping[str, tuple[int, int]]
    ) -> None:
        nothing = np.full(len(rows), -1, np.int64)
        zero = np.zeros(len(rows), np.int64)
        year = told.get("Y", nothing)
        if "y" in told:
            year = np.where(told["y"] < 69, 2000, 1900) + told["y"]
        hour = told.get("H", zero)
        good = (hour < 24) & (told.get("M", zero) < 60) & (told.get("S", zero) < 60)
        if "I" in told:
            good &= (told["I"] >= 1) & (told["I"] <= 12)
            hour = told["I"] % 12 + 12 * told["p"]
        month = told["b"] if "b" in told else told.get("m", nothing)
        if "j" in told:
            # A day of the year is a day of January that is too late.
            month, day = zero + 1, told["j"]
            leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
            good &= (day >= 1) & (day <= np.where(leap, 366, 365))
        else:
            day = told.get("d", nothing)
            good &= ("d" not in told) | ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31))
        if "Y" in told or "y" in told:
            good &= (year >= _YEARS[0]) & (year <= _YEARS[1])
        places = spans["f"][1] - spans["f"][0] if "f" in told else 0
        seconds = (hour * 60 + told.get("M", zero)) * 60 + told.get("S", zero)
        self.year[rows], self.month[rows], self.day[rows] = year, month, day
        self.within[rows] = seconds * _SECOND + told.get("f", zero) * 10 ** (9 - places)
        self.offset[rows] = told.get("z", np.full(len(rows), _NO_ZONE))
        last = next((unit for letter, unit in _RESOLUTIONS if letter in told), "d")
        self.length[rows] = 10 ** (9 - places) if places else UNIT_NANOSECONDS[last]
        self.good[rows] = good

    def complete(self, base: str | None, *, fixed: bool) -> str | None:
        """Make counts of what is told, and of the base where the year, or the day, is not.

        Return what to warn of where the day changes, or the year goes back; None if nothing.
        """
        rows = np.flatnonzero(self.good & ~self.number)
        said = None
        dayless = rows[self.day[rows] < 0]
        if len(dayless):
            turns = _turns(self.within[dayless], _DAY, fixed=fixed)
            days = np.datetime64(base or "1970-01-01", "D").astype(np.int64) + turns
            self.counts[dayless] = days * _DAY + self.within[dayless]
            if turns.any():
                said = _turned("day", turns, days.astype("M8[D]"))
        dated = rows[self.day[rows] >= 0]
        yearless = dated[self.year[dated] < 0]
        if len(yearless):
            rough = (self.month[yearless] - 1) * 31 + self.day[yearless]
            turns = _turns(rough, 372, fixed=fixed)
            self.year[yearless] = int((base or "1970")[:4]) + turns
            if (np.diff(turns) < 0).any():
                said = _turned("year", turns, self.year[yearless])
        year, month, day = self.year[dated], self.month[dated], self.day[dated]
        begins = ((year - 1970) * 12 + month - 1).astype("M8[M]")
        begin = begins.astype("M8[D]").astype(np.int64)
        longest = (begins + 1).astype("M8[D]").astype(np.int64) - begin
        self.good[dated] &= (day <= longest) | (month == 1)
        self.counts[dated] = (begin + day - 1) * _DAY + self.within[dated]
        return said


def _turned(what: str, turns: IntArray, values: Any) -> str:
    """Return how often the day, or year, of rows changes, and between which ``values``, (n,), they are."""
    times = counted(int(np.count_nonzero(np.diff(turns))), "time")
    return (
        f"the {what} changes {times} from one row to the next, from {values.min()} to {values.max()}: where "
        f"all rows are of one {what}, say fixed_date = true"
    )


def _turns(values: IntArray, period: int, *, fixed: bool) -> IntArray:
    """Return how often a clock that shows (n,) ``values`` has begun anew since the first; 0 if fixed."""
    if fixed:
        return np.zeros(len(values), np.int64)
    steps = np.diff(values, prepend=values[:1])
    return np.cumsum((steps < -(period // 2)).astype(np.int64) - (steps > period // 2))


def _words(kind: str, found: Any) -> IntArray:
    """Return the numbers of months, or of am and pm, in (n, k) letters, 0 for weekdays; -1 for others."""
    low = found | 0x20
    numbers = np.full(len(found), -1, np.int64)
    if kind == "a":
        numbers[((low >= ord("a")) & (low <= ord("z"))).all(axis=1)] = 0
        return numbers
    first, lists = (0, (("am", "pm"),)) if kind == "p" else (1, (_MONTHS, _LONG_MONTHS))
    for number, word in ((place + first, word) for words in lists for place, word in enumerate(words)):
        if len(word) == found.shape[1]:
            numbers[(low == np.frombuffer(word.encode(), np.uint8)).all(axis=1)] = number
    return numbers


def _offsets(found: Any) -> tuple[IntArray, BoolArray]:
    """Return zones, (n, k) letters, as nanoseconds east, and which are written like the first one."""
    first = found[0].tobytes()
    if first[:1] not in b"+-":
        return np.zeros(len(found), np.int64), (found == found[0]).all(axis=1)
    digits = (
        found[:, [place for place in range(1, found.shape[1]) if first[place : place + 1] != b":"]] - 0x30
    )
    alike = (digits < 10).all(axis=1) & ((found[:, 0] == 0x2B) | (found[:, 0] == 0x2D))
    if b":" in first:
        alike &= found[:, 3] == 0x3A
    weights = np.array([36_000, 3_600, 600, 60][: digits.shape[1]]) * _SECOND
    sign = np.where(found[:, 0] == 0x2D, -1, 1)
    length = digits.astype(np.int64) @ weights
    return sign * length, alike & (length <= _DAY)


def base_fault(base: str) -> str | None:
    """Return what is wrong with a year or a day, if anything."""
    try:
        year = date.fromisoformat(base).year if "-" in base else int(base)
    except ValueError:
        return "must be a year, such as 2015, or a day, such as 2015-10-17"
    return None if _YEARS[0] <= year <= _YEARS[1] else f"must be from {_YEARS[0]} to {_YEARS[1]}"
