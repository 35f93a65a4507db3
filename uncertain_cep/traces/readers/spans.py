"""The common part of formats of distributed traces: a span has a start, an end and events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.traces.readers.event_columns import batch_of, chunks, pivoted
from uncertain_cep.traces.readers.source import Source

__all__ = ["ATTRIBUTES", "span_batches"]

ATTRIBUTES: Final = pa.schema(
    [
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("parent_id", pa.string()),
        ("service", pa.string()),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("event", pa.string()),
    ]
)

_TYPES: Final = pa.array(["SpanStart", "SpanEvent", "SpanEnd"])
_OWN: Final = len(ATTRIBUTES) - 1


def span_batches(source: Source, spans: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Yield the start of each span, what happened within it, and its end.

    A span is its attributes before ``event``, its start and end (-1: not known), pairs of a time and an event
    within it, what tells it from spans of the same id (else ""), and a dict of further attributes.
    """
    for *columns, starts, ends, within, apart, further_attributes in chunks(spans, _OWN + 5):
        count = len(starts)
        inner = [
            (row, place, *one)
            for row, inner_events in enumerate(within)
            for place, one in enumerate(inner_events)
        ]
        inside = np.array([row for row, *_ in inner], np.int64)
        begin, end = np.array(starts, np.int64), np.array(ends, np.int64)
        begun, ended = np.flatnonzero(begin >= 0), np.flatnonzero(end >= 0)
        rows = np.concatenate([begun, inside, ended])
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        phases = np.repeat([0, 1, 2], [len(begun), len(inner), len(ended)])[order]
        middle = np.array([time for _, _, time, _ in inner], np.int64)
        times = np.concatenate([begin[begun], middle, end[ended]])[order]
        suffixes = [":start", *(f":event:{place}" for _, place, _, _ in inner), ":end"]
        places = [np.zeros(len(begun), np.int64), np.arange(1, len(inner) + 1)]
        at = np.concatenate([*places, np.full(len(ended), len(inner) + 1)])[order]
        attributes = [pa.array(column, pa.string()) for column in columns]
        names = pc.binary_join_element_wise(attributes[0], attributes[1], ":")
        if any(apart):
            names = pc.binary_join_element_wise(names, pa.array(apart, pa.string()), "")
        said = pa.array([None, *(event for *_, event in inner), None], pa.string())
        taken = pa.array(rows if len(rows) else np.zeros(0, np.int64))
        further = pivoted(further_attributes, source.further) if count else {}
        yield batch_of(
            ATTRIBUTES,
            [
                _TYPES.take(pa.array(phases)),
                pc.binary_join_element_wise(names.take(taken), pa.array(suffixes).take(pa.array(at)), ""),
                *(times, times),
                *(column.take(taken) for column in attributes),
                said.take(pa.array(at)),
            ],
            {key: column.take(taken) for key, column in further.items()},
        )
