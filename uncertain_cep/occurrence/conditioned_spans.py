"""Groups of matches of events that last: given that each span is possible, P(at least k of the matches).

A span whose length is certain has one time: its end is its begin and the length. The begin and the end of
any other one are two times, given that its length is within its bounds (C). Matches that share no variable,
and no span, are a *part* of a group: given C parts are independent. A match that has the literals of C too
is true where it is and C holds. So for the n matches of a part whose spans s have shares Z_s of possible
pairs, P(n | C) = P(n and C) / prod Z_s for n > 0. Where lengths have probabilities, each choice of lengths
of a part is weighed by itself: a world has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import counting, starts_of, taken
from uncertain_cep.candidates.span_times import SpanTimes
from uncertain_cep.config.limits import MOST_LENGTHS_OF_GROUP
from uncertain_cep.occurrence.groups_of_matches import (
    GroupedMatches,
    NumberedGroups,
    by_group,
    with_literals,
)
from uncertain_cep.occurrence.literals import MatchLiterals
from uncertain_cep.occurrence.time_variables import TimeVariables

__all__ = [
    "ConditionedGroups",
    "ConditionedSpans",
    "OpenSpans",
    "TooManyLengthsError",
    "sums_of_numbers",
    "times_with_ends",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


def times_with_ends(times: TimeVariables, spans: SpanTimes) -> TimeVariables:
    """Return variables in which the end of a span of a certain length has the variable of its begin.

    An end with probabilities of its own stays another time.
    """
    count, length = spans.events, spans.length
    of_end = times.variable[count:]
    has_law = (of_end >= count) & (times.law[of_end] >= 0)
    rigid = np.flatnonzero((length.lower == length.upper) & ~has_law)
    variable, constant = times.variable.copy(), times.constant.copy()
    variable[rigid + count] = variable[rigid]
    constant[rigid + count] = constant[rigid] + length.lower[rigid]
    return TimeVariables(
        variable, constant, times.happened, times.lower, times.upper, times.clock, times.law, times.values
    )


class OpenSpans(NamedTuple):
    """Spans whose begin and end are two times, given that their length is within its bounds.

    Attributes
    ----------
    begin, end : (s,) int64
        The variables of each.
    low, high : (s,) int64
        Bounds of its length, ticks.
    share : (s,) float64
        The part of all pairs that is possible.
    lengths : (s + 1,) int64
        Where the lengths with probabilities of each begin; none: all are alike.
    length : (m,) int64
    weight : (m,) float64
        The probability of each; positive.
    """

    begin: Int64
    end: Int64
    low: Int64
    high: Int64
    share: Float64
    lengths: Int64
    length: Int64
    weight: Float64

    def some(self, numbers: Int64, variable: Int64) -> OpenSpans:
        """Return some spans by the numbers, (v,) int64, that their variables have elsewhere."""
        place, lengths = taken(self.lengths, numbers)
        return OpenSpans(
            variable[self.begin[numbers]], variable[self.end[numbers]], self.low[numbers],
            self.high[numbers], self.share[numbers], lengths, self.length[place], self.weight[place],
        )  # fmt: skip

    @classmethod
    def none(cls) -> OpenSpans:
        """Return no spans."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(
            nothing, nothing, nothing, nothing, np.zeros(0), starts_of(nothing), nothing, np.zeros(0)
        )  # fmt: skip

    @classmethod
    def of(cls, times: TimeVariables, spans: SpanTimes) -> OpenSpans:
        """Return the spans of a table of events and their ends of which some pairs are not possible."""
        rows, length, laws = np.arange(spans.events), spans.length, spans.length_laws
        ends = rows + spans.events
        start = np.full(spans.events, -1) if laws is None else laws.start
        # A certain end is within bounds that leave nothing else of the other one.
        is_open = (times.variable[rows] == rows) & (times.variable[ends] == ends)
        begin = np.flatnonzero(is_open & ((spans.share < 1.0) | (start >= 0)))
        sizes = np.where(start >= 0, length.upper - length.lower + 1, 0)[begin]
        place = np.repeat(start[begin], sizes) + counting(sizes)
        weight = np.zeros(0) if laws is None else laws.values[place]
        each = np.repeat(length.lower[begin], sizes) + counting(sizes)
        of_span = np.repeat(np.arange(len(begin)), sizes)[weight > 0.0]
        return cls(
            begin, begin + spans.events, length.lower[begin], length.upper[begin], spans.share[begin],
            starts_of(np.bincount(of_span, minlength=len(begin))), each[weight > 0.0], weight[weight > 0.0],
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[OpenSpans]) -> OpenSpans:
        """Return the spans of several parts, each once."""
        columns = dict(
            zip(cls._fields, map(np.concatenate, zip(*parts, strict=True)), strict=True)
        )  # fmt: skip
        columns["lengths"] = starts_of(np.concatenate([np.diff(part.lengths) for part in parts]))
        together = cls(**columns)
        first = np.unique(together.begin, return_index=True)[1]
        same = np.arange(int(max(together.begin.max(initial=0), together.end.max(initial=0))) + 1)
        return together.some(first, same)


@dataclass(frozen=True, slots=True)
class ConditionedSpans:
    """The spans whose begin and end are two times, given that their length is within its bounds.

    Attributes
    ----------
    open : OpenSpans
    of_variable : (v + 1,) int64
        The span of each variable, -1 for none and in the last place.
    """

    open: OpenSpans
    of_variable: Int64

    @classmethod
    def of(cls, times: TimeVariables, spans: SpanTimes) -> ConditionedSpans | None:
        """Return the spans of a table of events and their ends; None if all pairs of each are possible."""
        open_spans = OpenSpans.of(times, spans)
        return cls.among(times, open_spans) if len(open_spans.begin) else None

    @classmethod
    def among(cls, times: TimeVariables, spans: OpenSpans) -> ConditionedSpans:
        """Return spans with the span of each variable."""
        of_variable = np.full(len(times.lower) + 1, -1)
        of_variable[spans.begin] = of_variable[spans.end] = np.arange(len(spans.begin))
        return cls(spans, of_variable)


class TooManyLengthsError(Exception):
    """A group has more choices of lengths than are weighed; ``match`` is one of its matches."""

    def __init__(self, match: int) -> None:
        super().__init__(match)
        self.match = match


class ConditionedGroups(NamedTuple):
    """Parts of groups, whose matches have the literals of their spans besides.

    Attributes
    ----------
    numbered : NumberedGroups
        Each part is one, for each choice of lengths; ``code`` numbers them.
    part : (c,) int64
        The part of each of these, ascending.
    factor : (c,) float64
        What its probabilities of matches are multiplied by.
    group : (p,) int64
        The number of the group and bucket of each part, ascending.
    code, bucket : (g,) int64
        Of each group and bucket.
    """

    numbered: NumberedGroups
    part: Int64
    factor: Float64
    group: Int64
    code: Int64
    bucket: Int64

    @classmethod
    def of(
        cls, spans: ConditionedSpans, matches: GroupedMatches, times: TimeVariables, *, whole: bool = False
    ) -> ConditionedGroups:
        """Return matches by the parts of their groups; with ``whole`` each group is one part.

        Raises
        ------
        TooManyLengthsError
            If a part has more than ``MOST_LENGTHS_OF_GROUP`` choices of lengths.
        """
        literals, code, bucket = matches
        keys, group = np.unique(np.stack((code, bucket)), axis=1, return_inverse=True)
        group = group.reshape(-1)
        match, variable = _variables_of(literals)
        part = group if whole else _parts(spans, times, group, literals.number, match, variable)
        span = spans.of_variable[variable]
        pairs = np.unique(np.stack((part[match], span))[:, span >= 0], axis=1)
        chosen = _ChosenLengths.of(spans.open, pairs, int(part.max(initial=-1)) + 1)
        if chosen.choices.max(initial=0.0) > MOST_LENGTHS_OF_GROUP:
            raise TooManyLengthsError(int(np.argmax(chosen.choices[part])))
        sizes = chosen.choices.astype(np.int64)
        copies = sizes[part]
        copy, choice = np.repeat(np.arange(len(part)), copies), counting(copies)
        place, start = taken(np.searchsorted(pairs[0], np.arange(len(sizes) + 1)), part[copy])
        again = np.repeat(np.arange(len(copy)), np.diff(start))
        begin, end = (column[pairs[1][place]] for column in spans.open[:2])
        low, high = chosen.bounds(place, choice[again])
        more = [(again, begin, end, low), (again, end, begin, -high)]
        number = starts_of(sizes)[:-1][part[copy]] + choice
        tied = GroupedMatches(with_literals(literals.some(copy), more), number, np.zeros_like(number))
        of_part = np.zeros(len(sizes), dtype=np.int64)
        of_part[part] = group
        return cls(by_group(tied, times), *chosen.factors(sizes), of_part, keys[0], keys[1])


class _ChosenLengths(NamedTuple):
    """Lengths of the spans of parts, a choice for each part: its digits are those of the spans.

    Attributes
    ----------
    spans : OpenSpans
    pairs : (2, n) int64
        Parts, ascending, and their spans.
    sizes : (n,) int64
        How many lengths each span has to choose from.
    stride : (n,) float64
        How many choices there are for those of the part before it.
    choices : (p,) float64
        How many each part has.
    """

    spans: OpenSpans
    pairs: Int64
    sizes: Int64
    stride: Float64
    choices: Float64

    @classmethod
    def of(cls, spans: OpenSpans, pairs: Int64, parts: int) -> _ChosenLengths:
        """Return the lengths that parts can choose from, by (part, span), ascending."""
        sizes = np.maximum(np.diff(spans.lengths)[pairs[1]], 1)
        stride, choices = np.ones(len(sizes)), np.ones(parts)
        turn = counting(np.bincount(pairs[0], minlength=parts))
        for place in range(int(turn.max(initial=-1)) + 1):
            at = np.flatnonzero(turn == place)
            stride[at] = choices[pairs[0, at]]
            choices[pairs[0, at]] *= sizes[at]
        return cls(spans, pairs, sizes, stride, choices)

    def _places(self, place: Int64, choice: Int64) -> tuple[Int64, Int64]:
        """Return the spans of some pairs, and which of its lengths each has in a choice; -1: any."""
        span = self.pairs[1, place]
        digit = choice // self.stride[place].astype(np.int64) % self.sizes[place]
        return span, np.where(np.diff(self.spans.lengths)[span] > 0, self.spans.lengths[span] + digit, -1)

    def bounds(self, place: Int64, choice: Int64) -> tuple[Int64, Int64]:
        """Return between which lengths the spans of some pairs are in a choice of their part's."""
        span, at = self._places(place, choice)
        length = np.append(self.spans.length, 0)[at]
        return np.where(at < 0, self.spans.low[span], length), np.where(at < 0, self.spans.high[span], length)

    def factors(self, sizes: Int64) -> tuple[Int64, Float64]:
        """Return the part of each choice of all parts, and how likely its lengths are by what is possible."""
        part, choice = np.repeat(np.arange(len(sizes)), sizes), counting(sizes)
        place, start = taken(np.searchsorted(self.pairs[0], np.arange(len(sizes) + 1)), part)
        number = np.repeat(np.arange(len(part)), np.diff(start))
        span, at = self._places(place, choice[number])
        factor = np.ones(len(part))
        np.multiply.at(factor, number, np.append(self.spans.weight, 1.0)[at] / self.spans.share[span])
        return part, factor


def _variables_of(literals: MatchLiterals) -> tuple[Int64, Int64]:
    """Return matches and the variables that they depend on, each pair once for each literal."""
    terms = np.repeat(np.arange(len(literals.number)), np.diff(literals.term_start))
    match = np.repeat(terms, np.diff(literals.literal_start))
    match, variable = np.tile(match, 2), np.concatenate((literals.earlier, literals.later))
    return match[variable >= 0], variable[variable >= 0]


def _parts(
    spans: ConditionedSpans,
    times: TimeVariables,
    group: Int64,
    number: Int64,
    match: Int64,
    variable: Int64,
) -> Int64:
    """Return the part of each match, (k,) int64, those of a group side by side in ascending order.

    Matches of a group that share a variable, a clock, a span or a signature are of one part.
    """
    tied = np.where(spans.of_variable[variable] >= 0, spans.open.begin[spans.of_variable[variable]], variable)
    clock = times.clock[variable]
    has_clock = clock >= 0
    count, size = len(group), len(times.lower)
    of_number = size + number
    edge = np.concatenate((match, match[has_clock], np.arange(count)))
    node = np.concatenate((tied, clock[has_clock], of_number))
    nodes = np.unique(np.stack((group[edge], node)), axis=1, return_inverse=True)[1].reshape(-1)
    label = np.arange(count)
    while True:
        checkpoint()
        earliest = np.full(int(nodes.max(initial=-1)) + 1, count)
        np.minimum.at(earliest, nodes, label[edge])
        lower = label.copy()
        np.minimum.at(lower, edge, earliest[nodes])
        lower = lower[lower]
        if (lower == label).all():
            break
        label = lower
    return np.unique(np.stack((group, label)), axis=1, return_inverse=True)[1].reshape(-1)


def sums_of_numbers(probability: Float64, group: Int64, groups: int) -> Float64:
    """Return P(at least k) of sums of independent numbers, (g,) float64.

    Parameters
    ----------
    probability : (p, k + 1) float64
        Of each number: P(n) for n < k, and P(k or more); k is at least 1.
    group : (p,) int64
        Of which sum it is part, ascending; none is without.
    groups : int
    """
    at_least = probability.shape[1] - 1
    start = starts_of(np.bincount(group, minlength=groups))
    result = np.empty(groups)
    for g in range(groups):
        total = probability[start[g]]
        for one in probability[start[g] + 1 : start[g + 1]]:
            # Tails of the one number, met by the other one: no term is negative.
            tail = np.cumsum(one[::-1])[::-1]
            enough = total[-1] + float(total[:-1] @ tail[at_least:0:-1])
            total = np.append(np.convolve(total[:-1], one[:-1])[:at_least], enough)
        result[g] = total[-1]
    return result
