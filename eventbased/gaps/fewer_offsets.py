"""Fewer choices of offsets than all, where events are certain by their clocks.

- What a match asks of two events that are certain is which is first, or whether they tie, and whether both
  are within the window. As one of them moves with an offset, or with the difference of two, that changes
  where they meet, a tick behind that, and where they are the window, or a tick less, apart. Over a *segment*
  between confidences stay the same.
- Given the offsets of its own clocks, a match that is certain by them has certain times. What the events of
  each other clock spoil is then independent of what those of another one do: the confidence is a product over
  these clocks, whose offsets are gone through one clock after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.shared.held import Offsets, OwnTimes

__all__ = ["Clocks", "SplitOffsets", "ends_of_segments", "is_fewer", "one_by_one"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Clocks(NamedTuple):
    """Events by their clocks."""

    own: OwnTimes
    offsets: Offsets
    values: Float64
    """(p,) float64. Probabilities that both refer to."""

    @property
    def widths(self) -> Float64:
        """How many offsets each clock can have, (c,) float64."""
        return (self.offsets.upper - self.offsets.lower + 1).astype(np.float64)

    def is_certain(self, rows: Int64) -> bool:
        """Return whether events have one tick by their clocks."""
        return bool((self.own.lower[rows] == self.own.upper[rows]).all())

    def chance(self, clock: Int64, value: Int64) -> Float64:
        """Return the probabilities of offsets that clocks can have, of one shape both."""
        lower, upper, law = (column[clock] for column in self.offsets)
        chance = 1.0 / (upper - lower + 1).astype(np.float64)
        if (law >= 0).any():
            chance = np.where(law >= 0, self.values[np.where(law >= 0, law + value - lower, 0)], chance)
        return np.asarray(chance)


class SplitOffsets(NamedTuple):
    """Offsets of a match's own clocks, given which it is certain, and those of each other clock."""

    clocks: Int64
    """(c,) int64. Its own, then the others."""
    value: Int64
    weight: Float64
    """(n, o) int64 and (n,) float64. The offsets of its own clocks, and their probability."""
    others: tuple[tuple[Int64, Float64], ...]
    """For each other clock offsets and their probabilities, (n, k) each, some 0."""


def _segments(
    stays: Int64, moves: Int64, window: int, first: int, last: int, also: tuple[int, ...] = ()
) -> tuple[Int64, Int64]:
    """Return where the segments of an offset begin, ascending, and how long they are, some 0, both (n, k).

    Parameters
    ----------
    stays : (n, s) int64
        Ticks of the events that stay, for each of n cases.
    moves : (m,) int64
        Ticks of those that move, at an offset of 0.
    window : int
        WITHIN, ticks.
    first, last : int
        The offset's bounds, inclusive.
    also : tuple of int
        Where else segments begin.
    """
    steps = np.array([0, 1, window, 1 - window])
    meet = (stays[:, :, None, None] - moves[:, None] + steps).reshape(len(stays), -1)
    others = np.tile(np.array([first, *also]), (len(stays), 1))
    begins = np.sort(np.clip(np.concatenate((others, meet), axis=1), first, last + 1), axis=1)
    return begins, np.diff(begins, axis=1, append=last + 1)


def is_fewer(steps: float, most: float) -> bool:
    """Return whether fewer steps than others are worth the while."""
    return steps < most


def _chances(clocks: Clocks, clock: int, begins: Int64, lengths: Int64) -> Float64:
    """Return the probabilities of segments of a clock's offset, (n, k)."""
    law, width = int(clocks.offsets.offset[clock]), int(clocks.widths[clock])
    if law < 0:
        return np.asarray(lengths / width)
    values, found = clocks.values[law : law + width], np.zeros(lengths.shape)
    for case, there in enumerate(lengths > 0):
        places = begins[case, there] - clocks.offsets.lower[clock]
        found[case, there] = np.add.reduceat(values, places)
    return found


def ends_of_segments(
    clocks: Clocks, rows: Int64, moving: int, other: int, window: int, most: float
) -> tuple[Int64, Float64] | None:
    """Return both ends of each segment, (k,) int64, and half its length, (k,) float64.

    Probabilities of offsets, and of differences, are linear over a segment, and so is the range of a match.
    None if events are not certain, or if that is more than ``most``.

    Parameters
    ----------
    rows : (n,) int64
        A match's events, and those that may lie in its gaps.
    moving, other : int
        The clock whose offset is held, or of which the difference to that of ``other``; -1: none.
    """
    own, offsets = clocks.own, clocks.offsets
    moves, stays = own.clock[rows] == moving, own.clock[rows] == other
    if offsets.offset[moving] >= 0 or not (moves | stays).all() or not clocks.is_certain(rows):
        return None
    first, last = int(offsets.lower[moving]), int(offsets.upper[moving])
    also: tuple[int, ...] = ()
    if other >= 0:
        # Where the ends of the clocks' bounds meet, the number of pairs of offsets changes its slope.
        lower, upper = int(offsets.lower[other]), int(offsets.upper[other])
        also = first - lower, last - upper
        first, last = first - upper, last - lower
    still, moved = np.unique(own.lower[rows[stays]]), np.unique(own.lower[rows[moves]])
    if not is_fewer(4.0 * len(still) * len(moved), most):
        return None
    begins, lengths = (column[0] for column in _segments(still[None], moved, window, first, last, also))
    begins, lengths = begins[lengths > 0], lengths[lengths > 0]
    values = np.stack((begins, begins + lengths - 1), axis=1).ravel()
    return (values, np.repeat(lengths / 2.0, 2)) if is_fewer(len(values), most) else None


def one_by_one(
    clocks: Clocks, match: Int64, forbidden: Int64, held: Int64, window: int, is_cut: bool, most: float
) -> SplitOffsets | None:
    """Return how to go through the offsets of what is forbidden one clock after the other.

    None if the match is not certain by its clocks, or if that takes ``most`` steps or more.

    Parameters
    ----------
    match, forbidden : (n,) int64
        The rows of the match's events, and of those that may lie in its gaps.
    held : (c,) int64
        The clocks that several of these name.
    is_cut : bool
        Whether segments may be taken for all ticks.
    """
    own, offsets, widths = clocks.own, clocks.offsets, clocks.widths
    mine = np.unique(own.clock[match])
    mine = mine[mine >= 0]
    others = np.setdiff1d(held, mine)
    if not len(others) or not clocks.is_certain(match):
        return None
    steps, readings = 1.0, []
    for clock in others:
        rows = forbidden[own.clock[forbidden] == clock]
        reading = np.unique(own.lower[rows])
        few = 4.0 * len(match) * len(reading) + 1.0
        cut = is_cut and clocks.is_certain(rows) and is_fewer(few, widths[clock])
        steps += few if cut else widths[clock]
        readings.append(reading if cut else None)
    if not is_fewer(float(widths[mine].prod()) * steps, most):
        return None
    choices = np.ndindex(*widths[mine].astype(np.int64).tolist())
    value = np.array(list(choices), dtype=np.int64) + offsets.lower[mine]
    weight = clocks.chance(np.broadcast_to(mine, value.shape), value).prod(axis=1)
    times = np.tile(own.lower[match], (len(value), 1))
    for clock, moved in zip(mine, value.T, strict=True):
        times[:, own.clock[match] == clock] += moved[:, None]
    parts = []
    for clock, cut_at in zip(others, readings, strict=True):
        first, last = int(offsets.lower[clock]), int(offsets.upper[clock])
        if cut_at is None:
            ticks = np.arange(first, last + 1)
            chance = clocks.chance(np.full(len(ticks), clock), ticks)
            shape = len(times), len(ticks)
            parts.append((np.broadcast_to(ticks, shape), np.broadcast_to(chance, shape)))
            continue
        begins, lengths = _segments(times, cut_at, window, first, last)
        parts.append((begins, _chances(clocks, clock, begins, lengths)))
    return SplitOffsets(np.append(mine, others), value, weight, tuple(parts))
