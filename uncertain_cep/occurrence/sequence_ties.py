"""Sequences of sources: which of two events at one tick is before the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.own_times import OffsetBounds
from uncertain_cep.plan import EvaluationPlan

__all__ = ["SequenceTies"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SequenceTies:
    """The source and the sequence of each event of a table.

    Attributes
    ----------
    source : (n,) int64
        -1: none, or no sequence.
    sequence : (n,) int64
    """

    source: Int64
    sequence: Int64

    @classmethod
    def of(cls, plan: EvaluationPlan, table: pa.Table, offsets: OffsetBounds | None) -> SequenceTies | None:
        """Return the sources and sequences of checked events; None if there are no sequences."""
        name = plan.clock_names.sequence
        if offsets is None or name is None:
            return None
        column = table.column(name)
        has_sequence = np.asarray(column.is_valid().to_numpy())
        sequence = np.asarray(pc.fill_null(column.cast(pa.int64()), 0).to_numpy())
        return cls(np.where(has_sequence, offsets.clock, -1), sequence)

    def least(self, earlier: Int64, later: Int64) -> Int64:
        """Return how many ticks rows, (k,) int64, have to be behind others to be after them: 0 or 1."""
        same = (self.source[earlier] == self.source[later]) & (self.source[earlier] >= 0)
        return np.where(same & (self.sequence[earlier] < self.sequence[later]), 0, 1)
