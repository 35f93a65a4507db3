"""Evaluation of SEQ along a tree of joins: components in any order, or parts of the pattern put together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eventbased import describe_chosen, promising_matches
from eventbased.config import BLOCK_ROWS, MATERIALISED_ROWS
from uncertain_cep.candidates.layout import Layout, layouts, loader
from uncertain_cep.expressions.bytecode import PreparedPredicates, binding_orders
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.description import describe_explicit, redo_exactly
from uncertain_cep.operators.join_conditions import distances
from uncertain_cep.operators.next_match import NextMatches
from uncertain_cep.operators.tree_enumeration import TreeSearch

__all__ = ["tree_join"]

Int64 = NDArray[np.int64]


def tree_join(
    context: ExecutionContext,
    *,
    block_rows: int = BLOCK_ROWS,
    materialised_rows: int = MATERIALISED_ROWS,
) -> Iterator[MatchBatch]:
    """Yield the matches of a plain sequence along the tree of the context, over all components.

    Parameters
    ----------
    context : ExecutionContext
    block_rows : int
        Partial matches that are extended together.
    materialised_rows : int
        Most partial matches of a right subtree that are held at a time.

    Raises
    ------
    TraceError
        If the chain of a match with an explicit pmf is too long.

    Notes
    -----
    Every tree gives the same matches. Work is that of the partial matches of its nodes, and of the right rows
    that order, window and equalities let them see. Right subtrees are evaluated near the candidates of the
    first leaf, for one stretch of these after the other, each as long as the limit on their rows allows.
    """
    for layout in layouts(context.plan, context.candidates):
        yield from _matches(context, layout, block_rows, materialised_rows)


def _matches(
    context: ExecutionContext, layout: Layout, block_rows: int, materialised_rows: int
) -> Iterator[MatchBatch]:
    plan, tree, table, pmfs = context.plan, context.tree, context.table, context.pmfs
    threshold, batch_rows = context.threshold, context.batch_rows
    assert tree is not None
    shared = layout.shared
    variables = [component.variable for component in plan.components]
    prepared = PreparedPredicates(
        plan.joined, variables, layout.candidates.first, loader(plan, table, layout)
    )
    is_next = plan.query.strategy == "skip_till_next_match"
    # What else a component could have taken is asked in the order of the pattern.
    start = prepared.in_orders(binding_orders(len(variables))[: int(is_next)])
    distance = distances(len(variables), layout.w + len(variables))
    assert distance is not None
    search = TreeSearch(
        tree,
        variables,
        layout,
        distance,
        prepared,
        is_next,
        context.counters,
        block_rows,
        materialised_rows,
    )
    programs = prepared.programs(start)
    following = None
    if is_next:
        following = NextMatches(
            plan, table, layout.candidates, layout.rows, shared.event, shared.twin, programs, pmfs, layout.w
        )
    limit = np.empty(0, dtype=np.int64) if following is None else following.limit
    descriptions = _Descriptions(context, layout, following)
    # Fewer at a time where what was found raises the threshold for what is to come.
    last_rows = batch_rows if threshold is None else min(batch_rows, block_rows)
    for chosen in search.matches(programs, limit, last_rows):
        yield descriptions.chunk(chosen)


class _Descriptions:
    """From the candidates of matches to chunks of the result."""

    def __init__(self, context: ExecutionContext, layout: Layout, following: NextMatches | None) -> None:
        plan, pmfs, threshold = context.plan, context.pmfs, context.threshold
        self._plan, self._layout, self._pmfs, self._following = plan, layout, pmfs, following
        self._output, self._wanted = layout.payload(context.payload), context.with_confidence
        self._threshold = threshold
        self._ranks = np.empty(0, dtype=np.int64)
        if threshold is not None and threshold.ranks is not None:
            self._ranks = threshold.ranks[layout.rows]
        self._ordered = binding_orders(len(plan.components))[0]
        self._offset = np.zeros(0, dtype=np.int64) if pmfs is None else pmfs.offset[layout.rows]

    def _promising(self, chosen: Int64, threshold: Threshold) -> Int64:
        """Return those of some matches that can pass a threshold."""
        candidates = self._layout.candidates
        last_rank = np.iinfo(np.int64).max if threshold.last_rank is None else threshold.last_rank
        kept = np.empty(chosen.shape[1], dtype=np.bool_)
        promising_matches(
            chosen, self._layout.w, candidates.lower, candidates.upper, self._offset, threshold.least,
            self._ranks, last_rank, kept,
        )  # fmt: skip
        return chosen if kept.all() else np.ascontiguousarray(chosen[:, kept])

    def chunk(self, chosen: Int64) -> MatchBatch:
        """Return the matches of some candidates, (l, m) int64, without those that cannot happen.

        Nor are those returned that cannot pass the threshold.
        """
        if self._threshold is not None:
            chosen = self._promising(chosen, self._threshold)
        candidates, w, pmfs = self._layout.candidates, self._layout.w, self._pmfs
        lower, upper = np.empty((2, chosen.shape[1]), dtype=np.int64)
        computed = self._wanted or self._following is not None
        confidence = np.empty(chosen.shape[1] if computed else 0)
        std_error = None
        if self._following is not None:
            std_error = np.empty(chosen.shape[1])
            self._following.describe(chosen, lower, upper, confidence, std_error)
        else:
            describe_chosen(
                self._ordered, chosen, w, candidates.lower, candidates.upper, candidates.base, lower, upper,
                confidence,
            )  # fmt: skip
            if pmfs is not None:
                describe_explicit(
                    self._plan, candidates, chosen, pmfs, self._offset, self._wanted, w, lower, upper,
                    confidence,
                )  # fmt: skip
            # A sum is NaN if anything in it is, and much cheaper to look at.
            if self._wanted and bool(np.isnan(confidence.sum())):
                redo_exactly(self._plan, candidates, chosen, confidence)
        chunk = MatchBatch(
            self._output[chosen], lower, upper, confidence if self._wanted else None, std_error
        )
        may_be_impossible = pmfs is not None or self._following is not None
        return chunk.keep(lower <= upper) if may_be_impossible else chunk
