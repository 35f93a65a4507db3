"""Survival tables: the probability that no candidate of a component comes between two times.

Where the predicates of a component speak of no other one, what it could have taken between the times s and t
does not depend on the match. The probability that none of it came in between,

    S(s, t) = prod over the candidates x of P(not s < x < t),

is kept in rows, one for each s, filled as far as some match has asked, and shared by all matches of the
partition (for Eq. 2-3 of Zhang, Diao, Immerman, PVLDB 3(1), 2010). A match divides its own event out: its
factor is positive wherever the event itself can be at t. Candidates that other components can take too are
left to each match, as it may hold them, and as they may couple its gaps.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.distribution import at_least, at_most
from confidence.kernel import kernel
from eventbased.config import TABLE_CELLS
from eventbased.galloping import first_above

__all__ = ["Classes", "SurvivalTables", "crowded", "new_tables", "survive", "weigh_by"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_CROWDED: Final = 4.0
"""Candidates of a component around one tick, on average, from which on tables pay."""


class Classes(NamedTuple):
    """Candidates by component and partition, and in classes of similar length within those.

    Attributes
    ----------
    first : (partitions * l + 1,) int64
        Classes of component j in partition g: ``first[g * l + j] .. first[g * l + j + 1] - 1``.
    start, stop, longest : (c,) int64
        The candidates of a class, ascending by their lower bounds, and its largest ``upper - lower``.
    """

    first: Int64
    start: Int64
    stop: Int64
    longest: Int64


class SurvivalTables(NamedTuple):
    """Rows for l components, r for each, of k ticks each; r a power of two.

    Attributes
    ----------
    key : (l, r, 3) int64
        The partition and the time s that each row is for, and the last time t it is filled for; -1 if none.
    free : (l, r, k) float64
        S(s, s + 1), S(s, s + 2), ...
    """

    key: Int64
    free: Float64


def new_tables(length: int, spread: int) -> SurvivalTables:
    """Return empty tables.

    Parameters
    ----------
    length : int
        Components of the pattern.
    spread : int
        Most ticks from s to t, a power of two; O(l (TABLE_CELLS + spread^2)) memory.
    """
    rows = max(2 * spread, TABLE_CELLS // spread)
    return SurvivalTables(np.full((length, rows, 3), -1, dtype=np.int64), np.empty((length, rows, spread)))


@kernel
def crowded(classes, length, lower, upper):
    """Return whether candidates of some component but the first lie so close that matches share gaps. O(n).

    Parameters
    ----------
    classes : Classes
    length : int64
        Components of the pattern.
    lower, upper : (n,) int64
        Of the candidates, ticks.
    """
    for of_component in range(classes.first.shape[0] - 1):
        if of_component % length == 0:
            continue
        covered, begin, end = 0.0, 0, 0
        for c in range(classes.first[of_component], classes.first[of_component + 1]):
            for x in range(classes.start[c], classes.stop[c]):
                begin = lower[x] if covered == 0.0 else min(begin, lower[x])
                end = upper[x] if covered == 0.0 else max(end, upper[x])
                covered += float(upper[x] - lower[x] + 1)
        if covered > 0.0 and covered >= _CROWDED * float(end - begin + 1):
            return True
    return False


@kernel
def _weigh_row(weight, at, s, begin, end, low, high, offset, pmfs):
    """Multiply the weights of ``begin <= t <= end``, from ``at + begin`` on, by P(x not between s and t)."""
    if offset < 0:
        scale = 1.0 / float(high - low + 1)
        widest = max(s, low - 1) - low + 2 + high
        for t in range(begin, end + 1):
            weight[at + t] *= float(widest - min(t, high + 1)) * scale
    else:
        for t in range(begin, end + 1):
            weight[at + t] *= at_most(low, high, offset, pmfs.head, s) + at_least(
                low, high, offset, pmfs.tail, t
            )


@kernel
def weigh_by(free, s, begin, until, low, high, offset, pmfs):
    """Weigh a row for s, from ``begin`` to ``until``, by an event; return until when others have to weigh it.

    From the tick on where the event is surely in between, the row is 0.
    """
    _weigh_row(free, -s - 1, s, max(begin, low + 1), until, low, high, offset, pmfs)
    if low <= s or high >= until:
        return until
    sure = max(begin, high + 1)
    for t in range(sure - s - 1, until - s):
        free[t] = 0.0
    return sure - 1


@kernel
def _fill(j, row, partition, s, begin, until, pool, classes, pmfs, tables):
    """Fill a row from one time to another. O(x (until - begin))."""
    free = tables.free[j, row]
    for t in range(begin - s - 1, until - s):
        free[t] = 1.0
    of_component = partition * tables.free.shape[0] + j
    for c in range(classes.first[of_component], classes.first[of_component + 1]):
        start, stop = classes.start[c], classes.stop[c]
        x = first_above(pool.lower, start, stop, s - j - classes.longest[c], start)
        while x < stop and pool.lower[x] + j < until:
            low, high = pool.lower[x] + j, pool.upper[x] + j
            if high > s and not pool.shared[x]:
                until = weigh_by(free, s, begin, until, low, high, pool.pmf_offset[x], pmfs)
            x += 1


@kernel
def survive(edge, at, j, partition, ticks, interval, among, pool, classes, pmfs, tables, inverse):
    """Set the edges of a gap to P(no candidate of its component but the match's own lies strictly inside).

    Parameters
    ----------
    edge : (k,) float64
        From ``at`` on, for each tick from a to b one weight for each from c to d; changed where the second
        tick is the later one.
    at : int64
    j, partition : int64
        The component behind the gap.
    ticks : tuple of 4 int64
        a, b, c, d, inclusive; ``d - a`` is less than the tables' row length.
    interval : tuple of 3 int64
        Interval of the match's event, and where its probabilities start; -1 for uniform.
    among : bool
        Whether it is in the tables.
    pool : EventArrays
    classes : Classes
    pmfs : Pmfs
    tables : SurvivalTables
        Of an earlier call with the same events, or new.
    inverse : (2 k,) float64
        Work array, for rows of k ticks.

    Notes
    -----
    O(U^2), and O(x U) for each time met for the first time, with x candidates around it.
    """
    a, b, a_next, b_next = ticks
    low, high, offset = interval
    key, free = tables.key, tables.free
    width = b_next - a_next + 1
    if among and offset < 0:
        # One over its own factor, by the ticks of its interval that are not in between.
        size = high - low + 1
        fewest = high - b_next + 1
        for k in range(fewest, min(size, high - a_next + 1 + max(b + 1 - low, 0)) + 1):
            inverse[k - fewest] = float(size) / float(k)
    for s in range(a, min(b, b_next - 1) + 1):
        row = (s + 40503 * partition) & (key.shape[1] - 1)
        if key[j, row, 0] != partition or key[j, row, 1] != s:
            key[j, row, 0] = partition
            key[j, row, 1] = key[j, row, 2] = s
        if key[j, row, 2] < b_next:
            _fill(j, row, partition, s, key[j, row, 2] + 1, b_next, pool, classes, pmfs, tables)
            key[j, row, 2] = b_next
        begin = max(a_next, s + 1)
        place = at + (s - a) * width - a_next
        if not among:
            for t in range(begin, b_next + 1):
                edge[place + t] = free[j, row, t - s - 1]
        elif offset < 0:
            outside = b_next + max(s + 1 - low, 0)
            for t in range(begin, b_next + 1):
                edge[place + t] = free[j, row, t - s - 1] * inverse[outside - t]
        else:
            for t in range(begin, b_next + 1):
                outside_own = at_most(low, high, offset, pmfs.head, s) + at_least(
                    low, high, offset, pmfs.tail, t
                )
                edge[place + t] = free[j, row, t - s - 1] / outside_own if outside_own > 0.0 else 0.0
