"""Exact confidence of events that are certain but for the offsets of the clocks that stamped them.

With readings ``r_j`` and offsets ``x_a``, uniform and independent, the time of event j is ``r_j + x_c(j)``.
So order and window are conditions on differences of offsets: ``x_c(j) - x_c(j-1) >= r_(j-1) - r_j + k_j``,
where ``k_j`` is the least distance, and ``x_c(1) - x_c(l) >= r_l - r_1 - (W - 1)``. Of events of one clock
they hold or not whatever the offset. Longest paths close them (Floyd and Warshall): every bound is attained.

Two ways lead to a confidence, neither of which depends on the number of ticks:

- *Collapse.* Where each clock has one block of neighbouring events, a block is one event of a chain. The last
  block may be the first clock's again: its second visit is rigid, so it acts as a window.
- *Pieces.* Of two clocks the pairs are counted by their difference: how many have one is linear in it between
  two points. Of more clocks one offset is held: the count of the others is a polynomial of it between
  breakpoints, and sums of such are weighted means of few values. No term is negative: nothing cancels.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.kernel import kernel

__all__ = ["NOTHING", "close", "collapse", "conditions", "pairs_within", "rigid_count"]

NOTHING: Final = -(2**60)
"""Stands for a condition that there is none of."""


@kernel
def conditions(reading, source, step, window, lower, upper, differences):
    """Write what order, window and bounds ask of each difference of offsets; return whether it can be.

    Parameters
    ----------
    reading : (l,) int64
        Times by the clocks, ticks.
    source : (l,) int64
        The clock of each event, 0..s-1.
    step : (l,) int64
        How many ticks each event is at least behind the one before it, 0 or 1; of the first one 0.
    window : int64
        WITHIN, ticks.
    lower, upper : (s,) int64
        Bounds of the offsets, ticks, inclusive.
    differences : (s + 1, s + 1) int64
        Overwritten: ``x_b - x_a >= differences[a, b]``, tight; node s stands for 0. Of no meaning if it
        cannot be.
    """
    clocks = lower.shape[0]
    for a in range(clocks + 1):
        for b in range(clocks + 1):
            differences[a, b] = NOTHING
        differences[a, a] = 0
    for a in range(clocks):
        differences[clocks, a] = lower[a]
        differences[a, clocks] = -upper[a]
    last = reading.shape[0] - 1
    for j in range(1, last + 1):
        a, b = source[j - 1], source[j]
        differences[a, b] = max(differences[a, b], reading[j - 1] - reading[j] + step[j])
    a, b = source[last], source[0]
    differences[a, b] = max(differences[a, b], reading[last] - reading[0] - window + 1)
    return close(differences)


@kernel
def close(differences):
    """Replace conditions on differences by the tightest that follow; return whether they can hold. O(s^3)."""
    nodes = differences.shape[0]
    # Without a branch: NOTHING is so little that no sum with it asks anything of times.
    for c in range(nodes):
        for a in range(nodes):
            by = differences[a, c]
            for b in range(nodes):
                differences[a, b] = max(differences[a, b], by + differences[c, b])
    feasible = True
    for a in range(nodes):
        feasible = feasible and differences[a, a] <= 0
    return feasible


@kernel
def collapse(reading, source, step, window, lower, upper, seen, low, high):
    """Write a match as a chain with one event for each clock; return its length and its window.

    Parameters
    ----------
    reading, source, step, window, lower, upper
        As for :func:`conditions`.
    seen : (s,) int64
        Work array.
    low, high : (s,) int64
        Overwritten by the bounds of the chain's events, minus position.

    Returns
    -------
    length : int64
        0 if the match is impossible, -1 if a clock has several blocks.
    w : int64
        Window minus length, for :func:`confidence.chain.uniform.chain_confidence`.
    """
    for a in range(lower.shape[0]):
        seen[a] = 0
    last = reading.shape[0] - 1
    length, shift = 0, 0
    j = 0
    first = reading[0]
    while j <= last:
        clock, begin = source[j], reading[j]
        if j > 0 and clock == source[0]:
            # The rigid second visit, if nothing but it follows.
            room = begin - first - shift
            for i in range(j + 1, last + 1):
                if source[i] != clock:
                    return -1, 0
                if reading[i] - reading[i - 1] < step[i]:
                    return 0, 0
            if reading[last] - first > window - 1 or room - step[j] < 0:
                return 0, 0
            return length, room - step[j]
        if seen[clock] == 1:
            return -1, 0
        seen[clock] = 1
        # The step and the length of the block before are in the shift already, but for its last step.
        if j > 0:
            shift += step[j]
        low[length] = lower[clock] + begin - shift
        high[length] = upper[clock] + begin - shift
        length += 1
        while j < last and source[j + 1] == clock:
            j += 1
            if reading[j] - reading[j - 1] < step[j]:
                return 0, 0
        shift += reading[j] - begin
        j += 1
    if window - 1 - shift < 0:
        return 0, 0
    return length, window - 1 - shift


@kernel
def _line(first, last, low_a, high_a, low_b, high_b):
    """Return how many a, b have a difference ``b - a`` from first to last, all on one line of these."""
    if first > last:
        return 0.0
    ends = min(high_b, high_a + first) - max(low_b, low_a + first)
    ends += min(high_b, high_a + last) - max(low_b, low_a + last)
    return 0.5 * float(ends + 2) * float(last - first + 1)


@kernel
def pairs_within(low_a, high_a, low_b, high_b, lowest, highest):
    """Return how many a, b within bounds have ``lowest <= b - a <= highest``.

    By how many there are of each difference, which is linear in it between two points. Nothing is subtracted.
    """
    lowest, highest = max(lowest, low_b - high_a), min(highest, high_b - low_a)
    one, other = low_b - low_a, high_b - high_a
    begin, end = min(one, other), max(one, other)
    total = _line(lowest, min(highest, begin), low_a, high_a, low_b, high_b)
    total += _line(max(lowest, begin + 1), min(highest, end), low_a, high_a, low_b, high_b)
    return total + _line(max(lowest, end + 1, begin + 1), highest, low_a, high_a, low_b, high_b)


@kernel
def _pairs_held(differences, value):
    """Return how many offsets of the first two of three clocks go with a value of the third's."""
    low_a = max(differences[3, 0], value + differences[2, 0])
    high_a = min(-differences[0, 3], value - differences[0, 2])
    low_b = max(differences[3, 1], value + differences[2, 1])
    high_b = min(-differences[1, 3], value - differences[1, 2])
    return pairs_within(low_a, high_a, low_b, high_b, differences[0, 1], -differences[1, 0])


@kernel(inline=True)
def _sum_of_piece(half, ends, middle):
    """Return the sum of 2 half + 1 values of a cubic, from the sum of those at both ends and the middle."""
    size = 2.0 * half + 1.0
    return size * (middle * (2.0 * half - 1.0) / (3.0 * half) + ends * (half + 1.0) / (6.0 * half))


@kernel
def _sorted_within(points, count, low, high):
    """Keep the points within (low, high], add the end behind ``high``, and sort them; return how many."""
    kept = 0
    for i in range(count):
        point = points[i]
        if low < point <= high:
            place = kept
            is_new = True
            while place > 0 and points[place - 1] >= point:
                if points[place - 1] == point:
                    is_new = False
                    break
                place -= 1
            if is_new:
                for k in range(kept, place, -1):
                    points[k] = points[k - 1]
                points[place] = point
                kept += 1
    points[kept] = high + 1
    return kept + 1


@kernel
def _three(differences, points):
    """Return the number of offsets of three clocks that meet closed conditions; O(1).

    The number of pairs of the first two is quadratic in the third between the points at which one of their
    four bounds begins to move with it, or a corner of their rectangle to be cut off.
    """
    count = 0
    for a in range(2):
        b = 1 - a
        points[count] = differences[3, a] - differences[2, a]
        points[count + 1] = differences[a, 2] - differences[a, 3]
        points[count + 2] = differences[3, b] + differences[a, 2] - differences[a, b]
        points[count + 3] = differences[a, b] - differences[a, 3] - differences[2, b]
        count += 4
    begin = differences[3, 2]
    total = 0.0
    for i in range(_sorted_within(points, count, begin, -differences[2, 3])):
        half = (points[i] - begin - 1) // 2
        if (points[i] - begin) % 2 == 0:
            total += _pairs_held(differences, points[i] - 1)
        ends = _pairs_held(differences, begin)
        if half == 0:
            total += ends
        else:
            ends += _pairs_held(differences, begin + 2 * half)
            total += _sum_of_piece(half, ends, _pairs_held(differences, begin + half))
        begin = points[i]
    return total


@kernel
def _three_held(differences, value, work, points):
    """Return how many offsets of the first three clocks go with a value of the fourth's."""
    for a in range(3):
        work[3, a] = max(differences[4, a], value + differences[3, a])
        work[a, 3] = max(differences[a, 4], differences[a, 3] - value)
    for a in range(3):
        for b in range(3):
            work[a, b] = max(differences[a, b], work[a, 3] + work[3, b])
    return _three(work, points)


@kernel
def _way(differences, a, b, backwards):
    """Return the difference of two offsets at which a condition on it holds with equality."""
    return -differences[b, a] if backwards else differences[a, b]


@kernel
def _four(differences, work, points, ends_of_pieces):
    """Return the number of offsets of four clocks that meet closed conditions.

    That of the others is cubic in the fourth between the values that it has where conditions along a path
    from the origin hold with equality: these are its values at all corners of what is feasible.
    """
    count = 0
    for bits in range(16):
        for a in range(4):
            first = _way(differences, 4, a, bits & 1)
            if a == 3:
                ends_of_pieces[count] = first
                count += 1
                continue
            for b in range(4):
                if b == a:
                    continue
                second = first + _way(differences, a, b, bits & 2)
                if b == 3:
                    ends_of_pieces[count] = second
                    count += 1
                    continue
                third = second + _way(differences, b, 3, bits & 4)
                c = 3 - a - b
                ends_of_pieces[count] = third
                ends_of_pieces[count + 1] = (
                    second + _way(differences, b, c, bits & 4) + _way(differences, c, 3, bits & 8)
                )
                count += 2
    begin = differences[4, 3]
    total = 0.0
    for i in range(_sorted_within(ends_of_pieces, count, begin, -differences[3, 4])):
        half = (ends_of_pieces[i] - begin - 1) // 2
        if (ends_of_pieces[i] - begin) % 2 == 0:
            total += _three_held(differences, ends_of_pieces[i] - 1, work, points)
        ends = _three_held(differences, begin, work, points)
        if half == 0:
            total += ends
        else:
            ends += _three_held(differences, begin + 2 * half, work, points)
            middle = _three_held(differences, begin + half, work, points)
            total += _sum_of_piece(half, ends, middle)
        begin = ends_of_pieces[i]
    return total


@kernel
def rigid_count(differences, work, points, ends_of_pieces):
    """Return the number of choices of offsets that meet closed conditions; NaN of more than 4 clocks.

    Parameters
    ----------
    differences : (s + 1, s + 1) int64
        As `conditions` writes it, where it can be.
    work : (4, 4) int64; points : (9,) int64; ends_of_pieces : (337,) int64
        Work arrays.

    Returns
    -------
    float64
        Over the product of the clocks' widths it is the confidence.
    """
    clocks = differences.shape[0] - 1
    if clocks == 1:
        return float(-differences[0, 1] - differences[1, 0] + 1)
    if clocks == 2:
        return pairs_within(
            differences[2, 0],
            -differences[0, 2],
            differences[2, 1],
            -differences[1, 2],
            differences[0, 1],
            -differences[1, 0],
        )
    if clocks == 3:
        return _three(differences, points)
    return _four(differences, work, points, ends_of_pieces) if clocks == 4 else np.nan
