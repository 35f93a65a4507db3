"""Sums over explicit probabilities of times with bounds on each difference of neighbours, tick by tick.

A sum over the ticks between two distances is one over a sliding window of as many ticks. The sums of each
block of that length, from its start and to its end, give any such window as one of each: nothing is
subtracted.
"""

from __future__ import annotations

import math

from confidence.kernel import kernel
from confidence.timed.bounds import UNBOUND
from confidence.timed.cycles import tighten

__all__ = ["describe_by_ticks"]


@kernel
def _running(front, size, block, prefix, suffix):
    """Write the sums of each block from its start and to its end."""
    for begin in range(0, size, block):
        end = min(begin + block, size)
        # Side by side: each sum waits for its last addition.
        behind, ahead = 0.0, 0.0
        for k in range(end - begin):
            behind += front[begin + k]
            ahead += front[end - 1 - k]
            prefix[begin + k] = behind
            suffix[end - 1 - k] = ahead


@kernel
def _fill(out, begin, end, value):
    """Write a value to some places."""
    part = out[begin : max(begin, end)]
    for k in range(part.shape[0]):
        part[k] = value


@kernel
def _windows(prefix, suffix, size, block, x, y, weight, out, count):
    """Write the sums over windows that move by one tick each, the first one over x..y, times a weight.

    A window is as long as a block or cut by the ends of the values; x is at most 0 if it does not move at its
    start, and y at least ``size`` if not at its end.
    """
    # Places where the windows reach the values, leave their first one, and leave their last one.
    reached = min(max(-y, 0), count)
    inside = max(min(max(1 - x, 0), count), reached)
    done = max(min(max(size - x, 0), count), inside)
    _fill(out, 0, reached, 0.0)
    _fill(out, done, count, 0.0)
    full = min(max(size - y, reached), inside)
    part, source = out[reached:full], prefix[y + reached : y + full]
    for k in range(part.shape[0]):
        part[k] = weight * source[k]
    _fill(out, full, inside, weight * prefix[size - 1])
    n = inside
    while n < done:
        at = x + n
        following = at - at % block + block
        if at + block == following:
            out[n] = weight * suffix[at]
            n += 1
            at += 1
        stop = min(done, following - x)
        if following >= size:
            part, source = out[n:stop], suffix[at : at + stop - n]
            for k in range(part.shape[0]):
                part[k] = weight * source[k]
        else:
            middle = max(min(stop, size - block + 1 - x), n)
            width = middle - n
            part, source, others = out[n:middle], suffix[at : at + width], prefix[at + block - 1 :]
            for k in range(width):
                part[k] = weight * (source[k] + others[k])
            total = prefix[size - 1]
            part, source = out[middle:stop], suffix[at + width : at + stop - n]
            for k in range(part.shape[0]):
                part[k] = weight * (source[k] + total)
        n = stop


@kernel
def _weight(size):
    """Return the probability of each tick of a uniform time, 1 for an explicit one."""
    return 1.0 if size == 0.0 else 1.0 / size


@kernel
def _weigh(first, count, offset, size, values, out):
    """Multiply by the explicit probability of each tick from ``first`` on."""
    if size == 0.0:
        own = values[offset + first : offset + first + count]
        for k in range(count):
            out[k] *= own[k]


@kernel
def _pass(a, b, g, h, offset, size, values, step, front, sums):
    """Carry the weights of the times from one end to the other; return where ``front`` has the last."""
    length = a.shape[0]
    j = 0 if step > 0 else length - 1
    side = 0
    width = b[j] - a[j] + 1
    _fill(front[side], 0, width, _weight(size[j]))
    _weigh(a[j], width, offset[j], size[j], values, front[side])
    for _ in range(length - 1):
        edge = j + 1 if step > 0 else j
        following = j + step
        is_bound = h[edge] < UNBOUND
        block = min(width, h[edge] - g[edge] + 1) if is_bound else width
        count = b[following] - a[following] + 1
        # Without a largest distance a window reaches to the end, or from the start.
        shift = a[following] - a[j]
        if step > 0:
            x, y = shift - h[edge] if is_bound else -count, shift - g[edge]
        else:
            x, y = shift + g[edge], shift + h[edge] if is_bound else width
        _running(front[side], width, block, sums[0], sums[1])
        weight = _weight(size[following])
        _windows(sums[0], sums[1], width, block, x, y, weight, front[1 - side], count)
        _weigh(a[following], count, offset[following], size[following], values, front[1 - side])
        side = 1 - side
        j = following
        width = count
    return side


@kernel
def describe_by_ticks(lower, upper, offset, size, values, g, h, window, bounds, front, sums, out):
    """Fill range and confidence of matches of l events each, some with explicit probabilities.

    Parameters
    ----------
    lower, upper : (k, l) int64
        The ticks that their events may happen at, inclusive.
    offset : (k, l) int64
        Where the probability of tick 0 would be among ``values``, for explicit ones.
    size : (k, l) float64
        How many ticks a uniform event has; 0 for explicit probabilities.
    values : (m,) float64
    g, h, window
        See :func:`confidence.timed.bounded_matches.describe_bounded`.
    bounds : (2, l) int64, front, sums : (2, u) float64
        Work arrays, for the ticks of the longest event.
    out : tuple of (k,) int64 twice and (k,) float64
        Overwritten; the confidence is NaN where the window binds. O(sum of ticks) a match.
    """
    out_lower, out_upper, out_confidence = out
    length = lower.shape[1]
    a, b = bounds[0], bounds[1]
    for n in range(lower.shape[0]):
        out_lower[n], out_upper[n], out_confidence[n] = 0, -1, 0.0
        m = min(n, window.shape[0] - 1)
        if not tighten(lower[n], upper[n], g[m], h[m], window[m], a, b):
            continue
        if b[length - 1] - a[0] >= window[m]:
            out_confidence[n] = math.nan
            continue
        side = _pass(a, b, g[m], h[m], offset[n], size[n], values, 1, front, sums)
        total = 0.0
        for t in range(a[length - 1], b[length - 1] + 1):
            weight = front[side, t - a[length - 1]]
            total += weight
            if weight > 0.0:
                out_upper[n] = t
        if not total > 0.0:
            continue
        out_confidence[n] = total
        out_lower[n] = a[0]
        explicit = False
        for j in range(length):
            explicit = explicit or size[n, j] == 0.0
        if not explicit:
            # The bounds are tight, and no tick between them is impossible.
            continue
        side = _pass(a, b, g[m], h[m], offset[n], size[n], values, -1, front, sums)
        while not front[side, out_lower[n] - a[0]] > 0.0:
            out_lower[n] += 1
