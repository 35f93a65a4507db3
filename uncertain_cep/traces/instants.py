"""Stamps of a trace (timestamps, dates, epoch numbers, text) as whole ticks.

What the numbers of a column mean follows from the column's type alone, never from its values, so a
table read batch by batch, or an empty one, gets the same answer as the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.config.limits import FAULT_LIMIT
from uncertain_cep.errors import OptionError, TraceError, TraceFault, warn
from uncertain_cep.timeline.domain import DEFAULT_TICK, coarsest_unit, is_text
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, format_duration, number_unit, parse_duration
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, Values, row_faults, unreadable_rows
from uncertain_cep.traces.frames import is_whole_decimal

__all__ = [
    "Grid",
    "StampKind",
    "check_rows_agree",
    "check_whole",
    "counts_of",
    "grid_of",
    "is_text",
    "lengths_of",
    "read_iso",
    "rests_of",
    "stamp_kind",
    "ticks_of",
    "warn_of_naive",
    "zoned_rows",
]

_ZONED: Final = r":.*(Z|z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?)$"
_ZONE_APART: Final = r"(:[^ ]*) ?(Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)$"
"""What stands behind the hour in a text with a zone that Arrow does not read: UTC, or a space before it."""
_COMMA: Final = r"(:[0-9]{2}),([0-9]{1,9})"

_FEW: Final = 3
"""Names that a warning lists."""


def zoned_rows(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a mask of the ISO 8601 texts that have a time zone, null where there is no text."""
    return pc.match_substring_regex(text, _ZONED)


def check_rows_agree(values: pa.ChunkedArray, column: str) -> None:
    """Refuse, by a TraceError, a column of text in which some stamps have a time zone and others none."""
    text = values.cast(pa.string())
    zoned = zoned_rows(text)
    seen = pc.min_max(zoned)
    if seen["min"].as_py() == seen["max"].as_py():
        return
    message = (
        "it has no time zone, and other stamps of this column have one: give each a zone (Z, +02:00), or none"
    )
    naive = np.asarray(pc.fill_null(pc.invert(zoned), False).to_numpy())
    raise TraceError(row_faults(naive, message, column=column, values=text))


def warn_of_naive(types: Iterable[tuple[str, pa.DataType]], *, of: str = "") -> None:
    """Warn if columns or files are put together of which only some have a time zone.

    ``types`` are names, of columns or files, and the types of their stamps; ``of`` begins their description.
    """
    stamps = [(name, dtype.tz) for name, dtype in types if pa.types.is_timestamp(dtype)]
    naive = list(dict.fromkeys(name for name, zone in stamps if zone is None))
    zoned = [(name, zone) for name, zone in stamps if zone is not None]
    if naive and zoned:
        shown = ", ".join(naive[:_FEW]) + (f" and {len(naive) - _FEW:,} more" if len(naive) > _FEW else "")
        name, zone = zoned[0]
        warn(
            f"no time zone in {of}{shown}, and {zone} in {name}: what has none is read as UTC; "
            "give all a zone, or none"
        )


_INT64 = np.iinfo(np.int64)
_UNCHOSEN = "is a number of ticks, but no tick is given: give a length of time, or tick="
_DAY = UNIT_NANOSECONDS["d"]
_ACCEPTED = "timestamps, dates, whole or decimal numbers (with a unit) and ISO 8601 text"


@dataclass(frozen=True, slots=True)
class StampKind:
    """The meaning of the numbers of a stamp column; ``resolution`` in nanoseconds, None for plain ticks."""

    resolution: int | None
    is_day: bool = False
    timezone: str | None = None
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """The ticks that all times of a table are floored to."""

    tick: int | None
    """Length of a tick in nanoseconds; None for plain ticks of no given length."""
    type: pa.DataType
    """Type of the time columns: int64, or a timestamp of the coarsest unit in which the tick is whole."""
    per_tick: int
    """Length of a tick in that type's unit; 1 for int64."""
    named: bool
    """Whether the caller named the tick. If not, no stamp may lie between two ticks."""
    countable: bool
    """Whether numbers may count ticks: not where a tick is the default microsecond."""

    def length(self, duration: str | int, *, what: str, shortest: int = 0) -> int:
        """Return a length in nanoseconds (in ticks if the tick has no name); a number counts ticks.

        An OptionError says that a text needs a tick, a number a named one, or that the length is not a whole
        number of ticks, or too short.
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
        if nanoseconds % (self.tick or 1) or nanoseconds < shortest:
            multiple = "one or more whole ticks" if shortest else "whole ticks"
            raise OptionError(
                f"{what} {duration} must be {multiple} of {format_duration(self.tick or 1)}"
                f"{'' if self.named else ', the default'}: give a tick= that divides it"
            )
        return nanoseconds

    def check_countable(self, what: str) -> None:
        """Refuse, by an OptionError, a number that counts ticks where no tick is given."""
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
    """Return the meaning of the stamps of a column.

    ``unit`` is that of numbers since the epoch, None for plain ticks. A TraceError says that the type holds
    no times; an OptionError, that there is no such unit.
    """
    epoch = number_unit(unit)
    if pa.types.is_timestamp(dtype):
        return StampKind(UNIT_NANOSECONDS[dtype.unit], timezone=dtype.tz)
    if pa.types.is_date(dtype):
        return StampKind(_DAY if pa.types.is_date32(dtype) else UNIT_NANOSECONDS["ms"], is_day=True)
    if (
        pa.types.is_integer(dtype)
        or is_whole_decimal(dtype)
        or (pa.types.is_null(dtype) and epoch is not None)
    ):
        return StampKind(epoch)
    if pa.types.is_floating(dtype):
        return StampKind(None if epoch is None else 1)
    if is_text(dtype) or pa.types.is_null(dtype):
        return StampKind(1, is_text=True)
    raise TraceError(
        TraceFault(f"its type is {dtype}, which is no time: {_ACCEPTED} can be read", column=column)
    )


def grid_of(kinds: Sequence[tuple[str, StampKind]], tick: str | None, whole_days: bool = True) -> Grid:
    """Return the grid for the times of one or more columns, which are not plain ticks here and times there.

    The default tick is 1us, whatever the columns' resolution, or one day if all hold dates and
    ``whole_days``.
    """
    plain = [name for name, kind in kinds if kind.resolution is None]
    named = None if tick is None else parse_duration(tick, what="tick")
    if named == 0:
        raise OptionError("tick must be longer than 0")
    if len(plain) == len(kinds):
        return Grid(named, pa.int64(), 1, named=named is not None, countable=True)
    if plain:
        timed, kind = next((name, kind) for name, kind in kinds if kind.resolution is not None)
        if kind.is_text:
            message = (
                f"it holds text, but column {plain[0]!r} holds plain numbers: correct what is no number, or "
                'say the unit of the numbers (unit = "ms")'
            )
            raise TraceError(TraceFault(message, column=timed))
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
    """Return a stamp column as whole numbers of the kind's resolution, and where there is a stamp.

    ``kind`` and ``unit`` are those of `stamp_kind`. The counts, (n,) int64, are 0 where there is no stamp. A
    TraceError names every row whose value is no time, up to a limit.
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
                row_faults(np.asarray(too_large), "too large for a time", column=column, values=values)
            )
    present = np.asarray(values.is_valid()) if values.null_count else np.ones(len(values), np.bool_)
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    whole = values.cast(pa.int64())
    return np.asarray(whole.fill_null(0) if whole.null_count else whole), present


def _float_counts(
    values: pa.ChunkedArray, column: str, kind: StampKind, unit: str | None
) -> tuple[IntArray, BoolArray]:
    """Return floats as whole numbers, see `counts_of`, as exactly as the floats hold them.

    The fraction is rounded to the finest decimal place that the float still tells from the next one: today,
    in seconds since 1970, that is a microsecond, and a nanosecond for times of a day since the start.
    """
    numbers = np.asarray(values.cast(pa.float64()).fill_null(math.nan))
    present = ~np.isnan(numbers)
    factor = 1
    if kind.resolution is not None:
        factor = (number_unit(unit) or 1) // kind.resolution
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
    spacing = np.spacing(np.abs(numbers.astype(values.type.to_pandas_dtype()))).astype(np.float64) * factor
    place = 10 ** np.ceil(np.log10(np.clip(spacing, 1.0, 1e18))).astype(np.int64)
    nanoseconds = np.rint(fraction * (factor / place)).astype(np.int64) * place
    return whole.astype(np.int64) * factor + nanoseconds, present


def _parse_iso(values: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    text = values.cast(pa.string())
    check_rows_agree(text, column)
    try:
        return read_iso(text)
    except pa.ArrowInvalid:
        from uncertain_cep.traces.time_formats import ISO

        # Arrow knows no 24:00, and no leap seconds.
        if ISO.fits(text.drop_null()).all():
            times = ISO.read(text, column)
            return pa.chunked_array([pa.array(times.counts, mask=~times.present).cast(pa.timestamp("ns"))])
        bad = np.zeros(len(text), np.bool_)
        bad[unreadable_rows(text, read_iso, FAULT_LIMIT)] = True
        from uncertain_cep.traces.usual_formats import cure_of

        message = (
            "no ISO 8601 time from 1678 to 2262, such as 2024-05-31 23:59:59.250 or 2024-05-31T23:59:59Z"
            + cure_of(text[int(np.argmax(bad))].as_py(), ("iso",))
        )
        raise TraceError(row_faults(bad, message, column=column, values=text)) from None


def read_iso(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ISO 8601 text as timestamps without a zone, those with an offset as UTC; else ArrowInvalid.

    Also read are a zone written as UTC or GMT, a space before the zone, and a comma before the fraction.
    """
    try:
        return _read_by_arrow(text)
    except pa.ArrowInvalid:
        usual = pc.replace_substring_regex(text, _COMMA, r"\1.\2")
        usual = pc.replace_substring_regex(usual, _ZONE_APART, r"\1\2")
        return _read_by_arrow(pc.replace_substring_regex(usual, r"(?:UTC|GMT)$", "Z"))


def _read_by_arrow(text: pa.ChunkedArray) -> pa.ChunkedArray:
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
    """Return ``floor((counts * resolution + shift) / tick)``, exactly, (n,) int64.

    ``resolution`` is the nanoseconds of a count, ``shift`` nanoseconds too; both are ticks where those have
    no length. ``column`` and ``values`` are for the TraceError if a time is beyond int64.
    """
    step, tick, common = _scales(resolution, grid, shift)
    moved = shift // common
    _check_fits(counts, step // common, moved, column, values)
    scaled = counts if step == common else counts * (step // common)
    if not isinstance(moved, int) or moved:
        scaled = scaled + moved
    return scaled if tick == common else np.floor_divide(scaled, tick // common)


def _scales(resolution: int | None, grid: Grid, shift: int | IntArray) -> tuple[int, int, int]:
    """Return the nanoseconds of a count and of a tick, and the most that divides both and the shift."""
    tick = grid.tick or 1
    step = resolution or tick
    constant = shift if isinstance(shift, int) else int(np.gcd.reduce(shift)) if len(shift) else 0
    return step, tick, math.gcd(step, tick, constant)


def check_whole(
    counts: IntArray, present: BoolArray, resolution: int | None, grid: Grid, *, column: str, values: Values
) -> None:
    """Refuse, by a TraceError, stamps between two ticks, if no tick is given. See `ticks_of`."""
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
    """Return the nanoseconds, (n,) int64, that `ticks_of` rounds off each stamp; None if nothing."""
    step, tick, common = _scales(resolution, grid, shift)
    if tick == common:
        return None
    rests: IntArray = (counts * (step // common) + shift // common) % (tick // common)
    return rests * common if rests.any() else None


def _check_fits(counts: IntArray, factor: int, shift: int | IntArray, column: str, values: Values) -> None:
    if len(counts) == 0:
        return
    smallest, largest = (shift, shift) if isinstance(shift, int) else (int(shift.min()), int(shift.max()))
    low, high = int(counts.min()) * factor + smallest, int(counts.max()) * factor + largest
    if low >= _INT64.min and high <= _INT64.max:
        return
    # Bounds by the extremes of the shift: at worst they name a row within one shift of the limit.
    bad = (counts > (_INT64.max - largest) // factor) | (counts < -((-_INT64.min + smallest) // factor))
    message = "the time does not fit into 64 bits at this tick: is its unit right, or the tick too fine?"
    raise TraceError(row_faults(bad, message, column=column, values=values))


def lengths_of(values: pa.ChunkedArray, column: str, unit: str | None) -> tuple[IntArray, BoolArray]:
    """Return a column of numbers or durations as nanoseconds, (n,) int64, and where there is one.

    ``unit`` is that of numbers; None for ticks, which stay ticks. A TraceError says that the column holds
    something else, or a length beyond 292 years.
    """
    length = number_unit(unit)
    if pa.types.is_duration(values.type):
        length = UNIT_NANOSECONDS[values.type.unit]
        values = values.cast(pa.int64())
    numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if not numeric and not pa.types.is_null(values.type):
        raise TraceError(
            TraceFault(f"its type is {values.type}, but a length of time is a number", column=column)
        )
    step = 1 if length is not None and pa.types.is_floating(values.type) else length
    counts, present = counts_of(values, column, StampKind(step), unit)
    factor = step or 1
    if len(counts) and max(abs(int(counts.min())), abs(int(counts.max()))) * factor >= 2**63:
        raise TraceError(
            TraceFault("a length of time is beyond 292 years: is its unit right?", column=column)
        )
    return counts * factor, present
