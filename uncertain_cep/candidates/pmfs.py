"""The explicit probability mass functions of a table's events, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint

__all__ = ["ExplicitPmfs", "explicit_pmfs", "flat_pmfs"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ExplicitPmfs:
    """Probabilities of the events that have a pmf of their own."""

    offset: Int64
    """(n,) int64. Where an event's probabilities start in ``values``; -1 for a uniform or a certain time."""
    values: NDArray[np.float64]
    """(m,) float64. Those of an event sum to 1."""


def explicit_pmfs(
    table: pa.Table, name: str, lower: Int64, upper: Int64
) -> tuple[ExplicitPmfs | None, Int64, Int64]:
    """Return the pmfs of a table, None if all are uniform, and the intervals trimmed to them. O(n + m).

    Parameters
    ----------
    name : str
        The pmf column; it may be absent. What is in it was checked.
    lower, upper : (n,) int64
        The intervals, ticks; returned without the ticks of probability 0 at either end.

    Notes
    -----
    What the sum of a pmf lacks or has too much, within ``PMF_TOLERANCE``, is taken from all its ticks in
    proportion: no confidence is above 1.
    """
    if name not in table.column_names or table.column(name).null_count == table.num_rows:
        return None, lower, upper
    checkpoint(3 * table.column(name).nbytes)
    lists = table.column(name).cast(pa.large_list(pa.float64())).combine_chunks()
    values = np.array(lists.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False))
    lengths = lengths.astype(np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    has_pmf = lengths > 0
    if not has_pmf.any():
        return None, lower, upper
    total = np.add.reduceat(values, starts[has_pmf])
    if (total != 1.0).any():
        values /= np.repeat(total, lengths[has_pmf])
    # Every pmf has a positive probability: the first one from its start on, and the last one before its end.
    positive = np.flatnonzero(values > 0)
    behind = np.minimum(np.searchsorted(positive, starts), len(positive) - 1)
    first = np.where(has_pmf, positive[behind], -1)
    last = positive[np.searchsorted(positive, ends) - 1]
    trimmed_lower = np.where(has_pmf, lower + (first - starts), lower)
    trimmed_upper = np.where(has_pmf, upper - (ends - 1 - last), upper)
    # What is on one tick is certain, and is not summed over as probabilities are.
    offset = np.where(trimmed_lower < trimmed_upper, first, -1).astype(np.int64)
    pmfs = ExplicitPmfs(offset, values) if (offset >= 0).any() else None
    return pmfs, trimmed_lower, trimmed_upper


def flat_pmfs(pmfs: ExplicitPmfs | None, rows: Int64) -> tuple[Int64, NDArray[np.float64]]:
    """Return where the probabilities of some rows start, (k,) int64, -1 for uniform ones, and all of them."""
    if pmfs is None:
        return np.full(len(rows), -1), np.zeros(0)
    return pmfs.offset[rows], pmfs.values
