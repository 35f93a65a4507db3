"""How uncertain the stamps of a trace are: one frozen, picklable rule for each way.

Every rule answers the same three questions: which columns it reads, which of them hold stamps, and in
which ticks each row's event can have happened. All times are floored to ticks, so with exact times
``T`` and offsets ``d`` an interval is ``floor(T + d_low) .. floor(T + d_high)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.timeline.durations import Duration, format_duration, number_unit, parse_duration
from uncertain_cep.traces.instants import Grid, stamp_kind
from uncertain_cep.traces.time_sums import columns_in, parse_sum, stamps_in
from uncertain_cep.traces.uncertain_stamps import (
    Clocks,
    Intervals,
    Stamps,
    check_column,
    missing_where,
    numbers_in,
    required_time,
)

__all__ = [
    "AsWritten",
    "Columns",
    "Histogram",
    "Moved",
    "as_written",
    "columns",
    "exact",
    "granularity",
    "histogram",
    "plus_minus",
    "window",
]


@dataclass(frozen=True, slots=True)
class Moved:
    """Stamps of the time column, and a length of time or number of ticks that tells how far off they are.

    ``exact``: ``[T, T]``; ``plus_minus``: ``[T - length, T + length]``; ``granularity``, to which stamps are
    truncated: ``[T, T + length - 1 tick]``; ``window``, which ends at the stamp: ``[T - length + 1 tick,
    T]``, with a ``source`` by the same length for all rows that agree on that column.
    """

    kind: Literal["exact", "plus_minus", "granularity", "window"]
    length: str | int = 0
    source: str | None = None

    @classmethod
    def by(
        cls,
        kind: Literal["plus_minus", "granularity", "window"],
        length: Duration | int,
        source: str | None = None,
    ) -> Moved:
        """Return the rule with a length as callers give it, or a number of ticks."""
        if source is not None:
            check_column(source, "source")
        duration: Any = length
        # NumPy's timedelta64 is an integer of its own.
        if isinstance(duration, int | np.integer) and not isinstance(duration, bool | np.timedelta64):
            return cls(kind, int(duration), source)
        nanoseconds = parse_duration(length, what=kind)  # type: ignore[arg-type]
        return cls(kind, duration if isinstance(duration, str) else format_duration(nanoseconds), source)

    def __post_init__(self) -> None:
        number = self.length if isinstance(self.length, int) else parse_duration(self.length, what=self.kind)
        if number < self._least:
            raise OptionError(f"{self.kind} {self.length} must be at least {self._least}")

    @property
    def _least(self) -> int:
        return int(self.kind in ("granularity", "window"))

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps."""
        return stamps_in(required_time(time, f"uncertainty {self.kind}"))

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        columns = columns_in(required_time(time, f"uncertainty {self.kind}"))
        return columns if self.source is None else tuple(dict.fromkeys((*columns, self.source)))

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        shifts = self.shifts(stamps.grid)
        ticks = stamps.ticks(stamps.time or column, *dict.fromkeys(shifts))
        clocks = None
        if self.source is not None:
            source = stamps.table.column(self.source).cast(pa.string()).combine_chunks()
            low, high = (np.full(len(source), shift // (stamps.grid.tick or 1)) for shift in shifts)
            clocks = Clocks(source, low, high)
        gaps = missing_where(ticks.present, column)
        return Intervals(ticks.moved[0], ticks.moved[-1], gaps, rests=ticks.rests, clocks=clocks)

    def shifts(self, grid: Grid) -> tuple[int, int]:
        """Return how much earlier and later than its stamp a time can be, in nanoseconds or plain ticks."""
        if self.kind == "exact":
            return 0, 0
        length, tick = grid.length(self.length, what=self.kind, shortest=self._least), grid.tick or 1
        if self.kind == "plus_minus":
            return -length, length
        return (0, length - tick) if self.kind == "granularity" else (tick - length, 0)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return whether the length is whole ticks."""
        return isinstance(self.length, int) or parse_duration(self.length) % tick == 0

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:
        """Return whether there can be numbers that have the unit of the rows."""
        return numbers_in(schema, required_time(time, f"uncertainty {self.kind}"))


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
        return stamps_in(self.lower or required_time(time, "uncertainty histogram without lower"))

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        stamp = self.lower or required_time(time, "uncertainty histogram without lower")
        return (*columns_in(stamp), self.pmf)

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        stamps.grid.check_countable("a probability of a histogram")
        ticks = stamps.ticks(self.lower or stamps.time or column, 0)
        (lower,), present = ticks.moved, ticks.present
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
        return Intervals(lower, lower + np.maximum(bins, 1) - 1, gaps, pmf, ticks.rests)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return True: there is one probability for each tick."""
        return True

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:
        """Return whether there can be numbers that have the unit of the rows."""
        return numbers_in(schema, self.lower or required_time(time, "uncertainty histogram without lower"))


@dataclass(frozen=True, slots=True)
class AsWritten:
    """Stamps of text that stand for all of the last unit they tell; see `as_written`."""

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps."""
        return stamps_in(required_time(time, "uncertainty as_written"))

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        return columns_in(required_time(time, "uncertainty as_written"))

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        dtype = stamps.table.schema.field(column).type
        read = stamps.texts(column)
        kind = stamp_kind(column, dtype, stamps.unit)
        if read is not None:
            lengths = read.lengths
        elif kind.resolution is None or pa.types.is_timestamp(dtype) or pa.types.is_floating(dtype):
            raise TraceError(
                f"column {column!r}: its type is {dtype}, which does not tell to what unit it was written: "
                "choose another uncertainty, such as granularity"
            )
        else:
            lengths = np.full(stamps.table.num_rows, kind.resolution)
        tick = stamps.grid.tick or 1
        ticks = stamps.ticks(stamps.time or column, 0, np.maximum(lengths, tick) // tick * tick - tick)
        lower, upper = ticks.moved
        return Intervals(lower, upper, missing_where(ticks.present, column), rests=ticks.rests)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:  # noqa: ARG002
        """Return True: no unit is shorter than that of the stamps."""
        return True

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:
        """Return whether there can be numbers that have the unit of the rows."""
        return numbers_in(schema, required_time(time, "uncertainty as_written"))


@public
def as_written() -> AsWritten:
    """Stamps of text that stand for all of the last unit they tell.

    ``2024-05-31`` is that day, ``2024-05-31 10:30`` that minute, ``10:30:15.25`` a hundredth of a second; a
    number stands for its unit. Stamps of one column may be written to different units.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> stamped = pa.table({"type": ["A"], "id": [1], "at": ["2026-01-05 10:30"]})
    >>> events = uc.to_intervals(stamped, time="at", uncertainty=uc.as_written(), tick="1s")
    >>> print(events["lower"][0], "to", events["upper"][0])
    2026-01-05 10:30:00 to 2026-01-05 10:30:59
    """
    return AsWritten()


def exact() -> Moved:
    """Stamps that are certain: the interval is ``[T, T]``.

    Examples
    --------
    >>> import datetime as dt
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> stamped = pa.table({"type": ["A"], "id": [1], "at": [dt.datetime(2026, 1, 5, 10, 30)]})
    >>> events = uc.to_intervals(stamped, time="at", uncertainty=uc.exact(), tick="1s")
    >>> print(events["lower"][0], "to", events["upper"][0])
    2026-01-05 10:30:00 to 2026-01-05 10:30:00
    """
    return Moved("exact")


@public
def plus_minus(by: Duration | int) -> Moved:
    """Stamps off by at most ``by`` either way, such as ``"500ms"``, a timedelta, or a number of ticks.

    An OptionError says that it is no length of time; so do the other rules'.

    Examples
    --------
    >>> import datetime as dt
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> stamped = pa.table({"type": ["A"], "id": [1], "at": [dt.datetime(2026, 1, 5, 10, 30)]})
    >>> events = uc.to_intervals(stamped, time="at", uncertainty=uc.plus_minus("5s"), tick="1s")
    >>> print(events["lower"][0], "to", events["upper"][0])
    2026-01-05 10:29:55 to 2026-01-05 10:30:05
    """
    return Moved.by("plus_minus", by)


@public
def granularity(of: Duration | int) -> Moved:
    """Stamps truncated to ``of``, such as ``"1min"``: the interval is ``[T, T + of - 1 tick]``.

    Examples
    --------
    >>> import datetime as dt
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> stamped = pa.table({"type": ["A"], "id": [1], "at": [dt.datetime(2026, 1, 5, 10, 30)]})
    >>> events = uc.to_intervals(stamped, time="at", uncertainty=uc.granularity("1min"), tick="1s")
    >>> print(events["lower"][0], "to", events["upper"][0])
    2026-01-05 10:30:00 to 2026-01-05 10:30:59
    """
    return Moved.by("granularity", of)


@public
def window(length: Duration | int, source: str | None = None) -> Moved:
    """Stamps at the end of a window of this length, as of a metric: ``(T - length, T]``.

    Parameters
    ----------
    length : str, timedelta or int
        Of the window; a whole number is ticks.
    source : str, optional
        A column that names the sampler, such as the node. All that one sampler stamps then happened the same
        length of time before its stamp, as instants do that are sampled at one unknown phase. Default: each
        event anywhere in its window by itself, such as a peak within it.

    Examples
    --------
    >>> import datetime as dt
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> stamped = pa.table({"type": ["A"], "id": [1], "at": [dt.datetime(2026, 1, 5, 10, 30)]})
    >>> events = uc.to_intervals(stamped, time="at", uncertainty=uc.window("15s"), tick="1s")
    >>> print(events["lower"][0], "to", events["upper"][0])
    2026-01-05 10:29:46 to 2026-01-05 10:30:00
    """
    return Moved.by("window", length, source)


@public
def histogram(pmf: str, lower: str | None = None) -> Histogram:
    """Probabilities of consecutive ticks, in a column of lists; the first tick is in column ``lower``.

    Examples
    --------
    >>> import datetime as dt
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> at, p = [dt.datetime(2026, 1, 5, 10, 30)], [[0.25, 0.75]]
    >>> stamped = pa.table({"type": ["A"], "id": [1], "at": at, "p": p})
    >>> events = uc.to_intervals(stamped, time="at", uncertainty=uc.histogram("p"), tick="1s")
    >>> print(events["lower"][0], "to", events["upper"][0])
    2026-01-05 10:30:00 to 2026-01-05 10:30:01
    """
    # What is no text is refused here.
    columns_in(pmf)
    if lower is not None:
        columns_in(lower)
    return Histogram(pmf, lower)


@dataclass(frozen=True, slots=True)
class Columns:
    """Explicit bounds, ``[lower, upper]``; see `columns`."""

    lower: str
    upper: str

    def stamps(self, time: str | None) -> tuple[str, ...]:  # noqa: ARG002
        """Return the columns whose values are stamps; the time column is not one of them."""
        return tuple(dict.fromkeys((*stamps_in(self.lower), *stamps_in(self.upper))))

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        return tuple(dict.fromkeys((*self.stamps(time), *self._lengths)))

    @property
    def _lengths(self) -> list[str]:
        return [name for bound in (self.lower, self.upper) for name in columns_in(bound)[1:]]

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        # Of bounds that may stand for two times each, all between the first and the last is possible.
        low = replace(stamps, later=False).ticks(self.lower, 0)
        high = replace(stamps, later=True).ticks(self.upper, 0)
        (lower,), has_lower = low.moved, low.present
        (upper,), has_upper = high.moved, high.present
        gaps = missing_where(has_lower, parse_sum(self.lower).column, f"there is no bound {self.lower!r}")
        gaps += missing_where(has_upper, parse_sum(self.upper).column, f"there is no bound {self.upper!r}")
        return Intervals(lower, upper, gaps, rests=low.rests, floored=max(low.floored, high.floored))

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:
        """Return whether the lengths, if there are any, are whole ticks by the types of their columns."""
        if any(parse_sum(bound).nanoseconds % tick for bound in (self.lower, self.upper)):
            return False
        if not self._lengths:
            return True
        step = number_unit(unit)
        whole = step is not None and step % tick == 0
        return whole and all(pa.types.is_integer(schema.field(name).type) for name in self._lengths)

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:  # noqa: ARG002
        """Return whether there can be numbers that have the unit of the rows."""
        return numbers_in(schema, self.lower, self.upper)


@public
def columns(lower: str, upper: str) -> Columns:
    """Bounds that stand in two columns of the trace, both inclusive.

    Parameters
    ----------
    lower, upper : str
        Columns of stamps; or sums of such a column, lengths, and columns of lengths in the same unit.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> rule = uc.columns("launch", "launch + slack + 200ms")
    """
    rule = Columns(lower, upper)
    # What is no text is refused here.
    rule.reads(None)
    return rule
