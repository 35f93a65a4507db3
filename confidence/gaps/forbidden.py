"""Exact confidence of a match some of whose gaps must stay free of other events.

For a match with times ``t_0 < ... < t_{l-1}`` and other events x, independent of it,

    confidence = sum over t of  prod_j p_j(t_j) * prod_x (1 - sum_{g in G(x)} P(x strictly inside gap g)),

gap g being ``(t_{g-1}, t_g)`` and G(x) the gaps that forbid x. An x that can reach one of its gaps only
weighs the edges in front of ``t_g`` (:mod:`confidence.gaps.chains`). One that can reach several couples them
(:mod:`confidence.gaps.places`). Where the choices of places are many, :mod:`confidence.gaps.coupled` finds
what takes fewer steps.
"""

from __future__ import annotations

from typing import Final

from confidence.budget import plain_checkpoint
from confidence.chain.distribution import at_least, at_most, exactly, inside
from confidence.gaps.chains import (
    COUPLED,
    DONE,
    IMPOSSIBLE,
    NO_SPACE,
    SPENT,
    TOO_DEAR,
    Chain,
    chain_weight,
    fill,
    lay_out,
    next_choice,
    take_weights,
)
from confidence.gaps.places import AT, AT_LEAST, AT_MOST, CHOSEN, EXACTLY, INSIDE, KIND, PLACES
from confidence.kernel import POSITIVE, kernel

__all__ = ["forbidden_confidence"]

_FEW_TICKS: Final = 16
"""Ticks from which on a row of edges is weighed in vectors."""


@kernel
def _weigh_edges(chain, g, low, high, offset, pmfs):
    """Multiply the edges of gap g by P(an event is not strictly inside). O(U^2)."""
    bounds, _, edge, _ = chain
    a, b, a_next, b_next = bounds[0, g - 1], bounds[1, g - 1], bounds[0, g], bounds[1, g]
    width = b_next - a_next + 1
    scale = 1.0 / float(high - low + 1)
    for s in range(a, min(b, high - 1) + 1):
        plain_checkpoint()
        first = max(a_next, s + 1, low + 1)
        at = bounds[2, g] + (s - a) * width + first - a_next
        if offset != -1:
            earlier = at_most(low, high, offset, pmfs.head, s)
            for t in range(first, b_next + 1):
                edge[at + t - first] *= earlier + at_least(low, high, offset, pmfs.tail, t)
            continue
        # Whole numbers of ticks, so that what is 0 is exactly 0.
        before = float(max(s, low - 1) - low + 1)
        widest = before + float(high - first + 1)
        if b_next - first < _FEW_TICKS:
            for i in range(b_next - first + 1):
                edge[at + i] *= max(widest - float(i), before) * scale
            continue
        # Without a sign the compiler sees vectors; they pay in long rows only.
        at &= POSITIVE
        for i in range(b_next - first + 1):
            edge[(at + i) & POSITIVE] *= max(widest - float(i), before) * scale


@kernel
def _regions(forbidden, x, bounds, length, places):
    """List where an event may lie that two gaps or more forbid; return how many places there are. O(l)."""
    a, b = bounds[0], bounds[1]
    low, high = forbidden.lower[x], forbidden.upper[x]
    first = -1
    last = -1
    for g in range(1, length):
        if forbidden.gaps[x, g] and low < b[g] and high > a[g - 1]:
            if first < 0:
                first = g
            last = g
    places[KIND, 0] = AT_MOST
    places[AT, 0] = first - 1
    places[KIND, 1] = AT_LEAST
    places[AT, 1] = last
    count = 2
    for g in range(first, last):
        if low <= b[g] and high >= a[g]:
            places[KIND, count] = EXACTLY
            places[AT, count] = g
            count += 1
        if g > first and not forbidden.gaps[x, g] and low < b[g] and high > a[g - 1]:
            places[KIND, count] = INSIDE
            places[AT, count] = g
            count += 1
    return count


@kernel
def _weigh_place(chain, kind, at, low, high, offset, pmfs):
    """Multiply the weights of a chain by the probability that an event lies at one of its places."""
    bounds, node, edge, _ = chain
    a, b = bounds[0], bounds[1]
    if kind == INSIDE:
        width = b[at] - a[at] + 1
        for s in range(a[at - 1], b[at - 1] + 1):
            row = bounds[2, at] + (s - a[at - 1]) * width
            for t in range(max(a[at], s + 1), b[at] + 1):
                edge[row + t - a[at]] *= inside(low, high, offset, pmfs.values, s, t)
        return
    for t in range(a[at], b[at] + 1):
        if kind == AT_MOST:
            node[at, t - a[at]] *= at_most(low, high, offset, pmfs.head, t)
        elif kind == AT_LEAST:
            node[at, t - a[at]] *= at_least(low, high, offset, pmfs.tail, t)
        else:
            node[at, t - a[at]] *= exactly(low, high, offset, pmfs.values, t)


@kernel
def _over_places(count, forbidden, pmfs, window, chain, edges, work):
    """Return the weight over all choices of places of the events that couple gaps.

    Groups of places (:mod:`confidence.gaps.places`) are fewer, and take far longer to compile.
    """
    length = chain.node.shape[0]
    used = chain
    if count > 0:
        used = Chain(work.bounds, work.spare_node[:length], work.spare_edge, work.front)
    a, b = work.bounds[0], work.bounds[1]
    chosen = work.counts[CHOSEN]
    for k in range(count):
        chosen[k] = 0
    total = 0.0
    first_time = b[0] + 1
    last_time = a[length - 1] - 1
    while True:
        plain_checkpoint()
        if count > 0:
            take_weights(used, chain, edges)
        for k in range(count):
            x = work.coupled[k]
            r = chosen[k]
            _weigh_place(
                used, work.places[k, KIND, r], work.places[k, AT, r], forbidden.lower[x], forbidden.upper[x],
                forbidden.offset[x], pmfs,
            )  # fmt: skip
        weight, first, last = chain_weight(used, window)
        if weight > 0.0:
            total += weight
            first_time = min(first_time, first)
            last_time = max(last_time, last)
        if not next_choice(chosen, work.counts[PLACES], count):
            return total, first_time, last_time


@kernel
def forbidden_confidence(match, tight_low, tight_high, pmfs, window, count, forbidden, weighed, limits, work):
    """Return the confidence of a match whose gaps must stay free of some events, and its tight time range.

    Parameters
    ----------
    match : Intervals
        The events in their order, at least two.
    tight_low, tight_high : (l,) int64
        Their times less their positions as order and window leave them, from
        :func:`confidence.chain.uniform.tight_bounds`: some are left.
    pmfs : Pmfs
    window : int64
        W, ticks.
    count : int64
        Number of other events.
    forbidden : confidence.gaps.chains.Forbidden
        Theirs; not in gap 0 or l.
    weighed : bool
        Whether ``work.edge`` holds the edges already, gap by gap and in each row by row over the tight
        bounds, weighed by events beside those given.
    limits : Limits
    work : Workspace
        Large enough for l events and ``count`` others.

    Returns
    -------
    status : int64
        DONE; IMPOSSIBLE if the confidence is 0; TOO_DEAR if it would take more than ``most_steps``; COUPLED
        if events that couple gaps make it more than that or ``few_steps``, and
        :func:`confidence.gap_confidence` has to; NO_SPACE if the work arrays are too small.
    confidence : float64
        For TOO_DEAR and COUPLED the number of steps.
    first, last : int64
        The tightest range, ticks; for NO_SPACE the edges and ticks needed, for COUPLED the coupling events.
    """
    length = match.lower.shape[0]
    a, b = work.bounds[0], work.bounds[1]
    for j in range(length):
        a[j] = tight_low[j] + j
        b[j] = tight_high[j] + j
    edges, ticks, passes = lay_out(work.bounds, length, window)
    steps = float(edges) * (passes + float(count))
    if steps > limits.most_steps:
        return TOO_DEAR, steps, 0, -1
    if edges > work.edge.shape[0] or ticks > work.node.shape[1]:
        return NO_SPACE, 0.0, edges, ticks
    work.progress[SPENT] += steps
    chain = Chain(work.bounds, work.node[:length], work.edge, work.front)
    fill(match, pmfs, chain)
    if not weighed:
        for e in range(edges):
            work.edge[e] = 1.0
    coupling = 0
    choices = 1.0
    for x in range(count):
        low, high = forbidden.lower[x], forbidden.upper[x]
        gaps = 0
        gap = 0
        for g in range(1, length):
            if forbidden.gaps[x, g] and low < b[g] and high > a[g - 1]:
                gaps += 1
                gap = g
        if gaps == 1:
            _weigh_edges(chain, gap, low, high, forbidden.offset[x], pmfs)
        elif gaps > 1:
            work.coupled[coupling] = x
            work.counts[PLACES, coupling] = _regions(forbidden, x, work.bounds, length, work.places[coupling])
            choices *= float(work.counts[PLACES, coupling])
            coupling += 1
    if coupling > 0:
        steps = choices * float(edges) * passes
        if steps > min(limits.most_steps, limits.few_steps):
            return COUPLED, steps, coupling, -1
        work.progress[SPENT] += steps
    total, first, last = _over_places(coupling, forbidden, pmfs, window, chain, edges, work)
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(total, 1.0), first, last
