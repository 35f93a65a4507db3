"""Evaluation of SEQ with Kleene or negated components, or under contiguity: matches grown event by event."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence import exact_chain_confidence
from confidence.budget import checkpoint, steps_per_call
from confidence.predicates.conditions import Scratch, scratch
from eventbased.gaps.gap_events import UNLIMITED, CostlyGapsError, ForbiddenEvents, GapConfidences
from eventbased.search.backtracking import (
    DEEPER,
    EXHAUSTED,
    FULL,
    TOO_LONG,
    Pattern,
    SortedCandidates,
    Wanted,
    completions,
    grow,
    promising_choices,
    start_growing,
)
from uncertain_cep.config import FIRST_EVENTS, MOST_CONFIDENCE_STEPS
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.search import Matches, Search, costly, grown_chunks

__all__ = ["Growth", "backtracking_search"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


def backtracking_search(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a pattern of single, Kleene and negated components under any strategy.

    Partial matches are counted by nodes where single components are joined first, else by the components that
    have taken an event.

    Raises
    ------
    ConfidenceCostError
        If the confidence of a match takes too many steps.

    Notes
    -----
    Memory is O(events + batch_rows * events of a match), whatever the number of matches.
    """
    yield from grown_chunks(Growth, context)


class Growth(Search):
    """The search for matches whose events come one after the other."""

    def _prepare(self) -> None:
        plan, laid, lower, upper, window = self._plan, self._laid, self._lower, self._upper, self._window
        limit = self._forbidden.limit
        if len(limit):
            limit = np.where(limit == UNLIMITED, UNLIMITED, limit + self._base)
        latest, reach = np.empty_like(lower), np.empty_like(lower)
        completions(laid.first_class, laid.class_start, laid.class_stop, lower, upper, window, latest, reach)
        self._given = SortedCandidates(
            laid.first_class, laid.class_start, laid.class_stop, laid.class_longest, lower, upper, latest,
            reach, self._rows, limit, self._offset[self._rows],
        )  # fmt: skip
        most_steps = float(MOST_CONFIDENCE_STEPS)
        self._confidences = GapConfidences(window, self._table.num_rows, most_steps, *plan.estimates)
        self._pattern = Pattern(self._kleene, window, plan.query.strategy == "skip_till_next_match")

    def _gaps(self) -> list[tuple[int, int]]:
        inside = range(1, len(self._kleene))
        gaps = [negation.after for negation in self._plan.negations]
        return [(1 << after - 1, 1 << after) if after in inside else (0, 0) for after in gaps]

    def firsts(self, matches: Matches) -> NDArray[np.bool_]:
        """Return for each event of some matches whether it is the first of its match."""
        start, place, _ = matches
        first = np.zeros(len(place), dtype=np.bool_)
        first[start[:-1]] = True
        return first

    def _promising(self, chosen: Int64, wanted: Wanted) -> NDArray[np.bool_]:
        promising = np.empty(chosen.shape[1], dtype=np.bool_)
        promising_choices(self._given, wanted, self._window, chosen, promising)
        return promising

    def _searched(self, fixed: Int64, counters: Counters | None) -> Iterator[MatchBatch]:
        batch_rows = self._context.batch_rows
        conditions = self._conditions
        search: Any = grow
        length = len(fixed)
        depth = length + FIRST_EVENTS
        state, work, asked = (
            start_growing(depth, self._table.num_rows, length),
            scratch(conditions, depth),
            scratch(conditions, depth),
        )
        start = np.empty(batch_rows + 1, dtype=np.int64)
        room = batch_rows * (length + 1) + depth
        place, component = np.empty((2, room), dtype=np.int64)
        sizes = self._sizes()
        status = FULL
        size = next(sizes)
        while status != EXHAUSTED:
            status, found = search(
                self._given, self._pattern, conditions, self._barriers, self._wanted(self._context.threshold),
                state, work, fixed, steps_per_call(), size, start, place, component,
            )  # fmt: skip
            if status == FULL:
                size = next(sizes)
            checkpoint()
            if status == TOO_LONG:
                place, component = np.empty((2, 2 * len(place)), dtype=np.int64)
            if found:
                matches = start[: found + 1], place[: start[found]], component[: start[found]]
                chunk = self._chunk(matches, asked)
                if len(chunk.lower):
                    yield chunk
            if status == DEEPER:
                depth *= 2
                state, work, asked = (
                    state.deeper(depth),
                    work.deeper(conditions, depth),
                    scratch(conditions, depth),
                )
        self._counted(state.taken, counters)

    def _weighed(
        self, matches: Matches, events: ForbiddenEvents, wanted: bool, work: Scratch, boxes: Int64
    ) -> tuple[Int64, Int64, Float64, Float64]:
        start, place, _ = matches
        found = len(start) - 1
        given = self._given
        lower, upper = np.empty((2, found), dtype=np.int64)
        confidence, std_error = np.empty((2, found))
        try:
            self._confidences.describe(
                matches, found, (given.lower, given.upper, self._base, self._rows), self._offset,
                events, self._forbidden.rules, self._conditions, self._pmfs, wanted, work,
                (lower, upper, confidence, std_error), boxes,
            )  # fmt: skip
        except CostlyGapsError as error:
            raise costly(self._plan, self._table, self._rows, matches, error) from None
        if wanted:
            self._redo_exactly(start, place, confidence, boxes)
        return lower, upper, confidence, std_error

    def _redo_exactly(self, start: Int64, place: Int64, confidence: Float64, boxes: Int64) -> None:
        """Replace the confidences that float64 could not give (NaN) by those of exact arithmetic."""
        for n in np.flatnonzero(np.isnan(confidence)).tolist():
            own = slice(int(start[n]), int(start[n + 1]))
            lower = self._given.lower[place[own]].tolist()
            upper = self._given.upper[place[own]].tolist()
            share = Fraction(1)
            if boxes.shape[1]:
                for k, (first, last) in enumerate((boxes[:, own] + self._base[place[own]]).T.tolist()):
                    ticks = upper[k] - lower[k] + 1
                    lower[k], upper[k] = max(lower[k], first), min(upper[k], last)
                    share *= Fraction(upper[k] - lower[k] + 1, ticks)
            confidence[n] = float(exact_chain_confidence(lower, upper, self._window) * share)
