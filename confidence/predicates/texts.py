"""Search of many texts for a few texts, eight bytes at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import POSITIVE, kernel

__all__ = ["BLOCK", "WORD", "eight_bytes", "equal_texts", "words_of"]

UInt64 = NDArray[np.uint64]

WORD: Final = 8
"""Bytes that are compared at once."""

BLOCK: Final = 1024
"""Texts whose words stay in the fastest cache while they are compared with all that is looked for."""

_BYTE: Final = np.uint64(255)


def words_of(texts: Sequence[bytes]) -> tuple[UInt64, UInt64]:
    """Return texts as words, and for each word which of its bits are of the text; each (k, t), k at least 1.

    Of a shorter text the last words are 0.
    """
    count = max(1, *(-(-len(text) // WORD) for text in texts))
    words = [np.frombuffer(text.ljust(count * WORD, b"\0"), "<u8") for text in texts]
    masks = [np.frombuffer((b"\xff" * len(text)).ljust(count * WORD, b"\0"), "<u8") for text in texts]
    return np.stack(words, axis=1).astype(np.uint64), np.stack(masks, axis=1).astype(np.uint64)


@kernel(inline=True)
def eight_bytes(data, b):
    """Return the eight bytes from ``b`` on as one word: LLVM makes one load of these."""
    low = (
        np.uint64(data[b])
        | np.uint64(data[b + 1]) << np.uint64(8)
        | np.uint64(data[b + 2]) << np.uint64(16)
        | np.uint64(data[b + 3]) << np.uint64(24)
    )
    high = (
        np.uint64(data[b + 4]) << np.uint64(32)
        | np.uint64(data[b + 5]) << np.uint64(40)
        | np.uint64(data[b + 6]) << np.uint64(48)
        | np.uint64(data[b + 7]) << np.uint64(56)
    )
    return low | high


@kernel
def equal_texts(begin, end, offset, data, words, masks, sizes, block, equal):
    """Find which of some texts are one of a few, as fast however they are mixed.

    Parameters
    ----------
    begin, end : int64
        The texts that are looked at: ``begin .. end - 1``.
    offset : (n + 1,) int32
        Where each text begins in ``data``, and where the last one ends.
    data : (m,) uint8
    words, masks : (k, t) uint64
        What is looked for, see :func:`words_of`.
    sizes : (t,) int32
        The bytes of each.
    block : (BLOCK,) uint64
        Overwritten.
    equal : (t, n) bool
        Overwritten for these texts: whether they are text j.

    Notes
    -----
    O(n) for each k, and for each word that is looked for. Words are gathered block by block, as LLVM makes
    vectors of the comparisons then.
    """
    # Words of the last texts may reach beyond the end of all.
    safe = end
    while safe > begin and offset[safe - 1] + WORD * words.shape[0] > data.shape[0]:
        safe -= 1
    for i in range(safe, end):
        place, size = offset[i], offset[i + 1] - offset[i]
        for j in range(sizes.shape[0]):
            n = 0
            if size == sizes[j]:
                while n < size and data[place + n] == words[n // WORD, j] >> np.uint64(n % WORD * 8) & _BYTE:
                    n += 1
            equal[j, i] = size == sizes[j] and n == size
    for k in range(words.shape[0]):
        for first in range(begin, safe, BLOCK):
            stop = min(first + BLOCK, safe)
            for i in range(first, stop):
                i &= POSITIVE
                place = (np.int64(offset[i]) + WORD * k) & POSITIVE
                block[(i - first) & POSITIVE] = eight_bytes(data, place)
            for j in range(sizes.shape[0]):
                # A text that ends before this word has been compared.
                if k > 0 and masks[k, j] == 0:
                    continue
                word, mask, size = words[k, j], masks[k, j], sizes[j]
                for i in range(first, stop):
                    i &= POSITIVE
                    has_size = offset[i + 1] - offset[i] == size
                    is_equal = ((block[(i - first) & POSITIVE] & mask) == word) & has_size
                    equal[j, i] = is_equal if k == 0 else is_equal & equal[j, i]
