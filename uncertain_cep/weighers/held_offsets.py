"""Matches whose events share clocks: the offsets of the clocks are held, and other weighers take the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.gaps.describing import numbered
from eventbased.gaps.fewer_offsets import Clocks
from eventbased.gaps.gap_events import NO_OFFSETS, HeldOffsets, MatchEvents
from eventbased.gaps.held_clocks import HeldConfidences
from uncertain_cep.config import MOST_OFFSETS
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern

__all__ = ["Offsets"]

Int64 = NDArray[np.int64]


class Offsets:
    """Means of confidences over the offsets that events share; given them, times are independent.

    Parameters
    ----------
    pattern : MatchPattern
    clocks : Clocks
    given : callable
        Fills the answers of matches whose offsets are held.
    """

    name = "offsets"
    why = "takes events that share clocks: holds the offsets, another weigher takes the matches given them"

    def __init__(
        self, pattern: MatchPattern, clocks: Clocks, given: Callable[[MatchModel, Columns], None]
    ) -> None:
        times = pattern.plan.bound.times
        self._pattern, self._given = pattern, given
        self.held = HeldConfidences(
            clocks,
            pattern.window,
            not pattern.is_sequence,
            bool(times),
            any(condition.earlier is None for condition in times),
            MOST_OFFSETS,
            pattern.limits,
        )

    def weigh(self, model: MatchModel, out: Columns) -> None:
        """Fill the answers of matches.

        Raises
        ------
        CostlyMatchError, TooManyOffsetsError
            If a match takes too many steps, or has too many choices of offsets.
        """
        assert model.pools is not None
        assert model.scratch is not None
        assert self._pattern.conditions is not None

        def inner(some: MatchEvents, which: Int64, held: HeldOffsets | None) -> tuple[NDArray[Any], ...]:
            answers = Columns.empty(len(some.start) - 1)
            with numbered(which):
                self._given(replace(model, matches=some, held=held or NO_OFFSETS), answers)
            answers.confidence[answers.lower > answers.upper] = 0.0
            return answers

        forbidding = model.pools, self._pattern.rules, self._pattern.conditions, model.scratch
        laws = model.offsets, model.pmfs
        self.held.describe(model.matches, model.candidates, laws, forbidding, inner, out)
