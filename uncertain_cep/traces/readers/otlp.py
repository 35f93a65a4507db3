"""Spans in OTLP as JSON: what the file exporter of an OpenTelemetry collector writes, or one request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from itertools import chain
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from uncertain_cep.errors import TraceError
from uncertain_cep.running.in_order import in_order
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.readers import otlp_columns
from uncertain_cep.traces.readers.otlp_columns import SPAN_KINDS
from uncertain_cep.traces.readers.source import Source
from uncertain_cep.traces.readers.spans import ATTRIBUTES, span_batch, span_batches

__all__ = ["ATTRIBUTES", "Pair", "Resource", "events", "plain_value"]

# Whole numbers of 64 bits are texts in JSON of Protocol Buffers.
Stamp = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Pair(Struct):
    """An attribute."""

    key: str
    value: dict[str, Any] = {}


class _Within(Struct, rename="camel"):
    time_unix_nano: Stamp
    name: str | None = None


class _Span(Struct, rename="camel"):
    trace_id: str
    span_id: str
    start_time_unix_nano: Stamp
    end_time_unix_nano: Stamp
    parent_span_id: str | None = None
    name: str | None = None
    kind: int | str | None = None
    attributes: list[Pair] = []
    events: list[_Within] = []


class _Scope(Struct):
    spans: list[_Span] = []


class Resource(Struct):
    """The attributes of the program or host that spans or metrics are from."""

    attributes: list[Pair] = []


class _ResourceSpans(Struct, rename="camel"):
    resource: Resource = msgspec.field(default_factory=Resource)
    scope_spans: list[_Scope] = []
    # Its name before 1.0.
    instrumentation_library_spans: list[_Scope] = []


class _Request(Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] | None = None
    # Metrics and logs may be in the same file.
    resource_metrics: msgspec.Raw = msgspec.Raw()
    resource_logs: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        further = (self.resource_metrics, self.resource_logs)
        if self.resource_spans is None and all(bytes(raw) in (b"", b"null") for raw in further):
            raise ValueError("Object missing required field `resourceSpans`")


_DECODER: Final = msgspec.json.Decoder(_Request, strict=False)


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the start, the events and the end of spans, by the clock of their service.

    Further attributes are those of the span, and those of the resource with ``resource.`` before.
    """
    pieces = in_order(reading_threads(), source.pieces(), partial(_read, source.further))
    before = 0
    for piece, count, batch in pieces:
        if count is None:
            try:
                requests = list(_requests(piece, before))
            except TraceError:
                # An object may go on in the next piece.
                behind = chain([piece], (text for text, *_ in pieces))
                stream: Any = _Joined(behind)
                requests_behind = Source(stream, source.path).values(_DECODER, before)
                yield from span_batches(source, _spans(request for _, request, _ in requests_behind))
                return
            yield from span_batches(source, _spans(requests))
            before += len(requests)
        else:
            before += count
            if batch is not None:
                yield batch


class _Joined:
    """A stream of pieces of a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; none at the end."""
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        data, self._rest = self._rest[:size], self._rest[size:]
        return bytes(data)


def _requests(piece: bytes, before: int) -> Iterator[_Request]:
    """Yield the requests of a piece, behind the number of those before."""
    stream: Any = BytesIO(piece)
    for _, request, _ in Source(stream, "").values(_DECODER, before):
        yield request


def _read(further: frozenset[str] | None, piece: bytes) -> tuple[bytes, int | None, pa.RecordBatch | None]:
    """Return a piece, how many requests it has, and their events if there are any.

    There is no number if its requests have to be read one by one.
    """
    tree = otlp_columns.PATHS.read(piece, breaks=True)
    columns = None if tree is None else otlp_columns.spans_of(tree, further, plain_value)
    if tree is None or columns is None:
        return piece, None, None
    return piece, tree.count(), span_batch(*columns) if tree.count("span") else None


def _spans(requests: Iterable[_Request]) -> Iterator[tuple[Any, ...]]:
    for request in requests:
        for resource in request.resource_spans or ():
            about = {f"resource.{pair.key}": plain_value(pair.value) for pair in resource.resource.attributes}
            service = about.get("resource.service.name")
            service = None if service is None else str(service)
            for scope in (*resource.scope_spans, *resource.instrumentation_library_spans):
                for span in scope.spans:
                    kind = span.kind
                    if isinstance(kind, int):
                        kind = SPAN_KINDS[kind] if 0 <= kind < len(SPAN_KINDS) else str(kind)
                    yield (
                        *(span.trace_id, span.span_id, span.parent_span_id or None, service, span.name),
                        *(kind and kind.removeprefix("SPAN_KIND_"), span.start_time_unix_nano),
                        # 0 for one that has not ended.
                        span.end_time_unix_nano or -1,
                        [(one.time_unix_nano, one.name) for one in span.events],
                        *("", about | {pair.key: plain_value(pair.value) for pair in span.attributes}),
                    )


def plain_value(value: dict[str, Any]) -> Any:
    """Return the value of an attribute, such as ``{"stringValue": "x"}``; lists as JSON text."""
    for kind, content in value.items():
        if kind == "intValue":
            return int(content) if str(content).lstrip("-").isdigit() else None
        return msgspec.json.encode(content).decode() if isinstance(content, (dict, list)) else content
    return None
