"""The last steps of an evaluation: matches are found, weighed, kept and projected, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.parts import parts_of
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.executor.checked_events import refuse_overlapping_records
from uncertain_cep.executor.kept import (
    confident,
    limited,
    most_of_any,
    rising_threshold,
    threshold_of_having,
)
from uncertain_cep.executor.problem import Problem
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.table import operator_of
from uncertain_cep.optimizer.choice import choose
from uncertain_cep.plan.best_first import is_best_only
from uncertain_cep.plan.evaluated_parts import counts_candidates
from uncertain_cep.results.having import had, kept_by_having
from uncertain_cep.results.projection import TimesBetween, id_payload, to_batch
from uncertain_cep.results.top_k import best_chunk
from uncertain_cep.running.meter import current_meter
from uncertain_cep.running.threads import side_by_side

__all__ = ["MatchingRun"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Batches = Callable[[], Iterator[pa.RecordBatch]]

_MOST_CELLS: Final = 1 << 24
"""Values in a batch: one of very many columns has fewer rows."""


class _ClockWeigher(NamedTuple):
    """How matches whose events share clocks are weighed behind the search."""

    weigh: Callable[[MatchBatch], MatchBatch]
    likely: Callable[[MatchBatch, Threshold], Mask] | None
    """Which of some matches can reach a threshold; None: that costs about what weighing does."""

    @classmethod
    def of(cls, problem: Problem, ids: Int64 | None, with_confidence: bool) -> _ClockWeigher | None:
        """Return the weigher of sequences that forbid nothing; None for problems of another kind."""
        plan, clocks = problem.plan, problem.clocks
        if clocks is None or not plan.is_free_sequence:
            return None
        from uncertain_cep.operators.shared_clocks import LikelyMatches, weigher

        likely = LikelyMatches(clocks, plan.window) if clocks.has_law.any() else None
        return cls(weigher(clocks, plan.window, with_confidence, ids), likely)


class MatchingRun:
    """The matches of a problem, found when :meth:`batches` is iterated over."""

    def __init__(self, problem: Problem, counters: Counters | None) -> None:
        plan, scan = problem.plan, problem.scan
        self._problem, self._plan, self._table = problem, plan, problem.table
        self._threads = scan.threads if counters is None else 1
        self._most = most_of_any(plan)
        self._times_between: TimesBetween | None = None
        if plan.bound.returns_times:
            refuse_overlapping_records(problem.sequences, plan.names, "DURATION(a, b) in RETURN")
            # Imports much that matches do without.
            from uncertain_cep.executor.times_between import returned_times

            self._times_between = partial(returned_times, problem.asked_plan, scan.events)
        self._ids = None if problem.by_rows or is_best_only(plan) else id_payload(plan, problem.table)
        with_confidence = plan.needs_confidence
        self._weigher = _ClockWeigher.of(problem, self._ids, with_confidence)
        # What bounds confidences while joining takes times as independent.
        self._is_weighed_behind = self._weigher is not None or problem.is_weighed_behind
        self._operator = operator_of(plan)
        self._rising = rising_threshold(problem.asked_plan, problem.times.pmfs)
        undecided = problem.undecided
        self._context = ExecutionContext(
            plan,
            problem.table,
            problem.candidates,
            (problem.times.lower, problem.times.upper),
            problem.times.pmfs,
            None if self._is_weighed_behind else self._ids,
            with_confidence and problem.confident_search and self._weigher is None,
            min(scan.batch_rows, max(_MOST_CELLS // len(plan.batch_schema), 1)),
            counters=counters,
            conditioned=problem.conditioned,
            clocks=problem.clocks,
            existence=problem.existence,
            order=problem.in_order,
            ties=problem.ties,
            spans=scan.spans,
            decided=None if undecided is None else partial(undecided.decided, wanted=_number_of),
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the matches in batches of the plan's schema, or counts of them."""
        plan = self._plan
        # Planned once, before threads ask for the tree.
        self._with_tree  # noqa: B018
        if is_best_only(plan):
            best = best_chunk(plan, self._table, self._problem.candidates, self._having, self._threads)
            if best is not None and len(best.lower):
                yield to_batch(plan, self._table, best, False, self._times_between)
            return
        parts = parts_of(plan, self._problem.candidates, self._threads)
        tasks: Sequence[Batches] = [partial(self._of_part, part) for part in parts]
        if (meter := current_meter()) is not None:
            tasks = meter.count(tasks)
        yield from limited(plan, side_by_side(self._threads, tasks))

    @cached_property
    def _with_tree(self) -> ExecutionContext:
        if not self._operator.plans_joins:
            return self._context
        tree = choose(self._plan, self._table, self._problem.candidates).tree
        return self._context if tree is None else replace(self._context, tree=tree)

    def _matches(self, among: Selection, threshold: Threshold | None = None) -> Iterator[MatchBatch]:
        """Yield the matches of the problem as it was asked among some candidates."""
        if not self._is_weighed_behind:
            chunks = self._operator.matches(self._with_tree.among(among, threshold))
            return self._problem.undone(self._problem.owned(chunks))
        chunks = self._problem.owned(self._operator.matches(self._with_tree.among(among)))
        if self._weigher is not None:
            if (likely := self._weigher.likely) is not None and threshold is not None:
                chunks = (chunk.keep(likely(chunk, threshold)) for chunk in chunks)
            chunks = map(self._weigher.weigh, chunks)
        return self._problem.undone(chunks)

    def _having(self, among: Selection, threshold: Threshold) -> Iterator[MatchBatch]:
        """Yield the matches that HAVING keeps of those that reach a threshold."""
        plan = self._plan
        for chunk in self._matches(among, threshold):
            if plan.having is not None and chunk.confidence is not None:
                chunk = chunk.keep(chunk.confidence >= threshold.least)
                chunk = chunk.keep(kept_by_having(plan, self._table, chunk, False, self._times_between))
            yield chunk

    def _of_part(self, part: Callable[[], Selection]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a part of the candidates, made by the thread that evaluates it."""
        among = part()
        if among.empty:
            return
        if self._plan.counts:
            yield from self._counts(among)
            return
        if self._rising is not None:
            threshold: Threshold | None = self._rising.threshold
        else:
            threshold = threshold_of_having(self._problem.asked_plan, self._problem.times.pmfs)
        # A loop would hold the last batch while the next one is found.
        yield from chain.from_iterable(map(self._projected, self._matches(among, threshold)))

    def _projected(self, chunk: MatchBatch) -> tuple[pa.RecordBatch, ...]:
        """Return a batch of those of some matches that are wanted, if there are any."""
        plan, rising = self._plan, self._rising
        kept = confident(plan, chunk)
        if rising is not None and kept.confidence is not None:
            if plan.having is None:
                rising.offer(np.minimum(kept.confidence, 1.0))
            kept = kept.keep(kept.confidence >= rising.threshold.least)
        elif plan.having is None and self._most < len(kept.lower):
            kept = kept.keep(np.arange(len(kept.lower)) < self._most)
        if not len(kept.lower):
            return ()
        batch = had(plan, self._table, kept, self._ids is not None, self._times_between)
        if rising is not None and plan.having is not None:
            rising.offer(np.asarray(batch.column("confidence").to_numpy()))
        return (batch,)

    def _counts(self, among: Selection) -> Iterator[pa.RecordBatch]:
        """Yield expected counts of the matches among some candidates."""
        # Imports much that matches do without.
        from uncertain_cep.results.buckets import evaluate_bucketed
        from uncertain_cep.results.expected_counts import bucketed_counts, expected_counts

        problem, plan, table = self._problem, self._plan, self._table
        if counts_candidates(plan):
            yield from expected_counts(
                plan, table, among, problem.times.pmfs, problem.existence, self._matches
            )
        elif problem.sequences is None or problem.ties is not None:
            chunks = problem.owned(evaluate_bucketed(self._context.among(among)))
            yield from bucketed_counts(plan, table, chunks)
        else:
            from uncertain_cep.results.sequenced_counts import buckets_in_order

            bucketed = buckets_in_order(
                problem.asked_plan, table, problem.sequences, problem.existence, self._matches(among)
            )
            yield from bucketed_counts(plan, table, bucketed)


def _number_of(chunk: MatchBatch) -> int:
    return len(chunk.lower)
