"""Ranges and confidences of matches some of whose events share a clock, and which are certain by it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.uniform import chain_confidence, sum_of_three, sum_of_two, tight_bounds
from confidence.kernel import kernel
from confidence.shared.rigid import collapse, conditions, pairs_within, rigid_count

__all__ = ["keep_possible", "weigh_matches"]

Int64 = NDArray[np.int64]


@kernel
def _number(events, n, clock, source, clocks, begin):
    """Write the clocks of match n as they appear, and which event names each first; return how many."""
    length = events.shape[0]
    size = 0
    for j in range(length):
        name = clock[events[j, n]]
        place = size
        if name >= 0:
            for known in range(size):
                if clocks[known] == name:
                    place = known
                    break
        if place == size:
            clocks[size], begin[size] = name, j
            size += 1
        source[j] = place
    return size


@kernel
def _one(readings, window, low, high):
    """Return range and confidence of a match of one clock: it is certain, or impossible. O(l)."""
    last = readings.shape[0] - 1
    ordered = readings[last] - readings[0] < window
    for j in range(1, last + 1):
        ordered = ordered and readings[j - 1] < readings[j]
    if not ordered:
        return 1, 0, 0.0
    return readings[0] + low, readings[last] + high, 1.0


@kernel
def _two(readings, source, window, lows, highs):
    """Return range and confidence of a match of two clocks: a strip of the offsets' rectangle. O(l)."""
    last = readings.shape[0] - 1
    least, most = lows[1] - highs[0], highs[1] - lows[0]
    for j in range(1, last + 1):
        ahead = readings[j - 1] - readings[j] + 1
        if source[j] == source[j - 1]:
            if ahead > 0:
                return 1, 0, 0.0
        elif source[j] == 1:
            least = max(least, ahead)
        else:
            most = min(most, -ahead)
    back = readings[last] - readings[0] - window + 1
    if source[last] == source[0]:
        if back > 0:
            return 1, 0, 0.0
    elif source[last] == 1:
        most = min(most, -back)
    else:
        least = max(least, back)
    if least > most:
        return 1, 0, 0.0
    # The first event is of clock 0.
    first = max(lows[0], lows[1] - most) + readings[0]
    end = min(highs[0], highs[1] - least) if source[last] == 0 else min(highs[1], highs[0] + most)
    count = pairs_within(lows[0], highs[0], lows[1], highs[1], least, most)
    sizes = float(highs[0] - lows[0] + 1) * float(highs[1] - lows[1] + 1)
    return first, end + readings[last], count / sizes


@kernel
def _chain(low, high, w, a, b, bounds, floats):
    """Return the confidence of a short chain of blocks, whose bounds are without positions."""
    length = low.shape[0]
    value = np.nan
    if length == 1:
        return 1.0
    if length <= 3:
        sizes = 1.0
        for j in range(length):
            sizes *= float(high[j] - low[j] + 1)
        if length == 2:
            value = sum_of_two(low[0], high[0], low[1], high[1], w, sizes)
        else:
            value = sum_of_three(low[0], high[0], low[1], high[1], low[2], high[2], w, sizes)
    if math.isnan(value):
        return chain_confidence(low, high, w, a, b, bounds, floats)
    return value


class _Work(NamedTuple):
    """Work arrays for matches of l events."""

    rows: Int64
    """(12, l) int64."""
    least: Int64
    """(l + 1, l + 1) int64, see :func:`confidence.shared.rigid.conditions`."""
    bounds: Int64
    floats: NDArray[np.float64]
    """See :func:`confidence.chain.uniform.chain_confidence`."""
    three: Int64
    points: Int64
    ends: Int64
    """See :func:`confidence.shared.rigid.rigid_count`."""


@kernel
def _weigh_each(events, clock, reading, low, high, window, wanted, part, work, lower, upper, confidence):
    """Do what `weigh_matches` says. Apart from what makes arrays, slices cost nothing."""
    length = events.shape[0]
    rows, bounds, floats = work.rows, work.bounds, work.floats
    source, step, readings, clocks, seen = rows[0], rows[1], rows[2], rows[3], rows[4]
    lows, highs, chain_low, chain_high = rows[5], rows[6], rows[7], rows[8]
    a, b, begin = rows[9], rows[10], rows[11]
    for j in range(length):
        step[j] = 1 if j > 0 else 0
    for n in range(part[0], part[1]):
        size = _number(events, n, clock, source, clocks, begin)
        if size == length:
            continue
        for j in range(length):
            readings[j] = reading[events[j, n]]
        for k in range(size):
            row = events[begin[k], n]
            lows[k], highs[k] = low[row], high[row]
        if size <= 2:
            lower[n], upper[n], confidence[n] = (
                _one(readings, window, lows[0], highs[0])
                if size == 1
                else _two(readings, source, window, lows, highs)
            )
            continue
        chain, w = collapse(
            readings, source, step, window, lows[:size], highs[:size], seen, chain_low, chain_high
        )
        if chain >= 0:
            lower[n], upper[n], confidence[n] = 1, 0, 0.0
            if chain == 0 or not tight_bounds(chain_low[:chain], chain_high[:chain], w, a[:chain], b[:chain]):
                continue
            lower[n] = a[0]
            # From the first event to the last one, or to where the last block begins, and on by its clock.
            if source[length - 1] == source[0]:
                upper[n] = b[0] + readings[length - 1] - readings[0]
            else:
                upper[n] = b[chain - 1] + window - 1 - w
            if wanted:
                confidence[n] = _chain(
                    chain_low[:chain], chain_high[:chain], w, a[:chain], b[:chain], bounds[:, :chain], floats
                )
                if math.isnan(confidence[n]):
                    chain = -1
            if chain > 0:
                continue
        least = work.least[: size + 1, : size + 1]
        if not conditions(readings, source, step, window, lows[:size], highs[:size], least):
            lower[n], upper[n], confidence[n] = 1, 0, 0.0
            continue
        lower[n] = least[size, source[0]] + readings[0]
        upper[n] = readings[length - 1] - least[source[length - 1], size]
        if wanted:
            found = rigid_count(least, work.three, work.points, work.ends)
            for k in range(size):
                found /= float(highs[k] - lows[k] + 1)
            confidence[n] = found


@kernel(allocates=True)
def weigh_matches(events, clock, reading, low, high, window, wanted, part, lower, upper, confidence):
    """Fill ranges and confidences of some matches: those of which two events at least are of one clock.

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
    part : tuple of 2 int64
        The first match, and the one behind the last.
    lower, upper : (m,) int64; confidence : (m,) float64
        Overwritten for these matches. One that cannot happen gets an empty range. A confidence is NaN where
        the clocks are too many.
    """
    length = events.shape[0]
    work = _Work(
        np.empty((12, length), np.int64), np.empty((length + 1, length + 1), np.int64),
        np.empty((4, length), np.int64), np.empty((4, 2 * length + 1)), np.empty((4, 4), np.int64),
        np.empty(9, np.int64), np.empty(337, np.int64),
    )  # fmt: skip
    _weigh_each(events, clock, reading, low, high, window, wanted, part, work, lower, upper, confidence)


@kernel
def keep_possible(events, ids, lower, upper, confidence):
    """Move the matches whose range is not empty to the front, in this order; return how many. O(l m).

    Parameters
    ----------
    events : (l, m) int64
        The rows of the events of each match. Overwritten.
    ids : (n,) int64, or (0,)
        What to write for each row; the row itself without any.
    lower, upper : (m,) int64; confidence : (m,) float64
        Overwritten.
    """
    length, count = events.shape
    kept = 0
    for n in range(count):
        # Written in any case: a processor does not foresee which match can happen.
        can_be = lower[n] <= upper[n]
        for j in range(length):
            row = events[j, n]
            events[j, kept] = ids[row] if ids.shape[0] else row
        lower[kept], upper[kept], confidence[kept] = lower[n], upper[n], confidence[n]
        kept += can_be
    return kept
