"""How the times of a trace map to int64 ticks and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from uncertain_cep.durations import UNIT_NANOSECONDS, format_duration, parse_duration
from uncertain_cep.errors import OptionError, TraceError, TraceFault

__all__ = ["TICK_METADATA", "Names", "TimeDomain"]

TICK_METADATA = b"uncertain_cep.tick"
"""Key in an Arrow schema's metadata that holds the tick of its time columns, such as ``b"100ms"``."""


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of an event table that hold the parts of the model."""

    type: str = "type"
    id: str = "id"
    lower: str = "lower"
    upper: str = "upper"
    pmf: str = "pmf"

    @classmethod
    def of(cls, names: Names | Mapping[str, str] | None) -> Names:
        """Return names given as such, as a mapping from the parts of the model, or not at all.

        Raises
        ------
        OptionError
            If there is no such part.
        """
        if isinstance(names, Names):
            return names
        try:
            return cls(**(names or {}))
        except TypeError:
            known = ", ".join(cls.__dataclass_fields__)
            raise OptionError(f"names={dict(names or {})!r}: its keys are among {known}") from None


@dataclass(frozen=True, slots=True)
class TimeDomain:
    """The time columns' type and the tick.

    Attributes
    ----------
    unit : {"tick", "s", "ms", "us", "ns"}
        Resolution of the time columns; ``tick`` for plain int64 columns.
    tick : int
        Length of a tick in that unit; 1 for plain int64 columns.
    tick_nanoseconds : int or None
        Length of a tick; None for int64 columns whose tick was not named.
    timezone : str or None
        Time zone of the timestamp columns.
    """

    unit: Literal["tick", "s", "ms", "us", "ns"]
    tick: int
    tick_nanoseconds: int | None
    timezone: str | None = None

    @classmethod
    def of(cls, schema: pa.Schema, names: Names = Names(), tick: str | None = None) -> TimeDomain:
        """Return the domain of a table's time columns.

        Parameters
        ----------
        schema : pyarrow.Schema
        names : Names
        tick : str or None
            Length of a tick, such as ``100ms``. Default: the one in the schema's metadata, else the
            columns' own resolution.

        Raises
        ------
        TraceError
            If a time column is missing, or the two differ or are neither int64 nor timestamps.
        OptionError
            If the tick is not a whole multiple of the columns' resolution.
        """
        faults = [
            TraceFault(
                f"there is no such column; the trace has {', '.join(schema.names)}. Name the interval "
                "columns lower and upper, map them, or make them with to_intervals or a schema file",
                column=name,
            )
            for name in (names.lower, names.upper)
            if name not in schema.names
        ]
        if faults:
            raise TraceError(faults)
        lower, upper = schema.field(names.lower).type, schema.field(names.upper).type
        if lower != upper:
            raise TraceError(
                TraceFault(
                    f"its type is {upper}, but column {names.lower!r} is {lower}: give both one type",
                    column=names.upper,
                )
            )
        if tick is None and schema.metadata and TICK_METADATA in schema.metadata:
            tick = schema.metadata[TICK_METADATA].decode()
        nanoseconds = None if tick is None else parse_duration(tick, what="tick")
        if nanoseconds == 0:
            raise OptionError("tick must be longer than 0")
        if pa.types.is_int64(lower):
            return cls("tick", 1, nanoseconds)
        if not pa.types.is_timestamp(lower):
            raise TraceError(
                TraceFault(
                    f"its type is {lower}: times must be int64 ticks or timestamps", column=names.lower
                )
            )
        resolution = UNIT_NANOSECONDS[lower.unit]
        if nanoseconds is None:
            nanoseconds = resolution
        if nanoseconds % resolution:
            raise OptionError(
                f"tick {tick} is not a whole multiple of the time columns' resolution, 1{lower.unit}"
            )
        return cls(lower.unit, nanoseconds // resolution, nanoseconds, lower.tz)

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of the time columns, and so of ``range_lower`` and ``range_upper``."""
        return pa.int64() if self.unit == "tick" else pa.timestamp(self.unit, self.timezone)

    def describe(self) -> str:
        """Return the tick in words, such as ``100ms`` or ``tick``."""
        return "tick" if self.tick_nanoseconds is None else format_duration(self.tick_nanoseconds)
