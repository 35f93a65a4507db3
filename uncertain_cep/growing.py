"""Evaluation of SEQ with Kleene or negated components, or under contiguity: matches grown event by event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import exact_chain_confidence, running_sums
from confidence.conditions import Conditions, Scratch, scratch
from eventbased import lay_out, partition_bases
from eventbased.config import BLOCK_ROWS, LONGEST_LINE
from eventbased.gap_events import NO_BOXES, UNLIMITED, CostlyGapsError, GapConfidences
from eventbased.growing import (
    DEEPER,
    EXHAUSTED,
    FULL,
    TOO_LONG,
    Pattern,
    SortedCandidates,
    completions,
    grow,
    start_growing,
)
from uncertain_cep.conditions import compile_conditions
from uncertain_cep.config import MOST_CONFIDENCE_STEPS
from uncertain_cep.counters import Counters
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.gap_rules import Forbidden, forbidden_events
from uncertain_cep.joined_first import choices_of_singles, tree_of_singles
from uncertain_cep.next_match import too_dear
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.trees import Tree
from uncertain_cep.pmfs import ExplicitPmfs
from uncertain_cep.predicates import Values, column_values
from uncertain_cep.query.typed import Column
from uncertain_cep.selection import Selection
from uncertain_cep.sequence import Chunk
from uncertain_cep.series import by_component, event_by_event

__all__ = [
    "Growth",
    "Search",
    "compiled",
    "costly",
    "evaluate_growing",
    "grown_chunks",
]

Int64 = NDArray[np.int64]

_SHORT: Final = 8
"""Events of a match that there is room for at first."""


def evaluate_growing(
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
    """Yield the matches of a pattern of single, Kleene and negated components under any strategy.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    selection : Selection
        The candidates of the positive components.
    ticks : tuple of (n,) int64
        Lower and upper bounds of all rows, without ticks of probability 0 at their ends.
    pmfs : ExplicitPmfs or None
    payload : (n,) int64 or None
        What to return for each row of the table; None: the row itself.
    with_confidence : bool
    batch_rows : int
        Most matches in a chunk.
    counters : Counters or None
        The numbers of partial matches are added here where single components are joined first.

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
            Growth, plan, table, selection, ticks, pmfs, payload, with_confidence, batch_rows, counters
        )


class Search(Protocol):
    """Finds the matches among the candidates of one layout."""

    def chunks(
        self, payload: Int64 | None, wanted: bool, batch_rows: int, counters: Counters | None
    ) -> Iterator[Chunk]:
        """Yield the matches, in chunks of at most ``batch_rows``."""


def grown_chunks(
    search: Callable[..., Search],
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
    """Yield the matches as a search finds and describes them, see :func:`evaluate_growing`.

    ``search`` is a kind of :class:`Growth`, or one with its parameters for candidates in another order.
    """
    # Beyond the whole trace a window means nothing, and sums with it have to stay within int64.
    window = min(plan.window, int(ticks[1].max()) - int(ticks[0].min()) + 1)
    shift, line, covered = partition_bases(
        selection.lower, selection.upper, selection.partition, selection.partitions, window + 2
    )
    if line > LONGEST_LINE and selection.partitions > 1:
        for half in selection.halves():
            if not half.empty:
                yield from grown_chunks(
                    search, plan, table, half, ticks, pmfs, payload, with_confidence, batch_rows, counters
                )
        return
    tree = tree_of_singles(plan, table, selection)
    grown = search(plan, table, selection, ticks, pmfs, window, shift, covered, tree)
    yield from grown.chunks(payload, with_confidence, batch_rows, counters)


class Growth:
    """The candidates of one layout, what is forbidden among them, and the conditions.

    If a tree is given, its components are joined first, and the others grown between their events.
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
        self._plan, self._table, self._window, self._tree = plan, table, window, tree
        laid = self._laid = lay_out(selection.lower, selection.upper, selection.partition, shift, covered)
        first = laid.first
        count = int(first[-1])
        index, base = laid.index[:count], laid.base[:count]
        # The layout takes each component's position off its bounds; here a component has no fixed one.
        position = np.repeat(np.arange(len(first) - 1), np.diff(first))
        lower, upper = laid.lower[:count] + position, laid.upper[:count] + position
        parts = [slice(int(first[j]), int(first[j + 1])) for j in range(len(first) - 1)]
        self._rows = np.concatenate(
            [rows[index[part]] for rows, part in zip(selection.rows, parts, strict=True)]
        )
        self._forbidden = forbidden_events(plan, table, selection, ticks, first, self._rows, index)
        limit = self._forbidden.limit
        if len(limit):
            limit = np.where(limit == UNLIMITED, UNLIMITED, limit + base)
        self._offset = np.full(table.num_rows, -1) if pmfs is None else pmfs.offset
        values = np.zeros(0) if pmfs is None else pmfs.values
        head, tail = np.zeros_like(values), np.zeros_like(values)
        running_sums(*ticks, self._offset, values, head, tail)
        self._pmfs = values, head, tail
        latest, reach = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        completions(laid.first_class, laid.class_start, laid.class_stop, lower, upper, window, latest, reach)
        self._given = SortedCandidates(
            laid.first_class, laid.class_start, laid.class_stop, laid.class_longest, lower, upper, latest,
            reach, self._rows, limit, self._offset[self._rows],
        )  # fmt: skip
        self._base = base
        self._conditions = compiled(plan, table, self._rows, parts, self._forbidden)
        limits = (0.0, 0) if plan.approximate is None else (plan.approximate.std_error, plan.approximate.seed)
        self._confidences = GapConfidences(window, table.num_rows, float(MOST_CONFIDENCE_STEPS), *limits)
        least = plan.query.min_confidence
        self._pattern = Pattern(
            np.array([component.kleene for component in plan.components], dtype=np.bool_),
            window,
            plan.query.strategy == "skip_till_next_match",
            0.0 if least is None else float(least),
        )

    def chunks(
        self, payload: Int64 | None, wanted: bool, batch_rows: int, counters: Counters | None
    ) -> Iterator[Chunk]:
        """Yield the matches."""
        kleene = self._pattern.kleene
        if self._tree is None:
            yield from self._grown(np.full((len(kleene), 1), -1), payload, wanted, batch_rows)
            return
        work = scratch(self._conditions, len(kleene))
        last_rows = BLOCK_ROWS if kleene.any() else batch_rows
        for chosen in choices_of_singles(
            self._plan, self._tree, self._table, self._laid, self._rows, self._window, last_rows, counters
        ):
            if kleene.any():
                yield from self._grown(chosen, payload, wanted, batch_rows)
                continue
            chunk = self._chunk(event_by_event(chosen), payload, wanted, work)
            if len(chunk.lower):
                yield chunk

    def _grown(self, fixed: Int64, payload: Int64 | None, wanted: bool, batch_rows: int) -> Iterator[Chunk]:
        """Yield the matches with one of some choices made beforehand, see :func:`eventbased.growing.grow`."""
        conditions, given = self._conditions, self._given
        search: Any = grow
        length = len(fixed)
        depth = length + _SHORT
        state, work, asked = (
            start_growing(depth, self._table.num_rows),
            scratch(conditions, depth),
            scratch(conditions, depth),
        )
        start = np.empty(batch_rows + 1, dtype=np.int64)
        room = batch_rows * (length + 1) + depth
        place, component = np.empty((2, room), dtype=np.int64)
        values, head, _ = self._pmfs
        status = FULL
        while status != EXHAUSTED:
            status, found = search(
                given, self._pattern, conditions, values, head, state, work, fixed, batch_rows, start, place,
                component,
            )  # fmt: skip
            if status == TOO_LONG:
                place, component = np.empty((2, 2 * len(place)), dtype=np.int64)
            if found:
                matches = start[: found + 1], place[: start[found]], component[: start[found]]
                chunk = self._chunk(matches, payload, wanted, asked)
                if len(chunk.lower):
                    yield chunk
            if status == DEEPER:
                depth *= 2
                state, work, asked = (
                    state.deeper(depth),
                    work.deeper(conditions, depth),
                    scratch(conditions, depth),
                )

    def _chunk(
        self, matches: tuple[Int64, Int64, Int64], payload: Int64 | None, wanted: bool, work: Scratch
    ) -> Chunk:
        """Return the matches that are possible, with their ranges and confidences."""
        start, place, component = matches
        lower, upper, confidence, std_error = self._described(matches, wanted, work)
        events = self._rows[place] if payload is None else payload[self._rows[place]]
        given = confidence if wanted else None
        chunk = by_component(self._plan, start, component, events, lower, upper, given)
        chunk = replace(chunk, std_error=std_error)
        return chunk.keep(lower <= upper)

    def _described(
        self, matches: tuple[Int64, Int64, Int64], wanted: bool, work: Scratch, boxes: Int64 = NO_BOXES
    ) -> tuple[Int64, Int64, NDArray[np.float64], NDArray[np.float64]]:
        """Return ranges, confidences and their standard errors; an impossible match has an empty range.

        With ``boxes``, see :func:`eventbased.gap_events.gap_confidences`, of the worlds where the events are
        in theirs.
        """
        start, place, _ = matches
        found = len(start) - 1
        given, forbidden = self._given, self._forbidden
        lower, upper = np.empty((2, found), dtype=np.int64)
        confidence, std_error = np.empty((2, found))
        try:
            self._confidences.describe(
                matches, found, (given.lower, given.upper, self._base, self._rows), self._offset,
                forbidden.events, forbidden.rules, self._conditions, self._pmfs, wanted, work,
                (lower, upper, confidence, std_error), boxes,
            )  # fmt: skip
        except CostlyGapsError as error:
            raise costly(self._plan, self._table, self._rows, matches, error) from None
        if wanted:
            self._redo_exactly(start, place, confidence, boxes)
        return lower, upper, confidence, std_error

    def _redo_exactly(
        self, start: Int64, place: Int64, confidence: NDArray[np.float64], boxes: Int64
    ) -> None:
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


def compiled(
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
    grouped: list[list[Any]] = [[] for _ in plan.components]
    for j, event in zip(component[own].tolist(), ids, strict=True):
        grouped[j].append(event)
    named = [
        found if planned.kleene else found[0] for found, planned in zip(grouped, plan.components, strict=True)
    ]
    return too_dear(plan, named, error.steps)
