"""Evaluation by the point-based framework: candidates in order of time, matches as they are final."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.pools import AttributeValues
from pointbased import (
    Automaton,
    CostlySignatureError,
    PointEvaluation,
    PointMatches,
    compile_sequence,
)
from uncertain_cep.candidates.forbidden import GapConstraints, forbidden_events, terms_of
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.limits import LONGEST_POINT_INTERVAL, MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import OptionError
from uncertain_cep.expressions.conditions import compile_conditions
from uncertain_cep.expressions.point_formulas import formulas_of
from uncertain_cep.expressions.vectorised import Values, loaded_from
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.costly_matches import ids_by_component, too_dear
from uncertain_cep.operators.series import by_component
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import Column

__all__ = ["PointCandidates", "point_based_search", "point_candidates", "point_matches"]

Int64 = NDArray[np.int64]

_POINT_BATCH: Final = 1 << 11
"""About as many candidates are handed to the point-based evaluation before time moves on."""


class PointRows(NamedTuple):
    """Candidates of components, and witnesses, see :meth:`pointbased.PointEvaluation.push`."""

    component: Int64
    partition: Int64
    lower: Int64
    upper: Int64
    row: Int64
    """(n,) int64, as all before. The event's row in the table."""
    group: Int64
    """(n, pools) int64."""


class PointCandidates(NamedTuple):
    """The candidates of all components, and the witnesses, by lower bounds; and the automaton for them."""

    automaton: Automaton
    rows: PointRows
    values: AttributeValues
    pmfs: ExplicitPmfs | None

    def push(self, evaluation: PointEvaluation, chosen: slice | Int64) -> PointMatches:
        """Feed some of the candidates, all those of an event at once, to an evaluation of the automaton."""
        rows = PointRows(*(column[chosen] for column in self.rows))
        return evaluation.push(
            *rows[:5],
            None if self.pmfs is None else self.pmfs.offset[rows.row],
            self.values.of(chosen),
            None if self.pmfs is None else self.pmfs.values,
            rows.group,
        )


def point_candidates(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    ticks: tuple[Int64, Int64],
    pmfs: ExplicitPmfs | None,
) -> PointCandidates:
    """Return the input of a point-based evaluation of a table, for a sequence of components."""
    unsorted = _rows(plan, table, selection, ticks)
    order = np.lexsort((unsorted.row, unsorted.lower))
    rows = PointRows(*(column[order] for column in unsorted))
    component, row = rows.component, rows.row
    variables = [planned.variable for planned in plan.components]
    negated = [negation.component.variable for negation in plan.negations]
    full = loaded_from(table.column)

    def load(column: Column) -> Values:
        # What other components have there is not looked at, and must not decide what fits in int64.
        mine = component == [*variables, *negated].index(column.variable)
        return full(column).take(np.where(mine, row, row[np.argmax(mine)]))

    kleene = [planned.kleene for planned in plan.components]
    conditions = compile_conditions(
        plan.joined, variables, kleene, negated, np.zeros(len(variables) + len(negated), dtype=np.int64), load
    )
    formulas, values = formulas_of(conditions, len(row))
    automaton = compile_sequence(
        len(variables),
        # Beyond the whole trace a window means nothing, and sums with it have to stay within int64.
        min(plan.window, int(ticks[1].max()) - int(ticks[0].min()) + 1),
        next_match=plan.query.strategy == "skip_till_next_match",
        kleene=kleene,
        negations=[negation.after for negation in plan.negations],
        contiguous=plan.query.strategy.endswith("contiguity"),
        formulas=formulas,
        terms=terms_of(plan),
    )
    return PointCandidates(automaton, rows, values, pmfs)


def _rows(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, ticks: tuple[Int64, Int64]
) -> PointRows:
    """Return candidates and witnesses, in no order."""
    sizes = [len(rows) for rows in selection.rows]
    row = np.concatenate(selection.rows)
    partition = np.zeros(len(row), dtype=np.int64)
    if selection.partition is not None:
        partition = np.concatenate(selection.partition)
    candidates = PointRows(
        np.repeat(np.arange(len(sizes), dtype=np.int64), sizes),
        partition,
        np.concatenate(selection.lower),
        np.concatenate(selection.upper),
        row,
        np.zeros((len(row), 0), dtype=np.int64),
    )
    contiguous = plan.query.strategy.endswith("contiguity")
    if not plan.negations and not contiguous:
        return candidates
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    index = np.concatenate([np.arange(size) for size in sizes])
    forbidden = forbidden_events(plan, table, selection, ticks, first, row, index)
    pools = [*forbidden.rules.negated.tolist(), *([forbidden.rules.between] if contiguous else [])]
    # A group follows from the partition, so later components have that of the first one's events.
    of_partition = np.full((selection.partitions, len(pools)), -1)
    of_partition[partition[: sizes[0]]] = forbidden.events.group_of[pools].T
    parts = [candidates._replace(group=of_partition[partition])]
    parts += [_witnesses(forbidden, pool, len(sizes) + k, len(pools)) for k, pool in enumerate(pools)]
    return PointRows(*map(np.concatenate, zip(*parts, strict=True)))


def _witnesses(forbidden: GapConstraints, pool: int, component: int, pools: int) -> PointRows:
    """Return the events of a pool as witnesses."""
    events = forbidden.events
    starts = events.group_start[int(events.pool_start[pool]) : int(events.pool_start[pool + 1]) + 1]
    chosen = slice(int(starts[0]), int(starts[-1]))
    count = chosen.stop - chosen.start
    return PointRows(
        np.full(count, component),
        np.repeat(np.arange(len(starts) - 1), np.diff(starts)),
        events.lower[chosen],
        events.upper[chosen],
        events.row[chosen],
        np.full((count, pools), -1),
    )


def point_based_search(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a pattern by way of point events; see :func:`point_matches`."""
    for found in point_matches(context):
        yield _chunk(context, found)


def point_matches(context: ExecutionContext) -> Iterator[PointMatches]:
    """Yield matches, at most ``batch_rows`` at a time, by way of point events; an event is its row.

    The candidates are fed in order of their lower bounds, and a match is yielded as soon as the next one's
    says that it is final: what is held besides the candidates is what the window reaches.

    Raises
    ------
    OptionError
        If an interval has more than ``LONGEST_POINT_INTERVAL`` ticks, or the evaluation runs out of bounds.
    ConfidenceCostError
        If the confidence of a match takes too many steps.
    """
    plan, table, selection = context.plan, context.table, context.candidates
    if selection.empty:
        return
    intervals = zip(selection.lower, selection.upper, strict=True)
    longest = max(int((high - low).max()) + 1 for low, high in intervals)
    if longest > LONGEST_POINT_INTERVAL:
        message = f"an interval has {longest:,} ticks, and evaluation='point' goes through at most "
        advice = 'give a longer tick, such as tick="1ms"'
        raise OptionError(f"{message}{LONGEST_POINT_INTERVAL:,} of each: {advice}")
    candidates = point_candidates(plan, table, selection, context.ticks, context.pmfs)
    std_error, seed = plan.estimates
    evaluation = PointEvaluation(
        candidates.automaton, most_steps=float(MOST_CONFIDENCE_STEPS), std_error=std_error, seed=seed
    )
    try:
        for found in _fed(candidates, evaluation):
            for start in range(0, len(found.lower), context.batch_rows):
                yield found.keep(slice(start, start + context.batch_rows))
    except CostlySignatureError as error:
        ids = table.column(plan.names.id).take(pa.array(error.events)).to_pylist()
        raise too_dear(plan, ids_by_component(plan, error.components, ids), error.steps) from None
    except ValueError as error:
        raise OptionError(f"evaluation='point': {error}") from error


def _chunk(context: ExecutionContext, found: PointMatches) -> MatchBatch:
    """Return matches with what was asked for of their events."""
    plan, payload = context.plan, context.payload
    events = found.event if payload is None else payload[found.event]
    confidence = found.confidence if context.with_confidence else None
    if any(planned.kleene for planned in plan.components):
        chunk = by_component(plan, found.start, found.component, events, found.lower, found.upper, confidence)
        return replace(chunk, std_error=found.std_error)
    single = np.ascontiguousarray(events.reshape(-1, len(plan.components)).T)
    return MatchBatch(single, found.lower, found.upper, confidence, found.std_error)


def _fed(candidates: PointCandidates, evaluation: PointEvaluation) -> Iterator[PointMatches]:
    """Feed all candidates, and yield the matches as they are final."""
    lower = candidates.rows.lower
    start = 0
    while start < len(lower):
        # Events with one lower bound stay together, and so do the candidates of one event.
        stop = int(np.searchsorted(lower, lower[min(start + _POINT_BATCH, len(lower)) - 1], side="right"))
        candidates.push(evaluation, slice(start, stop))
        if stop < len(lower):
            yield evaluation.advance(int(lower[stop]))
        start = stop
    yield evaluation.close()
