"""Queries bound to a trace, as immutable evaluation plans, and their explanation."""

from uncertain_cep.plan.plan import (
    COMPRESSED_COLUMNS,
    EVALUATIONS,
    Approximation,
    EvaluationPlan,
    PlannedComponent,
    PlannedNegation,
    make_plan,
)

__all__ = [
    "COMPRESSED_COLUMNS",
    "EVALUATIONS",
    "Approximation",
    "EvaluationPlan",
    "PlannedComponent",
    "PlannedNegation",
    "make_plan",
]
