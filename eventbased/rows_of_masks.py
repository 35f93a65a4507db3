"""The rows that components can take, with their times, from what is known of each row."""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.kernel import POSITIVE, kernel
from confidence.predicates.texts import eight_bytes
from eventbased.bits import ONE, WORD, count_bits
from eventbased.times_of_rows import times_of_rows

__all__ = ["pack_masks", "take_rows"]

_FIRST_BITS: Final = np.uint64(0x0102040810204080)
"""What gathers the first bits of eight bytes in the last byte of a product."""
_LAST_BYTE: Final = np.uint64(56)


@kernel
def pack_masks(one, other, bits):
    """Write as bits where two masks are true, and return in how many rows. O(n), 8 rows at a time.

    Parameters
    ----------
    one, other : (n,) uint8
        0 or 1 for each row.
    bits : ((n + 63) // 64,) uint64
        Overwritten: row 64 w + b is bit b of word w; bits behind the last row are 0.
    """
    n, count = one.shape[0], 0
    whole = n // WORD
    for w in range(whole):
        word = np.uint64(0)
        for k in range(8):
            b = (WORD * w + 8 * k) & POSITIVE
            both = eight_bytes(one, b) & eight_bytes(other, b)
            word |= ((both * _FIRST_BITS) >> _LAST_BYTE) << np.uint64(8 * k)
        bits[w] = word
        count += count_bits(word)
    if WORD * whole < n:
        word = np.uint64(0)
        for i in range(WORD * whole, n):
            word |= np.uint64(one[i] & other[i]) << np.uint64(i - WORD * whole)
        bits[whole] = word
        count += count_bits(word)
    return count


@kernel
def take_rows(begin, end, bits, ids, lower, upper, rows, start, following, low, high, times):
    """Write the rows that are set, gather their times, and return 1 if ids ascend, else 0. O(n + m).

    Parameters
    ----------
    begin, end : int64
        The rows that are looked at: ``begin .. end - 1``.
    bits : (l, (end - begin + 63) // 64) uint64
        Which of them each component can take, see :func:`pack_masks`.
    ids : (n,) int64, or (0,)
        The ids of all rows. They ascend from ``begin`` up to the first row behind these, if there is one.
        Empty: nothing is asked of them.
    lower, upper : (n,) int64, or (0,)
        The times of all rows, ticks. Empty: times are not asked for.
    rows : (m,) int64
        Overwritten.
    start, following, low, high, times
        As for :func:`eventbased.times_of_rows.times_of_rows`.

    Notes
    -----
    It goes from bit to bit. To ask of each row is a branch that a processor cannot foresee: where one row of
    ten is taken, in no order, that takes ten times as long. Ids and times are looked at one after the other,
    as all at once takes twice as long.
    """
    for j in range(bits.shape[0]):
        n = start[j]
        for w in range(bits.shape[1]):
            word, first = bits[j, w], begin + WORD * w
            while word:
                lowest = word & (~word + ONE)
                rows[n & POSITIVE] = first + count_bits(lowest - ONE)
                n += 1
                word ^= lowest
    falls = 0
    for i in range(begin, min(end, ids.shape[0] - 1)):
        i &= POSITIVE
        falls |= ids[(i + 1) & POSITIVE] <= ids[i]
    if lower.shape[0]:
        times_of_rows(begin, end, lower, upper, rows, start, following, low, high, times)
    return falls ^ 1
