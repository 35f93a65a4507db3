"""Metrics in OTLP as JSON, of any kinds: what the file exporter of an OpenTelemetry collector writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.event_columns import in_batches
from uncertain_cep.traces.readers.metric_series import finite, labelled
from uncertain_cep.traces.readers.otlp import Pair, Resource, plain_value
from uncertain_cep.traces.readers.source import Source

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = pa.schema(
    [
        ("kind", pa.string()), ("unit", pa.string()), ("value", pa.float64()), ("count", pa.int64()),
        ("sum", pa.float64()), ("min", pa.float64()), ("max", pa.float64()),
    ]
)  # fmt: skip

# Whole numbers of 64 bits are texts in JSON of Protocol Buffers.
Stamp = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_DELTA: Final = (1, "1", "AGGREGATION_TEMPORALITY_DELTA")


class _Point(Struct, rename="camel"):
    time_unix_nano: Stamp
    start_time_unix_nano: Stamp = 0
    attributes: list[Pair] = []
    as_double: float | str | None = None
    as_int: int | str | None = None
    count: Count | None = None
    sum: float | str | None = None
    min: float | str | None = None
    max: float | str | None = None


class _Points(Struct, rename="camel"):
    data_points: list[_Point] = []
    aggregation_temporality: int | str | None = None


class _Metric(Struct, rename="camel"):
    name: str
    unit: str | None = None
    gauge: _Points | None = None
    sum: _Points | None = None
    histogram: _Points | None = None
    exponential_histogram: _Points | None = None
    summary: _Points | None = None


class _Scope(Struct):
    metrics: list[_Metric] = []


class _ResourceMetrics(Struct, rename="camel"):
    resource: Resource = msgspec.field(default_factory=Resource)
    scope_metrics: list[_Scope] = []
    # Its name before 1.0.
    instrumentation_library_metrics: list[_Scope] = []


class _Request(Struct, rename="camel"):
    resource_metrics: list[_ResourceMetrics] | None = None
    # Spans and logs may be in the same file.
    resource_spans: msgspec.Raw = msgspec.Raw()
    resource_logs: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        further = (self.resource_spans, self.resource_logs)
        if self.resource_metrics is None and all(bytes(raw) in (b"", b"null") for raw in further):
            raise ValueError("Object missing required field `resourceMetrics`")


_DECODER: Final = msgspec.json.Decoder(_Request, strict=False)
_KINDS: Final = ("gauge", "sum", "histogram", "exponential_histogram", "summary")


@in_batches(ATTRIBUTES)
def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the data points, of the type of their metric; labels and those of the resource are attributes.

    A point of a delta tells of all from its start to its stamp, without the start; others of the stamp.
    """
    for row, request, _ in source.values(_DECODER):
        for resource in request.resource_metrics or ():
            about = {f"resource.{pair.key}": plain_value(pair.value) for pair in resource.resource.attributes}
            for scope in (*resource.scope_metrics, *resource.instrumentation_library_metrics):
                for metric in scope.metrics:
                    try:
                        yield from _events(metric, about)
                    except ValueError:
                        fault = TraceFault("a value is no number", row=row, value=metric.name[:60])
                        raise TraceError(fault) from None


def _events(metric: _Metric, about: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for kind in _KINDS:
        points: _Points | None = getattr(metric, kind)
        if points is None:
            continue
        is_delta = points.aggregation_temporality in _DELTA
        for point in points.data_points:
            labels = {pair.key: plain_value(pair.value) for pair in point.attributes}
            series = labelled(metric.name, {name: str(value) for name, value in (about | labels).items()})
            time = point.time_unix_nano
            begins = is_delta and 0 < point.start_time_unix_nano < time
            yield (
                *(metric.name, f"{series}:{time}", point.start_time_unix_nano + 1 if begins else time, time),
                *(kind, metric.unit, finite(point.as_int if point.as_double is None else point.as_double)),
                *(point.count, *(finite(value) for value in (point.sum, point.min, point.max))),
                about | labels,
            )
