"""The operators in one table: a plan is taken by the first row that takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.pivot_join import pivot_join
from uncertain_cep.operators.tree_join import tree_join
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.derived import once_a_plan
from uncertain_cep.plan.evaluated_parts import computed

__all__ = ["OPERATORS", "Operator", "kernels_of", "operator_of"]


@dataclass(frozen=True, slots=True)
class Operator:
    """A way of finding the matches of an OR-free plan."""

    name: str
    """As ``explain`` shows it."""
    why: str
    """Why this operator takes the plans that it takes."""
    takes: Callable[[EvaluationPlan], bool]
    """Whether it takes a plan that no earlier operator takes."""
    matches: Callable[[ExecutionContext], Iterator[MatchBatch]]
    """Yields the matches in chunks of at most ``batch_rows``, in no particular order."""
    kernels: str | None = None
    """Its group in :data:`uncertain_cep.config.tuning.KERNELS`."""
    plans_joins: bool = False
    """Whether the optimizer chooses the tree of the context."""
    weighs: bool = False
    """Whether :class:`uncertain_cep.weighers.cheapest.Weighing` takes its matches."""


# Each of these imports much that a join does without.


def _point_based(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches by the point-based framework."""
    from uncertain_cep.operators.points import point_based_search

    yield from point_based_search(context)


def _backtracked(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches by a backtracking search."""
    from uncertain_cep.operators.backtracking import backtracking_search

    yield from backtracking_search(context)


def _compressed(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield choices of the other components, with what a Kleene component adds to each."""
    from uncertain_cep.operators.compressed import compressed_search

    yield from compressed_search(context)


def _chosen_apart(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches among choices of another evaluation."""
    from uncertain_cep.operators.timed_choices import timed_choices

    yield from timed_choices(context)


def _run_by_run(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a pool of runs."""
    from uncertain_cep.operators.incremental import run_pool

    yield from run_pool(context)


def _single_events(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a pattern of one component: every candidate, with certainty."""
    found, payload = context.candidates, context.payload
    rows = found.rows[0]
    for start in range(0, len(rows), context.batch_rows):
        part = slice(start, start + context.batch_rows)
        events = rows[part].copy() if payload is None else payload[rows[part]]
        confidence = np.ones(len(events)) if context.with_confidence else None
        lower, upper = found.lower[0][part].copy(), found.upper[0][part].copy()
        yield MatchBatch(events[None, :], lower, upper, confidence)


def _joined(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a plain sequence along the tree of the context, else by the pivot join."""
    if context.tree is None:
        return pivot_join(context)
    threshold = context.threshold
    if threshold is not None and not threshold.is_worth_bounds:
        context = replace(context, threshold=None)
    return tree_join(context)


def _chooses_apart(plan: EvaluationPlan) -> bool:
    """Return whether another evaluation finds choices, which have conditions that it cannot evaluate."""
    least = 2 if plan.evaluation != "point" else 1
    return (
        (bool(plan.bound.times) or plan.doubtful or plan.has_negated_groups)
        and plan.evaluation != "query_order"
        and len(plan.components) >= least
    )


OPERATORS: Final = (
    Operator(
        "partial-order search",
        "AND(...) takes its events in any order",
        lambda plan: not plan.event_order.is_chain,
        _backtracked,
        "searches in sets",
        weighs=True,
    ),
    Operator(
        "compressed search",
        'kleene="compressed" lists the events of the Kleene component for each choice of the others',
        lambda plan: plan.compressed,
        _compressed,
        "compressed searches",
    ),
    Operator(
        "single events",
        "every event that the component takes is a match",
        lambda plan: plan.is_plain and len(plan.components) == 1,
        _single_events,
    ),
    Operator(
        "choices, weighed by their times",
        "evaluation= names what chooses events; conditions on times, or what may spoil, weigh its choices",
        _chooses_apart,
        _chosen_apart,
        "backtracking searches",
        weighs=True,
    ),
    Operator(
        "point-based automaton",
        'evaluation="point" expands every interval into its ticks',
        lambda plan: plan.evaluation == "point",
        _point_based,
        "point-based automata",
    ),
    Operator(
        "join at distances",
        "a sequence of single events is joined at the distances that conditions on times ask of neighbours",
        lambda plan: plan.joins_at_distances,
        _joined,
        "joins",
        plans_joins=True,
        weighs=True,
    ),
    Operator(
        "backtracking search",
        "Kleene components, negation, contiguity and conditions on times are no plain join",
        lambda plan: not plan.is_plain,
        _backtracked,
        "backtracking searches",
        weighs=True,
    ),
    Operator(
        "backtracking search",
        "what is next is weighed for given offsets of the clocks that events share",
        lambda plan: plan.is_next_by_clocks,
        _backtracked,
        "backtracking searches",
        weighs=True,
    ),
    Operator(
        "pool of runs",
        "evaluation= names an incremental method",
        lambda plan: plan.evaluation in ("any_state", "selectivity"),
        _run_by_run,
        "incremental methods",
    ),
    Operator(
        "join",
        "a sequence of single events is joined along a tree, or from a pivot in pattern order",
        lambda _: True,
        _joined,
        "joins",
        plans_joins=True,
    ),
)
"""The operators; each plan is taken by the first that takes it."""


@once_a_plan
def operator_of(plan: EvaluationPlan) -> Operator:
    """Return the operator that finds the matches of an OR-free plan."""
    return next(operator for operator in OPERATORS if operator.takes(plan))


@once_a_plan
def kernels_of(plan: EvaluationPlan) -> tuple[str, ...]:
    """Return the groups of kernels that a plan needs, see :data:`uncertain_cep.config.tuning.KERNELS`."""
    groups = {operator_of(branch).kernels for branch in plan.or_free} | computed(plan)
    if "joins" in groups and plan.query.strategy == "skip_till_next_match":
        groups.add("joins with skip till next match")
    return tuple(sorted(group for group in groups if group is not None))
