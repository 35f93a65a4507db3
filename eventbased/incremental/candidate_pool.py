"""Candidates held by an incremental method: a pool of arrays that grow by doubling and are compacted.

A candidate is an event at a component that can take it. It is appended once, named by its *index* in the
pool, and dropped when nothing refers to it any more; compacting moves the rest together and tells
everyone who holds indices where they went.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.pools import AttributePool, AttributeValues, PmfPool, grown

__all__ = [
    "COMPONENT",
    "EVENT",
    "LOWER",
    "PARTITION",
    "PMF",
    "SHARED",
    "UPPER",
    "BytecodeArrays",
    "CandidatePool",
    "Cells",
    "OneEvent",
    "RunBytecode",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

Cells = Sequence[tuple[int, Any]]
"""Slots of attribute values, each with the value that a candidate has there, or None."""


class OneEvent(NamedTuple):
    """An event of a uniform time, and what can take it.

    Attributes
    ----------
    components, partitions : sequences of int
        The components that can take it, and the partition that it has for each.
    lower, upper : int
        Ticks.
    number : int
        The event.
    cells : sequence of Cells
        The values that predicates read of it at each component.
    """

    components: Sequence[int]
    partitions: Sequence[int]
    lower: int
    upper: int
    number: int
    cells: Sequence[Cells]


FIRST_CAPACITY: Final = 1024
"""Rows that a pool of candidates has room for at first."""


# The rows of the candidates as kernels see them: one array, as each that a kernel is given takes it a while.

COMPONENT: Final = 0
PARTITION: Final = 1
LOWER: Final = 2
UPPER: Final = 3
"""Interval bounds minus the component's position, ticks, inclusive."""
EVENT: Final = 4
"""Number of the event, the same for its candidates at several components."""
SHARED: Final = 5
"""Whether the event is a candidate of several components: 0 or 1."""
PMF: Final = 6
"""Where its probabilities start in the pmf pool; -1 for a uniform interval."""

FIELDS: Final = 7


class BytecodeArrays(NamedTuple):
    """Predicates across components as kernels see them, see :func:`confidence.predicates.bytecode.holds`.

    Attributes
    ----------
    start : (p + 1,) int64
        The rows of ``code`` of each predicate.
    mask : (p,) int64
        The components that it mentions, a bit each.
    code, ints, floats, nulls, slots
        As for :func:`confidence.predicates.bytecode.holds`; a candidate is chosen by its index.
    """

    start: Int64
    mask: Int64
    code: Int64
    ints: Int64
    floats: Float64
    nulls: Mask
    slots: Int64


@dataclass(frozen=True, slots=True)
class RunBytecode:
    """Bytecode of predicates across components, apart from any values.

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
        """Return that of no predicates at all."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(
            np.zeros(1, dtype=np.int64), empty, np.zeros((0, 2), dtype=np.int64), empty,
            np.zeros(0), empty, np.zeros(0, dtype=np.bool_),
        )  # fmt: skip


class CandidatePool:
    """Candidates with their attribute values and probabilities.

    Parameters
    ----------
    bytecode : RunBytecode
        Which attribute values there are.

    Attributes
    ----------
    count : int
        Candidates held; their indices are 0 to ``count - 1``, older ones first.
    candidates : (7, capacity) int64
        By index; rows ``COMPONENT``, ``PARTITION``, ``LOWER``, ``UPPER``, ``EVENT``, ``SHARED``, ``PMF``.
    bytecode : BytecodeArrays
    pmfs : PmfPool
    """

    def __init__(self, bytecode: RunBytecode) -> None:
        self.count = 0
        self.pmfs = PmfPool()
        self.candidates: Int64 = np.zeros((FIELDS, FIRST_CAPACITY), dtype=np.int64)
        self._attributes = AttributePool(bytecode.real)
        self.use(bytecode)

    def __setstate__(self, held: dict[str, Any]) -> None:
        """Take what was pickled, and lay out again what are views of one another."""
        self.__dict__.update(held)
        self.use(self._compiled)

    def use(self, bytecode: RunBytecode) -> None:
        """Take other bytecode on the same slots."""
        self._compiled = bytecode
        attributes = self._attributes
        constants = bytecode.int_constants, bytecode.float_constants, np.zeros(0, dtype=np.bool_)
        attributes.lay_out(constants, self.candidates.shape[1])
        slots = np.stack((bytecode.component, attributes.start, attributes.null_start), axis=1)
        self.bytecode = BytecodeArrays(bytecode.start, bytecode.mask, bytecode.code, *attributes.flat, slots)

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
        values: AttributeValues | None = None,
    ) -> Int64:
        """Append candidates and return their indices, ascending; their probabilities are copied.

        See :meth:`eventbased.incremental.method.IncrementalMethod.push`.
        """
        first = self._add(len(component))
        start = self.pmfs.add(lower, upper, pmf_offset, pmf)
        rows = (component, partition, lower - component, upper - component, event, shared, start)
        for row, new in zip(self.candidates, rows, strict=True):
            row[first : self.count] = new
        if values is not None:
            self._attributes.write(first, values)
        return np.arange(first, self.count)

    def append_event(self, event: OneEvent) -> None:
        """Append one event as a candidate of components."""
        components, partitions, lower, upper, number, cells = event
        first, shared = self._add(len(components)), len(components) > 1
        for index, component in enumerate(components, first):
            partition = partitions[index - first]
            self.candidates[:, index] = (
                component, partition, lower - component, upper - component, number, shared, -1,
            )  # fmt: skip
            self._attributes.put(index, cells[index - first])

    def _add(self, count: int) -> int:
        """Make room for candidates, and return the index of the first."""
        first, self.count = self.count, self.count + count
        if self.count > self.candidates.shape[1]:
            self.candidates = grown(self.candidates, self.count)
            self.use(self._compiled)
        return first

    def values(self, slot: int) -> Int64:
        """Return the values that an integer slot holds."""
        return self._column(slot)[self._of_component(slot)]

    def map_values(self, slot: int, mapping: Int64) -> None:
        """Replace the values x of an integer slot by ``mapping[x]``."""
        column, chosen = self._column(slot), self._of_component(slot)
        column[chosen] = mapping[column[chosen]]

    def _column(self, slot: int) -> Int64:
        number = int((~self._compiled.real[:slot]).sum())
        return self._attributes.values.ints[number, : self.count]

    def _of_component(self, slot: int) -> Mask:
        """Return a mask of the candidates of the slot's component."""
        return np.asarray(self.candidates[COMPONENT, : self.count] == self._compiled.component[slot])

    def compact(self, used: Mask) -> Int64:
        """Keep the candidates that are used, in order, and return the new index of each; -1 if dropped.

        O(count) and the probabilities kept.
        """
        kept = np.flatnonzero(used)
        mapping = np.full(self.count, -1, dtype=np.int64)
        mapping[kept] = np.arange(len(kept))
        self.count = len(kept)
        held = self.candidates[:, : self.count]
        held[:] = self.candidates[:, kept]
        self._attributes.keep(kept)
        held[PMF] = self.pmfs.keep(held[LOWER], held[UPPER], held[PMF])
        return mapping
