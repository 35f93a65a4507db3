"""Metrics as ``aws cloudwatch get-metric-data`` and ``get-metric-statistics`` print them as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.event_columns import in_batches
from uncertain_cep.traces.readers.metric_series import shortest_step
from uncertain_cep.traces.readers.source import Source

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = pa.schema(
    [
        ("value", pa.float64()),
        ("statistic", pa.string()),
        ("unit", pa.string()),
        ("query", pa.string()),
        ("period_s", pa.int64()),
    ]
)

_STATISTICS: Final = ("SampleCount", "Average", "Sum", "Minimum", "Maximum")
Stamp = datetime | float


class _Result(Struct, rename="pascal"):
    timestamps: list[Stamp]
    values: list[float]
    id: str | None = None
    label: str | None = None


class _Point(Struct, rename="pascal"):
    timestamp: Stamp
    sample_count: float | None = None
    average: float | None = None
    sum: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    extended_statistics: dict[str, float] = {}
    unit: str | None = None


class _Response(Struct, rename="pascal"):
    """An answer of either command."""

    metric_data_results: list[_Result] | None = None
    datapoints: list[_Point] | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if self.metric_data_results is None and self.datapoints is None:
            raise ValueError("Object missing required field `MetricDataResults` or `Datapoints`")


_DECODER: Final = msgspec.json.Decoder(_Response)


@in_batches(ATTRIBUTES)
def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the values, of the type that their label says.

    A value stamped T tells of the period [T, T + p). The period is the least distance between stamps of the
    metric; where there is one stamp only, the value tells of T.
    """
    for row, response, _ in source.values(_DECODER):
        for result in response.metric_data_results or ():
            if len(result.values) != len(result.timestamps):
                raise TraceError(TraceFault("it has not as many values as timestamps", row=row))
            name = result.label or result.id or "Metric"
            times = [_seconds(stamp, row) for stamp in result.timestamps]
            period = shortest_step(times)
            for time, value in zip(times, result.values, strict=True):
                identifier, end = f"{result.id}:{name}:{time}", time + (period or 1) - 1
                yield name, identifier, time, end, value, None, None, result.id, period, {}
        points = response.datapoints or []
        name = response.label or "Metric"
        times = [_seconds(point.timestamp, row) for point in points]
        period = shortest_step(times)
        for time, point in zip(times, points, strict=True):
            simple = (point.sample_count, point.average, point.sum, point.minimum, point.maximum)
            for statistic, number in (
                *zip(_STATISTICS, simple, strict=True), *point.extended_statistics.items(),
            ):  # fmt: skip
                if number is not None:
                    identifier = f"{name}:{statistic}:{time}"
                    end = time + (period or 1) - 1
                    yield name, identifier, time, end, number, statistic, point.unit, None, period, {}


def _seconds(stamp: Stamp, row: int) -> int:
    if isinstance(stamp, datetime):
        return int((stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp())
    if not 0 <= stamp < 2**40:
        raise TraceError(TraceFault("the timestamp is out of range", row=row, value=str(stamp)))
    return int(stamp)
