"""The functions a user calls: match, iter_matches, explain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Final, TypeVar

import pyarrow as pa

from uncertain_cep.candidates.doubts import Doubts
from uncertain_cep.errors import MatchLimitError, OptionError
from uncertain_cep.executor import BATCH_ROWS, execute
from uncertain_cep.explanation.as_json import plan_dict, query_dict
from uncertain_cep.explanation.text import explain_plan, explain_query
from uncertain_cep.plan import Approximation, EvaluationPlan, make_plan
from uncertain_cep.query import Query, parse
from uncertain_cep.results.order import finished
from uncertain_cep.time_limits import TimeLimit, within
from uncertain_cep.timedomain import Names, with_noted_tick
from uncertain_cep.traces.frames import as_arrow, library_of

__all__ = ["MAX_MATCHES", "explain", "iter_matches", "match", "warm_up"]

MAX_MATCHES: Final = 50_000_000
"""Most matches that :func:`match` collects unless told otherwise."""

FrameT = TypeVar("FrameT")


def _names(names: Names | Mapping[str, str] | None) -> Names:
    return Names.of(names)


def _table(events: Any, names: Names | Mapping[str, str] | None) -> pa.Table:
    model = _names(names)
    if isinstance(events, pa.RecordBatchReader):
        return with_noted_tick(events.read_all(), model)
    return with_noted_tick(_with_texts(as_arrow(events), model), model)


def _with_texts(table: pa.Table, names: Names) -> pa.Table:
    """Return a table whose type and id columns are text if they hold nothing, as in an empty frame."""
    for name in (names.type, names.id):
        place = table.schema.get_field_index(name)
        if place < 0:
            continue
        found = table.schema.field(place).type
        if pa.types.is_null(found.value_type if pa.types.is_dictionary(found) else found):
            table = table.set_column(place, name, pa.nulls(table.num_rows, pa.string()))
    return table


def _plan(
    query: Query | str,
    schema: pa.Schema,
    names: Names | Mapping[str, str] | None,
    tick: str | None,
    evaluation: str,
    confidence: bool,
    approximate: Approximation | None,
    kleene: str = "matches",
    planner: str = "auto",
    latency_weight: float = 0.0,
) -> EvaluationPlan:
    parsed = parse(query) if isinstance(query, str) else query
    return make_plan(
        parsed,
        schema,
        names=_names(names),
        tick=tick,
        evaluation=evaluation,
        confidence=confidence,
        approximate=approximate,
        kleene=kleene,
        planner=planner,
        latency_weight=latency_weight,
    )


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    found = 0
    for batch in batches:
        found += batch.num_rows
        if limit is not None and found > limit:
            raise MatchLimitError(found, limit)
        yield batch


def match(
    events: FrameT,
    query: Query | str,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: str | None = None,
    evaluation: str = "auto",
    confidence: bool = True,
    approximate: Approximation | float | None = None,
    max_matches: int | None = MAX_MATCHES,
    kleene: str = "matches",
    planner: str = "auto",
    latency_weight: float = 0.0,
    timeout: float | None = None,
) -> FrameT:
    """Return the matches of a query over events with uncertain times.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas, Polars or Spark DataFrame
        One row an event: ``type`` (string), ``id`` (integer or string), ``lower`` and ``upper`` (int64
        ticks or timestamps, inclusive), optionally ``pmf`` (list of float64, one for each tick; null:
        uniform) and ``tick`` (text such as ``100ms``, the same for all events: how long a tick is, as
        `to_intervals` writes it), and any attributes.
    query : Query or str
    names : Names or mapping, optional
        Other names of those columns, such as ``{"type": "event_type"}``.
    tick : str, optional
        Length of a tick, such as ``"100ms"``; it must not contradict the events' own. Default: theirs, else
        1us for timestamps, whatever their unit; for int64 columns needed only for ``WITHIN 15 seconds``.
    evaluation : {"auto", "query_order", "any_state", "selectivity", "point"}
        The method; all give the same answer. ``auto`` is ``query_order``, or any other order in which the
        planner prefers to put events together.
    confidence : bool
        Whether to compute confidences.
    approximate : Approximation or float, optional
        Leave to estimate confidences whose exact value takes too long, with this standard error; without it
        they are an error. Only coupled gaps of ``skip_till_next_match`` ever do. The result then has the
        columns ``exact`` and ``std_error``.
    max_matches : int or None
        Stop with an error beyond this many; not used for Spark, whose matches stay on the cluster.
    kleene : {"matches", "compressed"}
        Whether each choice of events for a Kleene component is a match of its own. Compressed, there is one
        row for each choice of the other events, for ``skip_till_any_match``, one Kleene component and
        conditions on its ``c[i]`` alone: its column lists the events that can stand for it, ``confidence``
        is the probability of a match with at least one of them, and, given that the other events are in
        order and within the window, ``p_nonempty`` is the probability that some of them is where the
        component stands, ``expected_subsets`` the expected number of non-empty sets of those that are, and
        ``expected_elements`` that of the events themselves.
    planner : str
        Who chooses the order in which events are put together, by what it is expected to cost on these
        events: ``auto``, ``trivial`` (the order of the pattern), ``frequency``, ``greedy``, ``ii_random``,
        ``ii_greedy``, ``dp_left_deep``, ``dp_bushy``, ``zstream`` or ``zstream_greedy``. Or the order itself,
        as a tree over the variables in which brackets join two parts: ``"((c a) b)"``. Kleene components,
        which are left out of a tree, take their events when those of the others are chosen. No
        tree with OR; all give the same answer.
    latency_weight : float
        At least 0. Planners choose by the work of an evaluation, and with a weight above 0 also by how much
        of it is left once the event of the last component is there: each partial match that this event has to
        be put together with then counts as so many more that are looked at. It changes no answer. Not with
        a tree, nor with an evaluation that has an order of its own.
    timeout : float, optional
        Seconds after which to stop with an error. Not for Spark frames, which compute their matches when they
        are used.

    Returns
    -------
    the same kind of frame (a Table for a reader)
        In order: the partition attributes, if any; a column for each variable with the event's id; RETURN
        expressions; ``range_lower`` and ``range_upper``, of the type of the input's times, or in
        microseconds where those are seconds or milliseconds and ticks are shorter; ``confidence``.
        With ``RETURN EXPECTED COUNT``: the attributes of BY; with EVERY ``bucket``, of the type of the times;
        ``expected_count``. Without BY and EVERY it is one row.

    Raises
    ------
    QuerySyntaxError, QueryError
        If the query cannot be read, or not be answered on these columns.
    TraceError
        If the events are not as described.
    OptionError
        If an option has no such value.
    MatchLimitError
        If there are more than ``max_matches`` matches to hold.
    TimeLimitError
        If it takes longer than ``timeout``.
    ConfidenceCostError
        If the confidence of a match takes too many steps.

    Warns
    -----
    UncertainCepWarning
        If there are no events, or none of a type that the pattern names; if no event can be a variable; if a
        percentage such as ``95%`` is compared with a column that goes far beyond 1. Each once. Of a Spark
        frame only variables that no event can be are known, without what a missing type may have meant.
    """
    limit = TimeLimit.of(timeout)
    allowed = Approximation.of(approximate)
    given: Any = events
    library = library_of(given)
    result: Any
    if library == "pyspark":
        if limit is not None:
            raise OptionError(
                "timeout= is for frames in this process: Spark computes matches when they are used, so set a "
                "limit there, or use 'uncertain-cep match --time-limit'"
            )
        from uncertain_cep.spark import match as spark_match

        result = spark_match(
            given,
            query,
            names=_names(names),
            tick=tick,
            evaluation=evaluation,
            confidence=confidence,
            approximate=allowed,
            planner=planner,
            kleene=kleene,
            latency_weight=latency_weight,
        )
        return result  # type: ignore[no-any-return]
    table = _table(given, names)
    plan = _plan(
        query, table.schema, names, tick, evaluation, confidence, allowed, kleene, planner, latency_weight
    )
    batches = within(limit, execute(plan, table, doubts=Doubts()))
    result = finished(plan, _limited(batches, max_matches if plan.collects else None))
    if library == "pandas":
        result = result.to_pandas()
    elif library == "polars":
        import polars as pl

        result = pl.from_arrow(result)
    return result  # type: ignore[no-any-return]


def iter_matches(
    events: Any,
    query: Query | str,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: str | None = None,
    evaluation: str = "auto",
    confidence: bool = True,
    approximate: Approximation | float | None = None,
    batch_rows: int = BATCH_ROWS,
    max_matches: int | None = None,
    kleene: str = "matches",
    planner: str = "auto",
    latency_weight: float = 0.0,
    timeout: float | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of a query in batches, in memory bounded by the batch whatever their number.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
    query, names, tick, evaluation, confidence, approximate, max_matches, kleene, planner, latency_weight
        As for :func:`match`; by default there is no limit.
    batch_rows : int
        Most matches in a batch.
    timeout : float, optional
        Seconds, from this call on, after which the search for the next batch is stopped with an error; what
        the caller does between batches is never stopped, and its time counts.

    Yields
    ------
    pyarrow.RecordBatch
        With the columns of :func:`match`. With ORDER BY, LIMIT, OUTPUT NON OVERLAPPING or EXPECTED COUNT the
        result is held, and yielded at the end.
    """
    if library_of(events) == "pyspark":
        raise OptionError(
            "iter_matches reads frames in this process: use match, whose result is a Spark frame"
        )
    if batch_rows < 1:
        raise OptionError(f"batch_rows={batch_rows}: it must be at least 1")
    allowed_time = TimeLimit.of(timeout)
    table = _table(events, names)
    allowed = Approximation.of(approximate)
    plan = _plan(
        query, table.schema, names, tick, evaluation, confidence, allowed, kleene, planner, latency_weight
    )
    limit = max_matches if plan.collects else None
    batches = within(allowed_time, execute(plan, table, batch_rows=batch_rows, doubts=Doubts()))
    batches = _limited(batches, limit)
    if not plan.needs_all:
        return batches
    return iter(finished(plan, batches).to_batches(max_chunksize=batch_rows))


def explain(
    query: Query | str,
    events: Any = None,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: str | None = None,
    evaluation: str = "auto",
    planner: str = "auto",
    latency_weight: float = 0.0,
    analyze: bool = False,
    format: str = "text",
    timeout: float | None = None,
) -> str:
    """Return how a query is evaluated; on events, with what is known of them and the plan that follows.

    Parameters
    ----------
    query : Query or str
    events : frame, optional
        As for :func:`match`.
    names, tick, evaluation, planner, latency_weight
        As for :func:`match`.
    analyze : bool
        Whether to find the matches, and set the actual numbers of partial matches beside the estimated ones.
    format : {"text", "json"}
        Words, or a JSON object with the same facts.
    timeout : float, optional
        Seconds after which to stop with an error.

    Raises
    ------
    OptionError
        If an option has no such value, or ``analyze`` has no events in this process.
    TimeLimitError
        If it takes longer than ``timeout``.
    """
    limit = TimeLimit.of(timeout)
    if format not in ("text", "json"):
        raise OptionError(f"format={format!r} is unknown: use text or json")
    on_spark = library_of(events) == "pyspark"
    if analyze and (events is None or on_spark):
        raise OptionError("analyze=True runs the query in this process: give it events that are not Spark's")
    parsed = parse(query) if isinstance(query, str) else query
    if events is None:
        return explain_query(parsed) if format == "text" else json.dumps(query_dict(parsed), indent=2)
    if on_spark:
        from uncertain_cep.spark import noted_schema

        schema, table = noted_schema(events, _names(names)), None
    else:
        table = _table(events, names)
        schema = table.schema
    plan = _plan(
        parsed, schema, names, tick, evaluation, True, None, planner=planner, latency_weight=latency_weight
    )
    with nullcontext() if limit is None else limit.looked_at():
        if format == "text":
            return explain_plan(plan, table, analyze=analyze, doubts=Doubts())
        return json.dumps(plan_dict(plan, table, analyze=analyze, doubts=Doubts()), indent=2)


def warm_up() -> None:
    """Compile the kernels for sequences of single events, or load them from the cache on disk.

    About half a minute the first time on a machine; the kernels of other patterns are compiled at their first
    use.
    """
    events = {
        "type": ["A", "B", "C", "D"] * 2,
        "id": range(8),
        "lower": [1, 2, 3, 4] * 2,
        "upper": [3, 4, 5, 6] * 2,
        "k": [0, 0, 0, 0, 1, 1, 1, 1],
    }
    table = pa.table(events)
    for pattern in ("A a, B b, C c", "A a, B b, C c, D d"):
        query = f"PATTERN SEQ({pattern}) WHERE [k] AND a.k + 0.5 > b.k WITHIN 5"
        for asked in (query, f"{query} HAVING CONFIDENCE >= 0.01"):
            match(table, asked, evaluation="query_order")
            match(table, asked, planner="trivial")
