"""Ranges and confidences of the choices of a join, of which conditions on times are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import CostlyMatchError, Pmfs
from eventbased.gaps.gap_events import GapRules, MatchEvents, Placed
from uncertain_cep.candidates.layout import Layout
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.next_match import too_dear
from uncertain_cep.operators.series import event_by_event
from uncertain_cep.operators.timed_matches import TimedConfidences
from uncertain_cep.plan import EvaluationPlan

__all__ = ["TimedChoices"]

Int64 = NDArray[np.int64]


class TimedChoices:
    """What a plan asks of the times of a sequence of single events, for choices among a layout's candidates.

    The candidates may be moved, see :func:`uncertain_cep.candidates.moved.moved`; the context's plan is that
    of the join.
    """

    def __init__(self, context: ExecutionContext, plan: EvaluationPlan, layout: Layout) -> None:
        self._plan, self._table, self._rows = plan, context.table, layout.rows
        lower, upper = context.ticks
        rows, pmfs = layout.rows, context.pmfs
        # As they were before they were moved.
        self._candidates = Placed(lower[rows], upper[rows], np.zeros_like(rows), rows)
        self._offset = np.full(context.table.num_rows, -1) if pmfs is None else pmfs.offset
        self._pmfs = Pmfs.of(np.zeros(0) if pmfs is None else pmfs.values, lower, upper, self._offset)
        none = np.empty(0, dtype=np.int64)
        rules = GapRules(np.full(len(plan.components), -1), -1, none, none)
        span = replace(context, plan=plan).span
        self._confidences = TimedConfidences(plan, context.table, rules, None, span)

    def describe(self, chosen: Int64, wanted: bool, out: tuple[NDArray[Any], ...]) -> None:
        """Fill ranges and confidences of (l, m) int64 candidates; an impossible match has an empty range.

        Raises
        ------
        ConfidenceCostError
            If the confidence of a match takes too many steps.
        """
        lower, upper, confidence, std_error = out
        if not wanted:
            confidence = np.empty(len(lower))
        try:
            self._confidences.describe(
                MatchEvents(*event_by_event(chosen)), self._candidates, self._offset, None, None, None,
                self._pmfs, wanted, None, (lower, upper, confidence, std_error),
            )  # fmt: skip
        except CostlyMatchError as error:
            rows = self._rows[chosen[:, error.match]]
            ids = self._table.column(self._plan.names.id).take(pa.array(rows)).to_pylist()
            raise too_dear(self._plan, ids, error.steps) from None
