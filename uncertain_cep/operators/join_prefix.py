"""The join prefix: single components that are joined before a backtracking search takes the others.

Kleene components come last: they take their events between those of the single ones that are chosen already.
Negated ones are looked at when all others are chosen: what they forbid takes nothing from the choice.
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
    "plan_of_singles",
    "search_cost_of",
    "selection_of_singles",
    "why_not_joined",
]

Int64 = NDArray[np.int64]


def _among_singles(plan: EvaluationPlan) -> tuple[TypedExpression, ...]:
    """Return the predicates across components that speak of single components only."""
    singles = {plan.components[j].variable for j in plan.singles}
    return tuple(predicate for predicate in plan.joined if variables_of(predicate) <= singles)


def choice_of_singles(plan: EvaluationPlan, table: pa.Table, selection: Selection) -> Choice:
    """Return whether an OR-free pattern has a join prefix, along which tree of its components, and why.

    With AND its events are planned for as if they came in the order of the text. Without a tree the search
    takes all events, in pattern order. That is so where no predicate tells which single events go together,
    unless the caller says otherwise; and where it is expected to be cheaper, as it often is where what was
    taken tells what can be next.
    """
    searched = "the events of a match are added one by one, in pattern order: "
    reason = why_not_joined(plan)
    if reason is not None:
        return Choice(None, None, {}, f"{searched}{reason}")
    singles = selection_of_singles(plan, selection)
    chosen = choose(plan_of_singles(plan), table, singles, search_cost_of(plan, selection))
    if chosen.tree is None:
        return Choice(None, None, chosen.costs, f"{searched}{chosen.why}")
    why = f"the single components are joined first, and leave what events are added to: {chosen.why}"
    return Choice(_numbered(chosen.tree, plan.singles), None, chosen.costs, why)


def why_not_joined(plan: EvaluationPlan) -> str | None:
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
    """Return the plan of the sequence of single components; what the strategy forbids is looked for later."""
    return replace(
        plan,
        bound=replace(plan.bound, query=replace(plan.query, strategy="skip_till_any_match"), times=()),
        components=tuple(plan.components[j] for j in plan.singles),
        negations=(),
        joined=_among_singles(plan),
        order=None,
    )


def search_cost_of(plan: EvaluationPlan, selection: Selection) -> SearchCost | None:
    """Return the bound that a join prefix has to beat; None if the strategy does not limit what is next.

    Then the search goes through all choices of the single components too, and costs what the join in pattern
    order does.
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
    """Yield the choices of single components along a tree that may be part of a match.

    ``candidates`` are those of all components, with their ``rows`` in the table, ``window`` is in ticks and
    no more than they ask for. Yields the candidates by component, (l, m) int64, m <= ``last_rows``; -1 for
    Kleene components.
    """
    length = len(plan.components)
    distance = distances(length, window, plan.event_order.search_before)
    if distance is None:
        return
    layout = Layout(candidates, rows, shared_events(candidates, rows), window - length)
    variables = [component.variable for component in plan.components]
    load = loader(plan, table, layout)
    prepared = PreparedPredicates(_among_singles(plan), variables, candidates.first, load)
    search = TreeSearch(tree, variables, layout, distance, prepared, counters=counters)
    bytecode = prepared.bytecode(np.zeros((0, length + 1), dtype=np.int64))
    kleene = [j for j, component in enumerate(plan.components) if component.kleene]
    for found in search.matches(bytecode, np.zeros(0, dtype=np.int64), last_rows):
        found[kleene] = -1
        yield found


def _numbered(tree: Tree, numbers: tuple[int, ...]) -> Tree:
    if isinstance(tree, Leaf):
        return Leaf(numbers[tree.component])
    return Join(_numbered(tree.left, numbers), _numbered(tree.right, numbers))
