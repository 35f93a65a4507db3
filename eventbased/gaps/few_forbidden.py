"""Confidences under skip till next match where few events are forbidden: signed sums of chains side by side.

With a set X of forbidden events, each of one gap, and those of one gap surely one behind the other,

    confidence = sum over subsets S of X of (-1)^|S| P(the match, and every x of S strictly inside its gap),

and what stands in the sum is a chain of uniform times again, in which the events of S stand between those of
the match. Sums that cancel are left to :mod:`eventbased.gaps.next_match`, as are events that several gaps
forbid.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.chain.side_by_side import CHAINS, Chains, fill_confidences, new_chains
from confidence.chain.uniform import tight_bounds
from confidence.config import WORST_CANCELLATION
from confidence.kernel import kernel
from eventbased.galloping import first_above
from eventbased.gaps.survival_tables import Classes

__all__ = ["FewForbidden"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

MOST: Final = 2
"""Forbidden events of one gap: three in each of two gaps are 64 chains of up to nine events."""

LONGEST: Final = 8
"""Events of a chain, see :mod:`confidence.chain.side_by_side`."""

OTHERWISE: Final = -1
IMPOSSIBLE: Final = -2


@kernel(allocates=True)
def _find(length, w, lower, upper, rows, classes, events, kind, out_lower, out_upper):
    """Find the forbidden events that can come into each gap, and the tight time range.

    Parameters
    ----------
    length : int64
        l.
    w : int64
        ``W - l``.
    lower, upper : (n,) int64
        Bounds minus position.
    rows : (n,) int64
        The event of each candidate.
    classes : Classes
    events : (l + l MOST, m) int64
        The candidates of each match; behind them, overwritten, MOST for each gap: those found, in order.
    kind : (m,) int64
        Overwritten: how many there are, those of gap j times ``(MOST + 1)^j``; IMPOSSIBLE, or OTHERWISE if
        this is not the way to a match's confidence.
    out_lower, out_upper : (m,) int64
        Overwritten where it is.
    """
    bounds = np.empty((6, length), np.int64)
    low, high, a, b, first, last = bounds[0], bounds[1], bounds[2], bounds[3], bounds[4], bounds[5]
    for n in range(events.shape[1]):
        for j in range(length):
            first[j] = low[j] = lower[events[j, n]]
            last[j] = high[j] = upper[events[j, n]]
        kind[n] = 0
        total = length
        factor = 1
        tight_bounds(low, high, w, a, b)
        for j in range(1, length):
            at = length + j * MOST
            kept = 0
            factor *= MOST + 1
            # Of the gap, in the coordinates of component j.
            earliest, latest = a[j - 1] - 1, b[j]
            for c in range(classes.first[j], classes.first[j + 1]):
                start, stop = classes.start[c], classes.stop[c]
                x = first_above(lower, start, stop, earliest - classes.longest[c], events[j, n])
                while x < stop and lower[x] < latest and kind[n] >= 0:
                    free = upper[x] > earliest
                    for k in range(length):
                        free = free and rows[x] != rows[events[k, n]]
                    if free and lower[x] > high[j - 1] - 1 and upper[x] < low[j]:
                        kind[n] = IMPOSSIBLE
                    elif free:
                        total += 1
                        alone = kept == 0 or upper[events[at + kept - 1, n]] < lower[x]
                        for g in range(1, j):
                            for k in range(kind[n] // (MOST + 1) ** g % (MOST + 1)):
                                alone = alone and rows[events[length + g * MOST + k, n]] != rows[x]
                        if kept == MOST or total > LONGEST or not alone:
                            kind[n] = OTHERWISE
                            break
                        events[at + kept, n] = x
                        kept += 1
                        kind[n] += factor
                        if upper[x] < low[j]:
                            # It has to come before the gap, or at its beginning.
                            first[j - 1] = max(first[j - 1], lower[x] + 1)
                        elif lower[x] > high[j - 1] - 1:
                            last[j] = min(last[j], upper[x])
                    x += 1
            if kind[n] < 0:
                break
        if kind[n] >= 0 and not tight_bounds(first, last, w, a, b):
            kind[n] = IMPOSSIBLE
        if kind[n] == IMPOSSIBLE:
            out_lower[n], out_upper[n] = 0, -1
            continue
        # The range is that of order and window if no event has to be in a gap at its ends.
        remainder = kind[n]
        for j in range(1, length):
            remainder //= MOST + 1
            for k in range(remainder % (MOST + 1) if kind[n] >= 0 else 0):
                x = events[length + j * MOST + k, n]
                at_first = lower[x] <= a[j - 1] - 1 or upper[x] >= a[j]
                at_last = lower[x] <= b[j - 1] - 1 or upper[x] >= b[j]
                if not (at_first and at_last):
                    kind[n] = OTHERWISE
        if kind[n] >= 0:
            out_lower[n], out_upper[n] = a[0], b[length - 1] + length - 1


@kernel
def _side_by_side(events, chain, which, begin, lower, upper, chains):
    """Write the bounds of chains from ``begin`` on; return of how many.

    ``chain``, (2, k) int64, are the rows of ``events`` to take and their components, ``which`` the columns.
    """
    bounds, place = chains.bounds, chains.place
    size = min(which.shape[0] - begin, CHAINS)
    for p in range(chain.shape[1]):
        row, shift = chain[0, p], chain[1, p] - p
        for n in range(size):
            i = events[row, which[begin + n]]
            base = lower[events[0, which[begin + n]]]
            bounds[2 * p, n] = float(lower[i] + shift - base)
            bounds[2 * p + 1, n] = float(upper[i] + shift - base)
    for n in range(size):
        place[n] = begin + n
    return size


class FewForbidden:
    """Confidences of matches of one layout, all of whose candidates are forbidden before their component.

    Parameters
    ----------
    length : int
        Components of the pattern.
    w : int
        ``W - length``.
    lower, upper : (n,) int64
        Bounds minus position of the candidates, all of uniform intervals.
    rows : (n,) int64
        The event of each candidate.
    classes : Classes
    """

    def __init__(
        self, length: int, w: int, lower: Int64, upper: Int64, rows: Int64, classes: Classes
    ) -> None:
        self._length, self._w = length, w
        self._events = lower, upper, rows
        self._classes = classes
        self._chains: dict[int, Chains | None] = {}

    def describe(self, matches: Int64, lower: Int64, upper: Int64, confidence: Float64) -> NDArray[np.bool_]:
        """Fill ranges and confidences of some matches, (l, m) int64; return of which, (m,) bool.

        A match that cannot happen gets an empty range.
        """
        length, count = matches.shape
        events = np.empty((length * (1 + MOST), count), dtype=np.int64)
        events[:length] = matches
        kinds = np.empty(count, dtype=np.int64)
        find: Any = _find
        find(length, self._w, *self._events, self._classes, events, kinds, lower, upper)
        confidence[kinds == IMPOSSIBLE] = 0.0
        for kind in np.flatnonzero(np.bincount(kinds[kinds >= 0])).tolist():
            which = np.flatnonzero(kinds == kind)
            held = [kind // (MOST + 1) ** j % (MOST + 1) for j in range(length)]
            forbidden = [(length + j * MOST + k, j) for j in range(length) for k in range(held[j])]
            own = [(j, j) for j in range(length)]
            value, magnitude = np.zeros((2, len(which)))
            for size in range(len(forbidden) + 1):
                for inside in combinations(forbidden, size):
                    # The events of a gap stand before the one behind it.
                    chain = sorted((*own, *inside), key=lambda one: (one[1], one[0] < length, one[0]))
                    term = self._confidences(events, chain, which)
                    value += -term if size % 2 else term
                    magnitude += term
            confidence[which] = value
            # NaN compares as false.
            kinds[which[~(value * WORST_CANCELLATION >= magnitude)]] = OTHERWISE
        return np.not_equal(kinds, OTHERWISE)

    def _confidences(self, events: Int64, chain: list[tuple[int, int]], which: Int64) -> Float64:
        """Return the confidences of chains of rows of events and their components, for some columns."""
        length, w = len(chain), self._w + self._length - len(chain)
        out = np.full(len(which), 0.0 if w < 0 else np.nan)
        if w < 0:
            return out
        if length not in self._chains:
            self._chains[length] = new_chains(length, w)
        chains = self._chains[length]
        if chains is None:
            return out
        side_by_side: Any = _side_by_side
        rows = np.array(chain).T.copy()
        for begin in range(0, len(which), CHAINS):
            size = side_by_side(events, rows, which, begin, *self._events[:2], chains)
            fill_confidences(chains, size, w, out)
        return out
