"""Selected candidates laid out on one time line, in as many parts as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventbased import Candidates, lay_out, partition_bases
from eventbased.config import LONGEST_LINE, SPARE
from eventbased.joins.pivot_join import COMPONENT_BITS
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.expressions.vectorised import Values, column_values
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import Column

__all__ = ["Layout", "SharedEvents", "layouts", "loader", "shared_events"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SharedEvents:
    """The events that several components can take.

    Attributes
    ----------
    event : (n,) int64
        Of each candidate its row of ``twin``; -1 if no other component can take its event.
    fills : (n + SPARE,) int64
        The components that can take the event of each candidate, see :func:`eventbased.join`.
    twin : (s, l) int64
        Where the event is among the candidates of each component; -1 where it is none.
    """

    event: Int64
    fills: Int64
    twin: Int64


@dataclass(frozen=True, slots=True)
class Layout:
    """Candidates on one time line.

    Attributes
    ----------
    candidates : Candidates
    rows : (n,) int64
        The row of each candidate in the table.
    shared : SharedEvents
    w : int
        Window minus length; no more than the time line asks for.
    """

    candidates: Candidates
    rows: Int64
    shared: SharedEvents
    w: int

    def payload(self, given: Int64 | None) -> Int64:
        """Return what to write for each candidate: (n + SPARE,) int64; its row if nothing is given."""
        found = self.rows if given is None else given[self.rows]
        return np.concatenate((found, np.zeros(SPARE, dtype=np.int64)))


def layouts(plan: EvaluationPlan, selection: Selection) -> Iterator[Layout]:
    """Yield a selection's candidates, none empty, in parts whose time lines are not too long.

    No match has events of two parts.
    """
    if selection.empty:
        return
    length = len(plan.components)
    earliest = min(int(part.min()) for part in selection.lower)
    latest = max(int(part.max()) for part in selection.upper)
    w = min(plan.window - length, latest - earliest + length)
    shift, line, covered = partition_bases(
        selection.lower, selection.upper, selection.partition, selection.partitions, w + length + 2
    )
    if line > LONGEST_LINE and selection.partitions > 1:
        for half in selection.halves():
            yield from layouts(plan, half)
        return
    candidates = lay_out(selection.lower, selection.upper, selection.partition, shift, covered)
    first = candidates.first
    rows = np.concatenate(
        [part[candidates.index[first[j] : first[j + 1]]] for j, part in enumerate(selection.rows)]
    )
    yield Layout(candidates, rows, shared_events(candidates, rows), w)


def shared_events(candidates: Candidates, rows: Int64) -> SharedEvents:
    """Return which candidates, of rows of a table, are of the same event."""
    first = candidates.first
    parts = [slice(int(first[j]), int(first[j + 1])) for j in range(len(first) - 1)]
    components = np.zeros(int(rows.max()) + 1, dtype=np.int32)
    for part in parts:
        components[rows[part]] += 1
    found = np.flatnonzero(components[rows] > 1)
    event = np.full(len(rows), -1)
    several, event[found] = np.unique(rows[found], return_inverse=True)
    twin = np.full((len(several), len(parts)), -1)
    for j, part in enumerate(parts):
        own = found[np.searchsorted(found, part.start) : np.searchsorted(found, part.stop)]
        twin[event[own], j] = own
    bits = np.left_shift(1, np.arange(len(parts)) % COMPONENT_BITS)
    fills = np.zeros(len(rows) + SPARE, dtype=np.int64)
    fills[found] = np.bitwise_or.reduce(np.where(twin >= 0, bits, 0), axis=1)[event[found]]
    return SharedEvents(event, fills, twin)


def loader(plan: EvaluationPlan, table: pa.Table, layout: Layout) -> Callable[[Column], Values]:
    """Return a function for the values of a column, one for each candidate of the column's component."""
    variables = [component.variable for component in plan.components]
    first = layout.candidates.first
    whole: dict[str, Values] = {}

    def load(column: Column) -> Values:
        component = variables.index(column.variable)
        if column.name not in whole:
            whole[column.name] = column_values(table.column(column.name), column.name)
        return whole[column.name].take(layout.rows[first[component] : first[component + 1]])

    return load
