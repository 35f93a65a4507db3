"""What is counted too much where one event is a candidate of several components: its uses with itself.

With rates (:mod:`confidence.counts.expected`) every choice of one candidate a component counts, those with an
event in two places too. By Moebius inversion over the partitions of the components into blocks of one event
each,

    distinct = sum over partitions of  prod over blocks B of (-1)^(|B| - 1) (|B| - 1)!  [each B by one event].

Up to three components that is

    distinct = all - sum over {i, j} of [i and j by one event] + 2 [all three by one event]

where the components left over are free: each term is a sum over the ticks of one event, and of rates over
what the others leave free (:func:`repeated_uses`). Up to five, at most two blocks have more than one
component; each term is the recurrence of :mod:`confidence.counts.expected` once more, around an event, with
its probabilities in place of the rates of its block (:func:`repeated_choices`).
"""

from __future__ import annotations

import numpy as np

from confidence.chain.distribution import exactly
from confidence.counts.expected import expected_by_bucket
from confidence.kernel import kernel

__all__ = ["repeated_choices", "repeated_uses", "running_totals"]


@kernel
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


@kernel
def _covered_before(starts, places, t):
    """Return how many covered ticks are before a tick. O(log c)."""
    stretch = np.searchsorted(starts, t, side="right") - 1
    if stretch < 0:
        return np.int64(0)
    return places[stretch] + min(t - starts[stretch], places[stretch + 1] - places[stretch])


@kernel
def _between(high, low, j, begin, end):
    """Return the sum of the rates of a component from a place up to another one, which does not count."""
    if end <= begin:
        return 0.0
    return (high[j, end] - high[j, begin]) + (low[j, end] - low[j, begin])


@kernel
def _bucket_of(t, every):
    return t // every if every > 0 else np.int64(0)


@kernel
def repeated_uses(
    uses, lower, upper, offset, pmf, shift, starts, places, high, low, window, every, first, stop, out_event,
    out_bucket, out_value,
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
    first, stop : int64
        The events to look at: ``first .. stop - 1``.
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
    for e in range(first, stop):
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
            end = _covered_before(starts, places, lower[e] + a + window)
            later = 0.0
            own = 0.0
            for b in range(min(ticks - 1, a + window - 1), a, -1):
                w = p[a] * p[b]
                if w > 0.0:
                    if length == 2:
                        own += w
                    else:
                        if uses[e, 0] and uses[e, 1]:
                            own += w * _between(high, low, 2, place + b + 1, end)
                        if uses[e, 0] and uses[e, 2]:
                            own += w * _between(high, low, 1, place + a + 1, place + b)
                        if uses[e, 0] and uses[e, 1] and uses[e, 2]:
                            own -= 2.0 * w * later
                        if uses[e, 1] and uses[e, 2]:
                            t = lower[e] + b - window + 1
                            while t < lower[e] + a:
                                bucket = _bucket_of(t - shift[e], every)
                                until = lower[e] + a
                                if every > 0:
                                    until = min(until, (bucket + 1) * every + shift[e])
                                sums[bucket - first_bucket] += w * _between(
                                    high, low, 0, _covered_before(starts, places, t),
                                    _covered_before(starts, places, until),
                                )  # fmt: skip
                                t = until
                later += p[b]
            sums[_bucket_of(begin + a, every) - first_bucket] += own
        for k in range(sums.shape[0]):
            if sums[k] != 0.0:
                out_event[written] = e
                out_bucket[written] = (first_bucket + k) * every
                out_value[written] = sums[k]
                written += 1
    return written


@kernel
def _weight(block):
    """Return how often what a block of components counts by one event is to be taken off."""
    weight = 1.0
    size = 0
    while block > 0:
        if block & 1 == 1:
            size += 1
            weight *= -float(max(size - 1, 1))
        block >>= 1
    return weight


@kernel
def _part_of_line(starts, places, begin, end):
    """Return the stretches between two ticks, the last excluded: first place, and their starts and places."""
    first = _covered_before(starts, places, begin)
    stretch = max(np.searchsorted(starts, begin, side="right") - 1, 0)
    if first == places[stretch + 1]:
        stretch += 1
    count = max(np.searchsorted(starts, end, side="left") - stretch, 0)
    own_starts = np.empty(count, np.int64)
    own_places = np.zeros(count + 1, np.int64)
    for k in range(count):
        own_starts[k] = max(starts[stretch + k], begin)
        own_places[k] = max(places[stretch + k], first) - first
    own_places[count] = _covered_before(starts, places, end) - first
    return first, own_starts, own_places


@kernel
def _fill(rows, block, part, event, lower, upper, offset, pmf):
    """Put an event's probabilities in place of the rates of a block's components."""
    _, starts, places = part
    for j in range(rows.shape[0]):
        if block >> j & 1 == 0:
            continue
        rows[j, :] = 0.0
        for k in range(starts.shape[0]):
            size = places[k + 1] - places[k]
            for t in range(max(lower[event], starts[k]), min(upper[event], starts[k] + size - 1) + 1):
                rows[j, places[k] + t - starts[k]] = exactly(
                    lower[event], upper[event], offset[event], pmf, t
                )


@kernel
def _add_chains(rows, part, shift, window, every, weight, first_bucket, sums):
    """Add the expected number of chains with some rates, times a weight, to what each bucket holds."""
    _, starts, places = part
    count = starts.shape[0]
    room = count
    if every > 0:
        for k in range(count):
            room += (places[k + 1] - places[k]) // every + 1
    stretch, bucket, value = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    found = expected_by_bucket(
        rows, starts, places, np.full(count, shift), window, every, stretch, bucket, value
    )
    for k in range(found):
        place = bucket[k] // every - first_bucket if every > 0 else 0
        sums[place] += weight * value[k]


@kernel
def repeated_choices(
    uses, lower, upper, offset, pmf, shift, rates, starts, places, window, every, apart, first, stop,
    out_event, out_bucket, out_value,
):  # fmt: skip
    """Write what :func:`repeated_uses` does, for up to five components.

    Parameters
    ----------
    uses : (n,) int64
        Bits of the components that can take each event.
    lower, upper, offset, shift : (n,) int64, pmf : (m,) float64
        As for :func:`repeated_uses`; ascending ``lower``.
    rates : (l, T) float64
        From :func:`confidence.event_rates`.
    starts, places, window, every, first, stop, out_event, out_bucket, out_value
        As for :func:`repeated_uses`.
    apart : bool
        Whether two blocks of several components each may be taken by one event each.

    Returns
    -------
    int64
        How many rows were written.

    Notes
    -----
    O((U + W) l^2) for an event of U ticks and each block of its components; with ``apart`` as often again for
    each event in reach.
    """
    length = rates.shape[0]
    longest = np.int64(0)
    for e in range(lower.shape[0]):
        longest = max(longest, upper[e] - lower[e])
    written = 0
    for e in range(first, stop):
        begin = lower[e] - shift[e]
        first_bucket = _bucket_of(begin - window, every)
        sums = np.zeros(_bucket_of(upper[e] - shift[e], every) - first_bucket + 1)
        block = uses[e]
        while block > 0:
            if block & (block - 1) > 0:
                # The first time is the event's own, or at most a window before one of its times.
                low = lower[e] - (0 if block & 1 == 1 else window - 1)
                high = upper[e] + (0 if block >> (length - 1) == 1 else window - 1)
                part = _part_of_line(starts, places, low, high + 1)
                rows = rates[:, part[0] : part[0] + part[2][-1]].copy()
                _fill(rows, block, part, e, lower, upper, offset, pmf)
                weight = _weight(block)
                _add_chains(rows, part, shift[e], window, every, weight, first_bucket, sums)
                other = np.searchsorted(lower, low - longest, side="left")
                while apart and other < lower.shape[0] and lower[other] <= high:
                    second = uses[other] & ~block
                    while second > 0 and upper[other] >= low:
                        # Each two blocks once: the first one has the first component of both.
                        if second & (second - 1) > 0 and (second & -second) > (block & -block):
                            both = rows.copy()
                            _fill(both, second, part, other, lower, upper, offset, pmf)
                            twice = -weight * _weight(second)
                            _add_chains(both, part, shift[e], window, every, twice, first_bucket, sums)
                        second = (second - 1) & uses[other] & ~block
                    other += 1
            block = (block - 1) & uses[e]
        for k in range(sums.shape[0]):
            if sums[k] != 0.0:
                out_event[written] = e
                out_bucket[written] = (first_bucket + k) * every
                out_value[written] = sums[k]
                written += 1
    return written
