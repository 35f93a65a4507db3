"""What the searches for matches that grow event by event have in common: layout, pools, sums, choices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import running_sums
from confidence.gaps.unions import Term, Union
from confidence.predicates.conditions import Conditions, Scratch, scratch
from eventbased import lay_out, partition_bases
from eventbased.config import BLOCK_ROWS, LONGEST_LINE
from eventbased.gaps.gap_events import NO_BOXES, CostlyGapsError, ForbiddenEvents
from eventbased.search.backtracking import Wanted
from eventbased.search.negation_pruning import Barriers, soonest_ends
from uncertain_cep.candidates.forbidden import Forbidden, forbidden_events, terms_of
from uncertain_cep.config import FIRST_MATCHES, MOST_BITS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.expressions.conditions import compile_conditions
from uncertain_cep.expressions.vectorised import Values, column_values
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.join_prefix import choices_of_singles, tree_of_singles
from uncertain_cep.operators.next_match import ids_by_component, too_dear
from uncertain_cep.operators.series import by_component, event_by_event
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import Column, variables_of

__all__ = ["Matches", "Search", "costly", "grown_chunks"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Matches = tuple[Int64, Int64, Int64]
"""``start, place, component``: the events of match n are at ``start[n] .. start[n + 1] - 1``."""


def grown_chunks(search: Callable[..., Search], context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches as a search finds and describes them.

    Parameters
    ----------
    search : callable
        A kind of :class:`Search`, called with its parameters for each part of the candidates.
    context : ExecutionContext
    """
    selection, window = context.candidates, context.span
    if selection.empty:
        return
    shift, line, covered = partition_bases(
        selection.lower, selection.upper, selection.partition, selection.partitions, window + 2
    )
    if line > LONGEST_LINE and selection.partitions > 1:
        for half in selection.halves():
            yield from grown_chunks(search, context.among(half))
        return
    tree = tree_of_singles(context.plan, context.table, selection)
    yield from search(replace(context, tree=tree), window, shift, covered).chunks()


class Search(ABC):
    """The candidates of one layout, what is forbidden among them, and the conditions.

    If the context has a tree, its components are joined first, and the others taken between or beside
    their events.
    """

    def __init__(self, context: ExecutionContext, window: int, shift: Int64, covered: int) -> None:
        plan, table, selection, pmfs = context.plan, context.table, context.candidates, context.pmfs
        ticks = context.ticks
        self._context, self._plan, self._table, self._window = context, plan, table, window
        laid = self._laid = lay_out(selection.lower, selection.upper, selection.partition, shift, covered)
        first = laid.first
        count = int(first[-1])
        index, self._base = laid.index[:count], laid.base[:count]
        # The layout takes each component's position off its bounds; here a component has no fixed one.
        position = np.repeat(np.arange(len(first) - 1), np.diff(first))
        self._lower, self._upper = laid.lower[:count] + position, laid.upper[:count] + position
        parts = [slice(int(first[j]), int(first[j + 1])) for j in range(len(first) - 1)]
        self._rows = np.concatenate(
            [rows[index[part]] for rows, part in zip(selection.rows, parts, strict=True)]
        )
        self._forbidden = forbidden_events(plan, table, selection, ticks, first, self._rows, index)
        self._offset = np.full(table.num_rows, -1) if pmfs is None else pmfs.offset
        values = np.zeros(0) if pmfs is None else pmfs.values
        head, tail = np.zeros_like(values), np.zeros_like(values)
        running_sums(*ticks, self._offset, values, head, tail)
        self._pmfs = values, head, tail
        self._conditions = _compiled(plan, table, self._rows, parts, self._forbidden)
        self._kleene = np.array([component.kleene for component in plan.components], dtype=np.bool_)
        self._terms = [(term, _spared(self._forbidden, term)) for term in terms_of(plan)]
        few = len(self._kleene) <= MOST_BITS
        gaps = self._gaps() if few else [(0, 0)] * len(plan.negations)
        # A partial match ends at a negation only if all its readings do.
        ends = [
            all(number in term.negations for term, _ in self._terms) for number in range(len(plan.negations))
        ]
        self._barriers = self._looked_at(
            [gap if end else (0, 0) for gap, end in zip(gaps, ends, strict=True)]
        )
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Put the candidates together as the search takes them, and what describes its matches."""

    @abstractmethod
    def _gaps(self) -> list[tuple[int, int]]:
        """Return for each negated component the bits of the components on both sides of its gap.

        Those whose events all come before it, and those whose events, or first one, are behind it; 0 and 0 if
        the gap is to be looked at only when the match is complete.
        """

    @abstractmethod
    def firsts(self, matches: Matches) -> NDArray[np.bool_]:
        """Return for each event of some matches, (m,) bool, whether none of its match comes before it."""

    @abstractmethod
    def _searched(self, fixed: Int64, counters: Counters | None) -> Iterator[MatchBatch]:
        """Yield the matches with one of some choices made beforehand, (l, m) int64, -1 for any candidate."""

    @abstractmethod
    def _promising(self, chosen: Int64, wanted: Wanted) -> NDArray[np.bool_]:
        """Return which matches of single events, (l, m) int64 candidates, can be wanted."""

    @abstractmethod
    def _weighed(
        self, matches: Matches, events: ForbiddenEvents, wanted: bool, work: Scratch, boxes: Int64
    ) -> tuple[Int64, Int64, Float64, Float64 | None]:
        """Return what :meth:`_described` does, if ``events`` are forbidden."""

    def _described(
        self, matches: Matches, wanted: bool, work: Scratch, boxes: Int64 = NO_BOXES
    ) -> tuple[Int64, Int64, Float64, Float64 | None]:
        """Return ranges, confidences and their standard errors; an impossible match has an empty range.

        With ``boxes``, see :func:`eventbased.gaps.gap_events.gap_confidences`, of the worlds where the events
        are in theirs.
        """
        if not self._terms:
            return self._weighed(matches, self._forbidden.events, wanted, work, boxes)
        union = Union(len(matches[0]) - 1)
        for term, events in self._terms:
            if wanted or term.is_reading:
                lower, upper, confidence, error = self._weighed(matches, events, wanted, work, boxes)
                union.add(term, (lower, upper), confidence if wanted else None, error)
        return union.result()

    def chunks(self) -> Iterator[MatchBatch]:
        """Yield the matches, in chunks of at most ``batch_rows``."""
        context, many = self._context, bool(self._kleene.any())
        if context.tree is None:
            yield from self._searched(np.full((len(self._kleene), 1), -1), context.counters)
            return
        work = scratch(self._conditions, len(self._kleene))
        last_rows = BLOCK_ROWS if many or context.threshold is not None else context.batch_rows
        for chosen in choices_of_singles(
            self._plan, context.tree, self._table, self._laid, self._rows, self._window, last_rows,
            context.counters,
        ):  # fmt: skip
            if many:
                yield from self._searched(chosen, None)
                continue
            if context.threshold is not None:
                chosen = chosen[:, self._promising(chosen, self._wanted(context.threshold))]
            chunk = self._chunk(event_by_event(chosen), work)
            if len(chunk.lower):
                yield chunk

    def _chunk(self, matches: Matches, work: Scratch) -> MatchBatch:
        """Return the matches that are possible, with their ranges and confidences."""
        start, place, component = matches
        wanted = self._context.with_confidence
        lower, upper, confidence, std_error = self._described(matches, wanted, work)
        given = confidence if wanted else None
        chunk = by_component(self._plan, start, component, self._returned(place), lower, upper, given)
        return replace(chunk, std_error=std_error).keep(lower <= upper)

    def _returned(self, place: Int64) -> Int64:
        """Return what is asked for of the events at some places."""
        rows, payload = self._rows[place], self._context.payload
        return rows if payload is None else payload[rows]

    def _wanted(self, threshold: Threshold | None) -> Wanted:
        """Return a threshold as the kernels take it."""
        rank: Int64 = np.zeros(0, dtype=np.int64)
        last_rank = np.iinfo(np.int64).max
        if threshold is not None and threshold.ranks is not None and threshold.last_rank is not None:
            rank, last_rank = threshold.ranks[self._rows[: self._laid.first[1]]], threshold.last_rank
        least = 0.0 if threshold is None else threshold.least
        return Wanted(least, rank, last_rank, *self._pmfs[:2])

    def _sizes(self) -> Iterator[int]:
        """Yield how many matches to find, one time after the other: few, if they raise a threshold."""
        batch_rows, threshold = self._context.batch_rows, self._context.threshold
        rises = threshold is not None and threshold.ranks is not None
        size = min(FIRST_MATCHES, batch_rows) if rises else batch_rows
        while True:
            yield size
            size = min(2 * size, batch_rows)

    def _counted(self, taken: Int64, counters: Counters | None) -> None:
        """Add the numbers of partial matches that a search has taken events for, by their components."""
        if counters is not None:
            for j, number in enumerate(taken.tolist()):
                counters.add(tuple(range(j + 1)), number)

    def _looked_at(self, gaps: Sequence[tuple[int, int]]) -> Barriers:
        """Return what negations forbid in gaps between components, and from when on that can be told."""
        plan, events = self._plan, self._forbidden.events
        # What is asked of a Kleene component is known with the first event of the next one.
        bound = {part.variable: j + part.kleene for j, part in enumerate(plan.components)}
        asked = [variables_of(predicate) for predicate in plan.joined]
        stages = []
        for negation, (behind, ahead) in zip(plan.negations, gaps, strict=True):
            own = negation.component.variable
            needed = {name for found in asked if own in found for name in found if name != own}
            last_side = (behind | ahead).bit_length() - 1
            stage = max([last_side, *(bound[name] for name in needed)])
            stages.append(len(bound) if last_side < 0 else stage)
        soonest = np.empty_like(events.upper)
        soonest_ends(events.upper, events.group_start, soonest)
        sides_of = np.array(gaps, dtype=np.int64).reshape(-1, 2)
        return Barriers(
            events, soonest, self._forbidden.rules.negated, np.array(stages, dtype=np.int64),
            sides_of[:, 0].copy(), sides_of[:, 1].copy(), self._base,
        )  # fmt: skip


def _spared(forbidden: Forbidden, term: Term) -> ForbiddenEvents:
    """Return what is forbidden without the negations that a term does not speak of."""
    group_of = forbidden.events.group_of.copy()
    for number, pool in enumerate(forbidden.rules.negated.tolist()):
        if number not in term.negations:
            group_of[pool] = -1
    return forbidden.events._replace(group_of=group_of)


def _compiled(
    plan: EvaluationPlan, table: pa.Table, rows: Int64, parts: Sequence[slice], forbidden: Forbidden
) -> Conditions:
    """Return the conditions of a plan for a layout of candidates.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    rows : (n,) int64
        Of the candidates in their layout.
    parts : sequence of slice
        Where the candidates of each positive component are.
    forbidden : Forbidden
    """
    variables = [component.variable for component in plan.components]
    negated = [negation.component.variable for negation in plan.negations]
    rows_of = dict(zip(negated, forbidden.negated_rows, strict=True))
    rows_of |= {variable: rows[part] for variable, part in zip(variables, parts, strict=True)}
    full: dict[str, Values] = {}

    def load(column: Column) -> Values:
        if column.name not in full:
            full[column.name] = column_values(table.column(column.name), column.name)
        return full[column.name].take(rows_of[column.variable])

    return compile_conditions(
        plan.joined,
        variables,
        [component.kleene for component in plan.components],
        negated,
        np.array([*(part.start for part in parts), *(0 for _ in negated)], dtype=np.int64),
        load,
    )


def costly(
    plan: EvaluationPlan,
    table: pa.Table,
    rows: Int64,
    matches: tuple[Int64, Int64, Int64],
    error: CostlyGapsError,
) -> ConfidenceCostError:
    """Return the error for a match whose confidence takes too many steps.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    rows : (n,) int64
        Of the candidates in their layout.
    matches : tuple
        ``start, place, component`` of all matches.
    error : CostlyGapsError
        Which of them it is.
    """
    start, place, component = matches
    own = slice(int(start[error.match]), int(start[error.match + 1]))
    ids = table.column(plan.names.id).take(pa.array(rows[place[own]])).to_pylist()
    return too_dear(plan, ids_by_component(plan, component[own].tolist(), ids), error.steps)
