"""The common part of formats of distributed traces: a span has a start, an end and events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.traces.readers.event_columns import batch_of, chunks, pivoted
from uncertain_cep.traces.readers.source import Source

__all__ = ["ATTRIBUTES", "Within", "span_batch", "span_batches"]

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
        inner = [
            (row, place, *one)
            for row, inner_events in enumerate(within)
            for place, one in enumerate(inner_events)
        ]
        inside = Within(
            np.array([row for row, *_ in inner], np.int64),
            np.array([place for _, place, _, _ in inner], np.int64),
            np.array([time for _, _, time, _ in inner], np.int64),
            pa.array([event for *_, event in inner], pa.string()),
        )
        yield span_batch(
            [pa.array(column, pa.string()) for column in columns],
            np.array(starts, np.int64),
            np.array(ends, np.int64),
            inside,
            pivoted(further_attributes, source.further) if starts else {},
            pa.array(apart, pa.string()) if any(apart) else None,
        )


class Within(NamedTuple):
    """The events of spans, in the order of the spans."""

    spans: Any
    """(k,) int64: the span of each."""
    places: Any
    """(k,) int64: which of its span's it is."""
    times: Any
    """(k,) int64"""
    names: pa.Array


def span_batch(
    attributes: Sequence[pa.Array],
    begin: Any,
    end: Any,
    inside: Within,
    further: Mapping[str, pa.Array],
    apart: pa.Array | None = None,
) -> pa.RecordBatch:
    """Return the start of each span, what happened within it, and its end; see `span_batches`."""
    begun, ended = np.flatnonzero(begin >= 0), np.flatnonzero(end >= 0)
    count = len(inside.spans)
    rows = np.concatenate([begun, inside.spans, ended])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    phases = np.repeat([0, 1, 2], [len(begun), count, len(ended)])[order]
    times = np.concatenate([begin[begun], inside.times, end[ended]])[order]
    suffixes = [":start", *(f":event:{place}" for place in inside.places.tolist()), ":end"]
    places = [np.zeros(len(begun), np.int64), np.arange(1, count + 1)]
    at = pa.array(np.concatenate([*places, np.full(len(ended), count + 1)])[order])
    names = pc.binary_join_element_wise(attributes[0], attributes[1], ":")
    if apart is not None:
        names = pc.binary_join_element_wise(names, apart, "")
    nothing = pa.nulls(1, pa.string())
    said = pa.concat_arrays([nothing, inside.names, nothing])
    taken = pa.array(rows if len(rows) else np.zeros(0, np.int64))
    return batch_of(
        ATTRIBUTES,
        [
            _TYPES.take(pa.array(phases)),
            pc.binary_join_element_wise(names.take(taken), pa.array(suffixes).take(at), ""),
            *(times, times),
            *(column.take(taken) for column in attributes),
            said.take(at),
        ],
        {key: column.take(taken) for key, column in further.items()},
    )
