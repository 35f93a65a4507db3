"""Bounds on differences of times as a graph: whether all can hold, and by how much one would have to move.

A constraint ``t[later] - t[earlier] >= least`` is an edge. All can hold at once exactly if no cycle of edges
adds up to more than 0 (Bellman 1958, Ford 1956), and then whole numbers meet them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["ZERO", "Constraint", "LongestPaths", "least_move", "positive_cycle"]

ZERO: Final = 0
"""The node of tick 0, to which bounds of single times are constraints."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """``t[later] - t[earlier] >= least``, ticks.

    ``name`` tells which of the query's or the events' bounds it is, ``kind`` of which sort that is.
    """

    earlier: int
    later: int
    least_ticks: int
    kind: str
    name: str = ""
    event: int = -1
    """The node of the event whose bound it is; -1 for those of the query."""


def positive_cycle(
    constraints: Sequence[Constraint], nodes: int, eased: Collection[int] = (), by: int = 0
) -> list[int]:
    """Return the numbers of constraints that cannot all hold, around a cycle; empty if all can.

    O(nodes * constraints). The constraints of the numbers ``eased`` ask ``by`` ticks less.
    """
    ticks = [part.least_ticks - (by if k in eased else 0) for k, part in enumerate(constraints)]
    distance, reached_by = [0] * nodes, [-1] * nodes
    last = -1
    for _ in range(nodes + 1):
        last = -1
        for k, part in enumerate(constraints):
            if distance[part.earlier] + ticks[k] > distance[part.later]:
                distance[part.later] = distance[part.earlier] + ticks[k]
                reached_by[part.later] = k
                last = part.later
        if last < 0:
            return []
    for _ in range(nodes):
        # After as many steps back a node lies on the cycle.
        last = constraints[reached_by[last]].earlier
    cycle, node = list[int](), last
    while not cycle or node != last:
        cycle.append(reached_by[node])
        node = constraints[cycle[-1]].earlier
    return cycle[::-1]


def least_move(constraints: Sequence[Constraint], nodes: int, eased: Collection[int]) -> int | None:
    """Return the least number of ticks by which some constraints have to ask less; None if that never helps.

    Notes
    -----
    Newton's method: a cycle that adds up to s and has k of the constraints is met from ceil(s / k) ticks on
    and not before, so that no step goes too far, and the last one is exact.
    """
    eased = frozenset(eased)
    by = 0
    while cycle := positive_cycle(constraints, nodes, eased, by):
        count = sum(k in eased for k in cycle)
        if not count:
            return None
        total = sum(constraints[k].least_ticks for k in cycle)
        by = -(-total // count)
    return by


class LongestPaths(NamedTuple):
    """By how much times are apart at least, by all constraints together (Floyd 1962, Warshall 1962)."""

    ticks: list[list[int | None]]
    """``ticks[i][j]``: the least that ``t[j] - t[i]`` can be; None: anything."""
    through: list[list[int]]
    """The number of the last constraint of the path from i to j; -1 for none."""
    constraints: Sequence[Constraint]

    @classmethod
    def of(cls, constraints: Sequence[Constraint], nodes: int) -> LongestPaths:
        """Return the longest paths along constraints; O(nodes**3)."""
        ticks: list[list[int | None]] = [[None] * nodes for _ in range(nodes)]
        through = [[-1] * nodes for _ in range(nodes)]
        for k, part in enumerate(constraints):
            before = ticks[part.earlier][part.later]
            if before is None or part.least_ticks > before:
                ticks[part.earlier][part.later], through[part.earlier][part.later] = part.least_ticks, k
        for middle in range(nodes):
            for first in range(nodes):
                head = ticks[first][middle]
                if head is None or first == middle:
                    continue
                for end in range(nodes):
                    tail = ticks[middle][end]
                    if tail is None or end == middle:
                        continue
                    before = ticks[first][end]
                    if before is None or head + tail > before:
                        ticks[first][end], through[first][end] = head + tail, through[middle][end]
        return cls(ticks, through, constraints)

    def path(self, first: int, end: int) -> list[int]:
        """Return the numbers of the constraints along the path from one node to another."""
        return list(self._backwards(first, end))[::-1]

    def _backwards(self, first: int, end: int) -> Iterator[int]:
        node = end
        for _ in range(len(self.ticks) + 1):
            k = self.through[first][node]
            yield k
            node = self.constraints[k].earlier
            if node == first:
                return
