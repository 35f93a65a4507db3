"""What of a pattern that is no plain sequence is joined before the rest is grown: its single components.

Kleene components come last: they take their events between those of the single ones that are chosen already.
Negated ones are asked about when all others are chosen: what they forbid takes nothing from the choice.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.choosing import choose
from uncertain_cep.plan.trees import Join, Leaf, Tree
from uncertain_cep.query.typed import TypedExpression, variables_of
from uncertain_cep.selection import Selection

__all__ = ["among_singles", "tree_of_singles"]


def among_singles(plan: EvaluationPlan) -> tuple[TypedExpression, ...]:
    """Return the predicates across components that speak of single components only."""
    singles = {plan.components[j].variable for j in plan.singles}
    return tuple(predicate for predicate in plan.joined if variables_of(predicate) <= singles)


def tree_of_singles(plan: EvaluationPlan, table: pa.Table, selection: Selection) -> Tree | None:
    """Return the tree along which the single components of a pattern are joined first.

    Parameters
    ----------
    plan : EvaluationPlan
        Of an OR-free pattern without AND.
    table : pyarrow.Table
    selection : Selection

    Returns
    -------
    Tree or None
        None: everything is grown, in pattern order. That is so under contiguity, and unless the caller says
        otherwise under skip till next match, where what was taken tells what can be next; and where no
        predicate tells which single events go together.
    """
    singles = plan.singles
    strategy = plan.query.strategy
    if plan.planner == "none" or len(singles) < 2 or strategy.endswith("contiguity"):
        return None
    joined = among_singles(plan)
    if plan.planner == "auto" and (strategy == "skip_till_next_match" or not joined):
        return None
    partition = selection.partition
    chosen = choose(
        replace(plan, components=tuple(plan.components[j] for j in singles), negations=(), joined=joined),
        table,
        replace(
            selection,
            rows=tuple(selection.rows[j] for j in singles),
            lower=tuple(selection.lower[j] for j in singles),
            upper=tuple(selection.upper[j] for j in singles),
            partition=None if partition is None else tuple(partition[j] for j in singles),
        ),
    )
    return None if chosen.tree is None else _numbered(chosen.tree, singles)


def _numbered(tree: Tree, numbers: tuple[int, ...]) -> Tree:
    if isinstance(tree, Leaf):
        return Leaf(numbers[tree.component])
    return Join(_numbered(tree.left, numbers), _numbered(tree.right, numbers))
