"""Sequences with least distances between their events, as sequences without: on moved candidates."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.time_bounds import bound_predicates

__all__ = ["moved"]


def moved(plan: EvaluationPlan, selection: Selection) -> tuple[EvaluationPlan, Selection, int]:
    """Return a plan without least distances, its candidates, and what to add to the ends of ranges.

    With the candidates of each component moved back by what the distances before it ask beyond 1,
    ``t_j - t_(j-1) >= g_j`` is ``t_(j-1) < t_j``; the window loses what the last component is moved by. So
    every match has the confidence that it had. A plan without least distances is returned as it is.
    """
    if plan.least_distances is None or plan.window < len(plan.components):
        return plan, selection, 0
    moves = list(accumulate(max(least - 1, 0) for least in plan.least_distances))
    implied = {
        part for found in plan.bound.times for part in bound_predicates(found, plan.names, plan.domain)
    }
    bound = replace(plan.bound, times=(), window=plan.window - moves[-1])
    inner = replace(
        plan,
        bound=bound,
        joined=tuple(part for part in plan.joined if part not in implied),
        least_distances=None,
    )
    candidates = replace(
        selection,
        lower=tuple(part - move for part, move in zip(selection.lower, moves, strict=True)),
        upper=tuple(part - move for part, move in zip(selection.upper, moves, strict=True)),
    )
    return inner, candidates, moves[-1]
