"""Slices of time: who owns a match, and which plans are evaluated slice by slice."""

from __future__ import annotations

from uncertain_cep.executor.problem import Problem
from uncertain_cep.plan import EvaluationPlan

__all__ = ["is_searched_by_slice", "owned"]


def is_searched_by_slice(plan: EvaluationPlan) -> bool:
    """Return whether slices are evaluated one by one: events in several of them matter to matches in each."""
    by_bucket = plan.counts and plan.bound.every is not None
    is_next = plan.query.strategy == "skip_till_next_match"
    is_searched = not plan.is_plain or (by_bucket and (is_next or plan.clocks))
    return is_searched or plan.sequences or (plan.clocks and is_next)


def owned(problem: Problem) -> Problem:
    """Return the problem of those matches alone that begin with events of the slice."""
    plan, is_owned, selection = problem.plan, problem.scan.owned, problem.candidates
    if is_owned is None:
        return problem
    if plan.components[plan.owner].kleene:
        # The events of a Kleene component that come first are among those that come later.
        return problem.but(late_owned=is_owned)
    return problem.but(selection=selection.with_first(is_owned[selection.rows[plan.owner]], plan.owner))
