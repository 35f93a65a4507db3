"""The order, tree or pivot join that puts the events of a pattern together on some data, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.limits import MOST_BITS
from uncertain_cep.config.tuning import COARSE_SAMPLE, FEW_CHOICES, FINE_SAMPLE, LONG_EVALUATION
from uncertain_cep.errors import OptionError
from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.optimizer.join_order import BY_NAME
from uncertain_cep.optimizer.memory import Recent, fingerprint, remembered
from uncertain_cep.optimizer.pivot_cost import pivot_cost
from uncertain_cep.optimizer.search_cost import SearchCost
from uncertain_cep.optimizer.statistics import Statistics
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.trees import Tree, format_tree

__all__ = [
    "BACKTRACKING",
    "CHOICES",
    "PIVOT",
    "Choice",
    "choose",
    "estimated",
    "planned",
    "regret",
    "time_text",
]

PIVOT: Final = "pivot"
"""Among the costs of a choice, the join without a tree."""

BACKTRACKING: Final = "backtracking"
"""Among the costs of a choice, the backtracking search."""

_MERIT: Final[Mapping[str, str]] = MappingProxyType({
    PIVOT: "has no dead ends as far as order and window go", BACKTRACKING: "finds few events to go on with",
})  # fmt: skip

_MOST_BUSHY: Final = 10
"""Components up to which all trees are looked at: planning then takes under 50 ms."""

_MOST_LEFT_DEEP: Final = 13
"""Components up to which all orders are looked at."""

_MOST_PLANNED: Final = 24
"""Components up to which anything is looked at unless a planner is named: beyond, that takes over 0.1 s."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How the events of a pattern are put together."""

    tree: Tree | None
    """None: by the pivot join."""
    statistics: Statistics | None
    """What the choice rests on; None if there was nothing to choose."""
    costs: Mapping[str, float]
    """What each alternative is expected to cost, ns, weighted latency included; that of the pivot join is
    ``pivot``, that of the backtracking search ``backtracking``."""
    why: str
    model: CostModel | None = field(default=None, repr=False, compare=False)


CHOICES: Final[Recent[Choice]] = Recent()
"""The choices of this process, by a digest of the candidates, the planner and its options."""


def choose(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, search: SearchCost | None = None
) -> Choice:
    """Choose how the events of an OR-free pattern are put together, as its planner and latency weight say.

    A tree over the single components has to be cheaper than the backtracking search ``search``; without one,
    than the pivot join. Takes less than 50 ms for up to 7 components, statistics included.

    Raises
    ------
    OptionError
        If a planner is named for more components than it takes.
    """
    reason = _unplanned(plan, selection)
    if reason is not None:
        return Choice(plan.tree if plan.planner == "given" else None, None, {}, reason)
    if plan.planner != "auto" and len(plan.components) > MOST_BITS:
        raise OptionError(
            f"planner={plan.planner!r} takes patterns of up to {MOST_BITS} components, and this one has "
            f"{len(plan.components)}: leave planner= out"
        )
    key = fingerprint(plan, table, selection)
    key_of_choice = f"{key} {plan.planner} {plan.latency_weight!r} {plan.query.strategy} {search!r}"
    choice = CHOICES.get(key_of_choice)
    if choice is None:
        choice = planned(plan, remembered(plan, table, selection, key=key), search)
        sampled = max(map(len, selection.rows)) > COARSE_SAMPLE // len(plan.components)
        if sampled and min(choice.costs.values()) >= LONG_EVALUATION:
            choice = planned(plan, remembered(plan, table, selection, sampled=FINE_SAMPLE, key=key), search)
        # The tables of a model are large, and only an explanation needs them.
        CHOICES.put(key_of_choice, replace(choice, model=None))
    return choice


def _unplanned(plan: EvaluationPlan, selection: Selection) -> str | None:
    """Return why there is nothing to plan; None if there is."""
    if plan.planner == "none":
        return "the evaluation has an order of its own"
    if plan.planner == "given":
        return "the caller's tree"
    if not plan.is_join:
        return "only sequences of single events are planned"
    if selection.empty:
        return "some component has no candidate: there is no match"
    if plan.planner != "auto":
        return None
    # It may be plain which order takes the least work, but not which one has the least latency.
    if not plan.latency_weight and math.prod(selection.sizes) <= FEW_CHOICES:
        return "with so few candidates the join in pattern order takes less time than planning"
    if not plan.latency_weight and not plan.joined:
        return "without a predicate across components the join in pattern order has no dead ends"
    if len(plan.components) > _MOST_PLANNED:
        return f"more than {_MOST_PLANNED} components are joined in pattern order"
    return None


def planned(plan: EvaluationPlan, statistics: Statistics, search: SearchCost | None = None) -> Choice:
    """Choose by given statistics; the other parameters are those of :func:`choose`."""
    model = CostModel.of(plan, statistics)
    variables = [component.variable for component in plan.components]
    if plan.planner != "auto":
        tree = BY_NAME[plan.planner](model)
        costs = {plan.planner: model.cost(tree)}
        return Choice(tree, statistics, costs, f"planner {plan.planner}", model)
    trees, costs = _best_trees(model, search)
    best = min(costs, key=lambda name: costs[name])
    instead, other = _without_tree(model, search)
    costs[instead] = other
    searched = {
        "dp_bushy": "the cheapest of all trees",
        "dp_left_deep": "the cheapest of all orders",
    }.get(best, f"what {best} found")
    shown = format_tree(trees[best], variables)
    expected = "expected to cost, with latency," if plan.latency_weight else "expected to take"
    what = "the join in pattern order" if search is None else "the backtracking search"
    if costs[best] < other:
        why = (
            f"{shown}, {searched}, is {expected} {time_text(costs[best])}, "
            f"{other / max(costs[best], 1e-9):,.1f} times less than {what}"
        )
        return Choice(trees[best], statistics, costs, why, model)
    why = (
        f"{what} {_MERIT[instead]}, and is {expected} {time_text(other)}; {shown}, {searched}, "
        f"{time_text(costs[best])}"
    )
    return Choice(None, statistics, costs, why, model)


def _best_trees(model: CostModel, search: SearchCost | None) -> tuple[dict[str, Tree], dict[str, float]]:
    """Return the trees that planners choose, and what each costs with all that is left to do then, ns."""
    trees = {name: BY_NAME[name](model) for name in _planners(model.length)}
    return trees, {name: _with_rest(model, tree, search) for name, tree in trees.items()}


def _with_rest(model: CostModel, tree: Tree, search: SearchCost | None) -> float:
    """Return the cost of a tree with all steps that follow it, ns."""
    last_steps = (
        0.0 if search is None else search.after_joining(model, model.partial_matches(range(model.length)))
    )
    return model.cost(tree) + last_steps


def _without_tree(model: CostModel, search: SearchCost | None) -> tuple[str, float]:
    """Return the alternative to trees, and what it costs, ns."""
    return (PIVOT, pivot_cost(model)) if search is None else (BACKTRACKING, search.cost(model))


def estimated(plan: EvaluationPlan, table: pa.Table, selection: Selection, choice: Choice) -> Choice:
    """Return a choice of :func:`choose` with statistics and estimates, which planning may have left out."""
    if choice.model is not None or len(plan.components) > MOST_BITS:
        return choice
    statistics = choice.statistics or remembered(plan, table, selection)
    model = CostModel.of(plan, statistics)
    costs = choice.costs
    if choice.tree is not None and not costs:
        costs = {plan.planner: model.cost(choice.tree)}
    return replace(choice, statistics=statistics, costs=costs, model=model)


def regret(
    plan: EvaluationPlan, tree: Tree | None, statistics: Statistics, search: SearchCost | None = None
) -> float:
    """Return how many times more a tree costs than the best choice under other statistics, at least 1.

    A stream plans anew when this is large. As long as the plan stays good, it does not matter how the
    statistics changed.
    """
    model = CostModel.of(plan, statistics)
    _, costs = _best_trees(model, search)
    other = _without_tree(model, search)[1]
    now = other if tree is None else _with_rest(model, tree, search)
    return max(1.0, now / max(min(other, *costs.values()), 1e-9))


def _planners(length: int) -> tuple[str, ...]:
    """Return the planners for so many components: all plans while that is quick, else local search."""
    if length <= _MOST_BUSHY:
        return ("dp_bushy",)
    if length <= _MOST_LEFT_DEEP:
        return ("dp_left_deep", "zstream", "zstream_greedy")
    return ("ii_greedy",)


def time_text(nanoseconds: float) -> str:
    """Return a time with a unit that suits it."""
    for limit, unit in ((1e3, "ns"), (1e6, "us"), (1e9, "ms")):
        if nanoseconds < limit:
            return f"{nanoseconds / limit * 1e3:.3g} {unit}"
    return f"{nanoseconds / 1e9:,.3g} s"
