"""``uc.elapsed``: how long it took from one time of a match to another one, given the match.

``P(t_b - t_a <= x, match)`` is the confidence of the query with one more condition. A match whose pattern has
no negation depends on its events alone. So all matches are asked at once, each with a bound of its own: their
events become the events of one table, a partition for each match. A quantile takes a confidence for each bit
of the longest time.

**Mean.** Of the ticks before the last one at which t can be, ``t - first`` are earlier than t. So the mean of
that number is how many there are, times the probability that one of them, drawn alike, is earlier. It is the
confidence with one more event that must not be at t or behind it, whatever the law of t:

    E[t_b - first_b; match] = (last_b - first_b) P(match, u < t_b),    u alike on first_b .. last_b - 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.timed.bounds import UNBOUND
from uncertain_cep.boundary import public
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.errors import OptionError, TraceError, absent_columns
from uncertain_cep.executor import execute, execute_within
from uncertain_cep.executor.checked_events import CheckedEvents, names_of
from uncertain_cep.expressions.codes import codes_of, nulls_as_key, paired
from uncertain_cep.joining.two_sides import Ends
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plan.lengths import ticks_in
from uncertain_cep.query import Query, parse, query_of, values_of
from uncertain_cep.query.returned_times import TIME_COLUMNS, ends_of_item
from uncertain_cep.query.syntax import Component, Conjunction, ReturnItem, Time, expressions_in
from uncertain_cep.results.matched_events import matched_events
from uncertain_cep.results.order import finished
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.running.threads import threads_or_all
from uncertain_cep.timeline.domain import Names, lengths_in_ticks
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import event_table, library_of, like

__all__ = ["check_times", "elapsed", "with_returned_times"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MATCH, _BOUND = "elapsed_match", "elapsed_bound"
"""Attributes of the copies of events: the number of their match, and its bound."""

_EARLIER: Final = "elapsed_earlier"
"""The type, and the variable, of an event that is to be earlier than a time."""

_SIGNS: Final = ("<=", ">=")


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
        Single events, of which none is negated, by skip till any match.
    of : (str, str)
        The two times: a variable, such as ``"a"``; of events that last ``"a.begin"`` or ``"a.end"``.
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

        Without ``by`` a row for each match: its events, ``confidence``, ``duration_lower`` and
        ``duration_upper``, the shortest and the longest time of its worlds, ``mean``, ``at_most``, a list of
        probabilities, and ``quantiles``, a list of times. All is said given that it is a match. The mean is
        in ticks, float64, or a duration to the microsecond (nanosecond, where ticks are shorter).

        With ``by`` the law of a match that is drawn by confidence: the columns of ``by``, ``matches``, the
        expected number of matches, ``mean``, ``at_most`` and ``quantiles``. ``expected`` lists how many
        matches with a time of at most each length are expected, ``certain`` how many there are in every
        world, and ``possible`` how many there may be. The last two are right whatever the laws of the times.

    Raises
    ------
    OptionError
        If ``of``, ``at_most``, ``quantiles`` or ``by`` has no such value, if the pattern has negations,
        Kleene components, OR or another strategy, or if records of an ordered source overlap.
    QueryError, TraceError, ConfidenceCostError, TimeLimitError, MemoryLimitError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    Exact, as confidences are. A match takes a confidence for each length of ``at_most``, two for the mean,
    and one for each bit of its longest time for each quantile and both bounds.

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
        plan, matches, events_of_matches = _matches(
            table, query_of(query, values_of(parameters)), tuple(of), options
        )
        times = _Times.of(plan, table, events_of_matches, tuple(of), options)
        lengths = np.array([ticks_in(length, plan.domain, "at_most") for length in at_most], np.int64)
        rows = (
            times.by_match(matches, lengths, shares) if by is None else times.by_group(keys, lengths, shares)
        )
        return like(rows, events)


def _matches(
    table: pa.Table, query: Query, of: tuple[str, ...], options: MatchOptions
) -> tuple[EvaluationPlan, pa.Table, Int64]:
    """Return the plan of a query, its matches, and the rows of their events, (k, l) int64."""
    names = options.names
    if names.id not in table.column_names:
        raise TraceError(absent_columns([names.id], table.column_names))
    # Rows are numbers, whatever the ids of the events are.
    place = table.schema.get_field_index(names.id)
    numbered = table.set_column(place, names.id, pa.array(np.arange(table.num_rows)))
    plan = make_plan(replace(query, returns=()), numbered.schema, options)
    check_times(plan, of)
    variables = [part.variable for part in plan.components]
    batches = list(execute_within(plan, numbered, options, None))
    if plan.needs_all:
        matches = finished(plan, batches, options.limit)
    else:
        matches = pa.Table.from_batches(batches, plan.batch_schema)
    rows = np.stack([matches.column(name).to_numpy() for name in variables], axis=1)
    ids = table.column(names.id)
    for name in variables:
        place = matches.schema.get_field_index(name)
        matches = matches.set_column(place, name, ids.take(matches.column(name)))
    return plan, matches, rows


def check_times(plan: EvaluationPlan, of: tuple[str, ...]) -> None:
    """Raise OptionError if a plan has no such two times, or its matches depend on more than single events."""
    _check(plan)
    _ends_of(of, [part.variable for part in plan.components])


def with_returned_times(
    plan: EvaluationPlan,
    table: pa.Table,
    matches: pa.Table,
    items: Sequence[ReturnItem],
    options: MatchOptions,
) -> pa.Table:
    """Return matches of a plan with the times between ends that RETURN asks for, ahead of their ranges."""
    plain = MatchOptions(
        names=options.names, tick=options.tick, sources=options.sources, threads=options.threads,
        takes_spans=True,
    )  # fmt: skip
    (of_plan,) = matched_events(plan, table, matches)
    rows = of_plan.row.reshape(-1, len(plan.components))
    for item in items:
        columns = _Times.of(plan, table, rows, ends_of_item(item), plain).columns()
        for part, column in zip(TIME_COLUMNS, columns, strict=True):
            name = f"{item.name}_{part}"
            if name in matches.column_names:
                raise OptionError(f"two columns of the result would be called {name!r}: name one with AS")
            place = matches.schema.get_field_index("range_lower")
            matches = matches.add_column(place, name, column)
    return matches


@dataclass(frozen=True)
class _Times:
    """The times from one event of each match to another one.

    Attributes
    ----------
    plan : EvaluationPlan
    bounded : dict of Query
        By the sign of a bound: the pattern and its conditions, with that bound of each match.
    after : tuple of Query
        The pattern and its conditions, with an event that is earlier than the first time, and than the last.
    ends : ((2, k) int64, (2, k) int64)
        Bounds of the first time and of the last one.
    options : MatchOptions
    table : pyarrow.Table
    rows : (k, l) int64
        The events of each match.
    first : int
        The component that the first time is of.
    low, high : (k,) int64
        Ticks that each time is between, whatever else holds.
    """

    plan: EvaluationPlan
    bounded: Mapping[str, Query]
    after: tuple[Query, ...]
    ends: tuple[Int64, Int64]
    options: MatchOptions
    table: pa.Table
    rows: Int64
    first: int
    low: Int64
    high: Int64

    @classmethod
    def of(
        cls, plan: EvaluationPlan, table: pa.Table, rows: Int64, of: tuple[str, ...], options: MatchOptions
    ) -> _Times:
        """Return the times of matches of a plan, whose events are rows."""
        query = plan.query
        first, last = _ends_of(of, [part.variable for part in plan.components])
        checked = CheckedEvents.of(table, options)
        checked.ranks("elapsed")
        bounds = Ends.of(checked)
        ends = [
            (bounds.end if time.endswith(".end") else bounds.begin)[:, rows[:, component]]
            for time, component in zip(of, (first, last), strict=True)
        ]
        # The events are matches already: what does not speak of times holds.
        conditions = [
            part for part in query.where if any(isinstance(one, Time) for one in expressions_in(part))
        ]
        pattern = replace(
            query, where=tuple(conditions), returns=(), min_confidence=None, having=None,
            order_by_confidence=False, order_by=(), limit=None, non_overlapping=False,
        )  # fmt: skip
        return cls(
            plan, {sign: _with_bound(pattern, of, sign) for sign in _SIGNS},
            tuple(_after_another(pattern, time) for time in of), (ends[0], ends[1]), options, table, rows,
            first, ends[1][0] - ends[0][1], ends[1][1] - ends[0][0],
        )  # fmt: skip

    def columns(self) -> list[pa.Array]:
        """Return the shortest, the longest and the mean time of each match."""
        confidence = self.below(np.arange(len(self.rows)), self.high)
        lower, upper = self._bounds()
        mean = self._as_means(self._means(confidence, lower, upper))
        return [self._as_lengths(lower), self._as_lengths(upper), mean]

    def by_match(self, matches: pa.Table, lengths: Int64, shares: Float64) -> pa.Table:
        """Return the times of each match."""
        everyone = np.arange(len(self.rows))
        confidence = self.below(everyone, self.high)
        lower, upper = self._bounds()
        below = [self.below(everyone, np.full(len(everyone), length)) for length in lengths.tolist()]
        reaches = [partial(self._reaches, share, confidence) for share in shares.tolist()]
        times = [_bisected(lower, upper, of_share) for of_share in reaches]
        left_out = ("range_lower", "range_upper", "confidence", "std_error")
        names = [name for name in matches.column_names if name not in left_out]
        columns = {name: matches.column(name) for name in names}
        columns |= {
            "confidence": pa.array(confidence),
            "duration_lower": self._as_lengths(lower),
            "duration_upper": self._as_lengths(upper),
            "mean": self._as_means(self._means(confidence, lower, upper)),
            "at_most": _lists([np.minimum(part / confidence, 1.0) for part in below], len(everyone)),
            "quantiles": self._lists_of_lengths(times, len(everyone)),
        }
        return pa.table(columns)

    def by_group(self, by: Sequence[str], lengths: Int64, shares: Float64) -> pa.Table:
        """Return the times of a match of each group that is drawn by confidence."""
        everyone = np.arange(len(self.rows))
        keys = [self.table.column(name).take(pa.array(self.rows[:, self.first])) for name in by]
        group = np.zeros(len(everyone), np.int64)
        for key in keys:
            group = paired(group, nulls_as_key(codes_of([key])[0][0]))
        _, begin, group = np.unique(group, return_index=True, return_inverse=True)
        group, count = group.reshape(-1), len(begin)

        def summed(values: Any) -> Float64:
            return np.bincount(group, np.asarray(values, np.float64), count).astype(np.float64)

        confidence = self.below(everyone, self.high)
        lower, upper = self._bounds()
        total = summed(confidence)
        expected = [summed(self.below(everyone, np.full(len(everyone), x))) for x in lengths.tolist()]
        sure = confidence >= 1.0 - CONFIDENCE_TOLERANCE
        first, last = np.full(count, UNBOUND), np.full(count, -UNBOUND)
        np.minimum.at(first, group, lower)
        np.maximum.at(last, group, upper)

        def reaches(share: float, groups: Int64, x: Int64) -> Mask:
            length = np.full(count, -UNBOUND)
            length[groups] = x
            which = np.flatnonzero(length[group] > -UNBOUND)
            part = np.zeros(len(everyone))
            part[which] = self.below(which, length[group[which]])
            sought = share * total[groups] * (1.0 - CONFIDENCE_TOLERANCE)
            return np.asarray(summed(part)[groups] >= sought, np.bool_)

        times = [_bisected(first, last, partial(reaches, share)) for share in shares.tolist()]
        columns = {name: key.take(pa.array(begin)) for name, key in zip(by, keys, strict=True)}
        columns |= {
            "matches": pa.array(total),
            "mean": self._as_means(summed(confidence * self._means(confidence, lower, upper)) / total),
            "at_most": _lists([np.minimum(part / total, 1.0) for part in expected], count),
            "quantiles": self._lists_of_lengths(times, count),
            "expected": _lists(expected, count),
            "certain": _lists([summed(sure & (upper <= x)).astype(np.int64) for x in lengths], count),
            "possible": _lists([summed(lower <= x).astype(np.int64) for x in lengths], count),
        }
        return pa.table(columns)

    def below(self, which: Int64, length: Int64) -> Float64:
        """Return P(match, and its time is at most a length), (m,), for some matches."""
        return self._confidences("<=", which, length)

    def _reaches(self, share: float, confidence: Float64, which: Int64, length: Int64) -> Mask:
        sought = share * confidence[which] * (1.0 - CONFIDENCE_TOLERANCE)
        reached: Mask = self.below(which, length) >= sought
        return reached

    def _bounds(self) -> tuple[Int64, Int64]:
        """Return the shortest and the longest time of each match."""

        def is_possible(which: Int64, length: Int64) -> Mask:
            return np.asarray(self.below(which, length) > 0.0, np.bool_)

        def is_longest(which: Int64, length: Int64) -> Mask:
            return np.asarray(self._confidences(">=", which, length + 1) == 0.0, np.bool_)

        return _bisected(self.low, self.high, is_possible), _bisected(self.low, self.high, is_longest)

    def _means(self, confidence: Float64, lower: Int64, upper: Int64) -> Float64:
        """Return the mean of the time of each match, ticks, (k,) float64."""
        of_times = []
        for query, (first, last) in zip(self.after, self.ends, strict=True):
            open_ = np.flatnonzero((first < last) & (lower < upper))
            behind = np.zeros(len(first))
            part = self._weighed(query, open_, self._earlier(open_, first, last))
            behind[open_] = (last - first)[open_] * (part / confidence[open_])
            of_times.append(behind)
        mean = (self.ends[1][0] - self.ends[0][0]) + (of_times[1] - of_times[0])
        return np.asarray(np.clip(mean, lower, upper), np.float64)

    def _earlier(self, which: Int64, first: Int64, last: Int64) -> pa.Table:
        """Return an event for each of some matches at any tick but the last one of a time."""
        names, domain = self.plan.names, self.plan.domain
        kept = {
            names.type: pa.array([_EARLIER] * len(which)),
            names.lower: domain.times(first[which]),
            names.upper: domain.times(last[which] - 1),
            _MATCH: pa.array(np.arange(len(which))),
        }
        return pa.table(kept)

    def _confidences(self, sign: str, which: Int64, length: Int64) -> Float64:
        """Return P(match, and a bound of its time), (m,), for some matches, (m,), and as many lengths."""
        return self._weighed(self.bounded[sign], which, None, length)

    def _weighed(
        self, query: Query, which: Int64, beside: pa.Table | None, length: Int64 | None = None
    ) -> Float64:
        """Return the confidences of some matches by a query, with further events, or with bounds, (m,)."""
        checkpoint()
        rows = self.rows[which]
        each = rows.shape[1]
        names, copies = self.plan.names, self.table.take(pa.array(rows.ravel()))
        copies = copies.append_column(_MATCH, pa.array(np.repeat(np.arange(len(which)), each)))
        if length is not None:
            bounds = lengths_in_ticks(np.repeat(length, each), self.plan.domain.tick_nanoseconds)
            copies = copies.append_column(_BOUND, bounds)
        if beside is not None:
            place = copies.schema.get_field_index(names.type)
            copies = copies.set_column(place, names.type, copies.column(place).cast(pa.string()))
            copies = pa.concat_tables([copies, beside], promote_options="permissive")
        place = copies.schema.get_field_index(names.id)
        copies = copies.set_column(place, names.id, pa.array(np.arange(copies.num_rows)))
        plan = make_plan(query, copies.schema, self.options)
        threads = threads_or_all(self.options.threads)
        confidences = np.zeros(len(which))
        for batch in execute(plan, copies, threads=threads):
            # Two events of one type may be a match both ways round.
            ids = np.stack([batch.column(part.variable).to_numpy() for part in self.plan.components], axis=1)
            is_this = (ids < rows.size).all(axis=1) & (ids % each == np.arange(each)).all(axis=1)
            confidences[ids[is_this, 0] // each] = batch.column("confidence").to_numpy()[is_this]
        return confidences

    def _as_means(self, ticks: Float64) -> pa.Array:
        nanoseconds = self.plan.domain.tick_nanoseconds
        if nanoseconds is None:
            return pa.array(ticks)
        unit: Literal["us", "ns"] = "ns" if nanoseconds % 1000 else "us"
        whole = np.rint(ticks * (nanoseconds / (1 if unit == "ns" else 1000))).astype(np.int64)
        return pa.array(whole).cast(pa.duration(unit))

    def _as_lengths(self, ticks: Int64) -> pa.Array:
        return lengths_in_ticks(ticks, self.plan.domain.tick_nanoseconds)

    def _lists_of_lengths(self, columns: list[Int64], count: int) -> pa.Array:
        flat = np.stack(columns, axis=1).ravel() if columns else np.zeros(0, np.int64)
        return _of_lists(self._as_lengths(flat), len(columns), count)


def _check(plan: EvaluationPlan) -> None:
    """Raise OptionError where a match does not depend on single events of its own alone."""
    query, feature = plan.query, None
    if not plan.returns_matches:
        raise OptionError(f"the query returns {plan.rows_are}, which have no times")
    if plan.branches:
        feature = "OR"
    elif plan.forbids or query.gap_strategies:
        feature = "negations and strategies"
    elif any(part.kleene for part in plan.components):
        feature = "Kleene components"
    if feature is not None:
        raise OptionError(
            f"a time between ends does not support {feature} yet: ask for the single events of a match"
        )


def _ends_of(of: tuple[str, ...], variables: Sequence[str]) -> list[int]:
    """Return the components of two times."""
    ends = []
    for time in of:
        variable, _, end = time.partition(".")
        if variable not in variables or end not in ("", "begin", "end"):
            raise OptionError(
                f"of={time!r}: name a variable of the pattern, {', '.join(variables)}; of events that last "
                "with .begin or .end"
            )
        ends.append(variables.index(variable))
    if len(ends) != 2 or of[0] == of[1]:
        raise OptionError(f"of={of!r}: it has two times")
    return ends


def _with_bound(query: Query, of: tuple[str, ...], sign: str) -> Query:
    """Return a query that bounds the time from one event of each match to another one."""
    first, last = of
    one, other = first.partition(".")[0], last.partition(".")[0]
    pattern = f"SEQ(ANY {one}, ANY {other})" if one != other else f"SEQ(ANY {one})"
    condition = f"[{_MATCH}] AND TIME({last}) - TIME({first}) {sign} {one}.{_BOUND}"
    return replace(query, where=(*query.where, *parse(f"PATTERN {pattern} WHERE {condition} WITHIN 1").where))


def _after_another(query: Query, time: str) -> Query:
    """Return a query with an event of each match that is earlier than a time of it."""
    variable, position = time.partition(".")[0], query.pattern.position
    whole = query.pattern
    items = whole.items if isinstance(whole, Conjunction) else (whole,)
    earlier = Component((_EARLIER,), _EARLIER, kleene=False, negated=True, position=position)
    condition = f"[{_MATCH}] AND TIME({_EARLIER}) - TIME({time}) >= 0"
    added = parse(f"PATTERN AND(ANY {variable}, !{_EARLIER} {_EARLIER}) WHERE {condition} WITHIN 1").where
    return replace(query, pattern=Conjunction((*items, earlier), position), where=(*query.where, *added))


def _bisected(low: Int64, high: Int64, holds: Callable[[Int64, Int64], Mask]) -> Int64:
    """Return the first number from ``low`` on for which a condition holds; ``high`` does not ask it."""
    low, high = low.copy(), high.copy()
    while len(open_ := np.flatnonzero(low < high)):
        middle = low[open_] + (high[open_] - low[open_]) // 2
        reached = holds(open_, middle)
        high[open_] = np.where(reached, middle, high[open_])
        low[open_] = np.where(reached, low[open_], middle + 1)
    return low


def _lists(columns: Sequence[NDArray[Any]], count: int) -> pa.Array:
    """Return lists of the values of columns, row by row."""
    flat = np.stack(columns, axis=1).ravel() if len(columns) else np.zeros(0)
    return _of_lists(pa.array(flat), len(columns), count)


def _of_lists(flat: pa.Array, each: int, count: int) -> pa.Array:
    """Return lists of so many values each."""
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * each, pa.int32()), flat)
