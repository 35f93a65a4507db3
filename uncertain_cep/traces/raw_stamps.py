"""The raw stamps of a trace, beside the intervals that a schema made of them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import UncertainCepError, UncertainCepWarning
from uncertain_cep.timeline.domain import STAMP_METADATA, Names
from uncertain_cep.traces.events_schema import UncertaintySpec
from uncertain_cep.traces.reading import GivenSchema, LoadedTrace, Paths, load_traces
from uncertain_cep.traces.schema import TraceSchema, given_schema

__all__ = ["rules_of", "with_raw_stamps"]

_NAMES = Names()


def with_raw_stamps(
    loaded: LoadedTrace, paths: Paths, schema_or_path: GivenSchema, format: str | None = None
) -> tuple[pa.Table, str | None]:
    """Return the events of a trace with a column of raw stamps, null where a row has none, and its name.

    The files are read once more, with every rule of uncertainty replaced by ``exact``. The name is None if
    there are no stamps, or they cannot be told; else the metadata of the table have it, too.
    """
    table, schema = loaded.table, given_schema(schema_or_path)
    assert table is not None
    if schema is None or not any(events.time is not None for events in schema.events):
        return table, None
    exact = UncertaintySpec("exact")
    bare = tuple(
        events if events.time is None else replace(events, uncertainty=exact) for events in schema.events
    )
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
        np.arange(length) if rows is None else rows
        for origin in (loaded.origin, again.origin)
        for length, rows in zip(origin.lengths, origin.rows, strict=True)
    ]
    places_of_rows, begin = [], 0
    for ids, there in zip(places[: len(places) // 2], places[len(places) // 2 :], strict=True):
        at = np.searchsorted(there, ids)
        clipped = np.minimum(at, max(len(there) - 1, 0))
        same = there[clipped] == ids if len(there) else np.zeros(len(ids), dtype=np.bool_)
        places_of_rows.append(pa.array(begin + clipped, mask=~same))
        begin += len(there)
    rows = pa.chunked_array(places_of_rows, pa.int64())
    lower, upper = (again.table.column(name).take(rows) for name in (_NAMES.lower, _NAMES.upper))
    # What has bounds of its own has a stamp only if these are one.
    stamps = pc.if_else(pc.equal(lower, upper), lower, None)
    name = "stamp"
    while name in table.column_names:
        name += "_"
    metadata = {**(table.schema.metadata or {}), STAMP_METADATA: name.encode()}
    return table.append_column(name, stamps).replace_schema_metadata(metadata), name


def rules_of(schema: TraceSchema | None) -> list[str]:
    """Return in words how the rows of a schema's files became intervals."""
    lines = []
    for events in () if schema is None else schema.events:
        spec = events.uncertainty
        what = events.files or events.type or events.type_column or "events"
        if spec.column is not None:
            rule = f"by {spec.column}"
        else:
            arguments = ", ".join(f"{name} {value}" for name, value in spec.arguments)
            rule = spec.kind.replace("_", " ") + (f" ({arguments})" if arguments else "")
            if spec.kind == "plus_minus" and len(spec.arguments) == 1:
                rule = f"±{spec.arguments[0][1]}"
        lines.append(f"How uncertain the times of {what} are: {rule}.")
    return lines
