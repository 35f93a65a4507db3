"""Ranges and confidences of matches some of whose events share a clock, and which are certain by it."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.exact import redo_exactly
from confidence.chain.side_by_side import LENGTHS
from confidence.chain.uniform import chain_confidence, sum_of_three, sum_of_two, tight_bounds
from confidence.kernel import POSITIVE, kernel
from confidence.shared import two_clocks_written_out
from confidence.shared.rigid import collapse, conditions, pairs_within, rigid_count
from confidence.shared.two_clocks import ClockColumns, room_for

__all__ = ["RigidEvents", "RigidMatches", "share_a_clock"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_TWO_CLOCKS: Final[dict[int, Any]] = {
    length: getattr(two_clocks_written_out, f"two_clocks_of_{length}") for length in LENGTHS
}


def share_a_clock(clock: Int64) -> NDArray[np.bool_]:
    """Return a mask of the matches with two events of one clock; clocks are (l, m), -1 for none."""
    clock = np.sort(clock, axis=0)
    shares: NDArray[np.bool_] = ((clock[1:] == clock[:-1]) & (clock[1:] >= 0)).any(axis=0)
    return shares


class RigidEvents:
    """Events as if they were certain by their clocks.

    Parameters
    ----------
    clock : (n,) int64
        -1: one of its own.
    lower, upper : (n,) int64
        Bounds of the time, ticks. Those of events of one clock are equally far apart.
    """

    def __init__(self, clock: Int64, lower: Int64, upper: Int64) -> None:
        self.clock, self.lower, self.upper = self.arrays = clock, lower, upper
        self.columns = ClockColumns.of(clock, lower, upper)


@kernel
def _number(rows, clock, source, clocks, begin):
    """Write the clocks of a match as they appear, and which event names each first; return how many."""
    length = rows.shape[0]
    size = 0
    for j in range(length):
        name = clock[rows[j]]
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
    lowest, highest = lows[1] - highs[0], highs[1] - lows[0]
    for j in range(1, last + 1):
        ahead = readings[j - 1] - readings[j] + 1
        if source[j] == source[j - 1]:
            if ahead > 0:
                return 1, 0, 0.0
        elif source[j] == 1:
            lowest = max(lowest, ahead)
        else:
            highest = min(highest, -ahead)
    back = readings[last] - readings[0] - window + 1
    if source[last] == source[0]:
        if back > 0:
            return 1, 0, 0.0
    elif source[last] == 1:
        highest = min(highest, -back)
    else:
        lowest = max(lowest, back)
    if lowest > highest:
        return 1, 0, 0.0
    # The first event is of clock 0.
    first = max(lows[0], lows[1] - highest) + readings[0]
    end = min(highs[0], highs[1] - lowest) if source[last] == 0 else min(highs[1], highs[0] + highest)
    count = pairs_within(lows[0], highs[0], lows[1], highs[1], lowest, highest)
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
    """(13, l) int64."""
    differences: Int64
    """(l + 1, l + 1) int64, see :func:`confidence.shared.rigid.conditions`."""
    bounds: Int64
    floats: NDArray[np.float64]
    """See :func:`confidence.chain.uniform.chain_confidence`."""
    three: Int64
    points: Int64
    ends: Int64
    """See :func:`confidence.shared.rigid.rigid_count`."""


@kernel
def _weigh_each(length, matches, stride, events, window, with_confidence, which, work, out):
    """Do what `_weigh_tied` says. Apart from what makes arrays, slices cost nothing."""
    clock, lower, upper = events
    first, last, confidence = out
    row, bounds, floats = work.rows, work.bounds, work.floats
    source, step, readings, clocks, seen = row[0], row[1], row[2], row[3], row[4]
    lows, highs, chain_low, chain_high = row[5], row[6], row[7], row[8]
    a, b, begin, rows = row[9], row[10], row[11], row[12]
    for j in range(length):
        step[j] = 1 if j > 0 else 0
    lost = 0
    for n in which:
        for j in range(length):
            rows[j] = matches[j * stride + n]
            readings[j] = lower[rows[j]]
        size = _number(rows, clock, source, clocks, begin)
        if size == length:
            continue
        # Of each clock the first event, from its first tick on: the others move along.
        for k in range(size):
            lows[k], highs[k] = 0, upper[rows[begin[k]]] - readings[begin[k]]
        if size <= 2:
            first[n], last[n], confidence[n] = (
                _one(readings, window, lows[0], highs[0])
                if size == 1
                else _two(readings, source, window, lows, highs)
            )
            continue
        chain, w = collapse(
            readings, source, step, window, lows[:size], highs[:size], seen, chain_low, chain_high
        )
        if chain >= 0:
            first[n], last[n], confidence[n] = 1, 0, 0.0
            if chain == 0 or not tight_bounds(chain_low[:chain], chain_high[:chain], w, a[:chain], b[:chain]):
                continue
            first[n] = a[0]
            # From the first event to the last one, or to where the last block begins, and on by its clock.
            if source[length - 1] == source[0]:
                last[n] = b[0] + readings[length - 1] - readings[0]
            else:
                last[n] = b[chain - 1] + window - 1 - w
            if with_confidence:
                confidence[n] = _chain(
                    chain_low[:chain], chain_high[:chain], w, a[:chain], b[:chain], bounds[:, :chain], floats
                )
                if math.isnan(confidence[n]):
                    chain = -1
            if chain > 0:
                continue
        differences = work.differences[: size + 1, : size + 1]
        if not conditions(readings, source, step, window, lows[:size], highs[:size], differences):
            first[n], last[n], confidence[n] = 1, 0, 0.0
            continue
        first[n] = differences[size, source[0]] + readings[0]
        last[n] = readings[length - 1] - differences[source[length - 1], size]
        if with_confidence:
            pairs = rigid_count(differences, work.three, work.points, work.ends)
            for k in range(size):
                pairs /= float(highs[k] - lows[k] + 1)
            confidence[n] = pairs
            lost += math.isnan(pairs)
    return lost


@kernel(allocates=True)
def _weigh_tied(length, matches, stride, events, window, with_confidence, which, out):
    """Fill ranges and confidences of some matches, one by one; return how many confidences are NaN.

    ``which`` are their numbers, (k,) int64. Those without two events of one clock stay as they are.
    """
    work = _Work(
        np.empty((13, length), np.int64), np.empty((length + 1, length + 1), np.int64),
        np.empty((4, length), np.int64), np.empty((4, 2 * length + 1)), np.empty((4, 4), np.int64),
        np.empty(9, np.int64), np.empty(337, np.int64),
    )  # fmt: skip
    return _weigh_each(length, matches, stride, events, window, with_confidence, which, work, out)


@kernel(allocates=True)
def _weigh_alone(length, matches, stride, lower, upper, window, which, confidence):
    """Fill confidences of some matches whose events are each of a clock of its own, one by one."""
    bounds, floats = np.empty((8, length), np.int64), np.empty((4, 2 * length + 1))
    low, high = bounds[6], bounds[7]
    for n in which:
        for j in range(length):
            row = matches[j * stride + n]
            low[j], high[j] = lower[row] - j, upper[row] - j
        confidence[n] = chain_confidence(low, high, window - length, bounds[4], bounds[5], bounds[:4], floats)


@kernel
def _keep_possible(length, matches, stride, ids, part, kept, first, last, confidence):
    """Do what `RigidMatches.keep_possible` says; return how many are kept now."""
    # Written in any case: a processor does not foresee which match can happen.
    for j in range(length):
        at = kept + j * stride
        shift = j * stride
        for n in range(part[0], part[1]):
            row = matches[n + shift & POSITIVE] & POSITIVE
            matches[at & POSITIVE] = ids[row] if ids.shape[0] else row
            at += first[n] <= last[n]
    for n in range(part[0], part[1]):
        begin, end, value = first[n], last[n], confidence[n]
        at = kept & POSITIVE
        first[at], last[at], confidence[at] = begin, end, value
        kept += begin <= end
    return kept


class RigidMatches:
    """Matches of events that are certain by clocks, some of which they share.

    Parameters
    ----------
    matches : (l, m) int64
        The rows of the events of each match, in order.
    window : int
        WITHIN, ticks.
    events : RigidEvents
    first, last : (m,) int64
        Ranges, ticks: right already for matches of which no two events are of one clock, and overwritten for
        the others.
    confidence : (m,) float64
        Overwritten.
    """

    kept: int
    """How many matches are kept, by :meth:`keep_possible`."""

    def __init__(
        self, matches: Int64, window: int, events: RigidEvents, first: Int64, last: Int64, confidence: Float64
    ) -> None:
        self._length, count = matches.shape
        self._window, self._events, self._out = window, events, (first, last, confidence)
        if matches.strides[1] != matches.itemsize:
            matches = np.ascontiguousarray(matches)
        self._matches = matches
        stride = matches.strides[0] // matches.itemsize
        # Of one layout for kernels.
        size = stride * (self._length - 1) + count
        flat = np.lib.stride_tricks.as_strided(matches, (size,), (matches.itemsize,))
        self._flat = self._length, flat, stride
        self._room = room_for(self._length, window)
        self._waiting = np.empty(0, np.int64)
        self.kept = 0

    def weigh(self, part: tuple[int, int], wanted: bool) -> bool:
        """Fill confidences of some matches, and ranges of those of which two events are of one clock.

        Parameters
        ----------
        part : tuple of 2 int
            The first of the matches, and the one behind the last.
        wanted : bool
            Whether confidences are. A match that cannot happen gets an empty range.

        Returns
        -------
        bool
            Whether confidences are NaN, as clocks of a match are too many.

        Notes
        -----
        O(l) for each match of at most two clocks, see :mod:`confidence.shared.two_clocks`; of more as
        :mod:`confidence.shared.rigid` says, or :mod:`confidence.chain.uniform` where each event has its own.
        """
        events, confidence = self._events, self._out[2][slice(*part)]
        if self._length == 1:
            confidence[:] = 1.0
            return False
        if self._room is None or events.columns is None:
            which, lost = np.arange(*part), len(confidence)
            confidence[:] = np.nan
        else:
            if len(self._waiting) < len(confidence):
                self._waiting = np.empty(len(confidence), np.int64)
            waits, lost = _TWO_CLOCKS[self._length](
                *self._flat[1:], events.columns, float(self._window - 1), wanted, part, self._room,
                self._waiting, self._out,
            )  # fmt: skip
            which = self._waiting[:waits]
        if len(which):
            lost += _weigh_tied(*self._flat, events.arrays, self._window, wanted, which, self._out)
        return wanted and bool(lost) and self._redo(part[0] + np.flatnonzero(np.isnan(confidence)))

    def _redo(self, which: Int64) -> bool:
        """Fill confidences of those of some matches whose events are each of a clock of its own.

        Return whether there are others.
        """
        confidence, events = self._out[2], self._events
        is_tied = share_a_clock(events.clock[self._matches[:, which]])
        which = which[~is_tied]
        _weigh_alone(*self._flat, *events.arrays[1:], self._window, which, confidence)
        exact = confidence[which]

        def intervals(n: int) -> tuple[Int64, Int64, None]:
            rows = self._matches[:, which[n]]
            return events.lower[rows], events.upper[rows], None

        redo_exactly(exact, self._window, intervals)
        confidence[which] = exact
        return bool(is_tied.any())

    def keep_possible(self, part: tuple[int, int], ids: Int64) -> None:
        """Move those of some matches whose range is not empty behind the ones that are kept, in place.

        ``ids``, (n,) int64, or (0,), is what to write for each row: the row itself without any.
        """
        self.kept = _keep_possible(*self._flat, ids, part, self.kept, *self._out)

    def columns(self) -> tuple[Int64, Int64, Int64, Float64]:
        """Return events, ranges and confidences of the matches that are kept."""
        first, last, confidence = self._out
        kept = slice(0, self.kept)
        return self._matches[:, kept], first[kept], last[kept], confidence[kept]
