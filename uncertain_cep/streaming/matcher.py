"""Matching over a stream: events in as they come, matches out as they become final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.plan import Approximation, EvaluationPlan, MatchOptions
from uncertain_cep.plan.lasting import schema_with_all_bounds
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.running.installation import VERSION
from uncertain_cep.running.resource_limits import Limits
from uncertain_cep.streaming.event_stream import EventStream
from uncertain_cep.streaming.query_evaluation import QueryEvaluation, stream_plan
from uncertain_cep.streaming.reoptimisation import UsedPlan
from uncertain_cep.streaming.watermark import ArrivalPromise, types_that_matter
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.frames import takeable_type

__all__ = ["IncrementalMatcher"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class IncrementalMatcher(EventStream[pa.RecordBatch]):
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
        What to do about a copy of an event, the same in all columns, as sources send them that deliver at
        least once: with ``drop`` it is only counted. An event with the id of another one in reach, in its
        partition, is not taken, and :meth:`push` raises a :class:`uncertain_cep.TraceError` that names it.
        The other events of the call are taken in either case. A copy that comes too late is a late event.
    slice_length : int, optional
        For ``point`` and ``sliced``, which it chooses if ``evaluation`` is ``auto``: how far, in ticks, the
        bound on unseen events (``safe``) moves on before what has become final is evaluated. With 1 every
        match is returned at once. The longer the slices, the fewer events are evaluated in two of them.
        Calls with many events make longer slices by themselves. Default: the window, but 1 for a pattern
        that ends in a negation, so that an absence is told at the tick at which it is certain.
    when : {"final", "certain"}
        When a row is told. ``certain``: as soon as no event to come can take it out of the answer, by looks
        ``slice_length`` apart (default: the window). A match does not wait then until all others of its first
        event are final. ``RETURN PROBABILITY`` needs ``HAVING PROBABILITY >= x``, and has the columns of
        ``undecided="bounds"``: a group that is told early has no ``probability``, but a lower bound of it in
        ``probability_lower``. No row is told twice or taken back.
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
        Number of copies, and of events that were not taken, as their ids were in use.

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
        when: str = "final",
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
        stream = stream_plan(parsed, of_events, options, evaluation, slice_length, when)
        self.plan = stream.plan
        super().__init__(
            schema, self.plan, ArrivalPromise(largest_interval, types_that_matter(self.plan)), duplicates
        )
        self._marks = _fingerprint(parsed, self.plan, schema) | {
            "evaluation": stream.method,
            "confidence": confidence,
            "approximate": None if options.approximate is None else str(options.approximate),
            "undecided": undecided,
            "largest_interval": largest_interval,
            "slice_length": slice_length,
            "when": when,
        }
        Limits.of(timeout, memory_limit)
        self._evaluation = QueryEvaluation(stream, slice_length, (timeout, memory_limit))

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

    @property
    def _failed(self) -> bool:
        return self._evaluation.failed

    @property
    def _fingerprint(self) -> dict[str, Any]:
        return self._marks

    @property
    def _lasting_plans(self) -> Sequence[EvaluationPlan]:
        return (self.plan,) if self.plan.lasting else ()

    def _take_few(
        self,
        events: Sequence[Mapping[str, Any]],
        intervals: Sequence[tuple[int, int]],
        reached: tuple[int, int],
    ) -> tuple[list[pa.RecordBatch], Mask | None] | None:
        # No type has a bound of its own.
        batch = self._evaluation.take_few(events, intervals, reached[1])
        if batch is None:
            return None
        self._promise.move(reached)
        return [batch], None

    def _take(
        self, table: pa.Table, lower: Int64, upper: Int64, promise: ArrivalPromise
    ) -> tuple[list[pa.RecordBatch], Mask | None]:
        batch, refused = self._evaluation.take_new(table, lower, upper, promise.bound)
        return [batch], refused

    def _advance(self) -> list[pa.RecordBatch]:
        return [self._evaluation.advance(self._promise.bound)]

    def _at_once(self) -> list[pa.RecordBatch]:
        return [self._evaluation.release(self._promise.bound)]

    def _end(self) -> list[pa.RecordBatch]:
        return [self._evaluation.close()]

    def _joined(self, answers: list[pa.RecordBatch]) -> pa.RecordBatch:
        if len(answers) == 1:
            return answers[0]
        whole = pa.Table.from_batches(answers)
        return whole.combine_chunks().to_batches()[0] if whole.num_rows else answers[0]

    def _packed(self) -> dict[str, Any]:
        return {"evaluation": self._evaluation.held}

    def _take_over(self, held: Mapping[str, Any]) -> None:
        self._evaluation.take_over(held["evaluation"])


def _fingerprint(query: Query, plan: EvaluationPlan, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of a query that a snapshot must share with its matcher."""
    return {
        "version": VERSION,
        "query": query.text_with_values,
        "schema": {field.name: str(field.type) for field in schema},
        "columns": plan.model_columns(schema.names),
        "tick": plan.domain.describe(),
    }
