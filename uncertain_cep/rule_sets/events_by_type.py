"""The events that matter to a rule: those of the types that it names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.walks import components_of

__all__ = ["EventsByType", "types_of"]

Int64 = NDArray[np.int64]


def types_of(plan: EvaluationPlan, schema: pa.Schema) -> frozenset[str] | None:
    """Return the types of the events that matter to a plan; None where all do.

    Under contiguity any event matters, and in order by sequences events tell the times of others.
    """
    if plan.query.strategy.endswith("contiguity") or plan.names.sequence in plan.clock_columns(schema.names):
        return None
    types = [component.types for component in components_of(plan.query.pattern)]
    return frozenset(name for names in types for name in names) if all(types) else None


class EventsByType:
    """The events of a call, of which those of some types are taken without a look at the others."""

    def __init__(self, table: pa.Table, column: str) -> None:
        self._table = table
        types = table.column(column)
        types = types.combine_chunks() if types.num_chunks != 1 else types.chunk(0)
        if not pa.types.is_dictionary(types.type):
            types = types.dictionary_encode()
        names = types.dictionary.to_pylist()
        codes = np.asarray(types.indices.fill_null(len(names))).astype(np.int32)
        self._rows = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[self._rows], np.arange(len(names) + 1))
        self._spans: dict[str, list[slice]] = {}
        # A dictionary may hold a text twice.
        for place, name in enumerate(names):
            self._spans.setdefault(name, []).append(slice(int(ends[place]), int(ends[place + 1])))

    @property
    def types(self) -> frozenset[str]:
        """The types that some event has."""
        spans = self._spans.items()
        return frozenset(name for name, parts in spans if any(part.stop > part.start for part in parts))

    def of(self, types: frozenset[str] | None) -> tuple[pa.Table, Int64 | slice]:
        """Return the events of some types, in their order, and their rows, (n,) int64; all for None."""
        if types is None:
            return self._table, slice(None)
        parts = [self._rows[span] for name in types for span in self._spans.get(name, ())]
        rows = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
        if len(rows) == self._table.num_rows:
            return self._table, slice(None)
        return self._table.take(pa.array(rows)), rows
