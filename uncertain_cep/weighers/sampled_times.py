"""Any match, where estimates are allowed: times are drawn within their bounds, one after the other."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.config import FEWEST_DRAWS
from confidence.timed.bounds import Bounds
from confidence.timed.drawn_times import Drawn, Forbidden, sampled
from confidence.timed.factors import Cells, TooManyCellsError
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.forbidden_events import differences, forbidden_events, forbidden_pairs
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
            found[part.which] = _DEARER + draws * (part.shape.times**2 + part.spoilers)
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
        bounds: Bounds = dict(differences(part, k))
        spoilers: list[Forbidden] = [*forbidden_pairs(part, k)]
        for event in forbidden_events(part, k):
            pmf = None if event.pmf is None else event.happened * event.pmf
            size = (event.upper - event.lower + 1) / event.happened
            spoilers.append((Drawn(event.lower, event.upper, size, pmf), event.spans))
        answer = sampled(
            drawn, bounds, spoilers, *self._estimates, Cells(MOST_CONFIDENCE_STEPS, MOST_CONFIDENCE_STEPS)
        )
        is_first, is_last = times.ends
        return int(times.first[k][is_first].min()), int(times.last[k][is_last].max()), *answer
