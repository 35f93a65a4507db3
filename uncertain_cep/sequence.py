"""Evaluation of SEQ by the event-based query-order method: candidates to kernels to chunks of matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import exact_chain_confidence
from eventbased import (
    RUNS,
    describe_matches,
    describe_uncertain,
    initial_state,
    join,
    lay_out,
    partition_bases,
    places_of,
)
from eventbased.candidates import Candidates
from eventbased.config import LONGEST_LINE
from uncertain_cep.config import LONGEST_PMF_CHAIN
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.pmfs import ExplicitPmfs
from uncertain_cep.predicates import Values, column_values
from uncertain_cep.programs import binding_orders, compile_programs
from uncertain_cep.query.typed import Column
from uncertain_cep.selection import Selection

__all__ = ["Chunk", "evaluate_sequence"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some matches.

    Attributes
    ----------
    events : (l, k) int64
        For each component what the caller asked for: the event's id or its row.
    lower, upper : (k,) int64
        Time ranges, ticks.
    confidence : (k,) float64 or None
    """

    events: Int64
    lower: Int64
    upper: Int64
    confidence: NDArray[np.float64] | None

    def keep(self, mask: NDArray[np.bool_]) -> Chunk:
        """Return the matches where ``mask`` is true."""
        confidence = None if self.confidence is None else self.confidence[mask]
        return Chunk(self.events[:, mask], self.lower[mask], self.upper[mask], confidence)


def evaluate_sequence(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    pmfs: ExplicitPmfs | None,
    payload: Int64 | None,
    with_confidence: bool,
    batch_rows: int,
) -> Iterator[Chunk]:
    """Yield the matches of a pattern of at least two components, in chunks of at most ``batch_rows``.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    selection : Selection
    pmfs : ExplicitPmfs or None
    payload : (n,) int64 or None
        What to return for each row of the table; None: the row itself. Tags in the selection come first.
    with_confidence : bool
    batch_rows : int

    Raises
    ------
    TraceError
        If the chain of a match with an explicit pmf is too long.
    """
    length = len(plan.components)
    if selection.empty:
        return
    earliest = min(int(part.min()) for part in selection.lower)
    latest = max(int(part.max()) for part in selection.upper)
    w = min(plan.window - length, latest - earliest + length)
    shift, line, covered = partition_bases(
        selection.lower, selection.upper, selection.partition, selection.partitions, w + length + 2
    )
    if line > LONGEST_LINE and selection.partitions > 1:
        for half in selection.halves():
            yield from evaluate_sequence(plan, table, half, pmfs, payload, with_confidence, batch_rows)
        return
    candidates = lay_out(selection.lower, selection.upper, selection.partition, shift, covered)
    rows = _moved(selection.rows, candidates)
    if selection.tags is not None:
        output = _moved(selection.tags, candidates)
    else:
        output = rows if payload is None else payload[rows]
    yield from _matches(
        plan,
        table,
        candidates,
        rows,
        output,
        _shared_events(selection.rows, rows),
        pmfs,
        with_confidence,
        batch_rows,
        w,
    )


def _moved(parts: tuple[Int64, ...], candidates: Candidates) -> Int64:
    """Return what belongs to each component's candidates in the order of the layout."""
    first = candidates.first
    return np.concatenate([part[candidates.index[first[j] : first[j + 1]]] for j, part in enumerate(parts)])


def _shared_events(parts: tuple[Int64, ...], rows: Int64) -> Int64:
    """Return the row of each candidate whose event is one of several components; -1 for the others."""
    components = np.zeros(int(rows.max()) + 1, dtype=np.int32)
    for part in parts:
        components[part] += 1
    return np.where(components[rows] > 1, rows, -1)


def _matches(
    plan: EvaluationPlan,
    table: pa.Table,
    candidates: Candidates,
    rows: Int64,
    output: Int64,
    events_shared: Int64,
    pmfs: ExplicitPmfs | None,
    wanted: bool,
    batch_rows: int,
    w: int,
) -> Iterator[Chunk]:
    length = len(plan.components)
    variables = [component.variable for component in plan.components]
    full: dict[str, Values] = {}

    def load(column: Column) -> Values:
        component = variables.index(column.variable)
        if column.name not in full:
            full[column.name] = column_values(table.column(column.name), column.name)
        part = rows[candidates.first[component] : candidates.first[component + 1]]
        return full[column.name].take(part)

    programs = compile_programs(plan.joined, variables, candidates.first, load)
    full.clear()
    offset = np.zeros(0, dtype=np.int64) if pmfs is None else pmfs.offset[rows]
    state = initial_state(length, len(candidates.class_start))
    orders = binding_orders(length)
    runs = np.empty((batch_rows, length + 2), dtype=np.int64)
    while True:
        found = join(
            w, candidates.first_class, candidates.class_start, candidates.class_stop,
            candidates.class_shortest, candidates.class_longest, candidates.lower, candidates.upper,
            candidates.highest, events_shared, orders, programs.start, programs.code, programs.ints,
            programs.floats, programs.nulls, programs.slots, *state, runs,
        )  # fmt: skip
        if found:
            count = int(state[0][RUNS])
            events = _pooled(length * found, np.int64).reshape(length, found)
            lower, upper = _pooled(found, np.int64), _pooled(found, np.int64)
            confidence = _pooled(found if wanted or pmfs is not None else 0, np.float64)
            describe_matches(
                runs, count, w, candidates.lower, candidates.upper, candidates.base, output, wanted,
                events, lower, upper, confidence,
            )  # fmt: skip
            if pmfs is not None:
                too_long = describe_uncertain(
                    runs, count, w, candidates.lower, candidates.upper, candidates.base, offset,
                    pmfs.values, LONGEST_PMF_CHAIN, wanted, lower, upper, confidence,
                )  # fmt: skip
                if too_long >= 0:
                    message = (
                        f"a match with an explicit pmf reaches over more than {LONGEST_PMF_CHAIN:,} ticks, "
                        "too many to sum over: choose a longer tick or a shorter WITHIN"
                    )
                    raise TraceError(TraceFault(message, column=plan.names.pmf))
            if wanted:
                _redo_exactly(plan, candidates, runs[:count], confidence)
            chunk = Chunk(events, lower, upper, confidence if wanted else None)
            if pmfs is not None:
                chunk = chunk.keep(lower <= upper)
            yield chunk
        if found < batch_rows:
            return


def _pooled(size: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array in Arrow's memory pool, which hands memory back without a page fault for each page."""
    return np.frombuffer(pa.allocate_buffer(size * 8), dtype=dtype)


def _redo_exactly(
    plan: EvaluationPlan, candidates: Candidates, runs: Int64, confidence: NDArray[np.float64]
) -> None:
    """Replace the confidences that float64 could not give (NaN) by those of exact arithmetic."""
    # A sum is NaN if anything in it is, and much cheaper to look at.
    if not np.isnan(confidence.sum()):
        return
    chosen = np.empty(len(plan.components), dtype=np.int64)
    for row in np.flatnonzero(np.isnan(confidence)).tolist():
        places_of(runs, len(runs), row, chosen)
        lower = [int(candidates.lower[i]) + j for j, i in enumerate(chosen)]
        upper = [int(candidates.upper[i]) + j for j, i in enumerate(chosen)]
        confidence[row] = float(exact_chain_confidence(lower, upper, plan.window))
