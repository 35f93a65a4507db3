"""Ranges and confidences of the choices of a join, under conditions on times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import CostlyMatchError, Limits, Pmfs
from eventbased.gaps.gap_events import GapRules, MatchEvents, Placed
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.operators.costly_matches import too_dear
from uncertain_cep.operators.series import event_by_event
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.weighers.cheapest import Weighing
from uncertain_cep.weighers.log import WeighingLog
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern

__all__ = ["TimedChoices"]

Int64 = NDArray[np.int64]


class TimedChoices:
    """Conditions on the times of a sequence of single events, for choices among a layout's candidates.

    ``rows``, (n,) int64, are those of the candidates, ``ticks`` the bounds of all rows, ``span`` the window.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        rows: Int64,
        ticks: tuple[Int64, Int64],
        pmfs: ExplicitPmfs | None,
        span: int,
        log: WeighingLog | None = None,
    ) -> None:
        self._plan, self._table, self._rows = plan, table, rows
        lower, upper = ticks
        self._candidates = Placed(lower[rows], upper[rows], np.zeros_like(rows), rows)
        self._offset = np.full(table.num_rows, -1) if pmfs is None else pmfs.offset
        self._pmfs = Pmfs.of(np.zeros(0) if pmfs is None else pmfs.values, lower, upper, self._offset)
        none = np.empty(0, dtype=np.int64)
        rules = GapRules(np.full(len(plan.components), -1), -1, none, none)
        limits = Limits(float(MOST_CONFIDENCE_STEPS), *plan.estimates)
        self._pattern = MatchPattern(plan, table, rules, None, span, None, limits)
        self._weighing = Weighing(self._pattern, log=log)

    def describe(self, chosen: Int64, wanted: bool, out: tuple[NDArray[Any], ...]) -> None:
        """Fill ranges and confidences of (l, m) int64 candidates; an impossible match has an empty range.

        Raises
        ------
        ConfidenceCostError
            If the confidence of a match takes too many steps.
        """
        matches = MatchEvents(*event_by_event(chosen))
        model = MatchModel(
            self._pattern, matches, self._candidates, self._offset, self._pmfs, None, None, wanted
        )
        lower, upper, confidence, std_error = out
        try:
            answers = Columns.empty(model.count)
            self._weighing.weigh(model, answers)
            lower[:], upper[:], std_error[:] = answers.lower, answers.upper, answers.std_error
            if wanted:
                confidence[:] = answers.confidence
        except CostlyMatchError as error:
            rows = self._rows[chosen[:, error.match]]
            ids = self._table.column(self._plan.names.id).take(pa.array(rows)).to_pylist()
            raise too_dear(self._plan, ids, error.steps, error.limit) from None
