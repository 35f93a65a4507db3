"""Matches whose events share clocks: the offsets of the clocks are held, and other weighers take the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence import Limits
from confidence.flat_lists import starts_of
from confidence.gaps.describing import numbered
from eventbased.gaps.fewer_offsets import Clocks
from eventbased.gaps.gap_events import NO_OFFSETS, HeldOffsets, MatchEvents
from eventbased.gaps.held_clocks import HeldConfidences
from eventbased.gaps.in_reach import InReach
from uncertain_cep.config.limits import MOST_OFFSETS
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
        # By sequences and beside a set gaps are not those of the window.
        self._is_listed = pattern.ties is not None or pattern.plan.negates_beside_sets
        # The two ends of an event share its clock.
        self._is_listed |= pattern.spans is not None
        self._is_listed |= pattern.plan.has_negated_groups or pattern.plan.binds_beside
        # The range of an estimate takes all events of a match as apart.
        limits = Limits(pattern.limits.most_steps) if self._is_listed else pattern.limits
        self.held = HeldConfidences(
            clocks,
            pattern.window,
            not pattern.is_sequence,
            pattern.has_time_literals,
            any(condition.earlier is None for condition in times),
            MOST_OFFSETS,
            limits,
        )

    def weigh(self, model: MatchModel, out: Columns) -> None:
        """Fill the answers of matches.

        Raises
        ------
        CostlyMatchError, TooManyOffsetsError
            If a match takes too many steps, or has too many choices of offsets.
        """
        if not model.count:
            return
        assert model.pools is not None
        assert model.scratch is not None
        assert self._pattern.conditions is not None

        def inner(some: MatchEvents, which: Int64, held: HeldOffsets | None) -> tuple[NDArray[Any], ...]:
            answers = Columns.empty(len(some.start) - 1)
            with numbered(which):
                lengths = None if model.lengths is None else model.lengths[which]
                beside = None if model.beside is None else model.beside.some(which)
                given_offsets = model
                if held is not None or some is not model.matches:
                    given_offsets = replace(
                        model, matches=some, held=held or NO_OFFSETS, lengths=lengths, beside=beside
                    )
                self._given(given_offsets, answers)
            answers.confidence[answers.lower > answers.upper] = 0.0
            return answers

        if self._is_listed:
            self.held.mix(model.matches, model.candidates, self._in_reach(model), inner, out)
            np.minimum(out.confidence, 1.0, out=out.confidence)
            return
        forbidding = model.pools, self._pattern.rules, self._pattern.conditions, model.scratch
        laws = model.offsets, model.pmfs
        self.held.describe(model.matches, model.candidates, laws, forbidding, inner, out)

    def _in_reach(self, model: MatchModel) -> InReach:
        """Return the events that decide on each match, and the clocks that several of them name."""
        sizes, spoilers = np.zeros((2, model.count), dtype=np.int64)
        listed: list[tuple[Int64, Int64]] = []
        # An earlier tick is by no clock.
        for part in replace(model, beside=None).explicit:
            rows, which = part.row.ravel(), np.repeat(part.which, part.row.shape[1])
            sizes[part.which], spoilers[part.which] = part.row.shape[1], part.spoilers
            if self._pattern.spans is not None:
                # Ends are rows of their own; those that move with their begins decide nothing.
                decides = np.ones(part.row.shape, np.bool_)
                begins = part.row[:, list(part.shape.lasting)]
                decides[:, part.shape.total :] = ~self._pattern.spans.times.moved_as_one[begins]
                sizes[part.which] = decides.sum(axis=1)
                rows, which = rows[decides.ravel()], which[decides.ravel()]
            listed.append((which, rows))
            of_spoiler = np.repeat(part.which, part.spoilers)
            listed.append((of_spoiler, part.spoiler_row))
            if self._pattern.spans is not None and self._pattern.spans.negates_open:
                # What is known of a begin, given the length, is so by its clock.
                is_pair = self._pattern.spans.are_pairs(part.spoiler_row)
                ends = part.spoiler_row[is_pair] + self._pattern.spans.times.events
                listed.append((of_spoiler[is_pair], ends))
                spoilers += np.bincount(of_spoiler[is_pair], minlength=model.count)
        match, row = (np.concatenate(column) for column in zip(*listed, strict=True))
        order = np.argsort(match, kind="stable")
        match, row = match[order], row[order]
        clock = self.held.clocks.own.clock[row]
        # One place more, for events without a clock.
        count = len(self.held.clocks.offsets.lower) + 1
        number = match * count + clock + 1
        _, place, uses = np.unique(number, return_inverse=True, return_counts=True)
        shared = (clock >= 0) & (uses[place] > 1)
        begin = starts_of(sizes + spoilers)
        together = np.logical_and.reduceat(shared, begin[:-1])
        several = np.unique(number[shared])
        start = np.searchsorted(several, np.arange(model.count + 1) * count)
        return InReach(start, several % count - 1, together, begin, np.tile(row, (5, 1)))
