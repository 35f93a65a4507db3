"""Texts of times as numbers: years, months, days, and what is left of the day.

Rows of one length that look like the first of them are read together: the regular expression of a format
tells where its numbers stand there, and the others have theirs in the same places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.plurals import counted
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray
from uncertain_cep.traces.written_names import MONTH_NAMES, ZONES

__all__ = ["NO_ZONE", "YEARS", "StampTexts"]

_RESOLUTIONS: Final = (("S", "s"), ("M", "min"), ("H", "h"), ("I", "h"), ("d", "d"), ("j", "d"))
_MOST_LOOKS: Final = 200
"""How many rows are looked at for how others look, before the rest are read one by one."""

YEARS: Final = (1678, 2261)
"""The first and the last year that nanoseconds since 1970 reach as a whole."""
_SECOND: Final = 10**9
_DAY: Final = 86_400 * _SECOND


def _in_letters(numbers: Mapping[str, int]) -> list[tuple[Any, int]]:
    """Return names in letters, (k,) uint8, without the bit that tells the case of ASCII ones."""
    cases = [
        (written, number)
        for name, number in numbers.items()
        for written in dict.fromkeys((name, name.capitalize(), name.upper()))
        if written == name or not name.isascii()
    ]
    return [(np.frombuffer(written.encode(), np.uint8) | 0x20, number) for written, number in cases]


_LETTERS_OF_MONTHS: Final = _in_letters(MONTH_NAMES)
_LETTERS_OF_HALVES: Final = _in_letters({"am": 0, "pm": 1})
NO_ZONE: Final = np.iinfo(np.int64).min
"""The offset of what tells no time zone."""


@dataclass(slots=True)
class StampTexts:
    """The parts of each row's time: year, month, day (-1: not told), nanoseconds in the day, zone, length."""

    year: IntArray
    month: IntArray
    day: IntArray
    within: IntArray
    offset: IntArray
    length: IntArray
    counts: IntArray
    good: BoolArray
    number: BoolArray
    leap: BoolArray

    @classmethod
    def of(cls, size: int) -> StampTexts:
        """Return so many rows of which nothing is known."""

        def full(value: int) -> IntArray:
            return np.full(size, value, np.int64)

        no = np.zeros(size, np.bool_)
        counts = full(-1), full(-1), full(-1), full(0), full(NO_ZONE), full(1), full(0)
        return cls(*counts, no, no.copy(), no.copy())

    def take(self, places: IntArray) -> StampTexts:
        """Return the stamps at some places, (n,)."""
        return StampTexts(*(getattr(self, part.name)[places] for part in fields(self)))

    def put_numbers(self, rows: IntArray, text: pa.Array, unit: int) -> None:
        """Take numbers since 1970, with a point or a comma before the decimals."""
        parts = pc.extract_regex(
            text, r"^(?P<sign>-?)(?P<whole>[0-9]{1,19})(?:[.,](?P<decimals>[0-9]{1,9}))?$"
        )
        whole, decimals = (pc.struct_field(parts, name) for name in ("whole", "decimals"))
        digits = len(str(unit)) - 1
        # What has 19 digits may be beyond int64; uint64 holds it.
        wholes = np.asarray(whole.cast(pa.uint64()))
        places = np.asarray(pc.binary_length(decimals)).astype(np.int64)
        padded = pc.utf8_slice_codeunits(pc.utf8_rpad(decimals, 9, "0"), 0, digits)
        part = np.zeros(len(rows), np.int64)
        if digits:
            part = np.asarray(padded.cast(pa.int64()))
        fits = wholes <= (2**63 - 1) // unit
        counts = np.where(fits, wholes, 0).astype(np.int64) * unit
        fits &= counts <= 2**63 - 1 - part
        counts += np.where(fits, part, 0)
        negative = np.asarray(pc.equal(pc.struct_field(parts, "sign"), "-"))
        counts = np.where(negative, -counts, counts)
        rows, counts, places = rows[fits], counts[fits], places[fits]
        self.counts[rows] = counts
        self.length[rows] = np.maximum(1, unit // 10**places)
        self.good[rows] = self.number[rows] = True
        self.offset[rows] = 0

    def put(self, rows: IntArray, text: pa.Array, expression: re.Pattern[bytes]) -> None:
        """Take texts that an expression fits."""
        _, offsets, data = text.buffers()
        begins = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
        data = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        sizes = np.diff(begins)
        order = np.argsort(sizes, kind="stable")
        looks = 0
        for alike_sizes in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
            remaining = alike_sizes
            while len(remaining):
                looks += 1
                block = remaining if looks <= _MOST_LOOKS else remaining[:1]
                letters = _letters_of(data, begins[block], int(sizes[block[0]]))
                match = expression.fullmatch(letters[:, 0].tobytes())
                if match is None:
                    # What the two libraries read in different ways is no time.
                    remaining = remaining[1:]
                    continue
                alike = self._take(rows[block], letters, match)
                alike[0] = True
                remaining = remaining[~alike] if len(block) == len(remaining) else remaining[1:]

    def _take(self, rows: IntArray, letters: Any, match: re.Match[bytes]) -> BoolArray:
        """Take texts of letters, (k, n) uint8, that look like the first one, and return which do."""
        alike = np.ones(letters.shape[1], np.bool_)
        spans = {name: match.span(name) for name, text in match.groupdict().items() if text is not None}
        parts: dict[str, IntArray] = {}
        fixed = np.ones(len(letters), np.bool_)
        for name, (begin, end) in spans.items():
            fixed[begin:end] = False
            letters_of_part = letters[begin:end]
            if name in "bpa":
                parts[name] = _words(name, letters_of_part)
                alike &= parts[name] >= 0
            elif name == "z":
                parts[name], same = _offsets(letters_of_part)
                alike &= same
            else:
                parts[name], same = _numbers(letters_of_part)
                alike &= same
        for place in np.flatnonzero(fixed):
            alike &= letters[place] == letters[place, 0]
        if alike.all():
            self._put_told(rows, parts, spans)
        else:
            self._put_told(rows[alike], {name: values[alike] for name, values in parts.items()}, spans)
        return alike

    def _put_told(
        self, rows: IntArray, parts: Mapping[str, IntArray], spans: Mapping[str, tuple[int, int]]
    ) -> None:
        nothing = np.full(len(rows), -1, np.int64)
        zero = np.zeros(len(rows), np.int64)
        year = parts.get("Y", nothing)
        if "y" in parts:
            year = np.where(parts["y"] < 69, 2000, 1900) + parts["y"]
        hour = parts.get("H", zero)
        minute, second = parts.get("M", zero), parts.get("S", zero)
        midnight = (hour == 24) & (minute == 0) & (second == 0) & (parts.get("f", zero) == 0)
        # A leap second is the beginning of the next minute, and 24:00 that of the next day.
        leap = (second == 60) & (minute == 59)
        good = ((hour < 24) & (minute < 60) & ((second < 60) | leap)) | midnight
        if "I" in parts:
            good &= (parts["I"] >= 1) & (parts["I"] <= 12)
            hour = parts["I"] % 12 + 12 * parts["p"]
        month = parts["b"] if "b" in parts else parts.get("m", nothing)
        if "j" in parts:
            # A day of the year is a day of January that is too late.
            month, day = zero + 1, parts["j"]
            long_year = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
            good &= (day >= 1) & (day <= np.where(long_year, 366, 365))
        else:
            day = parts.get("d", nothing)
            good &= ("d" not in parts) | ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31))
        if "Y" in parts or "y" in parts:
            good &= (year >= YEARS[0]) & (year <= YEARS[1])
        places = spans["f"][1] - spans["f"][0] if "f" in parts else 0
        seconds = (hour * 60 + parts.get("M", zero)) * 60 + parts.get("S", zero)
        self.year[rows], self.month[rows], self.day[rows] = year, month, day
        fraction = np.where(leap, 0, parts.get("f", zero))
        self.leap[rows] = leap & good
        self.within[rows] = seconds * _SECOND + fraction * 10 ** (9 - places)
        self.offset[rows] = parts.get("z", np.full(len(rows), NO_ZONE))
        last = next((unit for letter, unit in _RESOLUTIONS if letter in parts), "d")
        self.length[rows] = 10 ** (9 - places) if places else UNIT_NANOSECONDS[last]
        self.good[rows] = good

    def turn(self, places: IntArray) -> bool:
        """Tell whether the day or the year changes between rows that have the stamps at places, (n,).

        It does so where stamps tell none, and go back or forth by more than half of one.
        """
        usable = self.good & ~self.number
        dayless = usable & (self.day < 0)
        yearless = usable & ~dayless & (self.year < 0)
        for rows, values, period in ((dayless, self.within, _DAY), (yearless, self._rough_days, 372)):
            if rows.any():
                steps = np.diff(values[places[rows[places]]])
                if (np.abs(steps) > period // 2).any():
                    return True
        return False

    @property
    def _rough_days(self) -> IntArray:
        """The days of stamps, (n,) int64, as if each month had 31."""
        return (self.month - 1) * 31 + self.day

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
            turns = _turns(self._rough_days[yearless], 372, fixed=fixed)
            self.year[yearless] = int((base or "1970")[:4]) + turns
            if (np.diff(turns) < 0).any():
                said = _turned("year", turns, self.year[yearless])
        year, month, day = self.year[dated], self.month[dated], self.day[dated]
        months = (year - 1970) * 12 + month - 1
        begin, end = (at.astype("M8[M]").astype("M8[D]").astype(np.int64) for at in (months, months + 1))
        self.good[dated] &= (day <= end - begin) | (month == 1)
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


def _letters_of(data: Any, begins: IntArray, size: int) -> Any:
    """Return the letters of texts of one size, (size, n) uint8, those at one place side by side."""
    first = int(begins[0]) if len(begins) else 0
    if (begins == first + size * np.arange(len(begins))).all():
        return np.ascontiguousarray(data[first : first + size * len(begins)].reshape(-1, size).T)
    return (
        np.stack([data[begins + place] for place in range(size)])
        if size
        else np.zeros((0, len(begins)), np.uint8)
    )


def _numbers(letters: Any) -> tuple[IntArray, BoolArray]:
    """Return the numbers in (k, n) letters, of which the first may be a space, and which are numbers."""
    numbers = np.zeros(letters.shape[1], np.int64)
    are_numbers = np.ones(letters.shape[1], np.bool_)
    for place, column in enumerate(letters):
        digits = (np.where(column == 0x20, 0x30, column) if place == 0 else column) - np.uint8(0x30)
        are_numbers &= digits < 10
        numbers = numbers * 10 + digits
    return numbers, are_numbers


def _words(kind: str, letters: Any) -> IntArray:
    """Return the numbers of months, or of am and pm, in (k, n) letters, 0 for weekdays; -1 for others."""
    low = letters | 0x20
    numbers = np.full(letters.shape[1], -1, np.int64)
    if kind == "a":
        numbers[((low >= ord("a")) & (low <= ord("z"))).all(axis=0)] = 0
        return numbers
    for written, number in _LETTERS_OF_HALVES if kind == "p" else _LETTERS_OF_MONTHS:
        if len(written) == len(letters):
            numbers[(low == written[:, None]).all(axis=0)] = number
            if (numbers >= 0).all():
                break
    return numbers


def _offsets(letters: Any) -> tuple[IntArray, BoolArray]:
    """Return zones, (k, n) letters, as nanoseconds east, and which are written like the first one."""
    first = letters[:, 0].tobytes()
    if first[:1] not in b"+-":
        east = ZONES.get(first.decode().upper(), 0) * 60 * _SECOND
        return np.full(letters.shape[1], east, np.int64), (letters == letters[:, :1]).all(axis=0)
    alike = (letters[0] == 0x2B) | (letters[0] == 0x2D)
    if b":" in first:
        alike &= letters[3] == 0x3A
    length = np.zeros(letters.shape[1], np.int64)
    places = (place for place in range(1, len(letters)) if first[place : place + 1] != b":")
    for place, weight in zip(places, (36_000, 3_600, 600, 60), strict=False):
        digits = letters[place] - np.uint8(0x30)
        alike &= digits < 10
        length += digits * np.int64(weight * _SECOND)
    return np.where(letters[0] == 0x2D, -1, 1) * length, alike & (length <= _DAY)
