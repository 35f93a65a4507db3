"""Enumeration of the choices of events that a tree of joins puts together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eventbased.config import BLOCK_ROWS, MATERIALISED_ROWS
from eventbased.joins.join_state import JoinBytecode
from eventbased.joins.pipeline import joined, right_of_candidates, right_of_matches
from eventbased.joins.tree_join import JoinInputs, JoinStep, RightSide
from uncertain_cep.candidates.layout import Layout
from uncertain_cep.candidates.reach import met_by_any
from uncertain_cep.expressions.bytecode import PreparedPredicates
from uncertain_cep.expressions.equalities import keys_of
from uncertain_cep.operators.counters import Counters, Node
from uncertain_cep.operators.join_conditions import JoinChain, JoinConditions, PlannedJoin
from uncertain_cep.plan.trees import Tree, components_of, left_deep, order_of

__all__ = ["TreeSearch"]

Int64 = NDArray[np.int64]

Bounds = list[tuple[int, int]]
"""For each component what B has to reach and A has to keep to."""


@dataclass(slots=True)
class _LeafRange:
    """Candidates of a tree's first leaf, one after the other, for which right subtrees are evaluated."""

    bounds: Bounds
    """What can be in a match with any of them."""
    begin: int = 0
    stop: int = 0
    """Which of the first leaf's they are, by rising A."""
    counted: list[tuple[Node, int]] = field(default_factory=list)
    """Nodes of right subtrees and how many partial matches they have that no earlier range has."""
    held: int = 0
    """The most partial matches of a right subtree."""


class TreeSearch:
    """The enumeration of matches along a tree over two or more components of a layout.

    ``variables`` are those of all components, ``distance`` is that of
    :func:`uncertain_cep.operators.join_conditions.distances`, the bytecode of the joins is compiled with
    ``prepared``, ``limited`` says whether an event limits how late the next one may start. ``block_rows``
    partial matches are extended together, at most ``materialised_rows`` of a right subtree held at a time.
    """

    def __init__(
        self,
        tree: Tree,
        variables: Sequence[str],
        layout: Layout,
        distance: Int64,
        prepared: PreparedPredicates,
        limited: bool = False,
        counters: Counters | None = None,
        block_rows: int = BLOCK_ROWS,
        materialised_rows: int = MATERIALISED_ROWS,
    ) -> None:
        position = layout.candidates.position
        self._distance = distance + position[:, None] - position
        conditions = JoinConditions(variables, layout, self._distance, prepared, limited)
        self._chain = conditions.chain(tree)
        # Where the partial matches of a right subtree are too many at a single time.
        self._instead = None
        if order_of(tree) is None:
            self._instead = conditions.chain(left_deep(components_of(tree)))
        self._codes = conditions.equalities.codes
        self._layout, self._candidates = layout, layout.candidates
        self._length = len(variables)
        self._block_rows, self._materialised_rows = block_rows, materialised_rows
        self._counters = counters
        self._sides: dict[int, RightSide] = {}
        every = self._candidates.lower[: len(layout.rows)]
        self._anywhere = int(every.min()), int(every.max())

    def matches(self, bytecode: JoinBytecode, limit: Int64, last_rows: int) -> Iterator[Int64]:
        """Yield the candidates of matches, (l, m) int64, m <= ``last_rows``, by component.

        Those of components that are not in the tree are not set. ``bytecode`` is all that ``prepared`` was
        asked to compile; ``limit``, (n,) int64, has for each candidate the largest A that the next one may
        have, and is empty if ``limited`` is false.
        """
        candidates, shared, chain = self._candidates, self._layout.shared, self._chain
        self._inputs = JoinInputs(
            candidates.lower, candidates.upper, shared.event, shared.twin, limit, self._codes, bytecode
        )
        first = candidates.first
        chosen = np.arange(first[chain.first], first[chain.first + 1])
        self._count([((j,), int(first[j + 1] - first[j])) for j in range(self._length)])
        if self._instead is None:
            yield from self._joined(chain, chosen, [self._anywhere] * self._length, last_rows)
            return
        chosen = chosen[np.argsort(candidates.lower[chosen], kind="stable")]
        self._first_leaf = chain.first
        self._first_lower, self._first_upper = candidates.lower[chosen], candidates.upper[chosen]
        self._first_reach = np.maximum.accumulate(self._first_upper)
        begin, size, given_up = 0, len(chosen), 1
        while begin < len(chosen):
            part = chosen[begin : begin + size]
            leaf_range = _LeafRange(self._around(chain.first, part), begin, begin + len(part))
            steps = self._steps(chain, leaf_range)
            if steps is None and len(part) > 1:
                size = (len(part) + 1) // 2
                continue
            if steps is None:
                # More and more at a time, so that it is not tried in vain for each.
                part = chosen[begin : begin + given_up]
                given_up *= 2
                yield from self._joined(self._instead, part, self._around(chain.first, part), last_rows)
            else:
                self._count(leaf_range.counted)
                yield from self._run(chain, part, steps, last_rows)
                given_up = 1
                if 3 * leaf_range.held <= self._materialised_rows:
                    size *= 2
            begin += len(part)

    def _around(self, component: int, chosen: Int64) -> Bounds:
        """Return the candidates that can be in a match with one of some candidates of a component."""
        earliest = int(self._inputs.lower[chosen].min())
        latest = int(self._inputs.upper[chosen].max())
        first, last = self._anywhere
        ahead, behind = self._distance[component].tolist(), self._distance[:, component].tolist()
        return [(max(earliest + ahead[j], first), min(latest - behind[j], last)) for j in range(self._length)]

    def _meeting(self, component: int, chosen: Int64, begin: int, stop: int) -> NDArray[np.bool_]:
        """Return the candidates that can be in time with one of the first leaf's, begin <= rank < stop."""
        reach = self._first_reach
        if begin:
            reach = np.maximum.accumulate(self._first_upper[begin:stop])
        first, inputs = self._first_leaf, self._inputs
        return met_by_any(
            self._first_lower[begin:stop], reach, inputs.lower[chosen], inputs.upper[chosen],
            int(self._distance[first, component]), int(self._distance[component, first]),
        )  # fmt: skip

    def _count(self, counted: list[tuple[Node, int]]) -> None:
        if self._counters is not None:
            for node, number in counted:
                self._counters.add(node, number)

    def _joined(self, chain: JoinChain, chosen: Int64, bounds: Bounds, last_rows: int) -> Iterator[Int64]:
        steps = self._steps(chain, _LeafRange(bounds))
        assert steps is not None
        yield from self._run(chain, chosen, steps, last_rows)

    def _run(self, chain: JoinChain, chosen: Int64, steps: list[JoinStep], last_rows: int) -> Iterator[Int64]:
        def counted(step: int, found: Int64) -> None:
            self._count([(chain.joins[step].components, len(found))])

        yield from joined(
            self._length, chain.first, chosen, steps, self._inputs, last_rows, self._block_rows, counted
        )

    def _steps(self, chain: JoinChain, leaf_range: _LeafRange) -> list[JoinStep] | None:
        """Return the steps of a chain; None if a right subtree has too many partial matches."""
        steps = []
        for join in chain.joins:
            if isinstance(join.right, int):
                right = self._candidate_side(join, join.right)
                least, most = leaf_range.bounds[join.right]
            else:
                found = self._materialised(join.right, leaf_range)
                if found is None:
                    return None
                of_components = dict(zip(join.right_components, found, strict=True))
                key = keys_of(join.index.right, of_components, self._codes)
                added = np.array(join.right_components, dtype=np.int64)
                right = right_of_matches(self._inputs, added, found, key, join.index.size)
                least, most = self._anywhere
            steps.append(join.step(right, least, most))
        return steps

    def _candidate_side(self, join: PlannedJoin, component: int) -> RightSide:
        if id(join) not in self._sides:
            first = self._candidates.first
            chosen = {component: np.arange(first[component], first[component + 1])}
            key = keys_of(join.index.right, chosen, self._inputs.codes)
            self._sides[id(join)] = right_of_candidates(self._candidates, component, key, join.index.size)
        return self._sides[id(join)]

    def _materialised(self, chain: JoinChain, leaf_range: _LeafRange) -> Int64 | None:
        """Return the partial matches of a chain, (t, n) int64; None if they are too many."""
        steps = self._steps(chain, leaf_range)
        if steps is None:
            return None
        starts = self._within(chain.first, *leaf_range.bounds[chain.first])
        starts = starts[self._meeting(chain.first, starts, leaf_range.begin, leaf_range.stop)]

        def count(step: int, found: Int64) -> None:
            number = len(found)
            if leaf_range.begin:
                number -= int(self._meeting(chain.first, found, 0, leaf_range.begin).sum())
            leaf_range.counted.append((chain.joins[step].components, number))

        components = list(chain.joins[-1].components)
        parts = [np.empty((len(components), 0), dtype=np.int64)]
        rows = 0
        for block in joined(
            self._length, chain.first, starts, steps, self._inputs, self._block_rows, self._block_rows,
            None if self._counters is None else count,
        ):  # fmt: skip
            rows += block.shape[1]
            if rows > self._materialised_rows:
                return None
            parts.append(block[components])
        leaf_range.held = max(leaf_range.held, rows)
        return np.concatenate(parts, axis=1)

    def _within(self, component: int, least: int, most: int) -> Int64:
        """Return the candidates of a component with B >= least and A <= most."""
        candidates = self._candidates
        parts = [np.empty(0, dtype=np.int64)]
        for c in range(int(candidates.first_class[component]), int(candidates.first_class[component + 1])):
            start, stop = int(candidates.class_start[c]), int(candidates.class_stop[c])
            lower = candidates.lower[start:stop]
            begin = start + int(np.searchsorted(lower, least - int(candidates.class_longest[c])))
            end = start + int(np.searchsorted(lower, most, side="right"))
            parts.append(np.arange(begin, end))
        chosen = np.concatenate(parts)
        return chosen[candidates.upper[chosen] >= least]
