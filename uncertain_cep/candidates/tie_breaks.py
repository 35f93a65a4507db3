"""Ties that sequences break: of events of one source at one tick, the smaller sequence is before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["TieBreaks"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TieBreaks:
    """The order by sequences of the events of a table, all (n,) int64 by row."""

    source: Int64
    """-1: none."""
    rank: Int64
    """In order as the sequences of a source are; -1: none."""
    lower: Int64
    upper: Int64
    """Times by the source, ticks."""

    def allow(self, early: Int64, late: Int64) -> Mask:
        """Return whether an event can be before another one at the same tick, for rows of one shape both.

        Where it can, ``t_late - t_early >= 0`` says that it is before; everywhere else, ``>= 1``.
        """
        allowed: Mask = (self.source[early] == self.source[late]) & (self.rank[early] >= 0)
        allowed &= self.rank[late] > self.rank[early]
        allowed &= (self.lower[early] <= self.upper[late]) & (self.lower[late] <= self.upper[early])
        return allowed
