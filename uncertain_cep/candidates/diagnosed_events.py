"""Events as diagnostics of a call look at them: the types that are there, a sample, a candidate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.candidates.selection import rows_taken
from uncertain_cep.config.limits import DIAGNOSED_ROWS, MOST_COMPARED_TYPES
from uncertain_cep.plan import EvaluationPlan, PlannedComponent

__all__ = ["EventsLookedAt", "TableEvents"]

FEW_ROWS: Final = 256
"""Rows whose types are looked at as strings of Python, which takes 12 us; Arrow then searches the others."""

FIRST_ROWS: Final = 4096
"""Rows among which an event is looked for at first, then in four times as many each time."""

TYPE_ROWS: Final = 1 << 18
"""Rows whose types are gathered at a time, until there are more than are compared."""


class EventsLookedAt(Protocol):
    """The events of a call as far as diagnostics look at them, in this process or elsewhere."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the events."""

    def is_empty(self) -> bool:
        """Return whether there are none."""

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the types of some that no event has."""

    def types(self) -> list[str]:
        """Return the types that events have, in order; of more than are compared, some."""

    def sample(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all events, or of ``DIAGNOSED_ROWS`` of more."""

    def has_candidate(self, part: PlannedComponent) -> bool:
        """Return whether a component can take an event, whatever the keys of a match."""


class TableEvents:
    """The events of a table."""

    def __init__(self, plan: EvaluationPlan, table: pa.Table) -> None:
        self._plan, self._table = plan, table
        self.schema = table.schema

    def is_empty(self) -> bool:
        """Return whether there are none."""
        return not self._table.num_rows

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the types of some that no event has."""
        return _missing(self._table.column(self._plan.names.type), names)

    def types(self) -> list[str]:
        """Return the types that events have, in order; of more than are compared, some."""
        return _distinct(self._table.column(self._plan.names.type))

    def sample(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns, of many events those of places at equal distances."""
        rows = self._table.select(columns)
        if rows.num_rows > DIAGNOSED_ROWS:
            rows = rows.take(pa.array(np.linspace(0, rows.num_rows - 1, DIAGNOSED_ROWS).astype(np.int64)))
        return rows

    def has_candidate(self, part: PlannedComponent) -> bool:
        """Return whether a component can take an event; O(rows up to the first one)."""
        start, size = 0, FIRST_ROWS
        while start < self._table.num_rows:
            if len(rows_taken(self._plan, self._table.slice(start, size), part)):
                return True
            start, size = start + size, 4 * size
        return False


def _missing(types: pa.ChunkedArray, type_names: Iterable[str]) -> list[str]:
    """Return the types that no event has."""
    # Most are soon met, and to ask Arrow for one takes as long as to look at many rows.
    here = set(_plain(types.slice(0, FEW_ROWS)).to_pylist())
    return [name for name in type_names if name not in here and not _occurs(types.slice(FEW_ROWS), name)]


def _occurs(types: pa.ChunkedArray, name: str) -> bool:
    """Return whether an event has a type; the events are looked at up to the first one that has."""
    for chunk in types.chunks:
        if pa.types.is_dictionary(chunk.type):
            code = _index(chunk.dictionary, name)
            if code >= 0 and _index(chunk.indices, code) >= 0:
                return True
        elif _index(chunk, name) >= 0:
            return True
    return False


def _index(values: pa.Array, value: str | int) -> int:
    """Return the first place of a value, -1 if there is none."""
    return int(pc.index(values, pa.scalar(value, values.type)).as_py())


def _plain(types: pa.ChunkedArray) -> pa.ChunkedArray:
    return types.cast(types.type.value_type) if pa.types.is_dictionary(types.type) else types


def _distinct(types: pa.ChunkedArray) -> list[str]:
    """Return the types that events have, in order; of more than are compared, some."""
    plain = _plain(types)
    distinct = set[str | None]()
    for start in range(0, len(plain), TYPE_ROWS):
        distinct.update(plain.slice(start, TYPE_ROWS).unique().to_pylist())
        if len(distinct) > MOST_COMPARED_TYPES:
            break
    return sorted(name for name in distinct if name is not None)
