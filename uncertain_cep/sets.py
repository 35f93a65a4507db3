"""Evaluation of patterns with AND: candidates to the search over partial orders to chunks of matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence import running_sums
from confidence.conditions import Scratch, scratch
from confidence.times import BETWEEN, LEADING, TRAILING
from eventbased import lay_out
from eventbased.config import BLOCK_ROWS
from eventbased.gap_events import NO_BOXES, CostlyGapsError
from eventbased.set_gaps import SetConfidences
from eventbased.set_search import (
    EXHAUSTED,
    FULL,
    MOST_EVENTS,
    TOO_LONG,
    SetCandidates,
    SetPattern,
    choose,
    start_choosing,
)
from uncertain_cep.config import MOST_CONFIDENCE_STEPS
from uncertain_cep.counters import Counters
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.gap_rules import forbidden_events
from uncertain_cep.growing import compiled, costly, grown_chunks
from uncertain_cep.joined_first import choices_of_singles
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.trees import Tree
from uncertain_cep.pmfs import ExplicitPmfs
from uncertain_cep.selection import Selection
from uncertain_cep.sequence import Chunk
from uncertain_cep.series import KleeneChunk, Series, by_component, event_by_event

__all__ = ["Choosing", "evaluate_sets"]

Int64 = NDArray[np.int64]

_PLACES: Final = {"leading": LEADING, "between": BETWEEN, "trailing": TRAILING}


def evaluate_sets(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    ticks: tuple[Int64, Int64],
    pmfs: ExplicitPmfs | None,
    payload: Int64 | None,
    with_confidence: bool,
    batch_rows: int,
    counters: Counters | None = None,
) -> Iterator[Chunk]:
    """Yield the matches of an OR-free pattern with AND, in chunks of at most ``batch_rows``.

    Parameters
    ----------
    plan : EvaluationPlan
        With an ``order``.
    table, selection, ticks, pmfs, payload, with_confidence, batch_rows, counters
        As for :func:`uncertain_cep.growing.evaluate_growing`.

    Raises
    ------
    ConfidenceCostError
        If the confidence of a match takes too many steps.

    Notes
    -----
    Memory is O(events + batch_rows * events of a match), whatever the number of matches.
    """
    if not selection.empty:
        yield from grown_chunks(
            Choosing, plan, table, selection, ticks, pmfs, payload, with_confidence, batch_rows, counters
        )


class Choosing:
    """The candidates of one layout, what is forbidden among them, and the conditions.

    If a tree is given, its components are joined first, and the others taken beside their events.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        selection: Selection,
        ticks: tuple[Int64, Int64],
        pmfs: ExplicitPmfs | None,
        window: int,
        shift: Int64,
        covered: int,
        tree: Tree | None,
    ) -> None:
        assert plan.order is not None
        self._plan, self._table, self._order, self._tree = plan, table, plan.order, tree
        laid = self._laid = lay_out(selection.lower, selection.upper, selection.partition, shift, covered)
        first = laid.first
        count = int(first[-1])
        index, self._base = laid.index[:count], laid.base[:count]
        # The layout takes each component's position off its bounds; a partial order knows none.
        position = np.repeat(np.arange(len(first) - 1), np.diff(first))
        parts = [slice(int(first[j]), int(first[j + 1])) for j in range(len(first) - 1)]
        self._rows = np.concatenate(
            [rows[index[part]] for rows, part in zip(selection.rows, parts, strict=True)]
        )
        self._given = SetCandidates(
            laid.first_class, laid.class_start, laid.class_stop, laid.class_longest,
            laid.lower[:count] + position, laid.upper[:count] + position, self._rows,
        )  # fmt: skip
        self._forbidden = forbidden_events(plan, table, selection, ticks, first, self._rows, index)
        self._offset = np.full(table.num_rows, -1) if pmfs is None else pmfs.offset
        values = np.zeros(0) if pmfs is None else pmfs.values
        head, tail = np.zeros_like(values), np.zeros_like(values)
        running_sums(*ticks, self._offset, values, head, tail)
        self._pmfs = values, head, tail
        self._conditions = compiled(plan, table, self._rows, parts, self._forbidden)
        kleene = np.array([component.kleene for component in plan.components], dtype=np.bool_)
        is_set = np.array(self._order.is_set, dtype=np.bool_)
        self._sorted = kleene & is_set
        before = np.array(self._order.before, dtype=np.int64)
        self._pattern = SetPattern(kleene, self._sorted, before, window)
        gaps = list(dict.fromkeys(self._order.gaps))
        self._confidences = SetConfidences(
            self._order.before,
            (kleene & ~is_set).tolist(),
            [(_PLACES[gap.place], gap.after, gap.before) for gap in gaps],
            np.array([gaps.index(gap) for gap in self._order.gaps], dtype=np.int64),
            window,
            table.num_rows,
            float(MOST_CONFIDENCE_STEPS),
        )

    def chunks(
        self, payload: Int64 | None, wanted: bool, batch_rows: int, counters: Counters | None
    ) -> Iterator[Chunk]:
        """Yield the matches."""
        kleene = self._pattern.kleene
        if self._tree is None:
            yield from self._searched(np.full((len(kleene), 1), -1), payload, wanted, batch_rows)
            return
        work = scratch(self._conditions, MOST_EVENTS)
        last_rows = BLOCK_ROWS if kleene.any() else batch_rows
        for chosen in choices_of_singles(
            self._plan,
            self._tree,
            self._table,
            self._laid,
            self._rows,
            self._pattern.window,
            last_rows,
            counters,
        ):
            if kleene.any():
                yield from self._searched(chosen, payload, wanted, batch_rows)
                continue
            chunk = self._chunk(event_by_event(chosen), payload, wanted, work)
            if len(chunk.lower):
                yield chunk

    def _searched(
        self, fixed: Int64, payload: Int64 | None, wanted: bool, batch_rows: int
    ) -> Iterator[Chunk]:
        """Yield the matches with one of some choices, see :func:`eventbased.set_search.choose`."""
        search: Any = choose
        state = start_choosing(self._table.num_rows)
        work, asked = scratch(self._conditions, MOST_EVENTS), scratch(self._conditions, MOST_EVENTS)
        start = np.empty(batch_rows + 1, dtype=np.int64)
        room = batch_rows * (len(self._plan.components) + 1) + MOST_EVENTS
        place, component = np.empty((2, room), dtype=np.int64)
        status = FULL
        while status != EXHAUSTED:
            status, found = search(
                self._given, self._pattern, self._conditions, state, work, fixed, batch_rows, start, place,
                component,
            )  # fmt: skip
            if found:
                matches = start[: found + 1], place[: start[found]], component[: start[found]]
                chunk = self._chunk(matches, payload, wanted, asked)
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

    def _chunk(
        self, matches: tuple[Int64, Int64, Int64], payload: Int64 | None, wanted: bool, work: Scratch
    ) -> Chunk:
        """Return the matches that are possible, with their ranges and confidences."""
        start, place, component = matches
        lower, upper, confidence = self._described(matches, wanted, work)
        events = self._rows[place] if payload is None else payload[self._rows[place]]
        given = confidence if wanted else None
        chunk = by_component(self._plan, start, component, events, lower, upper, given)
        if isinstance(chunk, KleeneChunk):
            chunk = self._by_id(chunk, payload is not None)
        return chunk.keep(lower <= upper)

    def _described(
        self, matches: tuple[Int64, Int64, Int64], wanted: bool, work: Scratch, boxes: Int64 = NO_BOXES
    ) -> tuple[Int64, Int64, NDArray[np.float64]]:
        """Return ranges and confidences; an impossible match has an empty range.

        With ``boxes``, see :func:`eventbased.gap_events.gap_confidences`, of the worlds where the events are
        in theirs.
        """
        given, forbidden = self._given, self._forbidden
        found = len(matches[0]) - 1
        lower, upper = np.empty((2, found), dtype=np.int64)
        confidence = np.empty(found)
        try:
            self._confidences.describe(
                matches, (given.lower, given.upper, self._base, self._rows), self._offset, forbidden.events,
                forbidden.rules.negated, self._conditions, self._pmfs, wanted, work,
                (lower, upper, confidence), boxes,
            )  # fmt: skip
        except CostlyGapsError as error:
            raise costly(self._plan, self._table, self._rows, matches, error) from None
        return lower, upper, confidence

    def _by_id(self, chunk: KleeneChunk, direct: bool) -> KleeneChunk:
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
