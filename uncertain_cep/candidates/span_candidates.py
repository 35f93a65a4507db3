"""Events that last as candidates: those that a component may take, and bounds of their ends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.expressions.text_equality import equal_to_each
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.lasting_columns import END_BOUNDS

__all__ = ["taken_types", "with_some_ends"]

Mask = NDArray[np.bool_]


def taken_types(plan: EvaluationPlan, table: pa.Table) -> Mask:
    """Return the events, (n,) bool, of which some component may take the type."""
    parts = [
        part
        for branch in plan.or_free
        for part in (*branch.components, *(negation.component for negation in branch.negations))
    ]
    if not all(part.types for part in parts):
        return np.ones(table.num_rows, np.bool_)
    types = sorted({name for part in parts for name in part.types})
    return np.asarray(np.logical_or.reduce(equal_to_each(table.column(plan.names.type), types)), np.bool_)


def with_some_ends(table: pa.Table, names: Names) -> pa.Table:
    """Return a table with bounds of the end of every event: those of the whole where none are known.

    So predicates on bounds leave out no event that a component can take. No law is to be made of them.
    """
    for name, whole in zip(END_BOUNDS, (names.lower, names.upper), strict=True):
        column, bound = table.column(name), table.column(whole)
        filled = pc.coalesce(column.cast(bound.type), bound)
        table = table.set_column(table.schema.get_field_index(name), name, filled)
    return table
