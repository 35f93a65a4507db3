"""Expected number of matches of SEQ under skip till any match, without enumerating them.

By linearity of expectation every event counts for itself: with ``r_j(t)``, the sum of the probabilities that
the candidates of component j happen at tick t, the expected number of matches is

    sum over s of  r_0(s) * (M_{s+1} ... M_{s+W-1})[0, l-1],   M_t = I + sum_{j>=1} r_j(t) E_{j-1,j},

the recurrence of a single chain (:mod:`confidence.chain.pmf`) with rates in place of probabilities, as long
as no event is a candidate of two components. Ticks at which nothing can happen are left out, so that the cost
is O(l^2) for each tick covered by some interval, whatever the window and the number of matches.

Rates of uniform intervals are running sums of differences. They are kept as pairs of floats whose sum is
exact to about 32 digits, so that long intervals leave no residue where short ones are small.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, multiplications_per_call
from confidence.chain.distribution import DOUBTFUL
from confidence.kernel import kernel

__all__ = ["Covered", "Sliding", "event_rates", "expected_by_bucket", "merged_intervals", "slide"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

FINISHED: Final = -1
PAUSED: Final = 0


class Covered(NamedTuple):
    """The ticks at which something can happen: c segments of them, T ticks in all.

    Attributes
    ----------
    starts : (c,) int64
        First tick of each segment, ascending.
    places : (c + 1,) int64
        Covered ticks before each segment; at the end, all of them.
    """

    starts: Int64
    places: Int64


class Sliding(NamedTuple):
    """A product of matrices over a window that slides along covered ticks, and where it has come to.

    Attributes
    ----------
    at : (12,) int64, value : (1,) float64
        The numbers of :func:`slide`.
    suffix, prefix : (l, l) float64
        The products of what the window still holds of its block, and of what it holds behind it.
    rows : (r, l) float64
        The first row of the suffix from each tick of the block on.
    """

    at: Int64
    value: Float64
    suffix: Float64
    prefix: Float64
    rows: Float64


@kernel
def merged_intervals(order, lower, upper, starts, stops):
    """Merge intervals into segments without gaps and return how many there are. O(n).

    Parameters
    ----------
    order : (n,) int64
        The intervals by ascending lower bound.
    lower, upper : (n,) int64
        Ticks, inclusive.
    starts, stops : (n,) int64
        Overwritten: the first tick of each segment and the one behind its last.
    """
    count = 0
    for n in range(order.shape[0]):
        i = order[n]
        if count and lower[i] <= stops[count - 1]:
            stops[count - 1] = max(stops[count - 1], upper[i] + 1)
        else:
            starts[count] = lower[i]
            stops[count] = upper[i] + 1
            count += 1
    return count


@kernel
def _place(covered, t, hint):
    """Return the segment of a tick and the tick's place among those covered. O(log n), O(1) near the hint."""
    starts = covered.starts
    count = starts.shape[0]
    low = hint
    if starts[low] > t or (low + 1 < count and starts[low + 1] <= t):
        low = 0
        high = count
        while high - low > 1:
            middle = (low + high) >> 1
            if starts[middle] <= t:
                low = middle
            else:
                high = middle
    return low, covered.places[low] + t - starts[low]


@kernel
def _add_to(high, low, place, x):
    """Add x to a pair of floats, exactly but for the last digits of the smaller one (Knuth's two-sum)."""
    before = high[place]
    after = before + x
    part = after - before
    low[place] += (before - (after - part)) + (x - part)
    high[place] = after


@kernel
def _happened(offset, pmf):
    """Return the probability that an event happened, and its offset if it did."""
    if offset > DOUBTFUL:
        return 1.0, offset
    return pmf[DOUBTFUL - offset], int(pmf[DOUBTFUL - offset + 1])


@kernel(allocates=True)
def event_rates(events, pmf, covered, out):
    """Write the expected number of events of one component at each covered tick.

    Parameters
    ----------
    events : Intervals
        Its candidates; some may not have happened.
    pmf : (m,) float64
        The explicit probabilities.
    covered : Covered
    out : (T,) float64
        Overwritten.

    Notes
    -----
    O(n log c + T), and the sum of the lengths of explicit pmfs.
    """
    lower, upper, offset = events
    high = np.zeros(out.shape[0] + 1)
    low = np.zeros(out.shape[0] + 1)
    active = np.zeros(out.shape[0] + 1, np.int32)
    segment = 0
    for i in range(lower.shape[0]):
        happened, start = _happened(offset[i], pmf)
        if start < 0:
            segment, place = _place(covered, lower[i], segment)
            ticks = upper[i] - lower[i] + 1
            p = happened / float(ticks)
            _add_to(high, low, place, p)
            _add_to(high, low, place + ticks, -p)
            active[place] += 1
            active[place + ticks] -= 1
    total = np.zeros(1)
    remainder = np.zeros(1)
    running = 0
    for place in range(out.shape[0]):
        running += active[place]
        _add_to(total, remainder, 0, high[place])
        remainder[0] += low[place]
        if running == 0:
            total[0] = 0.0
            remainder[0] = 0.0
        out[place] = total[0] + remainder[0]
    for i in range(lower.shape[0]):
        happened, start = _happened(offset[i], pmf)
        if start >= 0:
            segment, place = _place(covered, lower[i], segment)
            for k in range(upper[i] - lower[i] + 1):
                out[place + k] += happened * pmf[start + k]


@kernel
def slide(rates, covered, shift, window, every, budget, sliding, out_segment, out_bucket, out_value):
    """Write the expected number of matches by the bucket of the first event's time, as far as a budget goes.

    Parameters
    ----------
    rates, covered, shift, window, every
        See :func:`expected_by_bucket`.
    budget : float64
        Multiplications after which to pause.
    sliding : Sliding
        All numbers are 0 at first.
    out_segment, out_bucket : (k,) int64; out_value : (k,) float64
        Overwritten: a segment, first tick of a bucket and expected number of matches that begin in both,
        where it is above 0. Room for every bucket of every segment.

    Returns
    -------
    written : int64
    need : int64
        FINISHED, PAUSED, or the number of rows that a block needs.
    """
    length, total = rates.shape
    starts, places = covered
    at, suffix, prefix, rows = sliding.at, sliding.suffix, sliding.prefix, sliding.rows
    s, segment, block, middle, right, right_segment = at[0], at[1], at[2], at[3], at[4], at[5]
    filled, joined, bucket, bucket_stop, began, written = at[6], at[7], at[8], at[9], at[10], at[11]
    value = sliding.value[0]
    steps_left = int(max(budget / float(length * length), 1.0))
    need = FINISHED
    while s < total:
        while s >= places[segment + 1]:
            if value > 0.0:
                out_segment[written], out_bucket[written], out_value[written] = segment, bucket, value
                written += 1
                value = 0.0
            segment += 1
            began = 0
            bucket = 0
        tick = starts[segment] + s - places[segment]
        if every > 0 and (began == 0 or tick - shift[segment] >= bucket_stop):
            if value > 0.0:
                out_segment[written], out_bucket[written], out_value[written] = segment, bucket, value
                written += 1
                value = 0.0
            bucket = (tick - shift[segment]) // every * every
            bucket_stop = bucket + every
        began = 1
        while right < total:
            while right >= places[right_segment + 1]:
                right_segment += 1
            if starts[right_segment] + right - places[right_segment] > tick + window - 1:
                break
            right += 1
        if s >= middle:
            # Nothing is left of the block: what the window holds now is the next one.
            if right - s > rows.shape[0]:
                need = right - s
                break
            block = s
            middle = filled = joined = right
            for j in range(length):
                for k in range(length):
                    suffix[j, k] = prefix[j, k] = 0.0
                suffix[j, j] = prefix[j, j] = 1.0
        while filled > block and steps_left > 0:
            filled -= 1
            steps_left -= 1
            for k in range(length):
                rows[filled - block, k] = suffix[0, k]
            for j in range(length - 1):
                p = rates[j + 1, filled]
                if p > 0.0:
                    for k in range(j + 1, length):
                        suffix[j, k] += p * suffix[j + 1, k]
        while joined < right and steps_left > 0:
            steps_left -= 1
            for k in range(length - 1, 0, -1):
                p = rates[k, joined]
                if p > 0.0:
                    for j in range(k):
                        prefix[j, k] += p * prefix[j, k - 1]
            joined += 1
        if steps_left <= 0:
            # Once more at this tick, whatever is left of it.
            need = PAUSED
            break
        if rates[0, s] > 0.0:
            inside = 0.0
            for k in range(length):
                inside += rows[s - block, k] * prefix[k, length - 1]
            value += rates[0, s] * inside
        s += 1
    if need == FINISHED and value > 0.0:
        out_segment[written], out_bucket[written], out_value[written] = segment, bucket, value
        written += 1
    at[0], at[1], at[2], at[3], at[4], at[5] = s, segment, block, middle, right, right_segment
    at[6], at[7], at[8], at[9], at[10], at[11] = filled, joined, bucket, bucket_stop, began, written
    sliding.value[0] = value
    return written, need


def expected_by_bucket(
    rates: Float64, covered: Covered, shift: Int64, window: int, every: int
) -> tuple[Int64, Int64, Float64]:
    """Return the expected number of matches by the bucket of the first event's time.

    Parameters
    ----------
    rates : (l, T) float64
        Expected number of events of each component at each covered tick.
    covered : Covered
        Segments whose events must not meet are further apart than the window.
    shift : (c,) int64
        To be taken off the ticks of a segment before they are put in buckets.
    window : int
        W, ticks; a tick plus the window stays within int64.
    every : int
        Length of a bucket, ticks; buckets start at its multiples. 0: one bucket for each segment.

    Returns
    -------
    segment, bucket : (k,) int64; value : (k,) float64
        A segment, first tick of a bucket and expected number of matches that begin in both, where it is above
        0.

    Notes
    -----
    The window slides over covered ticks only. The product over it is that of a suffix of one block and
    a prefix of the next: O(T l^2), memory O(l min(T, W)). No term is negative.
    """
    kernel: Any = slide
    length, lengths = len(rates), np.diff(covered.places)
    buckets = len(lengths) + (int((lengths // every + 1).sum()) if every else 0)
    out = np.empty(buckets, np.int64), np.empty(buckets, np.int64), np.empty(buckets)
    suffix, prefix = np.empty((2, length, length))
    sliding = Sliding(np.zeros(12, np.int64), np.zeros(1), suffix, prefix, np.empty((1024, length)))
    written, need = 0, PAUSED
    while need != FINISHED:
        written, need = kernel(
            rates, covered, shift, window, every, multiplications_per_call(), sliding, *out
        )
        checkpoint()
        if need > 0:
            # Doubled, so that blocks that grow need few rooms.
            room = max(need, min(2 * len(sliding.rows), rates.shape[1]))
            sliding = sliding._replace(rows=np.empty((room, length)))
    return out[0][:written], out[1][:written], out[2][:written]
