"""Values that are derived from a plan once, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from uncertain_cep.plan.evaluation_plan import EvaluationPlan

__all__ = ["Derived", "once_a_plan"]

FoundT = TypeVar("FoundT")


class Derived(dict[object, Any]):
    """Values derived from a plan; they do not travel with it."""

    def __reduce__(self) -> tuple[type[Derived], tuple[()]]:
        return Derived, ()


def once_a_plan(function: Callable[[EvaluationPlan], FoundT]) -> Callable[[EvaluationPlan], FoundT]:
    """Have what a function tells of a plan alone worked out once, and kept with the plan."""

    @wraps(function)
    def told(plan: EvaluationPlan) -> FoundT:
        if function not in plan.derived:
            plan.derived[function] = function(plan)
        value: FoundT = plan.derived[function]
        return value

    return told
