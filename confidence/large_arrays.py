"""Where large arrays lie that a call needs for a while.

NumPy hands the memory of a large array back to the system, which gives it out again page by page, each page
with a fault that takes half a microsecond and that other threads may have to wait for. A package that has a
better place for such arrays names it here (:func:`allocate_by`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["allocate_by", "empty", "take_into", "zeros"]

LARGE: Final = 1 << 16
"""Bytes from which on an array is worth another place."""

_allocate: list[Callable[[int], Any]] = []


def allocate_by(allocate: Callable[[int], Any]) -> None:
    """Have large arrays lie in what ``allocate`` returns for a number of bytes: a writable buffer."""
    _allocate[:] = [allocate]


def empty(shape: int | tuple[int, ...], dtype: type[np.generic] = np.int64) -> NDArray[Any]:
    """Return an array as ``numpy.empty`` does."""
    # Where kernels run as plain Python, numbers are those of NumPy.
    size = math.prod(shape) if isinstance(shape, tuple) else int(shape)
    bytes_needed = size * np.dtype(dtype).itemsize
    if bytes_needed < LARGE or not _allocate:
        return np.empty(shape, dtype=dtype)
    return np.frombuffer(_allocate[0](bytes_needed), dtype=dtype, count=size).reshape(shape)


def zeros(shape: int | tuple[int, ...], dtype: type[np.generic] = np.int64) -> NDArray[Any]:
    """Return an array as ``numpy.zeros`` does."""
    array = empty(shape, dtype)
    array.fill(0)
    return array


def take_into(out: NDArray[Any], values: NDArray[Any], places: NDArray[np.int64]) -> None:
    """Overwrite ``out``, (k,), with the values at some places, (k,), of which each is one of them."""
    # Any other mode goes by way of a copy.
    np.take(values, places, out=out, mode="clip")
