"""Events that last: bounds of their begins, ends and lengths, of the stamps of these or of a period."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.timeline.durations import Duration, format_duration, number_unit, parse_duration
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, row_faults
from uncertain_cep.traces.time_sums import columns_in, parse_sum, stamps_in
from uncertain_cep.traces.uncertain_stamps import (
    Clocks,
    Intervals,
    Missing,
    SpanBounds,
    Stamps,
    Uncertainty,
    check_column,
    missing_where,
    numbers_in,
    required_time,
)
from uncertain_cep.traces.units import any_numbers

__all__ = ["Lasting", "Period", "lasting", "period", "rule_of_ends"]

Pair = tuple[IntArray, IntArray]


@dataclass(frozen=True, slots=True)
class Lasting:
    """Events whose begin and end are stamps, or one of them a stamp and their length known; see `lasting`."""

    begin: str | None
    end: str | None
    duration: str | None
    rule: Uncertainty

    @property
    def _ends(self) -> list[str]:
        return [end for end in (self.begin, self.end) if end is not None]

    def stamps(self, time: str | None) -> tuple[str, ...]:  # noqa: ARG002
        """Return the columns whose values are stamps; the time column is not one of them."""
        return tuple(dict.fromkeys(name for end in self._ends for name in self.rule.stamps(end)))

    def reads(self, time: str | None) -> tuple[str, ...]:  # noqa: ARG002
        """Return all columns that the rule reads."""
        columns = [name for end in self._ends for name in self.rule.reads(end)]
        return tuple(dict.fromkeys((*columns, *([] if self.duration is None else [self.duration]))))

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row, with the bounds of its ends and its length.

        A length that is no whole number of ticks lasts one tick more or less, by where it begins in one.
        """
        begin, end = (None if name is None else self._of_end(stamps, name) for name in (self.begin, self.end))
        made = [part for part in (begin, end) if part is not None]
        gaps = [gap for part in made for gap in part.missing]
        length = self._length(stamps, gaps)
        longest = 0 if length is None else length[1]
        lower = begin.lower if begin is not None else made[0].lower - longest
        upper = end.upper if end is not None else made[0].upper + longest
        clocks = _common_clocks([part.clocks for part in made], gaps)
        spans = SpanBounds(
            None if begin is None else (begin.lower, begin.upper),
            None if end is None else (end.lower, end.upper),
            length,
            np.ones(stamps.table.num_rows, np.bool_),
        )
        _check_possible(spans, clocks, gaps)
        floored = max(part.floored for part in made)
        return Intervals(lower, upper, tuple(gaps), None, made[0].rests, floored, clocks, spans)

    def _of_end(self, stamps: Stamps, name: str) -> Intervals:
        made = self.rule.intervals(replace(stamps, time=name))
        if made.pmf is not None:
            raise OptionError("an end of an event that lasts has no probabilities of single ticks")
        if made.spans is not None:
            raise OptionError("a period has one stamp: give it by time=, without begin, end and duration")
        return made

    def _length(self, stamps: Stamps, gaps: list[Missing]) -> Pair | None:
        """Return the bounds of the lengths, in ticks; rows without one are added to ``gaps``."""
        if self.duration is None:
            return None
        length, present = stamps.lengths(self.duration)
        gaps += missing_where(present, self.duration, "there is no length")
        negative = present & (length < 0)
        if negative.any():
            values = stamps.table.column(self.duration)
            message = "a length of time is not negative"
            raise TraceError(row_faults(negative, message, column=self.duration, values=values))
        tick = stamps.grid.tick or 1
        return length // tick, -(-length // tick)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:
        """Return whether all lengths are whole ticks."""
        if any(parse_sum(end).nanoseconds % tick for end in self._ends):
            return False
        if self.duration is not None:
            step = number_unit(unit)
            if step is None or step % tick or not pa.types.is_integer(schema.field(self.duration).type):
                return False
        return self.rule.is_whole(tick, schema, unit)

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:  # noqa: ARG002
        """Return whether there can be numbers that have the unit of the rows."""
        if self.duration is not None:
            has_column = self.duration in schema.names
            if any_numbers([schema.field(self.duration).type if has_column else pa.null()]):
                return True
        return any(self.rule.takes_unit(end, schema) for end in self._ends)


def lasting(begin: str | None, end: str | None, duration: str | None, rule: Uncertainty) -> Lasting:
    """Return the rule of events that last.

    ``begin`` and ``end`` are columns of stamps, or sums as a time, each as uncertain as the rule says;
    ``duration`` a column of exact lengths. At least two of them are needed; an OptionError says so, or that
    the rule names its columns itself.
    """
    names = (begin, end, duration)
    if sum(name is not None for name in names) < 2:
        raise OptionError(
            "an event that lasts needs two of begin, end and duration: name the columns, such as "
            'begin="start", duration="took"'
        )
    for name in (begin, end):
        if name is not None:
            parse_sum(name)
    if duration is not None:
        check_column(duration, "duration")
    if set(rule.stamps("begin")) & set(rule.stamps("end")):
        raise OptionError(
            "columns and histogram name the columns of one time: of an event that lasts give the stamps of "
            "its ends by begin and end, or its columns begin_lower, begin_upper and so on"
        )
    return Lasting(begin, end, duration, rule)


def rule_of_ends(
    rule: Uncertainty, time: str | None, begin: str | None, end: str | None, duration: str | None
) -> Uncertainty:
    """Return the rule of a time, or of events that last if any of their columns is named."""
    if begin is None and end is None and duration is None:
        return rule
    if time is not None:
        raise OptionError(
            "an event that lasts has no single time: leave time= out, or begin=, end= and duration="
        )
    return lasting(begin, end, duration, rule)


def _common_clocks(clocks: list[Clocks | None], gaps: list[Missing]) -> Clocks | None:
    """Return the clocks of both ends; a TraceError names events whose ends are in two epochs of a clock."""
    first, last = clocks[0], clocks[-1]
    if first is None or last is None or first is last:
        return first
    differ = np.asarray(pc.not_equal(first.source, last.source).fill_null(False))
    differ &= ~_missing(gaps, len(differ))
    if differ.any():
        message = "it begins in one epoch of its clock, and ends in another: give it as two events"
        raise TraceError(row_faults(differ, message))
    return first


def _missing(gaps: list[Missing], count: int) -> BoolArray:
    rows = np.zeros(count, np.bool_)
    for gap in gaps:
        rows |= gap.rows
    return rows


def _check_possible(spans: SpanBounds, clocks: Clocks | None, gaps: list[Missing]) -> None:
    """Refuse, by a TraceError, events that cannot have begun before their end, by one clock."""
    low, high = (0, 0) if clocks is None else (clocks.lower, clocks.upper)
    by_clock = spans.moved(-low, -high)
    shortest, longest = by_clock.length or (0, np.iinfo(np.int64).max)
    if by_clock.begin is None or by_clock.end is None:
        return
    impossible = by_clock.end[1] - by_clock.begin[0] < shortest
    impossible |= by_clock.end[0] - by_clock.begin[1] > longest
    impossible &= ~_missing(gaps, len(impossible))
    if impossible.any():
        message = (
            "it ends before it begins"
            if by_clock.length is None
            else "its end is not behind its begin by its length"
        )
        raise TraceError(
            row_faults(impossible, f"{message}: correct it, or say how uncertain the stamps are")
        )


@dataclass(frozen=True, slots=True)
class Period:
    """Values about a whole period that ends at the stamp; see `period`."""

    length: str | int

    def __post_init__(self) -> None:
        length = self.length if isinstance(self.length, int) else parse_duration(self.length, what="period")
        if length < 1:
            raise OptionError(f"period {self.length} must be at least 1")

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps."""
        return stamps_in(required_time(time, "uncertainty period"))

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        return columns_in(required_time(time, "uncertainty period"))

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the period of each row, whose begin and end are certain."""
        (column,) = self.stamps(stamps.time)
        tick = stamps.grid.tick or 1
        length = stamps.grid.length(self.length, what="period", shortest=1)
        ticks = stamps.ticks(stamps.time or column, *dict.fromkeys((tick - length, 0)))
        begin, end = ticks.moved[0], ticks.moved[-1]
        lasting = np.ones(len(begin), np.bool_)
        took = end - begin
        spans = SpanBounds((begin, begin), (end, end), (took, took), lasting)
        return Intervals(begin, end, missing_where(ticks.present, column), rests=ticks.rests, spans=spans)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return whether the length is whole ticks."""
        return isinstance(self.length, int) or parse_duration(self.length) % tick == 0

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:
        """Return whether there can be numbers that have the unit of the rows."""
        return numbers_in(schema, required_time(time, "uncertainty period"))


@public
def period(length: Duration | int) -> Period:
    """Values about a whole period that ends at its stamp, ``(T - length, T]``: an average, a count or a rate.

    The event lasts: it begins and ends with the period, and is no moment within it, as `window` says of a
    maximum.

    Parameters
    ----------
    length : str, timedelta or int
        Of the period; a whole number is ticks.

    Examples
    --------
    >>> import datetime as dt
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> at = [dt.datetime(2026, 1, 5, 10, 30)]
    >>> load = pa.table({"type": ["Load"], "id": [1], "at": at, "average": [0.9]})
    >>> events = uc.to_intervals(load, time="at", uncertainty=uc.period("60s"), tick="1s")
    >>> print(events["begin_lower"][0], "to", events["end_upper"][0])
    2026-01-05 10:29:01 to 2026-01-05 10:30:00
    """
    duration: Any = length
    # NumPy's timedelta64 is an integer of its own.
    if isinstance(duration, int | np.integer) and not isinstance(duration, bool | np.timedelta64):
        return Period(int(duration))
    nanoseconds = parse_duration(length, what="period")  # type: ignore[arg-type]
    return Period(duration if isinstance(duration, str) else format_duration(nanoseconds))
