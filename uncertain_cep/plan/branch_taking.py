"""The plan of the OR-free pattern that takes events for some variables."""

from __future__ import annotations

from collections.abc import Sequence

from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.planning import plan_of_reading

__all__ = ["branch_taking"]


def branch_taking(
    plan: EvaluationPlan, variables: Sequence[str], empty: frozenset[str] | None = None
) -> EvaluationPlan | None:
    """Return the plan that takes events for just these variables; None if there is none.

    With ``empty`` just these variables are lists that are empty. Of countless readings it is planned.
    """
    if (readings := plan.open_readings) is not None:
        choice = readings.that_takes(variables, empty)
        return None if choice is None else plan_of_reading(plan, choice)
    names = {*variables}
    for branch in plan.or_free:
        is_empty = empty is None or branch.bound.left_out == empty
        if is_empty and {part.variable for part in branch.components} == names:
            return branch
    return None
