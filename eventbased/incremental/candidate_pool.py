"""Candidates held by an incremental method: pools of arrays that grow by doubling and are compacted.

A candidate is an event at a component that can take it. It is appended once, named by its *place* in the
pool, and let go of when nothing refers to it any more; compacting moves the rest together and tells
everyone who holds places where they went.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eventbased.config import FIRST_CAPACITY

__all__ = ["BytecodeArrays", "CandidateArrays", "CandidatePool", "Columns", "RunBytecode", "grown"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


class CandidateArrays(NamedTuple):
    """The candidates as kernels see them, by place; everything (capacity,).

    Attributes
    ----------
    component, partition : int64
    lower, upper : int64
        Interval bounds minus the component's position, ticks, inclusive.
    event : int64
        Number of the event, the same for its candidates at several components.
    shared : bool
        Whether the event is a candidate of several components.
    pmf_offset : int64
        Where its probabilities start in the pmf pool; -1 for a uniform interval.
    """

    component: Int64
    partition: Int64
    lower: Int64
    upper: Int64
    event: Int64
    shared: Mask
    pmf_offset: Int64


class BytecodeArrays(NamedTuple):
    """Predicates across components as kernels see them, see :func:`confidence.predicates.bytecode.holds`.

    Attributes
    ----------
    start : (p + 1,) int64
        The rows of ``code`` of each predicate.
    mask : (p,) int64
        The components that it mentions, a bit each.
    code, ints, floats, nulls, slots
        As for :func:`confidence.predicates.bytecode.holds`; a candidate is chosen by its place.
    """

    start: Int64
    mask: Int64
    code: Int64
    ints: Int64
    floats: Float64
    nulls: Mask
    slots: Int64


class Columns(NamedTuple):
    """Attribute values of some candidates; what another component's slot holds is of no account.

    Attributes
    ----------
    ints : (i, k) int64, floats : (f, k) float64
        The values of the integer and of the float slots, in the order of the slots.
    nulls : (i + f, k) bool
        By slot.
    """

    ints: Int64
    floats: Float64
    nulls: Mask


@dataclass(frozen=True, slots=True)
class RunBytecode:
    """Compiled predicates across components, apart from any values.

    Attributes
    ----------
    start, mask, code
        As in :class:`BytecodeArrays`; integer and float constants are numbered from 0.
    int_constants, float_constants : (c,) int64 / float64
    component : (s,) int64
        Of each slot.
    real : (s,) bool
        Whether the slot holds float64.
    """

    start: Int64
    mask: Int64
    code: Int64
    int_constants: Int64
    float_constants: Float64
    component: Int64
    real: Mask

    @classmethod
    def none(cls) -> RunBytecode:
        """Return no predicates at all."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(
            np.zeros(1, dtype=np.int64), empty, np.zeros((0, 2), dtype=np.int64), empty,
            np.zeros(0), empty, np.zeros(0, dtype=np.bool_),
        )  # fmt: skip


def grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the array with room for ``size`` entries along its last axis, doubling; O(1) amortised."""
    have = array.shape[-1]
    if size <= have:
        return array
    longer = np.zeros((*array.shape[:-1], max(size, 2 * have, FIRST_CAPACITY)), dtype=array.dtype)
    longer[..., :have] = array
    return longer


class CandidatePool:
    """Candidates with their attribute values and probabilities.

    Parameters
    ----------
    programs : RunBytecode
        Which attribute values there are.

    Attributes
    ----------
    count : int
        Candidates held; their places are 0 to ``count - 1``, older ones first.
    arrays : CandidateArrays
    programs : BytecodeArrays
    pmf : (m,) float64
    """

    def __init__(self, programs: RunBytecode) -> None:
        self.count = 0
        self.pmf: Float64 = np.zeros(0)
        self._pmf_count = 0
        types = (np.int64, np.int64, np.int64, np.int64, np.int64, np.bool_, np.int64)
        self.arrays = CandidateArrays._make(np.zeros(FIRST_CAPACITY, dtype=dtype) for dtype in types)
        self._real = programs.real
        reals = int(programs.real.sum())
        self._ints: Int64 = np.zeros((len(programs.real) - reals, FIRST_CAPACITY), dtype=np.int64)
        self._floats: Float64 = np.zeros((reals, FIRST_CAPACITY))
        self._nulls: Mask = np.zeros((len(programs.real), FIRST_CAPACITY), dtype=np.bool_)
        self.use(programs)

    def use(self, programs: RunBytecode) -> None:
        """Take other programs on the same slots."""
        assert np.array_equal(programs.real, self._real)
        self._compiled = programs
        self._lay_out()

    def _lay_out(self) -> None:
        """Put constants and values into the flat arrays that programs index; columns become views of them."""
        compiled = self._compiled
        capacity = len(self.arrays.lower)

        def flat(constants: NDArray[Any], columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            joined = np.concatenate((constants, columns.ravel()))
            return joined, joined[len(constants) :].reshape(columns.shape)

        ints, self._ints = flat(compiled.int_constants, self._ints)
        floats, self._floats = flat(compiled.float_constants, self._floats)
        kinds = self._real.astype(np.int64)
        # Slots of one kind are numbered in their order.
        rank = np.where(self._real, np.cumsum(kinds), np.cumsum(1 - kinds)) - 1
        constants = np.where(self._real, len(compiled.float_constants), len(compiled.int_constants))
        slots = np.stack(
            (compiled.component, constants + rank * capacity, np.arange(len(kinds)) * capacity), axis=1
        ).astype(np.int64)
        self.programs = BytecodeArrays(
            compiled.start, compiled.mask, compiled.code, ints, floats, self._nulls.reshape(-1), slots
        )

    def append(
        self,
        component: Int64,
        partition: Int64,
        lower: Int64,
        upper: Int64,
        event: Int64,
        shared: Mask,
        pmf_offset: Int64,
        pmf: Float64,
        columns: Columns | None = None,
    ) -> Int64:
        """Append candidates and return their places, ascending.

        Parameters
        ----------
        component, partition, event : (k,) int64
        lower, upper : (k,) int64
            As given, position not subtracted.
        shared : (k,) bool
        pmf_offset : (k,) int64, pmf : (m,) float64
            The probabilities are copied.
        columns : Columns, optional
            Needed where programs have slots.
        """
        first, stop = self.count, self.count + len(component)
        if stop > len(self.arrays.lower):
            self.arrays = CandidateArrays._make(grown(array, stop) for array in self.arrays)
            capacity = len(self.arrays.lower)
            self._ints, self._floats = grown(self._ints, capacity), grown(self._floats, capacity)
            self._nulls = grown(self._nulls, capacity)
            self._lay_out()
        offsets = self._copied(upper - lower + 1, pmf_offset, pmf)
        given = (component, partition, lower - component, upper - component, event, shared, offsets)
        for array, values in zip(self.arrays, given, strict=True):
            array[first:stop] = values
        if columns is not None:
            self._ints[:, first:stop] = columns.ints
            self._floats[:, first:stop] = columns.floats
            self._nulls[:, first:stop] = columns.nulls
        self.count = stop
        return np.arange(first, stop)

    def _copied(self, lengths: Int64, offset: Int64, pmf: Float64) -> Int64:
        """Copy probabilities of candidates into the pool and return where they start; -1: uniform."""
        explicit = np.flatnonzero(offset >= 0)
        moved = np.full(len(offset), -1, dtype=np.int64)
        if not len(explicit):
            return moved
        sizes = lengths[explicit]
        ends = np.cumsum(sizes)
        starts = ends - sizes
        total = int(ends[-1])
        self.pmf = grown(self.pmf, self._pmf_count + total)
        # Tick t of candidate i lies as far behind its first one here as there.
        source = np.arange(total) + np.repeat(offset[explicit] - starts, sizes)
        self.pmf[self._pmf_count : self._pmf_count + total] = pmf[source]
        moved[explicit] = self._pmf_count + starts
        self._pmf_count += total
        return moved

    def values(self, slot: int) -> Int64:
        """Return the values that an integer slot holds."""
        return self._column(slot)[self._mine(slot)]

    def map_values(self, slot: int, mapping: Int64) -> None:
        """Replace the values x of an integer slot by ``mapping[x]``."""
        column, mine = self._column(slot), self._mine(slot)
        column[mine] = mapping[column[mine]]

    def _column(self, slot: int) -> Int64:
        return self._ints[int((~self._real[:slot]).sum()), : self.count]

    def _mine(self, slot: int) -> Mask:
        """Return which candidates are of the slot's component."""
        mine = self.arrays.component[: self.count] == self._compiled.component[slot]
        return np.asarray(mine)

    def compact(self, used: Mask) -> Int64:
        """Keep the candidates that are used, in order, and return the new place of each; -1 if let go of.

        Parameters
        ----------
        used : (count,) bool

        Notes
        -----
        O(count) and the probabilities kept.
        """
        places = np.flatnonzero(used)
        mapping = np.full(self.count, -1, dtype=np.int64)
        mapping[places] = np.arange(len(places))
        lengths = (self.arrays.upper - self.arrays.lower + 1)[places]
        offset = self.arrays.pmf_offset[places]
        held, self.pmf, self._pmf_count = self.pmf, np.zeros(0), 0
        for array in self.arrays:
            array[: len(places)] = array[places]
        for columns in (self._ints, self._floats, self._nulls):
            columns[:, : len(places)] = columns[:, places]
        self.count = len(places)
        self.arrays.pmf_offset[: self.count] = self._copied(lengths, offset, held)
        return mapping
