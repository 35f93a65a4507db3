"""Slices of time: the matches that a slice owns."""

from __future__ import annotations

from uncertain_cep.executor.problem import Problem

__all__ = ["owned"]


def owned(problem: Problem) -> Problem:
    """Return the problem of those matches alone that begin with events of the slice."""
    plan, is_owned, selection = problem.plan, problem.scan.owned, problem.candidates
    if is_owned is None:
        return problem
    if plan.components[plan.owner].kleene:
        # The events of a Kleene component that come first are among those that come later.
        return problem.but(late_owned=is_owned)
    return problem.but(selection=selection.with_first(is_owned[selection.rows[plan.owner]], plan.owner))
