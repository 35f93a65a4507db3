"""Likely matches under skip till next match: how far the next event may be, by one event in between.

A match asks that no other candidate x of component j + 1 comes between its events i and e of components j and
j + 1. With one such x alone,

    P(match)  <=  1 - P(t_i < x < t_e),

and the probability is the larger the later e begins, and the larger the longer e is. So x gives a largest
lower bound that e may have, as NELT does where x is certain to come in between
(:func:`eventbased.gaps.next_match.next_limits`). For intervals of given lengths it depends on how far x is
behind i alone: a table has it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.chain.side_by_side import confidences
from confidence.config import EVER, MOST_EXACT_TICKS
from confidence.kernel import kernel
from eventbased.gaps.nearest import ROUNDING
from eventbased.layout import Candidates

__all__ = ["likely_limits"]

Int64 = NDArray[np.int64]

MOST_DISTANCES: Final = 1 << 12
"""Entries of a table; with longer intervals one stands for several distances, the smallest of them."""

NEARBY: Final = 32
"""Events x behind each candidate that are looked at: those further on leave out less."""


def _room(first: int, between: int, following: int, least: float) -> tuple[Int64, int]:
    """Return how far behind an event x the next one may begin, ticks, by how far x is behind the first one.

    Parameters
    ----------
    first, between, following : int
        Ticks of the intervals of the first event, of x, and of the next event.
    least : float
        The confidence to reach.

    Returns
    -------
    room : (k,) int64
        Entry n is for lower bounds that are ``1 - between + n step`` apart or more, positions taken off, and
        the last one for all beyond. EVER: it may begin anywhere. At least 0, so that x is not left out.
    step : int
    """
    span = first + between - 1
    step = -(-span // MOST_DISTANCES)
    distance = np.arange(1 - between, first - 1 + step, step)
    # The next event is surely behind x from here on.
    low, high = np.zeros_like(distance), np.full_like(distance, between)

    def passes(lower: Int64) -> NDArray[np.bool_]:
        begin = np.stack((np.zeros_like(distance), distance, distance + lower - 1))
        end = begin + np.array([[first], [between], [following]]) - 1
        # The window is wider than the three reach. What is not known leaves nothing out.
        between_them = confidences(begin, end, span + between + following)
        return ~(1.0 - between_them < least - ROUNDING)

    endless = passes(high)
    while (low < high).any():
        middle = (low + high + 1) >> 1
        fits = passes(middle)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    room = np.where(endless, EVER, low)
    # The further x is behind, the less room there is, but for rounding.
    return np.maximum.accumulate(room[::-1])[::-1].copy(), step


@kernel
def _tighten(begin, stop, others, end, lower, event, smallest, step, room, out):
    """Tighten the limits of the candidates ``begin..stop-1`` by those of another class, ``others..end-1``.

    ``smallest`` is the distance that the first entry of ``room`` is for. O(candidates).
    """
    last = room.shape[0] - 1
    first = 0
    while first <= last and room[first] == EVER:
        first += 1
    if first > last:
        return
    nearest = smallest + first * step
    x = others
    for i in range(begin, stop):
        while x < end and lower[x] < lower[i] + nearest:
            x += 1
        limit = out[i]
        k = x
        while k < min(end, x + NEARBY) and lower[k] < limit:
            # One that the match itself may hold is not forbidden then.
            if event[k] < 0:
                n = min((lower[k] - lower[i] - smallest) // step, last)
                limit = min(limit, lower[k] + room[n])
            k += 1
        out[i] = limit


def likely_limits(
    candidates: Candidates, event: Int64, plain: NDArray[np.bool_], least: float, limit: Int64
) -> Int64:
    """Return the largest A that an event may have to follow each candidate in a match of some confidence.

    Parameters
    ----------
    candidates : Candidates
        With positions taken off, and all of uniform intervals.
    event : (n,) int64
        At least 0 for candidates of several components.
    plain : (l,) bool
        Whether all candidates of a component are forbidden before it, whatever the match holds.
    least : float
        See :func:`eventbased.thresholds.needed`.
    limit : (n,) int64
        What holds for matches of any confidence, see :func:`eventbased.gaps.next_match.next_limits`.

    Notes
    -----
    O(n) for each pair of classes of neighbouring components, and a table for their lengths. Only classes
    whose intervals are equally long are looked at.
    """
    likely = limit.copy()
    shortest, longest = candidates.class_shortest, candidates.class_longest
    first_class = candidates.first_class.tolist()
    tables: dict[tuple[int, int, int], tuple[Int64, int]] = {}
    for j in range(len(first_class) - 2):
        here = range(first_class[j], first_class[j + 1])
        behind = range(first_class[j + 1], first_class[j + 2])
        following = int(min(shortest[c] for c in behind)) + 1
        for c in here:
            for other in behind:
                sizes = int(longest[c]) + 1, int(longest[other]) + 1, following
                if (
                    not plain[j + 1]
                    or shortest[c] != longest[c]
                    or shortest[other] != longest[other]
                    or 2 * sum(sizes) > MOST_EXACT_TICKS
                ):
                    continue
                if sizes not in tables:
                    tables[sizes] = _room(*sizes, least)
                room, step = tables[sizes]
                _tighten(
                    candidates.class_start[c], candidates.class_stop[c], candidates.class_start[other],
                    candidates.class_stop[other], candidates.lower, event, 1 - sizes[1], step, room, likely,
                )  # fmt: skip
    return likely
