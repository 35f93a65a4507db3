"""The pivot join: a plain sequence joined in pattern order, from the event that ends first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from eventbased import (
    PASS,
    PAUSED,
    Candidates,
    Search,
    describe_chosen,
    describe_matches,
    join,
    matches_of_runs,
    start_search,
    surviving_matches,
)
from eventbased.config import MATCH_CUBES, SPARE
from uncertain_cep.candidates.layout import Layout, layouts, loader
from uncertain_cep.expressions.bytecode import binding_orders, compile_programs
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.description import describe_explicit, pooled, redo_exactly
from uncertain_cep.operators.next_match import NextMatches

__all__ = ["pivot_join"]

Int64 = NDArray[np.int64]


def pivot_join(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a pattern of at least two single events, by the pivot join.

    Raises
    ------
    TraceError
        If the chain of a match with an explicit pmf is too long.
    """
    for layout in layouts(context.plan, context.candidates):
        yield from _matches(context, layout)


def _matches(context: ExecutionContext, layout: Layout) -> Iterator[MatchBatch]:
    plan, table, pmfs, threshold = context.plan, context.table, context.pmfs, context.threshold
    output, wanted, batch_rows = layout.payload(context.payload), context.with_confidence, context.batch_rows
    length = len(plan.components)
    variables = [component.variable for component in plan.components]
    candidates, rows, shared, w = layout.candidates, layout.rows, layout.shared, layout.w
    programs = compile_programs(plan.joined, variables, candidates.first, loader(plan, table, layout))
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
    most = max(MATCH_CUBES // length**3, 1)
    while not exhausted:
        room = batch_rows + SPARE
        events = pooled(length * room, np.int64).reshape(length, room)
        lower, upper = pooled(room, np.int64), pooled(room, np.int64)
        confidence = pooled(room if wanted or may_be_impossible else 0, np.float64)
        std_error = pooled(room if following is not None else 0, np.float64)
        filled = 0
        while filled < batch_rows:
            checkpoint()
            count, found = join(
                w, candidates.first_class, candidates.class_start, candidates.class_stop,
                candidates.class_shortest, candidates.class_longest, candidates.lower, candidates.upper,
                candidates.highest, candidates.follow_start, candidates.follow, shared.event, shared.fills,
                shared.twin, limit, orders, programs.start, programs.code, programs.ints, programs.floats,
                programs.nulls, programs.slots, *search.arrays, steps_per_call(),
                min(batch_rows - filled, most), runs,
            )  # fmt: skip
            if count == PAUSED:
                continue
            exhausted = found == 0
            if exhausted:
                break
            ordered = orders[search.state[PASS]]
            chosen = None
            cancelled = False
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
                # A sum is NaN if anything in it is, and much cheaper to look at.
                cancelled = wanted and bool(np.isnan(confidence[part].sum()))
            else:
                cancelled = describe_matches(
                    ordered, search.blocks, search.minimum, runs, count, w, candidates.lower,
                    candidates.upper, candidates.base, output, longest, wanted, part.start, events, lower,
                    upper, confidence,
                )  # fmt: skip
            if following is None and pmfs is not None:
                chosen = _chosen(ordered, search, runs[:, :count], found) if chosen is None else chosen
                describe_explicit(
                    plan, candidates, chosen, pmfs, offset, wanted, w,
                    lower[part], upper[part], confidence[part],
                )  # fmt: skip
            if cancelled:
                chosen = _chosen(ordered, search, runs[:, :count], found) if chosen is None else chosen
                redo_exactly(plan, candidates, chosen, confidence[part])
            if threshold is not None:
                # So that what was found raises the threshold.
                break
        if context.counters is not None:
            _count(context.counters, orders, search.found)
        if filled:
            chunk = MatchBatch(
                events[:, :filled],
                lower[:filled],
                upper[:filled],
                confidence[:filled] if wanted else None,
                None if following is None else std_error[:filled],
            )
            yield chunk.keep(chunk.lower <= chunk.upper) if may_be_impossible else chunk


def _count(counters: Counters, orders: Int64, found: Int64) -> None:
    """Add what a search has found since it was last asked, by pivot and by components bound."""
    for order, numbers in zip(orders.tolist(), found.tolist(), strict=True):
        for bound, number in enumerate(numbers, 1):
            counters.add(tuple(order[:bound]), number)
    found[:] = 0


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
