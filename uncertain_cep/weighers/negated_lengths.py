"""Negated events that last, of lengths that are not certain: each length in turn is held as certain.

Given its length d, a span with begin in [b, B] and end in [e, E] begins at any tick of [max(b, e - d),
min(B, E - d)] alike, and its end is its begin and d: one time, which forbids as a point does. A world
has one length of each event, so that the sum over lengths is over worlds that exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence import CostlyMatchError
from confidence.budget import checkpoint
from confidence.flat_lists import counting, taken
from confidence.timed.bounds import UNBOUND
from eventbased.gaps.gap_events import some_of
from uncertain_cep.config.limits import MOST_OFFSETS
from uncertain_cep.weighers.exclusive_sums import add_weighted
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import ChosenSpans, Columns

__all__ = ["weigh_by_negated_lengths"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_AT_ONCE: Final = 1 << 14
"""Matches, each with a choice of lengths, that are weighed at once."""


def weigh_by_negated_lengths(
    model: MatchModel, out: Columns, weigh: Callable[[MatchModel, Columns], None]
) -> None:
    """Fill sums over the lengths of negated events of what ``weigh`` fills where lengths are certain.

    Raises
    ------
    CostlyMatchError
        If the lengths of the events that may be forbidden a match are too many.
    """
    spans = model.pattern.spans
    assert spans is not None
    out.lower[:], out.upper[:], out.confidence[:], out.std_error[:] = UNBOUND, -UNBOUND, 0.0, 0.0
    for part in model.explicit:
        shortest, sizes = _lengths(part, spans)
        spoilers = np.repeat(np.arange(len(part.which)), part.spoilers)
        total = np.ones(len(part.which))
        np.multiply.at(total, spoilers, sizes.astype(np.float64))
        if (total > MOST_OFFSETS).any():
            n = int(np.argmax(total > MOST_OFFSETS))
            raise CostlyMatchError(int(part.which[n]), int(min(total[n], 2.0**62)), limit=float(MOST_OFFSETS))
        start = np.concatenate(([0], np.cumsum(total.astype(np.int64))))
        for begin in range(0, int(start[-1]), _AT_ONCE):
            checkpoint()
            number = np.arange(begin, min(begin + _AT_ONCE, int(start[-1])))
            match = np.searchsorted(start, number, side="right") - 1
            held, weight = _held(part, spans, (shortest, sizes), match, number - start[match])
            possible = np.flatnonzero(weight > 0.0)
            if not len(possible):
                continue
            held, weight, which = held.some(possible), weight[possible], part.which[match[possible]]
            repeated = _of_matches(model, which)
            repeated.__dict__["explicit"] = (held._replace(which=np.arange(len(which))),)
            answers = Columns.empty(len(which))
            try:
                weigh(repeated, answers)
            except CostlyMatchError as error:
                costly = int(which[error.match])
                raise CostlyMatchError(costly, error.steps, error.events, error.limit) from None
            add_weighted(out, which, answers, weight)
    nothing = out.lower > out.upper
    out.lower[nothing], out.upper[nothing] = 0, -1


def _of_matches(model: MatchModel, which: Int64) -> MatchModel:
    """Return some matches, (m,) int64; one may be asked for several times."""
    held = model.held
    if len(held.start):
        place, start = taken(held.start, which)
        held = held._replace(start=start, clock=held.clock[place], value=held.value[place])
    lengths = None if model.lengths is None else model.lengths[which]
    return replace(model, matches=some_of(model.matches, which), held=held, lengths=lengths, wanted=True)


def _lengths(part: ExplicitMatches, spans: ChosenSpans) -> tuple[Int64, Int64]:
    """Return the shortest length of each event that may be forbidden, and how many there are, (n,) int64."""
    row, times = part.spoiler_row, spans.times
    begin, end = times.own_begin, times.own_end
    shortest = np.maximum(times.length.lower[row], end.lower[row] - begin.upper[row])
    longest = np.minimum(times.length.upper[row], end.upper[row] - begin.lower[row])
    is_open = times.length.lower[row] < times.length.upper[row]
    return np.where(is_open, shortest, times.length.lower[row]), np.where(is_open, longest - shortest + 1, 1)


def _held(
    part: ExplicitMatches, spans: ChosenSpans, lengths: tuple[Int64, Int64], match: Int64, choice: Int64
) -> tuple[ExplicitMatches, Float64]:
    """Return matches, (m,) of those of a part, given a choice of lengths, and how likely it is."""
    shortest, sizes = lengths
    chosen = part.some(match)
    forbidden, row = chosen.forbidden, chosen.spoiler_row
    place, _ = taken(part.forbidden.start, match)
    of_match = np.repeat(np.arange(len(match)), np.diff(forbidden.start))
    turn, base = counting(np.diff(forbidden.start)), choice.copy()
    more = np.zeros(len(row), dtype=np.int64)
    for k in range(int(turn.max(initial=-1)) + 1):
        at = np.flatnonzero(turn == k)
        base[of_match[at]], more[at] = np.divmod(base[of_match[at]], sizes[place[at]])
    length = shortest[place] + more
    more = length - spans.times.length.lower[row]
    begin, end = spans.times.own_begin, spans.times.own_end
    late = np.maximum(end.lower[row] - length - begin.lower[row], 0)
    early = np.maximum(begin.upper[row] - (end.upper[row] - length), 0)
    width, height = (bounds.upper[row] - bounds.lower[row] + 1 for bounds in (begin, end))
    ways = width - late - early
    pairs = spans.times.share[row] * width * height
    is_open = sizes[place] > 1
    weight = np.ones(len(match))
    np.multiply.at(weight, of_match, np.where(is_open, np.maximum(ways, 0) / pairs, 1.0))
    late, early = np.where(is_open & (ways > 0), late, 0), np.where(is_open & (ways > 0), early, 0)
    each = np.diff(forbidden.rule_start)
    shift = part.shape.of_end[forbidden.rule] * np.repeat(more, each)[:, None]
    low = np.where(forbidden.low > -UNBOUND, forbidden.low - shift, forbidden.low)
    high = np.where(forbidden.high < UNBOUND, forbidden.high - shift, forbidden.high)
    forbidden = forbidden._replace(
        lower=forbidden.lower + late, upper=forbidden.upper - early, low=low, high=high
    )
    return chosen._replace(forbidden=forbidden), weight
