"""Spans in version 2 of Zipkin's JSON: a list of spans, or of traces that are lists of spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from uncertain_cep.traces.readers.source import Source, decoded
from uncertain_cep.traces.readers.spans import ATTRIBUTES, span_batches

__all__ = ["ATTRIBUTES", "events"]

Stamp = Annotated[int, Meta(ge=0, le=2**62)]


class _Endpoint(Struct, rename="camel"):
    service_name: str | None = None


class _Annotation(Struct):
    timestamp: Stamp
    value: str


class _Span(Struct, rename="camel"):
    trace_id: str
    id: str
    parent_id: str | None = None
    name: str | None = None
    kind: str | None = None
    timestamp: Stamp | None = None
    duration: Stamp | None = None
    shared: bool = False
    local_endpoint: _Endpoint = msgspec.field(default_factory=_Endpoint)
    annotations: list[_Annotation] = []
    tags: dict[str, str] = {}


_SPANS: Final = msgspec.json.Decoder(list[_Span])
_TRACES: Final = msgspec.json.Decoder(list[list[_Span]])


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the start, the annotations and the end of spans, by the clock of their service.

    Further attributes are the tags. Client and server may share the id of a span: then that of the server has
    ``:shared`` in the ids of its events.
    """
    yield from span_batches(source, _spans(source))


def _spans(source: Source) -> Iterator[tuple[Any, ...]]:
    text = source.document()
    nested = text.lstrip()[1:].lstrip().startswith(b"[")
    traces = decoded(_TRACES, text) if nested else [decoded(_SPANS, text)]
    for span in (span for trace in traces for span in trace):
        start, length = span.timestamp, span.duration
        yield (
            *(span.trace_id, span.id, span.parent_id, span.local_endpoint.service_name, span.name, span.kind),
            -1 if start is None else start,
            -1 if start is None or length is None else start + length,
            [(one.timestamp, one.value) for one in span.annotations],
            *(":shared" if span.shared else "", span.tags),
        )
