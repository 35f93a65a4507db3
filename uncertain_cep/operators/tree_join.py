"""Evaluation of SEQ along a tree of joins: components in any order, or parts of the pattern put together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eventbased.config import BLOCK_ROWS, MATERIALISED_ROWS
from uncertain_cep.candidates.layout import Layout, layouts, loader
from uncertain_cep.expressions.bytecode import PreparedPredicates, binding_orders
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.description import MatchDescription
from uncertain_cep.operators.join_conditions import distances
from uncertain_cep.operators.tree_enumeration import TreeSearch

__all__ = ["tree_join"]


def tree_join(
    context: ExecutionContext,
    *,
    block_rows: int = BLOCK_ROWS,
    materialised_rows: int = MATERIALISED_ROWS,
) -> Iterator[MatchBatch]:
    """Yield the matches of a plain sequence along the tree of the context, over all components.

    ``block_rows`` partial matches are extended together, and at most ``materialised_rows`` of a right subtree
    held at a time.

    Raises
    ------
    TraceError
        If the chain of a match with an explicit pmf is too long.

    Notes
    -----
    Every tree gives the same matches. Work is that of the partial matches of its nodes, and of the right rows
    that order, window and equalities let them see. Right subtrees are evaluated near the candidates of the
    first leaf, for one range of these after the other, each as long as the limit on their rows allows.
    """
    for layout in layouts(context.plan, context.candidates):
        yield from _matches(context, layout, block_rows, materialised_rows)


def _matches(
    context: ExecutionContext, layout: Layout, block_rows: int, materialised_rows: int
) -> Iterator[MatchBatch]:
    plan, tree, batch_rows = context.plan, context.tree, context.batch_rows
    assert tree is not None
    variables = [component.variable for component in plan.components]
    orders = binding_orders(len(variables))
    load = loader(plan, context.table, layout)
    prepared = PreparedPredicates(plan.predicates_to_join, variables, layout.candidates.first, load)
    is_next = plan.query.strategy == "skip_till_next_match"
    # What else a component could have taken is looked for in the order of the pattern.
    start = prepared.in_orders(orders[: int(is_next)])
    distance = distances(len(variables), layout.w + len(variables), None, plan.neighbour_bounds)
    if distance is None:
        return
    search = TreeSearch(
        tree, variables, layout, distance, prepared, is_next, context.counters, block_rows, materialised_rows
    )
    bytecode = prepared.bytecode(start)
    description = MatchDescription(context, layout, bytecode)
    output = layout.payload(context.payload)
    # Fewer at a time where what was found raises the threshold for what is to come.
    last_rows = batch_rows if context.threshold is None else min(batch_rows, block_rows)
    for found in search.matches(bytecode, description.limit, last_rows):
        chosen = description.filtered(found)
        size = chosen.shape[1]
        lower, upper = np.empty((2, size), dtype=np.int64)
        confidence = np.empty(size if description.computed else 0)
        std_error = np.empty(size if description.has_errors else 0)
        description.fill(chosen, lower, upper, confidence, std_error)
        yield description.batch(output[chosen], lower, upper, confidence, std_error)
