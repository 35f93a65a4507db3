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
    PASS,
    Search,
    describe_chosen,
    describe_matches,
    describe_uncertain,
    join,
    lay_out,
    matches_of_runs,
    partition_bases,
    start_search,
    surviving_matches,
)
from eventbased.candidates import Candidates
from eventbased.config import LONGEST_LINE, SPARE
from eventbased.query_order import COMPONENT_BITS
from uncertain_cep.config import LONGEST_PMF_CHAIN
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.next_match import NextMatches
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
    std_error : (k,) float64 or None
        Of confidences that are estimates; 0 where they are exact. None if all are.
    """

    events: Int64
    lower: Int64
    upper: Int64
    confidence: NDArray[np.float64] | None
    std_error: NDArray[np.float64] | None = None

    def keep(self, mask: NDArray[np.bool_]) -> Chunk:
        """Return the matches where ``mask`` is true."""
        confidence = None if self.confidence is None else self.confidence[mask]
        std_error = None if self.std_error is None else self.std_error[mask]
        return Chunk(self.events[:, mask], self.lower[mask], self.upper[mask], confidence, std_error)


@dataclass(slots=True)
class Threshold:
    """What a match must have to be of interest; it rises while matches are enumerated.

    Attributes
    ----------
    least : float
        Matches of a smaller confidence are not wanted.
    ranks : (n,) int64 or None
        For each row of the table a number that is in order as the ids are.
    last_rank : int or None
        Matches whose first event has a larger rank are not wanted.
    """

    least: float
    ranks: Int64 | None = None
    last_rank: int | None = None


def evaluate_sequence(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    pmfs: ExplicitPmfs | None,
    payload: Int64 | None,
    with_confidence: bool,
    batch_rows: int,
    threshold: Threshold | None = None,
) -> Iterator[Chunk]:
    """Yield the matches of a pattern of at least two components, in chunks of at most ``batch_rows``.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    selection : Selection
    pmfs : ExplicitPmfs or None
    payload : (n,) int64 or None
        What to return for each row of the table; None: the row itself.
    with_confidence : bool
    batch_rows : int
    threshold : Threshold or None
        What matches need not be enumerated.

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
            yield from evaluate_sequence(
                plan, table, half, pmfs, payload, with_confidence, batch_rows, threshold
            )
        return
    candidates = lay_out(selection.lower, selection.upper, selection.partition, shift, covered)
    rows = _moved(selection.rows, candidates)
    output = rows if payload is None else payload[rows]
    output = np.concatenate((output, np.zeros(SPARE, dtype=np.int64)))
    yield from _matches(
        plan,
        table,
        candidates,
        rows,
        output,
        _shared_events(candidates, rows),
        pmfs,
        with_confidence,
        batch_rows,
        w,
        threshold,
    )


def _moved(parts: tuple[Int64, ...], candidates: Candidates) -> Int64:
    """Return what belongs to each component's candidates in the order of the layout."""
    first = candidates.first
    return np.concatenate([part[candidates.index[first[j] : first[j + 1]]] for j, part in enumerate(parts)])


@dataclass(frozen=True, slots=True)
class _SharedEvents:
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


def _shared_events(candidates: Candidates, rows: Int64) -> _SharedEvents:
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
    return _SharedEvents(event, fills, twin)


def _matches(
    plan: EvaluationPlan,
    table: pa.Table,
    candidates: Candidates,
    rows: Int64,
    output: Int64,
    shared: _SharedEvents,
    pmfs: ExplicitPmfs | None,
    wanted: bool,
    batch_rows: int,
    w: int,
    threshold: Threshold | None,
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
    following = None
    if plan.query.strategy == "skip_till_next_match":
        following = NextMatches(plan, table, candidates, rows, shared.event, shared.twin, programs, pmfs, w)
    may_be_impossible = pmfs is not None or following is not None
    limit = np.empty(0, dtype=np.int64) if following is None else following.limit
    search = start_search(length, len(candidates.class_start))
    orders = binding_orders(length)
    runs = np.empty((3, batch_rows + 1), dtype=np.int64)
    longest = np.maximum.reduceat(candidates.class_longest, candidates.first_class[:-1])
    ranks = np.empty(0, dtype=np.int64)
    if threshold is not None and threshold.ranks is not None:
        ranks = threshold.ranks[rows]
    exhausted = False
    while not exhausted:
        room = batch_rows + SPARE
        events = _pooled(length * room, np.int64).reshape(length, room)
        lower, upper = _pooled(room, np.int64), _pooled(room, np.int64)
        confidence = _pooled(room if wanted or may_be_impossible else 0, np.float64)
        std_error = _pooled(room if following is not None else 0, np.float64)
        filled = 0
        while filled < batch_rows:
            count, found = join(
                w, candidates.first_class, candidates.class_start, candidates.class_stop,
                candidates.class_shortest, candidates.class_longest, candidates.lower, candidates.upper,
                candidates.highest, candidates.follow_start, candidates.follow, shared.event, shared.fills,
                shared.twin, limit, orders, programs.start, programs.code, programs.ints, programs.floats,
                programs.nulls, programs.slots, *search.arrays, batch_rows - filled, runs,
            )  # fmt: skip
            exhausted = found == 0
            if exhausted:
                break
            ordered = orders[search.state[PASS]]
            chosen = None
            if threshold is not None:
                chosen = _surviving(
                    ordered, search, runs[:, :count], found, w, candidates, offset, threshold, ranks
                )
                found = chosen.shape[1]
            elif following is not None:
                chosen = _chosen(ordered, search, runs[:, :count], found)
            part = slice(filled, filled + found)
            filled += found
            if chosen is not None:
                events[:, part] = output[chosen]
            if following is not None and chosen is not None:
                following.describe(chosen, lower[part], upper[part], confidence[part], std_error[part])
            elif chosen is not None:
                describe_chosen(
                    ordered, chosen, w, candidates.lower, candidates.upper, candidates.base,
                    lower[part], upper[part], confidence[part],
                )  # fmt: skip
            else:
                describe_matches(
                    ordered, search.blocks, search.minimum, runs, count, w, candidates.lower,
                    candidates.upper, candidates.base, output, longest, wanted, part.start, events, lower,
                    upper, confidence,
                )  # fmt: skip
            if following is None and pmfs is not None:
                chosen = _chosen(ordered, search, runs[:, :count], found) if chosen is None else chosen
                _describe_explicit(
                    plan, candidates, chosen, pmfs, offset, wanted, w,
                    lower[part], upper[part], confidence[part],
                )  # fmt: skip
            # A sum is NaN if anything in it is, and much cheaper to look at.
            if following is None and wanted and bool(np.isnan(confidence[part].sum())):
                chosen = _chosen(ordered, search, runs[:, :count], found) if chosen is None else chosen
                _redo_exactly(plan, candidates, chosen, confidence[part])
            if threshold is not None:
                # So that what was found raises the threshold.
                break
        if filled:
            chunk = Chunk(
                events[:, :filled],
                lower[:filled],
                upper[:filled],
                confidence[:filled] if wanted else None,
                None if following is None else std_error[:filled],
            )
            yield chunk.keep(chunk.lower <= chunk.upper) if may_be_impossible else chunk


def _chosen(ordered: Int64, search: Search, runs: Int64, found: int) -> Int64:
    """Return the candidates of the matches of some runs, (l, found) int64."""
    chosen = np.empty((len(ordered), found), dtype=np.int64)
    matches_of_runs(ordered, search.blocks, runs, runs.shape[1], chosen)
    return chosen


def _surviving(
    ordered: Int64,
    search: Search,
    runs: Int64,
    found: int,
    w: int,
    candidates: Candidates,
    offset: Int64,
    threshold: Threshold,
    ranks: Int64,
) -> Int64:
    """Return the candidates of those of ``found`` matches that can pass a threshold, (l, m) int64."""
    equally_long = candidates.class_shortest == candidates.class_longest
    even = np.logical_and.reduceat(equally_long, candidates.first_class[:-1]) & (not len(offset))
    last_rank = np.iinfo(np.int64).max if threshold.last_rank is None else threshold.last_rank
    chosen = np.empty((len(ordered), found), dtype=np.int64)
    surviving = surviving_matches(
        ordered, search.blocks, runs, w, candidates.lower, candidates.upper, offset, even, threshold.least,
        ranks, last_rank, chosen,
    )  # fmt: skip
    # One layout, so that the kernels it is handed to are compiled once.
    return np.ascontiguousarray(chosen[:, :surviving])


def _pooled(size: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array in Arrow's memory pool, which hands memory back without a page fault for each page."""
    return np.frombuffer(pa.allocate_buffer(size * 8), dtype=dtype)


def _describe_explicit(
    plan: EvaluationPlan,
    candidates: Candidates,
    chosen: Int64,
    pmfs: ExplicitPmfs,
    offset: Int64,
    wanted: bool,
    w: int,
    lower: Int64,
    upper: Int64,
    confidence: NDArray[np.float64],
) -> None:
    too_long = describe_uncertain(
        chosen, w, candidates.lower, candidates.upper, candidates.base, offset, pmfs.values,
        LONGEST_PMF_CHAIN, wanted, lower, upper, confidence,
    )  # fmt: skip
    if too_long >= 0:
        message = (
            f"a match with an explicit pmf reaches over more than {LONGEST_PMF_CHAIN:,} ticks, "
            "too many to sum over: choose a longer tick or a shorter WITHIN"
        )
        raise TraceError(TraceFault(message, column=plan.names.pmf))


def _redo_exactly(
    plan: EvaluationPlan, candidates: Candidates, chosen: Int64, confidence: NDArray[np.float64]
) -> None:
    """Replace the confidences that float64 could not give (NaN) by those of exact arithmetic."""
    for row in np.flatnonzero(np.isnan(confidence)).tolist():
        lower = [int(candidates.lower[i]) + j for j, i in enumerate(chosen[:, row])]
        upper = [int(candidates.upper[i]) + j for j, i in enumerate(chosen[:, row])]
        confidence[row] = float(exact_chain_confidence(lower, upper, plan.window))
