"""Lists laid end to end in one array: where each begins, and the places of the entries of some."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["counting", "end_to_end", "starts_of", "taken"]

Int64 = NDArray[np.int64]


def starts_of(sizes: Int64) -> Int64:
    """Return where each of some lists begins, and where the last one ends, (k + 1,) int64."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def end_to_end(first: Int64, sizes: Int64) -> tuple[Int64, Int64]:
    """Return the numbers in each of some spans, and where each span begins among these. O(k + m).

    Parameters
    ----------
    first, sizes : (k,) int64
        The first number of each span, and how many follow each other from there.

    Returns
    -------
    numbers : (m,) int64
    starts : (k + 1,) int64
    """
    starts = starts_of(sizes)
    return np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes), starts


def taken(start: Int64, which: slice | NDArray[Any]) -> tuple[Int64, Int64]:
    """Return the places of the entries of some lists, and where each list begins among these. O(k + m).

    Parameters
    ----------
    start : (n + 1,) int64
        Where each list begins, and where the last one ends.
    which : (k,) int64, (n,) bool or slice
        The lists, in the order asked for; one may be asked for several times.

    Returns
    -------
    places : (m,) int64
    starts : (k + 1,) int64
    """
    begins = start[:-1][which]
    return end_to_end(begins, start[1:][which] - begins)


def counting(sizes: Int64) -> Int64:
    """Return the place of each entry in its own list: 0, 1, ... for each size, end to end."""
    return end_to_end(np.zeros_like(sizes), sizes)[0]
