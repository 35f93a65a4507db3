"""Queries bound to a trace, as immutable evaluation plans, and their explanation."""

from uncertain_cep.plan.plan import (
    EVALUATIONS,
    Approximation,
    EvaluationPlan,
    PlannedComponent,
    PlannedNegation,
    make_plan,
)

__all__ = [
    "EVALUATIONS",
    "Approximation",
    "EvaluationPlan",
    "PlannedComponent",
    "PlannedNegation",
    "make_plan",
]
