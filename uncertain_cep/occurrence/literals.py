"""Matches as literals and boxes over the times of events: flat arrays, one match's behind the other's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.flat_lists import counting, starts_of, taken
from confidence.timed.bounds import UNBOUND
from uncertain_cep.candidates.span_times import SpanTimes
from uncertain_cep.occurrence.explicit_matches import NumberedPart
from uncertain_cep.occurrence.sequence_ties import SequenceTies
from uncertain_cep.occurrence.time_variables import TimeVariables
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.pattern import Sides
from uncertain_cep.weighers.templates import OTHER

__all__ = ["MatchLiterals", "joined_literals", "literals_of"]

Int64 = NDArray[np.int64]


class MatchLiterals(NamedTuple):
    """Some matches, each a conjunction of literals that must hold and of boxes that must not.

    Attributes
    ----------
    number : (k,) int64
        Which match of all each is.
    term_start : (k + 1,) int64
        Where its terms begin: first the literals that hold, then a term for each box.
    literal_start : (t + 1,) int64
    earlier, later, distance : (l,) int64
        Variables, -1 for tick 0, and the least difference of the later one from the earlier one.
    first_start : (k + 1,) int64
        Where the rows of the events that can be its first begin.
    first : (f,) int64
    """

    number: Int64
    term_start: Int64
    literal_start: Int64
    earlier: Int64
    later: Int64
    distance: Int64
    first_start: Int64
    first: Int64

    def some(self, which: Int64) -> MatchLiterals:
        """Return some matches, in this order; one may be asked for several times."""
        term, term_start = taken(self.term_start, which)
        literal, literal_start = taken(self.literal_start, term)
        first, first_start = taken(self.first_start, which)
        return MatchLiterals(
            self.number[which], term_start, literal_start, self.earlier[literal], self.later[literal],
            self.distance[literal], first_start, self.first[first],
        )  # fmt: skip


class _Literals(NamedTuple):
    """Literals ``t_later - t_earlier >= distance`` of rows (-1: tick 0), and the term of each, by number."""

    term: Int64
    earlier: Int64
    later: Int64
    distance: Int64


class _Boxes(NamedTuple):
    """For each event and rule that may forbid it: the match, the event's row, the rule, and its place."""

    match: Int64
    row: Int64
    rule: Int64
    place: Int64


def literals_of(
    numbered: NumberedPart, times: TimeVariables, ties: SequenceTies | None, sides: Sides = ()
) -> MatchLiterals:
    """Return matches of one shape as literals of variables.

    Parameters
    ----------
    numbered : NumberedPart
    times : TimeVariables
    ties : SequenceTies or None
        Which of two of their own events at one tick is before the other; None: neither.
    sides : tuple of (int, int)
        Of pairs of events that are apart, by number, the side that each is on.
    """
    part, spans = numbered.matches, numbered.pattern.spans
    count, length = part.row.shape
    boxes = _boxes(part, times)
    sizes = np.bincount(boxes.match, minlength=count)
    term_start = starts_of(sizes + 1)
    box_term = term_start[boxes.match] + 1 + counting(sizes)
    parts_of_terms = [
        _of_variables(literals, times)
        for literals in (
            *_held(numbered, term_start[:-1], ties, sides),
            *_within(part, boxes, box_term, None if spans is None else spans.times),
        )
    ]
    for term, row in ((np.repeat(term_start[:-1], length), part.row.ravel()), (box_term, boxes.row)):
        happened = times.happened[row]
        doubtful = np.flatnonzero(happened >= 0)
        parts_of_terms.append(
            _Literals(term[doubtful], np.full(len(doubtful), -1), happened[doubtful], np.ones_like(doubtful))
        )
    first = np.flatnonzero(part.shape.ends[0])
    start, earlier, later, distance = _sorted(parts_of_terms, int(term_start[-1]))
    first_start, firsts = np.arange(count + 1) * len(first), part.row[:, first].ravel()
    return MatchLiterals(numbered.number, term_start, start, earlier, later, distance, first_start, firsts)


def _held(
    numbered: NumberedPart, term: Int64, ties: SequenceTies | None, sides: Sides
) -> Iterator[_Literals]:
    """Yield the literals that matches have to meet."""
    part, templates = numbered.matches, numbered.pattern.templates
    for (i, j), (low, high) in part.shape.order.items():
        later, earlier = part.row[:, i], part.row[:, j]
        distance = np.full(len(term), low)
        if low == 1 and ties is not None:
            distance = ties.least(earlier, later)
        yield from _bounds(term, later, earlier, distance, np.full(len(term), high))
    nothing = np.full(len(term), -1)
    for instance in part.shape.own:
        distance, upper_bound = templates.bounds_of_all(instance, part.row)
        if templates.conditions[instance.condition].apart in sides:
            distance = np.maximum(distance, 1)
        earlier = nothing if instance.earlier < 0 else part.row[:, instance.earlier]
        yield from _bounds(term, part.row[:, instance.later], earlier, distance, upper_bound)
    for time, other, lowest, highest in numbered.further:
        yield from _bounds(
            term, part.row[:, time], nothing if other < 0 else part.row[:, other], lowest, highest
        )


def _bounds(term: Int64, one: Int64, other: Int64, low: Int64, high: Int64) -> Iterator[_Literals]:
    """Yield the bounds of the time of one row less that of another one."""
    low, high = np.broadcast_to(low, len(term)), np.broadcast_to(high, len(term))
    bounded = np.flatnonzero(low > -UNBOUND)
    yield _Literals(term[bounded], other[bounded], one[bounded], low[bounded])
    bounded = np.flatnonzero(high < UNBOUND)
    yield _Literals(term[bounded], one[bounded], other[bounded], -high[bounded])


def _boxes(part: ExplicitMatches, times: TimeVariables) -> _Boxes:
    """Return the events that may be forbidden matches, once for each rule, but for what never holds."""
    forbidden = part.forbidden
    event = np.repeat(np.arange(len(part.spoiler_row)), np.diff(forbidden.rule_start))
    match = np.repeat(np.arange(len(part.which)), part.spoilers)[event]
    row = part.spoiler_row[event]
    used = np.arange(forbidden.low.shape[1]) < forbidden.constraints[forbidden.rule][:, None]
    possible = ~((forbidden.low > forbidden.high) & used).any(axis=1) & (times.happened[row] != -2)
    place = np.flatnonzero(possible)
    return _Boxes(match[place], row[place], forbidden.rule[place], place)


def _within(
    part: ExplicitMatches, boxes: _Boxes, term: Int64, spans: SpanTimes | None
) -> Iterator[_Literals]:
    """Yield the literals of boxes; those of the end of an event of no certain length are of its own row."""
    forbidden = part.forbidden
    to_end = np.zeros_like(boxes.row)
    if spans is not None:
        is_open = spans.length.lower[boxes.row] < spans.length.upper[boxes.row]
        to_end = np.where(is_open, spans.events, 0)

    def rows(c: int, side: int, chosen: Int64) -> Int64:
        rule = boxes.rule[chosen]
        time, other = forbidden.sides[rule, c, side], boxes.row[chosen]
        event_of_match = part.row[boxes.match[chosen], np.maximum(time, 0)]
        if spans is not None:
            is_end = part.shape.of_end[rule, c] == (1, -1)[side]
            other = other + np.where(is_end, to_end[chosen], 0)
        return np.where(time == OTHER, other, np.where(time < 0, -1, event_of_match))

    for c in range(forbidden.low.shape[1]):
        chosen = np.flatnonzero(c < forbidden.constraints[boxes.rule])
        one, other = (rows(c, side, chosen) for side in (0, 1))
        place = boxes.place[chosen]
        yield from _bounds(term[chosen], one, other, forbidden.low[place, c], forbidden.high[place, c])


def _of_variables(literals: _Literals, times: TimeVariables) -> _Literals:
    """Return literals of rows as literals of what their times depend on."""
    variables, constants = [], []
    for row in (literals.earlier, literals.later):
        is_event = row >= 0
        variables.append(np.where(is_event, times.variable[row], -1))
        constants.append(np.where(is_event, times.constant[row], 0))
    distance = literals.distance + constants[0] - constants[1]
    # Two times by one clock differ by a constant.
    same = variables[0] == variables[1]
    earlier, later = (np.where(same, -1, variable) for variable in variables)
    return _Literals(literals.term, earlier, later, distance)


def _sorted(parts: Sequence[_Literals], terms: int) -> tuple[Int64, Int64, Int64, Int64]:
    """Return where the literals of each term begin, and the literals in that order."""
    term, earlier, later, distance = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(term, kind="stable")
    start = starts_of(np.bincount(term, minlength=terms))
    return start, earlier[order], later[order], distance[order]


def joined_literals(parts: Sequence[MatchLiterals]) -> MatchLiterals:
    """Return the matches of several parts, at least one, in the order of their numbers."""
    starts = []
    for name in ("term_start", "literal_start", "first_start"):
        sizes = [np.diff(getattr(part, name)) for part in parts]
        starts.append(starts_of(np.concatenate(sizes)))
    number, earlier, later, distance, first = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("number", "earlier", "later", "distance", "first")
    )
    terms, literals, firsts = starts
    joined = MatchLiterals(number, terms, literals, earlier, later, distance, firsts, first)
    return joined.some(np.argsort(number, kind="stable"))
