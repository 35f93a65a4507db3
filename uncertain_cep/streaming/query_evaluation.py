"""The evaluation of one query over a stream: checked events in, matches out as they become final."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.config import EVER
from confidence.kernel import plain_for
from eventbased.incremental.candidate_pool import EVENT, OneEvent
from eventbased.incremental.completed import Matches
from uncertain_cep.candidates.partition_ids import PartitionNumbers
from uncertain_cep.candidates.pmfs import explicit_pmfs
from uncertain_cep.candidates.selection import Selection, select
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.executor import confident, constants_hold
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.incremental import RunEvaluation
from uncertain_cep.operators.table import kernels_of
from uncertain_cep.operators.timed_choices import without_times
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan, names_clocks
from uncertain_cep.plan.negated_reach import negated_reach
from uncertain_cep.query import Query
from uncertain_cep.results.having import had
from uncertain_cep.running.compiling import plain_seconds
from uncertain_cep.running.resource_limits import Limits
from uncertain_cep.streaming.duplicate_ids import duplicates_in
from uncertain_cep.streaming.early_rows import EarlyRows, why_not_early
from uncertain_cep.streaming.event_buffer import RetainedEvents
from uncertain_cep.streaming.few_rows import FewRows
from uncertain_cep.streaming.final_buckets import BucketedEvaluation
from uncertain_cep.streaming.micro_batches import SlicedEvaluation
from uncertain_cep.streaming.reoptimisation import UsedPlan
from uncertain_cep.streaming.residual import residual
from uncertain_cep.streaming.single_events import SingleEvents
from uncertain_cep.streaming.stream_methods import (
    BY_SLICES,
    check_when,
    method_of,
    refuse,
    refuse_open_groups,
    usual_slice,
)
from uncertain_cep.timeline.lasting_columns import has_spans

__all__ = ["QueryEvaluation", "StreamPlan", "stream_plan"]

Int64 = NDArray[np.int64]

_HELD: Final = ("_retained", "_partitions", "_sliced")
"""The attributes that change with the events, beside those of runs."""


@dataclass(frozen=True)
class StreamPlan:
    """A query over a stream of events of a schema, and how it is evaluated.

    Attributes
    ----------
    plan : EvaluationPlan
    method : str
        One of those of :class:`uncertain_cep.IncrementalMatcher`, but ``auto``.
    query : Query
        As it was written.
    schema : pyarrow.Schema
        Of the events.
    options : MatchOptions
    when : {"final", "certain"}
        When a row is told.
    """

    plan: EvaluationPlan
    method: str
    query: Query
    schema: pa.Schema
    options: MatchOptions
    when: str = "final"

    def early_rows(self, slice_length: int | None) -> EarlyRows | None:
        """Return an evaluation of early rows; None if no row is certain before it is final."""
        is_early = self.when == "certain"
        if (self.plan.is_grouped and not is_early) or self.plan.approximate is not None:
            return None
        length = (slice_length or self.plan.window) if is_early else None
        return EarlyRows(self.plan, self.query, self.schema, self.options, length)


def stream_plan(
    query: Query,
    schema: pa.Schema,
    options: MatchOptions,
    evaluation: str = "auto",
    slice_length: int | None = None,
    when: str = "final",
) -> StreamPlan:
    """Return the plan of a query over a stream of events of a schema, and the method that evaluates it.

    ``evaluation`` is one of those of :class:`uncertain_cep.IncrementalMatcher`.

    Raises
    ------
    QueryError, TraceError
        If the query cannot be answered on these columns.
    OptionError
        If an option has no such value, or the query has no meaning before the stream has ended.
    """
    refuse(query, evaluation)
    check_when(when, evaluation)
    doubtful = options.names.probability in schema.names
    method = method_of(
        query, evaluation, slice_length, names_clocks(schema, options), doubtful, has_spans(schema.names)
    )
    if when == "certain" and query.probability is not None:
        # A probability that may still rise has a bound.
        options = replace(options, undecided="bounds")
    plan = make_plan(query, schema, replace(options, evaluation="auto" if method == "sliced" else method))
    plan.refuse_orders()
    negated_reach(plan)
    refuse_open_groups(plan)
    if when == "certain" and (reason := why_not_early(plan)):
        raise OptionError(f'when="certain": {reason}')
    return StreamPlan(plan, method, query, schema, options, when)


class QueryEvaluation:
    """The events in reach of a query, and its matches as they become final.

    It takes events that are checked and not late, and is told by its caller before which tick none is to
    come. So the queries of a stream share one promise about events to come, and one check of them.

    Parameters
    ----------
    stream : StreamPlan
    slice_length : int, optional
        For the methods by slices; by default that of the plan.
    limits : tuple
        The timeout and the memory limit of a call.

    Attributes
    ----------
    failed : bool
        Whether computing matches ended with an error: the evaluation is of no use then.
    """

    def __init__(
        self,
        stream: StreamPlan,
        slice_length: int | None = None,
        limits: tuple[float | None, str | int | None] = (None, None),
    ) -> None:
        plan, schema = stream.plan, stream.schema
        self.plan = plan
        self._limits = limits
        self._retained = RetainedEvents(plan, schema)
        self._partitions = PartitionNumbers(plan)
        self.failed = self._closed = False
        self._possible = constants_hold(plan) and plan.window >= len(plan.components)
        self._sliced: SlicedEvaluation | None = None
        if stream.method in BY_SLICES:
            by_bucket = plan.is_grouped and plan.bound.every is not None
            evaluation_of = BucketedEvaluation if by_bucket else SlicedEvaluation
            length, early = slice_length or usual_slice(plan), stream.early_rows(slice_length)
            self._sliced = evaluation_of(plan, schema, length, early)
        self._of_slices = None if self._sliced is None else self._sliced.looking_at(schema)
        self._by_runs = self._runs()
        self._nothing = pa.RecordBatch.from_pylist([], schema=plan.batch_schema)
        self._few = FewRows.of(plan)
        plain = self._by_runs is not None and self._by_runs.takes_events and not plan.bound.times
        self._single = SingleEvents.of(plan, schema) if plain else None
        self._kernels = kernels_of(plan) if self._by_runs is None else ("incremental methods",)

    def _runs(self) -> RunEvaluation | None:
        """Return the evaluation by runs; None for one by slices, for single events, and without any match."""
        if not self._possible or len(self.plan.components) == 1 or self._sliced is not None:
            return None
        # Runs find choices of events, for which conditions on times are evaluated afterwards.
        searched = without_times(self.plan) if self.plan.bound.times else self.plan
        return RunEvaluation(searched, self._ids)

    @property
    def size(self) -> int:
        """Candidates, runs and events held now."""
        if self._sliced is not None:
            early = self._sliced.early
            return self._sliced.size + (0 if early is None else early.size)
        return len(self._retained) + (0 if self._by_runs is None else self._by_runs.method.size)

    @property
    def undecided_count(self) -> int:
        """How many matches events to come could spoil, at the last look for rows that are certain."""
        early = None if self._sliced is None else self._sliced.early
        return 0 if early is None else early.undecided_count

    @property
    def plans(self) -> tuple[UsedPlan, ...]:
        """The plans that slices have used."""
        return () if self._sliced is None else tuple(self._sliced.planning.used)

    @property
    def held(self) -> dict[str, Any]:
        """All that changes with the events."""
        held = {name: getattr(self, name) for name in _HELD}
        return held | {"runs": None if self._by_runs is None else self._by_runs.held}

    def take_over(self, held: Mapping[str, Any]) -> None:
        """Go on from what another evaluation of the same query held."""
        for name in _HELD:
            setattr(self, name, held[name])
        if self._by_runs is not None:
            self._by_runs.take_over(held["runs"])

    @property
    def candidates(self) -> pa.Table:
        """The events in reach with their ids."""
        return self._retained.table if self._sliced is None else self._sliced.candidates

    def earliest_end(self, safe: int) -> int:
        """Return a tick before which no match to come ends: each has ``range_upper`` at it or behind it.

        No event to come begins before ``safe``, ticks. A match by runs comes with the event that completes
        it, so one to come has an event to come, and ends no earlier than this begins. Of probabilities by
        buckets it is the begin of the first bucket to come.
        """
        return safe if self._sliced is None else self._sliced.earliest_end(safe)

    def take(self, table: pa.Table, lower: Int64, upper: Int64, safe: int) -> pa.RecordBatch:
        """Take checked events that are on time, and return the matches that became final.

        ``lower`` and ``upper``, (n,) int64, are their intervals; no event to come begins before ``safe``,
        ticks.

        Raises
        ------
        TraceError
            If an id is used twice; then none is taken, and ``failed`` is false.
        """
        if not table.num_rows:
            return self.advance(safe)
        if self._sliced is not None:
            self._sliced.take(table, lower, upper)
            return self.advance(safe)
        pmfs, trimmed_lower, trimmed_upper = explicit_pmfs(table, self.plan.names.pmf, lower, upper)
        selection = select(self.plan, table, trimmed_lower, trimmed_upper, lower, None)
        used = np.unique(np.concatenate(selection.rows))
        candidates = table.take(pa.array(used))
        if self._by_runs is None:
            return self._single_events(table, selection)
        self._retained.check_unique(candidates)
        if not len(used):
            return self.advance(safe)
        numbers = np.full(table.num_rows, -1, dtype=np.int64)
        numbers[used] = self._retained.append(candidates)
        selection = self._partitions.numbered(table, selection)
        with self._answering(table.num_rows):
            batch = self._named(self._by_runs.push(table, selection, pmfs, numbers, safe))
            self._tidy()
        return batch

    def take_new(
        self, table: pa.Table, lower: Int64, upper: Int64, safe: int
    ) -> tuple[pa.RecordBatch, NDArray[np.bool_] | None]:
        """Take events as :meth:`take` does, but those whose ids are in use: return a mask of these, or None.

        Raises
        ------
        TraceError
            If something else was the matter.
        """
        try:
            return self.take(table, lower, upper, safe), None
        except TraceError:
            if self.failed:
                raise
            again = duplicates_in(self.plan, self.candidates, table)
            if not again.any():
                raise
        new = ~again
        return self.take(table.filter(pa.array(new)), lower[new], upper[new], safe), again

    def take_few(
        self, events: Sequence[Mapping[str, Any]], intervals: Sequence[tuple[int, int]], safe: int
    ) -> pa.RecordBatch | None:
        """Do what :meth:`take` does for few events, by their plain values.

        Their ids differ. Returns None, with nothing done, if they have to go through a table.
        """
        if not events:
            return self.advance(safe)
        if self._sliced is not None:
            return self._hold_few(self._sliced, events, intervals, safe)
        runs = self._by_runs
        if self._single is None or runs is None:
            return None
        taken, looks = [], []
        for event, (lower, upper) in zip(events, intervals, strict=True):
            look = self._single.look(event)
            if look is None:
                return None
            components, keys = look
            if components:
                cells = runs.cells_of(event, components)
                if cells is None:
                    return None
                taken.append(event)
                looks.append((components, keys, lower, upper, cells))
        if not taken:
            return self.advance(safe)
        numbers = self._retained.append_few(taken)
        if numbers is None:
            return None
        candidates = []
        for number, (components, keys, lower, upper, cells) in zip(numbers, looks, strict=True):
            partitions = [self._partitions.number(key) if key else 0 for key in keys]
            candidates.append(OneEvent(components, partitions, lower, upper, number, cells))
        with self._answering(len(candidates)):
            batch = self._named(runs.push_few(candidates, safe))
            self._tidy()
        return batch

    def _hold_few(
        self,
        sliced: SlicedEvaluation,
        events: Sequence[Mapping[str, Any]],
        intervals: Sequence[tuple[int, int]],
        safe: int,
    ) -> pa.RecordBatch | None:
        """Do what :meth:`take_few` does where slices are evaluated."""
        if self._of_slices is None:
            return None
        held = []
        for event, interval in zip(events, intervals, strict=True):
            one = self._of_slices.look(event, interval)
            if one is None:
                return None
            held.append(one)
        return self.advance(safe) if sliced.take_few(events, held) else None

    def close(self) -> pa.RecordBatch:
        """Return the last matches, as no event is to come."""
        self._closed = True
        return self.advance(EVER)

    def release(self, safe: int) -> pa.RecordBatch:
        """Return the rows that are final or certain, and would wait for others."""
        return self.advance(safe, at_once=True)

    def advance(self, safe: int, *, at_once: bool = False) -> pa.RecordBatch:
        """Return the matches that became final, as no event to come begins before the tick ``safe``."""
        if self._sliced is not None:
            if not at_once and not self._sliced.is_due(safe):
                return self._batch(None)
            with self._answering(self._sliced.size):
                rows = self._sliced.advance(safe, at_once=at_once)
                table = pa.Table.from_batches(rows, self.plan.batch_schema)
            return table.combine_chunks().to_batches()[0] if table.num_rows else self._batch(None)
        if self._by_runs is None or not self._by_runs.method.learn(safe):
            return self._batch(None)
        with self._answering(0):
            matches = self._by_runs.checked(self._by_runs.method.advance(safe))
            batch = self._named(matches)
            self._tidy()
        return batch

    @contextmanager
    def _answering(self, events: int) -> Iterator[None]:
        """Refuse all further events if matches cannot be computed: runs and slices have moved on by then."""
        limit = Limits.of(*self._limits)
        seconds = plain_seconds(events, self._kernels)
        try:
            with nullcontext() if limit is None else limit.looked_at(), plain_for(seconds):
                yield
        except BaseException:
            self.failed = True
            raise

    def _named(self, parts: Iterator[Matches]) -> pa.RecordBatch:
        """Return the matches of retained events as they are shown."""
        batches = list(parts)
        if not batches:
            return self._nothing
        matches = Matches.joined(batches, len(self.plan.components))
        if not len(matches.lower):
            return self._nothing
        events, are_ids = self._retained.named(matches.events)
        chunk = MatchBatch(events, matches.lower, matches.upper, matches.confidence, matches.std_error)
        if are_ids:
            return self._batch(chunk, None)
        return self._batch(residual(self.plan, chunk, self._retained.table), self._retained.table)

    def _ids(self, numbers: Int64) -> list[Any]:
        rows = pa.array(self._retained.rows(numbers))
        ids: list[Any] = self._retained.table.column(self.plan.names.id).take(rows).to_pylist()
        return ids

    def _single_events(self, table: pa.Table, selection: Selection) -> pa.RecordBatch:
        """Return the matches of a pattern of one component: every candidate, with certainty."""
        if not self._possible:
            return self._batch(None)
        rows = selection.rows[0]
        chunk = MatchBatch(rows[None, :], selection.lower[0], selection.upper[0], np.ones(len(rows)))
        return self._batch(residual(self.plan, chunk, table), table)

    def _batch(self, chunk: MatchBatch | None, table: pa.Table | None = None) -> pa.RecordBatch:
        """Return matches as they are shown; without a table their events are ids."""
        kept = None if chunk is None else confident(self.plan, chunk)
        if kept is None or not len(kept.lower):
            return self._nothing
        few = self._few.batch(kept) if table is None and self._few is not None else None
        if few is not None:
            return few
        times_between = None
        if table is not None and self.plan.bound.returns_times:
            # Imports much that matches do without.
            from uncertain_cep.executor.times_between import returned_times

            times_between = partial(returned_times, self.plan, table)
        return had(self.plan, table, kept, table is None, times_between)

    def _tidy(self) -> None:
        """Drop events, partitions and strings that the method no longer refers to."""
        assert self._by_runs is not None
        method = self._by_runs.method
        if self._retained.crowded or self._partitions.crowded or self._closed:
            method.evict()
            self._retained.keep(method.pool.candidates[EVENT, : method.pool.count])
            self._by_runs.forget_strings()
            method.forget(self._partitions.forget(method.in_use()))
