"""How far the events of a likely match are apart at least, where all intervals are equally long.

A match of l components is l gaps ``g_1 .. g_l``: the differences of neighbouring lower bounds, positions
taken off, and what the window leaves behind the last one, so that their sum is ``w = W - l``. Let N be the
number of worlds in which it happens: of whole numbers ``u_1 <= .. <= u_l <= u_1 + w``, each in its interval
of n ticks.

- **N is log-concave on the integers.** These conditions on u and on the lower bounds a speak of differences
  of two variables only, so what meets them is closed under ``floor((x + y) / 2)`` and ``ceil((x + y) / 2)``.
  By the four-function theorem of Klartag and Lehec ("Poisson processes and a log-concave Bernstein theorem",
  2019) ``N(a) N(b) <= N(floor((a + b) / 2)) N(ceil((a + b) / 2))``: log N is L-natural-concave (Murota,
  "Discrete Convex Analysis", 2003).
- **So is the best that one gap allows.** N does not change if all times move, so that the best lower bounds
  for two values of ``g_1`` may be taken with an even sum where the gap begins. Their midpoints have the two
  midpoints of the values as gaps. So the values with N above some number follow each other.
- **The best of all has equal gaps.** N of equally long intervals does not change if the first event moves
  behind the last one by w: what is best is closed under that. By the above it is all whole points of a
  polyhedron ``a_j - a_i <= c_(j - i)`` with whole c, which holds the mean of its l turns, whose gaps are all
  ``w / l``. So ``(j - i) w / l <= c``, and ``a_i = floor(i w / l)`` is among the best: its least gap is
  ``floor(w / l)``. And as turns make every gap the first one, one number bounds all gaps from below.
- **A climb bounds what it has not reached.** With the gap fixed, let p be any choice of the other bounds, q
  the best one, and no step from p to ``p + X`` or ``p - X``, for a set X of events, multiply N by more than
  ``exp(e)``. The concave extension of log N is linear between neighbours, so its slope from p towards q is a
  sum of ``max(q - p) + max(p - q)`` such steps, and N(q) is at most ``N(p) exp(e (max(q - p) + max(p -
  q)))``.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.chain.side_by_side import confidences
from eventbased.config import CONFIDENCE_ERROR

__all__ = ["least_gap"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_GAPS_AT_ONCE: Final = 8
"""Gaps whose best matches are sought together: `python -m benchmarks main --only topk`."""

MOST_CLIMBED: Final = 16
"""Steps of one length after which the best match with a gap is bounded from where the climb is."""


def least_gap(length: int, size: int, w: int, need: float) -> int | None:
    """Return a gap that every match of some confidence has at least, from each event to the next.

    Parameters
    ----------
    length : int
        Components, from 2 to 8.
    size : int
        Ticks of each interval.
    w : int
        ``W - l``, at least 0.
    need : float
        The confidence to reach, above 0 and at most 1.

    Returns
    -------
    int or None
        The largest such number but for rounding, from ``1 - size`` to ``size - 1``; None if there is no match
        of the confidence.

    Notes
    -----
    About ``2 ** l`` confidences for each of ``log(size + w / l)`` gaps.
    """
    # Gaps beyond size - 1 are certain: there is no better one.
    low, high = -size, min(w // length, size - 1)
    if not bool(best_of(np.array([high]), length, size, w)[0] >= need):
        return None
    while high - low > 1:
        tried = np.unique(np.linspace(low + 1, high - 1, _GAPS_AT_ONCE).astype(np.int64))
        left_out = tried[best_of(tried, length, size, w) < need]
        low = int(left_out.max(initial=low))
        high = int(tried[tried > low].min(initial=high))
    return high


def best_of(gaps: Int64, length: int, size: int, w: int) -> Float64:
    """Return the largest confidence of a match with some first gap, (k,), for the parameters above.

    The gaps, (k,), are at most ``w / length``.
    """
    moves, gap_count = _moves(length), len(gaps)
    remainder = w - gaps
    steps = np.arange(length - 1)[:, np.newaxis]
    # Equal shares for the others.
    place = np.vstack((np.zeros_like(gaps), gaps + remainder * steps // (length - 1)))
    # With three components that is best: log-concave in the one that is free, and alike in a mirror.
    stride = 4 ** max((size.bit_length() - 3) // 2, 0) if length > 3 else 1
    climbed = 0
    while True:
        tried = place[:, :, np.newaxis] + stride * moves[:, np.newaxis, :]
        lower = np.ascontiguousarray(tried.reshape(length, -1))
        found = confidences(lower, lower + (size - 1), w).reshape(gap_count, -1)
        best = np.nan_to_num(found).argmax(axis=1)
        climbed += 1
        if climbed < MOST_CLIMBED and bool(best.any()):
            place = tried[:, np.arange(gap_count), best]
            continue
        if stride == 1:
            break
        stride, climbed = stride // 4, 0
    # What float64 cannot give may be certain.
    found[np.isnan(found)] = 1.0
    here, highest = found[:, 0], found.max(axis=1)
    # Every bound is between gap - l * size and w + l * size; with two components none is left to choose.
    reach = 2.0 * (remainder + 2.0 * length * size) if length > 2 else 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gain = np.log(highest / here) + 2.0 * CONFIDENCE_ERROR
        bound = np.where(here > 0.0, here * (1.0 + CONFIDENCE_ERROR) * np.exp(gain * reach), 1.0)
    return np.minimum(bound, 1.0)


def _moves(length: int) -> Int64:
    """Return no move, and each move of some of the events behind the second by one, (l, m)."""
    sets = np.array(list(product((0, 1), repeat=length - 2)), dtype=np.int64).T[:, 1:]
    still = np.zeros((2, 2 * sets.shape[1] + 1), dtype=np.int64)
    return np.vstack((still, np.hstack((np.zeros((length - 2, 1), dtype=np.int64), sets, -sets))))
