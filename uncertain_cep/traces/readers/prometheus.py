"""Samples as Prometheus answers to queries, and as ``/api/v1/export`` of VictoriaMetrics writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Meta, Struct

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.metric_series import (
    NO_STEP,
    SERIES_ATTRIBUTES,
    Series,
    finite,
    labelled,
    series_batch,
    shortest_step,
)
from uncertain_cep.traces.readers.source import Source

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = SERIES_ATTRIBUTES

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


_BATCH: Final = 1 << 15
"""Samples that are made into columns at once."""


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the samples, of the type that their ``__name__`` says; their labels are further attributes.

    A sample at T tells of (T - step, T]. The step of an answer is the least distance between its stamps, that
    of an export the least within a series. Where there is one stamp only, the sample tells of T.
    """
    parts: list[_Samples] = []
    held = 0
    for row, response, _ in source.values(_DECODER):
        for part in _samples_of(response, row):
            parts.append(part)
            held += len(part.times)
            if held >= _BATCH:
                yield _batch(source, parts)
                parts, held = [], 0
    if parts:
        yield _batch(source, parts)


class _Samples(NamedTuple):
    """A series with its ms since 1970, values, and step."""

    series: Series
    times: Any
    values: Any
    step: int | None


def _samples_of(response: _Response, row: int) -> Iterator[_Samples]:
    if response.status == "error":
        raise TraceError(TraceFault(f"the query failed: {response.error}", row=row))
    if response.data is None:
        if len(response.values) != len(response.timestamps):
            raise TraceError(TraceFault("it has not as many values as timestamps", row=row))
        times = np.array(response.timestamps, np.int64)
        yield _Samples(
            _series(response.metric or {}),
            times,
            _numbers(response.values, row),
            shortest_step(response.timestamps),
        )
        return
    each = []
    for one in response.data.result:
        samples = one.values if one.value is None else [*one.values, one.value]
        seconds = np.array([time for time, _ in samples], float)
        times = np.rint(seconds * 1000).astype(np.int64)
        each.append((_series(one.metric), times, [value for _, value in samples]))
    step = shortest_step(time for _, times, _ in each for time in times.tolist())
    for series, times, values in each:
        yield _Samples(series, times, _numbers(values, row), step)


def _numbers(values: Sequence[float | str | None], row: int) -> Any:
    try:
        return np.array(values, float)
    except ValueError:
        for value in values:
            try:
                finite(value)
            except ValueError:
                fault = TraceFault("the value is no number", row=row, value=repr(value)[:60])
                raise TraceError(fault) from None
        raise


def _series(metric: dict[str, str]) -> Series:
    labels = dict(metric)
    name = labels.pop("__name__", "Metric")
    return Series(name, labels, labelled(name, labels))


def _batch(source: Source, parts: Sequence[_Samples]) -> pa.RecordBatch:
    sizes = [len(part.times) for part in parts]
    steps = np.array([NO_STEP if part.step is None else part.step for part in parts])
    return series_batch(
        source.further,
        [part.series for part in parts],
        np.repeat(np.arange(len(parts)), sizes),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.repeat(steps, sizes),
    )
