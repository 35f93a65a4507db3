"""Systems of difference constraints, ``x[head] - x[tail] >= weight``: bounds and contradictions, over arrays.

The bounds are longest paths (Bellman and Ford); a system has a solution unless a cycle has a positive weight.
Constraints are totally unimodular, so bounds of whole weights are whole and tight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from confidence.flat_lists import end_to_end
from uncertain_cep.errors import TraceError
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray

__all__ = [
    "ORIGIN",
    "UNBOUNDED",
    "Differences",
    "bounds_from_origin",
    "first_contradiction",
    "positive_cycle",
]

ORIGIN: Final = 0
"""The node whose value is 0."""

UNBOUNDED: Final = -(2**63)
"""Stands for a lower bound that there is none of."""

_FAR: Final = 2**61
"""Beyond this a sum of two numbers might leave int64."""


class Differences(NamedTuple):
    """Constraints ``x[head] - x[tail] >= weight``, each (m,) int64; nodes are 0..k-1."""

    tail: IntArray
    head: IntArray
    weight: IntArray

    @classmethod
    def of(cls, *parts: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]) -> Differences:
        """Return some groups of constraints, each by tails, heads and weights, as one; numbers repeat."""
        wide = [np.broadcast_arrays(*(np.atleast_1d(one) for one in part)) for part in parts]
        nothing = [np.zeros(0, np.int64)]
        return cls(*(np.concatenate([*(part[i] for part in wide), *nothing]) for i in range(3)))

    def those(self, rows: IntArray | BoolArray) -> Differences:
        """Return some of the constraints."""
        return Differences(*(column[rows] for column in self))

    def turned(self) -> Differences:
        """Return the constraints of the values' negatives."""
        return Differences(self.head, self.tail, self.weight)


@dataclass(frozen=True, slots=True)
class _Graph:
    """Constraints by tails: those of a node stand in ``edges[first[node] : first[node + 1]]``."""

    edges: IntArray
    first: IntArray

    @classmethod
    def of(cls, system: Differences, nodes: int) -> _Graph:
        # Of constraints between the same two nodes only the strongest counts.
        order = np.lexsort((system.weight, system.head, system.tail))
        tail, head = system.tail[order], system.head[order]
        strongest = np.append((tail[1:] != tail[:-1]) | (head[1:] != head[:-1]), True)[: len(order)]
        edges = order[strongest]
        return cls(edges, np.searchsorted(system.tail[edges], np.arange(nodes + 1)))

    def leaving(self, nodes: IntArray) -> IntArray:
        """Return the constraints whose tail is one of some nodes."""
        counts = self.first[nodes + 1] - self.first[nodes]
        edges: IntArray = self.edges[end_to_end(self.first[nodes], counts)[0]]
        return edges


def _raised(system: Differences, potential: IntArray) -> IntArray | None:
    """Raise potentials, in place, until they meet all constraints; or return a positive cycle.

    ``potential`` is (k,) int64, `UNBOUNDED` where nothing is known. Nodes are raised at once, from those
    that were raised before: O(m) a round, and as many rounds as the longest path has edges.
    """
    nodes = len(potential)
    graph = _Graph.of(system, nodes)
    cause = np.full(nodes, -1)
    active = np.flatnonzero(potential != UNBOUNDED)
    rounds, check = 0, 4
    while len(active):
        edges = graph.leaving(active)
        value = potential[system.tail[edges]] + system.weight[edges]
        higher = value > potential[system.head[edges]]
        edges, value = edges[higher], value[higher]
        order = np.lexsort((value, system.head[edges]))
        edges, value = edges[order], value[order]
        heads = system.head[edges]
        best = np.append(heads[1:] != heads[:-1], True)[: len(heads)]
        active = heads[best]
        potential[active], cause[active] = value[best], edges[best]
        if len(value) and max(int(value.max()), -int(value.min())) > _FAR:
            raise TraceError(
                "the times that constraints compare are too far apart for 64 bits: are their units right?"
            )
        rounds += 1
        if rounds == check:
            cycle = _cycle(system, cause)
            if cycle is not None:
                return cycle
            check *= 2
    return None


def _cycle(system: Differences, cause: IntArray) -> IntArray | None:
    """Return the constraints of a cycle among those that raised each node last; None if there is none.

    Its weight is positive. A node is at most its tail's value plus the weight, since the tail can only have
    risen since; and of the node that rose last on the cycle, the next one knows only the lower value.
    """
    nodes = len(cause)
    # One more node stands for none.
    parent = np.append(np.where(cause >= 0, system.tail[cause], nodes), nodes)
    ancestor = parent
    for _ in range(nodes.bit_length()):
        ancestor = ancestor[ancestor]
    trapped = np.flatnonzero(ancestor != nodes)
    if not len(trapped):
        return None
    start = node = int(ancestor[trapped[0]])
    cycle: list[int] = []
    while not cycle or node != start:
        cycle.append(int(cause[node]))
        node = int(parent[node])
    return np.array(cycle[::-1])


def positive_cycle(system: Differences, start: IntArray) -> tuple[IntArray | None, IntArray]:
    """Look for a contradiction.

    Parameters
    ----------
    system : Differences
    start : (k,) int64
        Where to start from, such as a solution of some of the constraints; any will do.

    Returns
    -------
    cycle : (c,) int64 or None
        Constraints that contradict each other, each one's head the next one's tail; None if all can hold.
    solution : (k,) int64
        Meets all constraints unless there is a cycle.
    """
    solution = start.copy()
    return _raised(system, solution), solution


def bounds_from_origin(system: Differences, nodes: int) -> tuple[IntArray, IntArray]:
    """Return the tightest lower and upper bound of each value, of constraints without contradiction.

    (k,) int64 each, `UNBOUNDED` and its complement ``~UNBOUNDED`` where there is none.
    """
    bounds: list[IntArray] = []
    for part in (system, system.turned()):
        reached = np.full(nodes, UNBOUNDED)
        reached[ORIGIN] = 0
        _raised(part, reached)
        bounds.append(reached)
    lower, upper = bounds
    return lower, np.where(upper == UNBOUNDED, ~UNBOUNDED, -upper)


def first_contradiction(
    facts: Differences, claimed: Differences, kept: BoolArray, start: IntArray
) -> tuple[IntArray | None, IntArray]:
    """Return why the claims cannot all hold, judged by the first ones that cannot.

    Parameters
    ----------
    facts : Differences
        Beyond doubt, and without contradiction.
    claimed : Differences
        The sooner the better founded.
    kept : (m,) bool
        Which claims count.
    start : (k,) int64
        As for `positive_cycle`.

    Returns
    -------
    cycle : (c,) int64 or None
        Constraints that contradict each other: claims by their places, and behind those the facts. The
        claims before the last of them do not contradict each other.
    solution : (k,) int64
        Meets the facts and all claims before that one.
    """
    places = np.arange(len(kept))
    end = len(kept)
    contradiction: IntArray | None = None
    # The claims before the last one of a cycle may hold another cycle, which ends sooner.
    while True:
        rows = places[kept & (places < end)]
        system = Differences.of(claimed.those(rows), facts)
        cycle, solution = positive_cycle(system, start)
        if cycle is None:
            return contradiction, solution
        is_claim = cycle < len(rows)
        numbers = np.append(rows, len(kept) + np.arange(len(facts.tail)))
        contradiction = numbers[cycle]
        end = int(contradiction[is_claim].max())
