"""Ranges and confidences of matches some of whose events share a clock."""

from __future__ import annotations

import numpy as np

from confidence.chain.uniform import chain_confidence
from confidence.kernel import kernel
from confidence.shared.rigid import collapse, conditions, rigid_count

__all__ = ["weigh_matches"]


@kernel(allocates=True)
def weigh_matches(events, clock, reading, low, high, window, wanted, lower, upper, confidence):
    """Fill ranges and confidences of matches.

    Parameters
    ----------
    events : (l, m) int64
        The rows of the events of each match, in order.
    clock : (n,) int64
        The clock of each row; -1: one of its own.
    reading, low, high : (n,) int64
        The time of each row by its clock, and the bounds of the clock's offset, ticks.
    window : int64
        WITHIN, ticks.
    wanted : bool
        Whether confidences are.
    lower, upper : (m,) int64; confidence : (m,) float64
        Overwritten. A match that cannot happen gets an empty range. A confidence is NaN where the clocks are
        too many.
    """
    length, count = events.shape
    source, step = np.empty(length, np.int64), np.ones(length, np.int64)
    readings = np.empty(length, np.int64)
    lows, highs, clocks = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    seen, a, b = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    chain_low, chain_high = np.empty(length, np.int64), np.empty(length, np.int64)
    least_of = np.empty((length + 1, length + 1), np.int64)
    bounds, floats = np.empty((4, length), np.int64), np.empty((4, 2 * length + 1))
    work, points, ends = np.empty((4, 4), np.int64), np.empty(9, np.int64), np.empty(337, np.int64)
    step[0] = 0
    for n in range(count):
        size = 0
        for j in range(length):
            row = events[j, n]
            place = size
            for known in range(size):
                if clock[row] >= 0 and clocks[known] == clock[row]:
                    place = known
                    break
            if place == size:
                clocks[size], lows[size], highs[size] = clock[row], low[row], high[row]
                size += 1
            source[j], readings[j] = place, reading[row]
        least = least_of[: size + 1, : size + 1]
        if not conditions(readings, source, step, window, lows[:size], highs[:size], least):
            lower[n], upper[n], confidence[n] = 1, 0, 0.0
            continue
        lower[n] = least[size, source[0]] + readings[0]
        upper[n] = readings[length - 1] - least[source[length - 1], size]
        if not wanted:
            continue
        chain, w = collapse(
            readings, source, step, window, lows[:size], highs[:size], seen, chain_low, chain_high
        )
        if chain > 0:
            confidence[n] = chain_confidence(
                chain_low[:chain], chain_high[:chain], w, a[:chain], b[:chain], bounds[:, :chain], floats
            )
        if chain < 0 or np.isnan(confidence[n]):
            found = rigid_count(least, work, points, ends)
            for k in range(size):
                found /= float(highs[k] - lows[k] + 1)
            confidence[n] = found
