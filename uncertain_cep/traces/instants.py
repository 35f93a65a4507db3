"""Stamps of a trace (timestamps, dates, epoch numbers, text) as whole ticks.

What the numbers of a column mean follows from the column's type alone, never from its values, so a
table read batch by batch, or an empty one, gets the same answer as the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.config import FAULT_LIMIT
from uncertain_cep.durations import UNIT_NANOSECONDS, format_duration, parse_duration, unit_nanoseconds
from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.timedomain import DEFAULT_TICK, coarsest_unit, is_text
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, Values, row_faults, unreadable_rows
from uncertain_cep.traces.zones import check_rows_agree, zoned_rows

__all__ = [
    "Grid",
    "StampKind",
    "check_whole",
    "counts_of",
    "grid_of",
    "is_text",
    "read_iso",
    "rests_of",
    "stamp_kind",
    "ticks_of",
]


_INT64 = np.iinfo(np.int64)
_MICROSECOND = UNIT_NANOSECONDS["us"]
_UNCHOSEN = "is a number of ticks, and nobody said what a tick is: give a length of time, or tick="
_DAY = UNIT_NANOSECONDS["d"]
_ACCEPTED = "timestamps, dates, whole or decimal numbers (with a unit) and ISO 8601 text"


@dataclass(frozen=True, slots=True)
class StampKind:
    """What the numbers of a stamp column mean.

    Attributes
    ----------
    resolution : int or None
        Nanoseconds of one count; None for plain ticks.
    is_day : bool
        Whether they are dates, without a time.
    timezone : str or None
        Time zone of the column.
    """

    resolution: int | None
    is_day: bool = False
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """The ticks that all times of a table are floored to.

    Attributes
    ----------
    tick : int or None
        Length of a tick in nanoseconds; None for plain ticks whose length nobody named.
    type : pyarrow.DataType
        Type of the time columns: int64, or a timestamp of the coarsest unit in which the tick is whole.
    per_tick : int
        Length of a tick in that type's unit; 1 for int64.
    named : bool
        Whether the caller named the tick. If not, no stamp may lie between two ticks.
    countable : bool
        Whether numbers may count ticks: not where a tick is the microsecond that nobody named.
    """

    tick: int | None
    type: pa.DataType
    per_tick: int
    named: bool
    countable: bool

    def length(self, duration: str | int, *, what: str, least: int = 0) -> int:
        """Return a length in nanoseconds (in ticks if the tick has no name); a number counts ticks.

        Raises
        ------
        OptionError
            If it is a text and the tick has no length, a number and nobody named the tick, or if it is not a
            whole number of ticks, or of fewer than ``least``.
        """
        if isinstance(duration, int):
            self.check_countable(f"{what} {duration}")
            nanoseconds = duration * (self.tick or 1)
        elif self.tick is None:
            raise OptionError(
                f"{what} {duration} is a length of time, but the times are plain whole numbers: say what a "
                'tick is (tick="1ms"), or the unit of the numbers (unit="ms"), or give a number of ticks'
            )
        else:
            nanoseconds = parse_duration(duration, what=what)
        if nanoseconds % (self.tick or 1) or nanoseconds < least:
            some = "one or more whole ticks" if least else "whole ticks"
            raise OptionError(
                f"{what} {duration} must be {some} of {format_duration(self.tick or 1)}"
                f"{'' if self.named else ', the default'}: give a tick= that divides it"
            )
        return nanoseconds

    def check_countable(self, what: str) -> None:
        """Check that numbers may count ticks.

        Raises
        ------
        OptionError
            If nobody said what a tick is.
        """
        if not self.countable:
            raise OptionError(f'{what} {_UNCHOSEN}, such as tick="1ms"')

    def column(self, ticks: IntArray, name: str) -> pa.Array:
        """Return ticks as a column of the grid's type; ``name`` is for the message of an error."""
        _check_fits(ticks, self.per_tick, 0, name, ticks)
        values = ticks if self.per_tick == 1 else ticks * self.per_tick
        return pa.array(values).view(self.type) if self.type != pa.int64() else pa.array(values)

    @property
    def text(self) -> str | None:
        """The tick as it stands in a schema's metadata, such as ``100ms``."""
        return None if self.tick is None else format_duration(self.tick)


def stamp_kind(column: str, dtype: pa.DataType, unit: str | None) -> StampKind:
    """Return what the stamps of a column mean.

    Parameters
    ----------
    column : str
        For the message of an error.
    dtype : pyarrow.DataType
    unit : str or None
        Unit of numeric stamps since the epoch, such as ``ms``; None or ``tick`` for plain ticks.

    Raises
    ------
    TraceError
        If no time can be read from a column of this type.
    OptionError
        If there is no such unit.
    """
    epoch = None
    if unit is not None and unit.lower() not in ("tick", "ticks"):
        epoch = unit_nanoseconds(unit)
        if epoch is None:
            raise OptionError(
                f"unit {unit!r} is not known: write one of {', '.join(UNIT_NANOSECONDS)} or tick"
            )
    if pa.types.is_timestamp(dtype):
        return StampKind(UNIT_NANOSECONDS[dtype.unit], timezone=dtype.tz)
    if pa.types.is_date(dtype):
        return StampKind(_DAY if pa.types.is_date32(dtype) else UNIT_NANOSECONDS["ms"], is_day=True)
    if pa.types.is_integer(dtype) or (pa.types.is_null(dtype) and epoch is not None):
        return StampKind(epoch)
    if pa.types.is_floating(dtype):
        # A double holds today's epoch to about a quarter of a microsecond, in whichever unit.
        resolution = None if epoch is None else min(epoch, _MICROSECOND)
        return StampKind(resolution)
    if is_text(dtype) or pa.types.is_null(dtype):
        return StampKind(1)
    raise TraceError(
        TraceFault(f"its type is {dtype}, which is no time: {_ACCEPTED} can be read", column=column)
    )


def grid_of(kinds: Sequence[tuple[str, StampKind]], tick: str | None, whole_days: bool = True) -> Grid:
    """Return the grid for the times of some columns.

    Parameters
    ----------
    kinds : sequence of (str, StampKind)
        Column names and what their stamps mean; at least one.
    tick : str or None
        Length of a tick. Default: 1us, whatever the columns' resolution; one day if all hold dates.
    whole_days : bool
        Whether a tick may be a day, as all lengths of the uncertainty are whole days.

    Raises
    ------
    TraceError
        If some columns hold plain ticks and others times.
    OptionError
        If the tick is not a length of time above 0.
    """
    plain = [name for name, kind in kinds if kind.resolution is None]
    named = None if tick is None else parse_duration(tick, what="tick")
    if named == 0:
        raise OptionError("tick must be longer than 0")
    if len(plain) == len(kinds):
        return Grid(named, pa.int64(), 1, named=named is not None, countable=True)
    if plain:
        timed = next(name for name, kind in kinds if kind.resolution is not None)
        raise TraceError(
            TraceFault(
                f"it holds plain numbers, but column {timed!r} holds times: say the unit of the numbers "
                '(unit = "ms")',
                column=plain[0],
            )
        )
    days = whole_days and all(kind.is_day for _, kind in kinds)
    length = named or (_DAY if days else DEFAULT_TICK)
    zones = {kind.timezone for _, kind in kinds if kind.timezone is not None}
    zone = None if not zones else zones.pop() if len(zones) == 1 else "UTC"
    unit = coarsest_unit(length)
    return Grid(
        length,
        pa.timestamp(unit, zone),
        length // UNIT_NANOSECONDS[unit],
        named=named is not None,
        countable=named is not None or days,
    )


def counts_of(
    values: pa.ChunkedArray, column: str, kind: StampKind, unit: str | None
) -> tuple[IntArray, BoolArray]:
    """Return a stamp column as whole numbers of the kind's resolution.

    Parameters
    ----------
    values : (n,) chunked array
    column : str
        For the message of an error.
    kind : StampKind
        As returned by `stamp_kind` for this column.
    unit : str or None
        As given to `stamp_kind`.

    Returns
    -------
    counts : (n,) int64
        0 where there is no stamp.
    present : (n,) bool
        Where there is one.

    Raises
    ------
    TraceError
        If a value is no time; every such row is named, up to a limit.
    """
    dtype = values.type
    if pa.types.is_null(dtype):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    if is_text(dtype):
        values = _parse_iso(values, column)
    elif pa.types.is_floating(dtype):
        return _float_counts(values, column, kind, unit)
    elif pa.types.is_uint64(dtype):
        too_large = pc.fill_null(pc.greater(values, pa.scalar(_INT64.max, pa.uint64())), False)
        if pc.any(too_large).as_py():
            raise TraceError(
                row_faults(_numpy(too_large), "too large for a time", column=column, values=values)
            )
    present = _numpy(values.is_valid()) if values.null_count else np.ones(len(values), np.bool_)
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    whole = values.cast(pa.int64())
    return _numpy(whole.fill_null(0) if whole.null_count else whole), present


def _float_counts(
    values: pa.ChunkedArray, column: str, kind: StampKind, unit: str | None
) -> tuple[IntArray, BoolArray]:
    numbers = _numpy(values.cast(pa.float64()).fill_null(math.nan))
    present = ~np.isnan(numbers)
    factor = 1
    if kind.resolution is not None:
        factor = (unit_nanoseconds(unit or "") or 1) // kind.resolution
    # Also says no to infinity.
    bad = present & ~(np.abs(numbers) < float(_INT64.max) / factor)
    if bad.any():
        raise TraceError(row_faults(bad, "too large for a time", column=column, values=values))
    numbers = np.where(present, numbers, 0.0)
    whole = np.floor(numbers)
    fraction = numbers - whole
    if kind.resolution is None and (fraction != 0).any():
        message = "times in plain ticks must be whole: round them, or say their unit"
        raise TraceError(row_faults(fraction != 0, message, column=column, values=values))
    return whole.astype(np.int64) * factor + np.rint(fraction * factor).astype(np.int64), present


def _parse_iso(values: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    text = values.cast(pa.string())
    check_rows_agree(text, column)
    try:
        return read_iso(text)
    except pa.ArrowInvalid:
        bad = np.zeros(len(text), np.bool_)
        bad[unreadable_rows(text, read_iso, FAULT_LIMIT)] = True
        message = (
            "no ISO 8601 time from 1678 to 2262, such as 2024-05-31 23:59:59.250 or 2024-05-31T23:59:59Z"
        )
        raise TraceError(row_faults(bad, message, column=column, values=text)) from None


def read_iso(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ISO 8601 text as timestamps without a zone, those with a zone offset as UTC.

    Raises
    ------
    pyarrow.ArrowInvalid
        If one of them is no time.
    """
    zoned = zoned_rows(text)
    if not pc.any(zoned).as_py():
        return text.cast(pa.timestamp("ns"))
    nothing = pa.scalar(None, pa.string())
    absolute = pc.if_else(zoned, text, nothing).cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns"))
    return pc.coalesce(absolute, pc.if_else(zoned, nothing, text).cast(pa.timestamp("ns")))


def ticks_of(
    counts: IntArray,
    resolution: int | None,
    grid: Grid,
    *,
    column: str,
    values: Values,
    shift: int | IntArray = 0,
) -> IntArray:
    """Return ``floor((counts * resolution + shift) / tick)``, exactly.

    Parameters
    ----------
    counts : (n,) int64
    resolution : int or None
        Nanoseconds of a count; None for plain ticks.
    grid : Grid
    column : str
        For the message of an error.
    values : (n,)
        The stamps as they stand in the trace, for the message of an error.
    shift : int or (n,) int64
        Nanoseconds (ticks if the grid's tick has no name).

    Raises
    ------
    TraceError
        If a time is beyond int64.
    """
    tick = grid.tick or 1
    step = resolution or tick
    constant = shift if isinstance(shift, int) else int(np.gcd.reduce(shift)) if len(shift) else 0
    common = math.gcd(step, tick, constant)
    moved = shift // common
    _check_fits(counts, step // common, moved, column, values)
    scaled = counts if step == common else counts * (step // common)
    if not isinstance(moved, int) or moved:
        scaled = scaled + moved
    return scaled if tick == common else np.floor_divide(scaled, tick // common)


def check_whole(
    counts: IntArray, present: BoolArray, resolution: int | None, grid: Grid, *, column: str, values: Values
) -> None:
    """Check that no stamp lies between two ticks, if nobody named the tick.

    Parameters
    ----------
    counts : (n,) int64
    present : (n,) bool
        Where there is a stamp.
    resolution : int or None
        Nanoseconds of a count.
    grid : Grid
    column : str
        For the message of an error.
    values : (n,)
        The stamps as they stand in the trace, for the message of an error.

    Raises
    ------
    TraceError
        With every such stamp, up to a limit.
    """
    if grid.named or grid.tick is None or resolution is None or resolution % grid.tick == 0:
        return
    rests = counts % (grid.tick // math.gcd(resolution, grid.tick)) * resolution
    between = present & (rests != 0)
    if between.any():
        rests = rests[between]
        finest = math.gcd(grid.tick, int(np.gcd.reduce(rests)))
        shorter = format_duration(max(unit for unit in UNIT_NANOSECONDS.values() if finest % unit == 0))
        message = (
            f"finer than {format_duration(grid.tick)}, the default tick: give a shorter one, such as "
            f'tick="{shorter}", or a longer one that all times are to be rounded down to'
        )
        raise TraceError(row_faults(between, message, column=column, values=values))


def rests_of(
    counts: IntArray, resolution: int | None, grid: Grid, shift: int | IntArray = 0
) -> IntArray | None:
    """Return what ``ticks_of``, which has found all to fit, rounds off each stamp; None if nothing.

    Parameters
    ----------
    counts, resolution, grid, shift
        As for `ticks_of`.

    Returns
    -------
    (n,) int64 or None
        Nanoseconds.
    """
    tick = grid.tick or 1
    step = resolution or tick
    constant = shift if isinstance(shift, int) else int(np.gcd.reduce(shift)) if len(shift) else 0
    common = math.gcd(step, tick, constant)
    if tick == common:
        return None
    rests: IntArray = (counts * (step // common) + shift // common) % (tick // common)
    return rests * common if rests.any() else None


def _check_fits(counts: IntArray, factor: int, shift: int | IntArray, column: str, values: Values) -> None:
    if len(counts) == 0:
        return
    least, most = (shift, shift) if isinstance(shift, int) else (int(shift.min()), int(shift.max()))
    low, high = int(counts.min()) * factor + least, int(counts.max()) * factor + most
    if low >= _INT64.min and high <= _INT64.max:
        return
    # Bounds by the extremes of the shift: at worst they name a row within one shift of the limit.
    bad = (counts > (_INT64.max - most) // factor) | (counts < -((-_INT64.min + least) // factor))
    message = "the time does not fit into 64 bits at this tick: is its unit right, or the tick too fine?"
    raise TraceError(row_faults(bad, message, column=column, values=values))


def _numpy(values: pa.ChunkedArray | pa.Array) -> npt.NDArray[Any]:
    if isinstance(values, pa.ChunkedArray):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))
