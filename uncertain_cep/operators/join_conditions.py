"""Conditions of the joins of a tree: equalities to look rows up by, pairs of components, predicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eventbased.joins.pivot_join import UNBOUND_GAP
from eventbased.joins.tree_join import BEFORE, BEHIND, NEXT_LEFT, NEXT_RIGHT, JoinStep, RightSide
from uncertain_cep.candidates.layout import Layout
from uncertain_cep.expressions.bytecode import PreparedPredicates
from uncertain_cep.expressions.equalities import Equalities, EqualityIndex, Known
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.time_bounds import LiteralBound
from uncertain_cep.plan.trees import Join, Leaf, Tree, components_of
from uncertain_cep.query.time_conditions import FAR
from uncertain_cep.query.typed import variables_of

__all__ = [
    "JoinChain",
    "JoinConditions",
    "PlannedJoin",
    "distances",
    "largest_distances",
]

Int64 = NDArray[np.int64]


def distances(
    length: int,
    window: int,
    before: Sequence[int] | None = None,
    bounds: Sequence[LiteralBound] = (),
) -> Int64 | None:
    """Return by how much a time has to be behind another, if both are of a match.

    ``lower_i + D_ij <= upper_j`` for all i, j is what order, window and bounds of differences ask of
    intervals.

    Returns D, (l, l) int64, for so many components and a window in ticks; None if no match fits it.
    ``before`` has for each component the bits of those that come before it; None: in a sequence all of lower
    numbers.

    Notes
    -----
    O(1) for each pair of a sequence without bounds, else O(l^3): the longest paths of the difference
    constraints ``t_i + 1 <= t_j``, ``t_i - (W - 1) <= t_j``, ``t_i + low <= t_j`` and ``t_j - high <= t_i``.
    """
    if before is None and not bounds:
        position = np.arange(length)
        apart = position - position[:, None]
        return np.where(apart >= 0, 0, length - window) + apart if window >= length else None
    found = np.full((length, length), 1 - window)
    for j in range(length):
        earlier = (1 << j) - 1 if before is None else before[j]
        for i in range(length):
            if earlier >> i & 1:
                found[i, j] = 1
    for i, j, low, high in bounds:
        # No two times of a match are farther apart than the window.
        found[i, j] = max(found[i, j], min(low, window))
        found[j, i] = max(found[j, i], min(-high, window))
    np.fill_diagonal(found, 0)
    most = max(length, window)
    for k in range(length):
        # No path is longer, unless no match fits.
        found = np.minimum(np.maximum(found, found[:, k, None] + found[None, k, :]), most)
    return None if found.diagonal().any() else found


def largest_distances(plan: EvaluationPlan) -> Int64:
    """Return the distances of a plan as :func:`eventbased.join` takes them."""
    most = [bound.high for bound in plan.neighbour_bounds]
    if min(most, default=FAR) == FAR:
        return np.zeros(0, dtype=np.int64)
    return np.array([min(high - 1, UNBOUND_GAP) for high in (FAR, *most)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PlannedJoin:
    """A join of a chain."""

    components: tuple[int, ...]
    """tuple of int. Of the node's leaves, from left to right."""
    right: int | JoinChain
    """A component, or a chain whose partial matches are the right side."""
    right_components: tuple[int, ...]
    """tuple of int."""
    index: EqualityIndex
    """By which the right side is looked up."""
    step: Callable[[RightSide, int, int], JoinStep]
    """Makes a :class:`eventbased.joins.tree_join.JoinStep` of the right side and its limits."""


@dataclass(frozen=True, slots=True)
class JoinChain:
    """The joins along the left edge of a tree, that of its first leaf's candidates first."""

    first: int
    joins: tuple[PlannedJoin, ...]


def _step(
    left: Int64, slack: Int64, equated: Int64, pairs: Int64, shared: bool, rows: tuple[int, int],
    right: RightSide, least: int, most: int,
) -> JoinStep:  # fmt: skip
    return JoinStep(left, slack, right, least, most, equated, pairs, shared, *rows)


class JoinConditions:
    """The conditions of joins of trees over one layout.

    ``distance`` is that of :func:`distances` with the positions of the layout taken off. The bytecode of the
    joins is compiled with the predicates. ``limited`` says whether an event limits how late the next starts.
    """

    def __init__(
        self,
        variables: Sequence[str],
        layout: Layout,
        distance: Int64,
        prepared: PreparedPredicates,
        limited: bool,
    ) -> None:
        self._variables, self._distance = variables, distance
        self._prepared, self._limited = prepared, limited
        self._fills = layout.shared.twin >= 0
        self.equalities = Equalities(prepared, self._variables, layout.candidates.first)

    def chain(self, tree: Tree) -> JoinChain:
        """Return the chain of joins of a tree."""
        return self._chain(tree)[0]

    def _chain(self, tree: Tree) -> tuple[JoinChain, Known]:
        rights = []
        while isinstance(tree, Join):
            rights.append(tree.right)
            tree = tree.left
        known: Known = {}
        bound: tuple[int, ...] = (tree.component,)
        joins = []
        for subtree in reversed(rights):
            right: int | JoinChain
            if isinstance(subtree, Leaf):
                right = subtree.component
            else:
                right, within = self._chain(subtree)
                known = {**known, **within}
            added = components_of(subtree)
            index, known, rows = self._predicates(bound, added, known)
            ahead = self._distance[np.ix_(bound, added)].min(axis=1)
            behind = self._distance[np.ix_(added, bound)].min(axis=0)
            slack = -np.stack((ahead, behind), axis=1)
            step = partial(
                _step, np.array(bound, dtype=np.int64), slack, index.left, self._pairs(bound, added, slack),
                self._share(bound, added), rows,
            )  # fmt: skip
            joins.append(PlannedJoin(bound + added, right, added, index, step))
            bound += added
        return JoinChain(tree.component, tuple(joins)), known

    def _predicates(
        self, left: tuple[int, ...], right: tuple[int, ...], known: Known
    ) -> tuple[EqualityIndex, Known, tuple[int, int]]:
        """Return the equalities that look the right side up, and the rows of bytecode for the rest."""
        one = {self._variables[j] for j in left}
        other = {self._variables[j] for j in right}
        across = [
            predicate
            for predicate in self._prepared.predicates
            if variables_of(predicate) <= one | other
            and not variables_of(predicate) <= one
            and not variables_of(predicate) <= other
        ]
        index, known, rest = self.equalities.index(left, right, known, across)
        return index, known, self._prepared.rows(rest)

    def _share(self, left: tuple[int, ...], right: tuple[int, ...]) -> bool:
        """Return whether some event is a candidate on both sides."""
        both = self._fills[:, left].any(axis=1) & self._fills[:, right].any(axis=1)
        return bool(both.any())

    def _pairs(self, left: tuple[int, ...], right: tuple[int, ...], slack: Int64) -> Int64:
        """Return the conditions on pairs that ``lo`` and ``hi`` of a left row do not cover."""
        distance = self._distance
        found = []
        for s, (below, above) in zip(left, slack.tolist(), strict=True):
            for t, component in enumerate(right):
                if distance[s, component] > -below:
                    found.append((BEFORE, s, t, distance[s, component]))
                if distance[component, s] > -above:
                    found.append((BEHIND, s, t, distance[component, s]))
                if self._limited and s == component + 1:
                    found.append((NEXT_LEFT, s, t, 0))
                if self._limited and s == component - 1 and len(right) > 1:
                    found.append((NEXT_RIGHT, s, t, 0))
        return np.array(found, dtype=np.int64).reshape(-1, 4)
