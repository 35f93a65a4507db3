"""The times of the rows that components can take, gathered in one pass over all rows."""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.kernel import POSITIVE, kernel

__all__ = ["EARLIEST", "IN_ORDER", "LATEST", "LONGEST", "NOTHING", "times_of_rows"]

EARLIEST: Final = 0
LATEST: Final = 1
LONGEST: Final = 2
IN_ORDER: Final = 3
"""Columns of what :func:`times_of_rows` tells."""

NOTHING: Final = (np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0, 1)
"""What is told of no rows."""

_BLOCK: Final = 512
"""Rows whose times stay in the fastest cache while all components take theirs."""


@kernel
def times_of_rows(begin, end, lower, upper, rows, start, following, low, high, times):
    """Gather the times of some rows, component by component, and look at those of all. O(n + m).

    Parameters
    ----------
    begin, end : int64
        The rows that are looked at: ``begin .. end - 1``.
    lower, upper : (n,) int64
        The times of all rows, ticks.
    rows : (m,) int64
        Those that components can take, among these, for each component ascending.
    start : (l + 1,) int64
        Where the rows of each component begin.
    following : (l,) int64
        As ``start`` without its end; overwritten.
    low, high : (m,) int64
        Overwritten: the times of ``rows``.
    times : (l + 1, 4) int64
        :data:`NOTHING` in each row; overwritten, for each component by its earliest ``low``, its latest
        ``high``, its largest ``high - low``, and by 1 or 0, whether ``low`` ascends. The last row is of all
        rows: the earliest ``lower``, the latest ``upper``, 0, and whether each ``upper`` is at or behind its
        ``lower``.

    Notes
    -----
    It is one call, as between two calls a thread waits for the interpreter, and each time is read from memory
    once.
    """
    length = following.shape[0]
    whole_earliest, whole_latest, reversed_ = times[length, EARLIEST], times[length, LATEST], 0
    for first in range(begin, end, _BLOCK):
        stop = min(first + _BLOCK, end)
        for i in range(first, stop):
            i &= POSITIVE
            whole_earliest, whole_latest = min(whole_earliest, lower[i]), max(whole_latest, upper[i])
            reversed_ |= lower[i] > upper[i]
        for j in range(length):
            held = following[j]
            n, last = held, start[j + 1]
            # Of a loop that may end anywhere LLVM makes no vectors: to gather by vectors takes longer.
            while n < last:
                k = n & POSITIVE
                i = rows[k] & POSITIVE
                if i >= stop:
                    break
                low[k], high[k] = lower[i], upper[i]
                n += 1
            following[j] = n
            # Apart from the rest, as LLVM makes vectors of these loops.
            earliest, latest, longest = times[j, EARLIEST], times[j, LATEST], times[j, LONGEST]
            for k in range(held, n):
                k &= POSITIVE
                earliest, latest = min(earliest, low[k]), max(latest, high[k])
                longest = max(longest, high[k] - low[k])
            descends = 0
            for k in range(max(held, start[j] + 1), n):
                k &= POSITIVE
                descends |= low[k] < low[k - 1]
            times[j, EARLIEST], times[j, LATEST], times[j, LONGEST] = earliest, latest, longest
            times[j, IN_ORDER] &= descends ^ 1
    times[length, EARLIEST], times[length, LATEST] = whole_earliest, whole_latest
    times[length, IN_ORDER] &= reversed_ ^ 1
