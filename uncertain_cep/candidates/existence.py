"""Whether the events of a table happened at all: probabilities that are independent of all else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.distribution import Pmfs, doubtful
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.plan import EvaluationPlan

__all__ = ["Existence", "as_evaluated", "existence"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Existence:
    """The probability that each event happened; some are below 1."""

    probability: Float64
    """(n,) float64."""

    @property
    def is_certain(self) -> NDArray[np.bool_]:
        """(n,) bool. Which events happened for certain."""
        is_certain: NDArray[np.bool_] = self.probability >= 1.0
        return is_certain

    def possible(self, selection: Selection) -> Selection:
        """Return the candidates but for those of events that cannot have happened."""
        kept = [self.probability[rows] > 0.0 for rows in selection.rows]
        return selection if all(map(np.all, kept)) else selection.take(kept)

    def forbidding(
        self, pmfs: Pmfs, offset: Int64, rows: Int64 | slice, own_laws: Int64 | None = None
    ) -> tuple[Pmfs, Int64]:
        """Return the coded laws of the events of some rows that must stay out of gaps.

        Parameters
        ----------
        pmfs : Pmfs
        offset : (k,) int64
            Of these events, if they happened.
        rows : (k,) int64 or slice
        own_laws : (k,) int64 or None
            The laws by their clocks.

        See Also
        --------
        confidence.chain.distribution.doubtful : what is returned.
        """
        return doubtful(pmfs, offset, self.probability[rows], own_laws)


def as_evaluated(plan: EvaluationPlan, exists: Existence | None) -> EvaluationPlan:
    """Return the plan by which events are matched some of which may not have happened."""
    return replace(plan, doubtful=True) if exists is not None and plan.forbids else plan


def existence(table: pa.Table, name: str) -> Existence | None:
    """Return the probabilities that the events of a table happened; None if all did. O(n).

    Parameters
    ----------
    name : str
        Their column; it may be absent. What is in it was checked; null means 1.
    """
    if name not in table.column_names or table.column(name).null_count == table.num_rows:
        return None
    column = table.column(name)
    checkpoint(16 * table.num_rows)
    filled = pc.fill_null(column.cast(pa.float64()), 1.0)
    probability = np.asarray(filled.to_numpy())
    return Existence(probability) if (probability < 1.0).any() else None
