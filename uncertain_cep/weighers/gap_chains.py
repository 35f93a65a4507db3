"""Sequences whose gaps must stay free: a Markov chain over the times, with weights for what is forbidden."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence import Limits
from eventbased.gaps.gap_confidences import GapConfidences
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.weigher import Declined, price_of_sweeps

__all__ = ["GapChains"]

Float64 = NDArray[np.float64]


class GapChains:
    """Chains over the ticks of neighbours (PVLDB 3(1), 2010, Eq. 2-4); closed forms for free gaps."""

    name = "gap chain"
    why = "takes sequences without conditions on times: a chain over the ticks of neighbours, gaps weighed"
    priced_above = 0.0
    takes_all = False

    def __init__(self, pattern: MatchPattern) -> None:
        self._pattern = pattern
        self._kernel = GapConfidences(pattern.window, pattern.rows, Limits(pattern.limits.most_steps))

    @classmethod
    def of(cls, pattern: MatchPattern) -> GapChains | None:
        """Return the weigher for the matches of a pattern; None for sets and conditions on times."""
        return cls(pattern) if pattern.is_sequence and not pattern.has_time_literals else None

    def price(self, model: MatchModel) -> Float64:
        """Return about what one pass over each chain costs, (k,) float64.

        That is the pairs of ticks of neighbours whose intervals overlap, and the ticks of others.
        """
        return price_of_sweeps(model, overlaps=True)

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those whose gaps are coupled by too many events."""
        declined: dict[int, float] = {}
        assert model.pools is not None
        assert model.scratch is not None
        assert self._pattern.conditions is not None
        out.std_error[:] = 0.0
        self._kernel.describe(
            model.matches, model.candidates, model.offsets, model.pools, self._pattern.rules,
            self._pattern.conditions, model.pmfs, model.wanted, model.scratch,
            out[:3], model.held, declined,
        )  # fmt: skip
        limit = self._pattern.limits.most_steps
        return {n: (steps, limit) for n, steps in declined.items()}
