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
from uncertain_cep.candidates.layout import Layout, loader, shared_events
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.expressions.bytecode import PreparedPredicates
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.join_conditions import distances
from uncertain_cep.operators.tree_enumeration import TreeSearch
from uncertain_cep.optimizer.choice import Choice, choose
from uncertain_cep.optimizer.search_cost import SearchCost
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.trees import Join, Leaf, Tree
from uncertain_cep.query.typed import TypedExpression, variables_of

__all__ = [
    "choice_of_singles",
    "choices_of_singles",
    "growth_of",
    "plan_of_singles",
    "selection_of_singles",
    "tree_of_singles",
    "why_grown",
]

Int64 = NDArray[np.int64]


def _among_singles(plan: EvaluationPlan) -> tuple[TypedExpression, ...]:
    """Return the predicates across components that speak of single components only."""
    singles = {plan.components[j].variable for j in plan.singles}
    return tuple(predicate for predicate in plan.joined if variables_of(predicate) <= singles)


def tree_of_singles(plan: EvaluationPlan, table: pa.Table, selection: Selection) -> Tree | None:
    """Return the tree along which the single components of a pattern are joined first; None: nothing is."""
    return choice_of_singles(plan, table, selection).tree


def choice_of_singles(plan: EvaluationPlan, table: pa.Table, selection: Selection) -> Choice:
    """Return whether the single components of a pattern are joined first, along which tree, and why.

    Parameters
    ----------
    plan : EvaluationPlan
        Of an OR-free pattern; with AND its events are planned for as if they came in the order of the text.
    table : pyarrow.Table
    selection : Selection

    Returns
    -------
    Choice
        Its tree is over the components of the plan. Without one everything is grown, in pattern order. That
        is so where no predicate tells which single events go together, unless the caller says otherwise; and
        where it is expected to be cheaper, as it often is where what was taken tells what can be next.
    """
    grown = "the events of a match are added one by one, in pattern order: "
    reason = why_grown(plan)
    if reason is not None:
        return Choice(None, None, {}, f"{grown}{reason}")
    singles = selection_of_singles(plan, selection)
    chosen = choose(plan_of_singles(plan), table, singles, growth_of(plan, selection))
    if chosen.tree is None:
        return Choice(None, None, chosen.costs, f"{grown}{chosen.why}")
    why = f"the single components are joined first, and leave what events are added to: {chosen.why}"
    return Choice(_numbered(chosen.tree, plan.singles), None, chosen.costs, why)


def why_grown(plan: EvaluationPlan) -> str | None:
    """Return why single components are not joined first, whatever the data; None if these tell."""
    singles = len(plan.singles)
    if plan.planner == "none":
        return "the evaluation has an order of its own"
    if singles < 2:
        return f"{singles or 'no'} component{'' if singles == 1 else 's'} with a single event to join"
    if plan.planner == "auto" and not _among_singles(plan):
        return "no predicate tells which single events go together"
    return None


def plan_of_singles(plan: EvaluationPlan) -> EvaluationPlan:
    """Return the plan of the sequence of the single components of a pattern.

    Whatever the strategy, all their choices are joined: what it forbids is looked for afterwards.
    """
    return replace(
        plan,
        bound=replace(plan.bound, query=replace(plan.query, strategy="skip_till_any_match")),
        components=tuple(plan.components[j] for j in plan.singles),
        negations=(),
        joined=_among_singles(plan),
        order=None,
    )


def growth_of(plan: EvaluationPlan, selection: Selection) -> SearchCost | None:
    """Return what joining single components first has to be better than, if the strategy limits what is next.

    None where it does not: then all choices of the single components are grown too, and cost what the join in
    pattern order does.
    """
    limited = plan.query.strategy != "skip_till_any_match"
    return SearchCost.of(plan, selection) if limited else None


def selection_of_singles(plan: EvaluationPlan, selection: Selection) -> Selection:
    """Return the candidates of the single components of a pattern."""
    singles, partition = plan.singles, selection.partition
    return replace(
        selection,
        rows=tuple(selection.rows[j] for j in singles),
        lower=tuple(selection.lower[j] for j in singles),
        upper=tuple(selection.upper[j] for j in singles),
        partition=None if partition is None else tuple(partition[j] for j in singles),
    )


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
