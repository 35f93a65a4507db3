"""Queries bound to a trace, as immutable evaluation plans, and their explanation."""

from uncertain_cep.plan.clock_columns import names_clocks
from uncertain_cep.plan.components import PlannedComponent, PlannedNegation
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.options import EVALUATIONS, PLANNERS, Approximation, MatchOptions
from uncertain_cep.plan.planning import (
    COMPRESSED_COLUMNS,
    asks_of_times,
    beyond_plain,
    make_plan,
    plan_of_branch,
    plan_of_reading,
    remembered_plan,
)

__all__ = [
    "COMPRESSED_COLUMNS",
    "EVALUATIONS",
    "PLANNERS",
    "Approximation",
    "EvaluationPlan",
    "MatchOptions",
    "PlannedComponent",
    "PlannedNegation",
    "asks_of_times",
    "beyond_plain",
    "make_plan",
    "names_clocks",
    "plan_of_branch",
    "plan_of_reading",
    "remembered_plan",
]
