"""Survival tables of pools: the probability that no event of a negated component comes between two times.

Where the conditions of a negation speak of no event of the match, what may come between the times s and t
does not depend on the match. The probability that none of a group of a pool comes in between,

    S(s, t) = prod over the events x of P(not s < x < t),

is kept in rows, one for each s, and shared by all matches (for Eq. 2-3 of Zhang, Diao, Immerman, PVLDB 3(1),
2010). A match divides out the events of the group that it holds itself: x_k is at most at the first time of
the gap where it comes before it, and at least at the second where it comes behind, so that its factor is
positive wherever the match can be.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.distribution import at_least, at_most
from confidence.gaps.chains import BUDGET, SPENT, lay_out
from confidence.kernel import POSITIVE, kernel
from eventbased.config import MOST_SPREAD, TABLE_CELLS
from eventbased.galloping import first_above
from eventbased.gaps.survival_tables import weigh_by

__all__ = ["NO_TABLES", "PoolTables", "new_pool_tables", "tabled_edges"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

ASKED: Final = 0
BEGUN: Final = 1

_TABLES_TRIED: Final = 4096
"""Rows of tables that are asked for until it is known whether they pay."""

_USES_OF_A_ROW: Final = 4
"""Matches that have to ask for a row of a table, on average, for tables to pay."""


class PoolTables(NamedTuple):
    """Rows of k ticks each, both powers of two; without any, tables are not used.

    Attributes
    ----------
    key : (r, 3) int64
        The group and the time s that each row is for, and the last time t it is filled for; -1 if none.
    free : (r, k) float64
        S(s, s + 1), S(s, s + 2), ...
    uses : (2,) int64
        How many rows were asked for, and how many of them begun.
    """

    key: Int64
    free: Float64
    uses: Int64


NO_TABLES: Final = PoolTables(np.empty((0, 3), np.int64), np.empty((0, 1)), np.zeros(2, np.int64))


def new_pool_tables(window: int) -> PoolTables:
    """Return empty tables for matches within W ticks: O(TABLE_CELLS + W^2) memory, W up to MOST_SPREAD."""
    spread = 1 << (min(window, MOST_SPREAD) - 1).bit_length()
    rows = max(2 * spread, TABLE_CELLS // spread)
    checkpoint(8 * rows * spread)
    return PoolTables(np.full((rows, 3), -1), np.empty((rows, spread)), np.zeros(2, np.int64))


@kernel
def _fill(row, g, s, begin, until, pools, pmfs, tables):
    """Fill a row from one time to another; return the multiplications. O(x (until - begin))."""
    steps = 0
    free = tables.free[row]
    for t in range(begin - s - 1, until - s):
        free[t] = 1.0
    start, stop = pools.group_start[g], pools.group_start[g + 1]
    x = first_above(pools.highest, start, stop, s, start)
    while x < stop and pools.lower[x] < until:
        low, high = pools.lower[x], pools.upper[x]
        if high > s:
            steps += max(until - max(begin, low + 1) + 1, 0)
            until = weigh_by(free, s, begin, until, low, high, pools.offset[x], pmfs)
        x += 1
    return steps


@kernel
def _divide_out(edge, at, ticks, low, high, offset, pmfs):
    """Divide the edges of a gap by P(an event is not strictly inside), where that is positive. O(U^2)."""
    a, b, a_next, b_next = ticks
    width = b_next - a_next + 1
    scale = 1.0 / float(high - low + 1)
    for s in range(a, min(b, high - 1) + 1):
        place = at + (s - a) * width - a_next
        for t in range(max(a_next, s + 1, low + 1), b_next + 1):
            if offset < 0:
                outside = float(max(s, low - 1) - low + 1 + max(high - t + 1, 0)) * scale
            else:
                outside = at_most(low, high, offset, pmfs.head, s) + at_least(low, high, offset, pmfs.tail, t)
            if outside > 0.0:
                edge[place + t] /= outside


@kernel
def _free(edge, at, ticks):
    """Set the edges of a gap that forbids nothing."""
    a, b, a_next, b_next = ticks
    width = b_next - a_next + 1
    for s in range(a, min(b, b_next - 1) + 1):
        begin = max(a_next, s + 1)
        place = (at + (s - a) * width + begin - a_next) & POSITIVE
        for i in range(b_next - begin + 1):
            edge[(place + i) & POSITIVE] = 1.0


@kernel
def _survive(edge, at, ticks, pools, pool, first, mark, pmfs, tables):
    """Set the edges of a gap to P(no event of a pool but the match's own lies strictly inside).

    Return the multiplications for rows that were not filled so far; O(U^2) besides.

    Parameters
    ----------
    edge : (e,) float64
        From ``at`` on, for each tick from a to b one weight for each from c to d; changed where the second
        tick is the later one.
    at : int64
    ticks : tuple of 4 int64
        a, b, c, d, inclusive; ``d - a``, or the window, is no more than the tables' row length.
    pools : ForbiddenEvents
    pool, first : int64
        The pool, and the first candidate of the match.
    mark : (rows,) int64
        The number of rows for an event of the match.
    pmfs : Pmfs
    tables : PoolTables
    """
    a, b, a_next, b_next = ticks
    key, free = tables.key, tables.free
    width = b_next - a_next + 1
    group = pools.group_of[pool, first]
    if group < 0:
        _free(edge, at, ticks)
        return 0
    g = pools.pool_start[pool] + group
    steps = 0
    for s in range(a, min(b, b_next - 1) + 1):
        place = at + (s - a) * width - a_next
        row = (s + 40503 * g) & (key.shape[0] - 1)
        tables.uses[ASKED] += 1
        if key[row, 0] != g or key[row, 1] != s:
            tables.uses[BEGUN] += 1
            key[row, 0] = g
            key[row, 1] = key[row, 2] = s
        # What lies further apart is not within the window.
        until = min(b_next, s + free.shape[1])
        if key[row, 2] < until:
            steps += _fill(row, g, s, key[row, 2] + 1, until, pools, pmfs, tables)
            key[row, 2] = until
        begin = max(a_next, s + 1)
        # Without a sign the compiler sees vectors.
        to, source = (place + begin) & POSITIVE, (begin - s - 1) & POSITIVE
        for i in range(until - begin + 1):
            edge[(to + i) & POSITIVE] = free[row, (source + i) & POSITIVE]
        for t in range(max(begin, until + 1), b_next + 1):
            edge[place + t] = 0.0
    start, stop = pools.group_start[g], pools.group_start[g + 1]
    x = first_above(pools.highest, start, stop, a, start)
    while x < stop and pools.lower[x] < b_next:
        if mark[pools.row[x]] == mark.shape[0]:
            _divide_out(edge, at, ticks, pools.lower[x], pools.upper[x], pools.offset[x], pmfs)
        x += 1
    return steps


@kernel
def tabled_edges(tight, window, listed, forbidden, pools, rules, first, start, mark, pmfs, tables, work):
    """Fill ``work.edge`` for a match from tables; return whether that is all that forbids it.

    Not where an event is forbidden before the match or behind it, or in two of its gaps; where the match
    reaches over more ticks than tables hold, or the work arrays are too small; nor where one match might take
    more than the budget of a call, or rows of tables are used too seldom.

    Parameters
    ----------
    tight : (2, l) int64
        The first and last tick of each event, as order and window leave them.
    window : int64
    listed : int64
        The number of events that are forbidden.
    forbidden : confidence.gaps.chains.Forbidden
        Theirs.
    pools : ForbiddenEvents
    rules : GapRules
        Of negations between events alone, at most one in each gap.
    first : int64
        The first candidate of the match.
    start : (components,) int64
        The place of the first event of each component.
    mark : (rows,) int64
        See :class:`eventbased.gaps.gap_events.Gathered`.
    pmfs : Pmfs
    tables : PoolTables
    work : Workspace
    """
    length = tight.shape[1]
    uses = tables.uses
    if uses[ASKED] >= _TABLES_TRIED and uses[BEGUN] * _USES_OF_A_ROW > uses[ASKED]:
        return False
    for x in range(listed):
        gaps = 0
        for g in range(length + 1):
            gaps += forbidden.gaps[x, g]
        if gaps != 1 or forbidden.gaps[x, 0] or forbidden.gaps[x, length]:
            return False
    for j in range(length):
        work.bounds[0, j] = tight[0, j]
        work.bounds[1, j] = tight[1, j]
    edges, ticks, _ = lay_out(work.bounds, length, window)
    if edges > work.edge.shape[0] or ticks > work.node.shape[1]:
        return False
    if float(edges) * float(listed) > work.progress[BUDGET]:
        return False
    for k in range(rules.negated.shape[0]):
        g = start[rules.after[k]]
        if tight[1, g] - tight[0, g - 1] > tables.free.shape[1] < window:
            return False
    for g in range(1, length):
        at = work.bounds[2, g]
        ticks = (tight[0, g - 1], tight[1, g - 1], tight[0, g], tight[1, g])
        negated = -1
        for k in range(rules.negated.shape[0]):
            if start[rules.after[k]] == g:
                negated = k
        if negated >= 0:
            work.progress[SPENT] += float(
                _survive(work.edge, at, ticks, pools, rules.negated[negated], first, mark, pmfs, tables)
            )
        else:
            _free(work.edge, at, ticks)
    return True
