"""Confidence of a match by going through the times of its events one by one, whatever its order and gaps."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.arrays import largest, smallest
from confidence.budget import multiplications_per_call
from confidence.chain.distribution import at_least, at_most, exactly
from confidence.gaps.chains import BUDGET, DONE, IMPOSSIBLE, PAUSED, SPENT, TOO_DEAR
from confidence.kernel import kernel

__all__ = [
    "AT",
    "BEGUN",
    "BETWEEN",
    "FIRST",
    "LAST",
    "LEADING",
    "TOTAL",
    "TRAILING",
    "OrderWork",
    "confidence_by_times",
]

LEADING: Final = 0
BETWEEN: Final = 1
TRAILING: Final = 2

BEGUN: Final = 0
AT: Final = 1
FIRST: Final = 2
LAST: Final = 3

TOTAL: Final = 2


class OrderWork(NamedTuple):
    """The state of an unfinished confidence of a match of at most n events.

    Attributes
    ----------
    progress : (3,) float64
        The multiplications of this call, and after how many it comes back to Python; the sum so far.
    at : (4,) int64
        Whether a sum is begun, where it goes on, and its first and last time so far.
    times : (2, n) int64, weight : (n + 1,) float64
        The times in question, the latest to try, and the probability of those up to each.
    """

    progress: NDArray[np.float64]
    at: NDArray[np.int64]
    times: NDArray[np.int64]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, events: int) -> OrderWork:
        """Return the state for matches of so many events."""
        return cls(
            np.zeros(3), np.zeros(4, dtype=np.int64), np.zeros((2, events), dtype=np.int64),
            np.zeros(events + 1),
        )  # fmt: skip

    def go_on(self) -> OrderWork:
        """Return the same with the budget of another call of a kernel."""
        self.progress[SPENT], self.progress[BUDGET] = 0.0, multiplications_per_call()
        return self


@kernel
def _close(t, window, order, inside):
    """Write the first and the last tick inside each gap of a match with times t."""
    gap_place, gap_after, gap_before = order.gap_place, order.gap_after, order.gap_before
    for g in range(gap_place.shape[0]):
        if gap_place[g] == LEADING:
            inside[g, 0] = largest(t) - window + 1
            inside[g, 1] = smallest(t) - 1
        elif gap_place[g] == TRAILING:
            inside[g, 0] = largest(t) + 1
            inside[g, 1] = smallest(t) + window - 1
        else:
            inside[g, 0] = smallest(t)
            inside[g, 1] = largest(t)
            for j in range(t.shape[0]):
                if gap_after[g] >> j & 1:
                    inside[g, 0] = max(inside[g, 0], t[j] + 1)
                if gap_before[g] >> j & 1:
                    inside[g, 1] = min(inside[g, 1], t[j] - 1)


@kernel
def _outside(low, high, offset, pmfs, forbidden, inside):
    """Return P(an event lies in none of the gaps that forbid it); gaps may overlap."""
    several = 0
    first = high + 1
    last = high
    for g in range(inside.shape[0]):
        if forbidden[g] and inside[g, 0] <= inside[g, 1]:
            several += 1
            first = inside[g, 0]
            last = inside[g, 1]
    if several == 0:
        return 1.0
    if several == 1:
        free = at_most(low, high, offset, pmfs.head, first - 1)
        return free + at_least(low, high, offset, pmfs.tail, last + 1)
    # What did not happen is before everything.
    total = at_most(low, high, offset, pmfs.head, low - 1)
    for t in range(low, high + 1):
        free = True
        for g in range(inside.shape[0]):
            free = free and not (forbidden[g] and inside[g, 0] <= t <= inside[g, 1])
        if free:
            total += exactly(low, high, offset, pmfs.values, t)
    return total


@kernel(allocates=True)
def confidence_by_times(match, pmfs, window, order, a, b, others, forbidden, most_steps, work):
    """Return the confidence as ``order_confidence`` does, by trying every choice of times. O(U^n k).

    Parameters
    ----------
    match, pmfs, window, order, forbidden, most_steps, work
        As there.
    a, b : (n,) int64
        Tight bounds.
    others : (k,) int64
        Which other events to look at.
    """
    count = a.shape[0]
    each = float(count)
    for k in range(others.shape[0]):
        each += float(forbidden.upper[others[k]] - forbidden.lower[others[k]] + 1)
    steps = each
    for j in range(count):
        steps *= float(b[j] - a[j] + 1)
    if steps > most_steps:
        return TOO_DEAR, steps, 0, -1
    progress, at, t, latest, weight = work.progress, work.at, work.times[0], work.times[1], work.weight
    inside = np.empty((order.gap_place.shape[0], 2), np.int64)
    if at[BEGUN] == 0:
        at[BEGUN], at[AT], at[FIRST], at[LAST] = 1, 0, largest(b) + 1, smallest(a) - 1
        progress[TOTAL] = 0.0
        weight[0] = 1.0
        t[0] = a[0] - 1
        latest[0] = b[0]
    j = at[AT]
    while j >= 0:
        t[j] += 1
        if t[j] > latest[j]:
            j -= 1
            continue
        progress[SPENT] += 1.0
        weight[j + 1] = weight[j] * exactly(
            match.lower[j], match.upper[j], match.offset[j], pmfs.values, t[j]
        )
        if weight[j + 1] > 0.0 and j + 1 < count:
            j += 1
            earliest = a[j]
            latest[j] = b[j]
            for i in range(j):
                earliest = max(earliest, t[i] - window + 1)
                latest[j] = min(latest[j], t[i] + window - 1)
                if order.before[j] >> i & 1:
                    earliest = max(earliest, t[i] + 1)
            t[j] = earliest - 1
        elif weight[j + 1] > 0.0:
            progress[SPENT] += each
            _close(t[:count], window, order, inside)
            mass = weight[count]
            for k in range(others.shape[0]):
                x = others[k]
                mass *= _outside(
                    forbidden.lower[x], forbidden.upper[x], forbidden.offset[x], pmfs, forbidden.gaps[x],
                    inside,
                )  # fmt: skip
            if mass > 0.0:
                progress[TOTAL] += mass
                at[FIRST] = min(at[FIRST], smallest(t[:count]))
                at[LAST] = max(at[LAST], largest(t[:count]))
        if progress[SPENT] >= progress[BUDGET]:
            at[AT] = j
            return PAUSED, 0.0, 0, -1
    at[BEGUN] = 0
    if not progress[TOTAL] > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(progress[TOTAL], 1.0), at[FIRST], at[LAST]
