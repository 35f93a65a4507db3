"""Matching over a stream: events in as they come, matches out as they become final."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.span_times import check_spans
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import check_table, ticks_of
from uncertain_cep.plan import Approximation, EvaluationPlan, MatchOptions
from uncertain_cep.plan.lasting import schema_with_all_bounds, with_all_bounds
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.running.installation import VERSION
from uncertain_cep.running.resource_limits import Limits
from uncertain_cep.streaming.duplicate_ids import duplicate_error
from uncertain_cep.streaming.given_events import events_given, length_of_tick, tick_given
from uncertain_cep.streaming.query_evaluation import QueryEvaluation, stream_plan
from uncertain_cep.streaming.reoptimisation import UsedPlan
from uncertain_cep.streaming.snapshots import packed_snapshot, unpacked_snapshot
from uncertain_cep.streaming.watermark import ArrivalPromise, types_that_matter
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.frames import takeable_type

__all__ = ["IncrementalMatcher"]

Int64 = NDArray[np.int64]

_HELD: Final = (
    "late_count", "duplicate_count", "_length_of_tick", "_late", "_waiting", "_promise",
)  # fmt: skip
"""The attributes that change with the events, beside those of the evaluation."""


class IncrementalMatcher:
    """Finds the matches of a query in events as they arrive.

    All matches returned until :meth:`close` together are the answer of :func:`uncertain_cep.match` on all
    events but the late ones, whatever the order of arrival (within the promise), the calls they come in, and
    the heartbeats. A match is returned once, when no event to come can change it.

    Parameters
    ----------
    query : Query or str
    schema : pyarrow.Schema
        Of the events, as for :func:`uncertain_cep.match`.
    names : Names or mapping, optional
        Other names of the model's columns, such as ``{"type": "event_type"}``.
    tick : str, optional
        Length of a tick, such as ``"100ms"``; see :func:`uncertain_cep.match`. The schema alone does not tell
        what stands in the column ``tick`` of the events: it must be this, or the default.
    evaluation : {"auto", "any_state", "selectivity", "query_order", "sliced", "point"}
        The method; all give the same matches. ``any_state`` and ``selectivity`` return a match with the
        event that completes it; ``query_order`` waits until no event to come can precede one in it, and
        holds the fewest runs. These take sequences of single events. ``sliced`` takes every pattern, with
        Kleene and negated components, contiguity, AND and OR. It holds the events, and evaluates those whose
        matches become final together as a table, by a plan that follows the data (``plans``). A match waits
        until no event to come can be within the window of its first component's event, and at most
        ``slice_length`` ticks more. ``point`` does the same by the point-based framework, for every pattern
        without AND. ``auto`` is ``selectivity`` where it takes the query, else ``sliced``.
    confidence : bool
        Whether to return confidences.
    approximate : Approximation or float, optional
        Allow estimates where an exact confidence costs too much, as for :func:`uncertain_cep.match`.
    undecided : {"error", "bounds"}
        With RETURN PROBABILITY, the answer for a group that takes too long, as for
        :func:`uncertain_cep.match`.
    sources : bool
        Whether events that name one clock move together, as for :func:`uncertain_cep.match`; queries on such
        events are evaluated by ``sliced`` or ``point``.
    largest_interval : int, optional
        Largest ``upper - lower`` of any event, in ticks. With it, arrival order moves the bound on unseen
        events (``lower >= largest lower seen - largest_interval``), and an event that ends before an earlier
        one begins is late. Without it only heartbeats move that bound. Without either, nothing is dropped,
        and ``query_order`` and ``sliced`` return no match, until :meth:`close`.
    duplicates : {"error", "drop"}
        What to do about an event with the id of another one in reach, in its partition: it is not taken, and
        :meth:`push` raises a :class:`uncertain_cep.TraceError` that names it, or it is only counted. The
        other events of the call are taken in either case.
    slice_length : int, optional
        For ``point`` and ``sliced``, which it chooses if ``evaluation`` is ``auto``: how far, in ticks, the
        bound on unseen events (``safe``) moves on before what has become final is evaluated. With 1 every
        match is returned at once. The longer the slices, the fewer events are evaluated in two of them.
        Calls with many events make longer slices by themselves. Default: the window, but 1 for a pattern
        that ends in a negation, so that an absence is told at the tick at which it is certain.
    parameters : mapping, optional
        The values of the query's parameters, as for :func:`uncertain_cep.match`.
    timeout : float, optional
        Seconds that one call of :meth:`push`, :meth:`heartbeat` or :meth:`close` may take to compute matches.
        Beyond that the call ends with a :class:`uncertain_cep.TimeLimitError`, its matches are lost, and the
        matcher takes no more events.
    memory_limit : str or int, optional
        What this process may hold in memory while such a call computes matches, such as ``"4GB"``. Beyond
        that the call ends with a :class:`uncertain_cep.MemoryLimitError`, with the same consequences.

    Attributes
    ----------
    plan : EvaluationPlan
    schema : pyarrow.Schema
        Of the events.
    late_count : int
        Number of late events.
    duplicate_count : int
        Number of events that were not taken, as their ids were in use.

    Raises
    ------
    QuerySyntaxError, QueryError, TraceError
        If the query cannot be read, or not be answered on these columns.
    OptionError
        If an option has no such value, or the query asks for ORDER BY, LIMIT, OUTPUT NON OVERLAPPING or
        EXPECTED COUNT, which have no meaning before the stream has ended.

    Notes
    -----
    ``RETURN PROBABILITY`` needs EVERY, or BY with a first event. A bucket has its row once no event to come
    can be within the window of its last tick; a first event has it when its matches are final.
    The state is the events in reach of the window of events to come, and runs. Source: Zhang, Diao, Immerman,
    PVLDB 3(1), 2010, sections 2.2, 4 and C.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> matcher = uc.IncrementalMatcher("PATTERN SEQ(A a, B b) WITHIN 4", events.schema)
    >>> matcher.push(events).num_rows + matcher.close().num_rows
    1
    """

    @public
    def __init__(
        self,
        query: Query | str,
        schema: pa.Schema,
        *,
        names: Names | Mapping[str, str] | None = None,
        tick: str | None = None,
        evaluation: str = "auto",
        confidence: bool = True,
        approximate: Approximation | float | None = None,
        undecided: str = "error",
        sources: bool = True,
        largest_interval: int | None = None,
        duplicates: str = "error",
        slice_length: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        memory_limit: str | int | None = None,
    ) -> None:
        schema = pa.schema([field.with_type(takeable_type(field.type)) for field in schema], schema.metadata)
        parsed = query_of(query, values_of(parameters))
        options = MatchOptions(
            names=Names.of(names),
            tick=tick,
            sources=sources,
            confidence=confidence,
            approximate=Approximation.of(approximate),
            undecided=undecided,
            takes_spans=True,
        )
        of_events = schema_with_all_bounds(schema, options.names.lower)
        self.plan, method = stream_plan(parsed, of_events, options, evaluation, slice_length)
        self.schema = schema
        self._fingerprint = _fingerprint(parsed, self.plan, schema) | {
            "evaluation": method,
            "confidence": confidence,
            "approximate": None if options.approximate is None else str(options.approximate),
            "undecided": undecided,
            "largest_interval": largest_interval,
            "slice_length": slice_length,
        }
        self._length_of_tick = self.plan.domain.tick_nanoseconds
        if duplicates not in ("error", "drop"):
            raise OptionError(f"duplicates={duplicates!r} is unknown: use error or drop")
        self._duplicates = duplicates
        self.late_count = self.duplicate_count = 0
        self._waiting: list[pa.RecordBatch] = []
        self._late: list[pa.Table] = []
        self._promise = ArrivalPromise(largest_interval, types_that_matter(self.plan))
        Limits.of(timeout, memory_limit)
        self._evaluation = QueryEvaluation(
            self.plan, of_events, method, slice_length, (timeout, memory_limit)
        )
        self._closed = False

    @property
    def late(self) -> pa.Table:
        """The late events, in the order of arrival, with all their columns, since :meth:`take_late`."""
        return pa.concat_tables([self.schema.empty_table(), *self._late])

    @property
    def safe(self) -> int:
        """No unseen event that a component can take begins before this tick, unless it is late."""
        return self._promise.bound

    @property
    def state_size(self) -> int:
        """Candidates, runs and events held now."""
        return self._evaluation.size

    @property
    def plans(self) -> tuple[UsedPlan, ...]:
        """The plans that ``sliced`` has used, in order; at most the last 1,000."""
        return self._evaluation.plans

    @public
    def take_late(self) -> pa.Table:
        """Return the late events since the last call, and drop them."""
        taken = self.late
        self._late.clear()
        return taken

    @public
    def push(self, events: Any) -> pa.RecordBatch:
        """Take events in the order of arrival, and return the matches that became final.

        Parameters
        ----------
        events : pyarrow.Table or RecordBatch, pandas or Polars DataFrame, or mapping
            With at least the columns of ``schema``; a mapping of column to value is one event. Large
            batches are cheaper by event than small ones.

        Returns
        -------
        pyarrow.RecordBatch
            With the columns of :func:`uncertain_cep.match`.

        Raises
        ------
        TraceError
            If the events are not as described; no event of the call is taken then. If one has the id of
            another one in reach (in its partition), unless ``duplicates`` says otherwise; the other events
            are taken, and what became final with them comes with the next call. Or if a match with an
            explicit pmf reaches over too many ticks.
        ConfidenceCostError
            If a confidence costs too much and no estimate is allowed.
        OptionError
            If the stream was closed, or an earlier call failed while it computed matches.
        """
        self._check_open()
        if isinstance(events, Mapping):
            batch = self._evaluation.take_alone(events, self._promise)
            if batch is not None:
                return self._released(batch)
        table = with_marginals(self.plan, self._given(events))
        check_table(self.plan, table)
        if self.plan.lasting:
            check_spans(self.plan, table)
        batch, again = self._push_table(table)
        if again is not None:
            self.duplicate_count += int(again.sum())
            if self._duplicates == "error":
                self._waiting.append(batch)
                raise duplicate_error(self.plan, table, again)
        return self._released(batch)

    def _push_table(self, table: pa.Table) -> tuple[pa.RecordBatch, NDArray[np.bool_] | None]:
        """Take checked events; return what became final, and a mask of the events whose ids are in use."""
        plan = self.plan
        lower, upper = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
        promise = copy(self._promise)
        late = promise.arrive(lower, upper, table.column(plan.names.type))
        rows = np.flatnonzero(~late)
        on_time = table if len(rows) == table.num_rows else table.take(pa.array(rows))
        batch, refused = self._evaluation.take_new(on_time, lower[rows], upper[rows], promise.bound)
        self._promise = promise
        if late.any():
            self._late.append(table.select(self.schema.names).filter(pa.array(late)))
            self.late_count += int(late.sum())
        if refused is None:
            return batch, None
        again = np.zeros(table.num_rows, dtype=np.bool_)
        again[rows[refused]] = True
        return batch, again

    @public
    def heartbeat(
        self, time: int | datetime | np.datetime64, *, of_type: str | None = None
    ) -> pa.RecordBatch:
        """Learn that no event is to come that could be before a time; return the matches that became final.

        Parameters
        ----------
        time : int (ticks) or, for timestamp columns, a datetime, pandas Timestamp or numpy datetime64
        of_type : str, optional
            The type of the events that the heartbeat is about. Matches become final, and events are
            dropped, once the bounds of all types that the pattern names allow it.

        Raises
        ------
        OptionError
            If the time is none of these, or the stream was closed.
        TraceError, ConfidenceCostError
            As for :meth:`push`, for what became final.
        """
        self._check_open()
        if of_type is not None and not isinstance(of_type, str):
            raise OptionError(f"of_type={of_type!r}: it must be the name of an event type")
        self._promise.heartbeat(tick_given(time, self.plan.domain), of_type)
        return self._released(self._evaluation.advance(self._promise.bound))

    @public
    def snapshot(self) -> bytes:
        """Return all that the matcher holds, as bytes from which another process can go on.

        Raises
        ------
        OptionError
            If the stream was closed, or an earlier call failed while it computed matches.
        """
        self._check_open()
        held = {name: getattr(self, name) for name in _HELD}
        held["evaluation"] = self._evaluation.held
        return packed_snapshot(self._fingerprint, held)

    @public
    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a matcher that was made in the same way, instead of what this one holds.

        Parameters
        ----------
        snapshot : bytes
            What :meth:`snapshot` returned. It is a pickle, which can run any code: restore only your own.

        Raises
        ------
        OptionError
            If these are no snapshot, or one of another version, query, schema or options.
        """
        self._check_open()
        held = unpacked_snapshot(self._fingerprint, snapshot)
        for name in _HELD:
            setattr(self, name, held[name])
        self._evaluation.take_over(held["evaluation"])

    @public
    def close(self) -> pa.RecordBatch:
        """End the stream, and return the last matches. No event can be pushed afterwards.

        Raises
        ------
        OptionError, TraceError, ConfidenceCostError
            As for :meth:`push`.
        """
        self._check_open()
        self._closed = True
        return self._released(self._evaluation.close())

    def _released(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return matches behind those that a call which refused an event has left."""
        if not self._waiting:
            return batch
        whole = pa.Table.from_batches([*self._waiting, batch], batch.schema)
        self._waiting = []
        return whole.combine_chunks().to_batches()[0] if whole.num_rows else batch

    def _check_open(self) -> None:
        if self._evaluation.failed:
            raise OptionError(
                "an earlier call failed while it computed matches, and these are lost: make another "
                "IncrementalMatcher, with the change that the error asked for"
            )
        if self._closed:
            raise OptionError("the stream was closed: make another IncrementalMatcher")

    def _given(self, events: Any) -> pa.Table:
        """Return events as a table of the schema, with ticks as long as those before."""
        table = events_given(events, self.schema)
        self._length_of_tick = length_of_tick(table, self.plan.names, self._length_of_tick)
        return with_all_bounds(table, self.plan.names.lower)


def _fingerprint(query: Query, plan: EvaluationPlan, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of a query that a snapshot must share with its matcher."""
    return {
        "version": VERSION,
        "query": query.text_with_values,
        "schema": {field.name: str(field.type) for field in schema},
        "columns": plan.model_columns(schema.names),
        "tick": plan.domain.describe(),
    }
