"""Raw rows to events, as one table of a schema says, and the events of several files as one table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import QueryError, QuerySyntaxError, TraceError, TraceFault
from uncertain_cep.plurals import counted
from uncertain_cep.timeline.domain import (
    EVENT_COLUMNS,
    TICK_METADATA,
    Names,
    is_text,
    lengths_in_ticks,
    tick_column,
)
from uncertain_cep.traces.common_types import common_type, is_number
from uncertain_cep.traces.events_schema import READ_EVENTS, EventsSchema
from uncertain_cep.traces.faulty_rows import IN_ORDER, ROW, BoolArray, IntArray, renumbered
from uncertain_cep.traces.formats import with_type
from uncertain_cep.traces.frames import is_whole_decimal
from uncertain_cep.traces.intervals import IntervalOptions, Rounding
from uncertain_cep.traces.reshaping import VALUE, VARIABLE, value_names, with_values
from uncertain_cep.traces.spoiled_numbers import spoiled_rows
from uncertain_cep.traces.tied_ends import FormatRows, of_formats
from uncertain_cep.traces.uncertain_stamps import Uncertainty, Zones

__all__ = [
    "PLACE",
    "Events",
    "Part",
    "Place",
    "assembled",
    "events_of_rows",
    "id_column",
    "id_source",
    "meets",
    "needed_columns",
    "type_column",
]

_NAMES: Final = Names()
PLACE: Final = "place"
"""As the id of events: the file and the row that each is of, unless that is a column of the rows."""
_PLACEHOLDER: Final = re.compile(r"\{([^{}]+)\}")


class Place(NamedTuple):
    """Where rows stand."""

    file: str
    suffix: str = ""
    """The end of ids, behind the number of a row."""
    before: int = 0
    """The rows of the file before these."""

    @classmethod
    def of_step(cls, file: str, events: EventsSchema, *, several: bool, before: int = 0) -> Place:
        """Return the place of rows of a file of which ``several`` tables of a schema may make events."""
        return cls(file, f":{events.type}" if several and events.type else "", before)


@dataclass(frozen=True, slots=True)
class Events:
    """The events of some raw rows.

    The table has type, id, lower, upper, pmf if there are any, tick if it has a length (also in the
    metadata), and attributes. ``rows``, (n,) int64, are the raw rows, counted from 0; None for one event a
    row, in order. ``dropped`` rows lack a time or offset. ``rounding`` is None if the times were in ticks
    already; ``numbered`` tells that ids number the rows, for want of others; ``zones`` which stamps have a
    time zone (None: the type of the times does).
    """

    table: pa.Table
    rows: IntArray | None
    dropped: int
    rounding: Rounding | None = None
    numbered: bool = False
    zones: Zones | None = None


def needed_columns(events: EventsSchema, rule: Uncertainty) -> dict[str, str]:
    """Return the raw columns that must be there, each with the key of the schema that asks for it.

    Of use besides, where the schema names no id, is a column ``id``.
    """
    needed: dict[str, str] = {}
    if events.type_column is not None:
        needed[events.type_column] = "type_column"
    for name in () if events.id == PLACE else _id_columns(events.id):
        needed.setdefault(name, "id")
    for name in (*events.time_parts, *events.time_columns):
        needed.setdefault(name, "time")
    for name in rule.reads(events.time):
        needed.setdefault(name, "uncertainty")
    for name in _condition_columns(events.where):
        needed.setdefault(name, "where")
    for key in ("probability", "sequence", "source"):
        if (name := getattr(events, key)) is not None:
            needed.setdefault(name, key)
    for _, name in events.attributes or ():
        needed.setdefault(name, "attributes")
    for name, _ in events.types:
        needed.setdefault(name, "types")
    if events.value_columns:
        # These are made of the others.
        needed.pop(VARIABLE, None)
        needed.pop(VALUE, None)
    return needed


def events_of_rows(
    raw: pa.Table,
    events: EventsSchema,
    rule: Uncertainty,
    *,
    tick: str | None,
    days: bool = True,
    first_id: int = 1,
    place: Place | None = None,
) -> Events:
    """Return the events of raw rows, which have all of `needed_columns`.

    Where neither the schema nor the rows have an id, row ``i`` gets ``first_id + i``. The default of ``tick``
    is that of `intervals_of`; ``days`` tells whether it may be a day. ``place`` says where the rows stand,
    for ids that name it. Errors number the rows as in ``raw``.
    """
    # The place of each row in ``raw``, and its number in the file; None: as they are.
    rows: IntArray | None = None
    lines: IntArray | None = None
    format = events.format
    if ROW in raw.column_names:
        if format is not None and raw.schema.field(ROW).metadata == IN_ORDER:
            format = replace(format, in_order=True)
        lines = np.asarray(raw.column(ROW).to_numpy())
        raw = raw.drop_columns([ROW])
    chosen = raw
    types = dict(events.types)
    try:
        if events.value_columns:
            kept = {name: key for name, key in needed_columns(events, rule).items() if key != "types"}
            if (id_name := id_source(events, raw)) is not None and id_name in raw.column_names:
                kept.setdefault(id_name, "id")
            values = value_names(events.value_columns, raw.column_names, kept)
            for name in [name for name in types if name in values]:
                raw = with_type(raw, name, types.pop(name))
            chosen, rows = with_values(raw, events.value_columns, values)
            raw = chosen
        if events.where is not None:
            meeting = np.flatnonzero(meets(events.where, raw))
            rows = meeting if rows is None else rows[meeting]
            chosen = raw.take(pa.array(meeting)) if len(meeting) < raw.num_rows else raw
        for name, column_type in types.items():
            chosen = with_type(chosen, name, column_type)
        options = IntervalOptions(
            events.time, rule, tick, events.unit, events.missing, days=days, format=format
        )
        intervals = options.columns(chosen)
    except TraceError as error:
        numbers = _numbers(rows, lines)
        raise error if numbers is None else TraceError(renumbered(error.faults, numbers)) from None
    columns: dict[str, Any] = {
        _NAMES.type: type_column(chosen, events),
        _NAMES.id: id_column(chosen, id_source(events, raw), rows, first_id),
        _NAMES.lower: intervals.lower,
        _NAMES.upper: intervals.upper,
    }
    if place is not None and events.id == PLACE and PLACE not in raw.column_names:
        columns[_NAMES.id] = _places(place, _numbers(rows, lines), chosen.num_rows)
    if intervals.pmf is not None:
        columns[_NAMES.pmf] = intervals.pmf
    if events.probability is not None:
        columns[_NAMES.probability] = chosen.column(events.probability)
    columns |= intervals.of_clocks(_NAMES) | intervals.of_spans()
    if events.sequence is not None or events.ordered:
        if _NAMES.source not in columns:
            columns |= _sources(events, chosen, intervals.grid.tick)
        places = _numbers(rows, lines)
        columns[_NAMES.sequence] = (
            pa.array(np.arange(chosen.num_rows) if places is None else places, pa.int64())
            if events.sequence is None
            else chosen.column(events.sequence)
        )
        columns[_NAMES.ordered] = pa.repeat(events.ordered, chosen.num_rows)
    text = intervals.grid.text
    if text is not None:
        columns[_NAMES.tick] = tick_column(text, chosen.num_rows)
    if events.value_columns and id_source(events, raw) is None:
        # A row gives several events.
        columns[_NAMES.id] = pc.binary_join_element_wise(
            columns[_NAMES.id].cast(pa.string()), chosen.column(VARIABLE), ":"
        )
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
    numbered = id_source(events, raw) is None
    numbers = _numbers(rows, lines)
    if events.spans:
        of_format = _format_rows(chosen, rule, intervals.keep)
        try:
            drop = events.missing == "drop"
            table, left = of_formats(table, of_format, _NAMES, intervals.grid.tick, drop=drop)
        except TraceError as error:
            raise error if numbers is None else TraceError(renumbered(error.faults, numbers)) from None
        numbers = left if numbers is None else numbers[left]
    return Events(table, numbers, dropped, intervals.rounding, numbered, intervals.zones)


def _format_rows(chosen: pa.Table, rule: Uncertainty, keep: BoolArray | None) -> FormatRows:
    """Return the rows of a format that gave events; ``keep``, (n,) bool, tells which did (None: all)."""
    if keep is not None:
        chosen = chosen.filter(pa.array(keep))
    bounds = (_NAMES.lower, _NAMES.upper)
    as_told = rule == READ_EVENTS.uncertainty.rule()
    return FormatRows(
        chosen.column(_NAMES.id), (chosen.column(bounds[0]), chosen.column(bounds[1])) if as_told else None
    )


def _numbers(rows: IntArray | None, lines: IntArray | None) -> IntArray | None:
    """Return the rows in the file of the rows at some places."""
    return rows if lines is None else lines if rows is None else lines[rows]


def type_column(raw: pa.Table, events: EventsSchema) -> pa.Array | pa.ChunkedArray:
    """Return the types of the rows' events, as text."""
    if events.type_column is None:
        return pa.repeat(pa.scalar(events.type, pa.string()), raw.num_rows)
    column = raw.column(events.type_column)
    if is_text(column.type) or pa.types.is_integer(column.type) or pa.types.is_null(column.type):
        return column.cast(pa.string())
    message = f"its type is {column.type}: the type of an event is text, or a whole number"
    raise TraceError(TraceFault(message, column=events.type_column))


def id_source(events: EventsSchema, raw: pa.Table) -> str | None:
    """Return the column, or the template, of the events' ids; None if they are running numbers."""
    if events.numbered or (events.id == PLACE and PLACE not in raw.column_names):
        return None
    return _NAMES.id if events.id is None and _NAMES.id in raw.column_names else events.id


def _id_columns(template: str | None) -> list[str]:
    if template is None:
        return []
    # Without a column in braces it is one, whatever braces its name has.
    return list(dict.fromkeys(_PLACEHOLDER.findall(template))) or [template]


def id_column(
    raw: pa.Table, template: str | None, rows: IntArray | None = None, first_id: int = 1
) -> pa.Array | pa.ChunkedArray:
    """Return the ids of the rows' events, as int64 or text; ``rows`` numbers them in their file from 0."""
    if template is None:
        return pa.array((np.arange(raw.num_rows) if rows is None else rows) + first_id)
    if _PLACEHOLDER.search(template):
        return _filled(raw, template)
    column = raw.column(template)
    advice = f'read them as text, [types] and then {template} = "string"'
    if is_text(column.type):
        return column.cast(pa.string())
    whole = pa.types.is_integer(column.type) or is_whole_decimal(column.type)
    if not whole and not pa.types.is_null(column.type):
        message = f"its type is {column.type}, but ids are whole numbers or text: {advice}"
        raise TraceError(TraceFault(message, column=template))
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        message = f"it holds numbers beyond 64 bits: {advice}"
        raise TraceError(TraceFault(message, column=template)) from None


def _places(place: Place, rows: IntArray | None, count: int) -> pa.Array:
    """Return the file and the number of each row, as messages about rows have them, with a suffix."""
    numbers = pa.array((np.arange(count) if rows is None else rows) + place.before + 1).cast(pa.string())
    return pc.binary_join_element_wise(f"{place.file}:", numbers, place.suffix, "")


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


def _sources(events: EventsSchema, chosen: pa.Table, tick: int | None) -> dict[str, Any]:
    """Return the columns of sources whose times are right but for what each event's interval says."""
    count = chosen.num_rows
    source = pa.repeat("file", count)
    if events.source is not None:
        source = chosen.column(events.source).cast(pa.string()).combine_chunks()
    offset = pc.if_else(source.is_valid(), lengths_in_ticks(np.zeros(count, np.int64), tick), None)
    return dict(zip(_NAMES.clocks, (source, offset, offset), strict=True))


def _attributes(present: list[str], events: EventsSchema, rule: Uncertainty) -> list[tuple[str, str]]:
    if events.attributes is not None:
        return list(events.attributes)
    used = {
        events.type_column, events.id or _NAMES.id, events.probability, *rule.stamps(events.time),
        *events.time_parts,
    }  # fmt: skip
    if events.sequence is not None or events.ordered:
        used |= {_NAMES.sequence, _NAMES.source, _NAMES.ordered}
    if _NAMES.pmf in rule.reads(events.time):
        used.add(_NAMES.pmf)
    bounds = {_NAMES.lower, _NAMES.upper}
    if (events.type_column, events.id) == (_NAMES.type, _NAMES.id) and not used.isdisjoint(bounds):
        # The rows are events already, whose times are told anew.
        used |= bounds
    unused = [name for name in present if name not in used]
    taken = [name for name in unused if name in EVENT_COLUMNS]
    if taken:
        raise TraceError(
            [
                TraceFault(
                    "the column has a name that events use themselves: list the attributes in the schema, "
                    f'renaming this one, as in attributes = {{ raw_{name} = "{name}" }}'
                    + (', or say probability = "probability"' if name == _NAMES.probability else ""),
                    column=name,
                )
                for name in taken
            ]
        )
    return [(name, name) for name in unused]


def _condition_columns(where: str | None) -> list[str]:
    if where is None:
        return []
    from uncertain_cep.query import parse_row_condition
    from uncertain_cep.query.syntax import Attribute, expressions_in

    try:
        condition = parse_row_condition(where)
    except (QuerySyntaxError, QueryError) as error:
        raise TraceError(f"where: {error}") from None
    return list(dict.fromkeys(each.name for each in expressions_in(condition) if isinstance(each, Attribute)))


def meets(where: str, raw: pa.Table) -> BoolArray:
    """Return a mask of the rows that meet a condition, (n,) bool; TraceError if it cannot be evaluated."""
    from uncertain_cep.expressions.vectorised import evaluate_mask
    from uncertain_cep.query import bind_row_condition, parse_row_condition

    try:
        condition = bind_row_condition(parse_row_condition(where), raw.schema)
    except (QuerySyntaxError, QueryError) as error:
        raise TraceError(f"where: {error}") from None
    return evaluate_mask(condition, raw)


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
    first = [name for name in EVENT_COLUMNS if name in names]
    return first + [name for name in names if name not in first]


def _tick(parts: Sequence[Part], faults: list[TraceFault]) -> bytes | None:
    ticks: dict[bytes | None, str] = {}
    for part in parts:
        ticks.setdefault((part.events.table.schema.metadata or {}).get(TICK_METADATA), part.file)
    (first, first_file), *more_ticks = ticks.items()
    for tick, file in more_ticks:
        message = (
            f"mixed ticks: {_tick_text(tick)} here, {_tick_text(first)} in {first_file}: make the intervals "
            "of all files with one tick"
        )
        faults.append(TraceFault(message, file=file))
    return first


def _tick_text(tick: bytes | None) -> str:
    return "none is named" if tick is None else f"a tick is {tick.decode()}"


def _column_type(name: str, parts: Sequence[Part], faults: list[TraceFault]) -> pa.DataType | None:
    column_type: pa.DataType = pa.null()
    first = parts[0]
    advice = "give it one type, or set it in [types]"
    if name in (_NAMES.lower, _NAMES.upper):
        advice = 'times and plain numbers do not mix, say the unit of the numbers (unit = "ms")'
    for part in parts:
        schema = part.events.table.schema
        if name not in schema.names:
            continue
        dtype = schema.field(name).type
        common = common_type(column_type, dtype)
        if common is None and name == _NAMES.id:
            common = pa.string()
        if common is None:
            message = f"its type is {dtype} here, but {column_type} in {first.file}: {advice}"
            one, other = (first, column_type), (part, dtype)
            fault = _spoiled(name, one, other) or _spoiled(name, other, one)
            faults.append(fault or TraceFault(message, file=part.file, column=name))
            return None
        if pa.types.is_null(column_type):
            first = part
        column_type = common
    return column_type


def _spoiled(
    name: str, text: tuple[Part, pa.DataType], numbers: tuple[Part, pa.DataType]
) -> TraceFault | None:
    """Return a fault for the row that makes text of a column in one file, if it holds numbers in another."""
    (part, dtype), (other, number) = text, numbers
    if name in EVENT_COLUMNS or not is_text(dtype) or not is_number(number):
        return None
    spoiled = spoiled_rows(part.events.table.column(name))
    if spoiled is None:
        return None
    row = spoiled.row if part.events.rows is None else int(part.events.rows[spoiled.row])
    failures = f"this one and {spoiled.further:,} more do not" if spoiled.further else "this one does not"
    here = f"{counted(spoiled.numbers, 'row')} here and those of {other.file}"
    message = f"{here} hold numbers, and {failures}"
    return TraceFault(f"{message}: {spoiled.advice}", part.file, row + 1, name, spoiled.value)


def _as(part: Part, schema: pa.Schema, faults: list[TraceFault]) -> pa.Table | None:
    table = part.events.table
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowInvalid as error:
                message = (
                    f"it cannot be read as {field.type}, as other files have it: set it in [types] ({error})"
                )
                faults.append(TraceFault(message, file=part.file, column=field.name))
                continue
        columns.append(column)
    return None if faults else pa.table(columns, schema=schema)
