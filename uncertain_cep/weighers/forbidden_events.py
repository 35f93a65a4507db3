"""Differences and forbidden spans of one match out of those that are written out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.distribution import DOUBTFUL
from confidence.timed.bounds import UNBOUND, Bounds
from confidence.timed.counted_pairs import LASTING, LAW, RECORD
from confidence.timed.drawn_times import DrawnPairs
from confidence.timed.forbidden_spans import Span
from confidence.timed.forbidden_tables import OTHER
from confidence.timed.weighed_pairs import weights_of_pairs
from uncertain_cep.weighers.explicit import ExplicitMatches

__all__ = ["ForbiddenEvent", "differences", "forbidden_events", "forbidden_pairs", "span_of", "tie"]

Float64 = NDArray[np.float64]

Constraint = tuple[tuple[int, int], int, int]
"""Two times, and the bounds of their difference."""


class ForbiddenEvent(NamedTuple):
    """An event that may forbid a match: its law, and where it does.

    Attributes
    ----------
    row : int
    lower, upper : int
        Ticks, inclusive.
    pmf : float64 array or None
        The probabilities of these ticks, if it happened; None: uniform.
    happened : float
        The probability that it happened; positive.
    spans : list of Span
    """

    row: int
    lower: int
    upper: int
    pmf: Float64 | None
    happened: float
    spans: list[Span]


def differences(part: ExplicitMatches, k: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the pairs of events whose difference a match bounds, and the bounds."""
    times = part.times
    m = min(k, len(times.low) - 1)
    return zip(
        map(tuple, times.sides.tolist()),
        zip(times.low[m].tolist(), times.high[m].tolist(), strict=True),
        strict=True,
    )


def forbidden_events(part: ExplicitMatches, k: int) -> Iterator[ForbiddenEvent]:
    """Yield the events that may forbid a match, which have a span and may have happened.

    Not those that last and have no certain length.
    """
    forbidden, values, lasting = part.forbidden, part.pmfs.values, part.lasting_spoilers
    for x in range(int(forbidden.start[k]), int(forbidden.start[k + 1])):
        if lasting[x]:
            continue
        rules = range(int(forbidden.rule_start[x]), int(forbidden.rule_start[x + 1]))
        spans = [span for span in (_span_of_rule(part, r) for r in rules) if span is not None]
        low, high, offset = int(forbidden.lower[x]), int(forbidden.upper[x]), int(forbidden.offset[x])
        happened = 1.0
        if offset <= DOUBTFUL:
            happened, offset = float(values[DOUBTFUL - offset]), int(values[DOUBTFUL - offset + 1])
        if spans and happened > 0.0:
            pmf = None if offset < 0 else values[offset : offset + high - low + 1]
            yield ForbiddenEvent(int(part.spoiler_row[x]), low, high, pmf, happened, spans)


def forbidden_pairs(part: ExplicitMatches, k: int) -> Iterator[tuple[DrawnPairs, list[Span]]]:
    """Yield the events that last, have no certain length, and may forbid a match."""
    forbidden, values, lasting = part.forbidden, part.pmfs.values, part.lasting_spoilers
    for x in range(int(forbidden.start[k]), int(forbidden.start[k + 1])):
        if not lasting[x]:
            continue
        place = DOUBTFUL - int(forbidden.offset[x])
        happened, record = float(values[place]), LASTING - int(values[place + 1])
        low, high = int(forbidden.lower[x]), int(forbidden.upper[x])
        first, last, shortest, longest = map(int, values[record : record + LAW])
        begin, stop = int(forbidden.rule_start[x]), int(forbidden.rule_start[x + 1])
        spans, lengths = [], []
        for r in range(begin, stop, 2):
            both = _span_of_rule(part, r), _span_of_rule(part, r + 1)
            if both[0] is not None and both[1] is not None:
                spans += [both[0], both[1]]
                at = record + RECORD + r - begin
                lengths.append((int(values[at]), int(values[at + 1])))
        if spans and happened > 0.0:
            end = low + first, low + last
            weights = None
            if (law := int(values[record + LAW])) >= 0:
                weights = weights_of_pairs(values, law, (low, high), end, (shortest, longest))
            yield DrawnPairs((low, high), end, (shortest, longest), happened, lengths, weights), spans


def _span_of_rule(part: ExplicitMatches, r: int) -> Span | None:
    """Return the span of a rule of a forbidden event; None if it never holds."""
    forbidden = part.forbidden
    rule = int(forbidden.rule[r])
    sides = map(tuple, forbidden.sides[rule, : int(forbidden.constraints[rule])].tolist())
    return span_of(zip(sides, forbidden.low[r].tolist(), forbidden.high[r].tolist(), strict=False))


def span_of(constraints: Iterable[Constraint]) -> Span | None:
    """Return the span of an event by the constraints of a rule; None if one of them is never met."""
    lowers: list[tuple[int, int]] = []
    uppers: list[tuple[int, int]] = []
    guards: Bounds = {}
    for (i, j), low, high in constraints:
        if low > high:
            return None
        if i != OTHER and j == OTHER:
            i, j, low, high = j, i, -high, -low
        if i == j:
            if not low <= 0 <= high:
                return None
        elif i == OTHER:
            lowers += [(j, low)] if low > -UNBOUND else []
            uppers += [(j, high)] if high < UNBOUND else []
        else:
            tie(guards, i, j, low, high)
    return Span(tuple(lowers), tuple(uppers), guards)


def tie(bounds: Bounds, later: int, earlier: int, low: int, high: int) -> None:
    """Add a bound of a time or a difference to forbidden."""
    if (earlier, later) in bounds:
        later, earlier, low, high = earlier, later, -high, -low
    before = bounds.get((later, earlier), (-UNBOUND, UNBOUND))
    bounds[later, earlier] = max(before[0], low), min(before[1], high)
