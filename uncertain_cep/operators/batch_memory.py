"""Memory for the columns of batches, given out again as soon as nothing refers to a batch."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import numpy as np
import pyarrow as pa

from uncertain_cep.config import MOST_KEPT_BATCHES

__all__ = ["BatchMemory"]


class BatchMemory:
    """Memory for batches of one evaluation, which goes back to the thread that had it, and to no other.

    A processor's cache holds what its thread has written last. Allocators give out what was let go in any
    order, and to any thread: then each line of a batch is fetched from memory, or from the cache of another
    processor, only to be overwritten.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], list[pa.Buffer]] = {}

    def room(self, size: int) -> pa.Buffer:
        """Return memory of so many bytes, to be written on, that nothing else refers to."""
        kept = self._kept.setdefault((get_ident(), size), [])
        try:
            memory = kept.pop()
        except IndexError:
            memory = pa.allocate_buffer(size)
        lent = _Lent(size, np.uint8, memory)
        lent.memory, lent.kept = memory, kept
        return pa.py_buffer(lent)


class _Lent(np.ndarray[Any, np.dtype[np.uint8]]):
    """Memory that goes back where it came from when no array refers to it, be it one of NumPy or of Arrow.

    All of these refer to the buffer around it, which refers to it. Whichever thread lets go of the last one,
    the thread that asked for the memory gets it.
    """

    memory: pa.Buffer
    kept: list[pa.Buffer]

    def __del__(self) -> None:
        if len(self.kept) < MOST_KEPT_BATCHES:
            self.kept.append(self.memory)
