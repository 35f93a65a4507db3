"""How the times of a trace map to int64 ticks and back."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, Duration, format_duration, parse_duration

__all__ = [
    "DEFAULT_TICK",
    "EVENT_COLUMNS",
    "MODEL_COLUMNS",
    "STAMP_METADATA",
    "TICK_METADATA",
    "ZONE_METADATA",
    "Names",
    "TimeDomain",
    "advice_on_floats",
    "as_array",
    "as_int64",
    "check_one_tick",
    "check_tick_type",
    "coarsest_unit",
    "is_text",
    "length_type",
    "lengths_in_ticks",
    "mean_length_type",
    "mean_lengths_in_ticks",
    "tick_column",
    "type_text",
    "with_noted_tick",
]

TICK_METADATA = b"uncertain_cep.tick"
"""Key in an Arrow schema's metadata that holds the tick of its time columns, such as ``b"100ms"``."""

STAMP_METADATA = b"uncertain_cep.stamp"
"""Key in an Arrow schema's metadata that holds the name of the column of raw stamps, if there is one."""

ZONE_METADATA = b"uncertain_cep.zone"
"""Key in an Arrow schema's metadata that holds the time zone in which queries count hours and days."""

DEFAULT_TICK = UNIT_NANOSECONDS["us"]
"""Nanoseconds of a tick of timestamps for which none is given, whatever the unit of their column."""

Int64 = npt.NDArray[np.int64]
Unit = Literal["tick", "s", "ms", "us", "ns"]

_RENAMED: Final = 'an attribute of that name has to be renamed, or the column mapped, names={"tick": "..."}'


_OF_CLOCKS: Final = ("source", "offset_lower", "offset_upper", "sequence", "ordered", "offset_pmf")
"""Parts of the model that say which clock stamped an event, its offset, and the order of its events."""


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of an event table that hold the parts of the model.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> renamed = events.rename_columns(["kind", "id", "lower", "upper"])
    >>> uc.match(renamed, "PATTERN SEQ(A a, B b) WITHIN 4", names=uc.Names(type="kind")).num_rows
    1
    """

    type: str = "type"
    id: str = "id"
    lower: str = "lower"
    upper: str = "upper"
    pmf: str = "pmf"
    tick: str = "tick"
    source: str = "source"
    offset_lower: str = "offset_lower"
    offset_upper: str = "offset_upper"
    probability: str = "probability"
    sequence: str = "sequence"
    ordered: str = "ordered"
    offset_pmf: str = "offset_pmf"

    def __post_init__(self) -> None:
        for part in self.__dataclass_fields__:
            name: Any = getattr(self, part)
            if not isinstance(name, str):
                raise OptionError(f"names: the column of {part} is {name!r}: it must be the name of a column")

    def of_clocks(self, columns: Collection[str]) -> list[str]:
        """Return the columns that describe clocks."""
        return [name for name in (getattr(self, part) for part in _OF_CLOCKS) if name in columns]

    def name_clocks(self, columns: Collection[str]) -> bool:
        """Return whether events with these columns name clocks.

        They name their source and the bounds of its offset. Bounds that no event gives are 0. Beside such a
        clock a sequence alone says something.
        """
        bounds = {self.offset_lower, self.offset_upper}.intersection(columns)
        return self.source in columns and (len(bounds) == 2 or (not bounds and self.sequence in columns))

    def of_offset_laws(self, columns: Collection[str]) -> list[str]:
        """Return the column of the laws of offsets, if it is among some columns."""
        return [self.offset_pmf] if self.offset_pmf in columns else []

    @property
    def clocks(self) -> tuple[str, str, str]:
        """The columns that say which clock stamped an event, and the bounds of its offset."""
        return self.source, self.offset_lower, self.offset_upper

    def used(self, clocks: bool, columns: Collection[str]) -> dict[str, str]:
        """Return the column of each part of the model.

        Those of clocks only where events share them, those that may be missing if they are among some
        columns.
        """
        left_out = {part for part in ("probability", *_OF_CLOCKS) if getattr(self, part) not in columns}
        left_out |= set() if clocks else set(_OF_CLOCKS)
        return {part: getattr(self, part) for part in self.__dataclass_fields__ if part not in left_out}

    @classmethod
    def of(cls, names: Names | Mapping[str, str] | None) -> Names:
        """Return names given as such, as a mapping from the parts of the model, or not at all."""
        if names is None:
            return cls()
        if isinstance(names, Names):
            return names
        mapping: Any = names
        parts = ", ".join(cls.__dataclass_fields__)
        if not isinstance(mapping, Mapping) or not cls.__dataclass_fields__.keys() >= mapping.keys():
            raise OptionError(
                f"names={mapping!r}: it maps parts of the model to columns, and its keys are among {parts}"
            )
        return cls(**mapping)


MODEL_COLUMNS: Final = tuple(Names.__dataclass_fields__)
"""All columns of the model. Whoever reads, projects, checks or documents them takes them from here."""

EVENT_COLUMNS: Final = tuple(part for part in MODEL_COLUMNS if part not in _OF_CLOCKS)
"""Those that every event may have. No attribute of a schema can be called so."""


def advice_on_floats(dtype: pa.DataType, name: str) -> str:
    """Return the advice for a column of whole numbers stored as floats; "" for other types."""
    if not pa.types.is_floating(dtype):
        return ""
    keep = f'frame[{name!r}].astype("Int64")'
    return f". Where a value is missing, pandas makes floats of whole numbers: {keep} keeps them whole"


def type_text(dtype: pa.DataType) -> str:
    """Return a type as messages name it: lists alike, whoever made them."""
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return f"list of {type_text(dtype.value_type)}"
    return str(dtype)


def is_text(dtype: pa.DataType) -> bool:
    """Tell whether a column holds text (of any Arrow layout, dictionary-encoded or not)."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return bool(
        pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype)
    )


def tick_column(tick: str, length: int) -> pa.Array:
    """Return the column that says the tick of each of so many events."""
    return pa.repeat(pa.scalar(tick, pa.string()), length)


def check_one_tick(texts: Sequence[str | None], name: str) -> str | None:
    """Return the tick that the different values of a tick column stand for; None if there is none.

    Each value is given once, None where an event has none. A TraceError says that they are no lengths of
    time, or several, or that there are events with and without.
    """
    tick_texts: dict[int, str] = {}
    for text in texts:
        if text is None:
            continue
        try:
            length = parse_duration(text, what="tick")
        except OptionError:
            length = 0
        if not length:
            message = f"it says how long a tick is, such as 100ms, and this is no such length: {_RENAMED}"
            raise TraceError(TraceFault(message, column=name, value=text[:80]))
        tick_texts.setdefault(length, text)
    if len(tick_texts) > 1:
        first, second = list(tick_texts.values())[:2]
        message = (
            f"the events were made with several ticks, such as {first} and {second}: make the intervals of "
            "all with one tick"
        )
        raise TraceError(TraceFault(message, column=name))
    if not tick_texts:
        return None
    if None in texts:
        tick = next(iter(tick_texts.values()))
        message = f"some events have no tick, and others {tick}: fill it in, or make their intervals with it"
        raise TraceError(TraceFault(message, column=name))
    return format_duration(next(iter(tick_texts)))


def with_noted_tick(table: pa.Table, names: Names = Names()) -> pa.Table:
    """Return a table of events whose schema's metadata says the tick that its tick column has, if any.

    A TraceError says that the column holds something else than one tick, or another one than the metadata.
    O(n), and next to nothing beside reading the events.
    """
    check_tick_type(table.schema, names)
    if names.tick not in table.column_names:
        return table
    column = table.column(names.tick)
    if pa.types.is_null(column.type) or not len(column):
        return table
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    # To compare with one text takes less than to look each up.
    first = column[0]
    is_one = pc.all(pc.equal(column, first), skip_nulls=False).as_py()
    tick = check_one_tick([first.as_py()] if is_one else pc.unique(column).to_pylist(), names.tick)
    if tick is None:
        return table
    metadata = dict(table.schema.metadata or {})
    noted = metadata.get(TICK_METADATA, tick.encode()).decode()
    if parse_duration(noted, what="tick") != parse_duration(tick):
        message = f"it says {tick}, but the metadata of the table say {noted}: correct one of them"
        raise TraceError(TraceFault(message, column=names.tick))
    return table.replace_schema_metadata({**metadata, TICK_METADATA: tick.encode()})


def check_tick_type(schema: pa.Schema, names: Names) -> None:
    """Refuse, by a TraceError, a column which is called as ticks are and is not text."""
    if names.tick not in schema.names:
        return
    dtype = schema.field(names.tick).type
    if not is_text(dtype) and not pa.types.is_null(dtype):
        message = f"its type is {dtype}, but it says how long a tick is, as text such as 100ms: {_RENAMED}"
        raise TraceError(TraceFault(message, column=names.tick))


@dataclass(frozen=True, slots=True)
class TimeDomain:
    """The time columns' type and the tick."""

    unit: Unit
    """Resolution of the time columns; ``tick`` for plain int64 columns."""
    tick: int
    """Length of a tick in that unit; 1 for plain int64 columns."""
    tick_nanoseconds: int | None
    """Length of a tick; None for int64 columns whose tick was not named."""
    timezone: str | None = None
    """Time zone of the timestamp columns."""
    per_unit: int = 1
    """Ticks in one unit, where ticks are shorter than the resolution of the columns; else 1."""
    named: bool = True
    """Whether someone chose how long a tick is: not where it is as by default, and the caller says none."""

    @classmethod
    def of(cls, schema: pa.Schema, names: Names = Names(), tick: Duration | None = None) -> TimeDomain:
        """Return the domain of a table's time columns.

        The tick is by default the one in the schema's metadata (see :func:`with_noted_tick`), else 1us for
        timestamps, whatever their unit. A TraceError says that a time column is missing, or that the two
        differ or are neither int64 nor timestamps; an OptionError, that the tick contradicts that of the
        metadata, or that one of it and the columns' resolution is no whole multiple of the other.
        """
        absent = [name for name in (names.lower, names.upper) if name not in schema.names]
        if absent:
            advice = (
                "Name the interval columns lower and upper, map them, or make them with to_intervals or a "
                "schema file"
            )
            raise TraceError(absent_columns(absent, schema.names, advice=advice))
        lower, upper = schema.field(names.lower).type, schema.field(names.upper).type
        if lower != upper:
            raise TraceError(
                TraceFault(
                    f"its type is {upper}, but column {names.lower!r} is {lower}: give both one type"
                    + (advice_on_floats(lower, names.lower) or advice_on_floats(upper, names.upper)),
                    column=names.upper,
                )
            )
        check_tick_type(schema, names)
        nanoseconds = _named_tick(schema, tick)
        if pa.types.is_int64(lower):
            return cls("tick", 1, nanoseconds)
        if not pa.types.is_timestamp(lower):
            advice = (
                f'have to_intervals make them, with uncertainty=columns("{names.lower}", "{names.upper}")'
            )
            message = f"its type is {lower}: times must be int64 ticks or timestamps: {advice}"
            message += advice_on_floats(lower, names.lower)
            raise TraceError(TraceFault(message, column=names.lower))
        resolution = UNIT_NANOSECONDS[lower.unit]
        length = DEFAULT_TICK if nanoseconds is None else nanoseconds
        named = tick is not None or length != DEFAULT_TICK
        if length % resolution == 0:
            return cls(lower.unit, length // resolution, length, lower.tz, named=named)
        if resolution % length == 0:
            return cls(lower.unit, 1, length, lower.tz, resolution // length, named)
        raise OptionError(
            f"tick {format_duration(length)} is neither a multiple nor a part of the time columns' "
            f"resolution, 1{lower.unit}"
        )

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of ``range_lower`` and ``range_upper``: as the time columns, but finer if ticks are."""
        if self.unit == "tick":
            return pa.int64()
        if self.per_unit == 1 or self.tick_nanoseconds is None:
            return pa.timestamp(self.unit, self.timezone)
        return pa.timestamp(coarsest_unit(self.tick_nanoseconds), self.timezone)

    def ticks(self, times: pa.ChunkedArray | pa.Array) -> Int64:
        """Return times without nulls in ticks, rounded down, (n,) int64.

        Timestamps may have any unit: results have finer ones than the events where ticks are finer, and
        frames may keep them in another one.
        """
        units = as_int64(times)
        if self.unit == "tick" or times.type.unit == self.unit:
            return self.ticks_of_units(units)
        tick, resolution = self.tick_nanoseconds or 1, UNIT_NANOSECONDS[times.type.unit]
        shared = math.gcd(tick, resolution)
        return units * (resolution // shared) // (tick // shared)

    def ticks_of_units(self, units: Int64) -> Int64:
        """Return times in the columns' unit in ticks, rounded down, (n,) int64."""
        if self.per_unit != 1:
            return units * self.per_unit
        return units if self.tick == 1 else units // self.tick

    def lengths(self, lengths: pa.ChunkedArray | pa.Array) -> Int64:
        """Return lengths, durations or int64 ticks, in ticks, rounded down, (n,) int64; 0 where null."""
        if lengths.null_count == len(lengths):
            return np.zeros(len(lengths), np.int64)
        if lengths.null_count:
            lengths = lengths.fill_null(0)
        if not pa.types.is_duration(lengths.type):
            return np.asarray(lengths.cast(pa.int64()).to_numpy())
        tick, unit = self.tick_nanoseconds or 1, UNIT_NANOSECONDS[lengths.type.unit]
        if tick % unit:
            lengths, unit = lengths.cast(pa.duration("ns")), 1
        units = np.asarray(lengths.cast(pa.int64()).to_numpy())
        return units if tick == unit else units // (tick // unit)

    def offsets(self, table: pa.Table, names: Names) -> tuple[Int64, Int64]:
        """Return the bounds of the offsets of events' clocks, ticks, each (n,) int64; 0 if not given."""
        low, high = (
            self.lengths(table.column(name))
            if name in table.column_names
            else np.zeros(table.num_rows, np.int64)
            for name in names.clocks[1:]
        )
        return low, high

    @property
    def times_are_ticks(self) -> bool:
        """Whether times are written as ticks are, int64."""
        return self.unit == "tick" and self.per_tick == 1

    def times(self, ticks: Int64) -> pa.Array:
        """Return ticks as an array of ``arrow_type``."""
        values = as_array(ticks if self.per_tick == 1 else ticks * self.per_tick)
        return values if self.unit == "tick" else values.cast(self.arrow_type)

    def moments(self, ticks: Int64, behind: npt.NDArray[np.float64]) -> pa.Array:
        """Return points in time between ticks, ``behind`` ones in ticks: float64 ticks, or ``arrow_type``."""
        if self.unit == "tick":
            return pa.array(ticks + behind)
        whole = np.floor(behind)
        units = np.rint((behind - whole) * self.per_tick).astype(np.int64)
        return pa.array((ticks + whole.astype(np.int64)) * self.per_tick + units).cast(self.arrow_type)

    def tick_of(self, time: object) -> int:
        """Return the tick of a point in time, rounded down.

        What is no time of ``arrow_type`` is an error of pyarrow, a TypeError or a ValueError.
        """
        return int(pa.array([time]).cast(self.arrow_type)[0].value) // self.per_tick

    @property
    def per_tick(self) -> int:
        """Length of a tick in the unit of ``arrow_type``."""
        if self.per_unit == 1 or self.tick_nanoseconds is None:
            return self.tick
        return self.tick_nanoseconds // UNIT_NANOSECONDS[self.arrow_type.unit]

    def describe(self) -> str:
        """Return the tick in words, such as ``100ms`` or ``tick``."""
        return "tick" if self.tick_nanoseconds is None else format_duration(self.tick_nanoseconds)


def as_array(values: Int64 | npt.NDArray[np.float64]) -> pa.Array:
    """Return numbers, (n,) int64 or float64, as an array that shares their memory.

    ``pyarrow.array`` takes twice the time, which matters for batches that take a millisecond.
    """
    whole = np.ascontiguousarray(values)
    dtype = pa.float64() if whole.dtype == np.float64 else pa.int64()
    return pa.Array.from_buffers(dtype, len(whole), [None, pa.py_buffer(whole)], 0)


def as_int64(column: pa.ChunkedArray | pa.Array) -> Int64:
    """Return a column without nulls as int64, (n,)."""
    # To the same type, a cast still takes as long as a hundred rows do.
    return np.asarray((column if pa.types.is_int64(column.type) else column.cast(pa.int64())).to_numpy())


def _named_tick(schema: pa.Schema, tick: Duration | None) -> int | None:
    """Return the nanoseconds of the tick that the caller or the schema's metadata name."""
    nanoseconds = None if tick is None else parse_duration(tick, what="tick")
    if nanoseconds == 0:
        raise OptionError("tick must be longer than 0")
    noted = (schema.metadata or {}).get(TICK_METADATA)
    if noted is None:
        return nanoseconds
    length = parse_duration(noted.decode(), what="tick")
    if nanoseconds is not None and nanoseconds != length:
        raise OptionError(
            f"tick={tick!r}: the intervals of these events were made with ticks of {noted.decode()}, as "
            "their tick column or metadata say: leave tick out, or make them with that tick"
        )
    return length


def length_type(nanoseconds: int | None) -> pa.DataType:
    """Return the type of lengths in ticks of so many nanoseconds, or of no known length."""
    return pa.int64() if nanoseconds is None else pa.duration(coarsest_unit(nanoseconds))


def lengths_in_ticks(ticks: Int64, nanoseconds: int | None) -> pa.Array:
    """Return lengths in ticks as durations, or as plain ticks of no known length."""
    if nanoseconds is None:
        return pa.array(ticks)
    dtype = length_type(nanoseconds)
    return pa.array(ticks * (nanoseconds // UNIT_NANOSECONDS[dtype.unit])).cast(dtype)


def mean_length_type(nanoseconds: int | None) -> pa.DataType:
    """Return the type of means of such lengths: microseconds, or nanoseconds where ticks are shorter."""
    return pa.float64() if nanoseconds is None else pa.duration("ns" if nanoseconds % 1000 else "us")


def mean_lengths_in_ticks(ticks: npt.NDArray[np.float64], nanoseconds: int | None) -> pa.Array:
    """Return means of lengths in ticks as durations, or as plain ticks of no known length."""
    if nanoseconds is None:
        return pa.array(ticks)
    dtype = mean_length_type(nanoseconds)
    units = np.rint(ticks * (nanoseconds / UNIT_NANOSECONDS[dtype.unit]))
    return pa.array(units.astype(np.int64)).cast(dtype)


def coarsest_unit(nanoseconds: int) -> Literal["s", "ms", "us", "ns"]:
    """Return the coarsest unit of timestamps in which a length is whole."""
    units: tuple[Literal["s", "ms", "us", "ns"], ...] = ("s", "ms", "us", "ns")
    return next(unit for unit in units if nanoseconds % UNIT_NANOSECONDS[unit] == 0)
