"""``kleene="compressed"``: one row for each choice of the events besides those of the Kleene component."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.gaps.describing import PAUSED, Described, Space, describe_each
from confidence.predicates.conditions import Scratch
from eventbased.gaps.compressed import LISTS, compressed_matches
from eventbased.gaps.gap_events import NO_OFFSETS, GapEvents, Gathered, HeldOffsets, MatchEvents
from eventbased.search.state import FoundMatches
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.operators.backtracking import BacktrackingSearch, searched
from uncertain_cep.operators.batch import MatchBatch, Series
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.join_prefix import selection_of_singles
from uncertain_cep.plan import PlannedNegation
from uncertain_cep.weighers.listed_events import listed_events
from uncertain_cep.weighers.match_model import MatchModel

__all__ = ["compressed_search"]

Int64 = NDArray[np.int64]


def compressed_search(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a backtracking search, compressed.

    The events of the Kleene component are gathered as those of a negated one would be that are forbidden in
    its gap: they have to satisfy the same conditions.
    """
    plan, selection = context.plan, context.candidates
    kleene = next(j for j, component in enumerate(plan.components) if component.kleene)
    others = [j for j in range(len(plan.components)) if j != kleene]
    apart = replace(
        plan,
        components=tuple(plan.components[j] for j in others),
        negations=(PlannedNegation(replace(plan.components[kleene], kleene=False), kleene),),
        split_keys=plan.partitioning.with_negated(kleene),
    )
    # Without a candidate for the Kleene component nothing can be in its gap, whatever the others are.
    if not selection.empty:
        yield from searched(
            _CompressedSearch,
            replace(context, plan=apart, candidates=selection_of_singles(plan, selection), counters=None),
        )


class _CompressedSearch(BacktrackingSearch):
    """Matches of the single components; described with what lies in the gap of the Kleene component."""

    _space: Space | None = None

    def _sides(self) -> list[tuple[int, int]]:
        # What is in this gap is not forbidden.
        return [(0, 0)]

    def _chunk(self, matches: FoundMatches, work: Scratch) -> MatchBatch:
        payload, wanted = self._context.payload, self._context.with_confidence
        found = len(matches.start) - 1
        lower, upper = np.empty((2, found), dtype=np.int64)
        sums = np.empty((4, found))
        list_start = np.zeros(found + 1, dtype=np.int64)
        rows = self._listed(matches, work, (lower, upper, sums), list_start)
        single = self._rows[matches.candidate].reshape(found, -1).T
        series = Series(list_start, rows)
        after = self._plan.negations[0].after
        possible = lower <= upper
        # Rows without an event in the gap are dropped at once: their series are empty.
        series = series.keep(possible)
        first = series.events[series.start[:-1]]
        events = np.insert(single[:, possible], after, first, axis=0)
        lists: list[Series | None] = [None] * len(events)
        lists[after] = series if payload is None else Series(series.start, payload[series.events])
        chance = np.maximum(sums[0, possible], np.finfo(np.float64).tiny)
        return MatchBatch(
            events if payload is None else payload[events],
            lower[possible],
            upper[possible],
            np.minimum(sums[1, possible], 1.0) if wanted else None,
            None,
            tuple(lists),
            sums[1:, possible] / chance,
        )

    def _listed(
        self,
        matches: FoundMatches,
        work: Scratch,
        out: tuple[Int64, Int64, NDArray[np.float64]],
        list_start: Int64,
    ) -> Int64:
        """Fill ranges and sums of matches, and return the events in their gaps."""
        given, forbidden = MatchEvents(*matches), self._forbidden
        if self._by_clocks is None:
            return self._listed_given(given, work, out, list_start)
        listed: list[tuple[Int64, Int64]] = []

        def inner(some: MatchEvents, which: Int64, held: HeldOffsets | None) -> tuple[NDArray[Any], ...]:
            count = len(some.start) - 1
            columns = np.empty(count, np.int64), np.empty(count, np.int64), np.empty((4, count))
            start = np.zeros(count + 1, dtype=np.int64)
            rows = self._listed_given(some, work, columns, start, held or NO_OFFSETS)
            listed.append((np.repeat(which, np.diff(start)), rows))
            return columns[0], columns[1], *columns[2]

        with self._priced(matches):
            reach = self._by_clocks.in_reach(
                given, self._placed, self._offset, forbidden.events, forbidden.rules, self._conditions, work
            )
            self._by_clocks.mix(given, self._placed, reach, inner, (*out[:2], *out[2]))
        match, row = np.unique(np.concatenate(listed, axis=1), axis=1)
        list_start[1:] = np.cumsum(np.bincount(match, minlength=len(list_start) - 1))
        return np.asarray(row[np.lexsort((self._context.ticks[0][row], match))])

    def _listed_given(
        self,
        matches: MatchEvents,
        work: Scratch,
        out: tuple[Int64, Int64, NDArray[np.float64]],
        list_start: Int64,
        held: HeldOffsets = NO_OFFSETS,
    ) -> Int64:
        """Do what :meth:`_listed` does, given offsets of clocks."""
        kernel: Any = compressed_matches
        forbidden = self._forbidden
        if self._plan.bound.times:
            with self._priced(FoundMatches(*matches[:3])):
                return self._listed_by_times(matches, work, out, list_start, held)
        space = self._space = self._space or Space()
        rows = np.empty(4 * len(list_start) + 64, dtype=np.int64)
        mark = np.full(self._table.num_rows, -1, dtype=np.int64)

        def call(done: int) -> Described:
            nonlocal rows
            gathered = Gathered(mark, self._offset, space.forbidden, held)
            found: Described = kernel(
                matches, done, self._window, self._plan.negations[0].after,
                GapEvents(self._placed, forbidden.events, self._conditions, work, gathered),
                forbidden.rules, self._pmfs, float(MOST_CONFIDENCE_STEPS), space.work.go_on(),
                (*out, list_start, rows),
            )  # fmt: skip
            done, reason, need = found
            if reason != LISTS:
                return found
            more = max(len(rows), int(need[3]))
            checkpoint(8 * (len(rows) + more))
            rows = np.concatenate((rows, np.empty(more, dtype=np.int64)))
            return done, PAUSED, need

        with self._priced(FoundMatches(*matches[:3])):
            describe_each(call, space.grow)
        return rows[: list_start[-1]]

    def _listed_by_times(
        self,
        matches: MatchEvents,
        work: Scratch,
        out: tuple[Int64, Int64, NDArray[np.float64]],
        list_start: Int64,
        held: HeldOffsets,
    ) -> Int64:
        """Do what :meth:`_listed` does under conditions on times, given offsets of clocks."""
        model = MatchModel(
            self._pattern_of, matches, self._placed, self._offset, self._pmfs, self._forbidden.events, work,
            True, held,
        )  # fmt: skip
        lower, upper, sums = out
        rows: list[list[int]] = [[]] * model.count
        for n, events in listed_events(model):
            rows[n], lower[n], upper[n], sums[:, n] = events
        list_start[1:] = np.cumsum(list(map(len, rows)))
        return np.array(list(chain.from_iterable(rows)), dtype=np.int64)
