"""Files without a column that a query equates: their events match nothing, which may not be meant."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import warn
from uncertain_cep.plan.evaluation_plan import EvaluationPlan, PlannedComponent
from uncertain_cep.traces.reading import LoadedTrace

__all__ = ["warn_of_lacking_keys"]


def warn_of_lacking_keys(plan: EvaluationPlan, loaded: LoadedTrace) -> None:
    """Warn of each file that has events for a variable, and not the column by which the query ties it."""
    warned = set()
    for component, column, effect in _tied(plan):
        for file, events in loaded.parts_without(column):
            if (file, column) in warned or not _are_taken(events, component, plan.names.type):
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


def _are_taken(events: pa.Table, component: PlannedComponent, name: str) -> bool:
    """Return whether some of the events are of a type that a component takes."""
    if not component.types:
        return bool(events.num_rows)
    types = pc.cast(events.column(name), pa.string())
    return bool(pc.any(pc.is_in(types, pa.array(component.types, pa.string()))).as_py())
