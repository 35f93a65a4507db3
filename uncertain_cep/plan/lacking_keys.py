"""Files without a column that a query equates: their events match nothing, which may not be meant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from uncertain_cep.errors import warn
from uncertain_cep.plan.components import PlannedComponent
from uncertain_cep.plan.evaluation_plan import EvaluationPlan

__all__ = ["warn_of_lacking_keys"]


def warn_of_lacking_keys(
    plan: EvaluationPlan, lacking: Callable[[str], Iterable[tuple[str, Collection[str]]]]
) -> None:
    """Warn of each file that has events for a variable, and not the column by which the query ties it.

    ``lacking`` returns the files that lack a column which others have, each with the types of its events.
    """
    warned = set()
    for component, column, effect in _tied(plan):
        for file, types in lacking(column):
            if (file, column) in warned or not _are_taken(types, component):
                continue
            warned.add((file, column))
            warn(
                f"{file}: it has no column {column}, by which the query ties {component.variable}: "
                f"its events {effect}"
            )


def _tied(plan: EvaluationPlan) -> Iterator[tuple[PlannedComponent, str, str]]:
    """Yield the components, each with a column of a key, and what becomes of events without it."""
    for branch in plan.or_free:
        for key in branch.keys:
            for component, column in zip(branch.components, key.columns, strict=False):
                yield component, column, "are in no match"
            for negation, absent in zip(branch.negations, key.negated, strict=False):
                if absent is not None:
                    yield negation.component, absent, "forbid none"


def _are_taken(types: Collection[str], component: PlannedComponent) -> bool:
    """Return whether a component takes events of one of the types."""
    return not set(types).isdisjoint(component.types) if component.types else bool(types)
