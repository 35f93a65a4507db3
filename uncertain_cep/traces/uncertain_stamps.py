"""The common part of all rules of uncertainty: the stamps they take, and the intervals they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.timeline.durations import format_duration, number_unit
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, renumbered
from uncertain_cep.traces.instants import (
    Grid,
    check_whole,
    counts_of,
    is_text,
    lengths_of,
    rests_of,
    stamp_kind,
    ticks_of,
    zoned_rows,
)
from uncertain_cep.traces.time_formats import ISO, StampTimes, TimeFormat
from uncertain_cep.traces.time_sums import TimeSum, columns_in, parse_sum
from uncertain_cep.traces.units import any_numbers
from uncertain_cep.traces.usual_formats import cure_of

__all__ = [
    "Clocks",
    "Intervals",
    "Missing",
    "SpanBounds",
    "Stamps",
    "Ticks",
    "Uncertainty",
    "Zones",
    "check_column",
    "missing_where",
    "numbers_in",
    "required_time",
]


@dataclass(frozen=True, slots=True)
class Ticks:
    """Stamps of a column in ticks.

    ``moved`` has them, (n,) int64, for each shift. ``rests`` is what was rounded off with the first shift,
    (n,) int64, nanoseconds (None: nothing). ``floored`` counts the stamps that have a shift of their own
    which is no whole number of ticks.
    """

    moved: tuple[IntArray, ...]
    present: BoolArray
    rests: IntArray | None
    floored: int


Zones: TypeAlias = Literal["all", "none", "number"]
"""Which stamps of a column have a time zone; numbers since 1970 need none."""


@dataclass(slots=True)
class Seen:
    """Facts about stamps, noted while they are read.

    ``twice``: some may stand for two times. ``zones``: see `Zones`; None: the type of their column tells.
    """

    twice: bool = False
    zones: Zones | None = None


@dataclass(frozen=True, slots=True)
class Stamps:
    """A table of raw stamps, their column, the unit of numbers, the ticks they become, the format of text.

    A column is a column's name, or a sum of one and of lengths, ``launch + slack - 5 s``, see
    `TimeSum`. ``later`` tells that of two times that a stamp may stand for the later one is meant.
    """

    table: pa.Table
    time: str | None
    unit: str | None
    grid: Grid
    format: TimeFormat | None = None
    later: bool = False
    seen: Seen = field(default_factory=Seen)
    _read: dict[str, StampTimes] = field(default_factory=dict)

    def texts(self, column: str) -> StampTimes | None:
        """Return the times of a column of text by the format, ISO 8601 by default; None if it has none."""
        return self._times(column) if is_text(self.table.schema.field(column).type) else None

    def read_together(self, columns: Mapping[str, BoolArray]) -> None:
        """Read some rows, (n,) bool, of columns before these are split up by `take`.

        Only so do rows tell each other's year, day or hour.
        """
        for column, mask in columns.items():
            if column in self._read or self.format is None or not self.format.by_rows:
                continue
            rows = np.flatnonzero(mask)
            try:
                times = replace(self, table=self.table.take(pa.array(rows)), _read={}).times(column)
            except TraceError as error:
                raise TraceError(renumbered(error.faults, rows)) from None
            if times is not None:
                self._read[column] = times.placed(rows, len(mask))

    def take(self, rows: IntArray) -> Stamps:
        """Return the stamps of some rows, (k,) int64."""
        read = {column: times.take(rows) for column, times in self._read.items()}
        return replace(self, table=self.table.take(pa.array(rows)), _read=read)

    def times(self, column: str) -> StampTimes | None:
        """Return the times of a column that the format reads: of text, or local ones; None for others."""
        if self.format is None:
            return None
        dtype = self.table.schema.field(column).type
        is_local = self.format.zone is not None and pa.types.is_timestamp(dtype) and dtype.tz is None
        return self._times(column) if is_local or is_text(dtype) else None

    def _times(self, column: str) -> StampTimes:
        if column not in self._read:
            self._read[column] = (self.format or ISO).read(self.table.column(column), column, cure_of)
        return self._read[column]

    def lengths(self, column: str) -> tuple[IntArray, BoolArray]:
        """Return a column of lengths, (n,) int64, and where there is one.

        Nanoseconds, or ticks where these have no length. Numbers have the unit of the rows.
        """
        length, present = _shift_of(self, TimeSum("", ((1, column),)))
        whole = np.asarray(length, np.int64)
        return whole, np.ones(len(whole), np.bool_) if present is None else present

    def ticks(self, column: str, *shifts: int | IntArray) -> Ticks:
        """Return the ticks of a sum of columns and lengths, moved by each shift."""
        bound = parse_sum(column)
        length, has_lengths = _shift_of(self, bound)
        largest = max(_largest(length) + _largest(shift) for shift in shifts)
        if largest >= 2**63:
            raise _too_far(bound)
        ticks = self._moved(bound.column, [shift + length for shift in shifts])
        return ticks if has_lengths is None else replace(ticks, present=ticks.present & has_lengths)

    def _moved(self, column: str, shifts: Sequence[int | IntArray]) -> Ticks:
        values = self.table.column(column)
        kind = stamp_kind(column, values.type, self.unit)
        read, resolution = self.times(column), kind.resolution
        if read is None:
            counts, present = counts_of(values, column, kind, self.unit)
        else:
            counts, present, resolution = read.counts, read.present, 1
            if read.again.any():
                self.seen.twice = True
                counts = counts + read.again if self.later else counts
        if read is not None or is_text(values.type):
            self.seen.zones = "all" if (_has_zone(values) if read is None else read.zoned) else "none"
        elif pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            self.seen.zones = "number"
        check_whole(counts, present, resolution, self.grid, column=column, values=values)
        moved = [
            ticks_of(counts, resolution, self.grid, column=column, values=values, shift=shift)
            for shift in shifts
        ]
        rests = rests_of(counts, resolution, self.grid, shifts[0])
        tick = self.grid.tick or 1
        floored = np.zeros(len(counts), np.bool_)
        for shift in shifts:
            if not isinstance(shift, int):
                floored |= shift % tick != 0
        return Ticks(tuple(moved), present, rests, int((floored & present).sum()))


def _largest(shift: int | IntArray) -> int:
    """Return the largest absolute value of a shift, or of those of all rows."""
    if isinstance(shift, int):
        return abs(shift)
    return max(-int(shift.min(initial=0)), int(shift.max(initial=0)))


def _has_zone(texts: pa.ChunkedArray) -> bool:
    """Tell whether ISO 8601 texts have a time zone, of which either all have one or none has."""
    first = texts.slice(0, _LOOKED_AT)
    if first.null_count == len(first):
        first = texts
    return bool(pc.any(zoned_rows(first.cast(pa.string()))).as_py())


_LOOKED_AT: Final = 100


def check_column(value: object, option: str) -> None:
    """Raise OptionError if what an option gives is no name of a column."""
    if not isinstance(value, str):
        raise OptionError(f"{option}= takes the name of a column, not {type(value).__name__}")


def numbers_in(schema: pa.Schema, *bounds: str) -> bool:
    """Return whether a column of these sums can hold numbers; one that is not there can."""
    names = [name for bound in bounds for name in columns_in(bound)]
    return any_numbers(schema.field(name).type if name in schema.names else pa.null() for name in names)


def _shift_of(stamps: Stamps, bound: TimeSum) -> tuple[int | IntArray, BoolArray | None]:
    """Return the exact length that a sum adds to its stamps, and where it is known (None: everywhere).

    One number for all rows, or (n,) int64: nanoseconds, or ticks where these have no length.
    """
    constant = _constant(stamps, bound)
    if not bound.lengths:
        return constant, None
    tick = stamps.grid.tick or 1
    shift = np.full(stamps.table.num_rows, constant)
    has_lengths = np.ones(stamps.table.num_rows, np.bool_)
    unit = None if number_unit(stamps.unit) is None else stamps.unit
    largest = abs(constant)
    for factor, name in bound.lengths:
        values = stamps.table.column(name)
        if unit is None and stamps.grid.type != pa.int64() and not pa.types.is_duration(values.type):
            raise OptionError(
                f"the numbers of column {name!r} are lengths of time: say their unit, such as ms"
            )
        length, present = lengths_of(values, name, unit)
        if pa.types.is_duration(values.type):
            _check_tick(stamps.grid, f"column {name!r}")
        elif unit is None:
            factor *= tick
        largest += _largest(length) * abs(factor)
        if max(largest, abs(factor)) >= 2**63:
            raise _too_far(bound)
        shift += factor * length
        has_lengths &= present
    return shift, has_lengths


def _constant(stamps: Stamps, bound: TimeSum) -> int:
    """Return the sum of all lengths that are no columns; if the tick is the default, they are whole ticks."""
    grid = stamps.grid
    if bound.ticks:
        if number_unit(stamps.unit) is not None:
            raise OptionError(
                f"{abs(bound.ticks)} may be a number of {stamps.unit} or of ticks: write a unit, such as "
                f"{abs(bound.ticks)} {stamps.unit}"
            )
        grid.check_countable(f"{bound.ticks}")
    length = format_duration(abs(bound.nanoseconds))
    if bound.nanoseconds:
        _check_tick(grid, length)
    tick = grid.tick or 1
    if not grid.named and bound.nanoseconds % tick:
        raise OptionError(
            f"{length} must be whole ticks of {format_duration(tick)}, the default: give a tick= that "
            "divides it, or one to which all times are rounded down"
        )
    constant = bound.nanoseconds + bound.ticks * tick
    if abs(constant) >= 2**63:
        raise _too_far(bound)
    return constant


def _check_tick(grid: Grid, length: str) -> None:
    if grid.tick is None:
        raise OptionError(
            f"{length} is a length of time, but the times are plain whole numbers: say what a tick is "
            '(tick="1ms"), or the unit of the numbers (unit="ms"), or give a number of ticks'
        )


def _too_far(bound: TimeSum) -> TraceError:
    terms = [bound.column, *(f"{'+' if factor > 0 else '-'} {name}" for factor, name in bound.lengths)]
    return TraceError(f"{' '.join(terms)!r} adds up to more than 292 years: is the unit right?")


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows, (n,) bool, for which no interval can be told, and why."""

    rows: BoolArray
    column: str
    message: str


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clock of each row, text, null for none, and the bounds of its offset, (n,) int64, ticks."""

    source: pa.Array
    lower: IntArray
    upper: IntArray


@dataclass(frozen=True, slots=True)
class SpanBounds:
    """Bounds of the begins, ends and lengths of events that last, in ticks; None for an unknown pair.

    A pair is a lower and an upper bound, (n,) int64 each. ``lasting``, (n,) bool, tells which rows last;
    the others are points, and their bounds have no meaning.
    """

    begin: tuple[IntArray, IntArray] | None
    end: tuple[IntArray, IntArray] | None
    length: tuple[IntArray, IntArray] | None
    lasting: BoolArray

    def moved(self, low: int | IntArray, high: int | IntArray) -> SpanBounds:
        """Return the bounds of events both of whose ends may be later by ``low`` to ``high`` ticks."""
        begin, end = (
            None if pair is None else (pair[0] + low, pair[1] + high) for pair in (self.begin, self.end)
        )
        return replace(self, begin=begin, end=end)

    def by_name(self) -> dict[str, IntArray]:
        """Return the columns of the pairs that are known, by their names."""
        pairs = zip(SPAN_COLUMNS[::2], SPAN_COLUMNS[1::2], (self.begin, self.end, self.length), strict=True)
        return {
            name: bound
            for lower, upper, pair in pairs
            if pair is not None
            for name, bound in zip((lower, upper), pair, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Intervals:
    """The intervals of a table's rows, in ticks, both bounds inclusive; of no meaning where a row is missing.

    ``pmf`` has the probabilities of the ticks, null where uniform; ``rests`` and ``floored`` as in `Ticks`.
    ``spans`` has the ends of events that last; an interval bounds all of its event.
    """

    lower: IntArray
    upper: IntArray
    missing: tuple[Missing, ...] = ()
    pmf: pa.Array | None = None
    rests: IntArray | None = None
    floored: int = 0
    clocks: Clocks | None = None
    spans: SpanBounds | None = None


class Uncertainty(Protocol):
    """The common interface of all rules."""

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps, given the name of the time column."""

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:
        """Return whether all lengths of the rule are whole ticks of so many nanoseconds, whatever the rows.

        A number of ticks is. ``schema`` and ``unit`` are those of the rows.
        """

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:
        """Return whether there can be numbers that have the unit of the rows: stamps, or lengths."""


def required_time(time: str | None, rule: str) -> str:
    """Return the name of the time column; an OptionError if there is none."""
    if time is None:
        raise OptionError(f"{rule} needs the column of the stamps: say time=")
    return time


def missing_where(present: BoolArray, column: str, message: str = "there is no time") -> tuple[Missing, ...]:
    """Return the rows that lack a value of a column, if there are any."""
    return () if present.all() else (Missing(~present, column, message),)
