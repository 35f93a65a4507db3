"""Many chains of equally many uniform intervals: their bounds in columns, their confidences in vectors.

Bounds are float64, counted from some tick of the chain itself, minus position. That is exact up to
:data:`confidence.config.MOST_EXACT_TICKS`; a chain that reaches over more gets NaN, as one whose sum cancels
(:mod:`confidence.chain.exact`). No value depends on the chains beside it, nor on the tick counted from.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain import written_out
from confidence.config import MOST_EXACT_TICKS

__all__ = ["CHAINS", "LENGTHS", "Chains", "confidences", "fill_confidences", "new_chains", "tight_ranges"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

CHAINS: Final = 8192
"""Chains side by side at most: few calls from Python, where threads wait for each other, and no more than a
cache holds."""

_SPARE: Final = 24
"""Places behind the last chain that may be written; so many that columns do not share lines of a cache."""

LENGTHS: Final = range(2, 9)
"""How many events a chain may have to be written side by side."""

_KERNELS: Final[dict[int, Any]] = {length: getattr(written_out, f"chains_of_{length}") for length in LENGTHS}


class Chains(NamedTuple):
    """Room for chains of l events."""

    bounds: Float64
    """(2 l, k) float64. Lower and upper bounds, see above, in turns; k is a little more than CHAINS."""
    place: Int64
    """(k,) int64. Where the confidence of each chain belongs."""
    values: Float64
    """(k,) float64. Work array."""


def new_chains(length: int, w: int) -> Chains | None:
    """Return room for chains of ``length`` events with ``W - l = w``; None if they are not for vectors."""
    if length not in _KERNELS or w > MOST_EXACT_TICKS // 2:
        return None
    room = CHAINS + _SPARE
    return Chains(np.empty((2 * length, room)), np.empty(room, dtype=np.int64), np.empty(room))


def fill_confidences(chains: Chains, count: int, w: int, out: Float64) -> None:
    """Fill the confidences of the first ``count`` chains, NaN where float64 cannot give them.

    Parameters
    ----------
    chains : Chains
        Of two to eight events.
    count : int
    w : int
        ``W - l``, ticks, at least 0.
    out : (m,) float64
        The places of the chains are overwritten.

    Notes
    -----
    O(l^3) a chain, whatever its intervals, some nanoseconds for every ten operations.
    """
    kernel: Any = _KERNELS[len(chains.bounds) // 2]
    kernel(chains.bounds, float(w), count, chains.place, chains.values, out)


def confidences(lower: Int64, upper: Int64, w: int) -> Float64:
    """Return the confidences of chains, (m,) float64, NaN where they are not for vectors.

    Parameters
    ----------
    lower, upper : (l, m) int64
        Bounds minus position, ticks.
    w : int
        ``W - l``, ticks, at least 0.
    """
    length, count = lower.shape
    chains, out = new_chains(length, w), np.full(count, np.nan)
    if chains is None:
        return out
    for begin in range(0, count, CHAINS):
        part = slice(begin, min(begin + CHAINS, count))
        size = part.stop - begin
        np.subtract(lower[:, part], lower[0, part], out=chains.bounds[::2, :size], casting="unsafe")
        np.subtract(upper[:, part], lower[0, part], out=chains.bounds[1::2, :size], casting="unsafe")
        chains.place[:size] = np.arange(begin, part.stop)
        fill_confidences(chains, size, w, out)
    return out


def tight_ranges(lower: Int64, upper: Int64, w: Int64 | int) -> tuple[Int64, Int64, NDArray[np.bool_]]:
    """Return the tightest ranges of chains, and which chains can be. O(l) each.

    Parameters
    ----------
    lower, upper : (l, m) int64
        Bounds minus position, ticks, inclusive.
    w : int or (m,) int64
        ``W - l``, ticks; a chain cannot be where it is negative.

    Returns
    -------
    first, last : (m,) int64
        Ticks minus position, inclusive; of no meaning where a chain cannot be.
    possible : (m,) bool

    Notes
    -----
    These are the valid bounds, tightened by the window (Zhang, Diao, Immerman, PVLDB 3(1), 2010, sections 4.1
    and C.1).
    """
    valid_low = np.maximum.accumulate(lower, axis=0)
    valid_high = np.minimum.accumulate(upper[::-1], axis=0)[::-1]
    first = np.maximum(valid_low[0], valid_low[-1] - w)
    last = np.minimum(valid_high[-1], valid_high[0] + w)
    possible = (valid_low <= valid_high).all(axis=0) & (valid_low[-1] - w <= valid_high[0])
    return first, last, possible & np.greater_equal(w, 0)
