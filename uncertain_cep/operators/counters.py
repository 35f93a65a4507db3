"""How many partial matches a run had, node by node, and what weighed its matches, for those who ask."""

from __future__ import annotations

from dataclasses import dataclass, field

from uncertain_cep.weighers.log import WeighingLog

__all__ = ["Counters", "GroupCounts", "Node"]

Node = tuple[int, ...]
"""Components: of a tree's node those of its leaves, from left to right; of the join in pattern order those
that are bound, the pivot first, see :func:`uncertain_cep.expressions.bytecode.binding_orders`."""


@dataclass(slots=True)
class GroupCounts:
    """How the groups of RETURN PROBABILITY, each in each of its buckets, were weighed."""

    matches: int = 0
    """Of all groups."""
    single: int = 0
    """Groups of one match, whose probability is its confidence."""
    certain: int = 0
    """Groups of several matches with probability 1."""
    exact: int = 0
    """Other groups of several matches, without an estimate."""
    estimated: int = 0
    undecided: int = 0
    """Groups that have certain bounds and no probability."""
    largest: int = 0
    """Matches of the largest group."""
    named: str = ""
    """The keys of the largest group."""

    @property
    def count(self) -> int:
        """How many there are, each in each of its buckets."""
        return self.single + self.certain + self.exact + self.estimated + self.undecided


@dataclass(frozen=True, slots=True)
class Counters:
    """Numbers of partial matches, added up while a plan is run."""

    nodes: dict[Node, int] = field(default_factory=dict)
    """dict of tuple of int to int. Those of each node of an OR-free pattern."""
    branches: dict[int, Counters] = field(default_factory=dict)
    """dict of int to Counters. Those of the OR-free patterns that a pattern with OR stands for, by their
    numbers from 0."""

    weighed: WeighingLog = field(default_factory=WeighingLog)
    """Which weighers took the matches."""
    groups: GroupCounts = field(default_factory=GroupCounts)
    """What weighed the groups of matches."""

    def add(self, node: Node, number: int) -> None:
        """Add to the number of a node."""
        self.nodes[node] = self.nodes.get(node, 0) + number

    def of_branch(self, number: int) -> Counters:
        """Return the numbers of a branch."""
        return self.branches.setdefault(number, Counters())
