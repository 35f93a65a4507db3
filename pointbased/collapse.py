"""Match collapsing (the paper, section 3, step 3): point matches of one signature become one match."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["collapse_matches"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


def collapse_matches(
    signature: Int64, first: Int64, last: Int64, probability: Float64
) -> tuple[Int64, Int64, Int64, Float64]:
    """Group point matches by signature; sum their probabilities and take the tightest range.

    Different point matches of a signature are disjoint sets of possible worlds, so the confidence is the
    sum of their probabilities (Eq. 1).

    Parameters
    ----------
    signature : (l, m) int64
        The events of each point match, in pattern order.
    first, last : (m,) int64
        Time of the first and of the last point event, ticks.
    probability : (m,) float64
        Product of the probabilities of the point events.

    Returns
    -------
    signature : (l, k) int64
        Distinct, in ascending order.
    lower, upper : (k,) int64
    confidence : (k,) float64
        O(m log m).
    """
    order = np.lexsort(signature[::-1])
    signature = signature[:, order]
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (signature[:, 1:] != signature[:, :-1]).any(axis=0)
    groups = np.flatnonzero(starts)
    if not len(groups):
        return signature, first, last, probability
    return (
        signature[:, groups],
        np.minimum.reduceat(first[order], groups),
        np.maximum.reduceat(last[order], groups),
        np.add.reduceat(probability[order], groups),
    )
