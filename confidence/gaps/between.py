"""The number of events that happen in one gap of a match, and the probability that any does.

Given the times of the match the events are independent, so with ``q_x = P(x in the gap)`` none is in the gap
with probability ``prod (1 - q_x)``, and the expected number of sets of them is ``prod (1 + q_x)``: no set is
ever written out. Both are averaged over the times of the match by the Markov chain of
:mod:`confidence.gaps.forbidden` (Eq. 2-3 of Zhang, Diao, Immerman, PVLDB 3(1), 2010). What is summed up is
never negative, so that small probabilities keep their digits.
"""

from __future__ import annotations

import numpy as np

from confidence.chain.distribution import exactly, inside
from confidence.chain.uniform import tight_bounds
from confidence.gaps.chains import (
    DONE,
    IMPOSSIBLE,
    NO_SPACE,
    SPENT,
    TOO_DEAR,
    Chain,
    chain_weight,
    fill,
    forward,
    lay_out,
)
from confidence.kernel import kernel

__all__ = ["events_between"]

OTHERS = 0
SOME = 1
SETS = 2


@kernel
def _in_gap(after, before, count, forbidden, pmf):
    """Return P(some event is strictly between two times) and the expected number of sets of such events."""
    one_or_more = 0.0
    sets = 0.0
    for x in range(count):
        q = inside(forbidden.lower[x], forbidden.upper[x], forbidden.offset[x], pmf, after, before)
        one_or_more += (1.0 - one_or_more) * q
        sets += (1.0 + sets) * q
    return one_or_more, sets


@kernel
def _earliest(low, high, offset, pmf, after, before):
    """Return the first tick strictly between two times that an event can have, else ``before``."""
    for t in range(max(low, after + 1), min(high, before - 1) + 1):
        if exactly(low, high, offset, pmf, t) > 0.0:
            return t
    return before


@kernel
def _latest(low, high, offset, pmf, after, before):
    """Return the last tick strictly between two times that an event can have, else ``after``."""
    for t in range(min(high, before - 1), max(low, after + 1) - 1, -1):
        if exactly(low, high, offset, pmf, t) > 0.0:
            return t
    return after


@kernel
def _within(gap, count, forbidden, pmf, window, chain, sums, chance):
    """Sum up for a gap between two events of the match; return first and last time. O(count) chains."""
    bounds, edge = chain.bounds, chain.edge
    a, b = bounds[0], bounds[1]
    width = b[gap] - a[gap] + 1
    sums[OTHERS] = chain_weight(chain, window)[0]
    first, last = 0, -1
    for field in range(count + 2):
        for s in range(a[gap - 1], b[gap - 1] + 1):
            row = bounds[2, gap] + (s - a[gap - 1]) * width - a[gap]
            for t in range(max(a[gap], s + 1), b[gap] + 1):
                if field < count:
                    low, high, offset = (
                        forbidden.lower[field],
                        forbidden.upper[field],
                        forbidden.offset[field],
                    )
                    edge[row + t] = inside(low, high, offset, pmf, s, t)
                else:
                    edge[row + t] = _in_gap(s, t, count, forbidden, pmf)[field - count]
        total, start, stop = chain_weight(chain, window)
        if field < count:
            chance[field] = total
        else:
            sums[SOME + field - count] = total
            if field == count:
                first, last = start, stop
    return first, last


@kernel
def _outside(gap, count, forbidden, pmf, window, chain, sums, chance):
    """Sum up for the gap before or behind the match; return first and last time. O(U) chains."""
    a, b = chain.bounds[0], chain.bounds[1]
    end = chain.node.shape[0] - 1
    first = b[end] + window
    last = a[0] - window
    for s in range(a[0], b[0] + 1):
        if not chain.node[0, s - a[0]] > 0.0:
            continue
        until = min(b[end], s + window - 1)
        forward(chain, s, s, until)
        for t in range(max(a[end], s), until + 1):
            weight = chain.front[end, t - a[end]]
            if not weight > 0.0:
                continue
            sums[OTHERS] += weight
            after = t - window if gap == 0 else t
            before = s if gap == 0 else s + window
            one_or_more, sets = _in_gap(after, before, count, forbidden, pmf)
            if not one_or_more > 0.0:
                continue
            sums[SOME] += weight * one_or_more
            sums[SETS] += weight * sets
            first = min(first, s)
            last = max(last, t)
            for x in range(count):
                low, high, offset = forbidden.lower[x], forbidden.upper[x], forbidden.offset[x]
                chance[x] += weight * inside(low, high, offset, pmf, after, before)
                if gap == 0:
                    first = min(first, _earliest(low, high, offset, pmf, after, before))
                else:
                    last = max(last, _latest(low, high, offset, pmf, after, before))
    return first, last


@kernel(allocates=True)
def events_between(match, pmfs, window, gap, count, others, most_steps, work, sums, chance):
    """Sum up, over the times of a match, what happens in one of its gaps.

    Parameters
    ----------
    match : Intervals
        The events in their order, at least one.
    pmfs : Pmfs
    window : int64
        W, ticks.
    gap : int64
        0 ``[t_{l-1} - W + 1, t_0)``, g ``(t_{g-1}, t_g)``, l ``(t_{l-1}, t_0 + W - 1]``.
    count : int64
        Number of other events.
    others : confidence.gaps.chains.Forbidden
        Theirs.
    most_steps : float64
        Most multiplications to spend.
    work : confidence.gaps.chains.Workspace
    sums : (3,) float64
        Overwritten: P(the match is in order and within the window); P(that, and some event in the gap); the
        expected number of non-empty sets of events in the gap where it is so, and 0 elsewhere.
    chance : (q,) float64
        Overwritten: P(the match is in order and within the window, and the event in the gap).

    Returns
    -------
    status : int64
        DONE, IMPOSSIBLE if no event can be in the gap, TOO_DEAR, or NO_SPACE.
    steps : float64
        For TOO_DEAR.
    first, last : int64
        The tightest range of the match and the events in the gap; for NO_SPACE the edges and ticks needed.

    Notes
    -----
    O(q l U^2) in a gap of the match's own, O(U l U^2 + q U^2) before or behind it.
    """
    length = match.lower.shape[0]
    a, b = work.bounds[0, :length], work.bounds[1, :length]
    for k in range(3):
        sums[k] = 0.0
    for x in range(count):
        chance[x] = 0.0
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    for j in range(length):
        low[j] = match.lower[j] - j
        high[j] = match.upper[j] - j
    if not tight_bounds(low, high, window - length, a, b):
        return IMPOSSIBLE, 0.0, 0, -1
    for j in range(length):
        a[j] += j
        b[j] += j
    edges, ticks, _ = lay_out(work.bounds, length, window)
    within = 0 < gap < length
    steps = float(max(edges, 1)) * float(b[0] - a[0] + 1 + count)
    if within:
        steps = float(edges) * float(count + 3) * (float(b[0] - a[0] + 1) if length > 3 else 1.0)
    if steps > most_steps:
        return TOO_DEAR, steps, 0, -1
    if edges > work.edge.shape[0] or ticks > work.node.shape[1]:
        return NO_SPACE, 0.0, edges, ticks
    work.progress[SPENT] += steps
    chain = Chain(work.bounds, work.node[:length], work.edge, work.front)
    fill(match, pmfs, chain)
    for e in range(edges):
        work.edge[e] = 1.0
    if within:
        first, last = _within(gap, count, others, pmfs.values, window, chain, sums, chance)
    else:
        first, last = _outside(gap, count, others, pmfs.values, window, chain, sums, chance)
    return (DONE if sums[SOME] > 0.0 else IMPOSSIBLE), 0.0, first, last
