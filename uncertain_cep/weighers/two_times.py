"""Matches of one or two uniform times, whatever is forbidden beside them: sums over pieces of their ticks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, multiplications_per_call
from confidence.chain.distribution import DOUBTFUL
from confidence.chain.pieces import HIGHEST_DEGREE
from confidence.gaps.describing import ALL, COSTLY
from confidence.timed.forbidden_tables import spans
from confidence.timed.summed_pieces import describe_by_pieces, piece_work
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.weigher import CANNOT, WRITTEN_OUT, Declined

__all__ = ["TwoTimes"]

Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LAID_OUT: Final = 10.0
"""What it takes to lay out the pieces of one time, in multiplications at each tick that is looked at."""

_MOST_EVENTS: Final = 64
"""Events that may be forbidden one match: the work grows with more than their cube."""


class TwoTimes:
    """Sums over pieces of the ticks of two times, or one; no cost depends on the number of ticks."""

    name = "two times"
    why = "takes one or two uniform times, one span for each event that is forbidden: sums over pieces"
    priced_above = WRITTEN_OUT
    takes_all = False

    def __init__(self, most_steps: float) -> None:
        self._most_steps = most_steps

    @classmethod
    def of(cls, pattern: MatchPattern) -> TwoTimes:
        """Return the weigher for the matches of a pattern."""
        return cls(pattern.limits.most_steps)

    def price(self, model: MatchModel) -> Float64:
        """Return about how many multiplications each match takes, (k,) float64."""
        prices = np.full(model.count, CANNOT)
        for part in model.explicit:
            if part.shape.times <= 2:
                prices[part.which] = np.where(_takes(part), _multiplications(part), CANNOT)
        return prices

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those that take too many steps."""
        declined: Declined = {}
        for part in model.explicit:
            if part.shape.times > 2:
                declined |= dict.fromkeys(part.which.tolist(), (CANNOT, self._most_steps))
                continue
            takes = _takes(part)
            declined |= dict.fromkeys(part.which[~takes].tolist(), (CANNOT, self._most_steps))
            fit = part.some(np.flatnonzero(takes))
            answers = Columns.empty(len(fit.which))
            for place in _in_pieces(fit, model.wanted, self._most_steps, answers):
                declined[int(fit.which[place])] = CANNOT, self._most_steps
            out.put(fit.which, answers)
        return declined


def _takes(part: ExplicitMatches) -> Mask:
    """Return a mask (k,) of matches of uniform times whose forbidden events have one rule at most."""
    forbidden, values = part.forbidden, part.pmfs.values
    possible = part.times.first[:, 0] <= part.times.last[:, 0]
    takes = (part.spoilers <= _MOST_EVENTS) & ((part.times.size > 0.0).all(axis=1) | ~possible)
    if not len(forbidden.lower):
        return takes
    offset = forbidden.offset
    may_lack = offset <= DOUBTFUL
    of_law = values[DOUBTFUL - offset[may_lack] + 1]
    explicit = offset >= 0
    explicit[may_lack] = of_law >= 0.0
    unfit = explicit | (np.diff(forbidden.rule_start) > 1)
    match = np.repeat(np.arange(len(takes)), part.spoilers)
    takes[match[unfit]] = False
    return takes


def _multiplications(part: ExplicitMatches) -> Float64:
    """Return about how many multiplications each match takes, (k,) float64."""
    events, ticks = part.spoilers.astype(np.float64), part.sizes
    # Of each piece so many ticks are looked at.
    each = np.where(events <= HIGHEST_DEGREE, np.minimum(events + 2.0, 5.0), 8.0)
    looked_at = [np.minimum(size, (2.0 * events + 2.0) * each) for size in ticks.T]
    both: Float64 = np.prod(looked_at, axis=0) * (events + 1.0)
    return both if len(looked_at) > 1 else _LAID_OUT * both


def _in_pieces(part: ExplicitMatches, with_confidence: bool, most_steps: float, out: Columns) -> list[int]:
    """Fill ranges and confidences of matches; return the places of those that take too many steps."""
    if not len(part.which):
        return []
    forbidden = part.forbidden
    work = piece_work(int(part.spoilers.max(initial=0)))
    room = spans(1, forbidden.low.shape[1], 2)
    declined: list[int] = []
    kernel: Any = describe_by_pieces
    done, reason = 0, COSTLY
    while reason != ALL:
        checkpoint()
        done, reason = kernel(
            part.times, forbidden, part.pmfs, done, with_confidence, most_steps, multiplications_per_call(),
            room, work, tuple(out[:3]),
        )  # fmt: skip
        if reason == COSTLY:
            declined.append(int(done))
            done += 1
    return declined
