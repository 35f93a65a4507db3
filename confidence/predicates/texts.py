"""Which of many texts are one of a few texts, eight bytes at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel

__all__ = ["MOST_TEXTS", "WORD", "equal_texts", "words_of"]

UInt64 = NDArray[np.uint64]

WORD: Final = 8
"""Bytes that are compared at once."""

MOST_TEXTS: Final = 8
"""Texts that are looked for at once: bits of a uint8."""

_POSITIVE: Final = 2**63 - 1


def words_of(texts: Sequence[bytes]) -> tuple[UInt64, UInt64]:
    """Return texts as words, and for each word which of its bits are of the text; each (k, t), k at least 1.

    Of a shorter text the last words are 0.
    """
    count = max(1, *(-(-len(text) // WORD) for text in texts))
    words = [np.frombuffer(text.ljust(count * WORD, b"\0"), "<u8") for text in texts]
    masks = [np.frombuffer((b"\xff" * len(text)).ljust(count * WORD, b"\0"), "<u8") for text in texts]
    return np.stack(words, axis=1).astype(np.uint64), np.stack(masks, axis=1).astype(np.uint64)


@kernel
def equal_texts(offset, data, words, masks, sizes, found):
    """Find which texts are one of some; O(n k t), and as fast however texts are mixed, as nothing branches.

    Parameters
    ----------
    offset : (n + 1,) int32
        Where each text begins in ``data``, and where the last one ends.
    data : (m,) uint8
        ``offset[n - 1] + 8 k`` is at most m.
    words, masks : (k, t) uint64
        What is looked for, see :func:`words_of`.
    sizes : (t,) int32
        The bytes of each.
    found : (n,) uint8
        Overwritten: bit j says whether it is text j.
    """
    for k in range(words.shape[0]):
        first = 8 * k
        for i in range(found.shape[0]):
            begin = np.int64(offset[i])
            size = offset[i + 1] - begin
            # LLVM makes one load of these.
            b = (begin + first) & _POSITIVE
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
            word = low | high
            bits = 0
            for j in range(sizes.shape[0]):
                bits |= (((word & masks[k, j]) == words[k, j]) & (size == sizes[j])) << j
            found[i] = bits if k == 0 else found[i] & bits
