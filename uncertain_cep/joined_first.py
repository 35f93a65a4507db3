"""What of a pattern that is no plain sequence is joined before the rest is grown: its single components.

Kleene components come last: they take their events between those of the single ones that are chosen already.
Negated ones are asked about when all others are chosen: what they forbid takes nothing from the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventbased import Candidates
from uncertain_cep.join_conditions import distances
from uncertain_cep.layout import Layout, loader, shared_events
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.choosing import choose
from uncertain_cep.plan.trees import Join, Leaf, Tree
from uncertain_cep.programs import PreparedPredicates
from uncertain_cep.query.typed import TypedExpression, variables_of
from uncertain_cep.selection import Selection
from uncertain_cep.tree_search import Counters, TreeSearch

__all__ = ["choices_of_singles", "tree_of_singles"]

Int64 = NDArray[np.int64]


def _among_singles(plan: EvaluationPlan) -> tuple[TypedExpression, ...]:
    """Return the predicates across components that speak of single components only."""
    singles = {plan.components[j].variable for j in plan.singles}
    return tuple(predicate for predicate in plan.joined if variables_of(predicate) <= singles)


def tree_of_singles(plan: EvaluationPlan, table: pa.Table, selection: Selection) -> Tree | None:
    """Return the tree along which the single components of a pattern are joined first.

    Parameters
    ----------
    plan : EvaluationPlan
        Of an OR-free pattern; with AND its events are estimated as if they came in the order of the text.
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
    joined = _among_singles(plan)
    if plan.planner == "auto" and (strategy == "skip_till_next_match" or not joined):
        return None
    partition = selection.partition
    chosen = choose(
        replace(
            plan,
            components=tuple(plan.components[j] for j in singles),
            negations=(),
            joined=joined,
            order=None,
        ),
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


def choices_of_singles(
    plan: EvaluationPlan,
    tree: Tree,
    table: pa.Table,
    candidates: Candidates,
    rows: Int64,
    window: int,
    last_rows: int,
    counters: Counters | None = None,
) -> Iterator[Int64]:
    """Yield the choices of single components that may be part of a match.

    Parameters
    ----------
    plan : EvaluationPlan
    tree : Tree
        From :func:`tree_of_singles`.
    table : pyarrow.Table
    candidates : Candidates
        Of all components.
    rows : (n,) int64
        Their rows in the table.
    window : int
        Ticks; no more than the candidates ask for.
    last_rows : int
    counters : Counters or None
        The numbers of partial matches are added here.

    Yields
    ------
    (l, m) int64, m <= ``last_rows``
        Candidates by component; -1 for Kleene components.
    """
    length = len(plan.components)
    distance = distances(length, window, None if plan.order is None else plan.order.before)
    if distance is None:
        return
    layout = Layout(candidates, rows, shared_events(candidates, rows), window - length)
    variables = [component.variable for component in plan.components]
    load = loader(plan, table, layout)
    prepared = PreparedPredicates(_among_singles(plan), variables, candidates.first, load)
    search = TreeSearch(tree, variables, layout, distance, prepared, counters=counters)
    programs = prepared.programs(np.zeros((0, length + 1), dtype=np.int64))
    kleene = [j for j, component in enumerate(plan.components) if component.kleene]
    for found in search.matches(programs, np.zeros(0, dtype=np.int64), last_rows):
        found[kleene] = -1
        yield found


def _numbered(tree: Tree, numbers: tuple[int, ...]) -> Tree:
    if isinstance(tree, Leaf):
        return Leaf(numbers[tree.component])
    return Join(_numbered(tree.left, numbers), _numbered(tree.right, numbers))
