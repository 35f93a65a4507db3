"""Arrays that grow, and what pools of candidates hold in them: probabilities and attribute values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.distribution import running_sums
from confidence.flat_lists import end_to_end

__all__ = ["AttributePool", "AttributeValues", "PmfPool", "grown", "repeated"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


def grown(array: NDArray[Any], size: int, axis: int = -1) -> NDArray[Any]:
    """Return the array with room for ``size`` entries along an axis, at least doubled; O(1) amortised."""
    room = array.shape[axis]
    if size <= room:
        return array
    shape = list(array.shape)
    shape[axis] = max(size, 2 * room)
    checkpoint(math.prod(shape) * array.itemsize)
    larger = np.zeros(shape, dtype=array.dtype)
    larger[tuple(slice(length) for length in array.shape)] = array
    return larger


def repeated(values: Int64) -> Mask:
    """Return a mask, (k,) bool, of the values that stand there more than once. O(k log k)."""
    if len(values) < 2:
        return np.zeros(len(values), dtype=np.bool_)
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] > 1)


class PmfPool:
    """Explicit probabilities of candidates, one pmf behind the other.

    Attributes
    ----------
    pmf, head, tail : (m,) float64
        The probabilities, and their :func:`confidence.running_sums`: sums from both ends spare a difference
        that would cancel.
    """

    def __init__(self) -> None:
        self._count = 0
        self.pmf, self.head, self.tail = np.zeros((3, 0))

    def add(self, lower: Int64, upper: Int64, offset: Int64, pmf: Float64) -> Int64:
        """Copy the probabilities of candidates, and return where they start here.

        Parameters
        ----------
        lower, upper : (k,) int64
            Ticks, inclusive.
        offset : (k,) int64
            Where the probabilities start in ``pmf``; -1 for uniform.
        pmf : (m,) float64

        Returns
        -------
        (k,) int64
            -1 for uniform.
        """
        if not len(pmf):
            return offset
        moved = np.full(len(offset), -1, dtype=np.int64)
        explicit = np.flatnonzero(offset >= 0)
        if len(explicit):
            indices, starts = end_to_end(offset[explicit], (upper - lower + 1)[explicit])
            stop = self._count + len(indices)
            self.pmf, self.head, self.tail = (
                grown(array, stop) for array in (self.pmf, self.head, self.tail)
            )
            self.pmf[self._count : stop] = pmf[indices]
            moved[explicit] = self._count + starts[:-1]
            running_sums(lower[explicit], upper[explicit], moved[explicit], self.pmf, self.head, self.tail)
            self._count = stop
        return moved

    def keep(self, lower: Int64, upper: Int64, offset: Int64) -> Int64:
        """Drop all probabilities but those of some candidates; return where these start now."""
        pmf, self._count = self.pmf, 0
        self.pmf, self.head, self.tail = np.zeros((3, 0))
        return self.add(lower, upper, offset, pmf)


class AttributeValues(NamedTuple):
    """Attribute values of k candidates; what stands for an attribute that a component lacks is not read.

    Attributes
    ----------
    ints : (a, k) int64, floats : (b, k) float64
        The attributes of each type, in their order.
    nulls : (a + b, k) bool
        In the order of all attributes.
    """

    ints: Int64
    floats: Float64
    nulls: Mask

    def of(self, chosen: slice | Int64) -> AttributeValues:
        """Return the values of some of the candidates."""
        return AttributeValues._make(array[:, chosen] for array in self)


class AttributePool:
    """Attribute values of candidates in the flat arrays that predicate bytecode reads, behind its constants.

    Parameters
    ----------
    real : (a,) bool
        Whether each attribute is a float64; else it is an int64.

    Attributes
    ----------
    flat : tuple of (i,) int64, (f,) float64 and (n,) bool
        Constants, and behind them the values and nulls of one attribute after the other.
    values : AttributeValues
        Views of them, for as many candidates as there is room for.
    start, null_start : (a,) int64
        Where the values of each attribute start among the flat ``ints`` or ``floats``, and among ``nulls``.
    """

    flat: tuple[Int64, Float64, Mask]
    start: Int64
    null_start: Int64

    def __init__(self, real: Mask) -> None:
        reals = int(real.sum())
        self._real = real
        self._number = np.where(real, np.cumsum(real), np.cumsum(~real)) - 1
        self.values = AttributeValues(
            np.zeros((len(real) - reals, 0), dtype=np.int64),
            np.zeros((reals, 0)),
            np.zeros((len(real), 0), dtype=np.bool_),
        )

    def lay_out(self, constants: tuple[Int64, Float64, Mask], room: int) -> None:
        """Make room for so many candidates behind other constants, keeping the values that there are."""
        flat: list[Any] = []
        views: list[Any] = []
        for fixed, old in zip(constants, self.values, strict=True):
            array = np.concatenate((fixed, np.zeros(len(old) * room, dtype=old.dtype)))
            view = array[len(fixed) :].reshape(len(old), room)
            view[:, : old.shape[1]] = old
            flat.append(array)
            views.append(view)
        ints, floats, nulls = flat
        self.flat, self.values = (ints, floats, nulls), AttributeValues(*views)
        behind = np.where(self._real, len(constants[1]), len(constants[0]))
        self.start = behind + self._number * room
        self.null_start = len(constants[2]) + np.arange(len(self._real)) * room

    def write(self, first: int, values: AttributeValues) -> None:
        """Write the values of the candidates from number ``first`` on."""
        for array, new in zip(self.values, values, strict=True):
            array[:, first : first + new.shape[1]] = new

    def put(self, number: int, cells: Sequence[tuple[int, Any]]) -> None:
        """Write some attributes of one candidate: the number of each, and its value or None."""
        ints, floats, nulls = self.values
        for attribute, value in cells:
            nulls[attribute, number] = value is None
            column = floats if self._real[attribute] else ints
            # What was there before may be the rank of a string that is forgotten.
            column[self._number[attribute], number] = 0 if value is None else value

    def keep(self, chosen: Int64) -> None:
        """Move the values of some candidates, ascending, to the front."""
        for array in self.values:
            array[:, : len(chosen)] = array[:, chosen]
