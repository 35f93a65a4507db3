"""What the joins of a tree look at: equalities to look rows up by, pairs of components, predicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventbased.joins.tree_join import BEFORE, BEHIND, NEXT_LEFT, NEXT_RIGHT
from uncertain_cep.candidates.layout import Layout
from uncertain_cep.expressions.bytecode import PreparedPredicates
from uncertain_cep.expressions.equalities import Equalities, EqualityIndex, Known
from uncertain_cep.plan.trees import Join, Leaf, Tree, components_of
from uncertain_cep.query.typed import variables_of

__all__ = ["JoinChain", "JoinConditions", "PlannedJoin", "distances"]

Int64 = NDArray[np.int64]


def distances(length: int, window: int, before: Sequence[int] | None = None) -> Int64 | None:
    """Return by how much A of one event is at most below B of another, if both are in a match.

    With positions subtracted, ``A_i + D_ij <= B_j`` for all i, j is what order and window ask of the bounds.

    Parameters
    ----------
    length : int
        Components of the pattern.
    window : int
        W, ticks.
    before : sequence of int or None
        For each component the bits of those that come before it; None: in a sequence all of lower numbers.

    Returns
    -------
    (l, l) int64 or None
        D; None if no match fits the window.

    Notes
    -----
    O(1) for each pair of a sequence, else O(l^3): the longest paths of the difference constraints
    ``t_i + 1 <= t_j`` and ``t_i - (W - 1) <= t_j``.
    """
    if before is None:
        inside = np.triu(np.ones((length, length), dtype=np.bool_))
        return np.where(inside, 0, length - window) if window >= length else None
    found = np.full((length, length), 1 - window)
    for j, earlier in enumerate(before):
        for i in range(length):
            if earlier >> i & 1:
                found[i, j] = 1
    np.fill_diagonal(found, 0)
    for k in range(length):
        # No path is longer, unless no match fits.
        found = np.minimum(np.maximum(found, found[:, k, None] + found[None, k, :]), length)
    position = np.arange(length)
    return None if found.diagonal().any() else found + position[:, None] - position[None, :]


@dataclass(frozen=True, slots=True)
class PlannedJoin:
    """A join of a chain.

    Attributes
    ----------
    components : tuple of int
        Of the node's leaves, from left to right.
    right : int or JoinChain
        A component, or a chain whose partial matches are the right side.
    left_components, right_components : (n,) int64
    slack : (s, 2) int64
    index : EqualityIndex
    pairs, shared, rows
        See :class:`eventbased.joins.pipeline.JoinStep`.
    """

    components: tuple[int, ...]
    right: int | JoinChain
    left_components: Int64
    right_components: Int64
    slack: Int64
    index: EqualityIndex
    pairs: Int64
    shared: bool
    rows: tuple[int, int]


@dataclass(frozen=True, slots=True)
class JoinChain:
    """The joins along the left edge of a tree, that of its first leaf's candidates first."""

    first: int
    joins: tuple[PlannedJoin, ...]


class JoinConditions:
    """What the joins of trees over one layout have to look at.

    Parameters
    ----------
    variables : sequence of str
        In pattern order.
    layout : Layout
    distance : (l, l) int64
        Of :func:`distances`.
    prepared : PreparedPredicates
        The programs of the joins are compiled with these.
    limited : bool
        Whether an event limits how late the next one may start.

    Attributes
    ----------
    equalities : Equalities
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
            joins.append(
                PlannedJoin(
                    bound + added,
                    right,
                    np.array(bound, dtype=np.int64),
                    np.array(added, dtype=np.int64),
                    slack,
                    index,
                    self._pairs(bound, added, slack),
                    self._share(bound, added),
                    rows,
                )
            )
            bound += added
        return JoinChain(tree.component, tuple(joins)), known

    def _predicates(
        self, left: tuple[int, ...], right: tuple[int, ...], known: Known
    ) -> tuple[EqualityIndex, Known, tuple[int, int]]:
        """Return what looks the right side up, what is known then, and the programs for the rest."""
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
