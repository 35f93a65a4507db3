"""The times of the rows that components can take, gathered in one pass over all rows."""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.kernel import kernel

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

_POSITIVE: Final = 2**63 - 1


@kernel
def times_of_rows(begin, end, lower, upper, rows, start, following, low, high, told):
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
    told : (l + 1, 4) int64
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
    for first in range(begin, end, _BLOCK):
        stop = min(first + _BLOCK, end)
        earliest, latest, reversed_ = told[length, EARLIEST], told[length, LATEST], 0
        for i in range(first, stop):
            i &= _POSITIVE
            earliest, latest = min(earliest, lower[i]), max(latest, upper[i])
            reversed_ |= lower[i] > upper[i]
        told[length, EARLIEST], told[length, LATEST] = earliest, latest
        told[length, IN_ORDER] &= reversed_ ^ 1
        for j in range(length):
            n = following[j]
            last = start[j + 1]
            earliest, latest, longest, ascends = (
                told[j, EARLIEST], told[j, LATEST], told[j, LONGEST], told[j, IN_ORDER],
            )  # fmt: skip
            before = low[n - 1] if n > start[j] else NOTHING[LATEST]
            while n < last and rows[n] < stop:
                i = rows[n] & _POSITIVE
                a, b = lower[i], upper[i]
                low[n], high[n] = a, b
                earliest, latest, longest = min(earliest, a), max(latest, b), max(longest, b - a)
                ascends &= a >= before
                before = a
                n += 1
            told[j, EARLIEST], told[j, LATEST], told[j, LONGEST], told[j, IN_ORDER] = (
                earliest, latest, longest, ascends,
            )  # fmt: skip
            following[j] = n
