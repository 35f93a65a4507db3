"""Intervals of components laid out on one time line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eventbased import Candidates, Concatenated, lay_out, partition_bases
from eventbased.config import POSITION_STEP

Int64 = NDArray[np.int64]

__all__ = ["candidates_of"]


def candidates_of(
    lower: Sequence[Int64],
    upper: Sequence[Int64],
    gap: int = 0,
    partition: Sequence[Int64] | None = None,
    partitions: int = 1,
    step: int = POSITION_STEP,
) -> Candidates:
    """Return candidates with ``gap`` ticks between two partitions, see :func:`eventbased.lay_out`."""
    shift, _, covered = partition_bases(lower, upper, partition, partitions, gap)
    rows = [np.arange(len(part)) for part in lower]
    return lay_out(Concatenated.of(rows, lower, upper, partition), shift, covered, step)[0]
