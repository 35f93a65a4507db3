"""The confidence of a chain, shared out among buckets of its first event's time."""

from __future__ import annotations

import numpy as np

from confidence.budget import plain_checkpoint
from confidence.chain.pmf import chain_confidence_pmf, support_range
from confidence.chain.uniform import chain_confidence
from confidence.kernel import kernel

__all__ = ["confidences_by_bucket"]


@kernel(allocates=True)
def confidences_by_bucket(
    matches, confidence, earliest, events, pmf, window, every, begin, out_match, out_bucket, out_value,
):  # fmt: skip
    """Write P(match and first time in the bucket) of matches under skip till any match.

    Parameters
    ----------
    matches : (l, m) int64
        The events of each match.
    confidence : (m,) float64, earliest : (m,) int64
        Of the matches, above 0, and the first time that each can have.
    events : Intervals
    pmf : (p,) float64
        The explicit probabilities.
    window, every : int64
        W, and the length of a bucket, ticks; buckets start at its multiples.
    begin : int64
        The match to go on with.
    out_match, out_bucket : (k,) int64; out_value : (k,) float64
        Overwritten. A value of NaN asks for :mod:`confidence.chain.exact`.

    Returns
    -------
    done : int64
        The match to go on with, m at the end.
    written : int64
    need : int64
        Rows that the next match takes.

    Notes
    -----
    A match whose first event lies within one bucket costs O(l); else each bucket costs a confidence.
    """
    length, count = matches.shape
    lower, upper, offset = events
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    start = np.empty(length, np.int64)
    a = np.empty(length, np.int64)
    b = np.empty(length, np.int64)
    bounds = np.empty((4, length), np.int64)
    floats = np.empty((4, 2 * length + 1), np.float64)
    written = 0
    for n in range(begin, count):
        latest = upper[matches[0, n]]
        for j in range(1, length):
            latest = min(latest, upper[matches[j, n]] - j)
        first = earliest[n] // every
        last = latest // every
        if written + last - first + 1 > out_value.shape[0]:
            return n, written, last - first + 1
        if first == last:
            out_match[written] = n
            out_bucket[written] = first * every
            out_value[written] = confidence[n]
            written += 1
            continue
        explicit = False
        for j in range(length):
            explicit = explicit or offset[matches[j, n]] >= 0
        for bucket in range(first, last + 1):
            plain_checkpoint()
            for j in range(length):
                i = matches[j, n]
                low[j] = lower[i]
                high[j] = upper[i]
                start[j] = offset[i]
            first_interval = low[0]
            ticks = high[0] - first_interval + 1
            low[0] = max(first_interval, bucket * every)
            high[0] = min(high[0], bucket * every + every - 1)
            if low[0] > high[0]:
                continue
            share = 1.0
            if start[0] >= 0:
                start[0] += low[0] - first_interval
            else:
                share = float(high[0] - low[0] + 1) / float(ticks)
            if explicit:
                value = 0.0
                since, until = support_range(low, high, start, pmf, window)
                if since <= until:
                    value = share * chain_confidence_pmf(low, high, start, pmf, window, since, until)
            else:
                for j in range(length):
                    low[j] -= j
                    high[j] -= j
                value = share * chain_confidence(low, high, window - length, a, b, bounds, floats)
            if not value <= 0.0:
                out_match[written] = n
                out_bucket[written] = bucket * every
                out_value[written] = value
                written += 1
    return count, written, 0
