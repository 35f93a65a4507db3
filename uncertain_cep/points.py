"""Evaluation of SEQ by the point-based framework: candidates in order of time, matches as they are final."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.programs import Opcode
from pointbased import (
    AttributeValues,
    Automaton,
    CostlySignatureError,
    Formulas,
    PointEvaluation,
    PointMatches,
    compile_sequence,
)
from uncertain_cep.config import LONGEST_POINT_INTERVAL, MOST_CONFIDENCE_STEPS, POINT_BATCH
from uncertain_cep.errors import OptionError
from uncertain_cep.next_match import too_dear
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.pmfs import ExplicitPmfs
from uncertain_cep.predicates import Values, column_values
from uncertain_cep.programs import JoinPrograms, compile_programs
from uncertain_cep.query.typed import Column
from uncertain_cep.selection import Selection
from uncertain_cep.sequence import Chunk

__all__ = ["PointCandidates", "evaluate_points", "point_candidates"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PointCandidates:
    """The candidates of all components in ascending order of their lower bounds, and the automaton for them.

    Attributes
    ----------
    automaton : Automaton
    component, partition, lower, upper, row : (n,) int64
        See :meth:`pointbased.PointEvaluation.push`; ``row`` is the event's row in the table.
    pmfs : ExplicitPmfs or None
    """

    automaton: Automaton
    component: Int64
    partition: Int64
    lower: Int64
    upper: Int64
    row: Int64
    pmfs: ExplicitPmfs | None
    _programs: JoinPrograms
    _place: Int64

    def push(self, evaluation: PointEvaluation, chosen: slice | Int64) -> PointMatches:
        """Feed some of the candidates, all those of an event at once, to an evaluation of the automaton."""
        row = self.row[chosen]
        return evaluation.push(
            self.component[chosen],
            self.partition[chosen],
            self.lower[chosen],
            self.upper[chosen],
            row,
            None if self.pmfs is None else self.pmfs.offset[row],
            self._values(chosen),
            None if self.pmfs is None else self.pmfs.values,
        )

    def _values(self, chosen: slice | Int64) -> AttributeValues | None:
        programs, formulas = self._programs, self.automaton.formulas
        if not len(programs.slots):
            return None
        component, place = self.component[chosen], self._place[chosen]
        real = formulas.real
        ints = np.zeros((int((~real).sum()), len(place)), dtype=np.int64)
        floats = np.zeros((int(real.sum()), len(place)))
        nulls = np.zeros((len(real), len(place)), dtype=np.bool_)
        next_int = next_float = 0
        for slot, (owner, data, valid) in enumerate(programs.slots.tolist()):
            mine = component == owner
            nulls[slot, mine] = programs.nulls[valid + place[mine]]
            if real[slot]:
                floats[next_float, mine] = programs.floats[data + place[mine]]
                next_float += 1
            else:
                ints[next_int, mine] = programs.ints[data + place[mine]]
                next_int += 1
        return AttributeValues(ints, floats, nulls)


def point_candidates(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, pmfs: ExplicitPmfs | None
) -> PointCandidates:
    """Return what a point-based evaluation of a table is fed with.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    selection : Selection
    pmfs : ExplicitPmfs or None
    """
    variables = [component.variable for component in plan.components]
    sizes = [len(rows) for rows in selection.rows]
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    full: dict[str, Values] = {}

    def load(column: Column) -> Values:
        if column.name not in full:
            full[column.name] = column_values(table.column(column.name), column.name)
        return full[column.name].take(selection.rows[variables.index(column.variable)])

    programs = compile_programs(plan.joined, variables, first, load)
    lower = np.concatenate(selection.lower)
    row = np.concatenate(selection.rows)
    order = np.lexsort((row, lower))
    partition = (
        np.zeros(len(row), dtype=np.int64)
        if selection.partition is None
        else np.concatenate(selection.partition)
    )
    automaton = compile_sequence(
        len(variables),
        plan.window,
        next_match=plan.query.strategy == "skip_till_next_match",
        formulas=_formulas(programs),
    )
    return PointCandidates(
        automaton,
        np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)[order],
        partition[order],
        lower[order],
        np.concatenate(selection.upper)[order],
        row[order],
        pmfs,
        programs,
        order,
    )


def _formulas(programs: JoinPrograms) -> Formulas:
    """Return the programs in the order in which the automaton binds the components, apart from any data."""
    start = programs.start[0]
    code = programs.code[: start[-1]].copy()
    operations = code[:, 0]
    whole, floating = operations == Opcode.CONSTANT, operations == Opcode.CONSTANT_F
    int_constants, float_constants = programs.ints[code[whole, 1]], programs.floats[code[floating, 1]]
    code[whole, 1], code[floating, 1] = np.arange(len(int_constants)), np.arange(len(float_constants))
    real = np.zeros(len(programs.slots), dtype=np.bool_)
    real[code[operations == Opcode.LOAD_F, 1]] = True
    return Formulas(start, code, int_constants, float_constants, programs.slots[:, 0].copy(), real)


def evaluate_points(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    pmfs: ExplicitPmfs | None,
    payload: Int64 | None,
    with_confidence: bool,
    batch_rows: int,
) -> Iterator[Chunk]:
    """Yield what :func:`uncertain_cep.sequence.evaluate_sequence` yields, by way of point events.

    The candidates are fed in order of their lower bounds, and a match is yielded as soon as the next one's
    says that it is final: what is held besides the candidates is what the window reaches.

    Raises
    ------
    OptionError
        If an interval has more than ``LONGEST_POINT_INTERVAL`` ticks, or the evaluation runs out of bounds.
    ConfidenceCostError
        If the confidence of a match takes too many steps.
    """
    intervals = zip(selection.lower, selection.upper, strict=True)
    longest = max(int((high - low).max()) + 1 for low, high in intervals)
    if longest > LONGEST_POINT_INTERVAL:
        message = f"an interval has {longest:,} ticks, and evaluation='point' goes through at most "
        raise OptionError(f"{message}{LONGEST_POINT_INTERVAL:,} of each: choose a longer tick")
    candidates = point_candidates(plan, table, selection, pmfs)
    evaluation = PointEvaluation(candidates.automaton, most_steps=float(MOST_CONFIDENCE_STEPS))
    try:
        for found in _fed(candidates, evaluation):
            for start in range(0, len(found.lower), batch_rows):
                part = slice(start, start + batch_rows)
                rows = found.events[:, part]
                yield Chunk(
                    rows if payload is None else payload[rows],
                    found.lower[part],
                    found.upper[part],
                    found.confidence[part] if with_confidence else None,
                )
    except CostlySignatureError as error:
        ids = table.column(plan.names.id).take(pa.array(error.events)).to_pylist()
        raise too_dear(plan, ids, error.steps) from None
    except ValueError as error:
        raise OptionError(f"evaluation='point': {error}") from error


def _fed(candidates: PointCandidates, evaluation: PointEvaluation) -> Iterator[PointMatches]:
    """Feed all candidates, and yield the matches as they are final."""
    lower = candidates.lower
    start = 0
    while start < len(lower):
        # Events with one lower bound stay together, and so do the candidates of one event.
        stop = int(np.searchsorted(lower, lower[min(start + POINT_BATCH, len(lower)) - 1], side="right"))
        candidates.push(evaluation, slice(start, stop))
        if stop < len(lower):
            yield evaluation.advance(int(lower[stop]))
        start = stop
    yield evaluation.close()
