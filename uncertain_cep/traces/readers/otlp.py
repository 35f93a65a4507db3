"""Spans in OTLP as JSON: what the file exporter of an OpenTelemetry collector writes, or one request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from uncertain_cep.traces.readers.source import Source
from uncertain_cep.traces.readers.spans import ATTRIBUTES, span_batches

__all__ = ["ATTRIBUTES", "events"]

# Whole numbers of 64 bits are texts in JSON of Protocol Buffers.
Stamp = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class _Pair(Struct):
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
    attributes: list[_Pair] = []
    events: list[_Within] = []


class _Scope(Struct):
    spans: list[_Span] = []


class _Resource(Struct):
    attributes: list[_Pair] = []


class _ResourceSpans(Struct, rename="camel"):
    resource: _Resource = msgspec.field(default_factory=_Resource)
    scope_spans: list[_Scope] = []
    # Its name before 1.0.
    instrumentation_library_spans: list[_Scope] = []


class _Request(Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] | None = None
    # Metrics and logs may be in the same file.
    resource_metrics: msgspec.Raw | None = None
    resource_logs: msgspec.Raw | None = None

    def __post_init__(self) -> None:
        if self.resource_spans is None and self.resource_metrics is None and self.resource_logs is None:
            raise ValueError("Object missing required field `resourceSpans`")


_DECODER: Final = msgspec.json.Decoder(_Request, strict=False)
_KINDS: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the start, the events and the end of spans, by the clock of their service.

    Further attributes are those of the span, and those of the resource with ``resource.`` before.
    """
    yield from span_batches(source, _spans(source))


def _spans(source: Source) -> Iterator[tuple[Any, ...]]:
    for _, request, _ in source.values(_DECODER):
        for resource in request.resource_spans or ():
            about = {f"resource.{pair.key}": _plain(pair.value) for pair in resource.resource.attributes}
            service = about.get("resource.service.name")
            service = None if service is None else str(service)
            for scope in (*resource.scope_spans, *resource.instrumentation_library_spans):
                for span in scope.spans:
                    kind = span.kind
                    if isinstance(kind, int):
                        kind = _KINDS[kind] if 0 <= kind < len(_KINDS) else str(kind)
                    yield (
                        *(span.trace_id, span.span_id, span.parent_span_id or None, service, span.name),
                        *(kind and kind.removeprefix("SPAN_KIND_"), span.start_time_unix_nano),
                        # 0 for one that has not ended.
                        span.end_time_unix_nano or -1,
                        [(one.time_unix_nano, one.name) for one in span.events],
                        *("", about | {pair.key: _plain(pair.value) for pair in span.attributes}),
                    )


def _plain(value: dict[str, Any]) -> Any:
    """Return the value of an attribute, such as ``{"stringValue": "x"}``; lists as JSON text."""
    for kind, content in value.items():
        if kind == "intValue":
            return int(content) if str(content).lstrip("-").isdigit() else None
        return msgspec.json.encode(content).decode() if isinstance(content, (dict, list)) else content
    return None
