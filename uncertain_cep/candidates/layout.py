"""Selected candidates laid out on one time line, in as many parts as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from eventbased import Candidates, SharedEvents, lay_out, partition_bases
from eventbased.config import LONGEST_LINE, POSITION_STEP, SPARE
from eventbased.joins.join_state import COMPONENT_BITS
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.expressions.vectorised import Values, loaded_from
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import Column

__all__ = ["Layout", "laid_out", "layouts", "loader", "shared_events"]

Int64 = NDArray[np.int64]

_BYTES: Final = 100
"""About what is held of each candidate that is laid out: a dozen numbers."""


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


def laid_out(
    selection: Selection, reach: int, step: int = POSITION_STEP
) -> Iterator[tuple[Selection, Candidates, Int64]]:
    """Yield a selection's candidates, none empty, in parts whose time lines are not too long.

    Parameters
    ----------
    selection : Selection
    reach : int
        Ticks to leave free between two partitions: more than a match can span, with positions taken off.
    step : int
        See :func:`eventbased.lay_out`.

    Yields
    ------
    part : Selection
        No match has events of two parts.
    candidates : Candidates
    rows : (n,) int64
        The row of each candidate in the table.
    """
    if selection.empty:
        return
    shift, line, covered = partition_bases(
        selection.lower, selection.upper, selection.partition, selection.partitions, reach
    )
    if line > LONGEST_LINE and selection.partitions > 1:
        for half in selection.halves():
            yield from laid_out(half, reach, step)
        return
    checkpoint(_BYTES * sum(map(len, selection.rows)))
    candidates = lay_out(selection.lower, selection.upper, selection.partition, shift, covered, step)
    first = candidates.first
    rows = [part[candidates.source[first[j] : first[j + 1]]] for j, part in enumerate(selection.rows)]
    yield selection, candidates, np.concatenate(rows)


def layouts(plan: EvaluationPlan, selection: Selection) -> Iterator[Layout]:
    """Yield a selection's candidates as joins take them, see :func:`laid_out`."""
    if selection.empty:
        return
    length = len(plan.components)
    earliest = min(int(part.min()) for part in selection.lower)
    latest = max(int(part.max()) for part in selection.upper)
    w = min(plan.window - length, latest - earliest + length)
    for _, candidates, rows in laid_out(selection, w + length + 2):
        yield Layout(candidates, rows, shared_events(candidates, rows), w)


def shared_events(candidates: Candidates, rows: Int64) -> SharedEvents:
    """Return which candidates, of rows of a table, are of the same event."""
    first = candidates.first
    parts = [slice(int(first[j]), int(first[j + 1])) for j in range(len(first) - 1)]
    # Of a part of the candidates, rows are close together as a rule, and far from the first. A table takes
    # less than sorting, a small one less than a large one.
    rows = rows - rows.min()
    table = np.zeros(int(rows.max()) + 1, dtype=np.int32)
    for part in parts:
        table[rows[part]] += 1
    found = np.flatnonzero(table[rows] > 1)
    event = np.full(len(rows), -1)
    if not len(found):
        return SharedEvents(event, np.zeros(len(rows) + SPARE, dtype=np.int64), np.full((0, len(parts)), -1))
    # From counts to numbers, from 1 on.
    several = rows[found]
    table[several] = 0
    edges = np.searchsorted(found, [part.start for part in parts[1:]])
    count = 0
    for own in np.split(several, edges):
        new = own[table[own] == 0]
        table[new] = np.arange(count + 1, count + len(new) + 1)
        count += len(new)
    number = table[several].astype(np.int64) - 1
    event[found] = number
    twin, components = np.full((count, len(parts)), -1), np.zeros(count, dtype=np.int64)
    for j, (own, places) in enumerate(zip(np.split(number, edges), np.split(found, edges), strict=True)):
        twin[own, j] = places
        components[own] |= 1 << j % COMPONENT_BITS
    fills = np.zeros(len(rows) + SPARE, dtype=np.int64)
    fills[found] = components[number]
    return SharedEvents(event, fills, twin)


def loader(plan: EvaluationPlan, table: pa.Table, layout: Layout) -> Callable[[Column], Values]:
    """Return a function for the values of a column, one for each candidate of the column's component."""
    variables = [component.variable for component in plan.components]
    first = layout.candidates.first
    whole = loaded_from(table.column)

    def load(column: Column) -> Values:
        component = variables.index(column.variable)
        return whole(column).take(layout.rows[first[component] : first[component + 1]])

    return load
