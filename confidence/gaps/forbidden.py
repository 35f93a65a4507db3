"""Exact confidence of a match some of whose gaps must stay free of other events.

For a match with times ``t_0 < ... < t_{l-1}`` and other events x, independent of it,

    confidence = sum over t of  prod_j p_j(t_j) * prod_x (1 - sum_{g in G(x)} P(x strictly inside gap g)),

gap g being ``(t_{g-1}, t_g)`` and G(x) the gaps that forbid x. An x that can reach one of its gaps only
weighs the edge ``(t_{g-1}, t_g)`` of a Markov chain (Eq. 2-3 of Zhang, Diao, Immerman, PVLDB 3(1), 2010).
One that can reach several couples them (Eq. 4). Such an x lies at or before the first of its gaps, at or
behind the last, on one of the match's own ticks in between, or inside a gap between them that does not
forbid it; each of these depends on one t or on two neighbours, so the sum splits into one chain for each
choice of a place for every coupled x. All terms are non-negative and nothing cancels. Where such choices are
many, :mod:`confidence.gaps.coupled` finds what takes fewer steps.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from confidence.chain.distribution import at_least, at_most, exactly, inside
from confidence.chain.tick_pairs import with_pairs
from confidence.config import FEW_TICKS
from confidence.kernel import kernel

__all__ = [
    "AHEAD",
    "AT_LEAST",
    "AT_MOST",
    "BEHIND",
    "COUPLED",
    "DONE",
    "EXACTLY",
    "IMPOSSIBLE",
    "INSIDE",
    "NO_SPACE",
    "TOO_DEAR",
    "Workspace",
    "chain",
    "chance",
    "forbidden_confidence",
    "forward",
    "free_of",
    "workspace",
]

POSITIVE: Final = 2**63 - 1

DONE: Final = 0
IMPOSSIBLE: Final = 1
TOO_DEAR: Final = 2
NO_SPACE: Final = 3
COUPLED: Final = 4

AT_MOST: Final = 0
AT_LEAST: Final = 1
EXACTLY: Final = 2
INSIDE: Final = 3
BEHIND: Final = 4
AHEAD: Final = 5

SPENT: Final = 10
"""Where a workspace counts multiplications, see :func:`confidence.budget.multiplications_per_call`."""

Workspace = tuple[Any, ...]
"""The work arrays of :func:`forbidden_confidence`, see :func:`workspace`."""


def workspace(length: int, most_edges: int, most_ticks: int, most_events: int) -> Workspace:
    """Return the work arrays of ``forbidden_confidence`` and ``gap_confidence``.

    The last one counts the multiplications they took, see :func:`confidence.budget.multiplications_per_call`.

    Parameters
    ----------
    length : int
        Most events of one match.
    most_edges : int
        Most pairs of neighbouring ticks of one match, summed over its gaps.
    most_ticks : int
        Most ticks of one interval of a match.
    most_events : int
        Most forbidden events of one match.
    """
    events = max(most_events, 1)
    return (
        np.empty((6, length + 1), dtype=np.int64),
        np.empty(most_edges, dtype=np.float64),
        np.empty(most_edges, dtype=np.float64),
        np.empty((length, most_ticks), dtype=np.float64),
        np.empty((length, most_ticks), dtype=np.float64),
        np.empty((length, max(most_ticks, length)), dtype=np.float64),
        np.empty(events, dtype=np.int64),
        np.empty((events, 2 * length + 4), dtype=np.int64),
        np.empty((events, 2 * length + 4), dtype=np.int64),
        np.empty((2, events), dtype=np.int64),
        np.zeros(1),
    )


@kernel
def _weigh_edges(edge, start, a, b, a_next, b_next, low, high, offset, head, tail):
    """Multiply the edges of a gap, from ``start`` on, by P(x not strictly inside). O(U^2)."""
    width = b_next - a_next + 1
    scale = 1.0 / float(high - low + 1)
    for s in range(a, min(b, high - 1) + 1):
        first = max(a_next, s + 1, low + 1)
        at = start + (s - a) * width + first - a_next
        if offset >= 0:
            earlier = at_most(low, high, offset, head, s)
            for t in range(first, b_next + 1):
                edge[at + t - first] *= earlier + at_least(low, high, offset, tail, t)
            continue
        # Whole numbers of ticks, so that what is 0 is exactly 0.
        before = float(max(s, low - 1) - low + 1)
        most = before + float(high - first + 1)
        if b_next - first < FEW_TICKS:
            for i in range(b_next - first + 1):
                edge[at + i] *= max(most - float(i), before) * scale
            continue
        # Without a sign the compiler sees vectors; they pay in long rows only.
        at &= POSITIVE
        for i in range(b_next - first + 1):
            edge[(at + i) & POSITIVE] *= max(most - float(i), before) * scale


@kernel
def _regions(length, x_gap, reach_low, reach_high, bounds, x, kind, at):
    """List where an event that couples gaps may lie; return how many places there are."""
    a, b = bounds[0], bounds[1]
    first = -1
    last = -1
    for g in range(1, length):
        if x_gap[x, g] and reach_low < b[g] and reach_high > a[g - 1]:
            if first < 0:
                first = g
            last = g
    kind[0] = AT_MOST
    at[0] = first - 1
    kind[1] = AT_LEAST
    at[1] = last
    count = 2
    for g in range(first, last):
        if reach_low <= b[g] and reach_high >= a[g]:
            kind[count] = EXACTLY
            at[count] = g
            count += 1
        if g > first and not x_gap[x, g] and reach_low < b[g] and reach_high > a[g - 1]:
            kind[count] = INSIDE
            at[count] = g
            count += 1
    return count


@kernel
def _weigh_place(kind, at, low, high, offset, pmf, head, tail, bounds, edge_start, node, edge):
    """Multiply the weights of a chain by the probability that an event lies at one of its places."""
    a, b = bounds[0], bounds[1]
    if kind == INSIDE:
        width = b[at] - a[at] + 1
        for s in range(a[at - 1], b[at - 1] + 1):
            row = edge_start[at] + (s - a[at - 1]) * width
            for t in range(max(a[at], s + 1), b[at] + 1):
                edge[row + t - a[at]] *= inside(low, high, offset, pmf, s, t)
        return
    for t in range(a[at], b[at] + 1):
        if kind == AT_MOST:
            node[at, t - a[at]] *= at_most(low, high, offset, head, t)
        elif kind == AT_LEAST:
            node[at, t - a[at]] *= at_least(low, high, offset, tail, t)
        else:
            node[at, t - a[at]] *= exactly(low, high, offset, pmf, t)


@kernel
def forward(bounds, edge_start, node, edge, front, start, stop, last_tick):
    """Fill ``front[j, t]``, the weight of the chains from a first time in start..stop to t. O(l U^2)."""
    a, b = bounds[0], bounds[1]
    length = node.shape[0]
    for t in range(b[0] - a[0] + 1):
        front[0, t] = node[0, t] if start <= a[0] + t <= stop else 0.0
    for g in range(1, length):
        width = b[g] - a[g] + 1
        end = min(width, last_tick - a[g] + 1)
        for t in range(width):
            front[g, t] = 0.0
        for s in range(b[g - 1] - a[g - 1] + 1):
            weight = front[g - 1, s]
            if weight > 0.0:
                row = edge_start[g] + s * width
                for t in range(max(0, a[g - 1] + s + 1 - a[g]), end):
                    front[g, t] += weight * edge[row + t]
        for t in range(width):
            front[g, t] *= node[g, t]


@kernel
def _first_time(bounds, edge_start, node, edge, front, start):
    """Return the smallest first time >= start from which some chain of positive weight goes on. O(l U^2)."""
    a, b = bounds[0], bounds[1]
    length = node.shape[0]
    for t in range(b[length - 1] - a[length - 1] + 1):
        front[length - 1, t] = node[length - 1, t]
    for g in range(length - 1, 0, -1):
        width = b[g] - a[g] + 1
        for s in range(b[g - 1] - a[g - 1] + 1):
            front[g - 1, s] = 0.0
            if node[g - 1, s] > 0.0:
                row = edge_start[g] + s * width
                total = 0.0
                for t in range(max(0, a[g - 1] + s + 1 - a[g]), width):
                    total += edge[row + t] * front[g, t]
                front[g - 1, s] = node[g - 1, s] * total
    for s in range(start, b[0] + 1):
        if front[0, s - a[0]] > 0.0:
            return s
    return b[0] + 1


@kernel
def _three_events(bounds, edge_start, node, edge, front):
    """Return what :func:`chain` returns for three events all of whose times are within the window. O(U^2).

    Given the time in the middle, what comes before it and what comes behind it are independent.
    """
    a, b = bounds[0], bounds[1]
    before, behind = front[0], front[1]
    width = b[1] - a[1] + 1
    last_width = b[2] - a[2] + 1
    for u in range(width):
        before[u] = 0.0
    for s in range(a[0], b[0] + 1):
        weight = node[0, s - a[0]]
        row = edge_start[1] + (s - a[0]) * width
        for u in range(max(0, s + 1 - a[1]), width):
            before[u] += weight * edge[row + u]
    total = 0.0
    for u in range(width):
        row = edge_start[2] + u * last_width
        reached = 0.0
        for t in range(max(0, a[1] + u + 1 - a[2]), last_width):
            reached += edge[row + t] * node[2, t]
        before[u] *= node[1, u]
        behind[u] = reached * node[1, u]
        total += before[u] * reached
    first_time = b[0] + 1
    last_time = a[2] - 1
    if not total > 0.0:
        return total, first_time, last_time
    for s in range(a[0], b[0] + 1):
        row = edge_start[1] + (s - a[0]) * width
        for u in range(max(0, s + 1 - a[1]), width):
            if node[0, s - a[0]] * edge[row + u] * behind[u] > 0.0:
                first_time = s
        if first_time == s:
            break
    for t in range(b[2], a[2] - 1, -1):
        for u in range(min(width, t - a[1])):
            if before[u] * edge[edge_start[2] + u * last_width + t - a[2]] * node[2, t - a[2]] > 0.0:
                last_time = t
        if last_time == t:
            break
    return total, first_time, last_time


@kernel
def _short_chain(bounds, window, edge_start, node, edge, front):
    """Return what :func:`chain` returns for two or three events. O(U^2).

    Given the time in the middle, the window is a condition on two independent times: sums from the left do.
    """
    a, b = bounds[0], bounds[1]
    last = node.shape[0] - 1
    before = last - 1
    sums = front[0]
    total = 0.0
    first_time = b[0] + 1
    last_time = a[last] - 1
    width = b[last] - a[last] + 1
    for u in range(a[before], b[before] + 1):
        weight = node[before, u - a[before]]
        if not weight > 0.0:
            continue
        row = edge_start[last] + (u - a[before]) * width
        reached = 0.0
        for t in range(width):
            if a[last] + t > u:
                reached += edge[row + t] * node[last, t]
            sums[t] = reached
        if not reached > 0.0:
            continue
        latest_first = a[0] - 1
        for s in range(a[0] if last == 2 else u, min(b[0], u - 1) + 1 if last == 2 else u + 1):
            chance = weight
            if last == 2:
                chance *= node[0, s - a[0]] * edge[edge_start[1] + (s - a[0]) * (b[1] - a[1] + 1) + u - a[1]]
            end = min(b[last], s + window - 1)
            if chance > 0.0 and end >= a[last] and sums[end - a[last]] > 0.0:
                total += chance * sums[end - a[last]]
                first_time = min(first_time, s)
                latest_first = s
        if latest_first >= a[0]:
            t = min(b[last], latest_first + window - 1) - a[last]
            while not edge[row + t] * node[last, t] > 0.0 or a[last] + t <= u:
                t -= 1
            last_time = max(last_time, a[last] + t)
    return total, first_time, last_time


@kernel
def chain(bounds, window, edge_start, node, edge, front):
    """Return the weight of all chains within the window, their first and their last time.

    First times for which the window reaches behind the last interval are taken together. O(l U^2), and as
    much again for every other first time; up to three events O(U^2) in all.
    """
    if node.shape[0] == 3 and bounds[1, 2] - bounds[0, 0] < window:
        return _three_events(bounds, edge_start, node, edge, front)
    if node.shape[0] <= 3:
        return _short_chain(bounds, window, edge_start, node, edge, front)
    a, b = bounds[0], bounds[1]
    last = node.shape[0] - 1
    total = 0.0
    first_time = b[0] + 1
    last_time = a[last] - 1
    together = min(max(a[0], b[last] - window + 1), b[0] + 1)
    for start in range(a[0], min(together, b[0]) + 1):
        if start < together and not node[0, start - a[0]] > 0.0:
            continue
        stop = start if start < together else b[0]
        forward(bounds, edge_start, node, edge, front, start, stop, min(start + window - 1, b[last]))
        reached = 0.0
        for t in range(b[last] - a[last] + 1):
            if front[last, t] > 0.0:
                reached += front[last, t]
                last_time = max(last_time, a[last] + t)
        total += reached
        if reached > 0.0 and first_time > b[0]:
            first_time = start
            if start == together and start < b[0]:
                first_time = _first_time(bounds, edge_start, node, edge, front, start)
    return total, first_time, last_time


@kernel
def chance(kind, at, low, high, offset, pmf, head, tail, window, t):
    """Return the probability that an event lies at one of its places, given the times of the match.

    Beside the places around a time or between two, a whole window before the last time (BEHIND) or behind the
    first (AHEAD), where gaps at either end of a match end.
    """
    if kind == AT_MOST:
        return at_most(low, high, offset, head, t[at])
    if kind == AT_LEAST:
        return at_least(low, high, offset, tail, t[at])
    if kind == EXACTLY:
        return exactly(low, high, offset, pmf, t[at])
    if kind == INSIDE:
        return inside(low, high, offset, pmf, t[at - 1], t[at])
    if kind == BEHIND:
        return at_most(low, high, offset, head, t[at] - window)
    return at_least(low, high, offset, tail, t[at] + window)


@kernel
def free_of(coupled, count, x_low, x_high, x_offset, pmf, head, tail, window, kind, at, places, t):
    """Return P(no coupled event lies in a gap that forbids it), given the times of the match. O(l count)."""
    free = 1.0
    for k in range(count):
        x = coupled[k]
        probability = 0.0
        for r in range(places[k]):
            probability += chance(
                kind[k, r], at[k, r], x_low[x], x_high[x], x_offset[x], pmf, head, tail, window, t
            )
        free *= probability
    return free


@kernel
def _by_places(
    bounds, window, edge_start, edges, node, edge, work_node, work_edge, front, coupled, count, x_low,
    x_high, x_offset, pmf, head, tail, kind, at, places, digit,
):  # fmt: skip
    """Return what :func:`chain` returns, summed over the places of the coupled events."""
    a, b = bounds[0], bounds[1]
    length = node.shape[0]
    total = 0.0
    first_time = b[0] + 1
    last_time = a[length - 1] - 1
    for k in range(count):
        digit[k] = 0
    while True:
        for j in range(length):
            for t in range(b[j] - a[j] + 1):
                work_node[j, t] = node[j, t]
        for e in range(edges):
            work_edge[e] = edge[e]
        for k in range(count):
            x = coupled[k]
            r = digit[k]
            _weigh_place(
                kind[k, r], at[k, r], x_low[x], x_high[x], x_offset[x], pmf, head, tail, bounds, edge_start,
                work_node, work_edge,
            )  # fmt: skip
        found, first, last = chain(bounds, window, edge_start, work_node, work_edge, front)
        if found > 0.0:
            total += found
            first_time = min(first_time, first)
            last_time = max(last_time, last)
        k = 0
        while k < count:
            digit[k] += 1
            if digit[k] < places[k]:
                break
            digit[k] = 0
            k += 1
        if k == count:
            return total, first_time, last_time


@kernel
def forbidden_confidence(
    lower, upper, offset, tight_low, tight_high, pmf, head, tail, window, x_count, x_low, x_high, x_offset,
    x_gap, weighed, most_steps, few_steps, work,
):  # fmt: skip
    """Return the confidence of a match whose gaps must stay free of some events, and its tight time range.

    Parameters
    ----------
    lower, upper : (l,) int64
        Intervals of the match's events, ticks, inclusive.
    offset : (l,) int64
        Where their probabilities start in ``pmf``; -1 for uniform.
    tight_low, tight_high : (l,) int64
        Their times less their positions as order and window leave them, from
        :func:`confidence.chain.uniform.tight_bounds`: some are left.
    pmf, head, tail : (m,) float64
        Explicit probabilities, and their :func:`running_sums`.
    window : int64
        W, ticks.
    x_count : int64
        Number of other events.
    x_low, x_high, x_offset : (k,) int64
        Theirs; k >= x_count.
    x_gap : (k, l) bool
        Whether it is forbidden strictly between the times of the match's events ``g - 1`` and ``g``; g >= 1.
        More columns are ignored.
    weighed : bool
        Whether the second of the work arrays holds the edges already, gap by gap and in each row by row over
        the tight bounds, weighed by events beside those given.
    most_steps : float64
        Most multiplications to spend.
    few_steps : float64
        Most to spend on events that couple gaps, ``FEW_STEPS`` as a rule.
    work : tuple
        From :func:`workspace`, large enough.

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
    bounds, edge, work_edge, node, work_node, front, coupled, kind, at, places, spent = work
    length = lower.shape[0]
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    for j in range(length):
        a[j] = tight_low[j] + j
        b[j] = tight_high[j] + j
    edges = 0
    ticks = 0
    for j in range(length):
        edge_start[j] = edges
        ticks = max(ticks, b[j] - a[j] + 1)
        if j > 0:
            edges = with_pairs(edges, b[j - 1] - a[j - 1] + 1, b[j] - a[j] + 1)
    passes = 1.0
    if length > 3:
        passes += float(1 + min(max(0, b[length - 1] - window + 1 - a[0]), b[0] - a[0] + 1))
    steps = float(edges) * (passes + float(x_count))
    if steps > most_steps:
        return TOO_DEAR, steps, 0, -1
    if edges > edge.shape[0] or ticks > node.shape[1]:
        return NO_SPACE, 0.0, edges, ticks
    spent[0] += steps
    for j in range(length):
        if offset[j] < 0:
            for k in range(b[j] - a[j] + 1):
                node[j, k] = 1.0 / float(upper[j] - lower[j] + 1)
            continue
        for t in range(a[j], b[j] + 1):
            node[j, t - a[j]] = exactly(lower[j], upper[j], offset[j], pmf, t)
    if not weighed:
        for e in range(edges):
            edge[e] = 1.0
    count = 0
    choices = 1.0
    for x in range(x_count):
        gaps = 0
        gap = 0
        for g in range(1, length):
            if x_gap[x, g] and x_low[x] < b[g] and x_high[x] > a[g - 1]:
                gaps += 1
                gap = g
        if gaps == 1:
            _weigh_edges(
                edge, edge_start[gap], a[gap - 1], b[gap - 1], a[gap], b[gap],
                x_low[x], x_high[x], x_offset[x], head, tail,
            )  # fmt: skip
        elif gaps > 1:
            coupled[count] = x
            places[0, count] = _regions(length, x_gap, x_low[x], x_high[x], bounds, x, kind[count], at[count])
            choices *= float(places[0, count])
            count += 1
    if count == 0:
        total, first, last = chain(bounds, window, edge_start, node[:length], edge, front)
    else:
        steps = choices * float(edges) * passes
        if steps > min(most_steps, few_steps):
            return COUPLED, steps, count, -1
        spent[0] += steps
        total, first, last = _by_places(
            bounds, window, edge_start, edges, node[:length], edge, work_node, work_edge, front, coupled,
            count, x_low, x_high, x_offset, pmf, head, tail, kind, at, places[0], places[1],
        )  # fmt: skip
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(total, 1.0), first, last
