"""What an event that must stay out of runs of ticks leaves of the worlds of a match.

A run reaches from the largest of some times of the match, each with an offset, to the smallest of some
others; it may be empty unless bounds on the match's own times hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.config import MOST_UNITED
from confidence.timed.bounds import UNBOUND, Bounds
from confidence.timed.factors import Cells, Factor

__all__ = ["Grid", "Run", "factors_of"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

Ends = tuple[tuple[int, int], ...]


class Run(NamedTuple):
    """Ticks at which an event is forbidden.

    Attributes
    ----------
    gap : int
        Runs of different gaps have no tick in common.
    lowers, uppers : tuple of (time, offset)
        It reaches from the largest of the first to the smallest of the second, inclusive; of time -1 the
        offset alone.
    guards : dict
        Bounds that the match's own times meet, or there is no run.
    """

    gap: int
    lowers: Ends
    uppers: Ends
    guards: Bounds

    @property
    def times(self) -> frozenset[int]:
        """The times that it depends on."""
        ends = {time for time, _ in (*self.lowers, *self.uppers)}
        return frozenset(ends.union(*self.guards) - {-1})


class Grid:
    """The ticks of some times as the axes of tables.

    Parameters
    ----------
    first, last : (n,) int64
        Ticks, inclusive.
    """

    def __init__(self, first: Int64, last: Int64) -> None:
        self.first, self.last = first, last
        self.sizes: list[int] = (last - first + 1).tolist()

    def ticks(self, time: int, axes: Sequence[int]) -> Int64:
        """Return the ticks of a time along its axis of tables with some axes; -1: 0."""
        if time < 0:
            return np.zeros((1,) * len(axes), dtype=np.int64)
        found = np.arange(int(self.first[time]), int(self.last[time]) + 1)
        return found.reshape([-1 if axis == time else 1 for axis in axes])

    def shape(self, axes: Sequence[int]) -> list[int]:
        """Return the sizes of some axes."""
        return [self.sizes[axis] for axis in axes]

    def meets(self, bounds: Bounds, axes: Sequence[int]) -> NDArray[np.bool_]:
        """Return where bounds hold, as a table that broadcasts to the axes."""
        met = np.ones((1,) * len(axes), dtype=np.bool_)
        for (i, j), (low, high) in bounds.items():
            difference = self.ticks(i, axes) - self.ticks(j, axes)
            met = met & (difference >= low) & (difference <= high)
        return met

    def ends(self, run: Run, axes: Sequence[int]) -> tuple[Int64, Int64]:
        """Return the first and last tick of a run; where there is none, the first is behind the last."""
        low = np.full((1,) * len(axes), -UNBOUND, dtype=np.int64)
        high = -low
        for time, offset in run.lowers:
            low = np.maximum(low, self.ticks(time, axes) + offset)
        for time, offset in run.uppers:
            high = np.minimum(high, self.ticks(time, axes) + offset)
        return np.where(self.meets(run.guards, axes), low, UNBOUND), high


def factors_of(
    runs: Sequence[Run],
    lower: int,
    upper: int,
    pmf: Float64 | None,
    grid: Grid,
    cells: Cells,
    place: int,
    probability: float = 1.0,
) -> tuple[list[Factor], int]:
    """Return the factors of an event that is in none of its runs, and the ticks of a time of its own.

    Parameters
    ----------
    runs : sequence of Run
    lower, upper : int
        The event's ticks, inclusive.
    pmf : (upper - lower + 1,) float64 or None
        Uniform if None.
    grid : Grid
    cells : Cells
    place : int
        The number of a time of its own, should it be held; then its ticks are what is returned, else 0.
    probability : float
        That it happened at all.
    """

    def outside(values: Float64) -> list[Factor]:
        return [Factor(tuple(times), 1.0 - probability + probability * values)]

    times = sorted(frozenset[int]().union(*(run.times for run in runs)))
    gaps = [[run for run in runs if run.gap == gap] for gap in dict.fromkeys(run.gap for run in runs)]
    few = max(map(len, gaps)) <= MOST_UNITED
    apart = pmf is None or len(runs) == 1
    held = float(upper - lower + 1)
    together = float(np.prod([float(size) for size in grid.shape(times)]))
    separate = held * sum(
        float(np.prod([float(size) for size in grid.shape(sorted(run.times))])) for run in runs
    )
    if len(times) <= 2 or together <= separate:
        if few and apart:
            cells.take([*grid.shape(times), sum(2 ** len(gap) for gap in gaps)])
            return outside(_outside(gaps, lower, upper, pmf, grid, times)), 0
        if together <= separate:
            cells.take([*grid.shape(times), upper - lower + 1])
            return outside(_tick_by_tick(runs, lower, upper, pmf, grid, times)), 0
    # Given the event's own time, its gaps have nothing more to do with each other.
    size = upper - lower + 1
    weight = np.full(size, 1.0 / size) if pmf is None else pmf
    if probability < 1.0:
        # One tick more, on which it did not happen.
        weight = np.append(probability * weight, 1.0 - probability)
    found = [Factor((place,), weight)]
    ticks = np.arange(lower, upper + 1)
    for run in runs:
        axes = sorted(run.times)
        cells.take([*grid.shape(axes), size])
        low, high = (np.broadcast_to(end, grid.shape(axes))[..., None] for end in grid.ends(run, axes))
        free = (ticks < low) | (ticks > high)
        if probability < 1.0:
            free = np.concatenate((free, np.ones((*free.shape[:-1], 1), dtype=np.bool_)), axis=-1)
        found.append(Factor((*axes, place), free.astype(np.float64)))
    return found, len(weight)


def _outside(
    gaps: Sequence[Sequence[Run]],
    lower: int,
    upper: int,
    pmf: Float64 | None,
    grid: Grid,
    times: Sequence[int],
) -> Float64:
    """Return the probability that an event is in no run, for each choice of ticks of the times."""
    shape, size = grid.shape(times), upper - lower + 1
    if pmf is not None:
        low, high = grid.ends(gaps[0][0], times)
        head = np.concatenate((np.zeros(1), np.cumsum(pmf)))
        tail = np.concatenate((np.cumsum(pmf[::-1])[::-1], np.zeros(1)))
        before, behind = np.clip(low - lower, 0, size), np.clip(high + 1 - lower, 0, size)
        found = np.where(before < behind, head[before] + tail[behind], head[-1])
        return np.ascontiguousarray(np.broadcast_to(found, shape))
    inside = np.zeros(shape, dtype=np.int64)
    for gap in gaps:
        ends = [grid.ends(run, times) for run in gap]
        for count in range(1, len(ends) + 1):
            for chosen in combinations(ends, count):
                low, high = np.array(lower), np.array(upper)
                for first, last in chosen:
                    low, high = np.maximum(low, first), np.minimum(high, last)
                inside -= (-1) ** count * np.maximum(high - low + 1, 0)
    return np.maximum(size - inside, 0) / size


def _tick_by_tick(
    runs: Sequence[Run], lower: int, upper: int, pmf: Float64 | None, grid: Grid, times: Sequence[int]
) -> Float64:
    ends = [grid.ends(run, times) for run in runs]
    total = np.zeros(grid.shape(times))
    for k, tick in enumerate(range(lower, upper + 1)):
        inside = np.zeros(grid.shape(times), dtype=np.bool_)
        for low, high in ends:
            inside |= (low <= tick) & (tick <= high)
        total += np.where(inside, 0.0, 1.0 / (upper - lower + 1) if pmf is None else pmf[k])
    return total
