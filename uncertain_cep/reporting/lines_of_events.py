"""The raw lines of events whose ids name them, for the page that the command makes, which has the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from uncertain_cep.results.pictures import Pictures
from uncertain_cep.traces.file_options import FileOptions
from uncertain_cep.traces.raw_lines import RowOfFile, rows_around, rows_named, text_files
from uncertain_cep.traces.schema import TraceSchema

__all__ = ["LinesOfEvents", "lines_of_events"]

BESIDE: Final = 2
"""Rows before and behind the one of an event that are shown."""

LONGEST: Final = 300
"""Characters of a row that are shown."""

EVENTS: Final = 1_000
"""Events whose lines a page has, at most: those of the first matches."""

CHARACTERS: Final = 400_000
"""Characters of all lines of a page, at most."""


class LinesOfEvents(NamedTuple):
    """Rows of files as they stand there, and the row of each event."""

    of_event: dict[int, RowOfFile]
    """By row of the table of events."""
    text: dict[RowOfFile, str]


def lines_of_events(
    ids: pa.ChunkedArray,
    drawn: Sequence[Pictures],
    traces: Sequence[str],
    schema: TraceSchema | None,
    format: str | None,
) -> LinesOfEvents | None:
    """Return the raw lines of the events of the first matches drawn; None if their ids name no rows.

    Parameters
    ----------
    ids : pyarrow.ChunkedArray
        Those of all events.
    drawn : sequence of Pictures
    traces, schema, format
        The files, and how they were read.
    """
    options = FileOptions() if schema is None else schema.options
    options = options if format is None else replace(options, format=format)
    order = np.concatenate([part for one in drawn for part in (one.row, one.spoiling)])
    rows = list(dict.fromkeys(order.tolist()))[:EVENTS]
    files = text_files(traces, options)
    named = rows_named(ids.take(pa.array(rows, pa.int64())).to_pylist(), files, schema)
    of_event = {row: place for row, place in zip(rows, named, strict=True) if place is not None}
    if not of_event:
        return None
    texts = rows_around(of_event.values(), files, options, BESIDE, LONGEST)
    room, kept = CHARACTERS, {}
    for row, place in of_event.items():
        room -= sum(len(texts.get((place[0], place[1] + by), "")) for by in range(-BESIDE, BESIDE + 1))
        if room < 0:
            break
        if place in texts:
            kept[row] = place
    shown = {(file, row + by) for file, row in kept.values() for by in range(-BESIDE, BESIDE + 1)}
    return LinesOfEvents(kept, {place: text for place, text in texts.items() if place in shown})
