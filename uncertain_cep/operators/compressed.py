"""``kleene="compressed"``: one row for each choice of the events besides those of the Kleene component."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence import workspace
from confidence.budget import checkpoint, multiplications_per_call
from confidence.chain.tick_pairs import enlarged
from confidence.predicates.conditions import Scratch
from eventbased.gaps.compressed import LISTS, compressed_matches
from eventbased.gaps.gap_events import ALL, COSTLY, PAUSED, CostlyGapsError
from uncertain_cep.config import MOST_CONFIDENCE_STEPS
from uncertain_cep.operators.backtracking import Growth
from uncertain_cep.operators.batch import KleeneBatch, MatchBatch, Series
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.search import Matches, costly, grown_chunks
from uncertain_cep.plan import PlannedNegation

__all__ = ["CompressedBatch", "compressed_search"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CompressedBatch(KleeneBatch):
    """Some choices of the single events, with the events that may stand for the Kleene component.

    Attributes
    ----------
    expected : (3, k) float64
        Given that the single events are in order and within the window: P(some event is in the gap), and the
        expected numbers of non-empty sets of events and of events there.
    """

    expected: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 0)))

    def take(self, places: Int64) -> CompressedBatch:
        """Return some matches, in this order."""
        kept = KleeneBatch.take(self, places)
        return CompressedBatch(
            kept.events, kept.lower, kept.upper, kept.confidence, None, kept.series, self.expected[:, places]
        )


def compressed_search(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield what :func:`uncertain_cep.operators.backtracking.backtracking_search` yields, compressed.

    The events of the Kleene component are gathered as those of a negated one would be that are forbidden in
    its gap: they have to satisfy the same conditions.
    """
    plan, selection = context.plan, context.candidates
    place = next(j for j, component in enumerate(plan.components) if component.kleene)
    others = [j for j in range(len(plan.components)) if j != place]
    keys = tuple(
        replace(key, columns=tuple(key.columns[j] for j in others), negated=(key.columns[place],))
        for key in plan.split_keys
    )
    apart = replace(
        plan,
        components=tuple(plan.components[j] for j in others),
        negations=(PlannedNegation(replace(plan.components[place], kleene=False), place),),
        split_keys=keys,
    )
    partition = None if selection.partition is None else tuple(selection.partition[j] for j in others)
    rest = replace(
        selection,
        rows=tuple(selection.rows[j] for j in others),
        lower=tuple(selection.lower[j] for j in others),
        upper=tuple(selection.upper[j] for j in others),
        partition=partition,
    )
    # Without a candidate for the Kleene component nothing can be in its gap, whatever the others are.
    if not selection.empty:
        yield from grown_chunks(
            _CompressedGrowth, replace(context, plan=apart, candidates=rest, counters=None)
        )


class _CompressedGrowth(Growth):
    """Matches of the single components; described with what lies in the gap of the Kleene component."""

    _space = (8, 1024, 64, 64)

    def _gaps(self) -> list[tuple[int, int]]:
        # What is in this gap is not forbidden.
        return [(0, 0)]

    def _chunk(self, matches: Matches, work: Scratch) -> MatchBatch:
        start, place, _ = matches
        payload, wanted = self._context.payload, self._context.with_confidence
        found = len(start) - 1
        lower, upper = np.empty((2, found), dtype=np.int64)
        sums = np.empty((4, found))
        list_start = np.zeros(found + 1, dtype=np.int64)
        rows = self._listed(matches, work, (lower, upper, sums), list_start)
        single = self._rows[place].reshape(found, -1).T
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
        return CompressedBatch(
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
        matches: Matches,
        work: Scratch,
        out: tuple[Int64, Int64, NDArray[np.float64]],
        list_start: Int64,
    ) -> Int64:
        """Fill ranges and sums of matches, and return the events in their gaps."""
        kernel: Any = compressed_matches
        given, forbidden = self._given, self._forbidden
        found = len(list_start) - 1
        rows = np.empty(4 * found + 64, dtype=np.int64)
        mark = np.full(self._table.num_rows, -1, dtype=np.int64)
        done = 0
        while True:
            length, edges, ticks, events = self._space
            room = (*np.empty((4, events), dtype=np.int64), np.zeros((events, length + 2), dtype=np.bool_))
            done, reason, need = kernel(
                *matches, done, found, given.lower, given.upper, self._base, self._rows, self._offset,
                self._window, self._plan.negations[0].after, forbidden.events, forbidden.rules,
                self._conditions, self._pmfs[0], float(MOST_CONFIDENCE_STEPS),
                multiplications_per_call(), work, mark,
                workspace(length, edges, ticks, events), room, np.empty(events), *out, list_start, rows,
            )  # fmt: skip
            if reason == ALL:
                return rows[: list_start[-1]]
            if reason == PAUSED:
                checkpoint()
                continue
            if reason == COSTLY:
                raise costly(self._plan, self._table, self._rows, matches, CostlyGapsError(done, need[0]))
            if reason == LISTS:
                rows = np.concatenate((rows, np.empty(max(len(rows), need[3]), dtype=np.int64)))
                continue
            length, edges, ticks, events = enlarged(self._space, need)
            self._space = (length, edges, ticks, events)
