"""Matches some of whose events share a clock: their times move together.

The search goes by the bounds of true times, which stay necessary: every world with shared clocks is one
without. What it finds is described anew where two events of a match name one clock. Of other matches the
confidence is that of independent times, since each time is uniform by its reading and the offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.shared.rigid import MOST_CLOCKS
from confidence.shared.weighing import weigh_matches
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.expressions.codes import codes_of
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.plan import EvaluationPlan

__all__ = ["SharedClocks", "too_many_clocks"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SharedClocks:
    """The clocks of a table's events.

    For each row, (n,) int64, its clock (-1: one of its own), its time by that clock, and the bounds of the
    clock's offset, ticks.
    """

    clock: Int64
    reading: Int64
    low: Int64
    high: Int64

    @classmethod
    def of(cls, plan: EvaluationPlan, table: pa.Table, lower: Int64, upper: Int64) -> SharedClocks:
        """Return the clocks of checked events with these bounds of their times."""
        names = plan.names
        (codes,), _ = codes_of([table.column(names.source)])
        low, high = (plan.domain.lengths(table.column(name)) for name in names.clocks[1:])
        shared = (codes >= 0) & (low < high)
        return cls(
            np.where(shared, codes, -1),
            np.where(shared, lower - low, 0),
            np.where(shared, low, lower),
            np.where(shared, high, upper),
        )

    def weighed(self, plan: EvaluationPlan, chunk: MatchBatch) -> MatchBatch:
        """Return matches, whose events are rows, as their clocks let them be."""
        clocks = np.sort(self.clock[chunk.events], axis=0)
        again = ((clocks[1:] == clocks[:-1]) & (clocks[1:] >= 0)).any(axis=0)
        which = np.flatnonzero(again)
        if not len(which):
            return chunk
        events = np.ascontiguousarray(chunk.events[:, which])
        wanted = chunk.confidence is not None
        lower, upper, confidence = chunk.lower.copy(), chunk.upper.copy(), np.zeros(len(chunk.lower))
        if chunk.confidence is not None:
            confidence = chunk.confidence.copy()
        found = np.empty(len(which), np.int64), np.empty(len(which), np.int64), np.zeros(len(which))
        weigh_matches(events, self.clock, self.reading, self.low, self.high, plan.window, wanted, *found)
        if np.isnan(found[2]).any():
            raise too_many_clocks()
        lower[which], upper[which], confidence[which] = found
        moved = replace(chunk, lower=lower, upper=upper, confidence=confidence if wanted else None)
        return moved.keep(lower <= upper)


def too_many_clocks() -> ConfidenceCostError:
    """Return the error for a match whose worlds are too many to count."""
    return ConfidenceCostError(
        f"a match has more than {MOST_CLOCKS} clocks, and one of them comes back in between: take their "
        "times as independent, sources=False, or ask for fewer events",
        0,
        0,
    )
