"""Exact confidence and tight range of a chain whose times have explicit probability mass functions.

Window out of reach: one pass of prefix sums over the ticks of each event. Window in reach: where the times
of two neighbours do not overlap, the sum over the first time of what may follow it within the window. Else
the sum over the first time s of ``p_0(s) (M_{s+1} ... M_{s+W-1})[0, l-1]`` with ``M_t = I + sum_j p_j(t)
E_{j-1,j}``; the product over a window is that of a suffix and a prefix of two blocks of W - 1 ticks, so every
tick costs O(l^2) whatever the window. All terms are non-negative: nothing cancels.
"""

from __future__ import annotations

import numpy as np

from confidence.chain.distribution import exactly
from confidence.kernel import kernel

__all__ = ["chain_confidence_pmf", "pmf_steps", "support_range"]


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
    can be, so the first feasible time is found by trying them in order; the last one by the mirror
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
    found = False
    while first <= upper[0]:
        t = first
        for j in range(1, length):
            t = _support_from(lower, upper, offset, pmf, j, t + 1)
            if t > upper[j]:
                return 0, -1
        if t - first <= window - 1:
            found = True
            break
        first = _support_from(lower, upper, offset, pmf, 0, max(first + 1, t - window + 1))
    if not found:
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


@kernel(allocates=True)
def _with_window(lower, upper, offset, pmf, window, first, last):
    length = lower.shape[0]
    span = window - 1
    total = 0.0
    rows = np.empty((span + 1, length))
    suffix = np.empty((length, length))
    prefix = np.empty((length, length))
    stop = min(last, upper[0])
    block = first
    while block <= stop:
        # rows[i] is row 0 of M_{block+i+1} ... M_{block+span}: what a window from s = block + i still sees
        for j in range(length):
            for k in range(length):
                suffix[j, k] = prefix[j, k] = 0.0
            suffix[j, j] = prefix[j, j] = 1.0
        for k in range(length):
            rows[span, k] = suffix[0, k]
        for i in range(span - 1, -1, -1):
            t = block + i + 1
            for j in range(length - 1):
                p = exactly(lower[j + 1], upper[j + 1], offset[j + 1], pmf, t)
                if p > 0.0:
                    for k in range(j + 1, length):
                        suffix[j, k] += p * suffix[j + 1, k]
            for k in range(length):
                rows[i, k] = suffix[0, k]
        for i in range(span + 1):
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
                    inside += rows[i, k] * prefix[k, length - 1]
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
    return steps + float(length) * (float(window) + 0.25 * float(ticks))


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
    with none; O((U + W) l^2) and memory O(W l) where all are one span and the window binds.
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
            return _with_window(lower, upper, offset, pmf, window, first, last)
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
