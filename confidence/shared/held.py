"""Exact confidence of a sequence some of whose events share clocks and are uncertain by these besides.

The time of an event is its time by its clock plus the clock's offset. Once the offsets are *held* that two
events or more have in common, times are independent, and the sequence is a chain
(:mod:`confidence.chain`). What is left is the sum over these offsets. Three things keep it short:

- Where every event is of a clock that is held, only differences to the first one's offset count: of one
  clock nothing is left to be held, of two one difference.
- An offset that one event alone has is part of that event's law: two uniform lengths added up.
- Between two *breakpoints* the value of a chain of uniform times is a polynomial of one offset. With
  positions subtracted from bounds, order and window ask ``u_0 <= ... <= u_(l-1) <= u_0 + w``. So at every
  corner of what is feasible, times that move with the offset and times that do not are at some of their
  bounds, and equal or ``w`` apart. Breakpoints are these differences of bounds. The sum over a piece takes
  few of its values (:mod:`confidence.chain.pieces`). Of several offsets only the last is summed over so.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.distribution import exactly, law_of_sum
from confidence.chain.pieces import HIGHEST_DEGREE, add_point, node_weights
from confidence.chain.pmf import chain_confidence_pmf, support_range
from confidence.chain.uniform import chain_confidence
from confidence.kernel import kernel
from confidence.shared.rigid import NOTHING, close

__all__ = ["TOO_MANY", "Offsets", "OwnTimes", "tight_range", "weigh_held"]

Int64 = NDArray[np.int64]

TOO_MANY: Final = -1.0
"""Stands for a confidence that more choices of offsets would have to be gone through for than allowed."""


class OwnTimes(NamedTuple):
    """The times of events by their clocks, all (n,) int64.

    Attributes
    ----------
    clock
        -1: none.
    lower, upper
        Ticks, inclusive; without a clock they are those of the event.
    offset
        Where the probabilities of its ticks start; -1: uniform.
    """

    clock: Int64
    lower: Int64
    upper: Int64
    offset: Int64


class Offsets(NamedTuple):
    """The offsets of clocks, all (c,) int64.

    Attributes
    ----------
    lower, upper
        Ticks, inclusive.
    offset
        Where the probabilities of its ticks start; -1: uniform.
    """

    lower: Int64
    upper: Int64
    offset: Int64


@kernel
def _feasible(low, high, moves, w, first, last):
    """Return the least and the largest move of some events at which the chain can be."""
    length = low.shape[0]
    for i in range(length):
        for j in range(length):
            if moves[i] and not moves[j]:
                if i < j:
                    last = min(last, high[j] - low[i])
                    first = max(first, low[j] - w - high[i])
                else:
                    first = max(first, low[j] - high[i])
                    last = min(last, high[j] + w - low[i])
    return first, last


@kernel
def _breakpoints(low, high, kinks, moves, w, first, last, points, count):
    """Add the moves at which bounds meet to ``points``; return how many there are."""
    length = low.shape[0]
    for i in range(length):
        if moves[i]:
            for j in range(length):
                if not moves[j]:
                    for k in range(4):
                        bound = kinks[j, k]
                        if k > 0 and bound == kinks[j, k - 1]:
                            continue
                        for way in range(-1, 2):
                            count = add_point(points, count, bound + way * w - low[i], first, last)
                            count = add_point(points, count, bound + way * w - high[i], first, last)
    return count


@kernel(allocates=True)
def _chain(low, high, offset, values, window, work, floats):
    """Return the confidence of a chain, its first and last tick, all with positive terms where it cancels.

    ``low`` and ``high`` are without positions subtracted.
    """
    length = low.shape[0]
    uniform = True
    for j in range(length):
        uniform = uniform and offset[j] < 0
    if uniform:
        for j in range(length):
            work[4, j] = low[j] - j
            work[5, j] = high[j] - j
        value = chain_confidence(
            work[4, :length], work[5, :length], window - length, work[6, :length], work[7, :length],
            work[:4, :length], floats,
        )  # fmt: skip
        if not np.isnan(value):
            return value, 0, 0
    first, last = support_range(low, high, offset, values, window)
    if first > last:
        return 0.0, 1, 0
    return chain_confidence_pmf(low, high, offset, values, window, first, last), first, last


@kernel(allocates=True)
def tight_range(low, high, held, first, last, window):
    """Return whether a sequence can be, and its tight range: longest paths. O((l + s)^3).

    Parameters
    ----------
    low, high : (l,) int64
        Bounds of the events' times, without the offset that is held.
    held : (l,) int64
        Whose that is; -1: none.
    first, last : (s,) int64
        Bounds of the offsets.
    window : int64
        WITHIN, ticks.
    """
    length, clocks = low.shape[0], first.shape[0]
    origin = length + clocks
    differences = np.empty((origin + 1, origin + 1), np.int64)
    for a in range(origin + 1):
        for b in range(origin + 1):
            differences[a, b] = NOTHING
        differences[a, a] = 0
    for c in range(clocks):
        differences[origin, length + c] = first[c]
        differences[length + c, origin] = -last[c]
    for j in range(length):
        clock = origin if held[j] < 0 else length + held[j]
        differences[clock, j] = low[j]
        differences[j, clock] = -high[j]
        if j > 0:
            differences[j - 1, j] = 1
    differences[length - 1, 0] = max(differences[length - 1, 0], 1 - window)
    if not close(differences):
        return False, 1, 0
    return True, differences[origin, 0], -differences[length - 1, origin]


@kernel
def _weight(d, count, first, last, offset, values, together):
    """Return the probability of some offsets, or of their differences to that of clock 0."""
    if not together:
        weight = 1.0
        for c in range(count):
            weight *= exactly(first[c], last[c], offset[c], values, d[c])
        return weight
    low, high = first[0], last[0]
    uniform = offset[0] < 0
    size = float(high - low + 1)
    for c in range(1, count):
        low = max(low, first[c] - d[c])
        high = min(high, last[c] - d[c])
        uniform = uniform and offset[c] < 0
        size *= float(last[c] - first[c] + 1)
    if low > high:
        return 0.0
    if uniform:
        return float(high - low + 1) / size
    total = 0.0
    for v in range(low, high + 1):
        part = exactly(first[0], last[0], offset[0], values, v)
        for c in range(1, count):
            part *= exactly(first[c], last[c], offset[c], values, v + d[c])
        total += part
    return total


@kernel
def _moved(d, count, first, last, offset, values):
    """Return the first and the last offset of clock 0 that can be, given the differences of others to it."""
    low, high = first[0], last[0]
    for c in range(1, count):
        low, high = max(low, first[c] - d[c]), min(high, last[c] - d[c])
    for way in (1, -1):
        v = low if way > 0 else high
        possible = False
        while not possible:
            possible = True
            for c in range(count):
                shift = v if c == 0 else v + d[c]
                possible = possible and exactly(first[c], last[c], offset[c], values, shift) > 0.0
            v += 0 if possible else way
        if way > 0:
            low = v
        else:
            high = v
    return low, high


@kernel
def _shared_in(events, n, own, names, held):
    """Write the clocks to be held of a match, and which each event's is; return how many.

    Those that several events name; both, where all events are of two clocks: only the difference counts.
    """
    length = events.shape[0]
    size, alone = 0, 0
    for j in range(length):
        clock = own.clock[events[j, n]]
        held[j] = -1
        alone += 1 if clock < 0 else 0
        for k in range(size):
            if names[k] == clock:
                held[j] = k
        if clock >= 0 and held[j] < 0:
            names[size] = clock
            held[j] = size
            size += 1
    if alone == 0 and size <= 2:
        return size
    several = 0
    for k in range(size):
        count = 0
        for j in range(length):
            count += 1 if held[j] == k else 0
        for j in range(length):
            if held[j] == k:
                held[j] = several if count > 1 else -1
        if count > 1:
            names[several] = names[k]
            several += 1
    return several


@kernel(allocates=True)
def _laws(events, n, own, clocks, values, held, low, high, offset, kinks):
    """Write bounds and laws of a match's events, those of held clocks by their clocks.

    Returns
    -------
    probabilities : (p,) float64
        Of the events that are not uniform.
    smooth : bool
        Whether all are uniform, or sums of two uniform ones.
    degree : int64
        Of the polynomial pieces in one offset.
    """
    length = events.shape[0]
    room = 0
    for j in range(length):
        row = events[j, n]
        clock = own.clock[row]
        size = own.upper[row] - own.lower[row] + 1
        if held[j] < 0 and clock >= 0 and (size > 1 or clocks.offset[clock] >= 0):
            room += size + clocks.upper[clock] - clocks.lower[clock]
        elif own.offset[row] >= 0:
            room += size
    breakpoints = np.empty(room)
    used = 0
    smooth = True
    degree = 0
    for j in range(length):
        row = events[j, n]
        clock = own.clock[row]
        low[j], high[j], offset[j] = own.lower[row], own.upper[row], -1
        size = high[j] - low[j] + 1
        degree += 1 if size > 1 else 0
        shorter, longer = size, size
        if held[j] < 0 and clock >= 0:
            first, last, law = clocks.lower[clock], clocks.upper[clock], clocks.offset[clock]
            smooth = smooth and law < 0 and own.offset[row] < 0
            degree += 1
            if size > 1 or law >= 0:
                offset[j] = used
                used += law_of_sum(
                    low[j], high[j], own.offset[row], first, last, law, values, used, breakpoints
                )
            shorter, longer = min(size, last - first + 1), max(size, last - first + 1)
            low[j] += first
            high[j] += last
        elif own.offset[row] >= 0:
            smooth = False
            offset[j] = used
            for k in range(size):
                breakpoints[used + k] = values[own.offset[row] + k]
            used += size
        kinks[j, 0], kinks[j, 3] = low[j], high[j]
        kinks[j, 1] = low[j] + shorter - 1
        kinks[j, 2] = low[j] + longer - 1
    return breakpoints, smooth, degree


@kernel(allocates=True)
def weigh_held(events, own, clocks, values, window, wanted, limits, begin, lower, upper, confidence):
    """Fill ranges and confidences of matches until one takes long.

    Parameters
    ----------
    events : (l, m) int64
        The rows of the events of each match, in order.
    own : OwnTimes
    clocks : Offsets
    values : (p,) float64
        Probabilities.
    window : int64
        WITHIN, ticks.
    wanted : bool
        Whether confidences are.
    limits : tuple of 2 int64
        Most chains to be weighed for one match, and in one call; the match that exceeds them is finished.
    begin : int64
        The match to begin with.
    lower, upper : (m,) int64; confidence : (m,) float64
        Overwritten. A match that cannot happen gets an empty range. A confidence is TOO_MANY where more
        chains than allowed would have to be weighed.

    Returns
    -------
    int64
        The matches done.
    """
    length, count = events.shape
    names, held = np.empty(length, np.int64), np.empty(length, np.int64)
    low, high, offset = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    at_low, at_high = np.empty(length, np.int64), np.empty(length, np.int64)
    first, last, law = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    d, begins, ends = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    kinks, moved_kinks = np.empty((length, 4), np.int64), np.empty((length, 4), np.int64)
    points = np.empty(24 * length * length + 8, np.int64)
    moves = np.empty(length, np.bool_)
    weight = np.empty(7)
    work, floats = np.empty((8, length), np.int64), np.empty((4, 2 * length + 1))
    w = window - length
    spent = 0
    for n in range(begin, count):
        if spent >= limits[1]:
            return n
        size = _shared_in(events, n, own, names, held)
        for c in range(size):
            clock = names[c]
            first[c], last[c], law[c] = clocks.lower[clock], clocks.upper[clock], clocks.offset[clock]
        laws, smooth, degree = _laws(events, n, own, clocks, values, held, low, high, offset, kinks)
        for c in range(size):
            smooth = smooth and law[c] < 0
        possible, earliest, latest = tight_range(low, high, held, first[:size], last[:size], window)
        lower[n], upper[n], confidence[n] = earliest, latest, 0.0
        spent += 1
        if not possible or (smooth and not wanted):
            continue
        together = size > 0
        for j in range(length):
            together = together and held[j] >= 0
        for c in range(size):
            begins[c], ends[c] = first[c], last[c]
            if together:
                begins[c], ends[c] = first[c] - last[0], last[c] - first[0]
        start = 0
        if together:
            # Offsets count from the first one, which stays where it is.
            begins[0] = ends[0] = 0
            start = 1
            degree += 1
        in_pieces = smooth and degree <= HIGHEST_DEGREE and size > start
        choices = 1.0
        for c in range(start, size - 1 if in_pieces else size):
            choices *= float(ends[c] - begins[c] + 1)
        if choices > float(limits[0]):
            confidence[n] = TOO_MANY
            continue
        earliest, latest = upper[n] + 1, lower[n] - 1
        total = 0.0
        for c in range(size):
            d[c] = begins[c]
        fixed = size - 1 if in_pieces else size
        going = True
        while going:
            for j in range(length):
                shift = 0
                moves[j] = in_pieces and held[j] == size - 1
                if held[j] >= 0 and not moves[j]:
                    shift = d[held[j]]
                at_low[j], at_high[j] = low[j] + shift, high[j] + shift
            if in_pieces:
                for j in range(length):
                    work[4, j], work[5, j] = at_low[j] - j, at_high[j] - j
                    for k in range(4):
                        moved_kinks[j, k] = kinks[j, k] + at_low[j] - low[j] - j
                go, stop = begins[size - 1], ends[size - 1]
                one, other = first[0], last[0]
                if together:
                    for c in range(1, size - 1):
                        one, other = max(one, first[c] - d[c]), min(other, last[c] - d[c])
                    go, stop = first[size - 1] - other, last[size - 1] - one
                if one <= other:
                    go, stop = _feasible(work[4], work[5], moves, w, go, stop)
                if one <= other and go <= stop:
                    point_count = _breakpoints(work[4], work[5], moved_kinks, moves, w, go, stop, points, 0)
                    if together:
                        for bound in (first[size - 1], last[size - 1]):
                            point_count = add_point(points, point_count, bound - one, go, stop)
                            point_count = add_point(points, point_count, bound - other, go, stop)
                    points[point_count] = stop + 1
                    for p in range(point_count + 1):
                        nodes, h = node_weights(points[p] - go, degree, weight)
                        value = go
                        index = 0
                        while value < points[p]:
                            d[size - 1] = value
                            chance = _weight(d, size, first, last, law, values, together)
                            for j in range(length):
                                if moves[j]:
                                    at_low[j], at_high[j] = low[j] + value, high[j] + value
                            part, _, _ = _chain(at_low, at_high, offset, laws, window, work, floats)
                            spent += 1
                            if h > 0 and index < nodes:
                                total += weight[index] * chance * part
                                index += 1
                                value += h if index < nodes else 1
                            else:
                                total += chance * part
                                value += 1
                        go = points[p]
            else:
                chance = _weight(d, size, first, last, law, values, together)
                if chance > 0.0:
                    part, begin_time, end_time = _chain(at_low, at_high, offset, laws, window, work, floats)
                    total += chance * part
                    if not smooth and part > 0.0:
                        move_low, move_high = 0, 0
                        if together:
                            move_low, move_high = _moved(d, size, first, last, law, values)
                        if begin_time == 0 and end_time == 0:
                            begin_time, end_time = support_range(at_low, at_high, offset, laws, window)
                        earliest = min(earliest, begin_time + move_low)
                        latest = max(latest, end_time + move_high)
                spent += 1
            c = fixed - 1
            while c >= start:
                d[c] += 1
                if d[c] <= ends[c]:
                    break
                d[c] = begins[c]
                c -= 1
            going = c >= start
        if not smooth:
            lower[n], upper[n] = earliest, latest
        if not total > 0.0:
            lower[n], upper[n] = 1, 0
        confidence[n] = min(total, 1.0)
    return count
