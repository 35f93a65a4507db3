"""Exact confidence and tight range of a chain whose times have explicit probability mass functions.

Window out of reach: one pass of prefix sums over the ticks of each event. Window in reach: where the times
of two neighbours do not overlap, the sum over the first time of what may follow it within the window. Else
the sum over the first time s of ``p_0(s) (M_{s+1} ... M_{s+W-1})[0, l-1]`` with ``M_t = I + sum_j p_j(t)
E_{j-1,j}``; the product over a window is that of a suffix and a prefix of two blocks of W - 1 ticks, so every
tick costs O(l^2) whatever the window. Where the first event has few ticks, or there are many events, the
first time is held instead, and what follows it within the window is one pass of prefix sums. All terms are
non-negative: nothing cancels.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from confidence.budget import plain_checkpoint
from confidence.chain.distribution import exactly
from confidence.kernel import kernel

__all__ = ["chain_confidence_pmf", "pmf_steps", "support_range"]

MOST_MATRIX_CELLS: Final = 2**22
"""Cells of a matrix of all pairs of events, and of rows of such matrices, that are held at a time: 32 MiB."""


@kernel
def _support_from(lower, upper, offset, pmf, j, t):
    """Return the first tick >= t that event j can have, or ``upper[j] + 1``."""
    t = max(t, lower[j])
    if offset[j] >= 0:
        while t <= upper[j] and not pmf[offset[j] + t - lower[j]] > 0.0:
            t += 1
    return min(t, upper[j] + 1)


@kernel
def _support_until(lower, upper, offset, pmf, j, t):
    """Return the last tick <= t that event j can have, or ``lower[j] - 1``."""
    t = min(t, upper[j])
    if offset[j] >= 0:
        while t >= lower[j] and not pmf[offset[j] + t - lower[j]] > 0.0:
            t -= 1
    return max(t, lower[j] - 1)


@kernel
def support_range(lower, upper, offset, pmf, window):
    """Return ``(first, last)``: the tight time range of a chain, or ``(0, -1)`` if it cannot happen.

    For a fixed first time the earliest possible successor at each step makes the chain as short as it
    can be, so the first feasible time is has_support by trying them in order; the last one by the mirror
    image. Typically O(sum U), at worst O(U sum U).

    Parameters
    ----------
    lower, upper : (l,) int64
        Interval bounds, ticks, inclusive.
    offset : (l,) int64
        Where the event's probabilities start in ``pmf``; -1 for uniform.
    pmf : (m,) float64
    window : int64
        W, ticks.
    """
    length = lower.shape[0]
    first = _support_from(lower, upper, offset, pmf, 0, lower[0])
    has_support = False
    while first <= upper[0]:
        t = first
        for j in range(1, length):
            t = _support_from(lower, upper, offset, pmf, j, t + 1)
            if t > upper[j]:
                return 0, -1
        if t - first <= window - 1:
            has_support = True
            break
        first = _support_from(lower, upper, offset, pmf, 0, max(first + 1, t - window + 1))
    if not has_support:
        return 0, -1
    end = length - 1
    last = _support_until(lower, upper, offset, pmf, end, upper[end])
    while last >= lower[end]:
        t = last
        for j in range(end - 1, -1, -1):
            t = _support_until(lower, upper, offset, pmf, j, t - 1)
        if last - t <= window - 1:
            break
        last = _support_until(lower, upper, offset, pmf, end, min(last - 1, t + window - 1))
    return first, last


@kernel
def _running(bounds, lower, upper, offset, pmf, begin, end, step, sums):
    """Write for each tick of event ``end`` the probability that it, and those from ``begin`` on, are by then.

    They are to be in order, ``step`` of 1 or -1 from one to the next, and within their tight ``bounds``.
    The sums are in the direction of ``step``, from the first tick of event ``begin`` on. Returns the last.
    """
    origin = bounds[0, begin] if step > 0 else -bounds[1, begin]
    over = origin - 1
    whole = 1.0
    for k in range(abs(end - begin) + 1):
        j = begin + step * k
        first = bounds[0, j] if step > 0 else -bounds[1, j]
        last = bounds[1, j] if step > 0 else -bounds[0, j]
        explicit = offset[j] >= 0
        start = offset[j] - lower[j]
        each = 1.0 / float(upper[j] - lower[j] + 1)
        earlier = sums[first - 1 - origin] if k > 0 else 1.0
        total = 0.0
        # In place: what stands where this event's sums go is of the event before, until that is over.
        for t in range(first, min(over, last) + 1):
            total += earlier * (pmf[start + step * t] if explicit else each)
            earlier = sums[t - origin]
            sums[t - origin] = total
        for t in range(max(over + 1, first), last + 1):
            total += whole * (pmf[start + step * t] if explicit else each)
            sums[t - origin] = total
        over, whole = last, total
    return whole


@kernel(inline=True)
def _put_before(suffix, lower, upper, offset, pmf, t):
    """Replace a product of matrices by M_t times it."""
    length = lower.shape[0]
    for j in range(length - 1):
        p = exactly(lower[j + 1], upper[j + 1], offset[j + 1], pmf, t)
        if p > 0.0:
            for k in range(j + 1, length):
                suffix[j, k] += p * suffix[j + 1, k]


@kernel
def _to_identity(matrix):
    for j in range(matrix.shape[0]):
        for k in range(matrix.shape[0]):
            matrix[j, k] = 0.0
        matrix[j, j] = 1.0


@kernel(allocates=True)
def _with_window(lower, upper, offset, pmf, window, first, last, most_cells):
    """Return the confidence of a chain, with about ``most_cells`` cells of rows at a time if it can be."""
    length = lower.shape[0]
    span = window - 1
    total = 0.0
    stop = min(last, upper[0])
    rows_of_block = min(span, stop - first) + 1
    kept = rows_of_block
    if kept * length > most_cells:
        # Rows of a part of the block, and a matrix where each part ends: least cells if as many as these.
        kept = int(math.sqrt(float(kept) * float(length))) + 1
    parts = (rows_of_block + kept - 1) // kept
    rows = np.empty((kept, length))
    ends = np.empty((parts if parts > 1 else 0, length, length))
    suffix = np.empty((length, length))
    prefix = np.empty((length, length))
    block = first
    while block <= stop:
        # The suffix at i is M_{block+i+1} ... M_{block+span}: of what a window from s = block + i still sees
        _to_identity(prefix)
        _to_identity(suffix)
        for i in range(span, kept - 1, -1):
            if i < span:
                _put_before(suffix, lower, upper, offset, pmf, block + i + 1)
            if parts > 1 and i % kept == 0 and i // kept <= parts:
                for j in range(length):
                    for k in range(length):
                        ends[i // kept - 1, j, k] = suffix[j, k]
        for part in range(parts):
            begin = part * kept
            if block + begin > stop:
                break
            if part > 0:
                if begin + kept > span:
                    _to_identity(suffix)
                else:
                    for j in range(length):
                        for k in range(length):
                            suffix[j, k] = ends[part, j, k]
            for i in range(min(begin + kept - 1, span), begin - 1, -1):
                if i < span:
                    _put_before(suffix, lower, upper, offset, pmf, block + i + 1)
                for k in range(length):
                    rows[i - begin, k] = suffix[0, k]
            for i in range(begin, min(begin + kept, span + 1)):
                s = block + i
                if s > stop:
                    break
                if i > 0:
                    t = block + span + i
                    for k in range(length - 1, 0, -1):
                        p = exactly(lower[k], upper[k], offset[k], pmf, t)
                        if p > 0.0:
                            for j in range(k):
                                prefix[j, k] += p * prefix[j, k - 1]
                p = exactly(lower[0], upper[0], offset[0], pmf, s)
                if p > 0.0:
                    inside = 0.0
                    for k in range(length):
                        inside += rows[i - begin, k] * prefix[k, length - 1]
                    total += p * inside
        block += span + 1
    return total


@kernel
def _tighten(lower, upper, first, last, bounds):
    """Write the first and last tick of each event, given those of the chain; return how many there are."""
    length = lower.shape[0]
    t = first
    for j in range(length):
        t = max(lower[j], t)
        bounds[0, j] = t
        t += 1
    t = last
    ticks = 0
    for j in range(length - 1, -1, -1):
        t = min(upper[j], t)
        bounds[1, j] = t
        t -= 1
        ticks += bounds[1, j] - bounds[0, j] + 1
    return ticks


@kernel
def _in_order(bounds, lower, upper, offset, pmf, begin, sums):
    """Return the probability that the events from one on are in order, and within their tight ``bounds``.

    ``sums`` has room for the ticks of each of the spans that the chain falls apart into.
    """
    length = lower.shape[0]
    total = 1.0
    while begin < length:
        end = begin
        while end < length - 1 and bounds[1, end] >= bounds[0, end + 1]:
            end += 1
        # Explicit probabilities may be a part of those of an event, which add up to less than 1.
        partial = offset[end] >= 0 or bounds[0, end] > lower[end] or bounds[1, end] < upper[end]
        if begin < end or partial:
            total *= _running(bounds, lower, upper, offset, pmf, begin, end, 1, sums)
        begin = end + 1
    return total


@kernel(allocates=True)
def _with_first_held(lower, upper, offset, pmf, window, bounds, sums):
    """Return the confidence of a chain whose times are within ``bounds``. O(U_0 sum U), memory O(l)."""
    length = lower.shape[0]
    held = np.empty((2, length), np.int64)
    total = 0.0
    for s in range(bounds[0, 0], bounds[1, 0] + 1):
        plain_checkpoint()
        p = exactly(lower[0], upper[0], offset[0], pmf, s)
        # Bounds of the chain leave each time a next one, but not always within the window.
        t = s
        for j in range(1, length):
            t = max(bounds[0, j], t + 1)
            held[0, j] = t
        t = s + window
        possible = p > 0.0
        for j in range(length - 1, 0, -1):
            t = min(bounds[1, j], t - 1)
            held[1, j] = t
            possible = possible and held[0, j] <= t
        if possible:
            total += p * _in_order(held, lower, upper, offset, pmf, 1, sums)
    return total


@kernel
def _steps_by_window(length, window, ticks):
    """Return about how many steps the product of the matrices of all ticks takes."""
    return float(length) * (float(window) + 0.25 * float(ticks))


@kernel
def _steps_by_first(length, bounds, ticks):
    """Return about how many steps it takes to hold the first time."""
    return float(bounds[1, 0] - bounds[0, 0] + 1) * float(ticks + 2 * length)


@kernel
def _holds_first(length, window, bounds, ticks):
    """Return whether the first time is held rather than the window swept."""
    return float(length) * float(length) > MOST_MATRIX_CELLS or _steps_by_first(
        length, bounds, ticks
    ) < _steps_by_window(length, window, ticks)


@kernel(allocates=True)
def pmf_steps(lower, upper, window, first, last):
    """Return about how many steps :func:`chain_confidence_pmf` takes, given the same.

    A step goes through a tick of one event, or through eight multiplications of a vector. O(l).
    """
    length = lower.shape[0]
    bounds = np.empty((2, length), np.int64)
    ticks = _tighten(lower, upper, first, last, bounds)
    steps = float(last - first + 1) * float(length)
    if last - first < window:
        return steps
    for j in range(1, length):
        if bounds[1, j - 1] < bounds[0, j]:
            return steps
    if _holds_first(length, window, bounds, ticks):
        return steps + _steps_by_first(length, bounds, ticks)
    return steps + _steps_by_window(length, window, ticks)


@kernel(allocates=True)
def chain_confidence_pmf(lower, upper, offset, pmf, window, first, last):
    """Return the confidence of a chain with explicit or uniform probabilities.

    Parameters
    ----------
    lower, upper, offset, pmf, window
        As for :func:`support_range`.
    first, last : int64
        What :func:`support_range` returned, ``first <= last``.

    Notes
    -----
    Where the times of neighbours do not overlap the chain falls apart: into spans that are in order each for
    itself, the window tying the first to the last. O(sum U), and nothing for a uniform event that overlaps
    with none. Where all are one span and the window binds, the cheaper of O((U + W) l^2), with memory
    O(l^2 + min(W l, l sqrt(W l))), and O(U_0 sum U), with memory O(sum U).
    """
    length = lower.shape[0]
    bounds = np.empty((2, length), np.int64)
    ticks = _tighten(lower, upper, first, last, bounds)
    binding = last - first >= window
    # Those of a span overlap, so it is no longer than they are together.
    sums = np.empty((2, ticks))
    first_end = 0
    begin = end = 0
    total = 1.0
    while begin < length:
        end = begin
        while end < length - 1 and bounds[1, end] >= bounds[0, end + 1]:
            end += 1
        if binding and end - begin == length - 1:
            if _holds_first(length, window, bounds, ticks):
                return _with_first_held(lower, upper, offset, pmf, window, bounds, sums[0])
            return _with_window(lower, upper, offset, pmf, window, first, last, MOST_MATRIX_CELLS)
        is_end = binding and (begin == 0 or end == length - 1)
        # Explicit probabilities may be a part of those of an event, which add up to less than 1.
        partial = offset[end] >= 0 or bounds[0, end] > lower[end] or bounds[1, end] < upper[end]
        if begin < end or partial or is_end:
            # Of the first span what comes behind its first event is summed backwards.
            back = 1 if binding and begin == 0 else 0
            start, stop = (end, min(1, end)) if back else (begin, end)
            span = _running(bounds, lower, upper, offset, pmf, start, stop, 1 - 2 * back, sums[back])
            total *= 1.0 if is_end else span
        if begin == 0:
            first_end = end
        elif end == length - 1:
            break
        begin = end + 1
    if not binding:
        return total
    inside = 0.0
    end = length - 1
    for s in range(max(first, bounds[0, end] - window + 1), bounds[1, 0] + 1):
        later = sums[1, bounds[1, first_end] - max(s + 1, bounds[0, 1])] if first_end > 0 else 1.0
        until = min(s + window - 1, bounds[1, end])
        at_first = pmf[offset[0] + s - lower[0]] if offset[0] >= 0 else 1.0 / float(upper[0] - lower[0] + 1)
        inside += at_first * later * sums[0, until - bounds[0, begin]]
    return total * inside
