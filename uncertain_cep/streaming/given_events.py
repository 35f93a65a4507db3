"""Events and times that callers of a stream give, made tables of its schema and ticks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.timeline.domain import TICK_METADATA, Names, TimeDomain, with_noted_tick
from uncertain_cep.timeline.durations import format_duration, parse_duration
from uncertain_cep.traces.frames import as_arrow

__all__ = ["events_given", "length_of_tick", "tick_given"]


def events_given(events: Any, schema: pa.Schema) -> pa.Table:
    """Return events as a table of the schema; a TraceError says what keeps them from being one."""
    if isinstance(events, Mapping):
        strange = [str(name) for name in events if name not in schema.names]
        if strange:
            raise TraceError(TraceFault("the schema has no such column", column=strange[0]))
        columns = [_column_of(events.get(field.name), field) for field in schema]
        events = pa.table(columns, schema=schema)
    table = as_arrow(events)
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise TraceError(
            [TraceFault("the schema has it, the events lack it", column=name) for name in missing]
        )
    table = table.select(schema.names)
    if not table.schema.equals(schema):
        try:
            table = table.cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise TraceError(f"the events are not of the schema: {error}") from None
    return table


def _column_of(value: Any, field: pa.Field) -> pa.Array:
    """Return the value of one event as a column; a TraceError says that it has no place in one."""
    dtype = field.type
    try:
        # Arrow cuts off what a column of whole numbers or of coarser times has no room for, unless it casts.
        if isinstance(value, float | np.floating) and (
            pa.types.is_integer(dtype) or pa.types.is_timestamp(dtype)
        ):
            return pa.array([value]).cast(dtype)
        if isinstance(value, datetime) and pa.types.is_timestamp(dtype):
            unit = "ns" if getattr(value, "nanosecond", 0) else "us"
            return pa.array([value], pa.timestamp(unit, dtype.tz)).cast(dtype)
        return pa.array([value], dtype)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        message = f"it is no value of type {dtype}: {error}"
        raise TraceError(TraceFault(message, column=field.name, value=repr(value))) from None


def length_of_tick(table: pa.Table, names: Names, nanoseconds: int | None) -> int | None:
    """Return the nanoseconds of a tick, as known or as the events say; a TraceError says that they differ."""
    noted = with_noted_tick(table.replace_schema_metadata(None), names).schema.metadata
    if noted is None:
        return nanoseconds
    tick = noted[TICK_METADATA].decode()
    length = parse_duration(tick)
    if nanoseconds is not None and length != nanoseconds:
        message = (
            f"the events were made with ticks of {tick}, but a tick is "
            f'{format_duration(nanoseconds)} here: give the matcher tick="{tick}"'
        )
        raise TraceError(TraceFault(message, column=names.tick))
    return length


def tick_given(time: Any, domain: TimeDomain) -> int:
    """Return the tick of a time or a tick; an OptionError says that it is neither."""
    if isinstance(time, (int, np.integer)) and not isinstance(time, bool):
        return int(time)
    if domain.unit == "tick":
        raise OptionError(f"a heartbeat at {time!r}: the times of this stream are whole ticks")
    try:
        return domain.tick_of(time)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        raise OptionError(f"a heartbeat at {time!r}: that is no time of type {domain.arrow_type}") from None
