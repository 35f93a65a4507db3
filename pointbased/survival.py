"""Probabilities of point events, and of an event staying out of a gap."""

from __future__ import annotations

from confidence.kernel import kernel
from pointbased.config import TINY
from pointbased.match_buffer import CHILD, LOWER, NONE, PMF, RUNS_COUNT, RUNS_START, SIBLING, TAKEN, UPPER

__all__ = ["gap_survival", "outside", "probability"]


@kernel
def probability(candidates, c, t):
    """Return the probability that candidate ``c`` happened at tick ``t`` of its interval."""
    row = candidates.row
    place = row[c, PMF]
    if place < 0:
        return 1.0 / (row[c, UPPER] - row[c, LOWER] + 1)
    return candidates.pmf[place + t - row[c, LOWER]]


@kernel
def outside(candidates, c, after, before):
    """Return the probability that candidate ``c`` did not happen strictly between two ticks. O(1)."""
    row = candidates.row
    lower = row[c, LOWER]
    upper = row[c, UPPER]
    first = max(lower, after + 1)
    last = min(upper, before - 1)
    if first > last:
        return 1.0
    place = row[c, PMF]
    if place < 0:
        size = upper - lower + 1
        return (size - (last - first + 1)) / size
    total = 0.0
    if first > lower:
        total += candidates.below[place + first - 1 - lower]
    if last < upper:
        total += candidates.above[place + last + 1 - lower]
    return total


@kernel
def gap_survival(candidates, buffer, p, now, row_time, product, spoiled):
    """Compute for every last time t of the runs at node ``p`` what keeps the gap (t, now) free.

    Algorithm 1 of Zhang et al. memoises the quantity by (t[j-1], t[j]); here it is computed once for each
    such pair of a prefix, and used for all runs with that last time and all events at ``now``. The
    events that could have been taken there are the children of ``p``: whatever has a point in the gap
    was tried there.

    Parameters
    ----------
    row_time : (u,) int64
        Overwritten with the distinct last times, ascending.
    product : (u,) float64
        Overwritten with the product of the factors that are not 0, over the children of ``p``.
    spoiled : (u,) int64
        Overwritten with the number of factors that are 0.

    Returns
    -------
    int64
        The number of last times. O(runs + times * children).
    """
    node = buffer.node
    start = node[p, RUNS_START]
    n = 0
    for r in range(start, start + node[p, RUNS_COUNT]):
        t = buffer.run_time[r, 1]
        if n == 0 or row_time[n - 1] != t:
            row_time[n] = t
            product[n] = 1.0
            spoiled[n] = 0
            n += 1
    if n == 0:
        return 0
    child = node[p, CHILD]
    while child != NONE:
        c = node[child, TAKEN]
        if candidates.row[c, LOWER] < now and candidates.row[c, UPPER] > row_time[0]:
            for k in range(n):
                factor = outside(candidates, c, row_time[k], now)
                if factor == 0.0:
                    spoiled[k] += 1
                elif factor < 1.0:
                    product[k] = max(product[k] * factor, TINY)
        child = node[child, SIBLING]
    return n
