"""Reading steps of each file: the tables of a schema that take it, and its raw rows."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns, warn
from uncertain_cep.timeline.domain import MODEL_COLUMNS, TICK_METADATA, Names, tick_column, with_noted_tick
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS
from uncertain_cep.traces.events_schema import READ_EVENTS, EventsSchema
from uncertain_cep.traces.exact_numbers import with_numbers
from uncertain_cep.traces.extracting import ExtractionUses
from uncertain_cep.traces.faulty_rows import ROW
from uncertain_cep.traces.file_kinds import delimiter_in, kind_of
from uncertain_cep.traces.formats import FileOptions, TraceFile, column_names, first_column_names, read_file
from uncertain_cep.traces.intervals import IntervalOptions
from uncertain_cep.traces.readers import READERS
from uncertain_cep.traces.rows import Events, id_column, meets, needed_columns, type_column
from uncertain_cep.traces.schema import TraceSchema
from uncertain_cep.traces.time_formats import EPOCHS
from uncertain_cep.traces.uncertain_stamps import Uncertainty, Zones

__all__ = ["Step", "all_days", "model_events", "raw_tables", "reading_steps", "unused_keys"]

_NAMES: Final = Names()


@dataclass(frozen=True, slots=True)
class Step:
    """A table of the schema, where it stands there, and the rule of its events."""

    name: str
    events: EventsSchema
    rule: Uncertainty
    model: bool = False
    """Whether the columns are those of the model already."""


def reading_steps(
    files: Sequence[TraceFile],
    schema: TraceSchema | None,
    faults: list[TraceFault],
    *,
    named_formats: bool = True,
    spans: bool = False,
) -> dict[TraceFile, list[Step]]:
    """Return the reading steps of each file, adding to ``faults`` the tables that fit no file.

    ``named_formats`` tells that the names of files say their formats, of which a folder may not have several;
    ``spans`` that begins and ends of formats become events that last, without a schema.
    """
    if schema is None:
        step = Step(
            "the trace", replace(READ_EVENTS, spans=spans), READ_EVENTS.uncertainty.rule(), model=True
        )
        faults += _without_ends(files, "spans=True") if spans else []
        faults += _mixed_formats(files, step.name) if named_formats else []
        return {file: [replace(step, model=file.reader is None)] for file in files}
    first = schema.folder or Path()
    folders = [first, *dict.fromkeys(folder for file in files for folder in (file.path.parent, file.root))]
    folders = [folder for folder in folders if folder.is_dir()]
    plan: dict[TraceFile, list[Step]] = {file: [] for file in files}
    absent: list[str] = []
    for number, events in enumerate(schema.events, 1):
        name = f"events[{number}]"
        try:
            step = Step(name, events, events.rule(folders))
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
            absent.append(message if not events.optional else "")
        if events.spans and (without := _without_ends(taken, f"{name}.spans")):
            faults += [replace(fault, file=schema.file) for fault in without]
            continue
        for file in taken:
            plan[file].append(step)
    if len(absent) == len(schema.events):
        faults += [TraceFault(message, file=schema.file) for message in filter(None, absent)]
    else:
        for message in filter(None, absent):
            where = f"{schema.file}: " if schema.file else ""
            warn(f"{where}{message}; if it may be missing, write optional = true there")
    globs = [events.files for events in schema.events if events.files is not None]
    for file, steps in plan.items():
        # A folder may hold other things; a file named by itself was meant to be read.
        if not steps and file.path == file.root and len(globs) == len(schema.events):
            message = (
                f"no table of the schema takes this file, only {', '.join(map(repr, globs))}: see files there"
            )
            faults.append(TraceFault(message, file=str(file.path)))
    return {file: steps for file, steps in plan.items() if steps}


def _without_ends(files: Sequence[TraceFile], option: str) -> list[TraceFault]:
    """Return a fault if a file has no begins and ends of which ids tell what belongs together."""
    formats = ", ".join(name for name, reader in READERS.items() if reader.spans)
    for file in files:
        reader = None if file.reader is None else READERS[file.reader]
        if reader is None or not reader.spans:
            what = "a table" if reader is None else reader.what
            message = (
                f"{option}: {file.path.name}, {what}, has no begins and ends that ids tie, as {formats} "
                "have: say begin and end, or duration, or tie events by uc.spans"
            )
            return [TraceFault(message)]
    return []


def _mixed_formats(files: Sequence[TraceFile], name: str) -> list[TraceFault]:
    """Return a fault for each folder of which files of several formats were taken, by no pattern."""
    folders: dict[Path, dict[str, Path]] = {}
    for file in files:
        kind = file.reader or kind_of(file.path)
        if file.path != file.root and kind is not None:
            folders.setdefault(file.root, {}).setdefault(kind, file.path)
    choice = "name those that are meant" if name == "the trace" else f"say in {name}.files which it takes"
    faults = []
    for root, path_of_kind in folders.items():
        if len(path_of_kind) > 1:
            examples = " and ".join(path.name for path in path_of_kind.values())
            message = f"the folder holds files of several formats, such as {examples}: {choice}"
            faults.append(TraceFault(message, file=str(root)))
    return faults


def _listed(files: Sequence[TraceFile]) -> str:
    shown = ", ".join(file.path.name for file in files[:5])
    return shown if len(files) <= 5 else f"{shown} and {len(files) - 5} more"


def unused_keys(
    uses: ExtractionUses, options: FileOptions, steps: Iterable[Step], file: str | None
) -> list[TraceFault]:
    """Warn of what a schema, in this file, names and no trace has, and return a fault where that is wrong."""
    values = [name for step in steps for _, name in step.events.value_columns]
    uses.warn(options.extract, [name for name, _ in options.types], list(dict.fromkeys(values)))
    return [replace(fault, file=file) for fault in uses.faults(options.explode)]


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
        texts = [name for step in steps for name in (*_texts(step), *step.events.time_parts)]
        joined = dict(options.joined)
        options_of_file = replace(
            options, texts=tuple(name for name in dict.fromkeys(texts) if name not in joined)
        )
        fields = dict.fromkeys(name for columns in needs.values() for name in columns)
        columns: set[str] | None = set()
        for step in steps:
            # Globs may ask for any column.
            listed = step.events.attributes is not None and not step.events.value_columns
            if columns is None or ((used is None or step.events.value_columns) and not listed):
                columns = None
                continue
            columns |= needs[step.name].keys() | {_NAMES.id} | dict(step.events.types).keys()
            if not listed:
                columns.update(MODEL_COLUMNS, SPAN_COLUMNS, SPAN_LAWS, used or ())
        try:
            names = column_names(file, options_of_file)
            file_faults = (
                [] if names is None or options.explode else _absent(file, names, needs, options_of_file)
            )
            if not file_faults:
                raw = read_file(file, columns, options_of_file, uses, fields, groups)
                raw = with_numbers(raw, [name for step in steps for name in _number_columns(step)])
                if names is None:
                    raw = _with_fields_of_no_row(raw, steps, needs)
                # Where they were known before, too: the file may be another one by now.
                file_faults = _absent(file, raw.column_names, needs, options_of_file)
        except TraceError as error:
            file_faults = list(error.faults)
        if file_faults:
            faults += file_faults
        else:
            yield file, raw


def _texts(step: Step) -> tuple[str, ...]:
    """Return the columns of stamps that are read as text."""
    events = step.events
    needs_text = events.as_written or not EPOCHS.keys() >= {*events.time_format}
    return step.rule.stamps(events.time) if needs_text or events.time_zone or events.base else ()


def _number_columns(step: Step) -> list[str]:
    """Return the columns of times, lengths, probabilities and places, which are numbers even if 08."""
    events = step.events
    times = [*step.rule.stamps(events.time), *events.time_columns]
    named = [name for name in (events.probability, events.sequence) if name is not None]
    model = (_NAMES.probability, *_NAMES.clocks[1:], _NAMES.sequence) if step.model else ()
    return [*times, *named, *model]


def _with_fields_of_no_row(
    raw: pa.Table, steps: Sequence[Step], needs: dict[str, dict[str, str]]
) -> pa.Table:
    """Return a table with the columns it lacks that are of no row which meets the conditions asking for them.

    A file of rows of several kinds may have none of one, and so none of the columns of that one.
    """
    for step in steps:
        absent = [name for name in needs[step.name] if name not in raw.column_names]
        asks_with_where = step.events.where is not None and "where" not in {
            needs[step.name][name] for name in absent
        }
        if absent and asks_with_where and step.events.where is not None:
            filled = raw
            for name in absent:
                filled = filled.append_column(name, pa.nulls(raw.num_rows))
            with suppress(TraceError):
                if not meets(step.events.where, filled).any():
                    raw = filled
    return raw


_MODEL_ADVICE: Final = (
    "Name the columns type, id, lower and upper, or say in a schema file or with flags what they are and how "
    "uncertain the times; uncertain-cep init {} writes a schema file for it"
)


def _absent(
    file: TraceFile, names: Sequence[str], needs: dict[str, dict[str, str]], options: FileOptions
) -> list[TraceFault]:
    faults = []
    joined = dict(options.joined)
    names = [name for name in names if name != ROW]
    for step, columns in needs.items():
        # A column that is put together of others lacks one of these, which is named, too.
        absent = [column for column in columns if column not in names and column not in joined]
        if absent and not names:
            # What nobody asks for was not read.
            names = [name for name in first_column_names(file, options) if name != ROW]
        if step == "the trace":
            named, advice = {}, _MODEL_ADVICE.format(shlex.quote(str(file.path)))
        else:
            named, advice = {column: f"{step}.{columns[column]}" for column in absent}, ""
        if (other := delimiter_in(names)) is not None:
            # All of the line is one name.
            advice = f'If {other!r} stands between its values, say delimiter = "{other}" in a schema file' + (
                f", which uncertain-cep init {shlex.quote(str(file.path))} writes" if not named else ""
            )
        faults += absent_columns(absent, names, of="file", advice=advice, file=str(file.path), named=named)
    return faults


def all_days(raws: Sequence[tuple[TraceFile, pa.Table]], plan: dict[TraceFile, list[Step]]) -> bool:
    """Return whether all stamps are dates, and all lengths whole days, so that a tick may be a day."""
    whole_days: dict[bool, list[bool]] = {True: [], False: []}
    for file, raw in raws:
        for step in plan[file]:
            events = step.events
            # A fault here is met again, and told with its file, when the intervals are made.
            with suppress(TraceError, OptionError):
                options = IntervalOptions(events.time, step.rule, unit=events.unit, format=events.format)
                grid = options.grid(raw.schema)
                whole_days[raw.num_rows > 0].append(grid.tick == UNIT_NANOSECONDS["d"])
    # What a file without rows takes its columns for is a guess.
    return all(whole_days[True] or whole_days[False])


def model_events(raw: pa.Table, tick: str | None = None) -> Events:
    """Take a table whose columns are those of the model already; only dates and text become timestamps.

    Their tick is by default the one in the table, else 1us; one day for dates.
    """
    rows = np.asarray(raw.column(ROW).to_numpy()) if ROW in raw.column_names else None
    raw = with_noted_tick(raw if rows is None else raw.drop_columns([ROW]))
    lower, upper = raw.column(_NAMES.lower), raw.column(_NAMES.upper)
    zones: Zones | None = None
    metadata = {key: value for key, value in (raw.schema.metadata or {}).items() if key == TICK_METADATA}
    if not all(
        pa.types.is_timestamp(times.type) or pa.types.is_int64(times.type) for times in (lower, upper)
    ):
        noted = metadata.get(TICK_METADATA)
        options = IntervalOptions(
            None, READ_EVENTS.uncertainty.rule(), tick if noted is None else noted.decode()
        )
        made = options.columns(raw)
        lower, upper, zones = made.lower, made.upper, made.zones
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
    attributes = {name: raw.column(name) for name in raw.column_names if name not in columns}
    return Events(
        pa.table({**columns, **attributes}).replace_schema_metadata(metadata or None), rows, 0, zones=zones
    )
