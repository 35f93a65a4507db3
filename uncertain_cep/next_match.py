"""Skip till next match on the join of candidates: pruning limits, and confidences with forbidden events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import running_sums, workspace
from eventbased import ALL, COSTLY, Candidates, next_confidences, next_limits
from uncertain_cep.config import MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.pmfs import ExplicitPmfs
from uncertain_cep.programs import JoinPrograms

__all__ = ["NextMatches"]

Int64 = NDArray[np.int64]


class NextMatches:
    """What the candidates of one layout say about matches under skip till next match.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events, for error messages.
    candidates : Candidates
    rows : (n,) int64
        The row of each candidate in the table.
    event : (n,) int64, twin : (s, l) int64
        The events that several components can take, see :func:`eventbased.join`.
    programs : JoinPrograms
    pmfs : ExplicitPmfs or None
    w : int
        Window minus length.

    Attributes
    ----------
    limit : (n,) int64
        For :func:`eventbased.join`.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        candidates: Candidates,
        rows: Int64,
        event: Int64,
        twin: Int64,
        programs: JoinPrograms,
        pmfs: ExplicitPmfs | None,
        w: int,
    ) -> None:
        self._plan, self._table, self._rows = plan, table, rows
        self._length = len(plan.components)
        layout = (
            candidates.first_class, candidates.class_start, candidates.class_stop,
        )  # fmt: skip
        start = programs.start[0]
        self.limit = np.empty(len(rows), dtype=np.int64)
        next_limits(
            *layout, candidates.lower, candidates.upper, event, twin, start[:-1] == start[1:], self.limit
        )
        offset = np.full(len(rows), -1) if pmfs is None else pmfs.offset[rows]
        values = np.zeros(0) if pmfs is None else pmfs.values
        head, tail = np.zeros_like(values), np.zeros_like(values)
        running_sums(candidates.lower, candidates.upper, offset, values, head, tail)
        self._events: tuple[Any, ...] = (
            w, *layout, candidates.class_longest, candidates.lower, candidates.upper, candidates.base,
            event, twin, offset, values, head, tail, start, programs.code, programs.ints, programs.floats,
            programs.nulls, programs.slots, float(MOST_CONFIDENCE_STEPS),
        )  # fmt: skip
        self._space = (1024, 64, 64)
        self._make_space()

    def _make_space(self) -> None:
        edges, ticks, events = self._space
        self._work = workspace(self._length, edges, ticks, events)
        numbers = np.empty((4, events), dtype=np.int64)
        self._room = (*numbers, np.empty((events, self._length), dtype=np.bool_))

    def describe(self, matches: Int64, lower: Int64, upper: Int64, confidence: NDArray[np.float64]) -> None:
        """Fill time ranges and confidences; a match that cannot happen gets an empty range.

        Parameters
        ----------
        matches : (l, m) int64
            The candidates of each match.
        lower, upper : (m,) int64; confidence : (m,) float64
            Overwritten.

        Raises
        ------
        ConfidenceCostError
            If the exact confidence of a match takes too many steps.
        """
        done = 0
        while True:
            kernel: Any = next_confidences
            done, reason, need = kernel(
                matches, done, *self._events, self._work, *self._room, lower, upper, confidence
            )
            if reason == ALL:
                return
            if reason == COSTLY:
                raise self._too_dear(matches[:, done], int(need[0]))
            grown = [
                max(old, 2 * new if new > old else old) for old, new in zip(self._space, need, strict=True)
            ]
            self._space = (grown[0], grown[1], grown[2])
            self._make_space()

    def _too_dear(self, match: Int64, steps: int) -> ConfidenceCostError:
        ids = self._table.column(self._plan.names.id)
        variables = (component.variable for component in self._plan.components)
        signature = ", ".join(
            f"{variable}={ids[int(self._rows[place])].as_py()!r}"
            for variable, place in zip(variables, match, strict=True)
        )
        message = (
            f"the exact confidence of the match ({signature}) under skip_till_next_match takes about "
            f"{steps:.1e} steps, and at most {MOST_CONFIDENCE_STEPS:.1e} are spent on one match: its intervals "
            "have many ticks, or several events could have been taken by more than one of its components, which "
            "couples the gaps. Choose a longer tick, a shorter WITHIN, or predicates that tell the components "
            "apart"
        )
        return ConfidenceCostError(message, steps, MOST_CONFIDENCE_STEPS)
