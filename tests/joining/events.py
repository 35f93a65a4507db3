"""Events of two tables, drawn, and all their times by exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

__all__ = ["Event", "Trace", "moments", "table_of", "times_of", "traces"]


@dataclass(frozen=True)
class Event:
    """An event by a clock whose offset is uniform on 0..width; None: by no clock."""

    begin: int
    weights: tuple[Fraction, ...]
    """Of the ticks of its own time, from ``begin`` on."""
    has_pmf: bool
    clock: str | None
    key: str | None
    probability: Fraction


Trace = tuple[list[Event], list[Event], dict[str, int]]
"""Left and right events, and how wide the offset of each clock is."""


@st.composite
def events(draw: st.DrawFn, clocks: tuple[str | None, ...]) -> Event:
    length = draw(st.sampled_from([1, 1, 2, 4]))
    weights = draw(st.lists(st.integers(0, 3), min_size=length, max_size=length).filter(any))
    has_pmf = draw(st.booleans())
    shares = tuple(Fraction(weight, sum(weights)) if has_pmf else Fraction(1, length) for weight in weights)
    key = draw(st.sampled_from(["u", "u", "v", None]))
    quarters = draw(st.sampled_from([4, 4, 3, 1]))
    clock = draw(st.sampled_from(clocks))
    return Event(draw(st.integers(0, 5)), shares, has_pmf, clock, key, Fraction(quarters, 4))


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    names = draw(st.sampled_from([(None,), (None, "g", "h")]))
    clocks = {name: draw(st.integers(0, 2)) for name in names if name}
    left = draw(st.lists(events(names), min_size=1, max_size=2))
    return left, draw(st.lists(events(names), min_size=1, max_size=3)), clocks


def table_of(side: list[Event], clocks: dict[str, int]) -> pa.Table:
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
    return pa.table(whole)


def times_of(worlds: list[Event], clocks: dict[str, int]) -> Iterator[tuple[Fraction, list[int]]]:
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
