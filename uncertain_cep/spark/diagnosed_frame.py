"""Events of a frame as diagnostics of a call look at them: by counts, and by few further jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.config.limits import DIAGNOSED_ROWS, MOST_COMPARED_TYPES
from uncertain_cep.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.spark.dataframes import column
from uncertain_cep.spark.filters import is_candidate

__all__ = ["FrameEvents"]


class FrameEvents:
    """The events of a frame, whose candidates are counted.

    Parameters
    ----------
    frame : DataFrame
        With the columns of the plan.
    schema : pa.Schema
    sizes : sequence of sequences of int
        For each OR-free pattern the candidates of its components.
    negated, types : dict
        Candidates of negated variables, and events of types, among those that can matter.

    Notes
    -----
    A count above zero tells. Only where it is zero, and for percentages, another job looks at the events.
    """

    def __init__(
        self,
        frame: DataFrame,
        plan: EvaluationPlan,
        schema: pa.Schema,
        sizes: Sequence[Sequence[int]],
        negated: Mapping[str, int],
        types: Mapping[str, int],
    ) -> None:
        self._frame, self._plan, self.schema = frame, plan, schema
        self._sizes, self._negated, self._types = sizes, negated, types

    def is_empty(self) -> bool:
        """Return whether there are none."""
        return not any(map(any, self._sizes)) and self._frame.isEmpty()

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the types of some that no event has."""
        there = {name for name, count in self._types.items() if count}
        for branch, sizes in zip(self._plan.or_free, self._sizes, strict=True):
            for part, size in zip(branch.components, sizes, strict=True):
                if size and len(part.types) == 1:
                    there.update(part.types)
            for negation in branch.negations:
                part = negation.component
                if len(part.types) == 1 and self._negated.get(part.variable):
                    there.update(part.types)
        unsure = [name for name in names if name not in there]
        if unsure:
            is_named = column(self._plan.names.type).isin(*unsure)
            there.update(self._distinct(self._frame.filter(is_named)))
        return [name for name in names if name not in there]

    def types(self) -> list[str]:
        """Return the types that events have, in order; of more than are compared, some."""
        return sorted(self._distinct(self._frame))

    def sample(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of the events that Spark has first."""
        rows = self._frame.select(*map(column, columns)).limit(DIAGNOSED_ROWS).toArrow()
        return rows.cast(pa.schema([self.schema.field(name) for name in columns]))

    def has_candidate(self, part: PlannedComponent) -> bool:
        """Return whether a component can take an event, by the conditions that Spark can evaluate."""
        if self._negated.get(part.variable):
            return True
        types = {field.name: field.dataType for field in self._frame.schema.fields}
        return not self._frame.filter(is_candidate(self._plan, part, types)).isEmpty()

    def _distinct(self, frame: DataFrame) -> list[str]:
        types = frame.select(column(self._plan.names.type).alias("type")).distinct()
        rows = types.limit(MOST_COMPARED_TYPES + 1).collect()
        return [row["type"] for row in rows if row["type"] is not None]

    def look(self, diagnostics: Diagnostics) -> None:
        """Have diagnostics look at the events and at the numbers of candidates."""
        diagnostics.look_at(self)
        for branch, sizes in zip(self._plan.or_free, self._sizes, strict=True):
            diagnostics.counted(branch, sizes)
