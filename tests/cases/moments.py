"""Moments by clocks, drawn, and all their times by exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

__all__ = ["Moment", "clocked_moments", "moments", "table_of", "times_of"]


@dataclass(frozen=True)
class Moment:
    """An event at one tick, by a clock whose offset is uniform on 0..width; None: by no clock."""

    begin: int
    weights: tuple[Fraction, ...]
    """Of the ticks of its own time, from ``begin`` on."""
    has_pmf: bool
    clock: str | None
    key: str | None
    sequence: int | None
    probability: Fraction


@st.composite
def clocked_moments(draw: st.DrawFn, clocks: tuple[str | None, ...]) -> Moment:
    """Draw an event by one of some clocks."""
    length = draw(st.sampled_from([1, 1, 2, 4]))
    weights = draw(st.lists(st.integers(0, 3), min_size=length, max_size=length).filter(any))
    has_pmf = draw(st.booleans())
    shares = tuple(Fraction(weight, sum(weights)) if has_pmf else Fraction(1, length) for weight in weights)
    key = draw(st.sampled_from(["u", "u", "v", None]))
    quarters = draw(st.sampled_from([4, 4, 3, 1]))
    clock = draw(st.sampled_from(clocks))
    sequence = draw(st.none() | st.integers(1, 3)) if clock else None
    begin = draw(st.integers(0, 5))
    return Moment(begin, shares, has_pmf, clock, key, sequence, Fraction(quarters, 4))


def table_of(side: list[Moment], clocks: dict[str, int], *, sequences: bool = False) -> pa.Table:
    """Return events of the model, numbered from 0."""
    widths = [clocks.get(event.clock or "", 0) for event in side]
    ends = [event.begin + len(event.weights) - 1 + width for event, width in zip(side, widths, strict=True)]
    pmfs = [[float(weight) for weight in event.weights] if event.has_pmf else None for event in side]
    whole = {
        "type": pa.array(["E"] * len(side)),
        "id": pa.array(range(len(side)), pa.int64()),
        "lower": pa.array([event.begin for event in side]),
        "upper": pa.array(ends),
        "pmf": pa.array(pmfs, pa.list_(pa.float64())),
        "key": pa.array([event.key for event in side], pa.string()),
        "probability": pa.array([float(event.probability) for event in side]),
    }
    if clocks:
        whole["source"] = pa.array([event.clock for event in side], pa.string())
        whole["offset_lower"] = pa.array([0 if event.clock else None for event in side], pa.int64())
        whole["offset_upper"] = pa.array(
            [width if event.clock else None for event, width in zip(side, widths, strict=True)], pa.int64()
        )
    if sequences:
        whole["sequence"] = pa.array([event.sequence for event in side], pa.int64())
    return pa.table(whole)


def times_of(worlds: list[Moment], clocks: dict[str, int]) -> Iterator[tuple[Fraction, list[int]]]:
    """Yield all times of some events, with their probability."""
    names = sorted(clocks)
    for offsets in product(*(range(clocks[name] + 1) for name in names)):
        of_clock = dict(zip(names, offsets, strict=True))
        share = Fraction(1, math.prod(clocks[name] + 1 for name in names))
        weighed = [[(w, e.begin + n) for n, w in enumerate(e.weights) if w] for e in worlds]
        for ticks in product(*weighed):
            moved = [t + of_clock.get(e.clock or "", 0) for (_, t), e in zip(ticks, worlds, strict=True)]
            yield share * math.prod((w for w, _ in ticks), start=Fraction(1)), moved


def moments(ids: list[Any], lower: list[Any], upper: list[Any], **columns: Any) -> pa.Table:
    """Return points of a type, with further columns."""
    return pa.table({"type": ["A"] * len(ids), "id": ids, "lower": lower, "upper": upper, **columns})
