"""Values that are derived from a plan once, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

__all__ = ["Derived", "once_a_plan"]

ValueT = TypeVar("ValueT")


class Derived(dict[object, Any]):
    """Values derived from a plan; they do not travel with it."""

    def __reduce__(self) -> tuple[type[Derived], tuple[()]]:
        return Derived, ()


class _Plan(Protocol):
    @property
    def derived(self) -> Derived:
        """The values kept."""


PlanT = TypeVar("PlanT", bound=_Plan)


def once_a_plan(function: Callable[[PlanT], ValueT]) -> Callable[[PlanT], ValueT]:
    """Compute a value that depends on a plan alone once, and keep it with the plan."""

    @wraps(function)
    def kept(plan: PlanT) -> ValueT:
        if function not in plan.derived:
            plan.derived[function] = function(plan)
        value: ValueT = plan.derived[function]
        return value

    return kept
