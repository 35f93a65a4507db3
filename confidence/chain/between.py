"""How many of some events happen in one gap of a match, and how likely it is that any does.

Given the times of the match the events are independent, so with ``q_x = P(x in the gap)`` none is in the gap
with probability ``prod (1 - q_x)``, and the expected number of sets of them is ``prod (1 + q_x)``: no set is
ever written out. Both are averaged over the times of the match by the Markov chain of
:mod:`confidence.gaps.forbidden` (Eq. 2-3 of Zhang, Diao, Immerman, PVLDB 3(1), 2010). What is summed up is
never negative, so that small probabilities keep their digits.
"""

from __future__ import annotations

from confidence.chain.distribution import exactly, inside
from confidence.chain.tick_pairs import with_pairs
from confidence.chain.uniform import tight_bounds
from confidence.gaps.forbidden import DONE, IMPOSSIBLE, NO_SPACE, TOO_DEAR, chain, forward
from confidence.kernel import kernel

__all__ = ["events_between"]

OTHERS = 0
SOME = 1
SETS = 2


@kernel
def _in_gap(after, before, count, x_low, x_high, x_offset, pmf):
    """Return P(some event is strictly between two times) and the expected number of sets of such events."""
    some = 0.0
    sets = 0.0
    for x in range(count):
        q = inside(x_low[x], x_high[x], x_offset[x], pmf, after, before)
        some += (1.0 - some) * q
        sets += (1.0 + sets) * q
    return some, sets


@kernel
def _earliest(low, high, offset, pmf, after, before):
    """Return the first tick strictly between two times that an event can have, else ``before``."""
    for t in range(max(low, after + 1), min(high, before - 1) + 1):
        if offset < 0 or pmf[offset + t - low] > 0.0:
            return t
    return before


@kernel
def _latest(low, high, offset, pmf, after, before):
    """Return the last tick strictly between two times that an event can have, else ``after``."""
    for t in range(min(high, before - 1), max(low, after + 1) - 1, -1):
        if offset < 0 or pmf[offset + t - low] > 0.0:
            return t
    return after


@kernel
def _within(gap, count, x_low, x_high, x_offset, pmf, window, bounds, node, edge, front, sums, chance):
    """Sum up for a gap between two events of the match; return first and last time. O(count) chains."""
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    width = b[gap] - a[gap] + 1
    sums[OTHERS] = chain(bounds, window, edge_start, node, edge, front)[0]
    first, last = 0, -1
    for field in range(count + 2):
        for s in range(a[gap - 1], b[gap - 1] + 1):
            row = edge_start[gap] + (s - a[gap - 1]) * width - a[gap]
            for t in range(max(a[gap], s + 1), b[gap] + 1):
                if field < count:
                    edge[row + t] = inside(x_low[field], x_high[field], x_offset[field], pmf, s, t)
                else:
                    edge[row + t] = _in_gap(s, t, count, x_low, x_high, x_offset, pmf)[field - count]
        total, start, stop = chain(bounds, window, edge_start, node, edge, front)
        if field < count:
            chance[field] = total
        else:
            sums[SOME + field - count] = total
            if field == count:
                first, last = start, stop
    return first, last


@kernel
def _outside(gap, count, x_low, x_high, x_offset, pmf, window, bounds, node, edge, front, sums, chance):
    """Sum up for the gap before or behind the match; return first and last time. O(U) chains."""
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    end = node.shape[0] - 1
    first = b[end] + window
    last = a[0] - window
    for s in range(a[0], b[0] + 1):
        if not node[0, s - a[0]] > 0.0:
            continue
        until = min(b[end], s + window - 1)
        forward(bounds, edge_start, node, edge, front, s, s, until)
        for t in range(max(a[end], s), until + 1):
            weight = front[end, t - a[end]]
            if not weight > 0.0:
                continue
            sums[OTHERS] += weight
            after = t - window if gap == 0 else t
            before = s if gap == 0 else s + window
            some, sets = _in_gap(after, before, count, x_low, x_high, x_offset, pmf)
            if not some > 0.0:
                continue
            sums[SOME] += weight * some
            sums[SETS] += weight * sets
            first = min(first, s)
            last = max(last, t)
            for x in range(count):
                chance[x] += weight * inside(x_low[x], x_high[x], x_offset[x], pmf, after, before)
                if gap == 0:
                    first = min(first, _earliest(x_low[x], x_high[x], x_offset[x], pmf, after, before))
                else:
                    last = max(last, _latest(x_low[x], x_high[x], x_offset[x], pmf, after, before))
    return first, last


@kernel
def events_between(
    lower, upper, offset, pmf, window, gap, count, x_low, x_high, x_offset, most_steps, work, sums, chance
):
    """Sum up, over the times of a match, what happens in one of its gaps.

    Parameters
    ----------
    lower, upper : (l,) int64
        Intervals of the match's events in their order, ticks, inclusive; l >= 1.
    offset : (l,) int64
        Where their probabilities start in ``pmf``; -1 for uniform.
    pmf : (m,) float64
    window : int64
        W, ticks.
    gap : int64
        0 ``[t_{l-1} - W + 1, t_0)``, g ``(t_{g-1}, t_g)``, l ``(t_{l-1}, t_0 + W - 1]``.
    count : int64
        Number of other events.
    x_low, x_high, x_offset : (k,) int64
        Theirs; k >= count.
    most_steps : float64
        Most multiplications to spend.
    work : tuple
        From :func:`confidence.workspace`.
    sums : (3,) float64
        Overwritten: P(the match is in order and within the window); P(that, and some event in the gap); the
        expected number of non-empty sets of events in the gap where it is so, and 0 elsewhere.
    chance : (k,) float64
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
    O(k l U^2) in a gap of the match's own, O(U l U^2 + k U^2) before or behind it.
    """
    bounds, edge, _, nodes, _, front, _, _, _, _, spent = work
    length = lower.shape[0]
    a, b = bounds[0], bounds[1]
    for k in range(3):
        sums[k] = 0.0
    for x in range(count):
        chance[x] = 0.0
    for j in range(length):
        bounds[3, j] = lower[j] - j
        bounds[4, j] = upper[j] - j
    if not tight_bounds(bounds[3, :length], bounds[4, :length], window - length, a[:length], b[:length]):
        return IMPOSSIBLE, 0.0, 0, -1
    edges = 0
    ticks = 0
    for j in range(length):
        a[j] += j
        b[j] += j
        bounds[2, j] = edges
        ticks = max(ticks, b[j] - a[j] + 1)
        if j > 0:
            edges = with_pairs(edges, b[j - 1] - a[j - 1] + 1, b[j] - a[j] + 1)
    within = 0 < gap < length
    steps = float(max(edges, 1)) * float(b[0] - a[0] + 1 + count)
    if within:
        steps = float(edges) * float(count + 3) * (float(b[0] - a[0] + 1) if length > 3 else 1.0)
    if steps > most_steps:
        return TOO_DEAR, steps, 0, -1
    if edges > edge.shape[0] or ticks > nodes.shape[1]:
        return NO_SPACE, 0.0, edges, ticks
    spent[0] += steps
    node = nodes[:length]
    for j in range(length):
        for t in range(a[j], b[j] + 1):
            node[j, t - a[j]] = exactly(lower[j], upper[j], offset[j], pmf, t)
    for e in range(edges):
        edge[e] = 1.0
    if within:
        first, last = _within(
            gap, count, x_low, x_high, x_offset, pmf, window, bounds, node, edge, front, sums, chance
        )
    else:
        first, last = _outside(
            gap, count, x_low, x_high, x_offset, pmf, window, bounds, node, edge, front, sums, chance
        )
    return (DONE if sums[SOME] > 0.0 else IMPOSSIBLE), 0.0, first, last
