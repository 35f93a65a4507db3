"""The common part of metrics: values at stamps that are a step apart."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.traces.readers.event_columns import batch_of, wanted_names

__all__ = [
    "NO_STEP",
    "SERIES_ATTRIBUTES",
    "Series",
    "finite",
    "labelled",
    "series_batch",
    "shortest_step",
]

SERIES_ATTRIBUTES: Final = pa.schema([("value", pa.float64()), ("step_ms", pa.int64())])
"""The attributes of samples, besides their labels."""

NO_STEP: Final = np.iinfo(np.int64).max
"""The step of a sample that has none."""


class Series(NamedTuple):
    """A series: its name, its labels, and both as one text."""

    name: str
    labels: Mapping[str, str]
    text: str


def shortest_step(stamps: Iterable[int]) -> int | None:
    """Return the least distance between different stamps, in any order; None if there are not two."""
    return min((after - before for before, after in pairwise(sorted(set(stamps)))), default=None)


def finite(value: float | str | None) -> float | None:
    """Return a value as a number; None for what is no number, or infinite."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def labelled(name: str, labels: Mapping[str, str]) -> str:
    """Return the name of a series with its labels."""
    inside = ",".join(f"{label}={value}" for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name


def series_batch(
    further: Collection[str] | None,
    series: Sequence[Series],
    numbers: Any,
    values: Any,
    times: Any,
    steps: Any,
) -> pa.RecordBatch:
    """Return samples as events: each tells of the step up to its stamp, or of the stamp if it has none.

    Parameters
    ----------
    further : collection of str or None
        The labels that are of use; None: all.
    series : sequence of Series
    numbers : (n,) int64
        The place of each sample's series.
    values : (n,) float64
        Those that are not finite become null.
    times, steps : (n,) int64
        Milliseconds since 1970, and of a step, or `NO_STEP`.
    """
    distinct, codes = np.unique(numbers, return_inverse=True)
    present = [series[number] for number in distinct.tolist()]
    rows = pa.array(codes)

    def column(texts: Sequence[str | None]) -> pa.Array:
        return pa.array(texts, pa.string()).take(rows)

    names = wanted_names({label for one in present for label in one.labels}, further)
    has_step = steps != NO_STEP
    columns = [
        column([one.name for one in present]),
        pc.binary_join_element_wise(
            column([one.text for one in present]), pa.array(times).cast(pa.string()), ":"
        ),
        times - np.where(has_step, steps, 1) + 1,
        times,
        pa.array(values, mask=~np.isfinite(values)),
        pa.array(steps, mask=~has_step),
    ]
    labels = {name: column([one.labels.get(name) for one in present]) for name in names}
    return batch_of(SERIES_ATTRIBUTES, columns, labels)
