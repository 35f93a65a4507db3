"""Inspection of matches: their events, and when these happened."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from uncertain_cep.boundary import public
from uncertain_cep.config.limits import PMF_TICKS
from uncertain_cep.errors import OptionError
from uncertain_cep.files.atomic_output import written_aside
from uncertain_cep.files.special_files import check_written_here
from uncertain_cep.plan import COMPRESSED_COLUMNS, MatchOptions, make_plan
from uncertain_cep.plan.lasting import schema_with_all_bounds, with_all_bounds
from uncertain_cep.plan.options import is_whole
from uncertain_cep.query import Query, parse, query_of, values_of
from uncertain_cep.results.display import MatchTable, match_table
from uncertain_cep.results.matched_events import events_table
from uncertain_cep.running.resource_limits import Limits, looked_at
from uncertain_cep.timeline.domain import STAMP_METADATA, Names
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import as_arrow, event_table, library_of, like
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

if TYPE_CHECKING:
    from uncertain_cep.reporting.gathered import ReportRequest
    from uncertain_cep.reporting.page import Report

__all__ = ["events_of", "posteriors", "report", "show"]

FrameT = TypeVar("FrameT")


@public
def events_of(
    matches: Any,
    events: FrameT,
    query: Query | str,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> FrameT:
    """Return the events of matches, a row each, with all their columns.

    Parameters
    ----------
    matches : frame
        What :func:`uncertain_cep.match` returned for this query, or some of its rows: the partition
        attributes and the columns of the variables are read. A Spark frame if the events are one.
    events : frame
        The events that were matched, as for :func:`uncertain_cep.match`.
    query : Query or str
    names, tick, parameters
        As they were for :func:`uncertain_cep.match`.

    Returns
    -------
    the same kind of frame as the events
        By match, then in the order of the pattern: ``match`` (the number of the row, from 0; on Spark any
        number of its own), ``variable``, ``position`` (the place in the list of a Kleene variable, from 1;
        else 1), and the columns of the events.

    Raises
    ------
    OptionError
        If the matches lack a column that is needed, have events that are not there, or if the events have a
        column ``match``, ``variable`` or ``position``.

    Notes
    -----
    Spark computes the join when it is used: an id that no event has is then a row without an event.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({
    ...     "type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [5, 6], "cpu": [90, 20],
    ... })
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 4"
    >>> found = uc.events_of(uc.match(events, query), events, query)
    >>> found.select(["match", "variable", "id", "cpu"]).to_pylist()
    [{'match': 0, 'variable': 'a', 'id': 7, 'cpu': 90}, {'match': 0, 'variable': 'b', 'id': 8, 'cpu': 20}]
    """
    # Which events matches have does not depend on clocks.
    options = MatchOptions(names=Names.of(names), tick=tick, sources=False, takes_spans=True)
    parsed = query_of(query, values_of(parameters))
    frame: Any = events
    result: Any
    if _both_on_spark(matches, events):
        from uncertain_cep.spark.joined_events import joined_events

        result = joined_events(matches, frame, parsed, options)
        return result  # type: ignore[no-any-return]
    table = event_table(frame, options.names)
    with naming_spoiled_rows(table):
        plan = make_plan(parsed, schema_with_all_bounds(table.schema, options.names.lower), options)
    result = like(events_table(plan, table, as_arrow(matches)), frame)
    return result  # type: ignore[no-any-return]


def _both_on_spark(matches: Any, events: Any) -> bool:
    """Return whether matches and events are frames of Spark; OptionError if one of them is."""
    kinds = {library_of(matches) == "pyspark", library_of(events) == "pyspark"}
    if len(kinds) == 2:
        raise OptionError("the matches and the events must both be Spark frames, or neither")
    return True in kinds


@public
def posteriors(
    matches: Any,
    events: FrameT,
    query: Query | str,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    sources: bool = True,
    pmf_ticks: int = PMF_TICKS,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> FrameT:
    """Return when each event of each match happened, given that the match did.

    Parameters
    ----------
    matches, events, query, names, tick, parameters
        As for :func:`events_of`.
    sources : bool
        As it was for :func:`uncertain_cep.match`.
    pmf_ticks : int
        List the probability of every tick of intervals with at most so many; 0 for none.
    timeout, memory_limit
        As for :func:`uncertain_cep.match`.

    Returns
    -------
    the same kind of frame as the events
        ``match``, ``variable`` and ``position`` as of :func:`events_of`, and ``id``. If events may last, each
        that does has two rows, whose ``time`` is ``begin`` and ``end`` (null of moments), and there are
        ``lower`` and ``upper``, the bounds of the time. ``mean``: for events in
        ticks a number, else a time. ``q025``, ``q25``, ``q50``, ``q75``, ``q975``: the first tick up to which
        the event happened with this probability. ``pmf``: the probability of each tick of its interval, as
        the column ``pmf`` of events; null for longer intervals.

    Raises
    ------
    OptionError
        As of :func:`events_of`; also for rows of ``kleene="compressed"``, which are many matches each, and
        for a row that matches in no world.
    ConfidenceCostError
        If the confidence of a match takes too many steps.
    TimeLimitError, MemoryLimitError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    Exact up to float64 rounding, as confidences are. A quantile of a plain match takes about as many
    confidences as its interval has bits; a listed probability takes one.

    Spark computes them when the result is used: workers get the matches of some keys and times together with
    the events that matter to them. Without the columns ``range_lower`` and ``range_upper`` those of a key are
    in one place. With them the matches are used twice: ``cache()`` them if they are dear to compute.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 4"
    >>> found = uc.posteriors(uc.match(events, query), events, query)
    >>> [[round(p, 3) for p in pmf] for pmf in found["pmf"].to_pylist()]
    [[0.4, 0.4, 0.2, 0.0], [0.4, 0.6]]
    """
    options = MatchOptions(
        names=Names.of(names), tick=tick, sources=sources, limit=Limits.of(timeout, memory_limit),
        takes_spans=True,
    )  # fmt: skip
    parsed = query_of(query, values_of(parameters))
    if not is_whole(pmf_ticks) or pmf_ticks < 0:
        raise OptionError(f"pmf_ticks={pmf_ticks!r}: it must be a whole number, at least 0")
    frame: Any = events
    on_spark = _both_on_spark(matches, events)
    held = matches if on_spark else as_arrow(matches)
    if set(COMPRESSED_COLUMNS) <= set(held.columns if on_spark else held.column_names):
        raise OptionError('a row of kleene="compressed" is many matches: match without it')
    result: Any
    if on_spark:
        from uncertain_cep.spark.joined_posteriors import joined_posteriors

        if options.limit is not None:
            raise OptionError("timeout= and memory_limit= are for frames in this process")
        result = joined_posteriors(held, frame, parsed, options, pmf_ticks)
        return result  # type: ignore[no-any-return]
    table = with_all_bounds(event_table(frame, options.names), options.names.lower)
    with naming_spoiled_rows(table):
        plan = make_plan(parsed, table.schema, options)
    from uncertain_cep.executor import check_table
    from uncertain_cep.results.posteriors import posterior_table

    check_table(plan, table)
    with looked_at(options.limit):
        result = like(posterior_table(plan, table, held, pmf_ticks), frame)
    return result  # type: ignore[no-any-return]


@public
def report(
    events: Any,
    query: Query | str,
    path: str | PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    stamp: str | None = None,
    truth: str | tuple[str, str] | None = None,
    title: str | None = None,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    sources: bool = True,
    known_until: int | str | date | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> Report:
    """Return the matches of a query as one page of HTML to look at, which needs nothing else.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas, Polars or Spark DataFrame
        As for :func:`uncertain_cep.match`.
    query : Query or str
    path : path, optional
        Where to write the page as well.
    overwrite : bool
        Whether to replace a file that is there.
    stamp : str, optional
        The column of the raw stamps, to compare the answer with that on stamps. Default: that of
        :func:`uncertain_cep.read_traces` with ``raw_stamps=True``. Where an event has none, the middle of its
        interval stands for it.
    truth : str or tuple of str, optional
        The column of true times, for a chart of how often answers happened: the page then shows what
        :func:`uncertain_cep.calibration` says. An event without a true time did not happen. Of events that
        last a tuple of two, of true begins and true ends.
    title : str, optional
        Default: the comment that the query begins with, or its pattern in words.
    names, tick, parameters, sources, known_until
        As for :func:`uncertain_cep.match`.
    timeout, memory_limit
        As for :func:`uncertain_cep.match`; ``memory_limit`` not of Spark frames.

    Returns
    -------
    Report
        A notebook shows it. ``path`` is the file, or None, ``str(report)`` the HTML.

    Raises
    ------
    OptionError
        If the query returns expected counts, or probabilities of a Spark frame, there is no such column,
        ``truth`` is asked for of a Spark frame or does not fit the events, or the file is there already.
    QuerySyntaxError, QueryError, TraceError, ConfidenceCostError, TimeLimitError, MemoryLimitError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    With RETURN PROBABILITY the page shows a bar for each group, with its best matches on demand, and with
    EVERY a heat map. A group that would take too long has certain bounds. Of other queries the page says by
    key how likely there is a match, where there are at most 100 keys.

    The page has the 10,000 best matches, and totals of all. What is in the trace is shown as text, never run.
    Of a Spark frame these matches, and the events that are drawn with them, are all that comes to this
    process. It is read several times: ``cache()`` one that is dear to compute.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> page = uc.report(events, "PATTERN SEQ(A a, B b) WITHIN 4")
    >>> str(page).startswith("<!doctype html>")
    True
    """
    from uncertain_cep.reporting.gathered import ReportRequest

    options = MatchOptions(
        names=Names.of(names),
        tick=tick,
        sources=sources,
        known_until=known_until,
        limit=Limits.of(timeout, memory_limit),
    )
    request = ReportRequest(query_of(query, values_of(parameters)), options, stamp, title=title, truth=truth)
    if path is None:
        return _reported(request, events, None)
    # A path has one slash where a URL has two.
    check_written_here(path)
    place = Path(path)
    with written_aside(place, _replaced_if(overwrite)) as aside:
        page = _reported(request, events, place)
        aside.write_text(page.html, encoding="utf-8")
    return page


def _replaced_if(overwrite: bool) -> Callable[[Path], bool]:
    """Return the check whether a file may be replaced, see `written_aside`."""

    def check(place: Path) -> bool:
        if place.is_dir():
            raise OptionError(f"{place} is a folder: name a file, such as report.html")
        if os.path.lexists(place) and not overwrite:
            raise OptionError(f"{place} is there already: name another place, or add overwrite=True")
        return overwrite

    return check


def _reported(request: ReportRequest, events: Any, path: Path | None) -> Report:
    from uncertain_cep.reporting.facts import report_facts
    from uncertain_cep.reporting.gathered import gathered
    from uncertain_cep.reporting.page import Report, page_of, summary_of

    limit = request.options.limit
    if library_of(events) == "pyspark":
        from uncertain_cep.spark.dataframes import noted_stamp
        from uncertain_cep.spark.reported import gathered_on_spark

        if limit is not None and limit.memory is not None:
            raise OptionError("memory_limit= is for frames in this process: workers have limits of their own")
        if request.truth is not None:
            raise OptionError("truth= is for frames in this process: collect the events, with toArrow()")
        if request.stamp is None:
            request = replace(request, stamp=noted_stamp(events))
        answer = gathered_on_spark(request, events)
    else:
        table = event_table(events, request.options.names)
        noted = (table.schema.metadata or {}).get(STAMP_METADATA, b"").decode()
        if request.stamp is None and noted in table.column_names:
            request = replace(request, stamp=noted)
        with looked_at(limit):
            answer = gathered(request, table)
    facts = report_facts(request, answer)
    return Report(page_of(facts), path, summary_of(facts["totals"]))


@public
def show(matches: Any, query: Query | str | None = None, *, rows: int = 20) -> MatchTable:
    """Return matches as a table to look at, the best first.

    Parameters
    ----------
    matches : frame
        What :func:`uncertain_cep.match` returned, or some of its rows or columns. Of a Spark frame only the
        rows shown are fetched, and nothing is counted.
    query : Query or str, optional
        With it, what RETURN says of a variable stands for the id of its event.
    rows : int
        Show at most so many.

    Returns
    -------
    MatchTable
        A notebook shows it as a table, a shell and ``print`` as text. ``range`` is the time range, in UTC
        if times have a time zone; ``probability`` the confidence.

    Raises
    ------
    OptionError, TraceError
        If ``rows`` is no whole number from 1 on, or there is no such kind of frame.
    QuerySyntaxError
        If the query cannot be parsed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({
    ...     "type": ["A", "B", "B"], "id": [7, 8, 9], "lower": [1, 3, 8], "upper": [4, 4, 9],
    ...     "host": ["x", "y", "z"],
    ... })
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN b.host"
    >>> uc.show(uc.match(events, query), query)
    2 matches, the best first
      a  b.host  range  probability
      7  z       1 \N{EN DASH} 9  certain
      7  y       1 \N{EN DASH} 4  62.5%
    """
    if not is_whole(rows) or rows < 1:
        raise OptionError(f"rows={rows!r}: it must be a whole number, at least 1")
    # What parameters stand for does not show.
    parsed = query if query is None or isinstance(query, Query) else parse(query)
    if library_of(matches) != "pyspark":
        table = as_arrow(matches)
        return match_table(table, parsed, rows, table.num_rows)
    if "confidence" in matches.columns:
        matches = matches.orderBy("confidence", ascending=False)
    return match_table(matches.limit(rows).toArrow(), parsed, rows, None)
