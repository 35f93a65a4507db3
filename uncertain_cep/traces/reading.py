"""Reads raw files through a schema into one table of events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.durations import UNIT_NANOSECONDS, parse_duration
from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns, warn
from uncertain_cep.timedomain import TICK_METADATA, Names, TimeDomain, tick_column, with_noted_tick
from uncertain_cep.traces.checks import (
    RowOrigin,
    check_columns,
    check_ids,
    check_values,
)
from uncertain_cep.traces.duplicates import duplicates_message, first_of_equal
from uncertain_cep.traces.events_schema import READ_EVENTS, EventsSchema
from uncertain_cep.traces.extracting import ExtractionUses
from uncertain_cep.traces.faulty_rows import ROW
from uncertain_cep.traces.formats import (
    FileOptions,
    TraceFile,
    column_names,
    format_of,
    list_files,
    read_file,
    reader_tick,
)
from uncertain_cep.traces.frames import event_table
from uncertain_cep.traces.instants import warn_of_naive
from uncertain_cep.traces.intervals import IntervalOptions, merged_message, merged_times
from uncertain_cep.traces.rows import (
    CANONICAL,
    Events,
    Part,
    assembled,
    events_of_rows,
    id_column,
    meets,
    needed_columns,
    type_column,
)
from uncertain_cep.traces.schema import TraceSchema, given_schema
from uncertain_cep.traces.time_formats import EPOCHS
from uncertain_cep.traces.uncertainty import Uncertainty

__all__ = [
    "GivenSchema",
    "LoadedTrace",
    "Paths",
    "Step",
    "all_days",
    "chosen_tick",
    "load_frame",
    "load_traces",
    "model_events",
    "raw_tables",
    "read_traces",
    "reading_steps",
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
    present: frozenset[str] = frozenset()
    """The columns of the files, read or not."""

    @property
    def events(self) -> int:
        """How many events the rows gave."""
        return 0 if self.table is None else self.table.num_rows

    def with_checked_ids(self, partition: Sequence[str] = ()) -> LoadedTrace:
        """Return the trace with a fault for each id used twice where these columns are the same."""
        if self.table is None:
            return self
        names = self.table.column_names
        found = absent_columns([name for name in partition if name not in names], names)
        if not found:
            ids = check_ids(self.table, _NAMES, partition=partition)
            found = [self.origin.placed(fault) for fault in ids]
        return replace(self, faults=(*self.faults, *found))

    def with_all_columns(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with the columns that were not read, of no type, so that errors can name them."""
        others = sorted(self.present.difference(schema.names))
        return pa.schema([*schema, *(pa.field(name, pa.null()) for name in others)], schema.metadata)

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


@dataclass(frozen=True, slots=True)
class Step:
    """A table of the schema, where it stands there, and the rule of its events."""

    name: str
    events: EventsSchema
    rule: Uncertainty
    model: bool = False
    """Whether the columns are those of the model already."""


@public
def read_traces(
    paths: Paths, schema: GivenSchema = None, *, format: str | None = None, tick: str | None = None
) -> pa.Table:
    """Read files into one table of events.

    Parameters
    ----------
    paths : path or sequence of paths
        CSV, JSON lines or Parquet files (text also compressed), files of a format that is known by itself, or
        folders of such files.
    schema : path, TraceSchema or None
        A schema file, or what `load_schema` made of one. None for files whose columns are those of the model
        (type, id, lower, upper and, if wanted, pmf, probability and tick), and for formats that are known by
        themselves.
    format : str, optional
        What all files are, whatever their names; folders are then read whole. It is one of ``csv``, ``tsv``,
        ``json``, ``jsonl``, ``ndjson``, ``parquet``, ``pq``, or a format known by itself:
        ``spark-eventlog`` and others, see docs/formats.md.
        Whether text is compressed is always told by the name. Default: by the name of each file, and in
        folders only those of known names; a format known by itself is also found out by what is in a file.
    tick : str or None
        Length of a tick, such as ``1ms``. Default: what the schema, the files or their format say, else
        1us; a day where all stamps are dates.

    Returns
    -------
    pyarrow.Table
        Columns ``type`` (string), ``id`` (int64 or string), ``lower`` and ``upper`` (int64 ticks or
        timestamps), ``pmf`` (list of double, null for uniform) if there are any, ``tick`` (string), unless
        the times are plain ticks of no named length, ``probability`` if there are any, then the attributes.
        Whether ids are unique is not checked, since that depends on the partition.

    Raises
    ------
    TraceError
        With every fault found: file, row, column and value.
    OptionError
        If an option has no such value.

    Warns
    -----
    UncertainCepWarning
        If the format of a file is found out by what is in it; if an ``[extract]`` names a column that no file
        has, or is never found; if stamps with a time zone and others without are put together; if certain
        times that differ are now in one tick, so that none is before the other.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> folder = uc.examples.folder("chemotherapy")
    >>> events = uc.read_traces(folder / "treatments.csv", folder / "schema.toml")
    >>> events.column_names[:4]
    ['type', 'id', 'lower', 'upper']
    """
    return load_traces(paths, schema, format=format, tick=tick).sound()


def load_traces(
    paths: Paths,
    schema: GivenSchema = None,
    *,
    format: str | None = None,
    tick: str | None = None,
    used: Collection[str] | None = None,
) -> LoadedTrace:
    """Read files into one table of events, and note what is wrong instead of stopping at it.

    Parameters are those of `read_traces`, and the attributes that are ``used`` where the schema lists none
    (None: all): others are not read, and may hold anything.
    """
    schema = given_schema(schema)
    options = FileOptions() if schema is None else schema.options
    if format is not None:
        options = replace(options, format=format)
    if options.deduplicate:
        # What is not read could tell events apart.
        used = None
    asked: Any = paths
    given = [asked] if isinstance(asked, (str, Path)) or not isinstance(asked, Iterable) else list(asked)
    if not all(isinstance(path, (str, Path)) for path in given):
        raise OptionError(f"paths={asked!r}: it takes the path of a file or a folder, or several")
    files, faults = list_files(given, options.format, with_schema=schema is not None)
    if not given:
        faults.append(TraceFault("no file is given: name one or more"))
    plan = reading_steps(files, schema, faults, named_formats=options.format is None)
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
    for file, raw in raws:
        rows += raw.num_rows
        for step in plan[file]:
            stamps.setdefault(step.rule.stamps(step.events.time), raw.schema)
            try:
                events = (
                    model_events(raw, tick)
                    if step.model
                    else events_of_rows(
                        raw, step.events, step.rule, tick=of_rows, days=days, first_id=next_id
                    )
                )
                parts.append(Part(str(file.path), events))
            except TraceError as error:
                faults += [replace(fault, file=str(file.path)) for fault in error.faults]
            except OptionError as error:
                named_in = None if schema is None else schema.file
                faults.append(TraceFault(f"{step.name}: {error}", file=named_in))
            next_id += raw.num_rows
    uses.warn(options.extract)
    _warn_of_zones(stamps, parts)
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
        found, named = _model_faults(table, tick if schema is None else None)
        faults += [origin.placed(fault) for fault in found]
    roundings = [part.events.rounding for part in kept if part.events.rounding is not None]
    return LoadedTrace(
        table,
        origin,
        tuple(faults),
        rows,
        dropped,
        sum(rounding.floored for rounding in roundings),
        duplicates,
        merged_times(roundings),
        named,
        frozenset(uses.present),
    )


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


def _warn_of_zones(stamps: Mapping[tuple[str, ...], pa.Schema], parts: Sequence[Part]) -> None:
    """Warn of time zones beside none, among the stamps of one event and in one column of several files."""
    for columns, schema in stamps.items():
        warn_of_naive([(name, schema.field(name).type) for name in columns if name in schema.names])
    full = [part for part in parts if part.events.table.num_rows]
    for name in dict.fromkeys(name for part in full for name in part.events.table.column_names):
        if name == _NAMES.upper:
            # As the lower bound is.
            continue
        what = "the times" if name == _NAMES.lower else f"column {name}"
        found = [(part.file, part.events.table.schema) for part in full]
        warn_of_naive(
            [(file, schema.field(name).type) for file, schema in found if name in schema.names],
            of=f"{what} of ",
        )


def chosen_tick(tick: str | None, schema: TraceSchema) -> str | None:
    """Return the tick that the caller or the schema names; an OptionError if they differ."""
    if tick is None or schema.tick is None:
        return tick or schema.tick
    if parse_duration(tick, what="tick") != parse_duration(schema.tick):
        raise OptionError(f"tick={tick!r}: the schema says {schema.tick}: leave one of them out")
    return tick


def _model_faults(table: pa.Table, tick: str | None) -> tuple[list[TraceFault], str | None]:
    """Return what is wrong with a table of events, and its tick."""
    faults = check_columns(table.schema, _NAMES)
    if faults:
        return faults, None
    try:
        domain = TimeDomain.of(table.schema, _NAMES, tick)
    except (TraceError, OptionError) as error:
        return (list(error.faults) if isinstance(error, TraceError) else [TraceFault(str(error))]), None
    clocks = set(_NAMES.clocks) <= set(table.column_names)
    faults = check_values(table, _NAMES, domain, clocks=clocks)
    return faults, None if domain.tick_nanoseconds is None else domain.describe()


def reading_steps(
    files: Sequence[TraceFile],
    schema: TraceSchema | None,
    faults: list[TraceFault],
    *,
    named_formats: bool = True,
) -> dict[TraceFile, list[Step]]:
    """Return what makes events of each file, adding to ``faults`` what fits no file.

    ``named_formats`` tells that the names of files say their formats, of which a folder may not have several.
    """
    if schema is None:
        step = Step("the trace", READ_EVENTS, READ_EVENTS.uncertainty.rule(), model=True)
        faults += _mixed_formats(files, step.name) if named_formats else []
        return {file: [replace(step, model=file.reader is None)] for file in files}
    first = schema.folder or Path()
    folders = [first, *dict.fromkeys(folder for file in files for folder in (file.path.parent, file.root))]
    folders = [folder for folder in folders if folder.is_dir()]
    plan: dict[TraceFile, list[Step]] = {file: [] for file in files}
    for number, events in enumerate(schema.events, 1):
        name = f"events[{number}]"
        try:
            step = Step(name, events, events.uncertainty.rule(folders))
            needed_columns(step.events, step.rule)
        except TraceError as error:
            faults += [
                replace(fault, file=fault.file or schema.file, message=f"{fault.message} (for {name})")
                for fault in error.faults
            ]
            continue
        taken = [file for file in files if events.files is None or file.matches(events.files)]
        if events.files is None and named_formats:
            faults += _mixed_formats(taken, name)
        if files and not taken:
            message = f"{name}.files: {events.files!r} fits none of the files given: {_listed(files)}"
            faults.append(TraceFault(message, file=schema.file))
        for file in taken:
            plan[file].append(step)
    globs = [events.files for events in schema.events if events.files is not None]
    for file, steps in plan.items():
        # A folder may hold other things; a file named by itself was meant to be read.
        if not steps and file.path == file.root and len(globs) == len(schema.events):
            message = (
                f"no table of the schema takes this file, only {', '.join(map(repr, globs))}: see files there"
            )
            faults.append(TraceFault(message, file=str(file.path)))
    return {file: steps for file, steps in plan.items() if steps}


def _mixed_formats(files: Sequence[TraceFile], name: str) -> list[TraceFault]:
    """Return a fault for each folder of which files of several formats were taken, by no pattern."""
    found: dict[Path, dict[str, Path]] = {}
    for file in files:
        kind = file.reader or format_of(file.path)
        if file.path != file.root and kind is not None:
            found.setdefault(file.root, {}).setdefault(kind, file.path)
    choice = "name those that are meant" if name == "the trace" else f"say in {name}.files which it takes"
    faults = []
    for root, some in found.items():
        if len(some) > 1:
            examples = " and ".join(path.name for path in some.values())
            message = f"the folder holds files of several formats, such as {examples}: {choice}"
            faults.append(TraceFault(message, file=str(root)))
    return faults


def _listed(files: Sequence[TraceFile]) -> str:
    shown = ", ".join(file.path.name for file in files[:5])
    return shown if len(files) <= 5 else f"{shown} and {len(files) - 5} more"


def raw_tables(
    plan: dict[TraceFile, list[Step]],
    options: FileOptions,
    faults: list[TraceFault],
    uses: ExtractionUses | None = None,
    used: Collection[str] | None = None,
    groups: tuple[int, int] | None = None,
) -> Iterator[tuple[TraceFile, pa.Table]]:
    """Yield each file with its raw rows, adding to ``faults`` those that cannot be read.

    Columns that are neither named by the schema nor ``used`` (None: all are) are left out. ``groups`` are
    those of `read_file`.
    """
    for file, steps in plan.items():
        needs = {step.name: needed_columns(step.events, step.rule) for step in steps}
        texts = [name for step in steps for name in _texts(step)]
        mine = replace(options, texts=tuple(dict.fromkeys(texts)))
        fields = dict.fromkeys(name for columns in needs.values() for name in columns)
        wanted: set[str] | None = set()
        for step in steps:
            # Globs may ask for any column.
            listed = step.events.attributes is not None and not step.events.value_columns
            if wanted is None or ((used is None or step.events.value_columns) and not listed):
                wanted = None
                continue
            wanted |= needs[step.name].keys() | {_NAMES.id} | dict(step.events.types).keys()
            if not listed:
                wanted.update(CANONICAL, _NAMES.clocks, used or ())
        try:
            names = column_names(file, mine)
            found = [] if names is None or options.explode else _absent(file, names, needs)
            if not found:
                raw = read_file(file, wanted, mine, uses, fields, groups)
                if names is None:
                    raw = _with_fields_of_no_row(raw, steps, needs)
                # Where they were known before, too: the file may be another one by now.
                found = _absent(file, raw.column_names, needs)
        except TraceError as error:
            found = list(error.faults)
        if found:
            faults += found
        else:
            yield file, raw


def _texts(step: Step) -> tuple[str, ...]:
    """Return the columns of stamps that are read as text."""
    events = step.events
    told = events.as_written or not EPOCHS.keys() >= {*events.time_format}
    return step.rule.stamps(events.time) if told or events.time_zone or events.base else ()


def _with_fields_of_no_row(
    raw: pa.Table, steps: Sequence[Step], needs: dict[str, dict[str, str]]
) -> pa.Table:
    """Return a table with the columns it lacks that are of no row which meets the conditions asking for them.

    A file of rows of several kinds may have none of one, and so none of the columns of that one.
    """
    for step in steps:
        absent = [name for name in needs[step.name] if name not in raw.column_names]
        asked = step.events.where is not None and "where" not in {needs[step.name][name] for name in absent}
        if absent and asked and step.events.where is not None:
            filled = raw
            for name in absent:
                filled = filled.append_column(name, pa.nulls(raw.num_rows))
            with suppress(TraceError):
                if not meets(step.events.where, filled).any():
                    raw = filled
    return raw


_MODEL_ADVICE: Final = (
    "Name the columns type, id, lower and upper, or say in a schema file or with flags what they are and how "
    "uncertain the times"
)


def _absent(file: TraceFile, names: Sequence[str], needs: dict[str, dict[str, str]]) -> list[TraceFault]:
    faults = []
    names = [name for name in names if name != ROW]
    for step, columns in needs.items():
        absent = [column for column in columns if column not in names]
        if step == "the trace":
            named, advice = {}, _MODEL_ADVICE
        else:
            named, advice = {column: f"{step}.{columns[column]}" for column in absent}, ""
        faults += absent_columns(absent, names, of="file", advice=advice, file=str(file.path), named=named)
    return faults


def all_days(raws: Sequence[tuple[TraceFile, pa.Table]], plan: dict[TraceFile, list[Step]]) -> bool:
    """Return whether all stamps are dates, and all lengths whole days, so that a tick may be a day."""
    found: dict[bool, list[bool]] = {True: [], False: []}
    for file, raw in raws:
        for step in plan[file]:
            events = step.events
            # A fault here is met again, and told with its file, when the intervals are made.
            with suppress(TraceError, OptionError):
                options = IntervalOptions(events.time, step.rule, unit=events.unit, format=events.format)
                grid = options.grid(raw.schema)
                found[raw.num_rows > 0].append(grid.tick == UNIT_NANOSECONDS["d"])
    # What a file without rows takes its columns for is a guess.
    return all(found[True] or found[False])


def model_events(raw: pa.Table, tick: str | None = None) -> Events:
    """Take a table whose columns are those of the model already; only dates and text become timestamps.

    Their tick is by default the one in the table, else 1us; one day for dates.
    """
    rows = np.asarray(raw.column(ROW).to_numpy()) if ROW in raw.column_names else None
    raw = with_noted_tick(raw if rows is None else raw.drop_columns([ROW]))
    lower, upper = raw.column(_NAMES.lower), raw.column(_NAMES.upper)
    metadata = {key: value for key, value in (raw.schema.metadata or {}).items() if key == TICK_METADATA}
    if not all(
        pa.types.is_timestamp(times.type) or pa.types.is_int64(times.type) for times in (lower, upper)
    ):
        noted = metadata.get(TICK_METADATA)
        options = IntervalOptions(
            None, READ_EVENTS.uncertainty.rule(), tick if noted is None else noted.decode()
        )
        made = options.columns(raw)
        lower, upper = made.lower, made.upper
        if noted is None and made.grid.text is not None and made.grid.countable:
            metadata = {TICK_METADATA: made.grid.text.encode()}
    elif tick is not None:
        metadata.setdefault(TICK_METADATA, tick.encode())
    columns = {
        _NAMES.type: type_column(raw, READ_EVENTS),
        _NAMES.id: id_column(raw, READ_EVENTS.id),
        _NAMES.lower: lower,
        _NAMES.upper: upper,
    }
    if TICK_METADATA in metadata and _NAMES.tick not in raw.column_names:
        columns[_NAMES.tick] = tick_column(metadata[TICK_METADATA].decode(), raw.num_rows)
    others = {name: raw.column(name) for name in raw.column_names if name not in columns}
    return Events(pa.table({**columns, **others}).replace_schema_metadata(metadata or None), rows, 0)
