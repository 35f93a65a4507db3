"""The times of a table's events as variables: independent ones, and offsets of clocks that events share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.existence import existence
from uncertain_cep.candidates.own_times import OffsetBounds, shared_clocks
from uncertain_cep.candidates.pmfs import ExplicitPmfs, flat_pmfs
from uncertain_cep.plan import EvaluationPlan

__all__ = ["TimeVariables"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeVariables:
    """The variables that the time and the existence of each event depend on.

    Variables are numbered: the own time of each row, the offset of each clock, whether each row happened.

    Attributes
    ----------
    variable : (n,) int64
        That of the time of each row; -1 if it is certain.
    constant : (n,) int64
        What is added to it, ticks.
    happened : (n,) int64
        The variable that is 1 if the event of a row happened; -1 if it did for certain, -2 if it did not.
    lower, upper : (v,) int64
        Bounds of each variable.
    clock : (v,) int64
        The variable that is added to it; -1: none.
    law : (v,) int64
        Where its probabilities start in ``values``; -1: uniform.
    values : (p,) float64
    """

    variable: Int64
    constant: Int64
    happened: Int64
    lower: Int64
    upper: Int64
    clock: Int64
    law: Int64
    values: Float64

    @classmethod
    def of(
        cls,
        plan: EvaluationPlan,
        table: pa.Table,
        offsets: OffsetBounds | None,
        pmfs: ExplicitPmfs | None,
        lower: Int64,
        upper: Int64,
    ) -> TimeVariables:
        """Return the variables of checked events.

        Parameters
        ----------
        plan : EvaluationPlan
        table : pyarrow.Table
        offsets : OffsetBounds or None
            Of their clocks; None: times are independent.
        pmfs : ExplicitPmfs or None
            Of own times where events name clocks.
        lower, upper : (n,) int64
            Bounds of their times, ticks, without those of probability 0 at the ends.
        """
        rows = np.arange(len(lower))
        clocks = None
        if offsets is not None:
            # The law of an own time of one tick is not that of the clock's time.
            clocks, pmfs = shared_clocks(plan, table, offsets, pmfs, lower, upper)
        if clocks is None:
            own_lower, own_upper, clock = lower, upper, np.full(len(lower), -1)
            law, values = flat_pmfs(pmfs, rows)
            offset_lower, offset_upper, offset_law = np.zeros((3, 0), dtype=np.int64)
        else:
            own_lower, own_upper, clock = clocks.own.lower, clocks.own.upper, clocks.own.clock
            law, values = clocks.own.offset, clocks.values
            offset_lower, offset_upper, offset_law = clocks.offsets
        number, chances = _existence_laws(table, plan.names.probability, len(values))
        first = len(rows) + len(offset_lower)
        is_wide = own_lower < own_upper
        of_clock = np.where(clock >= 0, len(rows) + clock, -1)
        return cls(
            np.where(is_wide, rows, of_clock),
            np.where(is_wide, 0, own_lower),
            np.where(number >= 0, first + rows, number),
            np.concatenate((own_lower, offset_lower, np.zeros_like(rows))),
            np.concatenate((own_upper, offset_upper, np.ones_like(rows))),
            np.concatenate((np.where(is_wide, of_clock, -1), np.full(len(offset_lower) + len(rows), -1))),
            np.concatenate((law, offset_law, number)),
            np.concatenate((values, chances)),
        )


def _existence_laws(table: pa.Table, name: str, start: int) -> tuple[Int64, Float64]:
    """Return where the probabilities that each event did not happen, and did, start, and these.

    -1 and -2 for events that did, and did not, for certain.
    """
    exists = existence(table, name)
    if exists is None:
        return np.full(table.num_rows, -1), np.zeros(0)
    distinct, which = np.unique(exists.probability, return_inverse=True)
    chances = np.stack((1.0 - distinct, distinct), axis=1).ravel()
    number = start + 2 * which.reshape(-1)
    number = np.where(exists.probability >= 1.0, -1, number)
    return np.where(exists.probability <= 0.0, -2, number), chances
