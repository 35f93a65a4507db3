"""Matches of events that are certain by clocks, many side by side: of two clocks, or of one for each event.

The events of a match stand in columns, from which a kernel for each length weighs one match after the other
without a branch (:mod:`confidence.shared.two_clocks_written_out`).

The first event of either clock moves by ``0 <= y <= width`` ticks, and the others of the clock move along. So
order and window leave a strip ``least <= y_1 - y_0 <= most`` of a rectangle: see
:mod:`confidence.shared.rigid`, whose conditions these are. A match of one clock is one of two, the second of
which does not move. Matches whose events are each of a clock of its own are chains
(:mod:`confidence.chain.side_by_side`), and the rest is left.

The kernels of that module have these parameters.

matches : (l * stride,) int64
    The rows of the events of the matches, event by event.
stride : int64
    How far apart the events of a match are there.
names, lower, width : (n,) float64; origin : int64
    See :class:`ClockColumns`.
window : float64
    ``W - 1``, ticks.
wanted : bool
    Whether confidences are.
part : tuple of 2 int64
    The first of the matches, and the one behind the last.
room : TwoClocks
    Work arrays.
rest : (k,) int64
    Overwritten by the numbers of the matches that are left: they have more clocks, and two events of one. As
    long as there are matches.
first, last : (m,) int64; confidence : (m,) float64
    Overwritten for the others, ranges only for matches of two clocks. One that cannot happen gets an empty
    range. A confidence is NaN where terms of a sum cancel.

They return how many are left, and how many confidences are NaN. O(l) for each match of two clocks, O(l^3) for
others.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.side_by_side import Chains, new_chains
from confidence.config import MOST_EXACT_TICKS
from confidence.kernel import POSITIVE, kernel

__all__ = [
    "COLUMNS",
    "EXACT",
    "POSITIVE",
    "ROOM",
    "ClockColumns",
    "TwoClocks",
    "gather",
    "lay_out",
    "line",
    "part_tied",
    "room_for",
    "write",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

ROOM: Final = 1024
"""Matches side by side: what they take stays in the cache next to the processor."""

EXACT: Final = MOST_EXACT_TICKS // 4
"""Times less apart than this many ticks add up exactly in float64."""

COLUMNS: Final = 3
"""How many columns an event has: those of :class:`ClockColumns`."""


class ClockColumns(NamedTuple):
    """The events of a table as numbers that a processor computes with in vectors, all (n,) float64."""

    names: Float64
    """What tells the clocks apart; one of its own is that of no other event."""
    lower: Float64
    """The first tick, counted from the origin."""
    width: Float64
    """How many ticks there are beyond it."""
    origin: int

    @classmethod
    def of(cls, clock: Int64, lower: Int64, upper: Int64) -> ClockColumns | None:
        """Return the columns of events; None if float64 does not tell their ticks apart. O(n)."""
        origin = int(lower.min()) if len(lower) else 0
        if len(lower) and int(upper.max()) - origin >= EXACT:
            return None
        names = clock.astype(np.float64)
        alone = np.flatnonzero(clock < 0)
        names[alone] = -1 - alone
        return cls(names, (lower - origin).astype(np.float64), (upper - lower).astype(np.float64), origin)


class TwoClocks(NamedTuple):
    """Room for matches of l events."""

    events: Float64
    """(3 l, k) float64, k being at least ROOM. The columns of each event in turns."""
    weighed: Float64
    """(3, k) float64. The first and the last tick, and the confidence; NaN: not of two clocks."""
    chains: Chains
    """Room for the others."""


def room_for(length: int, window: int) -> TwoClocks | None:
    """Return room for matches of ``length`` events; None if they are not weighed side by side."""
    chains = new_chains(length, window - length)
    if chains is None or window >= EXACT:
        return None
    # As wide as what chains take, of which only the first ROOM places are touched.
    room = len(chains.place)
    return TwoClocks(np.empty((COLUMNS * length, room)), np.empty((3, room)), chains)


@kernel
def gather(length, matches, stride, events, begin, size, columns):
    """Write the columns of the matches from ``begin`` on."""
    names, lower, width = events.names, events.lower, events.width
    for j in range(length):
        rows = matches[begin + j * stride : begin + j * stride + size]
        at = COLUMNS * j
        clocks, lows, widths = columns[at], columns[at + 1], columns[at + 2]
        for n in range(size):
            row = rows[n] & POSITIVE
            clocks[n], lows[n], widths[n] = names[row], lower[row], width[row]


@kernel
def line(first, last, width_0, width_1):
    """Return how many pairs have a difference from first to last, see :mod:`confidence.shared.rigid`."""
    ends = min(width_1, width_0 + first) - max(0.0, first)
    ends += min(width_1, width_0 + last) - max(0.0, last)
    pairs = 0.5 * (ends + 2.0) * (last - first + 1.0)
    return pairs if first <= last else 0.0


@kernel
def write(begin, end, weighed, origin, waiting, waits, out):
    """Write what was computed for matches of two clocks, and which still wait; return how many these are."""
    begins, ends, values = weighed[0], weighed[1], weighed[2]
    firsts, lasts, confidences = out[0][begin:end], out[1][begin:end], out[2][begin:end]
    # One loop for each that is written, so that the compiler makes vectors of them instead of branches.
    for n in range(end - begin):
        before, tick = firsts[n], origin + np.int64(begins[n])
        firsts[n] = before if math.isnan(values[n]) else tick
    for n in range(end - begin):
        before, tick = lasts[n], origin + np.int64(ends[n])
        lasts[n] = before if math.isnan(values[n]) else tick
    for n in range(end - begin):
        sure, value = confidences[n], values[n]
        confidences[n] = sure if math.isnan(value) else value
    for n in range(end - begin):
        waiting[waits & POSITIVE] = begin + n
        waits += math.isnan(values[n])
    return waits


@kernel
def part_tied(length, columns, begin, waiting, before, waits, place):
    """Leave only matches two of whose events are of one clock, and write the numbers of others to ``place``.

    Return how many others there are, and how many still wait.
    """
    alone, tied = 0, before
    for k in range(before, waits):
        n = (waiting[k] - begin) & POSITIVE
        is_tied = False
        # Among up to three events that are not of two clocks, there are none of one.
        if length > 3:
            for j in range(1, length):
                name = columns[COLUMNS * j, n]
                for i in range(j):
                    is_tied |= columns[COLUMNS * i, n] == name
        number = waiting[k]
        waiting[tied & POSITIVE], place[alone & POSITIVE] = number, number
        tied += is_tied
        alone += not is_tied
    return alone, tied


@kernel
def lay_out(length, columns, begin, count, chains):
    """Write the bounds of some matches side by side, from the first tick of each on, minus position."""
    place, bounds, first = chains.place, chains.bounds, columns[1]
    for j in range(length):
        lower, width = columns[COLUMNS * j + 1], columns[COLUMNS * j + 2]
        lows, highs = bounds[2 * j], bounds[2 * j + 1]
        for k in range(count):
            n = (place[k] - begin) & POSITIVE
            lows[k] = lower[n] - first[n] - j
            highs[k] = lows[k] + width[n]
