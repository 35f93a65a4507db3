"""How long it took from one end of a match to another one, given the match: bounds, means and laws.

``P(t_b - t_a <= x, match)`` is the confidence of the query with one more condition. A match whose pattern has
no negation depends on its events alone. So all matches are asked at once, each with a bound of its own: their
events become the events of one table, a partition for each match.

**Mean.** Of the ticks before the last one at which t can be, ``t - first`` are earlier than t. So the mean of
that number is how many there are, times the probability that one of them, drawn alike, is earlier. It is the
confidence with one more event that must not be at t or behind it, whatever the law of t:

    E[t_b - first_b; match] = (last_b - first_b) P(match, u < t_b),    u alike on first_b .. last_b - 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.errors import OptionError
from uncertain_cep.executor.checked_events import CheckedEvents, Ends
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import Query, parse
from uncertain_cep.query.branches import is_linear
from uncertain_cep.query.returned_times import NO_SINGLE_EVENTS, TimeBetween, beyond_single_events
from uncertain_cep.query.syntax import Component, Conjunction, Time, expressions_in
from uncertain_cep.timeline.domain import lengths_in_ticks, mean_lengths_in_ticks

__all__ = ["ElapsedTimes", "bisected", "check_ends", "returned_times"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
Evaluate = Callable[[EvaluationPlan, pa.Table], Iterator[pa.RecordBatch]]
"""Yields the matches of a plan: `execute`, which calls this module."""

_MATCH, _BOUND = "elapsed_match", "elapsed_bound"
"""Attributes of the copies of events: the number of their match, and its bound."""

_EARLIER: Final = "elapsed_earlier"
"""The type, and the variable, of an event that is to be earlier than a time."""


def returned_times(
    evaluate: Evaluate, plan: EvaluationPlan, table: pa.Table, events: Int64
) -> dict[TimeBetween, pa.Array]:
    """Return the times between two ends that RETURN asks for, of matches of a plan.

    ``events``, (l, k) int64, are the rows of their events in a sound table.
    """
    rows, place = np.unique(events, return_inverse=True)
    needed = [name for name in plan.required_columns if name in table.column_names]
    used = table.select(needed).take(pa.array(rows))
    items = [item.between for item in plan.bound.returns if item.between is not None]
    columns: dict[TimeBetween, pa.Array] = {}
    for ends in dict.fromkeys(item.ends for item in items):
        times = ElapsedTimes.of_matches(evaluate, plan, used, place.reshape(events.shape).T, ends)
        lower, upper, mean = times.columns()
        columns |= {
            TimeBetween(ends, "lower"): lower, TimeBetween(ends, "upper"): upper,
            TimeBetween(ends, "mean"): mean,
        }  # fmt: skip
    return columns


def check_ends(plan: EvaluationPlan, of: Sequence[str]) -> None:
    """Raise OptionError if a plan has no such two ends, or its matches depend on more than single events."""
    if not plan.returns_matches:
        raise OptionError(f"the query returns {plan.rows_are}, which have no times")
    if (feature := beyond_single_events(plan.query)) is not None:
        raise OptionError(NO_SINGLE_EVENTS.format(feature))
    _components_of(of, [part.variable for part in plan.components])


@dataclass(frozen=True)
class ElapsedTimes:
    """The times from one end of each match to another one.

    Attributes
    ----------
    evaluate : callable
    plan : EvaluationPlan
    pattern : Query
        What of the query speaks of times.
    of : tuple of str
        The two ends.
    ends : ((2, k) int64, (2, k) int64)
        Bounds of the first time and of the last one.
    table : pyarrow.Table
    rows : (k, l) int64
        The events of each match.
    first : int
        The component that the first time is of.
    low, high : (k,) int64
        Ticks that each time is between, whatever else holds.
    """

    evaluate: Evaluate
    plan: EvaluationPlan
    pattern: Query
    of: tuple[str, str]
    ends: tuple[Int64, Int64]
    table: pa.Table
    rows: Int64
    first: int
    low: Int64
    high: Int64

    @classmethod
    def of_matches(
        cls, evaluate: Evaluate, plan: EvaluationPlan, table: pa.Table, rows: Int64, of: tuple[str, str]
    ) -> ElapsedTimes:
        """Return the times of matches of a plan, whose events are rows, (k, l) int64, of a sound table."""
        query = plan.query
        first, last = components = _components_of(of, [part.variable for part in plan.components])
        bounds = Ends.of(CheckedEvents.of(table, _options(plan)))
        ends = [
            (bounds.end if time.endswith(".end") else bounds.begin)[:, rows[:, component]]
            for time, component in zip(of, components, strict=True)
        ]
        # The events are matches already: what does not speak of times holds.
        conditions = [
            part for part in query.where if any(isinstance(one, Time) for one in expressions_in(part))
        ]
        pattern = replace(
            query, where=tuple(conditions), returns=(), min_confidence=None, having=None,
            order_by_confidence=False, order_by=(), limit=None, non_overlapping=False,
        )  # fmt: skip
        low, high = _reach(plan, of, first, last)
        return cls(
            evaluate, plan, pattern, of, (ends[0], ends[1]), table, rows, first,
            np.maximum(ends[1][0] - ends[0][1], low), np.minimum(ends[1][1] - ends[0][0], high),
        )  # fmt: skip

    def columns(self) -> list[pa.Array]:
        """Return the shortest, the longest and the mean time of each match."""
        lower, upper = self.bounds
        mean = self.means(self.confidence, lower, upper)
        nanoseconds = self.plan.domain.tick_nanoseconds
        lengths = [lengths_in_ticks(bound, nanoseconds) for bound in (lower, upper)]
        return [*lengths, mean_lengths_in_ticks(mean, nanoseconds)]

    @cached_property
    def confidence(self) -> Float64:
        """The probability of each match, (k,)."""
        return self.below(np.arange(len(self.rows)), self.high)

    def below(self, which: Int64, length: Int64) -> Float64:
        """Return P(match, and its time is at most a length), (m,), for some matches."""
        return self._confidences("<=", which, length)

    @cached_property
    def bounds(self) -> tuple[Int64, Int64]:
        """The shortest and the longest time of each match, each (k,)."""

        def is_possible(which: Int64, length: Int64) -> Mask:
            return np.asarray(self.below(which, length) > 0.0, np.bool_)

        def is_possible_back(which: Int64, back: Int64) -> Mask:
            return np.asarray(self._confidences(">=", which, -back) > 0.0, np.bool_)

        return bisected(self.low, self.high, is_possible), -bisected(-self.high, -self.low, is_possible_back)

    def means(self, confidence: Float64, lower: Int64, upper: Int64) -> Float64:
        """Return the mean of the time of each match, ticks, (k,) float64."""
        of_times = []
        for time, (first, last) in zip(self.of, self.ends, strict=True):
            behind = np.where((first < last) & (lower < upper), self._cheap_means(time, first), 0.0)
            open_ = np.flatnonzero(np.isnan(behind))
            query = _after_another(self.pattern, time)
            part = self._weighed(query, open_, self._earlier(open_, first, last)) if len(open_) else 0.0
            behind[open_] = (last - first)[open_] * (part / confidence[open_])
            of_times.append(behind)
        mean = (self.ends[1][0] - self.ends[0][0]) + (of_times[1] - of_times[0])
        return np.asarray(np.clip(mean, lower, upper), np.float64)

    def _cheap_means(self, time: str, first: Int64) -> Float64:
        """Return by how many ticks a time is behind a first one in the mean, (k,); NaN where ticks cost.

        Of events that last, one more event that must not be there is weighed over ticks, where pieces of the
        time's own law are not.
        """
        means = np.full(len(self.rows), np.nan)
        if not self.plan.lasting:
            return means
        # Imports much that matches do without.
        from uncertain_cep.results.box_parts import Boxes
        from uncertain_cep.results.boxes import weighed_matches

        place = self.table.schema.get_field_index(self.plan.names.id)
        table = self.table.set_column(place, self.plan.names.id, pa.array(np.arange(self.table.num_rows)))
        plan = _planned(self.pattern, table.schema, _options(self.plan))
        variable, _, end = time.partition(".")
        variables = [part.variable for part in plan.components]
        matches = pa.table({name: pa.array(self.rows[:, j]) for j, name in enumerate(variables)})
        for branch, events, groups in weighed_matches(plan, table, matches):
            for numbers, confidences in groups:
                event = events.start[numbers] + variables.index(variable)
                for side, chosen, at_end in events.sides:
                    of_side = chosen[event] & (at_end == (end == "end"))
                    law = confidences.at_ends() if at_end else confidences
                    centres = law.cheap_centres(numbers[of_side], event[of_side])
                    cheap = np.flatnonzero(of_side)[np.isfinite(centres)]
                    if not len(cheap):
                        continue
                    begin, last = (bound[event[cheap]] for bound in (side.lower, side.upper))
                    whole = law.of(Boxes(numbers[cheap], event[cheap], begin, last))
                    match = branch.match[event[cheap]]
                    means[match] = begin - first[match] + centres[np.isfinite(centres)] / whole
        return means

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
        return self._weighed(_with_bound(self.pattern, self.of, sign), which, None, length)

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
        plan = _planned(query, copies.schema, _options(self.plan))
        confidences = np.zeros(len(which))
        for batch in self.evaluate(plan, copies):
            # Two events of one type may be a match both ways round.
            ids = np.stack([batch.column(part.variable).to_numpy() for part in self.plan.components], axis=1)
            is_this = (ids < rows.size).all(axis=1) & (ids % each == np.arange(each)).all(axis=1)
            confidences[ids[is_this, 0] // each] = batch.column("confidence").to_numpy()[is_this]
        return confidences


def _options(plan: EvaluationPlan) -> MatchOptions:
    """Return the options by which events are read as a plan reads them."""
    tick = plan.domain.tick_nanoseconds
    return MatchOptions(
        names=plan.names, tick=None if tick is None else f"{tick}ns", sources=plan.clocks, takes_spans=True
    )


@lru_cache(maxsize=64)
def _planned(query: Query, schema: pa.Schema, options: MatchOptions) -> EvaluationPlan:
    return make_plan(query, schema, options)


def _components_of(of: Sequence[str], variables: Sequence[str]) -> list[int]:
    """Return the components of two ends."""
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


def _reach(plan: EvaluationPlan, of: tuple[str, str], first: int, last: int) -> tuple[int, int]:
    """Return ticks that the time from one end to another one is between, by the window and the order."""
    low, high = 1 - plan.window, plan.window - 1
    if first == last:
        return (0, high) if of[0].endswith(".begin") else (low, 0)
    if not is_linear(plan.bound.pattern):
        return low, high
    return (plan.least_step, high) if first < last else (low, -plan.least_step)


@lru_cache(maxsize=64)
def _with_bound(query: Query, of: tuple[str, str], sign: str) -> Query:
    """Return a query that bounds the time from one event of each match to another one."""
    first, last = of
    one, other = first.partition(".")[0], last.partition(".")[0]
    pattern = f"SEQ(ANY {one}, ANY {other})" if one != other else f"SEQ(ANY {one})"
    condition = f"[{_MATCH}] AND TIME({last}) - TIME({first}) {sign} {one}.{_BOUND}"
    return replace(query, where=(*query.where, *parse(f"PATTERN {pattern} WHERE {condition} WITHIN 1").where))


@lru_cache(maxsize=64)
def _after_another(query: Query, time: str) -> Query:
    """Return a query with an event of each match that is earlier than a time of it."""
    variable, position = time.partition(".")[0], query.pattern.position
    whole = query.pattern
    items = whole.items if isinstance(whole, Conjunction) else (whole,)
    earlier = Component((_EARLIER,), _EARLIER, kleene=False, negated=True, position=position)
    condition = f"[{_MATCH}] AND TIME({_EARLIER}) - TIME({time}) >= 0"
    added = parse(f"PATTERN AND(ANY {variable}, !{_EARLIER} {_EARLIER}) WHERE {condition} WITHIN 1").where
    return replace(query, pattern=Conjunction((*items, earlier), position), where=(*query.where, *added))


def bisected(low: Int64, high: Int64, holds: Callable[[Int64, Int64], Mask]) -> Int64:
    """Return the first number from ``low`` on for which a condition holds; ``high`` does not ask it.

    ``low`` itself, as a rule the answer, is asked first.
    """
    low, high, is_first = low.copy(), high.copy(), True
    while len(open_ := np.flatnonzero(low < high)):
        middle = low[open_] + (0 if is_first else (high[open_] - low[open_]) // 2)
        is_first = False
        reached = holds(open_, middle)
        high[open_] = np.where(reached, middle, high[open_])
        low[open_] = np.where(reached, low[open_], middle + 1)
    return low
