"""Sets of rows as bits of words."""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.kernel import kernel

__all__ = ["ONE", "WORD", "count_bits", "words_for"]

WORD: Final = 64
"""Bits of a word."""

ONE: Final = np.uint64(1)

_PAIRS: Final = np.uint64(0x5555555555555555)
_FOURS: Final = np.uint64(0x3333333333333333)
_EIGHTS: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM: Final = np.uint64(0x0101010101010101)


def words_for(rows: int) -> int:
    """Return how many words have a bit for each of so many rows."""
    return -(-rows // WORD)


@kernel(inline=True)
def count_bits(word):
    """Return how many bits of a word are set: LLVM makes one instruction of it."""
    word = word - ((word >> np.uint64(1)) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    return np.int64((((word + (word >> np.uint64(4))) & _EIGHTS) * _SUM) >> np.uint64(56))
