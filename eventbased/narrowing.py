"""Candidates of a join for matches of some confidence at least: order and window with room to spare.

A match of confidence c has ``P(u_i <= u_j) >= c`` for any two of its events in order, and
``P(u_l <= u_0 + w) >= c`` for its last and its first one, u being times minus position. For two uniform times
that is a least distance of their lower bounds, ``lower_j - lower_i >= d``, which is the larger the longer
the earlier interval is and the smaller the longer the later one. So each inequality of the cycle is a
condition on lower bounds again: the join of the same candidates with other upper bounds finds what keeps
them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.side_by_side import LENGTHS
from confidence.large_arrays import empty
from eventbased.config import SPARE, WORTH_CLIMBING
from eventbased.layout import Candidates, fill_follow
from eventbased.least_gaps import least_gap
from eventbased.thresholds import needed

__all__ = ["Narrowed", "least_distances", "narrowed", "share_left"]

Int64 = NDArray[np.int64]


class Narrowed(NamedTuple):
    """Narrowed candidates of a join: the same ones in the same order."""

    candidates: Candidates
    w: int
    """Window minus length, less what is taken off."""
    taken_off: Int64
    """(l,) int64. Ticks by which the lower bounds of each component are smaller."""


def _in_order(x: int, first: int, second: int) -> float:
    """Return P(u_i <= u_j) for intervals of so many ticks, the later one's lower bound being x larger."""
    corners = (first - 1 - x, -1 - x, first - 1 - x - second, -1 - x - second)
    a, b, c, d = (side * (side + 1) // 2 if side > 0 else 0 for side in corners)
    return (first * second - (a - b - c + d)) / (first * second)


def _distance(first: int, second: int, least: float) -> int:
    """Return the smallest distance of lower bounds for which P(u_i <= u_j) >= least, between 0 and 1."""
    low, high = 1 - second, first - 1
    while low < high:
        middle = (low + high) // 2
        if _in_order(middle, first, second) >= least:
            high = middle
        else:
            low = middle + 1
    return low


def _shared(w: int, distance: Int64, length: int) -> int:
    """Return an equal share of what one distance leaves to the others, or a little more."""
    return -((int(distance.min()) - w) // (length - 1))


def least_distances(candidates: Candidates, w: int, least: float) -> Int64 | None:
    """Return how far apart the events of a match of some confidence are at least.

    Parameters
    ----------
    candidates : Candidates
        With positions taken off, and all of uniform intervals.
    w : int
        ``W - l``.
    least : float
        The confidence to reach, between 0 and 1.

    Returns
    -------
    (c,) int64 or None
        For each class the least difference between the lower bound of an event of it and that of the event
        before it; before the first component comes the last one, w earlier. None if there is no match.

    Notes
    -----
    The shortest interval of all stands for the earlier one, the longest of a class for the later one: where
    all are equally long, nothing is lost.

    The product of all l probabilities bounds the confidence as well (:mod:`eventbased.upper_bounds`), and
    their distances add up to w. Each is log-concave as a function of its distance, as the difference of two
    uniform times is: so l - 1 of them are at most what equal shares of the rest give, and the one that is
    asked for has to be so much larger. Where all intervals are equally long, the least distance is known
    (:mod:`eventbased.least_gaps`).
    """
    length = len(candidates.first) - 1
    sizes = [int(size) + 1 for size in candidates.class_longest]
    shortest, longest = int(candidates.class_shortest.min()) + 1, max(sizes)
    least, need = needed(least), 0.0
    distance = np.array([-size for size in sizes])
    if shortest == longest and length in LENGTHS and len(candidates.source) >= WORTH_CLIMBING:
        gap = least_gap(length, longest, w, least)
        if gap is None:
            return None
        distance = np.maximum(distance, gap)
    while need < (need := least / _in_order(_shared(w, distance, length), shortest, longest) ** (length - 1)):
        if need > 1.0:
            return None
        distance = np.maximum(distance, [_distance(shortest, size, need) for size in sizes])
    # The distances of a match have the sum w.
    return None if length * int(distance.min()) > w else distance


def share_left(candidates: Candidates, w: int, distance: Int64) -> float:
    """Return about which share of the matches distances leave, see :func:`least_distances`.

    The differences of a match, the last one to its first event w later, have the sum w: they are points of a
    simplex.
    """
    length = len(candidates.first) - 1
    longest = np.maximum.reduceat(candidates.class_longest, candidates.first_class[:-1])
    whole, narrowed_span = float(w + int(longest.sum())), float(w - length * int(distance.min()))
    return 1.0 if narrowed_span >= whole else (narrowed_span / whole) ** (length - 1)


def narrowed(candidates: Candidates, w: int, distance: Int64) -> Narrowed:
    """Return candidates among which a join finds all matches of some distances, and few others.

    Parameters
    ----------
    candidates, w
        As for :func:`least_distances`.
    distance : (c,) int64
        What it returned.

    Notes
    -----
    O(n). If every distance is positive, they are taken off as positions are: what is in order then need not
    overlap.
    """
    length = len(candidates.first) - 1
    apart = max(int(distance.min()), 0)
    taken_off = apart * np.arange(length)
    lower, upper, highest = empty((3, len(candidates.lower)))
    # Behind the last candidate they are read, too.
    for target, source in (
        (lower, candidates.lower),
        (upper, candidates.upper),
        (highest, candidates.highest),
    ):
        target[-SPARE:] = source[-SPARE:]
    wide = np.maximum(-distance, 0) if not apart else np.zeros_like(distance)
    for j, (begin, end) in enumerate(zip(candidates.first_class, candidates.first_class[1:], strict=False)):
        for c in range(begin, end):
            part = slice(candidates.class_start[c], candidates.class_stop[c])
            np.subtract(candidates.lower[part], taken_off[j], out=lower[part])
            np.subtract(candidates.upper[part], taken_off[j], out=upper[part])
            np.minimum(upper[part], lower[part] + wide[c], out=upper[part])
            np.maximum.accumulate(upper[part], out=highest[part])
    candidates_narrowed = candidates._replace(
        class_shortest=np.minimum(candidates.class_shortest, wide),
        class_longest=np.minimum(candidates.class_longest, wide),
        lower=lower, upper=upper, highest=highest, follow=empty(len(candidates.follow)),
    )  # fmt: skip
    fill_follow(candidates_narrowed)
    return Narrowed(candidates_narrowed, w - length * apart, taken_off)
