"""The matches under skip till next match that can still reach a confidence, by one event in each gap.

A match asks that no other candidate of component j comes between its events j - 1 and j. With one such
candidate x alone,

    P(match)  <=  1 - P(t_{j-1} < x < t_j < t_{j-1} + W),

a chain of uniform times. The candidates next to the match's own one are the likeliest to be in between.
They leave out nearly all matches that are not among the best, at a tenth of what a confidence takes.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.chain.side_by_side import confidences
from eventbased.layout import Candidates

__all__ = ["ROUNDING", "filter_gaps"]

Int64 = NDArray[np.int64]

NEAREST: Final = (-1, -2)
"""Places beside a match's own candidate, by lower bounds: those tried."""

ROUNDING: Final = 1e-10
"""Above what float64 may lose of one less a confidence."""


def filter_gaps(
    chosen: Int64, candidates: Candidates, rows: Int64, w: int, plain: NDArray[np.bool_], need: float
) -> Int64:
    """Return the matches, (l, m) int64 candidates, that can reach a confidence.

    Parameters
    ----------
    candidates : Candidates
        With positions taken off, and all of uniform intervals.
    rows : (n,) int64
        The event of each candidate: those of the match itself are not forbidden.
    w : int
        ``W - l``.
    plain : (l,) bool
        Whether all candidates of a component are forbidden before it, whatever the match holds.
    need : float
        See :func:`eventbased.thresholds.needed`.
    """
    length = len(chosen)
    lower, upper = candidates.lower, candidates.upper
    # The match's own event is one position further on where another one comes before it.
    further = np.array([[0], [0], [1]])
    for j, step in product(range(1, length), NEAREST):
        if plain[j] and chosen.shape[1]:
            before, event = chosen[j - 1 : j + 1]
            beside = np.maximum(event + step, candidates.first[j])
            forbidden = (rows[beside] != rows[chosen]).all(axis=0)
            chain = np.stack((before, beside, event))
            between = confidences(lower[chain] - further, upper[chain] - further, w + length - 3)
            # What is not known leaves out nothing.
            chosen = chosen[:, ~(forbidden & (1.0 - between < need - ROUNDING))]
    return np.ascontiguousarray(chosen)
