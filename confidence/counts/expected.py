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

import numpy as np

from confidence.kernel import kernel

__all__ = ["covered_stretches", "event_rates", "expected_by_bucket"]


@kernel
def covered_stretches(order, lower, upper, starts, stops):
    """Merge intervals into stretches without gaps and return how many there are. O(n).

    Parameters
    ----------
    order : (n,) int64
        The intervals by ascending lower bound.
    lower, upper : (n,) int64
        Ticks, inclusive.
    starts, stops : (n,) int64
        Overwritten: the first tick of each stretch and the one behind its last.
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
def _place(starts, places, t, hint):
    """Return the stretch of a tick and the tick's place among those covered. O(log n), O(1) near the hint."""
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
    return low, places[low] + t - starts[low]


@kernel
def _add_to(high, low, place, x):
    """Add x to a pair of floats, exactly but for the last digits of the smaller one (Knuth's two-sum)."""
    before = high[place]
    after = before + x
    part = after - before
    low[place] += (before - (after - part)) + (x - part)
    high[place] = after


@kernel
def event_rates(lower, upper, offset, pmf, starts, places, high, low, active, out):
    """Write the expected number of events of one component at each covered tick.

    Parameters
    ----------
    lower, upper : (n,) int64
        The intervals of its candidates, ticks, inclusive.
    offset : (n,) int64
        Where the probabilities of a candidate start in ``pmf``; -1 for uniform.
    pmf : (m,) float64
    starts : (c,) int64
        First tick of each stretch, ascending.
    places : (c + 1,) int64
        Covered ticks before each stretch; at the end, all of them: T.
    high, low : (T + 1,) float64, active : (T + 1,) int32
        Work arrays.
    out : (T,) float64
        Overwritten.

    Notes
    -----
    O(n log c + T), and the sum of the lengths of explicit pmfs.
    """
    high[:] = 0.0
    low[:] = 0.0
    active[:] = 0
    stretch = 0
    for i in range(lower.shape[0]):
        if offset[i] < 0:
            stretch, place = _place(starts, places, lower[i], stretch)
            ticks = upper[i] - lower[i] + 1
            p = 1.0 / float(ticks)
            _add_to(high, low, place, p)
            _add_to(high, low, place + ticks, -p)
            active[place] += 1
            active[place + ticks] -= 1
    total = np.zeros(1)
    rest = np.zeros(1)
    running = 0
    for place in range(out.shape[0]):
        running += active[place]
        _add_to(total, rest, 0, high[place])
        rest[0] += low[place]
        if running == 0:
            total[0] = 0.0
            rest[0] = 0.0
        out[place] = total[0] + rest[0]
    for i in range(lower.shape[0]):
        if offset[i] >= 0:
            stretch, place = _place(starts, places, lower[i], stretch)
            for k in range(upper[i] - lower[i] + 1):
                out[place + k] += pmf[offset[i] + k]


@kernel
def _set_identity(matrix):
    matrix[:] = 0.0
    for j in range(matrix.shape[0]):
        matrix[j, j] = 1.0


@kernel
def expected_by_bucket(rates, starts, places, shift, window, every, out_stretch, out_bucket, out_value):
    """Write the expected number of matches by the bucket of the first event's time; return how many rows.

    Parameters
    ----------
    rates : (l, T) float64
        Expected number of events of each component at each covered tick.
    starts : (c,) int64, places : (c + 1,) int64
        As for :func:`event_rates`; stretches whose events must not meet are further apart than the window.
    shift : (c,) int64
        To be taken off the ticks of a stretch before they are put in buckets.
    window : int64
        W, ticks; a tick plus the window stays within int64.
    every : int64
        Length of a bucket, ticks; buckets start at its multiples. 0: one bucket for each stretch.
    out_stretch, out_bucket : (k,) int64; out_value : (k,) float64
        Overwritten: a stretch, first tick of a bucket and expected number of matches that begin in both,
        where it is above 0. Room for every bucket of every stretch.

    Notes
    -----
    The window slides over covered ticks only. The product over it is that of a suffix of one block and
    a prefix of the next: O(T l^2), memory O(l min(T, W)). No term is negative.
    """
    length, total = rates.shape
    count = starts.shape[0]
    suffix = np.empty((length, length))
    prefix = np.empty((length, length))
    _set_identity(prefix)
    room = 1024
    rows = np.empty((room, length))
    block = 0
    middle = 0
    right = 0
    right_stretch = 0
    written = 0
    for stretch in range(count):
        tick = starts[stretch] - 1
        bucket = np.int64(0)
        bucket_stop = np.int64(0)
        began = False
        value = 0.0
        for s in range(places[stretch], places[stretch + 1]):
            tick += 1
            if every > 0 and (not began or tick - shift[stretch] >= bucket_stop):
                if value > 0.0:
                    out_stretch[written] = stretch
                    out_bucket[written] = bucket
                    out_value[written] = value
                    written += 1
                    value = 0.0
                bucket = (tick - shift[stretch]) // every * every
                bucket_stop = bucket + every
            began = True
            old = right
            while right < total:
                while right >= places[right_stretch + 1]:
                    right_stretch += 1
                if starts[right_stretch] + right - places[right_stretch] > tick + window - 1:
                    break
                right += 1
            if s >= middle:
                # Nothing is left of the block: what the window holds now is the next one.
                block = s
                middle = right
                if middle - block > room:
                    room = max(2 * room, middle - block)
                    rows = np.empty((room, length))
                _set_identity(suffix)
                _set_identity(prefix)
                for t in range(middle - 1, block - 1, -1):
                    rows[t - block] = suffix[0]
                    for j in range(length - 1):
                        p = rates[j + 1, t]
                        if p > 0.0:
                            for k in range(j + 1, length):
                                suffix[j, k] += p * suffix[j + 1, k]
            else:
                for t in range(old, right):
                    for k in range(length - 1, 0, -1):
                        p = rates[k, t]
                        if p > 0.0:
                            for j in range(k):
                                prefix[j, k] += p * prefix[j, k - 1]
            if rates[0, s] > 0.0:
                inside = 0.0
                for k in range(length):
                    inside += rows[s - block, k] * prefix[k, length - 1]
                value += rates[0, s] * inside
        if value > 0.0:
            out_stretch[written] = stretch
            out_bucket[written] = bucket
            out_value[written] = value
            written += 1
    return written
