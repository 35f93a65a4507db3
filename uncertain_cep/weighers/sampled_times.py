"""Any match, where estimates are allowed: times are drawn within their bounds, one after the other."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.distribution import DOUBTFUL
from confidence.config import FEWEST_DRAWS
from confidence.timed.bounds import UNBOUND, Bounds
from confidence.timed.drawn_times import Drawn, sampled
from confidence.timed.factors import Cells, TooManyCellsError
from confidence.timed.forbidden_spans import Span
from confidence.timed.forbidden_tables import OTHER
from uncertain_cep.config import MOST_CONFIDENCE_STEPS
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.weigher import Declined

__all__ = ["Sampling"]

Float64 = NDArray[np.float64]

_DEARER: Final = 4.0 * MOST_CONFIDENCE_STEPS
"""Added to every price: an estimate is taken only where no exact confidence is to be had."""


class Sampling:
    """Estimates with a standard error, by draws that all bounds leave possible."""

    name = "sampling"
    why = "takes every match where approximate= allows an estimate, and only what is too dear for all others"
    priced_above = _DEARER
    takes_all = True

    def __init__(self, std_error: float, seed: int) -> None:
        self._estimates = std_error, seed

    @classmethod
    def of(cls, pattern: MatchPattern) -> Sampling | None:
        """Return the weigher for the matches of a pattern; None where estimates are not allowed."""
        limits = pattern.limits
        return cls(limits.std_error, limits.seed) if limits.std_error > 0.0 else None

    def price(self, model: MatchModel) -> Float64:
        """Return about how many multiplications each match takes, (k,) float64."""
        draws = max(FEWEST_DRAWS, math.ceil((0.5 / self._estimates[0]) ** 2))
        found = np.empty(model.count)
        for part in model.explicit:
            found[part.which] = _DEARER + draws * (part.shape.total**2 + part.spoilers)
        return found

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those that take too many draws.

        Ranges hold the tightest ones: what is forbidden is not taken off.
        """
        declined: Declined = {}
        for part in model.explicit:
            for place, n in enumerate(part.which.tolist()):
                checkpoint()
                try:
                    answer = self._estimated(part, place)
                except TooManyCellsError as error:
                    declined[n] = error.cells, float(MOST_CONFIDENCE_STEPS)
                    continue
                out.lower[n], out.upper[n], out.confidence[n], out.std_error[n] = answer
        return declined

    def _estimated(self, part: ExplicitMatches, k: int) -> tuple[int, int, float, float]:
        """Return range, estimate and standard error of one match of a batch."""
        times, values = part.times, part.pmfs.values
        first, last = times.first[k].tolist(), times.last[k].tolist()
        if first[0] > last[0]:
            return 0, -1, 0.0, 0.0
        drawn = []
        for begin, stop, size, offset in zip(
            first, last, times.size[k].tolist(), times.offset[k].tolist(), strict=True
        ):
            pmf = None if size > 0.0 else values[offset + begin : offset + stop + 1]
            drawn.append(Drawn(begin, stop, size, pmf))
        m = min(k, len(times.low) - 1)
        bounds: Bounds = {
            (i, j): (low, high)
            for (i, j), low, high in zip(
                times.sides.tolist(), times.low[m].tolist(), times.high[m].tolist(), strict=True
            )
        }
        start = part.forbidden.start
        forbidden = [found for x in range(start[k], start[k + 1]) if (found := _spoiler(part, x)) is not None]
        answer = sampled(
            drawn, bounds, forbidden, *self._estimates, Cells(MOST_CONFIDENCE_STEPS, MOST_CONFIDENCE_STEPS)
        )
        is_first, is_last = times.ends
        return int(times.first[k][is_first].min()), int(times.last[k][is_last].max()), *answer


def _spoiler(part: ExplicitMatches, x: int) -> tuple[Drawn, list[Span]] | None:
    """Return the law of an event that may be forbidden, and its spans; None if it has none."""
    others, values = part.forbidden, part.pmfs.values
    spans = [_span(part, r) for r in range(others.rule_start[x], others.rule_start[x + 1])]
    possible = [span for span in spans if span is not None]
    low, high, offset = int(others.lower[x]), int(others.upper[x]), int(others.offset[x])
    happened = 1.0
    if offset <= DOUBTFUL:
        happened, offset = float(values[DOUBTFUL - offset]), int(values[DOUBTFUL - offset + 1])
    if not possible or not happened > 0.0:
        return None
    pmf = None if offset < 0 else happened * values[offset : offset + high - low + 1]
    return Drawn(low, high, (high - low + 1) / happened, pmf), possible


def _span(part: ExplicitMatches, r: int) -> Span | None:
    """Return the span of a rule for an event; None if a constraint is never met."""
    others = part.forbidden
    rule = int(others.rule[r])
    lowers: list[tuple[int, int]] = []
    uppers: list[tuple[int, int]] = []
    guards: Bounds = {}
    for c in range(int(others.constraints[rule])):
        i, j = others.sides[rule, c].tolist()
        low, high = int(others.low[r, c]), int(others.high[r, c])
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
            known = guards.get((i, j), (-UNBOUND, UNBOUND))
            guards[i, j] = max(known[0], low), min(known[1], high)
    return Span(tuple(lowers), tuple(uppers), guards)
