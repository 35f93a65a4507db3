"""Raw rows to events, as one table of a schema says: rows in, events out, each row by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import QueryError, QuerySyntaxError, TraceError, TraceFault
from uncertain_cep.timedomain import TICK_METADATA, Names, is_text, tick_column
from uncertain_cep.traces.events_schema import EventsSchema
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, renumbered
from uncertain_cep.traces.intervals import interval_columns
from uncertain_cep.traces.rounding import Rounding
from uncertain_cep.traces.uncertainty import Uncertainty

__all__ = ["Events", "events_of_rows", "id_column", "needed_columns", "type_column"]

_NAMES: Final = Names()
_CANONICAL: Final = (_NAMES.type, _NAMES.id, _NAMES.lower, _NAMES.upper, _NAMES.pmf, _NAMES.tick)
_PLACEHOLDER: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Events:
    """The events of some raw rows.

    Attributes
    ----------
    table : pyarrow.Table
        Columns type, id, lower, upper, pmf if there are any, tick if it has a length, attributes; the tick
        also in the metadata.
    rows : (n,) int64 or None
        The raw row, counted from 0, of each event; None if there is one event for each row, in order.
    dropped : int
        Rows left out for want of a time or offset.
    rounding : Rounding or None
        What the ticks did to them; None if they were in ticks already.
    """

    table: pa.Table
    rows: IntArray | None
    dropped: int
    rounding: Rounding | None = None


def needed_columns(events: EventsSchema, rule: Uncertainty) -> dict[str, str]:
    """Return the raw columns that must be there, each with the key of the schema that asks for it.

    Of use besides, where the schema names no id, is a column ``id``.
    """
    needed: dict[str, str] = {}
    if events.type_column is not None:
        needed[events.type_column] = "type_column"
    for name in _id_columns(events.id):
        needed.setdefault(name, "id")
    if events.time is not None:
        needed.setdefault(events.time, "time")
    for name in rule.reads(events.time):
        needed.setdefault(name, "uncertainty")
    for name in _condition_columns(events.where):
        needed.setdefault(name, "where")
    for _, name in events.attributes or ():
        needed.setdefault(name, "attributes")
    return needed


def events_of_rows(
    raw: pa.Table,
    events: EventsSchema,
    rule: Uncertainty,
    *,
    tick: str | None,
    days: bool = True,
    first_id: int = 1,
) -> Events:
    """Return the events of raw rows.

    Parameters
    ----------
    raw : pyarrow.Table
        With all of `needed_columns`.
    events : EventsSchema
    rule : Uncertainty
        Of these events.
    tick : str or None
        Length of a tick. Default: as for `intervals_of`.
    days : bool
        Whether that default may be a day.
    first_id : int
        The id of the first row, if neither the schema nor the rows have one: row ``i`` gets ``first_id + i``.

    Raises
    ------
    TraceError
        If a value or a column cannot be used; rows are numbered as in ``raw``.
    OptionError
        If the tick, the unit or the length of an uncertainty cannot be used.
    """
    rows: IntArray | None = None
    chosen = raw
    if events.where is not None:
        rows = np.flatnonzero(_condition(events.where, raw))
        chosen = raw.take(pa.array(rows)) if len(rows) < raw.num_rows else raw
    try:
        intervals = interval_columns(
            chosen,
            time=events.time,
            uncertainty=rule,
            tick=tick,
            unit=events.unit,
            missing=events.missing,
            days=days,
        )
    except TraceError as error:
        if rows is None:
            raise
        raise TraceError(renumbered(error.faults, rows)) from None
    columns: dict[str, Any] = {
        _NAMES.type: type_column(chosen, events),
        _NAMES.id: id_column(chosen, _id_source(events, raw), rows, first_id),
        _NAMES.lower: intervals.lower,
        _NAMES.upper: intervals.upper,
    }
    if intervals.pmf is not None:
        columns[_NAMES.pmf] = intervals.pmf
    text = intervals.grid.text
    if text is not None:
        columns[_NAMES.tick] = tick_column(text, chosen.num_rows)
    for new, old in _attributes(raw.column_names, events, rule):
        columns[new] = chosen.column(old)
    table = pa.table(columns).replace_schema_metadata(
        None if text is None else {TICK_METADATA: text.encode()}
    )
    dropped = 0
    if intervals.keep is not None:
        table = table.filter(pa.array(intervals.keep))
        rows = np.flatnonzero(intervals.keep) if rows is None else rows[intervals.keep]
        dropped = len(intervals.keep) - table.num_rows
    return Events(table, rows, dropped, intervals.rounding)


def type_column(raw: pa.Table, events: EventsSchema) -> pa.Array | pa.ChunkedArray:
    """Return the types of the rows' events, as text."""
    if events.type_column is None:
        return pa.repeat(pa.scalar(events.type, pa.string()), raw.num_rows)
    column = raw.column(events.type_column)
    if is_text(column.type) or pa.types.is_integer(column.type) or pa.types.is_null(column.type):
        return column.cast(pa.string())
    message = f"its type is {column.type}: the type of an event is text, or a whole number"
    raise TraceError(TraceFault(message, column=events.type_column))


def _id_source(events: EventsSchema, raw: pa.Table) -> str | None:
    return _NAMES.id if events.id is None and _NAMES.id in raw.column_names else events.id


def _id_columns(template: str | None) -> list[str]:
    if template is None:
        return []
    return list(dict.fromkeys(_PLACEHOLDER.findall(template))) if "{" in template else [template]


def id_column(
    raw: pa.Table, template: str | None, rows: IntArray | None = None, first_id: int = 1
) -> pa.Array | pa.ChunkedArray:
    """Return the ids of the rows' events, as int64 or text; ``rows`` numbers them in their file from 0."""
    if template is None:
        return pa.array((np.arange(raw.num_rows) if rows is None else rows) + first_id)
    if "{" in template:
        return _filled(raw, template)
    column = raw.column(template)
    advice = f'read them as text, [types] and then {template} = "string"'
    if is_text(column.type):
        return column.cast(pa.string())
    if not pa.types.is_integer(column.type) and not pa.types.is_null(column.type):
        message = f"its type is {column.type}, but ids are whole numbers or text: {advice}"
        raise TraceError(TraceFault(message, column=template))
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        message = f"it holds numbers beyond 64 bits: {advice}"
        raise TraceError(TraceFault(message, column=template)) from None


def _filled(raw: pa.Table, template: str) -> pa.ChunkedArray:
    parts: list[Any] = []
    for number, text in enumerate(_PLACEHOLDER.split(template)):
        if number % 2 == 0:
            parts.append(text)
            continue
        try:
            parts.append(raw.column(text).cast(pa.string()))
        except pa.ArrowNotImplementedError:
            message = f"its type is {raw.column(text).type}, which cannot be part of an id"
            raise TraceError(TraceFault(message, column=text)) from None
    filled = pc.binary_join_element_wise(*parts, "", null_handling="emit_null")
    return filled if isinstance(filled, pa.ChunkedArray) else pa.chunked_array([filled])


def _attributes(present: list[str], events: EventsSchema, rule: Uncertainty) -> list[tuple[str, str]]:
    if events.attributes is not None:
        return list(events.attributes)
    used = {events.type_column, events.id or _NAMES.id, *rule.stamps(events.time)}
    if _NAMES.pmf in rule.reads(events.time):
        used.add(_NAMES.pmf)
    others = [name for name in present if name not in used]
    taken = [name for name in others if name in _CANONICAL]
    if taken:
        raise TraceError(
            [
                TraceFault(
                    "the column has a name that events use themselves: list the attributes in the schema, "
                    f'renaming this one, as in attributes = {{ raw_{name} = "{name}" }}',
                    column=name,
                )
                for name in taken
            ]
        )
    return [(name, name) for name in others]


def _condition_columns(where: str | None) -> list[str]:
    if where is None:
        return []
    from uncertain_cep.query import parse_row_condition
    from uncertain_cep.query.syntax import Attribute
    from uncertain_cep.query.traversal import expressions_in

    try:
        condition = parse_row_condition(where)
    except (QuerySyntaxError, QueryError) as error:
        raise TraceError(f"where: {error}") from None
    return list(dict.fromkeys(each.name for each in expressions_in(condition) if isinstance(each, Attribute)))


def _condition(where: str, raw: pa.Table) -> BoolArray:
    from uncertain_cep.expressions.vectorised import evaluate_mask
    from uncertain_cep.query import bind_row_condition, parse_row_condition

    try:
        condition = bind_row_condition(parse_row_condition(where), raw.schema)
    except (QuerySyntaxError, QueryError) as error:
        raise TraceError(f"where: {error}") from None
    return evaluate_mask(condition, raw)
