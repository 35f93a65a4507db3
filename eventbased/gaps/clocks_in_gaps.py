"""Matches with uncertain times, and events in their gaps whose clocks stand in one gap each.

Given the times that end a gap, what the events of such a clock spoil there is independent of all else: it is
a factor over these two times, a mean over the offsets of the clock. So the offsets of clocks in different
gaps, and of several in one, add up instead of multiplying. The sum over the times of the match is one over a
chain of factors. Only clocks that the match's own events name, or that stand in several gaps, are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.budget import checkpoint
from confidence.chain.distribution import DOUBTFUL
from confidence.timed.bounds import UNBOUND, Bounds, tightened
from confidence.timed.factors import Cells, Factor, TooManyCellsError, law_of
from confidence.timed.forbidden_spans import Grid
from eventbased.gaps import fewer_offsets
from eventbased.gaps.fewer_offsets import Clocks
from eventbased.gaps.in_reach import SEVERAL, GapCandidates

__all__ = ["InGaps", "clocks_in_gaps", "weighed_by_gaps"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_MOST_IN_TABLE: Final = 1 << 22
"""Most cells of a table over the times of a match."""

_AT_ONCE: Final = 1 << 18
"""Cells over the offsets of a clock, and the times that end a gap, that are computed together."""


class _Law(NamedTuple):
    """Of an event that may spoil a match: its ticks, and their probabilities; None: uniform."""

    lower: int
    upper: int
    values: Float64 | None
    happened: float

    def spared(self, after: Int64, before: Int64) -> Float64:
        """Return the probability that it is not behind one tick and before another, a sum."""
        size = self.upper - self.lower + 1
        early = np.clip(after - self.lower + 1, 0, size)
        late = np.clip(self.upper - before + 1, 0, size)
        if self.values is None:
            outside = np.minimum((early + late) / size, 1.0)
        else:
            sums = np.concatenate(([0.0], np.cumsum(self.values)))
            back = np.concatenate(([0.0], np.cumsum(self.values[::-1])))
            outside = np.minimum(sums[early] + back[late], 1.0)
        return np.asarray(1.0 - self.happened + self.happened * outside)


class InGaps(NamedTuple):
    """How to weigh a match whose gaps have clocks of their own."""

    rows: Int64
    """(l,) int64. The match's events."""
    others: GapCandidates
    held: Int64
    """(h,) int64. The clocks that are held."""
    apart: Int64
    """(a,) int64. Those that stand in one gap."""


def clocks_in_gaps(
    clocks: Clocks,
    rows: Int64,
    others: GapCandidates,
    named: Int64,
    sizes: Int64,
    most: float,
    most_held: float,
) -> InGaps | None:
    """Return how to weigh a match by the gaps of its clocks; None if that is not possible, or dearer.

    Parameters
    ----------
    rows : (l,) int64
        The match's events.
    others : GapCandidates
        Those that may lie in its gaps.
    named : (c,) int64
        The clocks that several of these name.
    sizes : (l,) int64
        The ticks of the match's events, at most.
    most : float
        The choices of offsets that there are otherwise.
    most_held : float
        Most choices of the offsets of clocks that are held.
    """
    clock = clocks.own.clock[others.row]
    mine = np.isin(named, clocks.own.clock[rows])
    single = np.array([len(set(others.gap[clock == c].tolist()) | {SEVERAL}) == 2 for c in named.tolist()])
    apart, held = named[~mine & single], named[mine | ~single]
    if not len(apart) or (others.gap[~np.isin(clock, held)] == SEVERAL).any():
        return None
    choices = float(clocks.widths[held].prod())
    # A choice takes some hundred times as long as one of compiled kernels, a cell of a table a thousandth.
    cells = float(sizes.max()) ** 2 * float(clocks.widths[clock[np.isin(clock, apart)]].sum())
    if choices > most_held or not fewer_offsets.is_fewer(choices * (100.0 + cells / 1000.0), most):
        return None
    return InGaps(rows, others, held, apart)


def weighed_by_gaps(
    clocks: Clocks,
    in_gaps: InGaps,
    times: tuple[Int64, Int64, Int64],
    boxes: Int64,
    pmfs: Pmfs,
    window: int,
    most_steps: float,
) -> tuple[int, int, float] | None:
    """Return range and confidence of a match; None if that takes too many steps.

    An empty range and 0 are those of none.

    Parameters
    ----------
    times : tuple of (l,) int64
        Bounds of the times of its events whatever the offsets, ticks, and where their probabilities start.
    boxes : (2, l) int64, or (2, 0)
        First and last tick that is asked of each.
    window : int
        WITHIN, ticks.
    most_steps : float
        Most cells of tables that are computed.

    Notes
    -----
    O(choices of the clocks held * ticks^2 * (events that may spoil it + sum of the offsets of those of the
    clocks apart)), and more by a factor of the ticks where the window binds.
    """
    least, most, total = UNBOUND, -UNBOUND, 0.0
    cells, computed = Cells(most_steps, _MOST_IN_TABLE), Cells(most_steps, most_steps)
    try:
        for value in np.ndindex(*clocks.widths[in_gaps.held].astype(np.int64).tolist()):
            checkpoint()
            offset = np.array(value, dtype=np.int64) + clocks.offsets.lower[in_gaps.held]
            weight = float(clocks.chance(in_gaps.held, offset).prod())
            match = _MatchAtOffsets(clocks, in_gaps, offset, pmfs)
            grid = match.grid(times, boxes, window) if weight > 0.0 else None
            if grid is None:
                continue
            factors = [*match.own(times, grid, window, cells), *match.spared(grid, window, computed)]
            law = law_of([0], grid.sizes, factors, cells)
            possible = [Factor(axes, (values > 0.0).astype(np.float64)) for axes, values in factors]
            ends = (0, len(grid.sizes) - 1)
            first, last = (np.flatnonzero(law_of([end], grid.sizes, possible, cells)) for end in ends)
            if len(first):
                least = min(least, int(grid.first[0] + first[0]))
                most = max(most, int(grid.first[-1] + last[-1]))
                total += weight * float(law.sum())
    except TooManyCellsError:
        return None
    return (least, most, total) if least <= most else (1, 0, 0.0)


class _MatchAtOffsets:
    """A match given the offsets of the clocks that are held."""

    def __init__(self, clocks: Clocks, in_gaps: InGaps, offset: Int64, pmfs: Pmfs) -> None:
        self._clocks, self._in_gaps, self._pmfs = clocks, in_gaps, pmfs
        self._move = dict(zip(in_gaps.held.tolist(), offset.tolist(), strict=True))

    def grid(self, times: tuple[Int64, Int64, Int64], boxes: Int64, window: int) -> Grid | None:
        """Return the ticks that the match's events can have; None if there are none."""
        lower, upper, _ = self._times(times)
        if boxes.shape[1]:
            lower, upper = np.maximum(lower, boxes[0]), np.minimum(upper, boxes[1])
        tight = None if (lower > upper).any() else tightened(lower, upper, _order(len(lower), window))
        return None if tight is None else Grid(*tight)

    def _times(self, times: tuple[Int64, Int64, Int64]) -> tuple[Int64, Int64, Int64]:
        """Return bounds of the match's events, and where their probabilities start."""
        own, rows = self._clocks.own, self._in_gaps.rows
        lower, upper, law = (column.copy() for column in times)
        for n, row in enumerate(rows.tolist()):
            move = self._move.get(int(own.clock[row]))
            if move is not None:
                lower[n], upper[n] = own.lower[row] + move, own.upper[row] + move
                law[n] = own.offset[row]
        return lower, upper, law

    def own(
        self, times: tuple[Int64, Int64, Int64], grid: Grid, window: int, cells: Cells
    ) -> Iterator[Factor]:
        """Yield the laws of the match's times, and where they are in order and within the window."""
        lower, upper, law = self._times(times)
        for n, (first, size) in enumerate(zip(grid.first.tolist(), grid.sizes, strict=True)):
            begin = int(law[n]) + first - int(lower[n])
            values = np.full(size, 1.0 / float(upper[n] - lower[n] + 1))
            yield Factor((n,), values if law[n] < 0 else self._pmfs.values[begin : begin + size])
        for (later, earlier), (low, high) in _order(len(lower), window).items():
            least, most = (
                int(grid.first[later] - grid.last[earlier]),
                int(grid.last[later] - grid.first[earlier]),
            )
            if least < low or most > high:
                axes = earlier, later
                cells.take(grid.shape(axes))
                yield Factor(axes, grid.meets({(later, earlier): (low, high)}, axes).astype(np.float64))

    def spared(self, grid: Grid, window: int, cells: Cells) -> Iterator[Factor]:
        """Yield the probabilities that a gap is free of an event, or of those of a clock."""
        clock, others = self._clocks.own.clock[self._in_gaps.others.row], self._in_gaps.others
        apart = np.isin(clock, self._in_gaps.apart)
        for n in np.flatnonzero(~apart).tolist():
            checkpoint()
            move = self._move.get(int(clock[n]))
            law = self._law(others, n, move is not None)
            axes, after, before = _ends(int(others.gap[n]), grid, window)
            cells.take(grid.shape(axes))
            yield Factor(axes, law.spared(after - (move or 0), before - (move or 0)))
        for one in self._in_gaps.apart.tolist():
            own = np.flatnonzero(clock == one).tolist()
            laws = [self._law(others, n, True) for n in own]
            axes, after, before = _ends(int(others.gap[own[0]]), grid, window)
            yield Factor(axes, self._mean(one, laws, after, before, cells))

    def _mean(self, clock: int, laws: list[_Law], after: Int64, before: Int64, cells: Cells) -> Float64:
        """Return the probability that none of the events of a clock is between two ticks."""
        low, high = int(self._clocks.offsets.lower[clock]), int(self._clocks.offsets.upper[clock])
        shape = np.broadcast_shapes(after.shape, before.shape)
        cells.take([high - low + 1, len(laws), *shape])
        total = np.zeros(shape)
        step = max(_AT_ONCE // max(int(np.prod(shape)), 1), 1)
        for begin in range(low, high + 1, step):
            checkpoint()
            offset = np.arange(begin, min(begin + step, high + 1))
            move = offset.reshape(-1, *([1] * len(shape)))
            free = np.ones((len(offset), *shape))
            for law in laws:
                free *= law.spared(after - move, before - move)
            total += np.tensordot(self._clocks.chance(np.full(len(offset), clock), offset), free, 1)
        return total

    def _law(self, others: GapCandidates, n: int, by_clock: bool) -> _Law:
        """Return the law of an event that may spoil the match, by its clock if that is held."""
        own, row, values, happened = self._clocks.own, int(others.row[n]), self._pmfs.values, 1.0
        lower, upper, law = int(others.lower[n]), int(others.upper[n]), int(others.offset[n])
        if by_clock:
            lower, upper = int(own.lower[row]), int(own.upper[row])
            # Of what may not have happened the law by its clock comes next to that of its time.
            law = law - 2 if law <= DOUBTFUL else int(own.offset[row])
        if law <= DOUBTFUL:
            happened, law = float(values[DOUBTFUL - law]), int(values[DOUBTFUL - law + 1])
        return _Law(lower, upper, None if law < 0 else values[law : law + upper - lower + 1], happened)


def _order(length: int, window: int) -> Bounds:
    """Return how far apart the events of a match are."""
    found: Bounds = {(n, n - 1): (1, UNBOUND) for n in range(1, length)}
    if length > 1:
        found[length - 1, 0] = max(length - 1, 1), window - 1
    return found


def _ends(gap: int, grid: Grid, window: int) -> tuple[tuple[int, ...], Int64, Int64]:
    """Return the times that end a gap, and the ticks that it is behind, and before, along their axes."""
    last = len(grid.sizes) - 1
    early, late = (gap - 1, gap) if 0 < gap <= last else (last, 0)
    axes = tuple(sorted({early, late}))
    after, before = grid.ticks(early, axes), grid.ticks(late, axes)
    return axes, after - window * (gap == 0), before + window * (gap > last)
