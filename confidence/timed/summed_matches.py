"""Ranges and confidences of many matches with bounds on any differences, and with forbidden events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import plain_checkpoint
from confidence.gaps.describing import ALL, COSTLY, PAUSED, SPACE
from confidence.kernel import kernel
from confidence.timed.forbidden_tables import forbid
from confidence.timed.tables import (
    BUDGET,
    COUNT,
    FULL,
    LATER,
    LEFT,
    MOST,
    NEXT,
    PRICE,
    SPENT,
    TIGHT,
    TOO_MANY,
    clear,
    table_over,
)
from confidence.timed.time_laws import law_of

__all__ = ["SummedTimes", "describe_summed", "tighten_all"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class SummedTimes(NamedTuple):
    """The times of k matches of l events each, and bounds on their differences.

    Attributes
    ----------
    first, last : (k, l) int64
        Ticks, inclusive.
    size : (k, l) float64
        How many ticks each event has, of which these are a part; 0 for explicit probabilities.
    offset : (k, l) int64
        Where the probability of tick 0 would be, for explicit ones.
    sides : (e, 2) int64
        Two times.
    low, high : (k, e) int64, or (1, e) if they are the same for all
        Bounds of the first less the second.
    ends : (2, l) bool
        Which times can be the first of the match, and which the last.
    """

    first: Int64
    last: Int64
    size: Float64
    offset: Int64
    sides: Int64
    low: Int64
    high: Int64
    ends: NDArray[np.bool_]

    def some(self, which: Int64) -> SummedTimes:
        """Return the times of some matches, (m,), each as often as it is named."""
        low, high = (bound if len(bound) == 1 else bound[which] for bound in (self.low, self.high))
        return SummedTimes(
            self.first[which], self.last[which], self.size[which], self.offset[which], self.sides, low, high,
            self.ends,
        )  # fmt: skip


@kernel
def _tighten(a, b, sides, low, high):
    """Tighten the ticks of one match; return whether some are left."""
    length = a.shape[0]
    for e in range(sides.shape[0]):
        if low[e] > high[e] or (sides[e, 0] == sides[e, 1] and (low[e] > 0 or high[e] < 0)):
            return False
    for j in range(length):
        if a[j] > b[j]:
            return False
    # Nothing overflows: the ticks are within those given as long as some are left. Forwards and backwards in
    # turns, two passes settle a chain of any length.
    count = sides.shape[0]
    for turn in range(length + 2):
        changed = False
        for k in range(count):
            e = k if turn % 2 == 0 else count - 1 - k
            i, j = sides[e, 0], sides[e, 1]
            if i == j:
                continue
            if a[j] + low[e] > a[i]:
                a[i] = a[j] + low[e]
                changed = True
            if b[j] + high[e] < b[i]:
                b[i] = b[j] + high[e]
                changed = True
            if a[i] > b[i]:
                return False
            if a[i] - high[e] > a[j]:
                a[j] = a[i] - high[e]
                changed = True
            if b[i] - low[e] < b[j]:
                b[j] = b[i] - low[e]
                changed = True
            if a[j] > b[j]:
                return False
        if not changed:
            return True
    return False


@kernel
def tighten_all(times):
    """Write the ticks of each event in the worlds that meet all bounds; 1 and 0 for the first if none does.

    Parameters
    ----------
    times : SummedTimes
        Their ``first`` and ``last`` are overwritten.

    Notes
    -----
    As :func:`confidence.timed.bounds.tightened`. O(l * bounds) a match.
    """
    for n in range(times.first.shape[0]):
        plain_checkpoint()
        m = min(n, times.low.shape[0] - 1)
        if not _tighten(times.first[n], times.last[n], times.sides, times.low[m], times.high[m]):
            times.first[n, 0], times.last[n, 0] = 1, 0


@kernel
def _weigh_times(times, n, values, tables):
    """Add the probability of each time of a match; return whether all are uniform, and FULL or TOO_MANY."""
    axes = tables.axes[0]
    uniform = True
    for v in range(times.first.shape[1]):
        axes[0] = v
        table = table_over(tables, axes, 1 if tables.size[v] > 1 else 0)
        if table < 0:
            return uniform, table
        at = tables.start[table]
        for k in range(tables.size[v]):
            if times.size[n, v] > 0.0:
                tables.cells[at + k] *= 1.0 / times.size[n, v]
            else:
                tables.cells[at + k] *= values[times.offset[n, v] + times.first[n, v] + k]
        uniform = uniform and times.size[n, v] > 0.0
    return uniform, 0


@kernel
def _bound_differences(times, n, tables):
    """Add the bounds of differences that can be without; return 0, FULL or TOO_MANY."""
    axes = tables.axes[0]
    size = tables.size
    m = min(n, times.low.shape[0] - 1)
    for e in range(times.sides.shape[0]):
        i, j = times.sides[e, 0], times.sides[e, 1]
        low, high = times.low[m, e], times.high[m, e]
        if i > j:
            i, j = j, i
            low, high = -high, -low
        least = times.first[n, i] - times.last[n, j]
        most = times.last[n, i] - times.first[n, j]
        if i == j or (least >= low and most <= high):
            continue
        axes[0], axes[1] = i, j
        table = table_over(tables, axes, 2)
        if table < 0:
            return table
        for s in range(size[i]):
            plain_checkpoint()
            # The ticks of j from the first whose difference is small enough to the last.
            at = times.first[n, i] + s - times.first[n, j]
            begin, stop = min(max(at - high, 0), size[j]), max(min(at - low, size[j] - 1), -1)
            row = tables.start[table] + s * size[j]
            for t in range(begin):
                tables.cells[row + t] = 0.0
            for t in range(stop + 1, size[j]):
                tables.cells[row + t] = 0.0
    return 0


@kernel
def _laid_out(times, n, others, pmfs, tables, spans, first):
    """Lay out the tables of a match; return whether all its ticks are possible, and 0 or what it lacks.

    That is FULL or TOO_MANY, or LATER if the budget of the call is spent: the next call goes on.
    """
    length = times.first.shape[1]
    used = tables.used
    status = 0
    if used[NEXT] < 0:
        clear(tables, length)
        for v in range(length):
            first[v] = times.first[n, v]
            tables.size[v] = times.last[n, v] - first[v] + 1
        is_tight, status = _weigh_times(times, n, pmfs.values, tables)
        if status == 0:
            status = _bound_differences(times, n, tables)
        used[NEXT], used[TIGHT] = others.start[n], is_tight
    while status >= 0 and used[NEXT] < others.start[n + 1]:
        status = forbid(tables, first, others, used[NEXT], pmfs, spans)
        if status == LATER:
            return False, LATER
        if status != 0:
            used[TIGHT] = 0
        used[NEXT] += 1
    used[NEXT] = -1
    return used[TIGHT] > 0, min(status, 0)


@kernel
def _summed(times, n, is_tight, tables, law):
    """Return first and last tick and confidence of a match whose tables are laid out, and a status."""
    confidence = -1.0
    earliest, latest = 0, -1
    for v in range(times.first.shape[1]):
        is_first, is_last = times.ends[0, v], times.ends[1, v]
        if (is_first and confidence < 0.0) or (not is_tight and (is_first or is_last)):
            status = law_of(tables, v, law)
            if status < 0:
                return 0, -1, 0.0, status
            total = 0.0
            begin, stop = -1, -1
            for k in range(tables.size[v]):
                total += law[k]
                if law[k] > 0.0:
                    begin = k if begin < 0 else begin
                    stop = k
            if confidence < 0.0:
                confidence = total
                earliest, latest = times.last[n, v], times.first[n, v]
            if not total > 0.0:
                return 0, -1, 0.0, 0
            if is_first:
                earliest = min(earliest, times.first[n, v] + begin)
            if is_last:
                latest = max(latest, times.first[n, v] + stop)
    return earliest, latest, min(confidence, 1.0), 0


@kernel
def describe_summed(times, others, pmfs, begin, wanted, limits, budget, tables, spans, first, law, out):
    """Fill range and confidence of matches, from one on.

    Parameters
    ----------
    times : SummedTimes
        Tight.
    others : confidence.timed.forbidden_tables.Others
    pmfs : confidence.chain.distribution.Pmfs
    begin : int64
        The match to begin with.
    wanted : bool
        Whether a confidence is needed where no event is in the way.
    limits : (2,) float64
        Most cells of tables to go through for one match, and at once.
    budget : float64
        How many cells to go through before coming back. If that is between two events that are forbidden,
        or two rows of the table of one, the next call goes on there.
    tables : confidence.timed.tables.Tables
    spans : confidence.timed.forbidden_tables.Spans
    first : (v,) int64, law : (u,) float64
        Work arrays.
    out : tuple of (k,) int64 twice and (k,) float64
        Overwritten; the range is empty where the confidence is 0.

    Returns
    -------
    done : int64
        Matches done.
    reason : int64
        ALL, SPACE if there is no room for the cells of match ``done``, COSTLY if these are too many, PAUSED.
    need : float64
        The cells.
    """
    out_lower, out_upper, out_confidence = out
    tables.limits[SPENT], tables.limits[BUDGET] = 0.0, budget
    for n in range(begin, times.first.shape[0]):
        if tables.limits[SPENT] > budget:
            return n, PAUSED, 0.0
        out_lower[n], out_upper[n], out_confidence[n] = 0, -1, 0.0
        if times.first[n, 0] > times.last[n, 0]:
            continue
        if tables.used[NEXT] < 0:
            tables.limits[LEFT], tables.limits[MOST] = limits[0], limits[1]
        is_tight, status = _laid_out(times, n, others, pmfs, tables, spans, first)
        if status == LATER:
            return n, PAUSED, 0.0
        lower, upper, confidence = 0, -1, 0.0
        if status == 0 and (wanted or not is_tight):
            lower, upper, confidence, status = _summed(times, n, is_tight, tables, law)
        if status == FULL:
            return n, SPACE, tables.limits[PRICE]
        if status == TOO_MANY:
            return n, COSTLY, tables.limits[PRICE]
        if is_tight and (confidence > 0.0 or not wanted):
            lower, upper = times.last[n, 0], times.first[n, 0]
            for v in range(times.first.shape[1]):
                if times.ends[0, v]:
                    lower = min(lower, times.first[n, v])
                if times.ends[1, v]:
                    upper = max(upper, times.last[n, v])
        out_lower[n], out_upper[n], out_confidence[n] = lower, upper, confidence
        tables.limits[SPENT] += limits[0] - tables.limits[LEFT] + 16.0 * float(tables.used[COUNT])
    return times.first.shape[0], ALL, 0.0
