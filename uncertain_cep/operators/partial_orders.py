"""Evaluation of patterns with AND: candidates to the search over partial orders to chunks of matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.partial_order.times import BETWEEN, LEADING, TRAILING
from confidence.predicates.conditions import Scratch, scratch
from eventbased.gaps.gap_events import CostlyGapsError, ForbiddenEvents
from eventbased.gaps.set_gaps import SetConfidences
from eventbased.search.backtracking import Wanted
from eventbased.search.partial_orders import (
    EXHAUSTED,
    FULL,
    MOST_EVENTS,
    TOO_LONG,
    SetCandidates,
    SetPattern,
    choose,
    promising_sets,
    start_choosing,
)
from uncertain_cep.config import MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.operators.batch import KleeneBatch, MatchBatch, Series
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.search import Matches, Search, costly, grown_chunks
from uncertain_cep.query.branches import GapPlace, PartialOrder

__all__ = ["Choosing", "partial_order_search"]

Int64 = NDArray[np.int64]

_PLACES: Final = {"leading": LEADING, "between": BETWEEN, "trailing": TRAILING}


def partial_order_search(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of an OR-free pattern with AND: of a plan with an ``order``.

    Raises
    ------
    ConfidenceCostError
        If the confidence of a match takes too many steps.

    Notes
    -----
    Memory is O(events + batch_rows * events of a match), whatever the number of matches.
    """
    yield from grown_chunks(Choosing, context)


class Choosing(Search):
    """The search for matches whose events are partially ordered."""

    def _prepare(self) -> None:
        laid, kleene = self._laid, self._kleene
        self._given = SetCandidates(
            laid.first_class, laid.class_start, laid.class_stop, laid.class_longest, self._lower, self._upper,
            self._rows, self._offset[self._rows],
        )  # fmt: skip
        is_set = np.array(self._order.is_set, dtype=np.bool_)
        self._sorted = kleene & is_set
        before = np.array(self._order.before, dtype=np.int64)
        self._pattern = SetPattern(kleene, self._sorted, before, self._window)
        gaps = list(dict.fromkeys(self._order.gaps))
        self._confidences = SetConfidences(
            self._order.before,
            (kleene & ~is_set).tolist(),
            [(_PLACES[gap.place], gap.after, gap.before) for gap in gaps],
            np.array([gaps.index(gap) for gap in self._order.gaps], dtype=np.int64),
            self._window,
            self._table.num_rows,
            float(MOST_CONFIDENCE_STEPS),
        )

    @property
    def _order(self) -> PartialOrder:
        assert self._plan.order is not None
        return self._plan.order

    def _gaps(self) -> list[tuple[int, int]]:
        return [self._sides(gap) for gap in self._order.gaps]

    def _sides(self, gap: GapPlace) -> tuple[int, int]:
        """Return the components on both sides of a gap; 0 and 0 if a partial match cannot tell of it."""
        order, components = self._order, range(len(self._kleene))
        if gap.place != "between":
            return 0, 0
        behind = [j for j in components if gap.after >> j & 1]
        ahead = [j for j in components if gap.before >> j & 1]
        # A set that goes on may begin earlier.
        if any(self._kleene[j] and order.is_set[j] for j in ahead):
            return 0, 0
        earlier = gap.after
        for j in behind:
            earlier |= order.before[j]
        # What may be in the gap itself could turn out to be the very event in question.
        later = [j for j in components if gap.before >> j & 1 or order.before[j] & gap.before]
        beside = [j for j in components if not earlier >> j & 1 and j not in later]
        return (0, 0) if beside else (gap.after, gap.before)

    def firsts(self, matches: Matches) -> NDArray[np.bool_]:
        """Return for each event of some matches whether none of its match comes before it."""
        start, _, component = matches
        # Nothing is before the first event of a chain, or before any of a set, that no component is before.
        begins = np.r_[True, component[1:] != component[:-1]]
        begins[start[:-1]] = True
        is_set = np.array(self._order.is_set)
        is_first = np.array(self._order.before) == 0
        first: NDArray[np.bool_] = is_first[component] & (begins | is_set[component])
        return first

    def _promising(self, chosen: Int64, wanted: Wanted) -> NDArray[np.bool_]:
        promising = np.empty(chosen.shape[1], dtype=np.bool_)
        state, work = start_choosing(0, len(chosen)), scratch(self._conditions, MOST_EVENTS)
        promising_sets(self._given, self._pattern, wanted, state, work, chosen, promising)
        return promising

    def _wanted(self, threshold: Threshold | None) -> Wanted:
        found = super()._wanted(threshold)
        # The smallest id of a set is not that of the event taken first.
        return found._replace(rank=found.rank[:0]) if self._sorted[0] else found

    def _searched(self, fixed: Int64, counters: Counters | None) -> Iterator[MatchBatch]:
        batch_rows = self._context.batch_rows
        search: Any = choose
        state = start_choosing(self._table.num_rows, len(fixed))
        work, asked = scratch(self._conditions, MOST_EVENTS), scratch(self._conditions, MOST_EVENTS)
        start = np.empty(batch_rows + 1, dtype=np.int64)
        room = batch_rows * (len(fixed) + 1) + MOST_EVENTS
        place, component = np.empty((2, room), dtype=np.int64)
        sizes = self._sizes()
        status = FULL
        size = next(sizes)
        while status != EXHAUSTED:
            status, found = search(
                self._given, self._pattern, self._conditions, self._barriers,
                self._wanted(self._context.threshold), state, work, fixed, steps_per_call(), size, start,
                place, component,
            )  # fmt: skip
            if status == FULL:
                size = next(sizes)
            checkpoint()
            if found:
                matches = start[: found + 1], place[: start[found]], component[: start[found]]
                chunk = self._chunk(matches, asked)
                if len(chunk.lower):
                    yield chunk
            if status == TOO_LONG:
                raise ConfidenceCostError(
                    f"a match of this pattern with AND takes more than {MOST_EVENTS} events, and at most so "
                    "many are followed in any order: ask more of its Kleene components, or choose a shorter "
                    "WITHIN",
                    MOST_EVENTS + 1,
                    MOST_EVENTS,
                )
        self._counted(state.taken, counters)

    def _chunk(self, matches: Matches, work: Scratch) -> MatchBatch:
        chunk = super()._chunk(matches, work)
        direct = self._context.payload is not None
        return self._by_id(chunk, direct) if isinstance(chunk, KleeneBatch) else chunk

    def _weighed(
        self, matches: Matches, events: ForbiddenEvents, wanted: bool, work: Scratch, boxes: Int64
    ) -> tuple[Int64, Int64, NDArray[np.float64], None]:
        given = self._given
        found = len(matches[0]) - 1
        lower, upper = np.empty((2, found), dtype=np.int64)
        confidence = np.empty(found)
        try:
            self._confidences.describe(
                matches, (given.lower, given.upper, self._base, self._rows), self._offset, events,
                self._forbidden.rules.negated, self._conditions, self._pmfs, wanted, work,
                (lower, upper, confidence), boxes,
            )  # fmt: skip
        except CostlyGapsError as error:
            raise costly(self._plan, self._table, self._rows, matches, error) from None
        return lower, upper, confidence, None

    def _by_id(self, chunk: KleeneBatch, direct: bool) -> KleeneBatch:
        """Return a chunk with the events of each set by ascending id."""
        series: list[Series | None] = list(chunk.series)
        single = chunk.events.copy()
        for j, found in enumerate(series):
            if found is None or not self._sorted[j]:
                continue
            key = found.events
            if not direct:
                ids = self._table.column(self._plan.names.id).take(pa.array(key))
                ids = ids.cast(ids.type.value_type) if pa.types.is_dictionary(ids.type) else ids
                key = np.asarray(pc.rank(ids, tiebreaker="dense").to_numpy()).astype(np.int64)
            match = np.repeat(np.arange(len(chunk.lower)), np.diff(found.start))
            events = found.events[np.lexsort((key, match))]
            series[j] = Series(found.start, events)
            single[j] = events[found.start[:-1]]
        return replace(chunk, events=single, series=tuple(series))
