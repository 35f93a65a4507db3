"""A match as a Markov chain over the times of its events: nodes are times, edges pairs of neighbouring ones.

A node weighs the probability of a time, an edge the probability that what is forbidden between two times is
not there (Eq. 2-3 of Zhang, Diao, Immerman, PVLDB 3(1), 2010). The weight of all chains within the window is
the confidence. All terms are non-negative and nothing cancels.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import multiplications_per_call, plain_checkpoint
from confidence.chain.distribution import exactly
from confidence.chain.tick_pairs import with_pairs
from confidence.config import FEW_STEPS
from confidence.kernel import POSITIVE, kernel

__all__ = [
    "BUDGET",
    "COUPLED",
    "DONE",
    "IMPOSSIBLE",
    "INEXACT",
    "NO_SPACE",
    "PAUSED",
    "SPENT",
    "TOO_DEAR",
    "Chain",
    "Forbidden",
    "Limits",
    "Workspace",
    "chain_weight",
    "fill",
    "forward",
    "lay_out",
    "next_choice",
    "room_for",
    "take_weights",
    "workspace",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

DONE: Final = 0
IMPOSSIBLE: Final = 1
TOO_DEAR: Final = 2
NO_SPACE: Final = 3
COUPLED: Final = 4
INEXACT: Final = 5
PAUSED: Final = 6

SPENT: Final = 0
BUDGET: Final = 1
COUPLING: Final = 2
TOTAL: Final = 3
DRAWN: Final = 4
MEAN: Final = 5
SQUARES: Final = 6


class Chain(NamedTuple):
    """A Markov chain over the times of l events.

    Attributes
    ----------
    bounds : (3, k) int64
        First and last tick of each event, k >= l, and where the edges to its times start.
    node : (l, u) float64
        Weight of each tick from an event's first one on.
    edge : (e,) float64
        Weight of each pair of ticks of neighbours: from ``bounds[2, j]`` on, row by row for the times of
        event j - 1. Only pairs in order count.
    front : (k, u) float64
        Work array, see :func:`forward`.
    """

    bounds: Int64
    node: Float64
    edge: Float64
    front: Float64


class Forbidden(NamedTuple):
    """The events that a match's gaps must stay free of, all distinct, and room for more.

    Attributes
    ----------
    lower, upper, offset : (q,) int64
        As of :class:`confidence.chain.distribution.Intervals`.
    event : (q,) int64
        What the caller tells them by.
    gaps : (q, g) bool
        Whether each gap forbids the event. Of a chain of l events gap 0 is ``[t_{l-1} - W + 1, t_0)``, gap g
        ``(t_{g-1}, t_g)``, and gap l ``(t_{l-1}, t_0 + W - 1]``; more are ignored.
    """

    lower: Int64
    upper: Int64
    offset: Int64
    event: Int64
    gaps: NDArray[np.bool_]


class Limits(NamedTuple):
    """Limits on the cost of one match.

    Attributes
    ----------
    most_steps : float
        Most multiplications to spend on it.
    std_error : float
        Standard error of an estimate where the exact confidence takes more; 0: none is wanted.
    seed : int
        The same match gets the same draws wherever it is evaluated.
    few_steps : float
        Most multiplications to spend on events that couple gaps before a cheaper way is looked for.
    """

    most_steps: float
    std_error: float = 0.0
    seed: int = 0
    few_steps: float = FEW_STEPS


class Workspace(NamedTuple):
    """Work arrays for the confidence of one match of at most l events, of u ticks each, and q others.

    Attributes
    ----------
    bounds, node, edge, front
        Of a :class:`Chain`.
    spare_node, spare_edge : (l, u) and (e,) float64
        The weights once more, for one choice of places of the events that couple gaps.
    coupled : (q,) int64
        The numbers of those events.
    places : (q, 4, 2 l + 4) int64
        Their places: kind, event of the match, group, and the node or edge of each group.
    counts : (3, q) int64
        How many places and groups they have, and the group in question.
    held : (l,) bool
        Whether a time of the match is held.
    marks : (3, l) int64, times : (l,) int64, side : (2, u) float64
        Work arrays.
    random : (1,) uint64, left : (u + 2,) int64
        The state of the random numbers; first and last time of the match, and how many draws are left for
        each first time.
    progress : (7,) float64
        The multiplications of this call, and after how many it comes back to Python; how many events couple
        the match that is being estimated, 0 for none, its total weight, the draws so far, their mean, and the
        sum of their squared distances from it.
    """

    bounds: Int64
    node: Float64
    edge: Float64
    front: Float64
    spare_node: Float64
    spare_edge: Float64
    coupled: Int64
    places: Int64
    counts: Int64
    held: NDArray[np.bool_]
    marks: Int64
    times: Int64
    side: Float64
    random: NDArray[np.uint64]
    left: Int64
    progress: Float64

    def go_on(self) -> Workspace:
        """Return the same with the budget of another call of a kernel."""
        self.progress[SPENT], self.progress[BUDGET] = 0.0, multiplications_per_call()
        return self

    def begin(self) -> None:
        """Forget what a call began that was ended by an error."""
        self.progress[COUPLING] = 0.0


def workspace(length: int, most_edges: int, most_ticks: int, most_events: int) -> Workspace:
    """Return work arrays.

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
    return Workspace(
        bounds=np.empty((3, length + 1), dtype=np.int64),
        node=np.empty((length, most_ticks)),
        edge=np.empty(most_edges),
        front=np.empty((length, most_ticks)),
        spare_node=np.empty((length, most_ticks)),
        spare_edge=np.empty(most_edges),
        coupled=np.empty(events, dtype=np.int64),
        places=np.empty((events, 4, 2 * length + 4), dtype=np.int64),
        counts=np.empty((3, events), dtype=np.int64),
        held=np.empty(length, dtype=np.bool_),
        marks=np.empty((3, length), dtype=np.int64),
        times=np.empty(length, dtype=np.int64),
        side=np.empty((2, most_ticks)),
        random=np.empty(1, dtype=np.uint64),
        left=np.empty(most_ticks + 2, dtype=np.int64),
        progress=np.zeros(7),
    )


def room_for(events: int, gaps: int) -> Forbidden:
    """Return room for so many forbidden events of a match with so many gaps."""
    lower, upper, offset, event = np.empty((4, events), dtype=np.int64)
    return Forbidden(lower, upper, offset, event, np.zeros((events, gaps), dtype=np.bool_))


@kernel
def take_weights(chain, other, edges):
    """Copy the weights of ``other``, a chain over the same times with so many edges, into a chain."""
    a, b = chain.bounds[0], chain.bounds[1]
    for j in range(chain.node.shape[0]):
        for t in range(b[j] - a[j] + 1):
            chain.node[j, t] = other.node[j, t]
    for e in range(edges):
        chain.edge[e] = other.edge[e]


@kernel
def next_choice(chosen, most, count):
    """Go on to the next choice of one of ``most[k]`` for each k < count; return whether there is one."""
    for k in range(count):
        chosen[k] += 1
        if chosen[k] < most[k]:
            return True
        chosen[k] = 0
    return False


@kernel
def lay_out(bounds, length, window):
    """Set where the edges of each gap start; return their number, the most ticks and a chain's passes."""
    a, b = bounds[0], bounds[1]
    edges = 0
    ticks = 0
    for j in range(length):
        bounds[2, j] = edges
        ticks = max(ticks, b[j] - a[j] + 1)
        if j > 0:
            edges = with_pairs(edges, b[j - 1] - a[j - 1] + 1, b[j] - a[j] + 1)
    passes = 1.0
    if length > 3:
        passes += float(min(max(0, b[length - 1] - window + 1 - a[0]), b[0] - a[0] + 1))
    return edges, ticks, passes


@kernel
def fill(match, pmfs, chain):
    """Weigh the nodes of a chain by the probabilities of the times alone. O(l U)."""
    for j in range(chain.node.shape[0]):
        first = chain.bounds[0, j]
        width = chain.bounds[1, j] - first + 1
        low, high, offset = match.lower[j], match.upper[j], match.offset[j]
        if offset < 0:
            for k in range(width):
                chain.node[j, k] = 1.0 / float(high - low + 1)
        else:
            for k in range(width):
                chain.node[j, k] = exactly(low, high, offset, pmfs.values, first + k)


@kernel
def forward(chain, start, stop, last_tick):
    """Fill ``front[j, t]``, the weight of the chains from a first time in start..stop to t. O(l U^2)."""
    bounds, node, edge, front = chain
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    length = node.shape[0]
    for t in range(b[0] - a[0] + 1):
        front[0, t] = node[0, t] if start <= a[0] + t <= stop else 0.0
    for g in range(1, length):
        plain_checkpoint()
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
def _first_time(chain, start):
    """Return the smallest first time >= start from which some chain of positive weight goes on. O(l U^2)."""
    bounds, node, edge, front = chain
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
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
def _three_events(chain, window):
    """Return the weight as :func:`chain_weight` does, for three events. O(U^2).

    The later the first time, the more times the last one has: what comes behind each time in the middle grows
    by as many. All inner loops are vectors over the times in the middle.
    """
    bounds, node, edge, front = chain
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    behind, sums, latest = front[0], front[1], front[2]
    width = b[1] - a[1] + 1
    last_width = b[2] - a[2] + 1
    for u in range(width):
        behind[u] = 0.0
        sums[u] = 0.0
    first_time = b[0] + 1
    next_last = a[2]
    for s in range(a[0], b[0] + 1):
        plain_checkpoint()
        while next_last <= min(b[2], s + window - 1):
            weight = node[2, next_last - a[2]]
            column = (edge_start[2] + next_last - a[2]) & POSITIVE
            for u in range(min(width, next_last - a[1])):
                behind[u & POSITIVE] += weight * edge[(column + u * last_width) & POSITIVE]
            next_last += 1
        weight = node[0, s - a[0]]
        begin = max(0, s + 1 - a[1])
        row = (edge_start[1] + (s - a[0]) * width) & POSITIVE
        for u in range(begin, width):
            sums[u & POSITIVE] += weight * edge[(row + u) & POSITIVE] * behind[u & POSITIVE]
        if first_time > b[0]:
            for u in range(begin, width):
                if node[1, u] * sums[u] > 0.0:
                    first_time = s
    total = 0.0
    for u in range(width):
        total += node[1, u] * sums[u]
    last_time = a[2] - 1
    if not total > 0.0:
        return total, first_time, last_time
    for u in range(width):
        s = min(b[0], a[1] + u - 1)
        while s >= a[0] and not node[0, s - a[0]] * edge[edge_start[1] + (s - a[0]) * width + u] > 0.0:
            s -= 1
        # Counted from the first: a float64 does not tell all ticks.
        latest[u] = float(s - a[0]) if s >= a[0] and node[1, u] > 0.0 else -np.inf
    for t in range(b[2], a[2] - 1, -1):
        for u in range(min(width, t - a[1])):
            if latest[u] > float(t - a[0] - window) and node[2, t - a[2]] * edge[
                edge_start[2] + u * last_width + t - a[2]
            ] > 0.0:  # fmt: skip
                last_time = t
        if last_time == t:
            break
    return total, first_time, last_time


@kernel
def _two_events(chain, window):
    """Return the weight as :func:`chain_weight` does, for two events. O(U^2)."""
    bounds, node, edge, _ = chain
    a, b = bounds[0], bounds[1]
    width = b[1] - a[1] + 1
    total = 0.0
    first_time = b[0] + 1
    last_time = a[1] - 1
    for s in range(a[0], b[0] + 1):
        plain_checkpoint()
        weight = node[0, s - a[0]]
        row = bounds[2, 1] + (s - a[0]) * width - a[1]
        for t in range(max(a[1], s + 1), min(b[1], s + window - 1) + 1):
            both = weight * edge[row + t] * node[1, t - a[1]]
            if both > 0.0:
                total += both
                first_time = min(first_time, s)
                last_time = max(last_time, t)
    return total, first_time, last_time


@kernel
def chain_weight(chain, window):
    """Return the weight of all chains within the window, their first and their last time.

    First times for which the window reaches behind the last interval are taken together. O(l U^2), and as
    much again for every other first time; up to three events O(U^2) in all.
    """
    bounds, node, _, front = chain
    a, b = bounds[0], bounds[1]
    last = node.shape[0] - 1
    if last == 2:
        return _three_events(chain, window)
    if last == 1:
        return _two_events(chain, window)
    total = 0.0
    first_time = b[0] + 1
    last_time = a[last] - 1
    together = min(max(a[0], b[last] - window + 1), b[0] + 1)
    for start in range(a[0], min(together, b[0]) + 1):
        if start < together and not node[0, start - a[0]] > 0.0:
            continue
        stop = start if start < together else b[0]
        forward(chain, start, stop, min(start + window - 1, b[last]))
        reached = 0.0
        for t in range(b[last] - a[last] + 1):
            if front[last, t] > 0.0:
                reached += front[last, t]
                last_time = max(last_time, a[last] + t)
        total += reached
        if reached > 0.0 and first_time > b[0]:
            first_time = start
            if start == together and start < b[0]:
                first_time = _first_time(chain, start)
    return total, first_time, last_time
