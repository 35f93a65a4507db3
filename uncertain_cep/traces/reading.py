"""Reads raw files through a schema into one table of events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns, warn
from uncertain_cep.timeline.domain import ZONE_METADATA, Names, TimeDomain
from uncertain_cep.timeline.durations import parse_duration
from uncertain_cep.traces.checks import RowOrigin, check_columns, check_ids, check_values
from uncertain_cep.traces.duplicates import duplicates_message, first_of_equal
from uncertain_cep.traces.exact_numbers import mixed_columns
from uncertain_cep.traces.extracting import ExtractionUses
from uncertain_cep.traces.faulty_rows import ROW
from uncertain_cep.traces.file_columns import types_of
from uncertain_cep.traces.formats import FileOptions, TraceFile, first_column_names, list_files, reader_tick
from uncertain_cep.traces.frames import event_table
from uncertain_cep.traces.instants import warn_of_naive
from uncertain_cep.traces.intervals import IntervalOptions, merged_message, merged_times
from uncertain_cep.traces.reading_steps import (
    Step,
    all_days,
    model_events,
    raw_tables,
    reading_steps,
    unused_keys,
)
from uncertain_cep.traces.rows import Part, Place, assembled, events_of_rows
from uncertain_cep.traces.schema import TraceSchema, given_schema
from uncertain_cep.traces.source_order import check_order_columns
from uncertain_cep.traces.time_formats import TimeFormat

__all__ = [
    "GivenSchema",
    "LoadedTrace",
    "Paths",
    "chosen_tick",
    "load_frame",
    "load_traces",
    "warn_of_units",
    "warn_of_zones",
]

Paths = Sequence[str | Path] | str | Path
GivenSchema = TraceSchema | str | Path | None
_NAMES = Names()


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """The events of some files and what is wrong with them."""

    table: pa.Table | None
    """None if the faults leave no table."""
    origin: RowOrigin
    """Where its rows come from."""
    faults: tuple[TraceFault, ...]
    rows: int
    """Raw rows read."""
    dropped: int
    """Rows left out without a time or offset."""
    floored: int = 0
    """Events whose own offset or length is no whole number of ticks."""
    duplicates: int = 0
    """Events left out that agreed in everything with one before."""
    merged: int = 0
    """Events of a certain time that share their tick with one of another certain time."""
    tick: str | None = None
    """The tick; None if it has no length, or the table is None."""
    attributes: Callable[[], frozenset[str]] = frozenset
    """Returns the columns of the files that are attributes, read or not."""
    columns: tuple[frozenset[str], ...] = ()
    """Of the events of each part of ``origin``."""

    @property
    def events(self) -> int:
        """How many events the rows gave."""
        return 0 if self.table is None else self.table.num_rows

    def with_checked_ids(self, partition: Sequence[str] = ()) -> LoadedTrace:
        """Return the trace with a fault for each id used twice where these columns are the same."""
        if self.table is None:
            return self
        names = self.table.column_names
        faults = absent_columns([name for name in partition if name not in names], names)
        if not faults:
            ids = check_ids(self.table, _NAMES, partition=partition)
            faults = [self.origin.placed(fault) for fault in ids]
        return replace(self, faults=(*self.faults, *faults))

    def files_without(self, column: str) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield the files that lack a column which others have, each with the types of its events."""
        start = 0
        for file, length, names in zip(self.origin.files, self.origin.lengths, self.columns, strict=False):
            if self.table is not None and file is not None and column not in names:
                yield file, types_of(self.table.slice(start, length))
            start += length

    def with_all_columns(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with the columns that were not read, of no type, so that errors can name them."""
        unread = sorted(self.attributes().difference(schema.names))
        return pa.schema([*schema, *(pa.field(name, pa.null()) for name in unread)], schema.metadata)

    def sound(self) -> pa.Table:
        """Return the table, or raise the faults; see `warn`."""
        if self.faults or self.table is None:
            raise TraceError(self.faults)
        self.warn()
        return self.table

    def warn(self) -> None:
        """Warn if ticks took the order from certain times, and of events that were left out."""
        if self.duplicates:
            warn(duplicates_message(self.duplicates, self.events))
        if self.merged:
            warn(merged_message(self.merged, self.tick))


def load_traces(
    paths: Paths,
    schema: GivenSchema = None,
    *,
    format: str | None = None,
    tick: str | None = None,
    used: Collection[str] | None = None,
    as_text: Collection[str] = (),
    spans: bool = False,
) -> LoadedTrace:
    """Read files into one table of events, and note what is wrong instead of stopping at it.

    Parameters are those of `read_traces`, and the attributes that are ``used`` where the schema lists none
    (None: all): others are not read, and may hold anything. Numbers of columns ``as_text`` are read as text.
    """
    schema = given_schema(schema)
    if spans and schema is not None:
        raise OptionError("spans=True is for files without a schema: write spans = true in its [[events]]")
    options = FileOptions() if schema is None else schema.options
    if format is not None:
        options = replace(options, format=format)
    options = replace(options, as_text=tuple(as_text))
    if options.deduplicate:
        # What is not read could tell events apart.
        used = None
    argument: Any = paths
    path_list = (
        [argument]
        if isinstance(argument, (str, Path)) or not isinstance(argument, Iterable)
        else list(argument)
    )
    if not all(isinstance(path, (str, Path)) for path in path_list):
        raise OptionError(f"paths={argument!r}: it takes the path of a file or a folder, or several")
    files, faults = list_files(path_list, options.format, with_schema=schema is not None)
    if not path_list:
        faults.append(TraceFault("no file is given: name one or more"))
    plan = reading_steps(files, schema, faults, named_formats=options.format is None, spans=spans)
    rows, next_id, days = 0, 1, True
    parts: list[Part] = []
    uses = ExtractionUses()
    raws: Iterable[tuple[TraceFile, pa.Table]] = raw_tables(plan, options, faults, uses, used)
    if schema is not None:
        tick = chosen_tick(tick, schema)
    of_rows = tick or reader_tick(plan)
    if schema is not None and of_rows is None:
        raws = list(raws)
        days = all_days(raws, plan)
    stamps: dict[tuple[str, ...], pa.Schema] = {}
    schemas: list[pa.Schema] = []
    with_rows: list[tuple[TraceFile, pa.Schema]] = []
    for file, raw in raws:
        schemas.append(raw.schema)
        with_rows += [(file, raw.schema)] if raw.num_rows else []
        rows += raw.num_rows
        several = len(plan[file]) > 1
        for step in plan[file]:
            place = Place.of_step(str(file.path), step.events, several=several)
            stamps.setdefault(step.rule.stamps(step.events.time), raw.schema)
            try:
                events = (
                    model_events(raw, tick)
                    if step.model
                    else events_of_rows(
                        raw, step.events, step.rule, tick=of_rows, days=days, first_id=next_id, place=place
                    )
                )
                parts.append(Part(str(file.path), events))
            except TraceError as error:
                faults += [replace(fault, file=str(file.path)) for fault in error.faults]
            except OptionError as error:
                named_in = None if schema is None else schema.file
                faults.append(TraceFault(f"{step.name}: {error}", file=named_in))
            next_id += raw.num_rows
    if (mixed := mixed_columns(schemas)) and not as_text:
        return load_traces(
            path_list, schema, format=format, tick=tick, used=used, as_text=sorted(mixed), spans=spans
        )
    # What a file lacks is said already where it is a fault.
    steps = [] if faults else [step for steps_of_file in plan.values() for step in steps_of_file]
    faults += unused_keys(uses, options, steps, None if schema is None else schema.file)
    warn_of_zones(stamps, [part for part in parts if part.events.table.num_rows])
    warn_of_units([(raw_schema, plan[file]) for file, raw_schema in with_rows])
    dropped = sum(part.events.dropped for part in parts)
    table: pa.Table | None = None
    if parts:
        table, conflicts = assembled(parts)
        faults += conflicts
    duplicates = 0
    kept = [part for part in parts if part.events.table.num_rows] or parts
    origin = RowOrigin(
        tuple(part.file for part in kept),
        tuple(part.events.table.num_rows for part in kept),
        tuple(part.events.rows for part in kept),
    )
    if table is not None and options.deduplicate:
        numbered = [part.events.numbered for part in kept]
        first = first_of_equal(table, np.repeat(numbered, origin.lengths))
        duplicates = len(first) - int(first.sum())
        table = table.filter(pa.array(first)) if duplicates else table
        origin = origin.kept(first)
    named = None
    if table is not None:
        model_faults, named = _model_faults(table, tick if schema is None else None)
        faults += [origin.placed(fault) for fault in model_faults]
        if schema is not None and schema.zone is not None:
            metadata = {**(table.schema.metadata or {}), ZONE_METADATA: schema.zone.encode()}
            table = table.replace_schema_metadata(metadata)
    roundings = [part.events.rounding for part in kept if part.events.rounding is not None]
    return LoadedTrace(
        table,
        origin,
        tuple(dict.fromkeys(faults)),
        rows,
        dropped,
        sum(rounding.floored for rounding in roundings),
        duplicates,
        merged_times(roundings),
        named,
        partial(_first_attributes, plan, options),
        tuple(frozenset(part.events.table.column_names) for part in kept),
    )


def _first_attributes(plan: dict[TraceFile, list[Step]], options: FileOptions) -> frozenset[str]:
    """Return the columns with which files begin that are attributes, unless the schema lists these."""
    files = [file for file, steps in plan.items() if any(step.events.attributes is None for step in steps)]
    return frozenset(name for file in files for name in first_column_names(file, options) if name != ROW)


def load_frame(frame: Any, *, tick: str | None = None) -> LoadedTrace:
    """Take a frame of events with the columns of the model, and note what is wrong instead of stopping at it.

    A reader is read to its end. The tick is by default what the frame says, else 1us.
    """
    try:
        table = event_table(frame, _NAMES)
    except TraceError as error:
        return LoadedTrace(None, RowOrigin((), (), ()), error.faults, 0, 0)
    faults, named = _model_faults(table, tick)
    rows = table.num_rows
    usable = None if check_columns(table.schema, _NAMES) else table
    return LoadedTrace(usable, RowOrigin((None,), (rows,), (None,)), tuple(faults), rows, 0, tick=named)


def warn_of_zones(stamps: Mapping[tuple[str, ...], pa.Schema], parts: Sequence[Part]) -> None:
    """Warn of time zones beside none, among the stamps of one event and in one column of several files.

    ``stamps`` has the schema of the raw rows for columns of stamps; ``parts`` are those with events.
    """
    for columns, schema in stamps.items():
        warn_of_naive([(name, schema.field(name).type) for name in columns if name in schema.names])
    for name in dict.fromkeys(name for part in parts for name in part.events.table.column_names):
        if name == _NAMES.upper:
            # As the lower bound is.
            continue
        what = "the times" if name == _NAMES.lower else f"column {name}"
        types = [(part.file, _zoned_type(part, name)) for part in parts]
        warn_of_naive([(file, dtype) for file, dtype in types if dtype is not None], of=f"{what} of ")


def warn_of_units(files: Iterable[tuple[pa.Schema, Sequence[Step]]]) -> None:
    """Warn of each table of a schema whose unit has no effect, as none of its files has numbers for it.

    ``files`` has the schema of the raw rows of each file with rows, and the tables that take it.
    """
    options_of: dict[str, IntervalOptions] = {}
    schemas: dict[str, list[pa.Schema]] = {}
    for schema, steps in files:
        for step in steps:
            events = step.events
            # The unit of time_format is not one that the schema says.
            if TimeFormat(events.time_format).unit is None:
                options_of[step.name] = IntervalOptions(events.time, step.rule, unit=events.unit)
                schemas.setdefault(step.name, []).append(_with_types(schema, events.types))
    for name, options in options_of.items():
        if not any(map(options.takes_unit, schemas[name])):
            options.warn_of_idle_unit(schemas[name][0], f"{name}.unit")


def _with_types(schema: pa.Schema, types: Sequence[tuple[str, str]]) -> pa.Schema:
    """Return a schema whose columns have no type where a table of the schema file makes numbers of them."""
    for name, column_type in types:
        if name in schema.names and column_type in ("int", "float"):
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.null()))
    return schema


def _zoned_type(part: Part, name: str) -> pa.DataType | None:
    """Return the type of a column, with a zone if its times were read with one; None if it has no type."""
    schema = part.events.table.schema
    if name not in schema.names:
        return None
    dtype = schema.field(name).type
    if name != _NAMES.lower or not pa.types.is_timestamp(dtype) or part.events.zones in (None, "none"):
        return dtype
    return None if part.events.zones == "number" else pa.timestamp(dtype.unit, dtype.tz or "UTC")


def chosen_tick(tick: str | None, schema: TraceSchema) -> str | None:
    """Return the tick that the caller or the schema names; an OptionError if they differ."""
    if tick is None or schema.tick is None:
        return tick or schema.tick
    if parse_duration(tick, what="tick") != parse_duration(schema.tick):
        raise OptionError(f"tick={tick!r}: the schema says {schema.tick}: leave one of them out")
    return tick


def _model_faults(table: pa.Table, tick: str | None) -> tuple[list[TraceFault], str | None]:
    """Return the faults of a table of events, and its tick."""
    faults = check_columns(table.schema, _NAMES) + check_order_columns(table.column_names, _NAMES)
    if faults:
        return faults, None
    try:
        domain = TimeDomain.of(table.schema, _NAMES, tick)
    except (TraceError, OptionError) as error:
        return (list(error.faults) if isinstance(error, TraceError) else [TraceFault(str(error))]), None
    clocks = _NAMES.name_clocks(table.column_names)
    faults = check_values(table, _NAMES, domain, clocks=clocks)
    return faults, None if domain.tick_nanoseconds is None else domain.describe()
