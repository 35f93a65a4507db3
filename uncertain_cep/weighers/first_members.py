"""Negated groups, ``!SEQ(N n, M m)``: no n and then an m in a gap, as a sum over which n is the first there.

Either no n is in the gap, or one of them is the first there and no m is behind it in the gap. These exclude
each other, and each is a match with one more time and forbidden spans: the other n are not in the gap before
it, those of its tick that are listed earlier neither. Of longer groups the first m behind the first n is
chosen next, and so on. No term is negative, and none is an approximation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.distribution import DOUBTFUL
from confidence.timed.bounds import UNBOUND, Bounds
from confidence.timed.forbidden_tables import NO_TIME, OTHER, Others
from confidence.timed.summed_matches import SummedTimes, tighten_all
from uncertain_cep.config.limits import MOST_CELLS_IN_TABLE
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.weighers.elimination import cells_of, summed_over_ticks
from uncertain_cep.weighers.exclusive_sums import add_weighted
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.shapes import Shape
from uncertain_cep.weighers.weigher import WRITTEN_OUT, Declined

__all__ = ["FirstMembers", "TooManyTermsError", "WrittenTerms", "places_in_groups", "written_by_terms"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

Constraint = tuple[int, int, int, int]
"""Two times, and the bounds of the first less the second; OTHER stands for that of an event."""

Span = tuple[Constraint, ...]
"""The constraints that an event meets where a rule has it."""

_MOST_TERMS: Final = 1 << 12
"""Terms that one match is the sum of."""

_AT_ONCE: Final = 1 << 10
"""Terms that are summed at once."""


class TooManyTermsError(Exception):
    """The events of negated groups can be first in too many ways."""

    limit: int = _MOST_TERMS


class _Member(NamedTuple):
    """An event that a component of a negated group can take, by its number in a part, and where."""

    event: int
    span: Span


_Group = list[list[_Member]]
"""The members of each component of a negated group, in its order."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A match with further events, which were forbidden ones."""

    held: dict[int, int]
    """The times of these events, by their numbers in a part."""
    spans: dict[int, tuple[Span, ...]]
    """Where other events must not be."""
    bounds: Bounds
    """Differences of two times, and times (less NO_TIME)."""


class FirstMembers:
    """Sums over the first events of negated groups, each a match that is summed over its ticks."""

    name = "first members"
    why = "takes negated groups: sums over which of their events is the first in its gap"
    priced_above = WRITTEN_OUT
    takes_all = True

    def __init__(self, pattern: MatchPattern) -> None:
        self._pattern, self._most_steps = pattern, pattern.limits.most_steps

    @classmethod
    def of(cls, pattern: MatchPattern) -> FirstMembers | None:
        """Return the weigher for the matches of a pattern; None if it has no negated group."""
        return cls(pattern) if pattern.plan.has_negated_groups else None

    def price(self, model: MatchModel) -> Float64:
        """Return about how many cells the tables of all terms of each match have, (k,) float64."""
        cells = np.empty(model.count)
        for part in model.explicit:
            cells[part.which] = cells_of(part) * (1.0 + part.spoilers)
        return cells

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those of too many terms, or of too large tables."""
        declined: Declined = {}
        out.lower[:], out.upper[:], out.confidence[:], out.std_error[:] = UNBOUND, -UNBOUND, 0.0, 0.0
        limits = np.array([self._most_steps, MOST_CELLS_IN_TABLE], dtype=np.float64)
        for part in model.explicit:
            terms = []
            for k in range(len(part.which)):
                checkpoint()
                try:
                    terms += [(k, term) for term in _terms(self._pattern, part, k)]
                except TooManyTermsError:
                    declined[int(part.which[k])] = float(2 * _MOST_TERMS), float(_MOST_TERMS)
            for written in _written(part, terms):
                which = part.which[written.of_match]
                answers = Columns.empty(len(which))
                for place, cells in summed_over_ticks(written.matches, True, limits, answers).items():
                    declined[int(which[place])] = max(cells, self._most_steps), self._most_steps
                add_weighted(out, which, answers, written.happened)
        nothing = out.lower > out.upper
        out.lower[nothing], out.upper[nothing] = 0, -1
        return declined


class WrittenTerms(NamedTuple):
    """Terms of matches of one shape, as matches of their own: the events that are first are among the rows.

    Attributes
    ----------
    matches : ExplicitMatches
    of_match : (m,) int64
        The places of the matches that they are terms of.
    happened : (m,) float64
        The probability that the events that are first happened, which is no factor of a term.
    bounds : tuple of (int, int, (m,) int64, (m,) int64)
        What a term asks besides what its match does: two times, NO_TIME for tick 0, and bounds of the first
        less the second.
    """

    matches: ExplicitMatches
    of_match: Int64
    happened: Float64
    bounds: tuple[tuple[int, int, Int64, Int64], ...]


def written_by_terms(pattern: MatchPattern, part: ExplicitMatches) -> Iterator[WrittenTerms]:
    """Yield the terms whose sums are the matches of a part.

    Raises
    ------
    TooManyTermsError
        If a match is a sum of too many.
    """
    matches = range(len(part.which))
    yield from _written(part, [(k, term) for k in matches for term in _terms(pattern, part, k)])


def _terms(pattern: MatchPattern, part: ExplicitMatches, k: int) -> list[_Term]:
    """Return the terms whose sum is match k of a part."""
    if part.times.first[k, 0] > part.times.last[k, 0]:
        return []
    groups, spans = _listed(pattern, part, k)
    terms = [_Term({}, spans, {})]
    sums = _Sums(part, k)
    for group in groups:
        terms = [further for term in terms for further in sums.first_of(term, group)]
        if len(terms) > _MOST_TERMS:
            raise TooManyTermsError
    return terms


def _listed(
    pattern: MatchPattern, part: ExplicitMatches, k: int
) -> tuple[list[_Group], dict[int, tuple[Span, ...]]]:
    """Return the members of the negated groups of a match, and where each other rule has events."""
    spoilers = part.forbidden
    of_rule = _places_in_groups(pattern, part.shape)
    groups: dict[tuple[int, int], _Group] = {}
    spans: dict[int, tuple[Span, ...]] = {}
    for x in range(int(spoilers.start[k]), int(spoilers.start[k + 1])):
        if _happened(part, x) <= 0.0:
            continue
        for r in range(int(spoilers.rule_start[x]), int(spoilers.rule_start[x + 1])):
            rule = int(spoilers.rule[r])
            span = _span(spoilers, rule, r)
            if span is None:
                continue
            if rule not in of_rule:
                spans[x] = (*spans.get(x, ()), span)
                continue
            number, place, size = of_rule[rule]
            key = int(pattern.member_keys[number][place][part.spoiler_row[x]])
            if key >= 0:
                group = groups.setdefault((number, key), [[] for _ in range(size)])
                group[place].append(_Member(x, span))
    return [_possible(group, spoilers) for group in groups.values()], spans


def _places_in_groups(pattern: MatchPattern, shape: Shape) -> dict[int, tuple[int, int, int]]:
    """Return for each rule of a negated group the group, the place in it, and how many there are."""
    place_of = places_in_groups(pattern.plan)
    negated = {number: -2 - rule.conditions[0] for number, rule in enumerate(shape.rules)}
    return {rule: place_of[number] for rule, number in negated.items() if number in place_of}


def places_in_groups(plan: EvaluationPlan) -> dict[int, tuple[int, int, int]]:
    """Return for each negation of a negated group the group, the place in it, and how many there are."""
    return {
        negation: (number, place, len(group))
        for number, group in enumerate(plan.negated_groups)
        for place, negation in enumerate(group)
    }


def _span(spoilers: Others, rule: int, r: int) -> Span | None:
    """Return the constraints of a rule of an event, its time on the left; None if they are never met."""
    constraints = []
    for c in range(int(spoilers.constraints[rule])):
        i, j = spoilers.sides[rule, c].tolist()
        low, high = int(spoilers.low[r, c]), int(spoilers.high[r, c])
        if low > high:
            return None
        if j == OTHER and i != OTHER:
            i, j, low, high = j, i, -high, -low
        constraints.append((i, j, low, high))
    return tuple(constraints)


def _possible(group: _Group, spoilers: Others) -> _Group:
    """Return a group without events that no other one can be before, or behind, as the group asks."""
    for _ in group:
        for p, members in enumerate(group):
            if p:
                earliest = min((int(spoilers.lower[one.event]) for one in group[p - 1]), default=UNBOUND)
                members = [one for one in members if spoilers.upper[one.event] > earliest]
            if p + 1 < len(group):
                latest = max((int(spoilers.upper[one.event]) for one in group[p + 1]), default=-UNBOUND)
                members = [one for one in members if spoilers.lower[one.event] < latest]
            group[p] = members
    return group


class _Sums:
    """From the terms of a match of a part to those in which a negated group has no events in its gap."""

    def __init__(self, part: ExplicitMatches, k: int) -> None:
        self._part = part
        self._count = part.times.first.shape[1]
        self._first, self._last = part.times.first[k].tolist(), part.times.last[k].tolist()

    def first_of(self, term: _Term, group: _Group, place: int = 0, before: int = NO_TIME) -> Iterator[_Term]:
        """Yield the terms in which events of a group from a place on are not behind a time, in the gap."""
        behind = () if before == NO_TIME else ((OTHER, before, 1, UNBOUND),)
        members = [one._replace(span=(*one.span, *behind)) for one in group[place]]
        yield from self._without(term, [(one.event, one.span) for one in members])
        if place + 1 == len(group):
            return
        for k, first in enumerate(members):
            checkpoint()
            for held in self._holding(term, first.event):
                time = held.held[first.event]
                chosen = self._meeting(held, _at(first.span, time))
                if chosen is None:
                    continue
                # Of several at one tick the one that is listed first.
                earlier = [
                    (one.event, (*one.span, (OTHER, time, -UNBOUND, 0 if j < k else -1)))
                    for j, one in enumerate(members)
                    if j != k
                ]
                for without in self._without(chosen, earlier):
                    yield from self.first_of(without, group, place + 1, time)

    def _without(self, term: _Term, forbidden: Iterable[tuple[int, Span]]) -> list[_Term]:
        """Return the terms in which events are not in spans."""
        terms = [term]
        for event, span in forbidden:
            terms = [further for one in terms for further in self._forbidding(one, event, span)]
            if len(terms) > _MOST_TERMS:
                raise TooManyTermsError
        return terms

    def _forbidding(self, term: _Term, event: int, span: Span) -> Iterator[_Term]:
        """Yield the terms in which an event is not in a span: several where its time is one of theirs."""
        if event not in term.held:
            spans = {**term.spans, event: (*term.spans.get(event, ()), span)}
            yield replace(term, spans=spans)
            return
        within: _Term | None = term
        for i, j, low, high in _at(span, term.held[event]):
            assert within is not None
            for outside in ((-UNBOUND, low - 1), (high + 1, UNBOUND)):
                if outside[0] < UNBOUND and outside[1] > -UNBOUND:
                    without = self._meeting(within, ((i, j, *outside),))
                    if without is not None:
                        yield without
            within = self._meeting(within, ((i, j, low, high),))
            if within is None:
                return

    def _holding(self, term: _Term, event: int) -> Iterator[_Term]:
        """Yield the terms in which the time of an event is one of theirs."""
        if event in term.held:
            yield term
            return
        spans = term.spans.get(event, ())
        held = {**term.held, event: self._count + len(term.held)}
        without = {other: spans for other, spans in term.spans.items() if other != event}
        yield from self._without(_Term(held, without, term.bounds), [(event, span) for span in spans])

    def _meeting(self, term: _Term, constraints: Iterable[Constraint]) -> _Term | None:
        """Return a term with further bounds; None if they cannot be met."""
        bounds = dict(term.bounds)
        for i, j, low, high in constraints:
            if i == j:
                if not low <= 0 <= high:
                    return None
                continue
            if i == NO_TIME or (j, i) in bounds:
                i, j, low, high = j, i, -high, -low
            before = bounds.get((i, j), (-UNBOUND, UNBOUND))
            low, high = max(low, before[0]), min(high, before[1])
            (early, late), (begin, end) = self._ticks(term, i), self._ticks(term, j)
            if max(low, early - end) > min(high, late - begin):
                return None
            bounds[i, j] = low, high
        return replace(term, bounds=bounds)

    def _ticks(self, term: _Term, time: int) -> tuple[int, int]:
        """Return the first and last tick of a time."""
        if time == NO_TIME:
            return 0, 0
        if time < self._count:
            return self._first[time], self._last[time]
        event = [*term.held][time - self._count]
        spoilers = self._part.forbidden
        return int(spoilers.lower[event]), int(spoilers.upper[event])


def _at(span: Span, time: int) -> Span:
    """Return the constraints of an event that has a time of a match."""
    return tuple((time if i == OTHER else i, time if j == OTHER else j, *ends) for i, j, *ends in span)  # type: ignore[misc]


def _happened(part: ExplicitMatches, x: int) -> float:
    """Return the probability that an event that may be forbidden happened."""
    offset = int(part.forbidden.offset[x])
    return float(part.pmfs.values[DOUBTFUL - offset]) if offset <= DOUBTFUL else 1.0


def _law(part: ExplicitMatches, x: int) -> tuple[int, int, float, int]:
    """Return the ticks of an event and its law, as of :class:`SummedTimes`."""
    spoilers = part.forbidden
    low, high, offset = int(spoilers.lower[x]), int(spoilers.upper[x]), int(spoilers.offset[x])
    if offset <= DOUBTFUL:
        offset = int(part.pmfs.values[DOUBTFUL - offset + 1])
    return low, high, float(high - low + 1) if offset < 0 else 0.0, offset - low


def _written(part: ExplicitMatches, terms: Sequence[tuple[int, _Term]]) -> Iterator[WrittenTerms]:
    """Yield terms as matches, those of one form together."""
    forms: dict[Any, list[tuple[int, _Term]]] = defaultdict(list)
    for k, term in terms:
        forms[len(term.held), tuple(term.bounds)].append((k, term))
    for same in forms.values():
        for begin in range(0, len(same), _AT_ONCE):
            checkpoint()
            batch = [term for _, term in same[begin : begin + _AT_ONCE]]
            of_match = np.array([k for k, _ in same[begin : begin + _AT_ONCE]])
            bounds = tuple(
                (*pair, *np.array([term.bounds[pair] for term in batch], dtype=np.int64).T)
                for pair in batch[0].bounds
            )
            forbidden, spoilers = _forbidden(part, batch)
            further = np.array([[*term.held] for term in batch], dtype=np.int64)
            written = ExplicitMatches(
                np.arange(len(batch)), part.shape, _times(part, batch, of_match, bounds), forbidden,
                part.pmfs,
                np.concatenate((part.row[of_match], part.spoiler_row[further]), axis=1),
                part.spoiler_row[spoilers], part.tied[of_match],
            )  # fmt: skip
            happened = [np.prod([_happened(part, x) for x in term.held]) for term in batch]
            yield WrittenTerms(written, of_match, np.array(happened, dtype=np.float64), bounds)


def _times(
    part: ExplicitMatches,
    terms: Sequence[_Term],
    of_match: Int64,
    bounds: Sequence[tuple[int, int, Int64, Int64]],
) -> SummedTimes:
    """Return the times of terms of one form, with their literals."""
    times = part.times
    laws = [[_law(part, x) for x in term.held] for term in terms]
    count = len(laws[0])
    columns: list[Any] = []
    for c, column in enumerate((times.first, times.last, times.size, times.offset)):
        further = np.array([[law[c] for law in of_term] for of_term in laws], column.dtype)
        columns.append(np.concatenate((column[of_match], further.reshape(len(laws), count)), axis=1))
    for time, other, low, high in bounds:
        if other == NO_TIME:
            columns[0][:, time] = np.maximum(columns[0][:, time], low)
            columns[1][:, time] = np.minimum(columns[1][:, time], high)
    added = [each for each in bounds if each[1] != NO_TIME]
    at = of_match if len(times.low) > 1 else np.zeros_like(of_match)
    sides = np.array([each[:2] for each in added], dtype=np.int64).reshape(-1, 2)
    low, high = (
        np.column_stack((bound[at], *(each[k] for each in added)))
        for k, bound in ((2, times.low), (3, times.high))
    )
    written = SummedTimes(
        columns[0], columns[1], columns[2], columns[3], np.concatenate((times.sides, sides)), low, high,
        np.concatenate((times.ends, np.zeros((2, count), dtype=np.bool_)), axis=1),
    )  # fmt: skip
    tighten: Any = tighten_all
    tighten(written)
    return written


def _forbidden(part: ExplicitMatches, terms: Sequence[_Term]) -> tuple[Others, Int64]:
    """Return the events that terms forbid, with the constraints of their spans, and their numbers."""
    rules: dict[tuple[tuple[int, int], ...], int] = {}
    events, rule, low, high = [], [], [], []
    start, rule_start = [0], [0]
    for term in terms:
        for x, spans in term.spans.items():
            events.append(x)
            for span in spans:
                rule.append(rules.setdefault(tuple((i, j) for i, j, _, _ in span), len(rules)))
                low.append([bound for _, _, bound, _ in span])
                high.append([bound for _, _, _, bound in span])
            rule_start.append(len(rule))
        start.append(len(events))
    widest = max(map(len, rules), default=1)
    sides = np.zeros((len(rules), widest, 2), dtype=np.int64)
    for pairs, number in rules.items():
        sides[number, : len(pairs)] = pairs
    bounds = np.full((2, len(rule), widest), UNBOUND)
    bounds[0] = -UNBOUND
    for r, (lowest, highest) in enumerate(zip(low, high, strict=True)):
        bounds[0, r, : len(lowest)], bounds[1, r, : len(highest)] = lowest, highest
    spoilers, chosen = part.forbidden, np.array(events, dtype=np.int64)
    written = Others(
        np.array(start), spoilers.lower[chosen], spoilers.upper[chosen], spoilers.offset[chosen],
        np.array(rule_start), np.array(rule, dtype=np.int64), sides,
        np.array([len(pairs) for pairs in rules], dtype=np.int64), bounds[0], bounds[1],
    )  # fmt: skip
    return written, chosen
