"""``uc.elapsed``: how long it took from one time of a match to another one, given the match.

A quantile takes a confidence for each bit of the longest time: see `uncertain_cep.executor.times_between`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.timed.bounds import UNBOUND
from uncertain_cep.boundary import public
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.errors import OptionError, TraceError, absent_columns
from uncertain_cep.executor import execute_within
from uncertain_cep.executor.checked_events import CheckedEvents, names_of
from uncertain_cep.executor.times_between import ElapsedTimes, bisected, check_ends
from uncertain_cep.expressions.codes import codes_of, nulls_as_key, paired
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plan.lengths import ticks_in
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.results.matched_events import matched_events
from uncertain_cep.results.order import finished
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.timeline.domain import Names, lengths_in_ticks, mean_lengths_in_ticks
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import event_table, library_of, like

__all__ = ["elapsed"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


@public
def elapsed(
    events: Any,
    query: Query | str,
    of: Sequence[str],
    at_most: Sequence[Duration | int] = (),
    quantiles: Sequence[float] = (0.5, 0.99),
    by: str | Sequence[str] | None = None,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    sources: bool = True,
    threads: int | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> Any:
    """Return how long it took from one time of each match to another one, given that it is a match.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
        As for :func:`uncertain_cep.match`, moments or such that last.
    query : Query or str
    of : (str, str)
        The two times: a variable of one event, such as ``"a"``; of events that last ``"a.begin"`` or
        ``"a.end"``.
    at_most : sequence of str, timedelta or int
        Lengths such as ``"2s"``, or ticks: how likely it took no longer.
    quantiles : sequence of float
        Shares, above 0 and at most 1.
    by : str or sequence of str, optional
        Attributes of the event that the first time is of: a row for each group of matches in place of each
        match.
    names, tick, parameters, sources, threads, timeout, memory_limit
        As for :func:`uncertain_cep.match`.

    Returns
    -------
    the same kind of frame as the events
        Times are int64 ticks, or durations where a tick has a length; lists are as long as the parameter.

        Without ``by`` a row for each match that has both times: its events, ``confidence``,
        ``duration_lower`` and ``duration_upper``, the shortest and the longest time of its worlds, ``mean``,
        ``at_most``, a list of probabilities, and ``quantiles``, a list of times. All is said given that it is
        a match. The mean is in ticks, float64, or a duration to the microsecond (nanosecond, where ticks are
        shorter).

        With ``by`` the law of a match that is drawn by confidence: the columns of ``by``, ``matches``, the
        expected number of matches, ``mean``, ``at_most`` and ``quantiles``. ``expected`` lists how many
        matches with a time of at most each length are expected, ``certain`` how many there are in every
        world, and ``possible`` how many there may be. The last two are right whatever the laws of the times.

    Raises
    ------
    OptionError
        If ``of``, ``at_most``, ``quantiles`` or ``by`` has no such value, or if records of an ordered source
        overlap.
    QueryError, TraceError, ConfidenceCostError, TimeLimitError, MemoryLimitError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    Exact, as confidences are. A match takes a confidence for each length of ``at_most``, two for the mean,
    and one for each bit of its longest time for each quantile and both bounds. Where times are uniform and a
    relation or SEQ leaves them few orders, each is some hundred short sums, however many ticks the times have
    (`uncertain_cep.weighers.held_times`). Else it is a sum over ticks, which may be too dear.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [0, 3], "upper": [4, 6]})
    >>> took = uc.elapsed(events, "PATTERN SEQ(A a, B b) WITHIN 20", ("a", "b"), at_most=[2])
    >>> row, = took.to_pylist()
    >>> row["duration_lower"], row["duration_upper"], row["quantiles"]
    (1, 6, [3, 6])
    >>> round(row["mean"], 9), round(row["at_most"][0] * 17)
    (3.0, 7)
    """
    options = replace(MatchOptions.among(locals()), takes_spans=True)
    if library_of(events) == "pyspark":
        raise OptionError("elapsed reads frames in this process: collect the events, with toArrow()")
    table = with_all_bounds(event_table(events, options.names), options.names.lower)
    for name, values in (("of", of), ("at_most", at_most), ("quantiles", quantiles)):
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise OptionError(f"{name}={values!r}: it is a list")
    if not all(isinstance(time, str) for time in of):
        raise OptionError(f"of={of!r}: it names two times, such as ('a', 'b')")
    numbers: Sequence[Any] = quantiles
    if not all(isinstance(share, float | int) and 0 < share <= 1 for share in numbers):
        raise OptionError(f"quantiles={[*quantiles]!r}: each is above 0 and at most 1")
    shares = np.array([float(share) for share in quantiles])
    keys = names_of(by)
    if absent := [name for name in keys if name not in table.column_names]:
        raise TraceError(absent_columns(absent, table.column_names, advice="by= names columns of the events"))
    with looked_at(options.limit):
        plan, matches = _matches(table, query_of(query, values_of(parameters)), tuple(of), options)
        CheckedEvents.of(table, options).ranks("elapsed")
        events_of = partial(matched_events, matches=matches)
        times = ElapsedTimes.of_matches(plan, table, events_of, (of[0], of[1]))
        lengths = np.array([ticks_in(length, plan.domain, "at_most") for length in at_most], np.int64)
        rows = (
            _by_match(times, matches, lengths, shares)
            if by is None
            else _by_group(times, table.select(keys), lengths, shares)
        )
        return like(rows, events)


def _matches(
    table: pa.Table, query: Query, of: tuple[str, ...], options: MatchOptions
) -> tuple[EvaluationPlan, pa.Table]:
    """Return the plan of a query, and its matches."""
    if options.names.id not in table.column_names:
        raise TraceError(absent_columns([options.names.id], table.column_names))
    plan = make_plan(replace(query, returns=()), table.schema, options)
    check_ends(plan, of)
    batches = list(execute_within(plan, table, options, None))
    if plan.needs_all:
        return plan, finished(plan, batches, options.limit)
    return plan, pa.Table.from_batches(batches, plan.batch_schema)


def _by_match(times: ElapsedTimes, matches: pa.Table, lengths: Int64, shares: Float64) -> pa.Table:
    """Return the times of each match."""
    nanoseconds = times.plan.domain.tick_nanoseconds
    everyone = np.arange(len(times.match))
    confidence = times.confidence
    lower, upper = times.bounds
    below = [times.below(everyone, np.full(len(everyone), length)) for length in lengths.tolist()]
    reaches = [partial(_reaches, times, share) for share in shares.tolist()]
    times_of_shares = [bisected(lower, upper, of_share) for of_share in reaches]
    left_out = ("range_lower", "range_upper", "confidence", "std_error")
    names = [name for name in matches.column_names if name not in left_out]
    columns = {name: matches.column(name).take(pa.array(times.match)) for name in names}
    columns |= {
        "confidence": pa.array(confidence),
        "duration_lower": lengths_in_ticks(lower, nanoseconds),
        "duration_upper": lengths_in_ticks(upper, nanoseconds),
        "mean": mean_lengths_in_ticks(times.means(confidence, lower, upper), nanoseconds),
        "at_most": _lists([np.minimum(part / confidence, 1.0) for part in below], len(everyone)),
        "quantiles": _lists_of_lengths(times.plan, times_of_shares, len(everyone)),
    }
    return pa.table(columns).take(pa.array(np.argsort(times.match)))


def _reaches(times: ElapsedTimes, share: float, which: Int64, length: Int64) -> Mask:
    sought = share * times.confidence[which] * (1.0 - CONFIDENCE_TOLERANCE)
    return np.asarray(times.below(which, length) >= sought, np.bool_)


def _by_group(times: ElapsedTimes, by: pa.Table, lengths: Int64, shares: Float64) -> pa.Table:
    """Return the times of a match of each group that is drawn by confidence."""
    everyone = np.arange(len(times.match))
    keys = by.take(pa.array(times.row)).columns
    group = np.zeros(len(everyone), np.int64)
    for key in keys:
        group = paired(group, nulls_as_key(codes_of([key])[0][0]))
    _, begin, group = np.unique(group, return_index=True, return_inverse=True)
    group, count = group.reshape(-1), len(begin)

    def summed(values: Any) -> Float64:
        return np.bincount(group, np.asarray(values, np.float64), count).astype(np.float64)

    confidence = times.confidence
    lower, upper = times.bounds
    total = summed(confidence)
    expected = [summed(times.below(everyone, np.full(len(everyone), x))) for x in lengths.tolist()]
    sure = confidence >= 1.0 - CONFIDENCE_TOLERANCE
    first, last = np.full(count, UNBOUND), np.full(count, -UNBOUND)
    np.minimum.at(first, group, lower)
    np.maximum.at(last, group, upper)

    def reaches(share: float, groups: Int64, x: Int64) -> Mask:
        length = np.full(count, -UNBOUND)
        length[groups] = x
        which = np.flatnonzero(length[group] > -UNBOUND)
        part = np.zeros(len(everyone))
        part[which] = times.below(which, length[group[which]])
        sought = share * total[groups] * (1.0 - CONFIDENCE_TOLERANCE)
        return np.asarray(summed(part)[groups] >= sought, np.bool_)

    times_of_shares = [bisected(first, last, partial(reaches, share)) for share in shares.tolist()]
    mean = summed(confidence * times.means(confidence, lower, upper)) / total
    columns = {name: key.take(pa.array(begin)) for name, key in zip(by.column_names, keys, strict=True)}
    columns |= {
        "matches": pa.array(total),
        "mean": mean_lengths_in_ticks(mean, times.plan.domain.tick_nanoseconds),
        "at_most": _lists([np.minimum(part / total, 1.0) for part in expected], count),
        "quantiles": _lists_of_lengths(times.plan, times_of_shares, count),
        "expected": _lists(expected, count),
        "certain": _lists([summed(sure & (upper <= x)).astype(np.int64) for x in lengths], count),
        "possible": _lists([summed(lower <= x).astype(np.int64) for x in lengths], count),
    }
    return pa.table(columns)


def _lists_of_lengths(plan: EvaluationPlan, columns: list[Int64], count: int) -> pa.Array:
    flat = np.stack(columns, axis=1).ravel() if columns else np.zeros(0, np.int64)
    return _of_lists(lengths_in_ticks(flat, plan.domain.tick_nanoseconds), len(columns), count)


def _lists(columns: Sequence[NDArray[Any]], count: int) -> pa.Array:
    """Return lists of the values of columns, row by row."""
    flat = np.stack(columns, axis=1).ravel() if len(columns) else np.zeros(0)
    return _of_lists(pa.array(flat), len(columns), count)


def _of_lists(flat: pa.Array, each: int, count: int) -> pa.Array:
    """Return lists of so many values each."""
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * each, pa.int32()), flat)
