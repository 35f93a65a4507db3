"""What the joins of a tree look at: equalities to look rows up by, pairs of components, predicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventbased.tree_join import BEFORE, BEHIND, NEXT_LEFT, NEXT_RIGHT
from uncertain_cep.equalities import Equalities, EqualityIndex, Known
from uncertain_cep.layout import Layout
from uncertain_cep.plan.trees import Join, Leaf, Tree, components_of
from uncertain_cep.programs import PreparedPredicates
from uncertain_cep.query.typed import variables_of

__all__ = ["JoinChain", "JoinConditions", "PlannedJoin"]

Int64 = NDArray[np.int64]


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
    index : EqualityIndex
    pairs, shared, rows
        See :class:`eventbased.join_chains.JoinStep`.
    """

    components: tuple[int, ...]
    right: int | JoinChain
    left_components: Int64
    right_components: Int64
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
    prepared : PreparedPredicates
        The programs of the joins are compiled with these.
    limited : bool
        Whether an event limits how late the next one may start.

    Attributes
    ----------
    equalities : Equalities
    """

    def __init__(
        self, variables: Sequence[str], layout: Layout, prepared: PreparedPredicates, limited: bool
    ) -> None:
        self._variables, self._prepared, self._limited = variables, prepared, limited
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
            joins.append(
                PlannedJoin(
                    bound + added,
                    right,
                    np.array(bound, dtype=np.int64),
                    np.array(added, dtype=np.int64),
                    index,
                    _pairs(bound, added, self._limited),
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


def _pairs(left: tuple[int, ...], right: tuple[int, ...], limited: bool) -> Int64:
    """Return the conditions on pairs that ``lo`` and ``hi`` of a left row do not cover."""
    found = []
    for s in left:
        for t, component in enumerate(right):
            if min(right) < s < max(right):
                found.append((BEFORE if s < component else BEHIND, s, t))
            if limited and s == component + 1:
                found.append((NEXT_LEFT, s, t))
            if limited and s == component - 1 and len(right) > 1:
                found.append((NEXT_RIGHT, s, t))
    return np.array(found, dtype=np.int64).reshape(-1, 3)
