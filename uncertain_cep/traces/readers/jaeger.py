"""Spans as the HTTP interface of Jaeger's query service, and its web page, return them."""

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


_NAMES: Final = {
    "trace": "traceID", "span": "spanID", "name": "operationName", "start": "startTime",
    "process": "processID",
}  # fmt: skip


class _Tag(Struct):
    key: str
    value: Any = None


class _Log(Struct):
    timestamp: Stamp
    fields: list[_Tag] = []


class _Reference(Struct, rename={"kind": "refType", "span": "spanID"}):
    kind: str
    span: str


class _Process(Struct, rename="camel"):
    service_name: str | None = None
    tags: list[_Tag] = []


class _Span(Struct, rename=_NAMES):
    trace: str
    span: str
    start: Stamp
    duration: Stamp
    name: str | None = None
    process: str | None = None
    references: list[_Reference] | None = None
    tags: list[_Tag] | None = None
    logs: list[_Log] | None = None


class _Trace(Struct):
    spans: list[_Span] = []
    processes: dict[str, _Process] = {}


class _Document(Struct):
    data: list[_Trace]


_DECODER: Final = msgspec.json.Decoder(_Document)


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the start, the logs and the end of spans, by the clock of their service.

    Further attributes are the tags of the span, and those of its process with ``process.`` before.
    """
    yield from span_batches(source, _spans(source))


def _spans(source: Source) -> Iterator[tuple[Any, ...]]:
    for trace in decoded(_DECODER, source.document()).data:
        abouts = {
            name: (process.service_name, {f"process.{tag.key}": tag.value for tag in process.tags})
            for name, process in trace.processes.items()
        }
        for span in trace.spans:
            service, about = abouts.get(span.process or "", (None, {}))
            tags = {tag.key: tag.value for tag in span.tags or ()}
            parent = next((one.span for one in span.references or () if one.kind == "CHILD_OF"), None)
            kind = tags.get("span.kind")
            yield (
                *(span.trace, span.span, parent, service, span.name, str(kind).upper() if kind else None),
                *(span.start, span.start + span.duration),
                [(log.timestamp, _event(log)) for log in span.logs] if span.logs else (),
                *("", tags | about),
            )


def _event(log: _Log) -> str | None:
    named = {tag.key: tag.value for tag in log.fields}
    message = named.get("event", named.get("message"))
    return None if message is None else str(message)
