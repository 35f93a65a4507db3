"""Samples as Prometheus answers to queries, and as ``/api/v1/export`` of VictoriaMetrics writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.event_columns import in_batches
from uncertain_cep.traces.readers.metric_series import finite, labelled, shortest_step
from uncertain_cep.traces.readers.source import Source

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = pa.schema([("value", pa.float64()), ("step_ms", pa.int64())])

Seconds = Annotated[float, Meta(ge=0, le=2**53)]
Milliseconds = Annotated[int, Meta(ge=0, le=2**62)]
Sample = tuple[Seconds, str | float]


class _Series(Struct):
    metric: dict[str, str]
    values: list[Sample] = []
    value: Sample | None = None


class _Data(Struct):
    result: list[_Series]


class _Response(Struct):
    """An answer, or a line of an export."""

    data: _Data | None = None
    status: str | None = None
    error: str | None = None
    metric: dict[str, str] | None = None
    values: list[float | str | None] = []
    timestamps: list[Milliseconds] = []

    def __post_init__(self) -> None:
        if self.data is None and self.metric is None and self.status != "error":
            raise ValueError("Object missing required field `data` or `metric`")


_DECODER: Final = msgspec.json.Decoder(_Response)


@in_batches(ATTRIBUTES)
def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the samples, of the type that their ``__name__`` says; their labels are further attributes.

    A sample at T tells of (T - step, T]. The step of an answer is the least distance between its stamps, that
    of an export the least within a series. Where there is one stamp only, the sample tells of T.
    """
    for row, response, _ in source.values(_DECODER):
        if response.status == "error":
            raise TraceError(TraceFault(f"the query failed: {response.error}", row=row))
        if response.data is not None:
            results = [
                (one.metric, [(_milliseconds(time), value) for time, value in _samples(one)])
                for one in response.data.result
            ]
            step = shortest_step(time for _, samples in results for time, _ in samples)
            for labels, samples in results:
                yield from _events(labels, samples, step, row)
        else:
            if len(response.values) != len(response.timestamps):
                raise TraceError(TraceFault("it has not as many values as timestamps", row=row))
            pairs = zip(response.timestamps, response.values, strict=True)
            yield from _events(response.metric or {}, pairs, shortest_step(response.timestamps), row)


def _samples(series: _Series) -> list[Sample]:
    return series.values if series.value is None else [*series.values, series.value]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _events(
    metric: dict[str, str], samples: Iterable[tuple[int, float | str | None]], step: int | None, row: int
) -> Iterator[tuple[Any, ...]]:
    labels = dict(metric)
    name = labels.pop("__name__", "Metric")
    series = labelled(name, labels)
    for time, value in samples:
        try:
            number = finite(value)
        except ValueError:
            raise TraceError(TraceFault("the value is no number", row=row, value=repr(value)[:60])) from None
        yield name, f"{series}:{time}", time - (step or 1) + 1, time, number, step, labels
