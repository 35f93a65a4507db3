"""What is counted too much where one event is a candidate of several components: its uses with itself.

With rates (:mod:`confidence.expected`) every choice of one candidate a component counts, those with an event
in two places too. By inversion over the partitions of the components, for up to three of them,

    distinct = all - sum over {i, j} of [i and j by one event] + 2 [all three by one event]

where the components left over are free. Each term is a sum over the ticks of one event, and of rates over
what the others leave free.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from confidence.distribution import exactly

__all__ = ["repeated_uses", "running_totals"]


@njit(cache=True, nogil=True, error_model="numpy")
def running_totals(rates, high, low):
    """Write sums of rates from the first tick on, as pairs of floats. O(l T).

    Parameters
    ----------
    rates : (l, T) float64
    high, low : (l, T + 1) float64
        Overwritten.
    """
    for j in range(rates.shape[0]):
        total = 0.0
        rest = 0.0
        high[j, 0] = 0.0
        low[j, 0] = 0.0
        for t in range(rates.shape[1]):
            x = rates[j, t]
            after = total + x
            part = after - total
            rest += (total - (after - part)) + (x - part)
            total = after
            high[j, t + 1] = total
            low[j, t + 1] = rest


@njit(cache=True, nogil=True, error_model="numpy")
def _covered_before(starts, places, t):
    """Return how many covered ticks are before a tick. O(log c)."""
    stretch = np.searchsorted(starts, t, side="right") - 1
    if stretch < 0:
        return np.int64(0)
    return places[stretch] + min(t - starts[stretch], places[stretch + 1] - places[stretch])


@njit(cache=True, nogil=True, error_model="numpy")
def _between(high, low, j, begin, end):
    """Return the sum of the rates of a component from a place up to another one, which does not count."""
    if end <= begin:
        return 0.0
    return (high[j, end] - high[j, begin]) + (low[j, end] - low[j, begin])


@njit(cache=True, nogil=True, error_model="numpy")
def _bucket_of(t, every):
    return t // every if every > 0 else np.int64(0)


@njit(cache=True, nogil=True, error_model="numpy")
def repeated_uses(
    uses, lower, upper, offset, pmf, shift, starts, places, high, low, window, every, out_event, out_bucket,
    out_value,
):  # fmt: skip
    """Write how much the uses of one event in several places count, by the bucket of the first time.

    Parameters
    ----------
    uses : (n, l) bool, l = 2 or 3
        Which components can take each event.
    lower, upper : (n,) int64
        Intervals on the line of ``starts``, ticks.
    offset : (n,) int64, pmf : (m,) float64
        As for :func:`confidence.event_rates`.
    shift : (n,) int64
        To be taken off ticks before they are put in buckets.
    starts, places, window, every
        As for :func:`confidence.expected_by_bucket`.
    high, low : (l, T + 1) float64
        From :func:`running_totals`.
    out_event, out_bucket : (k,) int64; out_value : (k,) float64
        Overwritten: an event, first tick of a bucket, and what to take off there. Room for each bucket that
        the interval and the window before it touch.

    Returns
    -------
    int64
        How many rows were written.

    Notes
    -----
    O(U min(U, W)) for an event of U ticks, and as often the buckets of a window for the last two of three.
    """
    length = uses.shape[1]
    written = 0
    for e in range(uses.shape[0]):
        ticks = upper[e] - lower[e] + 1
        begin = lower[e] - shift[e]
        first_bucket = _bucket_of(begin - window, every)
        sums = np.zeros(_bucket_of(begin + ticks - 1, every) - first_bucket + 1)
        place = _covered_before(starts, places, lower[e])
        p = np.empty(ticks)
        for k in range(ticks):
            p[k] = exactly(lower[e], upper[e], offset[e], pmf, lower[e] + k)
        for a in range(ticks):
            if p[a] == 0.0:
                continue
            stop = _covered_before(starts, places, lower[e] + a + window)
            later = 0.0
            own = 0.0
            for b in range(min(ticks - 1, a + window - 1), a, -1):
                w = p[a] * p[b]
                if w > 0.0:
                    if length == 2:
                        own += w
                    else:
                        if uses[e, 0] and uses[e, 1]:
                            own += w * _between(high, low, 2, place + b + 1, stop)
                        if uses[e, 0] and uses[e, 2]:
                            own += w * _between(high, low, 1, place + a + 1, place + b)
                        if uses[e, 0] and uses[e, 1] and uses[e, 2]:
                            own -= 2.0 * w * later
                        if uses[e, 1] and uses[e, 2]:
                            t = lower[e] + b - window + 1
                            while t < lower[e] + a:
                                bucket = _bucket_of(t - shift[e], every)
                                end = lower[e] + a
                                if every > 0:
                                    end = min(end, (bucket + 1) * every + shift[e])
                                sums[bucket - first_bucket] += w * _between(
                                    high, low, 0, _covered_before(starts, places, t),
                                    _covered_before(starts, places, end),
                                )  # fmt: skip
                                t = end
                later += p[b]
            sums[_bucket_of(begin + a, every) - first_bucket] += own
        for k in range(sums.shape[0]):
            if sums[k] != 0.0:
                out_event[written] = e
                out_bucket[written] = (first_bucket + k) * every
                out_value[written] = sums[k]
                written += 1
    return written
