"""Parts of a text as columns, and whether kernels that make them are of use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from confidence.parsing.finding import copy_spans
from uncertain_cep.running.threads import available_cores

__all__ = ["cells_of", "reading_threads", "text_of", "with_nulls"]


def reading_threads() -> int:
    """Return how many threads read a file: one core each, or fewer where OMP_NUM_THREADS says so.

    Spark sets that to the cores of a task, and Arrow heeds it.
    """
    arrow: int = pa.cpu_count()
    return min(available_cores(), arrow)


def cells_of(letters: Any, begins: Any, ends: Any, valid: Any) -> pa.Array:
    """Return the texts from ``begins`` up to ``ends``, (n,) int64, of (m,) uint8 letters.

    Those that are not ``valid``, (n,) bool, are null. A begin of -1 makes an empty text.
    """
    offsets = np.zeros(len(begins) + 1, np.int32)
    np.cumsum(np.where(begins >= 0, ends - begins, 0), out=offsets[1:])
    copied = np.empty(offsets[-1], np.uint8)
    copy_spans(letters, begins, offsets, copied)
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.string(), len(begins), [bits, pa.py_buffer(offsets), pa.py_buffer(copied)]
    )


def text_of(texts: pa.Array) -> tuple[Any, Any, Any]:
    """Return the letters of an array of strings, (m,) uint8, and where each begins and ends, (n,) int64.

    Nulls begin at -1.
    """
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    begins, ends = bounds[:-1].copy(), bounds[1:].copy()
    if texts.null_count:
        begins[np.asarray(texts.is_null())] = -1
    return np.frombuffer(b"" if data is None else data, np.uint8), begins, ends


def with_nulls(values: pa.Array, valid: Any) -> pa.Array:
    """Return values, those that are not ``valid``, (n,) bool, as nulls."""
    if valid.all():
        return values
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(values.type, len(values), [bits, values.buffers()[1]])
