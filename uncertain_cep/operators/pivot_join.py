"""The pivot join: a plain sequence joined in pattern order, from the event that ends first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.config import EVER
from confidence.large_arrays import empty
from eventbased import PASS, PAUSED, Candidates, MatchColumns, MatchFinder, join, keep_likely, start_join
from eventbased.config import BLOCK_ROWS, MATCH_CUBES, SPARE
from eventbased.joins.join_state import PivotInputs
from eventbased.narrowing import least_distances, narrowed, share_left
from uncertain_cep.candidates.layout import Layout, layouts, loader
from uncertain_cep.expressions.bytecode import binding_orders, compile_bytecode
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.description import MatchDescription, matches_among
from uncertain_cep.operators.join_conditions import largest_distances

__all__ = ["pivot_join"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_LEAST_BLOCK_ROWS: Final = 512
"""Partial matches that a pivot join of few candidates extends together, and one more for each candidate.

Room for `eventbased.config.BLOCK_ROWS` would take longer than the join; ``benchmarks main --only latency``.
"""

_MOST_GATHERED: Final = 1 << 16
"""Matches that a join gathers before it weighs them where they are not weighed as they are found."""

WORTH_FILTERING: Final = 0.3
"""Share of the matches that a confidence asked for leaves a join to find, up to which these are weighed
before they are described. To do both at once for all takes a third as long for each: `--only topk`."""


def pivot_join(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a pattern of at least two single events, by the pivot join.

    Raises
    ------
    TraceError
        If the chain of a match with an explicit pmf is too long.
    """
    for layout in layouts(context.plan, context.candidates):
        yield from _PivotJoin(context, layout).batches()


class _Narrowed(NamedTuple):
    """Candidates to join, and what leaves out matches that do not reach a threshold."""

    candidates: Candidates
    w: int
    limit: Int64
    """As :attr:`MatchDescription.limit`, of these candidates."""
    threshold: Threshold | None
    """What bounds are compared with before matches are weighed; None: they are not bounded."""
    likely: float
    """The least confidence of matches that are kept once they are weighed; 0: all are."""


def _narrowed(
    context: ExecutionContext, layout: Layout, description: MatchDescription, is_apart: bool
) -> _Narrowed | None:
    """Return the candidates to join; None if no match reaches the threshold.

    ``is_apart`` says that neighbours have largest distances.
    """
    candidates, w, limit, threshold = layout.candidates, layout.w, description.limit, context.threshold
    if threshold is None:
        return _Narrowed(candidates, w, limit, None, 0.0)
    distance: Int64 | None = None
    # Narrowed, a choice that is wanted still meets order and window, but not always distances besides.
    if threshold.least > 0.0 and not is_apart and context.pmfs is None:
        distance = least_distances(candidates, w, threshold.least)
        if distance is None:
            return None
    # Not narrowed, matches are left out as soon as they are weighed.
    if not threshold.is_worth_bounds:
        share = 1.0 if distance is None else share_left(candidates, w, distance)
        if share >= WORTH_FILTERING:
            filters = description.is_uniform and description.wanted
            return _Narrowed(candidates, w, limit, None, min(threshold.least, 1.0) if filters else 0.0)
    if distance is None:
        return _Narrowed(candidates, w, limit, threshold, 0.0)
    joined, joined_w, taken_off = narrowed(candidates, w, distance)
    limit = description.likely_limits(threshold)
    if len(limit) and taken_off.any():
        following = np.repeat(np.append(taken_off[1:], 0), np.diff(candidates.first))
        limit = np.where(limit == EVER, limit, limit - following)
    return _Narrowed(joined, joined_w, limit, threshold, 0.0)


class _Columns(NamedTuple):
    """Columns that matches are written to; those of no use are empty."""

    events: Int64
    lower: Int64
    upper: Int64
    confidence: Float64
    std_error: Float64

    @classmethod
    def of(cls, description: MatchDescription, length: int, room: int) -> _Columns:
        """Return columns for so many matches of so many events.

        In one piece: whenever it is asked for memory, a thread may have to wait for the interpreter.
        """
        width = length + 2 + description.computed + description.has_errors
        whole, none = empty((width, room)), np.empty(0)
        confidence = whole[length + 2].view(np.float64) if description.computed else none
        std_error = whole[width - 1].view(np.float64) if description.has_errors else none
        return cls(whole[:length], whole[length], whole[length + 1], confidence, std_error)

    def first(self, count: int) -> _Columns:
        """Return the first entries of all columns."""
        return _Columns(
            self.events[:, :count], self.lower[:count], self.upper[:count], self.confidence[:count],
            self.std_error[:count],
        )  # fmt: skip


class _PivotJoin:
    """A join of the candidates of one layout, batch by batch."""

    def __init__(self, context: ExecutionContext, layout: Layout) -> None:
        plan, candidates, output = context.plan, layout.candidates, layout.payload(context.payload)
        self._length = length = len(plan.components)
        self._context, self._layout = context, layout
        variables = [component.variable for component in plan.components]
        load = loader(plan, context.table, layout)
        self._bytecode = compile_bytecode(plan.predicates_to_join, variables, candidates.first, load)
        self._description = description = MatchDescription(context, layout, self._bytecode)
        block_rows = min(BLOCK_ROWS, _LEAST_BLOCK_ROWS + len(candidates.source))
        self._search = start_join(length, len(candidates.class_start), block_rows)
        self._orders = binding_orders(length)
        self._spans = np.empty((3, context.batch_rows + 1), dtype=np.int64)
        self._most = max(MATCH_CUBES // length**3, 1)
        self._apart = largest_distances(plan)
        self._narrowed = _narrowed(context, layout, description, bool(len(self._apart)))
        self._exhausted = self._narrowed is None
        # Where all times are certain, the join has looked at them.
        is_open = description.wanted and bool(description.longest.any())
        limit = description.limit if self._narrowed is None else self._narrowed.limit
        self._finder = MatchFinder(
            self._inputs(layout.w, candidates, limit), self._search, self._spans, output,
            description.longest, is_open, description.chains,
        )  # fmt: skip
        threshold = None if self._narrowed is None else self._narrowed.threshold
        self._waiting = _Waiting(description, output, threshold)

    def _inputs(self, w: int, candidates: Candidates, limit: Int64) -> PivotInputs:
        return PivotInputs(
            w, candidates, self._layout.shared, limit, self._apart, self._orders, self._bytecode
        )

    def batches(self) -> Iterator[MatchBatch]:
        """Yield the matches."""
        description = self._description
        likely = 0.0 if self._narrowed is None else self._narrowed.likely
        while not self._exhausted:
            columns = _Columns.of(description, self._length, self._context.batch_rows + SPARE)
            filled = self._filled(columns)
            if self._context.counters is not None:
                _count(self._context.counters, self._orders, self._search.found)
            if filled:
                yield description.batch(*columns.first(filled), likely)
            # So that the allocator may give their memory to the next batch.
            del columns

    def _filled(self, columns: _Columns) -> int:
        """Write matches to columns, and return how many there are: a batch, or all that are left."""
        assert self._narrowed is not None
        batch_rows = self._context.batch_rows
        waiting, threshold = self._waiting, self._narrowed.threshold
        is_fused = threshold is None and self._description.is_uniform
        to_fill = MatchColumns(*columns[:4], self._narrowed.likely)
        filled = 0
        while filled + waiting.count < batch_rows:
            checkpoint()
            if is_fused:
                filled, self._exhausted = self._fused(columns, to_fill, filled)
                paused = True
            else:
                paused = self._find(batch_rows - filled - waiting.count)
            if self._exhausted:
                break
            if not paused and waiting.count >= min(waiting.enough, self._most):
                filled = waiting.weigh(columns, filled)
                if threshold is not None:
                    # So that what was found raises the threshold.
                    break
        return waiting.weigh(columns, filled)

    def _fused(self, columns: _Columns, to_fill: MatchColumns, filled: int) -> tuple[int, bool]:
        """Find and weigh matches by one kernel; return how many there are then, and whether it has all."""
        begun, filled, count, lost = self._finder.fill(to_fill, filled)
        if lost:
            # What is rarely needed, and dear to compile, is a kernel of its own.
            again = np.flatnonzero(np.isnan(columns.confidence[begun:filled]))
            chosen = matches_among(self._orders[self._search.state[PASS]], self._search, self._spans, again)
            exact = np.empty(len(again))
            again += begun
            self._description.fill(
                chosen, columns.lower[again], columns.upper[again], exact, columns.std_error
            )
            columns.confidence[again] = exact
            filled = keep_likely(to_fill, begun, filled) if to_fill.least > 0.0 else filled
        return filled, count == 0

    def _find(self, room: int) -> bool:
        """Find matches, at most so many, that wait to be weighed; return whether the kernel paused."""
        assert self._narrowed is not None
        joined, joined_w, limit, threshold, _ = self._narrowed
        # Numba types a kernel at its calls.
        kernel: Any = join
        inputs = self._inputs(joined_w, joined, limit)
        count, found = kernel(inputs, self._search, steps_per_call(), min(room, self._most), self._spans)
        if count == PAUSED:
            return True
        self._exhausted = found == 0
        if self._exhausted:
            return False
        ordered = self._orders[self._search.state[PASS]]
        if threshold is None:
            self._waiting.add(matches_among(ordered, self._search, self._spans, np.arange(found)))
        else:
            used = np.ascontiguousarray(self._spans[:, :count])
            self._waiting.add(self._description.filtered_spans(ordered, self._search, used, found, threshold))
        return False


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
        return _MOST_GATHERED if self._threshold is None else min(self._weighed, _MOST_GATHERED)

    def add(self, chosen: Int64) -> None:
        """Have some more wait: (l, m) int64, their candidates."""
        # An array of no columns can be a view that keeps room for a whole batch.
        if chosen.shape[1]:
            self._parts.append(chosen)
            self.count += chosen.shape[1]

    def weigh(self, columns: _Columns, begin: int) -> int:
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
