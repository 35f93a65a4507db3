"""The pivot join: a plain sequence joined in pattern order, from the event that ends first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.config import EVER
from confidence.large_arrays import empty
from eventbased import PASS, PAUSED, MatchColumns, MatchFinder, join, keep_likely, start_join
from eventbased.config import BLOCK_ROWS, MATCH_CUBES, SPARE, WORTH_CLIMBING
from eventbased.narrowing import least_distances, narrowed, share_left
from uncertain_cep.candidates.layout import Layout, layouts, loader
from uncertain_cep.config import (
    FEW_COMPONENTS,
    LEAST_BLOCK_ROWS,
    MOST_GATHERED,
    MOST_RAISING,
    ROOM_LEFT,
    WORTH_FILTERING,
)
from uncertain_cep.expressions.bytecode import binding_orders, compile_bytecode
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.description import MatchDescription, matches_among
from uncertain_cep.operators.join_conditions import largest_distances

__all__ = ["pivot_join"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


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
    plan, threshold, batch_rows = context.plan, context.threshold, context.batch_rows
    length = len(plan.components)
    variables = [component.variable for component in plan.components]
    candidates, w, output = layout.candidates, layout.w, layout.payload(context.payload)
    bytecode = compile_bytecode(
        plan.predicates_to_join, variables, candidates.first, loader(plan, context.table, layout)
    )
    description = MatchDescription(context, layout, bytecode)
    block_rows = min(BLOCK_ROWS, LEAST_BLOCK_ROWS + len(candidates.source))
    search = start_join(length, len(candidates.class_start), block_rows)
    orders = binding_orders(length)
    spans = np.empty((3, batch_rows + 1), dtype=np.int64)
    most = max(MATCH_CUBES // length**3, 1)
    joined, joined_w, limit = candidates, w, description.limit
    apart = largest_distances(plan)
    # Narrowed, a choice that is wanted still meets order and window, but not always distances besides.
    narrows = threshold is not None and threshold.least > 0.0 and not len(apart) and context.pmfs is None
    distance: Int64 | None = None
    is_little = length <= FEW_COMPONENTS and len(candidates.source) < WORTH_CLIMBING
    if threshold is not None and narrows and (threshold.is_worth_bounds or not is_little):
        distance = least_distances(candidates, w, threshold.least)
        if distance is None:
            return
    # Not narrowed, matches are left out as soon as they are weighed.
    likely = 0.0
    if threshold is not None and not threshold.is_worth_bounds:
        share = 1.0 if distance is None else share_left(candidates, w, distance)
        if share >= WORTH_FILTERING:
            if description.is_uniform and description.wanted:
                likely = min(threshold.least, 1.0)
            threshold = distance = None
    if threshold is not None and distance is not None:
        joined, joined_w, taken_off = narrowed(candidates, w, distance)
        limit = description.likely_limits(threshold)
        if len(limit) and taken_off.any():
            following = np.repeat(np.append(taken_off[1:], 0), np.diff(candidates.first))
            limit = np.where(limit == EVER, limit, limit - following)
    # Numba types a kernel at its calls.
    kernel: Any = join
    exhausted = False
    # Where all times are certain, the join has looked at them.
    is_open = description.wanted and bool(description.longest.any())
    finder = MatchFinder(
        w, candidates, layout.shared, limit, apart, orders, bytecode, search, spans, output,
        description.longest, is_open, description.chains,
    )  # fmt: skip
    waiting = _Waiting(description, output, threshold)
    none = np.empty(0)
    # The less room is left, the fewer matches a call finds.
    enough = max(batch_rows - batch_rows // ROOM_LEFT, 1) if likely > 0.0 else batch_rows
    while not exhausted:
        room = batch_rows + SPARE
        # In one piece: whenever it is asked for memory, a thread may have to wait for the interpreter.
        width = length + 2 + description.computed + description.has_errors
        whole = empty((width, room))
        events, lower, upper = whole[:length], whole[length], whole[length + 1]
        confidence = whole[length + 2].view(np.float64) if description.computed else none
        std_error = whole[width - 1].view(np.float64) if description.has_errors else none
        columns = MatchColumns(events, lower, upper, confidence, likely)
        described = events, lower, upper, confidence, std_error
        filled = 0
        while filled + waiting.count < enough:
            checkpoint()
            if threshold is None and description.is_uniform:
                begun, filled, count, lost = finder.fill(columns, filled)
                if lost:
                    # What is rarely needed, and dear to compile, is a kernel of its own.
                    again = np.flatnonzero(np.isnan(confidence[begun:filled]))
                    chosen = matches_among(orders[search.state[PASS]], search, spans, again)
                    exact = np.empty(len(again))
                    again += begun
                    description.fill(chosen, lower[again], upper[again], exact, std_error)
                    confidence[again] = exact
                    filled = keep_likely(columns, begun, filled) if likely > 0.0 else filled
                exhausted = count == 0
                if exhausted:
                    break
                continue
            count, found = kernel(
                joined_w, joined, layout.shared, limit, apart, orders, bytecode, search, steps_per_call(),
                min(batch_rows - filled - waiting.count, most), spans,
            )  # fmt: skip
            if count == PAUSED:
                continue
            exhausted = found == 0
            if exhausted:
                break
            ordered = orders[search.state[PASS]]
            if threshold is None:
                waiting.add(matches_among(ordered, search, spans, np.arange(found)))
            else:
                used = np.ascontiguousarray(spans[:, :count])
                waiting.add(description.filtered_spans(ordered, search, used, found, threshold))
            if waiting.count < min(waiting.enough, most):
                continue
            filled = waiting.weigh(described, filled)
            if threshold is not None:
                # So that what was found raises the threshold.
                break
        filled = waiting.weigh(described, filled)
        if context.counters is not None:
            _count(context.counters, orders, search.found)
        if filled:
            yield description.batch(
                events[:, :filled], lower[:filled], upper[:filled], confidence[:filled], std_error[:filled],
                likely,
            )  # fmt: skip
        # So that the allocator may give their memory to the next batch.
        del whole, events, lower, upper, confidence, std_error, columns, described


class _Waiting:
    """Matches that wait to be weighed together, as few are dear to weigh by themselves."""

    def __init__(self, description: MatchDescription, output: Int64, threshold: Threshold | None) -> None:
        self.count = 0
        self._parts: list[Int64] = []
        self._weighed = 0
        self._description, self._output, self._threshold = description, output, threshold

    @property
    def enough(self) -> int:
        """How many are worth it. More than were weighed so far would wait for a threshold that some raise."""
        return MOST_GATHERED if self._threshold is None else min(self._weighed, MOST_RAISING)

    def add(self, chosen: Int64) -> None:
        """Have some more wait: (l, m) int64, their candidates."""
        # An array of no columns can be a view that keeps room for a whole batch.
        if chosen.shape[1]:
            self._parts.append(chosen)
            self.count += chosen.shape[1]

    def weigh(self, columns: tuple[Int64, Int64, Int64, Float64, Float64], begin: int) -> int:
        """Fill columns from ``begin`` on with all that wait; return how many matches they hold then."""
        if not self.count:
            self._parts.clear()
            return begin
        chosen: Int64 = self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts, axis=1)
        events, lower, upper, confidence, std_error = columns
        end = begin + self.count
        part = slice(begin, end)
        events[:, part] = self._output[chosen]
        self._description.fill(chosen, lower[part], upper[part], confidence[part], std_error[part])
        self._weighed += self.count
        self._parts, self.count = [], 0
        return end


def _count(counters: Counters, orders: Int64, found: Int64) -> None:
    """Add what a search has found since it was last asked, by pivot and by components bound."""
    for order, numbers in zip(orders.tolist(), found.tolist(), strict=True):
        for bound, number in enumerate(numbers, 1):
            counters.add(tuple(order[:bound]), number)
    found[:] = 0
