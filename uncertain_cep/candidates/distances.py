"""Sequences with distances between their events, as sequences without least ones: on moved candidates."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.time_conditions import FAR

__all__ = ["moved"]


def moved(plan: EvaluationPlan, selection: Selection) -> tuple[EvaluationPlan, Selection, int]:
    """Return a plan without least distances, its candidates, and what to add to the ends of ranges.

    With the candidates of each component moved back by what the distances before it ask beyond 1,
    ``t_j - t_(j-1) >= g_j`` is ``t_(j-1) < t_j``; the window loses what the last component is moved by. So
    every match has the confidence that it had, if nothing else is asked of times. Else the plan keeps its
    distances, without the least ones, and the predicates that they imply, to be planned by. A plan without
    distances is returned as it is.
    """
    distances = plan.distances
    if distances is None or plan.window < len(plan.components):
        return plan, selection, 0
    moves = list(accumulate(max(shortest - 1, 0) for shortest in distances.least))
    own_moves = [0, *(later - earlier for earlier, later in pairwise(moves))]
    upper_bounds = tuple(
        high if high == FAR else high - move for high, move in zip(distances.most, own_moves, strict=True)
    )
    remaining_distances = replace(distances, least=(0, *[1] * (len(own_moves) - 1)), most=upper_bounds)
    inner = replace(
        plan,
        bound=replace(plan.bound, times=(), window=plan.window - moves[-1]),
        joined=tuple(part for part in plan.joined if not distances.are_all or part not in distances.implied),
        distances=None if distances.are_all else remaining_distances,
    )
    candidates = replace(
        selection,
        lower=tuple(part - move for part, move in zip(selection.lower, moves, strict=True)),
        upper=tuple(part - move for part, move in zip(selection.upper, moves, strict=True)),
    )
    return inner, candidates, moves[-1]
