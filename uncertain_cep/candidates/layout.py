"""Selected candidates laid out on one time line, in as many parts as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.large_arrays import empty, take_into
from eventbased import Candidates, SharedEvents, lay_out, partition_bases
from eventbased.config import LONGEST_LINE, POSITION_STEP, SPARE
from eventbased.shared_events import number_events
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

    def payload(self, values: Int64 | None) -> Int64:
        """Return the payload of each candidate, (n + SPARE,) int64: its value, or its row without values."""
        payload = empty(len(self.rows) + SPARE)
        payload[len(self.rows) :] = 0
        if values is None:
            payload[: len(self.rows)] = self.rows
        else:
            take_into(payload[: len(self.rows)], values, self.rows)
        return payload


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
        selection.lower, selection.upper, selection.partition, selection.partitions, reach, selection.extremes
    )
    if line > LONGEST_LINE and selection.partitions > 1:
        for half in selection.halves():
            yield from laid_out(half, reach, step)
        return
    checkpoint(_BYTES * sum(map(len, selection.rows)))
    yield selection, *lay_out(selection.concatenated, shift, covered, step)


def layouts(plan: EvaluationPlan, selection: Selection) -> Iterator[Layout]:
    """Yield a selection's candidates as joins take them, see :func:`laid_out`."""
    if selection.empty:
        return
    length = len(plan.components)
    earliest, latest = selection.extremes
    w = min(plan.window - length, latest - earliest + length)
    for _, candidates, rows in laid_out(selection, w + length + 2):
        yield Layout(candidates, rows, shared_events(candidates, rows), w)


def shared_events(candidates: Candidates, rows: Int64) -> SharedEvents:
    """Return the candidates, of rows of a table, that are of the same event. O(n + the rows between them)."""
    # Of a part of the candidates, rows are close together as a rule, and far from the first. A table takes
    # less than sorting, a small one less than a large one.
    low, length = int(rows.min()), len(candidates.first) - 1
    table = empty(int(rows.max()) - low + 1, np.int32)
    event, fills, twin = empty(len(rows)), empty(len(rows) + SPARE), empty((len(rows) // 2, length))
    count = int(number_events(rows, low, candidates.first, table, event, fills, twin))
    return SharedEvents(event, fills, twin[:count])


def loader(plan: EvaluationPlan, table: pa.Table, layout: Layout) -> Callable[[Column], Values]:
    """Return a function for the values of a column, one for each candidate of the column's component."""
    variables = [component.variable for component in plan.components]
    first = layout.candidates.first
    whole = loaded_from(table.column)

    def load(column: Column) -> Values:
        component = variables.index(column.variable)
        return whole(column).take(layout.rows[first[component] : first[component + 1]])

    return load
