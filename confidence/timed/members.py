"""The number of events in spans of ticks of a match, and the probability that any is there.

As :mod:`confidence.gaps.between`, for spans whose ends depend on any of the match's times. Nothing is
subtracted, so that small probabilities keep their digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.timed.factors import Cells
from confidence.timed.forbidden_spans import Grid, Span

__all__ = ["Member", "Members", "members_of"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Member(NamedTuple):
    """An event, its ticks, inclusive, their probabilities, None for uniform ones, and its span.

    It happened at all with ``probability``.
    """

    lower: int
    upper: int
    pmf: Float64 | None
    span: Span
    probability: float = 1.0


class Members(NamedTuple):
    """Sums over the times of a match for events in their spans.

    Attributes
    ----------
    sums : tuple of float
        The probability of the times alone, and with an event in its span; the expected numbers of non-empty
        sets of such events, and of the events, of the times.
    some : float64 array
        For each choice of ticks the probability that some event is in its span.
    present : list of bool
        For each event whether it can be.
    first, last : int
        The ticks at which one can be.
    """

    sums: tuple[float, float, float, float]
    some: Float64
    present: list[bool]
    first: int
    last: int


def members_of(
    events: Sequence[Member], axes: Sequence[int], weight: Float64, grid: Grid, cells: Cells
) -> Members:
    """Sum up over the times that spans depend on.

    Parameters
    ----------
    events : sequence of Member
    axes : sequence of int
        The times, ascending.
    weight : float64 array
        The probability of each choice of their ticks.
    grid : Grid
    cells : Cells

    Raises
    ------
    TooManyCellsError
        If that takes too many cells.
    """
    one_or_more, sets, elements = np.zeros((3, *grid.shape(axes)))
    present, ends = [], []
    for event in events:
        cells.take([*grid.shape(axes), 1 if event.pmf is None else len(event.pmf)])
        chance, first, last = _chance(event, grid, axes)
        chance = event.probability * chance
        one_or_more += (1.0 - one_or_more) * chance
        sets += (1.0 + sets) * chance
        elements += chance
        met = (chance > 0.0) & (weight > 0.0)
        present.append(bool(met.any()))
        if present[-1]:
            ends.append((int(first[met].min()), int(last[met].max())))
    sums = tuple(
        float((weight * values).sum()) for values in (np.ones_like(one_or_more), one_or_more, sets, elements)
    )
    firsts, lasts = zip(*ends, strict=True) if ends else ((0,), (-1,))
    return Members((sums[0], sums[1], sums[2], sums[3]), one_or_more, present, min(firsts), max(lasts))


def _chance(event: Member, grid: Grid, axes: Sequence[int]) -> tuple[Float64, Int64, Int64]:
    """Return the probability that an event is in its span, and its first and last tick there."""
    low, high = (np.broadcast_to(end, grid.shape(axes)) for end in grid.ends(event.span, axes))
    low, high = np.maximum(low, event.lower), np.minimum(high, event.upper)
    if event.pmf is None:
        return np.maximum(high - low + 1, 0) / (event.upper - event.lower + 1), low, high
    chance = np.zeros(low.shape)
    first, last = np.full(low.shape, event.upper + 1), np.full(low.shape, event.lower - 1)
    for tick in (event.lower + np.flatnonzero(event.pmf > 0.0)).tolist():
        inside = (low <= tick) & (tick <= high)
        chance += np.where(inside, event.pmf[tick - event.lower], 0.0)
        first = np.where(inside, np.minimum(first, tick), first)
        last = np.where(inside, tick, last)
    return chance, first, last
