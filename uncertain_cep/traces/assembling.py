"""Puts the events of several files together: one table, one type for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from uncertain_cep.durations import UNIT_NANOSECONDS
from uncertain_cep.errors import TraceFault
from uncertain_cep.timedomain import TICK_METADATA, Names, is_text
from uncertain_cep.traces.rows import Events

__all__ = ["Part", "assembled", "common_type"]

_NAMES = Names()


@dataclass(frozen=True, slots=True)
class Part:
    """The events that one table of a schema made of one file."""

    file: str
    events: Events


def assembled(parts: Sequence[Part]) -> tuple[pa.Table | None, list[TraceFault]]:
    """Return the events of all parts in one table, in order, or what keeps them from being one.

    Columns that a part lacks are null there. Whole and decimal numbers become decimal, timestamps take the
    finest unit; ids that are numbers here and text there become text. Other types that do not agree are a
    fault.
    """
    faults: list[TraceFault] = []
    # What an empty part takes its columns for is a guess: it only counts where nothing else is known.
    full = [part for part in parts if part.events.table.num_rows] or list(parts)
    names = dict.fromkeys(name for part in parts for name in part.events.table.column_names)
    if not any(_NAMES.tick in part.events.table.column_names for part in full):
        names.pop(_NAMES.tick, None)
    types: dict[str, pa.DataType] = {}
    for name in _ordered(names):
        dtype = _column_type(name, full, faults)
        if dtype is not None and pa.types.is_null(dtype):
            dtype = _column_type(name, parts, []) or dtype
        types[name] = pa.null() if dtype is None else dtype
    tick = None if faults else _tick(full, faults)
    if faults:
        return None, faults
    # Text readers may take one bound for whole seconds and the other not.
    time = common_type(types[_NAMES.lower], types[_NAMES.upper])
    if time is not None:
        types[_NAMES.lower] = types[_NAMES.upper] = time
    schema = pa.schema(types.items())
    tables = [table for part in full if (table := _as(part, schema, faults)) is not None]
    if faults:
        return None, faults
    metadata = None if tick is None else {TICK_METADATA: tick}
    return pa.concat_tables(tables).replace_schema_metadata(metadata), []


def _ordered(names: dict[str, None]) -> list[str]:
    first = [
        name
        for name in (_NAMES.type, _NAMES.id, _NAMES.lower, _NAMES.upper, _NAMES.pmf, _NAMES.tick)
        if name in names
    ]
    return first + [name for name in names if name not in first]


def _tick(parts: Sequence[Part], faults: list[TraceFault]) -> bytes | None:
    ticks: dict[bytes | None, str] = {}
    for part in parts:
        ticks.setdefault((part.events.table.schema.metadata or {}).get(TICK_METADATA), part.file)
    (first, first_file), *others = ticks.items()
    for tick, file in others:
        message = (
            f"mixed ticks: {_tick_text(tick)} here, {_tick_text(first)} in {first_file}: make the intervals "
            "of all files with one tick"
        )
        faults.append(TraceFault(message, file=file))
    return first


def _tick_text(tick: bytes | None) -> str:
    return "none is named" if tick is None else f"a tick is {tick.decode()}"


def _column_type(name: str, parts: Sequence[Part], faults: list[TraceFault]) -> pa.DataType | None:
    found: pa.DataType = pa.null()
    where = ""
    advice = "give it one type, or set it in [types]"
    if name in (_NAMES.lower, _NAMES.upper):
        advice = 'times and plain numbers do not mix, say the unit of the numbers (unit = "ms")'
    for part in parts:
        schema = part.events.table.schema
        if name not in schema.names:
            continue
        dtype = schema.field(name).type
        common = common_type(found, dtype)
        if common is None and name == _NAMES.id:
            common = pa.string()
        if common is None:
            message = f"its type is {dtype} here, but {found} in {where}: {advice}"
            faults.append(TraceFault(message, file=part.file, column=name))
            return None
        if pa.types.is_null(found):
            where = part.file
        found = common
    return found


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type that takes the values of both, or None if there is none."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if pa.types.is_integer(first) and pa.types.is_integer(second):
        return pa.int64()
    if _is_number(first) and _is_number(second):
        return pa.float64()
    if is_text(first) and is_text(second):
        return pa.string()
    if _is_day_or_time(first) and _is_day_or_time(second):
        units = [dtype.unit if pa.types.is_timestamp(dtype) else "s" for dtype in (first, second)]
        zones = {dtype.tz for dtype in (first, second) if pa.types.is_timestamp(dtype)} - {None}
        zone = None if not zones else zones.pop() if len(zones) == 1 else "UTC"
        return pa.timestamp(min(units, key=lambda unit: UNIT_NANOSECONDS[unit]), zone)
    if pa.types.is_nested(first) and pa.types.is_nested(second):
        values = [getattr(dtype, "value_type", None) for dtype in (first, second)]
        if all(value is not None and _is_number(value) for value in values):
            return pa.list_(pa.float64())
    return None


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype))


def _is_day_or_time(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) or pa.types.is_date(dtype))


def _as(part: Part, schema: pa.Schema, faults: list[TraceFault]) -> pa.Table | None:
    table = part.events.table
    columns = []
    for wanted in schema:
        if wanted.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, wanted.type))
            continue
        column = table.column(wanted.name)
        if column.type != wanted.type:
            try:
                column = column.cast(wanted.type)
            except pa.ArrowInvalid as error:
                message = f"it cannot be read as {wanted.type}, as other files have it: {error}"
                faults.append(TraceFault(message, file=part.file, column=wanted.name))
                continue
        columns.append(column)
    return None if faults else pa.table(columns, schema=schema)
