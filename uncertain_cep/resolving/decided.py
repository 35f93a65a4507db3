"""``uc.deciding``: what would decide the answers of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, warn
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.plan.grouping import of_matches
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plan.options import is_whole
from uncertain_cep.plurals import counted
from uncertain_cep.query import Query, query_of
from uncertain_cep.query.syntax import Position, Probability
from uncertain_cep.resolving.by_what import BY, doubtful_answers, nothing_open, sources_table
from uncertain_cep.resolving.open_answers import open_answers
from uncertain_cep.resolving.shown import Deciding, sentence_of
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import event_table, library_of, like
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = ["decided", "deciding"]


@public
def deciding(
    events: Any,
    query: Query | str,
    *,
    by: str = "source",
    doubtful: int = 20,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    sources: bool = True,
    known_until: int | str | date | None = None,
    parameters: Mapping[str, Any] | None = None,
    threads: int | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> Deciding:
    """Return the times and clocks that would decide the answers of a query, were they known more exactly.

    An answer of probability P has the expected Brier score P (1 - P), which is 0 once it is certain. Knowing
    the time of an event, the offset of a clock, or whether an event happened takes the variance of P off it,
    given what is then known.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
        As for :func:`uncertain_cep.match`.
    query : Query or str
        With RETURN PROBABILITY each of its groups is an answer, else each match is. HAVING, ORDER BY, LIMIT,
        OUTPUT and what RETURN says of matches are left out.
    by : {"source", "type", "event"}
        What the times of events are summed by. Clocks are told apart always.
    doubtful : int
        How many of the most doubtful answers to list.
    names, tick, sources, known_until, parameters, threads, timeout, memory_limit
        As for :func:`uncertain_cep.match`.

    Returns
    -------
    Deciding
        ``print`` and notebooks show it; its tables are frames of the library of ``events``.

    Raises
    ------
    OptionError
        If the query returns expected counts, if ``by`` or ``doubtful`` has no such value, or if begin and end
        of an event that lasts are uncertain, and bounds of its length tie them.
    QuerySyntaxError, QueryError, TraceError, TimeLimitError, MemoryLimitError
        As of :func:`uncertain_cep.match`.

    Warns
    -----
    UncertainCepWarning
        If the effect of some things was too dear to compute; they are left out.

    Notes
    -----
    Exact: the probability of an answer given one time is a polynomial on pieces, so that few ticks tell its
    variance, whatever the length of intervals. Effects are those of one thing at a time, and do not add up.
    Of an event that lasts begin and end are two times, unless its length is certain.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [0, 5], "upper": [9, 5]})
    >>> result = uc.deciding(events, "PATTERN SEQ(A a, B b) WITHIN 99", by="event")
    >>> result.sources.to_pylist()[0]["name"], result.sources.to_pylist()[0]["share"]
    ('7', 1.0)
    """
    options = MatchOptions.among(locals())
    if library_of(events) == "pyspark":
        raise OptionError("deciding reads frames in this process: collect the events, with toArrow()")
    table = event_table(events, options.names)
    result = decided(query_of(query, options.parameters), table, options, by, doubtful)
    tables = result.sources, result.answers
    return replace(result, sources=like(tables[0], events), answers=like(tables[1], events))


def decided(query: Query, table: pa.Table, options: MatchOptions, by: str, doubtful: int) -> Deciding:
    """Do what :func:`deciding` does for a table of events, with its options in one."""
    if by not in BY:
        raise OptionError(f"by={by!r} is unknown: use source, type or event")
    if not is_whole(doubtful) or doubtful < 0:
        raise OptionError(f"doubtful={doubtful!r}: it must be a whole number, at least 0")
    if query.expected_count is not None:
        raise OptionError("the query returns expected counts: ask for matches, or with RETURN PROBABILITY")
    options = replace(options, takes_spans=True)
    table = with_all_bounds(table, options.names.lower)
    by_match = query.probability is None
    plain = of_matches(query)
    clause = query.probability or Probability(1, "probability", (), None, Position(1, 1))
    with naming_spoiled_rows(table):
        plan = make_plan(replace(plain, probability=clause), table.schema, options)
    answers = open_answers(plan, table, options, by_match=by_match)
    if answers is None:
        tables = nothing_open(plan, by_match)
    else:
        tables = sources_table(plan, answers, by), doubtful_answers(plan, answers, by_match, doubtful)
        if answers.given_up:
            count = counted(answers.given_up, "time", "times")
            warn(
                f"what {count} of events or clocks would decide takes too many steps: left out. Ask for "
                "smaller groups, by more names in BY or by EVERY, or for fewer matches by WITHIN and WHERE"
            )
    sentence = sentence_of(answers, tables[0], by)
    total = 0.0 if answers is None else float(answers.brier.sum())
    count_of_all = 0 if answers is None else len(answers.code)
    return Deciding(sentence, *tables, count_of_all, total, tables)
