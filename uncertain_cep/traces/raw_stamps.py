"""The raw stamps of a trace, beside the intervals that a schema made of them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import UncertainCepError, UncertainCepWarning
from uncertain_cep.timeline.domain import STAMP_METADATA, TICK_METADATA, Names
from uncertain_cep.traces.events_schema import EventsSchema, UncertaintySpec
from uncertain_cep.traces.faulty_rows import IntArray
from uncertain_cep.traces.reading import GivenSchema, LoadedTrace, Paths, load_traces
from uncertain_cep.traces.reading_steps import Step
from uncertain_cep.traces.rows import Events, events_of_rows
from uncertain_cep.traces.schema import TraceSchema, given_schema

__all__ = ["NO_STAMPS", "named_stamps", "rules_of", "stamps_of_step", "told_stamps", "with_raw_stamps"]

_NAMES: Final = Names()
_EXACT: Final = UncertaintySpec("exact")

NO_STAMPS: Final = "raw_stamps=True: no raw stamps can be told, as no schema makes intervals of stamps here"


def with_raw_stamps(
    loaded: LoadedTrace, paths: Paths, schema_or_path: GivenSchema, format: str | None = None
) -> tuple[pa.Table, str | None]:
    """Return the events of a trace with a column of raw stamps, null where a row has none, and its name.

    The files are read once more, with every rule of uncertainty replaced by ``exact``. The name is None if
    there are no stamps, or they cannot be told; else the metadata of the table have it, too.
    """
    table, schema = loaded.table, given_schema(schema_or_path)
    assert table is not None
    if not told_stamps(schema):
        return table, None
    assert schema is not None
    bare = tuple(map(_exact, schema.events))
    try:
        bare_schema = replace(schema, events=bare, tick=schema.tick or loaded.tick)
        with warnings.catch_warnings():
            # They were said when the files were read first.
            warnings.simplefilter("ignore", UncertainCepWarning)
            again = load_traces(paths, bare_schema, format=format)
    except UncertainCepError:
        return table, None
    if again.table is None or again.faults or len(again.origin.rows) != len(loaded.origin.rows):
        return table, None
    if again.table.schema.field(_NAMES.lower).type != table.schema.field(_NAMES.lower).type:
        return table, None
    places = [
        [np.arange(length) if rows is None else rows for length, rows in zip(lengths, rows, strict=True)]
        for lengths, rows in (
            (loaded.origin.lengths, loaded.origin.rows),
            (again.origin.lengths, again.origin.rows),
        )
    ]
    stamps, begin = [], 0
    for rows, there in zip(*places, strict=True):
        stamps += _stamps(rows, again.table.slice(begin, len(there)), there).chunks
        begin += len(there)
    table = named_stamps(table, pa.chunked_array(stamps, table.schema.field(_NAMES.lower).type))
    return table, table.column_names[-1]


def told_stamps(schema: TraceSchema | None) -> bool:
    """Return whether a schema makes intervals of stamps."""
    return schema is not None and any(events.time is not None for events in schema.events)


def stamps_of_step(raw: pa.Table, step: Step, events: Events, tick: str | None) -> pa.ChunkedArray | None:
    """Return the stamps of the events that a table of a schema made of raw rows; None if they cannot be told.

    ``tick`` is the length of a tick, if there is one that the events do not name.
    """
    noted = (events.table.schema.metadata or {}).get(TICK_METADATA)
    tick = tick if noted is None else noted.decode()
    try:
        with warnings.catch_warnings():
            # They were said when the events were made.
            warnings.simplefilter("ignore", UncertainCepWarning)
            rule = step.rule if step.events.time is None else _EXACT.rule()
            again = events_of_rows(raw, _exact(step.events), rule, tick=tick)
    except UncertainCepError:
        return None
    lower = (table.schema.field(_NAMES.lower).type for table in (events.table, again.table))
    if len(set(lower)) > 1:
        return None
    rows, there = (np.arange(one.table.num_rows) if one.rows is None else one.rows for one in (events, again))
    return _stamps(rows, again.table, there)


def _exact(events: EventsSchema) -> EventsSchema:
    """Return a table of a schema whose stamps are certain times; what lasts has the stamp of its begin."""
    return replace(events, uncertainty=events.uncertainty if events.time is None else _EXACT, spans=False)


def _stamps(rows: IntArray, exact: pa.Table, there: IntArray) -> pa.ChunkedArray:
    """Return the stamps of events of some rows, by events at certain times of the rows ``there``."""
    clipped = np.minimum(np.searchsorted(there, rows), max(len(there) - 1, 0))
    same = there[clipped] == rows if len(there) else np.zeros(len(rows), dtype=np.bool_)
    places = pa.array(clipped, pa.int64(), mask=~same)
    lower, upper = (exact.column(name).take(places) for name in (_NAMES.lower, _NAMES.upper))
    # What has bounds of its own has a stamp only if these are one.
    return pc.if_else(pc.equal(lower, upper), lower, None)


def named_stamps(table: pa.Table, stamps: pa.ChunkedArray) -> pa.Table:
    """Return a table with a last column of stamps, of a name that is free, and the name in its metadata."""
    name = "stamp"
    while name in table.column_names:
        name += "_"
    metadata = {**(table.schema.metadata or {}), STAMP_METADATA: name.encode()}
    return table.append_column(name, stamps).replace_schema_metadata(metadata)


def rules_of(schema: TraceSchema | None) -> list[str]:
    """Return in words how the rows of a schema's files became intervals."""
    lines = []
    for events in () if schema is None else schema.events:
        what = events.files or events.type or events.type_column or "events"
        lines.append(f"How uncertain the times of {what} are: {_in_words(events.uncertainty)}.")
    return lines


def _in_words(spec: UncertaintySpec) -> str:
    if spec.column is not None:
        return f"by {spec.column}"
    if spec.parts:
        return " and ".join(map(_in_words, spec.parts))
    if spec.kind == "plus_minus" and len(spec.arguments) == 1:
        return f"±{spec.arguments[0][1]}"
    arguments = ", ".join(
        f"{name} {_in_words(value) if isinstance(value, UncertaintySpec) else value}"
        for name, value in spec.arguments
    )
    return spec.kind.replace("_", " ") + (f" ({arguments})" if arguments else "")
