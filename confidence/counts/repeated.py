"""The surplus of counts where one event is a candidate of several components: its uses with itself.

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

from confidence.arrays import count_below
from confidence.chain.distribution import exactly
from confidence.counts.expected import Covered, Sliding, slide
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
        remainder = 0.0
        high[j, 0] = 0.0
        low[j, 0] = 0.0
        for t in range(rates.shape[1]):
            x = rates[j, t]
            after = total + x
            part = after - total
            remainder += (total - (after - part)) + (x - part)
            total = after
            high[j, t + 1] = total
            low[j, t + 1] = remainder


@kernel
def _covered_before(covered, t):
    """Return how many covered ticks are before a tick. O(log c)."""
    starts, places = covered
    segment = np.searchsorted(starts, t, side="right") - 1
    if segment < 0:
        return np.int64(0)
    return places[segment] + min(t - starts[segment], places[segment + 1] - places[segment])


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
def _write(event, first_bucket, every, sums, written, out):
    """Write what the buckets of an event hold; return how many rows are written then."""
    for k in range(sums.shape[0]):
        if sums[k] != 0.0:
            out[0][written], out[1][written], out[2][written] = event, (first_bucket + k) * every, sums[k]
            written += 1
    return written


@kernel(allocates=True)
def repeated_uses(uses, events, pmf, shift, covered, high, low, window, every, first, stop, begin, end, out):
    """Write how much the uses of one event in several places count, by the bucket of the first time.

    Parameters
    ----------
    uses : (n, l) bool, l = 2 or 3
        Which components can take each event.
    events : Intervals
        On the line of the covered ticks.
    pmf : (m,) float64
        The explicit probabilities.
    shift : (n,) int64
        To be taken off ticks before they are put in buckets.
    covered : Covered
    high, low : (l, T + 1) float64
        From :func:`running_totals`.
    window, every : int64
        As for :func:`confidence.expected_by_bucket`.
    first, stop : int64
        The events to look at: ``first .. stop - 1``.
    begin, end : int64
        The ticks of each to look at as the earlier of two times, counted from its first one.
    out : tuple of (k,) int64, (k,) int64 and (k,) float64
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
    lower, upper, offset = events
    length = uses.shape[1]
    written = 0
    for e in range(first, stop):
        ticks = upper[e] - lower[e] + 1
        earliest = lower[e] - shift[e]
        first_bucket = _bucket_of(earliest - window, every)
        sums = np.zeros(_bucket_of(earliest + ticks - 1, every) - first_bucket + 1)
        place = _covered_before(covered, lower[e])
        p = np.empty(ticks)
        for k in range(ticks):
            p[k] = exactly(lower[e], upper[e], offset[e], pmf, lower[e] + k)
        for a in range(begin, min(ticks, end)):
            if p[a] == 0.0:
                continue
            behind = _covered_before(covered, lower[e] + a + window)
            later = 0.0
            own_uses = 0.0
            for b in range(min(ticks - 1, a + window - 1), a, -1):
                w = p[a] * p[b]
                if w > 0.0:
                    if length == 2:
                        own_uses += w
                    else:
                        if uses[e, 0] and uses[e, 1]:
                            own_uses += w * _between(high, low, 2, place + b + 1, behind)
                        if uses[e, 0] and uses[e, 2]:
                            own_uses += w * _between(high, low, 1, place + a + 1, place + b)
                        if uses[e, 0] and uses[e, 1] and uses[e, 2]:
                            own_uses -= 2.0 * w * later
                        if uses[e, 1] and uses[e, 2]:
                            t = lower[e] + b - window + 1
                            while t < lower[e] + a:
                                bucket = _bucket_of(t - shift[e], every)
                                until = lower[e] + a
                                if every > 0:
                                    until = min(until, (bucket + 1) * every + shift[e])
                                sums[bucket - first_bucket] += w * _between(
                                    high, low, 0, _covered_before(covered, t),
                                    _covered_before(covered, until),
                                )  # fmt: skip
                                t = until
                later += p[b]
            sums[_bucket_of(earliest + a, every) - first_bucket] += own_uses
        written = _write(e, first_bucket, every, sums, written, out)
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


@kernel(allocates=True)
def _part_of_line(covered, begin, end):
    """Return the first place between two ticks, the last excluded, and the segments there."""
    starts, places = covered
    first = _covered_before(covered, begin)
    segment = max(np.searchsorted(starts, begin, side="right") - 1, 0)
    if first == places[segment + 1]:
        segment += 1
    count = max(np.searchsorted(starts, end, side="left") - segment, 0)
    own_starts = np.empty(count, np.int64)
    own_places = np.zeros(count + 1, np.int64)
    for k in range(count):
        own_starts[k] = max(starts[segment + k], begin)
        own_places[k] = max(places[segment + k], first) - first
    own_places[count] = _covered_before(covered, end) - first
    return first, Covered(own_starts, own_places)


@kernel
def _fill(rows, block, covered, event, events, pmf):
    """Put an event's probabilities in place of the rates of a block's components."""
    starts, places = covered
    lower, upper, offset = events.lower[event], events.upper[event], events.offset[event]
    for j in range(rows.shape[0]):
        if block >> j & 1 == 0:
            continue
        for k in range(starts.shape[0]):
            for place in range(places[k], places[k + 1]):
                rows[j, place] = exactly(lower, upper, offset, pmf, starts[k] + place - places[k])


@kernel(allocates=True)
def _add_chains(rows, covered, shift, window, every, weight, first_bucket, sums):
    """Add the expected number of chains with some rates, times a weight, to what each bucket holds."""
    starts, places = covered
    count = starts.shape[0]
    length, total = rows.shape
    room = count
    if every > 0:
        for k in range(count):
            room += (places[k + 1] - places[k]) // every + 1
    shifts = np.empty(count, np.int64)
    for k in range(count):
        shifts[k] = shift
    sliding = Sliding(
        np.zeros(12, np.int64), np.zeros(1), np.empty((length, length)), np.empty((length, length)),
        np.empty((total, length)),
    )  # fmt: skip
    segment, bucket, value = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    budget = float(2 * (total + 1) * length * length)
    chains_added, _ = slide(rows, covered, shifts, window, every, budget, sliding, segment, bucket, value)
    for k in range(chains_added):
        place = bucket[k] // every - first_bucket if every > 0 else 0
        sums[place] += weight * value[k]


@kernel(allocates=True)
def repeated_choices(
    uses, events, pmf, shift, rates, covered, window, every, apart, first, stop, begin, end, out
):
    """Write what :func:`repeated_uses` does, for up to five components.

    Parameters
    ----------
    uses : (n,) int64
        Bits of the components that can take each event.
    events, pmf, shift, covered, window, every, first, stop, out
        As for :func:`repeated_uses`; ascending ``lower``.
    rates : (l, T) float64
        From :func:`confidence.event_rates`.
    apart : bool
        Whether two blocks of several components each may be taken by one event each.
    begin, end : int64
        The blocks of each event to look at, as bits of their components: ``begin + 1 .. end``.

    Returns
    -------
    int64
        How many rows were written.

    Notes
    -----
    O((U + W) l^2) for an event of U ticks and each block of its components; with ``apart`` as often again for
    each event in reach.
    """
    lower, upper = events.lower, events.upper
    length = rates.shape[0]
    longest = np.int64(0)
    for e in range(lower.shape[0]):
        longest = max(longest, upper[e] - lower[e])
    written = 0
    for e in range(first, stop):
        first_bucket = _bucket_of(lower[e] - shift[e] - window, every)
        sums = np.zeros(_bucket_of(upper[e] - shift[e], every) - first_bucket + 1)
        block = uses[e]
        while block > begin:
            if block <= end and block & (block - 1) > 0:
                # The first time is the event's own, or at most a window before one of its times.
                low = lower[e] - (0 if block & 1 == 1 else window - 1)
                high = upper[e] + (0 if block >> (length - 1) == 1 else window - 1)
                place, part = _part_of_line(covered, low, high + 1)
                rows = rates[:, place : place + part.places[-1]].copy()
                _fill(rows, block, part, e, events, pmf)
                weight = _weight(block)
                _add_chains(rows, part, shift[e], window, every, weight, first_bucket, sums)
                other = count_below(lower, 0, lower.shape[0], low - longest)
                while apart and other < lower.shape[0] and lower[other] <= high:
                    second = uses[other] & ~block
                    while second > 0 and upper[other] >= low:
                        # Each two blocks once: the first one has the first component of both.
                        if second & (second - 1) > 0 and (second & -second) > (block & -block):
                            both = rows.copy()
                            _fill(both, second, part, other, events, pmf)
                            twice = -weight * _weight(second)
                            _add_chains(both, part, shift[e], window, every, twice, first_bucket, sums)
                        second = (second - 1) & uses[other] & ~block
                    other += 1
            block = (block - 1) & uses[e]
        written = _write(e, first_bucket, every, sums, written, out)
    return written
