"""How uncertain the stamps of a trace are: one frozen, picklable rule for each way.

Every rule answers the same three questions: which columns it reads, which of them hold stamps, and in
which ticks each row's event can have happened. All times are floored to ticks, so with exact times
``T`` and offsets ``d`` an interval is ``floor(T + d_low) .. floor(T + d_high)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.durations import parse_duration
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray
from uncertain_cep.traces.instants import Grid, check_whole, counts_of, rests_of, stamp_kind, ticks_of

__all__ = [
    "Exact",
    "Granularity",
    "Histogram",
    "Intervals",
    "Missing",
    "PlusMinus",
    "Stamps",
    "Ticks",
    "Uncertainty",
    "Window",
    "exact",
    "granularity",
    "histogram",
    "missing_where",
    "plus_minus",
    "window",
]


@dataclass(frozen=True, slots=True)
class Ticks:
    """Stamps of a column in ticks.

    Attributes
    ----------
    moved : tuple of (n,) int64
        Moved by each shift; of no meaning where there is no stamp.
    present : (n,) bool
        Where there is a stamp.
    rests : (n,) int64 or None
        What was rounded off with the first shift, nanoseconds; None if nothing.
    floored : int
        Stamps that were moved by a shift of their own which is no whole number of ticks.
    """

    moved: tuple[IntArray, ...]
    present: BoolArray
    rests: IntArray | None
    floored: int


@dataclass(frozen=True, slots=True)
class Stamps:
    """A table of raw stamps and the ticks they are read into.

    Attributes
    ----------
    table : pyarrow.Table
    time : str or None
        The column of stamps, for the rules that need one.
    unit : str or None
        Unit of numeric stamps.
    grid : Grid
    """

    table: pa.Table
    time: str | None
    unit: str | None
    grid: Grid

    def counts(self, column: str) -> tuple[IntArray, BoolArray, int | None]:
        """Return the numbers of a column, where there are any, and the nanoseconds of one."""
        values = self.table.column(column)
        kind = stamp_kind(column, values.type, self.unit)
        counts, present = counts_of(values, column, kind, self.unit)
        return counts, present, kind.resolution

    def ticks(self, column: str, *shifts: int | IntArray) -> Ticks:
        """Return the ticks of a column's stamps moved by each shift."""
        counts, present, resolution = self.counts(column)
        values = self.table.column(column)
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


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows for which no interval can be told, and why.

    Attributes
    ----------
    rows : (n,) bool
    column : str
    message : str
    """

    rows: BoolArray
    column: str
    message: str


@dataclass(frozen=True, slots=True)
class Intervals:
    """The intervals of a table's rows.

    Attributes
    ----------
    lower, upper : (n,) int64
        Ticks, both inclusive; of no meaning where a row is missing.
    missing : tuple of Missing
    pmf : list array or None
        Probabilities of the ticks; null where uniform.
    rests : (n,) int64 or None
        What was rounded off each lower bound, nanoseconds; None if nothing.
    floored : int
        Rows whose own offset or length is no whole number of ticks.
    """

    lower: IntArray
    upper: IntArray
    missing: tuple[Missing, ...] = ()
    pmf: pa.Array | None = None
    rests: IntArray | None = None
    floored: int = 0


class Uncertainty(Protocol):
    """What all rules have in common."""

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


def _is_whole_length(length: str | int, tick: int) -> bool:
    return isinstance(length, int) or parse_duration(length) % tick == 0


def _required(time: str | None, rule: str) -> str:
    if time is None:
        raise OptionError(f"{rule} needs the column of the stamps: say time=")
    return time


def missing_where(present: BoolArray, column: str, message: str = "there is no time") -> tuple[Missing, ...]:
    """Return the rows that lack a value of a column, if there are any."""
    return () if present.all() else (Missing(~present, column, message),)


class _OfTime:
    """A rule that reads the time column alone."""

    __slots__ = ()

    def stamps(self, time: str | None) -> tuple[str, ...]:
        return (_required(time, f"uncertainty {type(self).__name__}"),)

    def reads(self, time: str | None) -> tuple[str, ...]:
        return self.stamps(time)


@dataclass(frozen=True, slots=True)
class Exact(_OfTime):
    """Certain stamps: ``[T, T]``."""

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        found = stamps.ticks(column, 0)
        (ticks,) = found.moved
        return Intervals(ticks, ticks, missing_where(found.present, column), rests=found.rests)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return True: there is no length."""
        return True


@dataclass(frozen=True, slots=True)
class PlusMinus(_OfTime):
    """Stamps off by at most ``by`` either way: ``[T - by, T + by]``.

    Attributes
    ----------
    by : str or int
        A length of time, or a number of ticks.
    """

    by: str | int

    def __post_init__(self) -> None:
        _check_length(self.by, "plus_minus", least=0)

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        by = stamps.grid.length(self.by, what="plus_minus")
        found = stamps.ticks(column, -by, by)
        lower, upper = found.moved
        return Intervals(lower, upper, missing_where(found.present, column), rests=found.rests)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return whether the length is whole ticks."""
        return _is_whole_length(self.by, tick)


@dataclass(frozen=True, slots=True)
class Granularity(_OfTime):
    """Stamps truncated to a granularity: ``[T, T + of - 1 tick]``.

    Attributes
    ----------
    of : str or int
        A length of time, or a number of ticks; a whole number of ticks, at least one.
    """

    of: str | int

    def __post_init__(self) -> None:
        _check_length(self.of, "granularity", least=1)

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        of = stamps.grid.length(self.of, what="granularity", least=1)
        found = stamps.ticks(column, 0, of - (stamps.grid.tick or 1))
        lower, upper = found.moved
        return Intervals(lower, upper, missing_where(found.present, column), rests=found.rests)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return whether the length is whole ticks."""
        return _is_whole_length(self.of, tick)


@dataclass(frozen=True, slots=True)
class Window(_OfTime):
    """Stamps at the end of the window they speak of: ``(T - length, T]``, so ``[T - length + 1 tick, T]``.

    Attributes
    ----------
    length : str or int
        A length of time, or a number of ticks; a whole number of ticks, at least one.
    """

    length: str | int

    def __post_init__(self) -> None:
        _check_length(self.length, "window", least=1)

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        length = stamps.grid.length(self.length, what="window", least=1)
        found = stamps.ticks(column, (stamps.grid.tick or 1) - length, 0)
        lower, upper = found.moved
        return Intervals(lower, upper, missing_where(found.present, column), rests=found.rests)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return whether the length is whole ticks."""
        return _is_whole_length(self.length, tick)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Explicit probabilities: the first is of the tick of the stamp, each next one of a tick later.

    Attributes
    ----------
    pmf : str
        Column of lists of probabilities.
    lower : str or None
        Column of the stamps of the first tick; None for the time column.
    """

    pmf: str
    lower: str | None = None

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps."""
        return (self.lower or _required(time, "uncertainty histogram without lower"),)

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        return (*self.stamps(time), self.pmf)

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        stamps.grid.check_countable("a probability of a histogram")
        found = stamps.ticks(column, 0)
        (lower,), present = found.moved, found.present
        lists = stamps.table.column(self.pmf)
        if pa.types.is_null(lists.type):
            lists = lists.cast(pa.list_(pa.float64()))
        try:
            pmf = lists.cast(pa.list_(pa.float64())).combine_chunks()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise TraceError(
                f"column {self.pmf!r}: its type is {lists.type}, but a histogram is a list of numbers"
            ) from None
        bins = pc.fill_null(pc.list_value_length(pmf), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        gaps = missing_where(present, column) + missing_where(bins > 0, self.pmf, "there is no probability")
        return Intervals(lower, lower + np.maximum(bins, 1) - 1, gaps, pmf, found.rests)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return True: there is one probability for each tick."""
        return True


def _check_length(length: str | int, what: str, *, least: int) -> None:
    number = length if isinstance(length, int) else parse_duration(length, what=what)
    if number < least:
        raise OptionError(f"{what} {length} must be at least {least}")


def exact() -> Exact:
    """Stamps that are certain: the interval is ``[T, T]``."""
    return Exact()


def plus_minus(by: str | int) -> PlusMinus:
    """Stamps off by at most ``by`` either way, such as ``"500ms"`` or a number of ticks.

    Raises
    ------
    OptionError
        If it is no length of time.
    """
    return PlusMinus(by)


def granularity(of: str | int) -> Granularity:
    """Stamps truncated to ``of``, such as ``"1min"``: the interval is ``[T, T + of - 1 tick]``.

    Raises
    ------
    OptionError
        If it is no length of time above 0.
    """
    return Granularity(of)


def window(length: str | int) -> Window:
    """Stamps at the end of a window of this length, as of a metric: ``(T - length, T]``.

    Raises
    ------
    OptionError
        If it is no length of time above 0.
    """
    return Window(length)


def histogram(pmf: str, lower: str | None = None) -> Histogram:
    """Probabilities of consecutive ticks, in a column of lists; the first tick is in column ``lower``."""
    return Histogram(pmf, lower)
