"""The functions a user calls: match, iter_matches, explain."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any, TypedDict, TypeVar, Unpack

import pyarrow as pa

from uncertain_cep.boundary import guarded, public
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.config.limits import BATCH_ROWS, MAX_MATCHES, MOST_BATCH_ROWS
from uncertain_cep.errors import OptionError, warn
from uncertain_cep.executor import execute_within
from uncertain_cep.explanation.as_json import plan_dict, query_dict
from uncertain_cep.explanation.facts import PlanFacts, plan_facts
from uncertain_cep.explanation.text import explain_plan, explain_query
from uncertain_cep.plan import Approximation, EvaluationPlan, MatchOptions, make_plan, remembered_plan
from uncertain_cep.plan.lasting import schema_with_all_bounds, with_all_bounds
from uncertain_cep.query import Query, query_of
from uncertain_cep.query.checker import did_you_mean
from uncertain_cep.results.order import finished
from uncertain_cep.rule_sets.named_rules import Rules
from uncertain_cep.running.meter import metered
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.streaming.stream_layout import StreamOptions
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import event_table, library_of, like
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = ["explain", "explained", "iter_matches", "match"]

FrameT = TypeVar("FrameT")


class OfStreams(TypedDict, total=False):
    """Options of :func:`match` that only streams have."""

    largest_interval: Duration | int | None
    idle_after: Duration | None
    duplicates: str


@public
def match(
    events: FrameT,
    query: Query | str | Rules,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    evaluation: str = "auto",
    confidence: bool = True,
    approximate: Approximation | float | None = None,
    undecided: str = "error",
    max_matches: int | None = MAX_MATCHES,
    kleene: str = "matches",
    planner: str = "auto",
    latency_weight: float = 0.0,
    sources: bool = True,
    known_until: int | str | date | None = None,
    parameters: Mapping[str, Any] | None = None,
    threads: int | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
    progress: bool | None = None,
    **of_streams: Unpack[OfStreams],
) -> FrameT:
    """Return the matches of a query over events with uncertain times.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas, Polars or Spark DataFrame
        One row an event: ``type`` (string), ``id`` (integer or string), ``lower`` and ``upper`` (int64
        ticks or timestamps, inclusive), optionally ``pmf`` (list of float64, one for each tick; null:
        uniform), ``probability`` (a number from 0 to 1: how likely the event happened at all; null: it did)
        and ``tick`` (text such as ``100ms``, the same for all events: how long a tick is, as `to_intervals`
        writes it), and any attributes.
    query : Query, str or Rules
        Rules, as :func:`uncertain_cep.rules` reads them, are asked together, of events read once.
    names : Names or mapping, optional
        Other names of those columns, such as ``{"type": "event_type"}``.
    tick : str, optional
        Length of a tick, such as ``"100ms"``.
    evaluation : {"auto", "query_order", "any_state", "selectivity", "point"}
        The method; all give the same answer.
    confidence : bool
        Whether to compute confidences.
    approximate : Approximation or float, optional
        Estimate, with this standard error, confidences whose exact value takes too long, and likewise with
        RETURN PROBABILITY the probabilities of groups.
    undecided : {"error", "bounds"}
        With RETURN PROBABILITY, the answer for a group that takes too long even so: an error, or a row with a
        null and certain bounds.
    max_matches : int or None
        Stop with an error beyond this many; not used for Spark, whose matches stay on the cluster.
    kleene : {"matches", "compressed"}
        Whether each choice of events for a Kleene component is a match of its own, or all share a row.
    planner : str
        Who chooses the order in which events are put together, or that order as a tree, ``"((c a) b)"``; all
        give the same answer.
    sources : bool
        Whether events that name one clock, in the columns ``source``, ``offset_lower`` and ``offset_upper``,
        move together; else their times are independent.
    known_until : int, str or datetime, optional
        The time up to which all events are known: a tick, or ISO 8601 text (UTC without an offset). A match
        is undecided if one of its gaps can end behind it, as an event that is not there yet could spoil the
        match. Undecided matches are left out, and a warning counts them. By default the events are all there
        are, and a warning counts the matches with a negation whose gap can end behind the last of them. Not
        for streams, which say by themselves up to when events are known.
    latency_weight : float
        How much planners count what is left to do once the last event is there. It changes no answer.
    parameters : mapping, optional
        The values of the query's parameters, such as ``{"limit": 5}`` for ``$limit``: numbers, text, truth
        values, datetimes, lengths of time and None.
    threads : int, optional
        Most threads that look for matches at once; by default one for each core. Without ORDER BY the order
        of the matches depends on it. Not for Spark frames, where every task has one thread.
    timeout : float, optional
        Seconds after which to stop with an error. Not for Spark frames, which compute their matches when they
        are used.
    memory_limit : str or int, optional
        What this process may hold in memory, such as ``"4GB"`` or a number of bytes, before it stops with an
        error. It is looked at several times a second, and before large arrays are made. Not for Spark frames.
    progress : bool, optional
        Whether a line on stderr says how many matches there are, how fast they come and, with several
        threads, when the end is expected. By default on a terminal and in a notebook, for calls of over two
        seconds. Spark shows its own.
    **of_streams
        For streaming frames of Spark, until version 0.3: `uncertain_cep.spark.match` takes
        ``largest_interval``, ``idle_after`` and ``duplicates``, and these give a warning here.

    Returns
    -------
    the same kind of frame (a Table for a reader)
        In order: the partition attributes, if any; a column for each variable with the event's id; RETURN
        expressions; of ``RETURN DURATION(a, b) AS took`` the shortest, longest and mean time from a to b,
        ``took_lower``, ``took_upper`` and ``took_mean``, as of :func:`uncertain_cep.elapsed`; ``range_lower``
        and ``range_upper``, of the type of the input's times, or in microseconds where those are seconds or
        milliseconds and ticks are shorter; ``confidence``.
        With ``RETURN EXPECTED COUNT``: the attributes of BY; with EVERY ``bucket``, of the type of the times;
        ``expected_count``. Without BY and EVERY it is one row.
        With ``RETURN PROBABILITY``: the columns of BY; with EVERY ``bucket``; ``probability``, or its name;
        where estimates or bounds are allowed also ``exact``, ``std_error`` (of estimates; null without one),
        ``probability_lower`` and ``probability_upper``, which are certain.
        Of rules: the name of the ``rule`` first, then the columns of all of them, null in the rows of a rule
        without them. If a rule suppresses alerts, ``suppressed`` comes last: how many of the group were left
        out since the one told before. No ``largest_interval`` and ``parameters`` with rules. A Spark frame
        is read once for all rules; ``known_until``, and what a stream refuses, such as ORDER BY, are errors.
        For a streaming frame of Spark the column ``kind`` comes first: ``match`` or ``late``. Rows of late
        events have their bounds in ``range_lower`` and ``range_upper``, and in the last two columns,
        ``late_type`` and ``late_id``, what they are; all else is null.

    Raises
    ------
    QuerySyntaxError, QueryError
        If the query cannot be read, or not be answered on these columns, or a parameter has no value.
    TraceError
        If the events are not as described.
    OptionError
        If an option has no such value, or the query no such parameter.
    MatchLimitError
        If there are more than ``max_matches`` matches to hold.
    TimeLimitError
        If it takes longer than ``timeout``.
    MemoryLimitError
        If the process would hold more than ``memory_limit``, or the system gives no more.
    ConfidenceCostError
        If the confidence of a match takes too many steps, or the probability of a group does.

    Warns
    -----
    UncertainCepWarning
        If there are no events, or none of a type that the pattern names; if no event can be a variable; if a
        percentage such as ``95%`` is compared with a column that goes far beyond 1; of columns of clocks that
        say nothing, such as ``sequence`` without ``source``. Each once, of Spark frames in the same words.

    See Also
    --------
    uncertain_cep.plan.MatchOptions : what exactly each option means, and which exclude each other.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 4").to_pylist()
    [{'a': 7, 'b': 8, 'range_lower': 1, 'range_upper': 4, 'confidence': 0.625}]
    """
    options = MatchOptions.among(locals())
    stream = _stream_options(of_streams)
    frame: Any = events
    result: Any
    if isinstance(query, Rules):
        result = _of_rules(frame, query, options, stream)
        return result  # type: ignore[no-any-return]
    if library_of(frame) == "pyspark":
        _refuse_limits(options)
        from uncertain_cep.spark.matching import matches_frame

        result = matches_frame(frame, query, options, diagnostics=Diagnostics(), stream=stream)
        _warn_of_streams(of_streams)
        return result  # type: ignore[no-any-return]
    if stream.given:
        raise OptionError(
            "largest_interval=, idle_after= and duplicates= are for streaming frames of Spark: events that "
            "come bit by bit in this process are for IncrementalMatcher"
        )
    plan, batches = _batches(frame, query, options, widens=True)
    result = _like(finished(plan, metered(progress, batches), options.limit), frame, options)
    return result  # type: ignore[no-any-return]


def _refuse_limits(options: MatchOptions) -> None:
    """Raise OptionError if an option is of this process, and the frame is one of Spark."""
    if options.threads is not None:
        raise OptionError("threads= is for frames in this process: a task of Spark has one thread")
    if options.limit is not None:
        raise OptionError(
            "timeout= and memory_limit= are for frames in this process: Spark computes matches when they "
            "are used, so set limits there, or use 'uncertain-cep match --time-limit'"
        )


def _stream_options(of_streams: Mapping[str, Any]) -> StreamOptions:
    """Return the options of a stream; others are none that match has."""
    names = list(OfStreams.__annotations__)
    for name in of_streams:
        if name not in names:
            taken = [option for option in inspect.signature(match).parameters if option != "of_streams"]
            raise OptionError(f"match has no option {name}={did_you_mean(name, taken)}")
    return StreamOptions(**of_streams)


def _warn_of_streams(of_streams: Mapping[str, Any]) -> None:
    """Warn of options that another function takes."""
    for name in of_streams:
        warn(
            f"{name}= of match is for streams alone: give it to uncertain_cep.spark.match(frame, query), "
            "where streams are made; match takes it until version 0.3"
        )


def _like(table: pa.Table, frame: Any, options: MatchOptions) -> Any:
    """Return matches as the kind of frame that was given."""
    if options.limit is not None and library_of(frame) == "pandas":
        options.limit.check(table.num_rows, table.nbytes)
    return like(table, frame)


def _of_rules(frame: Any, rules: Rules, options: MatchOptions, stream: StreamOptions) -> Any:
    """Return the answers of rules as one frame."""
    from uncertain_cep.rule_sets.rule_matching import answers_of, in_one_table

    if stream.given:
        raise OptionError(
            "largest_interval=, idle_after= and duplicates= are for streams: rules on a streaming frame are "
            "for uncertain_cep.spark.match(frame, rules), on events that come bit by bit for RuleMatcher"
        )
    if library_of(frame) == "pyspark":
        _refuse_limits(options)
        from uncertain_cep.spark.rule_frames import alerts_frame

        return alerts_frame(frame, rules, options)
    return _like(in_one_table(answers_of(frame, rules, options)), frame, options)


@public
def iter_matches(
    events: Any,
    query: Query | str,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    evaluation: str = "auto",
    confidence: bool = True,
    approximate: Approximation | float | None = None,
    undecided: str = "error",
    batch_rows: int = BATCH_ROWS,
    max_matches: int | None = None,
    kleene: str = "matches",
    planner: str = "auto",
    latency_weight: float = 0.0,
    sources: bool = True,
    known_until: int | str | date | None = None,
    parameters: Mapping[str, Any] | None = None,
    threads: int | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
    progress: bool | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of a query in batches, in memory bounded by the batch whatever their number.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
    query, names, tick, evaluation, confidence, approximate, max_matches, kleene, planner, latency_weight
        As for :func:`match`; by default there is no limit. So are ``undecided``, ``parameters``, ``sources``
        and ``known_until``.
    batch_rows : int
        Most matches in a batch.
    threads : int, optional
        As for :func:`match`. A thread is ahead of the caller by a few batches. With several threads the
        iterator does not go on in a forked process.
    timeout : float, optional
        Seconds, from this call on, after which the search for the next batch is stopped with an error; what
        the caller does between batches is never stopped, and its time counts.
    memory_limit, progress
        As for :func:`match`.

    Yields
    ------
    pyarrow.RecordBatch
        With the columns of :func:`match`. With ORDER BY, LIMIT, OUTPUT NON OVERLAPPING, EXPECTED COUNT or
        PROBABILITY the result is held, and yielded at the end.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> batches = uc.iter_matches(events, "PATTERN SEQ(A a, B b) WITHIN 4", batch_rows=1000)
    >>> sum(batch.num_rows for batch in batches)
    1
    """
    if library_of(events) == "pyspark":
        raise OptionError(
            "iter_matches reads frames in this process: use match, whose result is a Spark frame"
        )
    batch_rows = min(batch_rows, MOST_BATCH_ROWS)
    options = MatchOptions.among(locals())
    plan, batches = _batches(events, query, options)
    batches = metered(progress, batches)
    if not plan.needs_all:
        return guarded(batches)
    return iter(finished(plan, batches, options.limit).to_batches(max_chunksize=batch_rows))


def _batches(
    events: Any, query: Query | str, options: MatchOptions, *, widens: bool = False
) -> tuple[EvaluationPlan, Iterator[pa.RecordBatch]]:
    table = with_all_bounds(event_table(events, options.names), options.names.lower)
    options = replace(options, takes_spans=True)
    with naming_spoiled_rows(table):
        plan = remembered_plan(query, table.schema, options)
    if widens:
        plan = plan.widening()
    return plan, execute_within(plan, table, options, Diagnostics())


@public
def explain(
    query: Query | str | Rules,
    events: Any = None,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    evaluation: str = "auto",
    planner: str = "auto",
    latency_weight: float = 0.0,
    sources: bool = True,
    known_until: int | str | date | None = None,
    parameters: Mapping[str, Any] | None = None,
    analyze: bool = False,
    format: str = "text",
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> str:
    """Return how a query is evaluated; on events, with what is known of them and the plan that follows.

    Parameters
    ----------
    query : Query, str or Rules
        Of rules it says what they share; it needs events of this process.
    events : frame, optional
        As for :func:`match`.
    names, tick, evaluation, planner, latency_weight, parameters, sources, known_until
        As for :func:`match`.
    analyze : bool
        Whether to find the matches, and set the actual numbers of partial matches beside the estimated ones.
        If there is none, it says which conditions leave none, if left out one at a time on a sample.
    format : {"text", "json"}
        Words, or a JSON object with the same facts.
    timeout, memory_limit
        As for :func:`match`.

    Raises
    ------
    OptionError
        If an option has no such value, or ``analyze`` has no events in this process.
    TimeLimitError
        If it takes longer than ``timeout``.
    MemoryLimitError
        If the process would hold more than ``memory_limit``, or the system gives no more.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> text = uc.explain("PATTERN SEQ(A a, B b) WITHIN 4", events)
    >>> "window" in text
    True
    """
    options = MatchOptions.among(locals())
    return explained(query, events, options, analyze=analyze, format=format)


def explained(
    query: Query | str | Rules,
    events: Any,
    options: MatchOptions,
    *,
    analyze: bool = False,
    format: str = "text",
) -> str:
    """Do what :func:`explain` does, with its options in one."""
    if format not in ("text", "json"):
        raise OptionError(f"format={format!r} is unknown: use text or json")
    on_spark = library_of(events) == "pyspark"
    if analyze and (events is None or on_spark):
        raise OptionError("analyze=True runs the query in this process: give it events that are not Spark's")
    if isinstance(query, Rules):
        return _explained_rules(query, events, options, analyze=analyze, format=format)
    parsed = query_of(query, options.parameters)
    if events is None:
        return explain_query(parsed) if format == "text" else json.dumps(query_dict(parsed), indent=2)
    spark = None
    if on_spark:
        from uncertain_cep.spark import noted_schema
        from uncertain_cep.spark.file_jobs import describe_reading

        schema, table = schema_with_all_bounds(noted_schema(events, options.names), options.names.lower), None
        spark = describe_reading(events, parsed, options)
    else:
        table = with_all_bounds(event_table(events, options.names), options.names.lower)
        schema = table.schema
    options = replace(options, takes_spans=True)
    with naming_spoiled_rows(table):
        plan = make_plan(parsed, schema, options)
    with looked_at(options.limit):
        facts = plan_facts(plan, table, Diagnostics(), analyze=analyze)
        without = ""
        if table is not None and analyze and not any(_found(part) for part in facts):
            from uncertain_cep.explanation.nothing import conditions_that_leave_nothing

            without = conditions_that_leave_nothing(plan, table, options)
        if format == "text":
            return explain_plan(facts, spark, without)
        more = ({} if spark is None else {"spark": spark}) | ({"no_match": without} if without else {})
        return json.dumps(plan_dict(facts) | more, indent=2)


def _explained_rules(rules: Rules, events: Any, options: MatchOptions, *, analyze: bool, format: str) -> str:
    from uncertain_cep.rule_sets.shared_work import explain_rules

    if analyze or library_of(events) == "pyspark" or options.parameters:
        raise OptionError(
            "explain says of rules what they share on events of this process: leave out analyze= and "
            "parameters=, or explain one rule, uc.explain(rules['name'].query, events)"
        )
    with looked_at(options.limit):
        return explain_rules(rules, events, options, format)


def _found(facts: PlanFacts) -> bool:
    """Return whether a run found matches, or counted them."""
    return facts.chosen is None or facts.chosen.matches != 0
