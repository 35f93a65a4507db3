"""How long it took from one end of a match to another one, given the match: bounds, means and laws.

``P(t_b - t_a <= x, match)`` is the confidence of the match with one literal more. So all matches are asked at
once, each with a bound of its own, beside what their pattern says and forbids.

**Mean.** Of the ticks before the last one at which t can be, ``t - first`` are earlier than t. So the mean of
that number is how many there are, times the probability that one of them, drawn alike, is earlier. It is the
confidence with one more event that must not be at t or behind it, whatever the law of t:

    E[t_b - first_b; match] = (last_b - first_b) P(match, u < t_b),    u alike on first_b .. last_b - 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import counting
from confidence.timed.bounds import UNBOUND
from uncertain_cep.candidates.existence import existence
from uncertain_cep.errors import OptionError
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.derived import once_a_plan
from uncertain_cep.query.branches import is_linear
from uncertain_cep.query.returned_times import NO_LENGTH, OF_SINGLE_EVENTS, TimeBetween
from uncertain_cep.results.box_parts import Events
from uncertain_cep.results.boxes import Searched, weighed_events
from uncertain_cep.results.matched_events import MatchedEvents
from uncertain_cep.timeline.domain import lengths_in_ticks, mean_lengths_in_ticks
from uncertain_cep.weighers.beside import Beside, EarlierTick, EndOfEvent, TimeDifference

__all__ = ["ElapsedTimes", "bisected", "check_ends", "returned_times"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
EventsOf = Callable[[EvaluationPlan, pa.Table], Iterable[MatchedEvents]]
"""Finds the events of matches, see :func:`uncertain_cep.results.boxes.weighed_events`."""


def returned_times(plan: EvaluationPlan, table: pa.Table, chunk: MatchBatch) -> dict[TimeBetween, pa.Array]:
    """Return the times between two ends that RETURN asks for, of matches of a plan without OR.

    The events of the matches are rows of a sound table.
    """
    events = _events_of(plan, chunk)
    if not plan.forbids:
        # Such a match depends on its events alone.
        rows, place = np.unique(events.row, return_inverse=True)
        needed = [name for name in plan.required_columns if name in table.column_names]
        table = table.select(needed).take(pa.array(rows))
        events = MatchedEvents(plan, events.match, events.component, events.position, place.reshape(-1))
    columns: dict[TimeBetween, pa.Array] = {}
    for of in dict.fromkeys(item.between.ends for item in plan.bound.returns if item.between is not None):
        times = ElapsedTimes.of_matches(plan, table, partial(_as_found, events), of)
        lower, upper, mean = times.columns()
        columns |= {
            TimeBetween(of, "lower"): lower, TimeBetween(of, "upper"): upper, TimeBetween(of, "mean"): mean,
        }  # fmt: skip
    return columns


def _bound_beside(events_of: EventsOf, plan: EvaluationPlan, table: pa.Table) -> Iterator[MatchedEvents]:
    for events in events_of(plan, table):
        yield replace(events, plan=_binding_beside(events.plan))


@once_a_plan
def _binding_beside(plan: EvaluationPlan) -> EvaluationPlan:
    return replace(plan, binds_beside=True)


def _events_of(plan: EvaluationPlan, chunk: MatchBatch) -> MatchedEvents:
    counts, rows = chunk.by_match()
    sizes = counts.T.ravel()
    number = np.repeat(np.arange(len(sizes)), sizes)
    match, component = np.divmod(number, len(counts))
    return MatchedEvents(plan, match, component, counting(sizes) + 1, rows)


def _as_found(events: MatchedEvents, plan: EvaluationPlan, table: pa.Table) -> Iterator[MatchedEvents]:
    del table
    yield MatchedEvents(plan, events.match, events.component, events.position, events.row)


def check_ends(plan: EvaluationPlan, of: Sequence[str]) -> None:
    """Raise OptionError if matches of a plan have no such two ends."""
    if not plan.returns_matches:
        raise OptionError(f"the query returns {plan.rows_are}, which have no times")
    single = [part.variable for part in plan.components if not part.kleene]
    for time in of:
        variable, _, end = time.partition(".")
        if any(part.variable == variable and part.kleene for part in plan.components):
            raise OptionError(f"of={time!r}: {OF_SINGLE_EVENTS.format(variable)}")
        if variable not in single or end not in ("", "begin", "end"):
            raise OptionError(
                f"of={time!r}: name a variable of the pattern, {', '.join(single)}; of events that last "
                "with .begin or .end"
            )
    if len(of) != 2 or of[0] == of[1]:
        raise OptionError(f"of={of!r}: it has two times")
    variable, other = (time.partition(".")[0] for time in of)
    if variable == other and not plan.lasting:
        raise OptionError(f"of={of!r}: {NO_LENGTH.format(variable)}")


class _Group(NamedTuple):
    """Matches that are weighed together.

    Attributes
    ----------
    place : (m,) int64
        Their places among all.
    number : (m,) int64
        What they are called by what weighs them.
    confidences : Searched
    happened : (m,) float64
        The probability that their events happened.
    ends : (EndOfEvent, EndOfEvent)
    """

    place: Int64
    number: Int64
    confidences: Searched
    happened: Float64
    ends: tuple[EndOfEvent, EndOfEvent]


@dataclass(frozen=True)
class ElapsedTimes:
    """The times from one end of each match to another one, of the matches that have both.

    Attributes
    ----------
    plan : EvaluationPlan
    match : (k,) int64
        Their numbers among all matches.
    row : (k,) int64
        The events that the first times are of.
    ends : ((2, k) int64, (2, k) int64)
        Bounds of the first time and of the last one.
    low, high : (k,) int64
        Ticks that each time is between, whatever else holds.
    """

    plan: EvaluationPlan
    match: Int64
    row: Int64
    ends: tuple[Int64, Int64]
    low: Int64
    high: Int64
    _groups: tuple[_Group, ...]

    @classmethod
    def of_matches(
        cls, plan: EvaluationPlan, table: pa.Table, events_of: EventsOf, of: tuple[str, str]
    ) -> ElapsedTimes:
        """Return the times of matches of a plan, whose events are those of a sound table."""
        exists = existence(table, plan.names.probability)
        groups: list[_Group] = []
        parts: list[tuple[Int64, ...]] = []
        count = 0
        for branch, events, weighed in weighed_events(plan, table, partial(_bound_beside, events_of)):
            names = [time.partition(".")[0] for time in of]
            if not len(branch.match) or not {*names} <= {*branch.variables}:
                continue
            # A match has one event of each.
            first, last = (np.flatnonzero(branch.component == branch.variables.index(name)) for name in names)
            sides = [_bounds_of(events, chosen, time) for chosen, time in zip((first, last), of, strict=True)]
            numbers = [branch.variables.index(name) for name in names]
            ends = [EndOfEvent(number, at_end) for number, (_, at_end) in zip(numbers, sides, strict=True)]
            happened = np.ones(len(first))
            if exists is not None:
                happened = np.multiply.reduceat(exists.probability[branch.row], events.start[:-1])
            for which, confidences in weighed:
                assert isinstance(confidences, Searched)
                groups.append(_Group(count + which, which, confidences, happened[which], (ends[0], ends[1])))
            (begin, _), (end, _) = sides
            low, high = (0, 0) if ends[0] == ends[1] else _reach(branch.plan, of, *numbers)
            low, high = np.maximum(end[0] - begin[1], low), np.minimum(end[1] - begin[0], high)
            parts.append((branch.match[events.start[:-1]], branch.row[first], *begin, *end, low, high))
            count += len(first)
        nothing = (np.zeros(0, np.int64),) * 8
        match, row, *bounds = map(np.concatenate, zip(nothing, *parts, strict=True))
        begins, ends_of = np.stack(bounds[:2]), np.stack(bounds[2:4])
        return cls(plan, match, row, (begins, ends_of), bounds[4], bounds[5], tuple(groups))

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
        return self.below(np.arange(len(self.match)), self.high)

    def below(self, which: Int64, length: Int64) -> Float64:
        """Return P(match, and its time is at most a length), (m,), for some matches."""
        length = np.clip(length, self.low[which] - 1, self.high[which])
        return self._between(which, np.full(len(which), -UNBOUND), length)

    @cached_property
    def bounds(self) -> tuple[Int64, Int64]:
        """The shortest and the longest time of each match, each (k,)."""

        def is_possible(which: Int64, length: Int64) -> Mask:
            return np.asarray(self.below(which, length) > 0.0, np.bool_)

        def is_possible_back(which: Int64, back: Int64) -> Mask:
            return np.asarray(self._between(which, -back, np.full(len(which), UNBOUND)) > 0.0, np.bool_)

        return bisected(self.low, self.high, is_possible), -bisected(-self.high, -self.low, is_possible_back)

    def means(self, confidence: Float64, lower: Int64, upper: Int64) -> Float64:
        """Return the mean of the time of each match, ticks, (k,) float64."""
        of_times = []
        for side, (first, last) in enumerate(self.ends):
            is_open = (first < last) & (lower < upper)
            behind = np.where(is_open, self._cheap_means(side, confidence), 0.0)
            which = np.flatnonzero(np.isnan(behind))
            earlier = self._weighed(which, partial(_earlier, side, first[which], last[which] - 1))
            behind[which] = (last - first)[which] * (earlier / confidence[which])
            of_times.append(behind)
        mean = (self.ends[1][0] - self.ends[0][0]) + (of_times[1] - of_times[0])
        return np.asarray(np.clip(mean, lower, upper), np.float64)

    def _cheap_means(self, side: int, confidence: Float64) -> Float64:
        """Return by how many ticks a time is behind a first one in the mean, (k,); NaN where ticks cost.

        Of events that last, one more event that must not be there is weighed over ticks, where pieces of the
        time's own law are not.
        """
        means = np.full(len(self.match), np.nan)
        for group in self._groups:
            centres = group.confidences.cheap_centres_of(group.number, group.ends[side])
            means[group.place] = centres * group.happened / confidence[group.place]
        return means

    def _between(self, which: Int64, low: Int64, high: Int64) -> Float64:
        """Return P(match, and its time is between two lengths), (m,), for some matches."""
        return self._weighed(
            which, lambda group, at: TimeDifference(group.ends[1], group.ends[0], low[at], high[at])
        )

    def _weighed(self, which: Int64, beside: Callable[[_Group, Int64], Beside]) -> Float64:
        """Return the confidences of some matches whose times are bound besides, (m,).

        ``beside`` says how those of a group are, by their places in ``which``.
        """
        checkpoint()
        confidences = np.zeros(len(which))
        at = np.full(len(self.match), -1)
        at[which] = np.arange(len(which))
        for group in self._groups:
            places = at[group.place]
            here = np.flatnonzero(places >= 0)
            if len(here):
                bound = group.confidences.bound(group.number[here], beside(group, places[here]))
                confidences[places[here]] = bound * group.happened[here]
        return confidences


def _earlier(side: int, first: Int64, last: Int64, group: _Group, at: Int64) -> EarlierTick:
    return EarlierTick(group.ends[side], first[at], last[at])


def _bounds_of(events: Events, chosen: Int64, time: str) -> tuple[Int64, bool]:
    """Return the bounds of one time of some events, (2, k) int64, and whether it is an end of its own."""
    name, _, end = time.partition(".")
    side, at_end = events, False
    if events.ends is not None:
        lasts = events.ends.lasts[chosen]
        if not end and lasts.any():
            raise OptionError(f"{name} has a begin and an end: name one of them, {name}.begin or {name}.end")
        at_end = end == "end" and bool(lasts.any())
        side = events.sides[at_end][0]
    return np.stack((side.lower[chosen], side.upper[chosen])), at_end


def _reach(plan: EvaluationPlan, of: tuple[str, str], first: int, last: int) -> tuple[int, int]:
    """Return ticks that the time from one end to another one is between, by the window and the order."""
    low, high = 1 - plan.window, plan.window - 1
    if first == last:
        return (0, high) if of[0].endswith(".begin") else (low, 0)
    if not is_linear(plan.bound.pattern):
        return low, high
    return (plan.least_step, high) if first < last else (low, -plan.least_step)


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
