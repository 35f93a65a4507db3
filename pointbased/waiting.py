"""Events that have arrived and wait for the emit rule (Zhang et al., section 3, step 1).

No point of an event that begins at ``t_emit`` or later can be matched yet, so until then nothing is done for
it. A push is kept as the block of rows it came in, in order of their lower bounds, and the blocks in order of
the first tick that still waits in each: what becomes due is a run of rows of the first blocks, so that
neither an event by itself nor a batch is gone through before its time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedKeyList

__all__ = ["Arrivals", "AttributeValues", "WaitingEvents"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class AttributeValues:
    """What the formulas read of some candidates; a row whose component lacks the attribute may hold anything.

    Attributes
    ----------
    ints : (a, k) int64
        The attributes that are no floats, in the order of the formulas.
    floats : (b, k) float64
        The others.
    nulls : (a + b, k) bool
        In the order of the formulas.
    """

    ints: Int64
    floats: Float64
    nulls: NDArray[np.bool_]

    def __getitem__(self, chosen: slice | Int64) -> AttributeValues:
        """Return those of some of the candidates."""
        return AttributeValues(self.ints[:, chosen], self.floats[:, chosen], self.nulls[:, chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Rows that arrived together, by ``lower``.

    Attributes
    ----------
    component, partition, lower, upper, event : (k,) int64
        See :meth:`pointbased.PointEvaluation.push`.
    pmf_offset : (k,) int64
        Where the probabilities start in ``pmf``; -1 for uniform.
    pmf : (m,) float64
    values : AttributeValues
    group : (k, p) int64
        For each pool of witnesses the group that is forbidden in the matches of a candidate; -1: none.
    """

    component: Int64
    partition: Int64
    lower: Int64
    upper: Int64
    event: Int64
    pmf_offset: Int64
    pmf: Float64
    values: AttributeValues
    group: Int64

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lower)

    @property
    def first(self) -> int:
        """The tick at which the first of them begins; there is one."""
        return int(self.lower[0])

    def __getitem__(self, chosen: slice | Int64) -> Arrivals:
        """Return some of the rows, which share the probabilities."""
        return Arrivals(
            self.component[chosen],
            self.partition[chosen],
            self.lower[chosen],
            self.upper[chosen],
            self.event[chosen],
            self.pmf_offset[chosen],
            self.pmf,
            self.values[chosen],
            self.group[chosen],
        )

    @classmethod
    def joined(cls, blocks: list[Arrivals]) -> Arrivals:
        """Return the rows of several blocks, of at least one."""
        if len(blocks) == 1:
            return blocks[0]
        shifts = np.cumsum([0, *(len(block.pmf) for block in blocks[:-1])])
        offsets = [
            np.where(block.pmf_offset < 0, block.pmf_offset, block.pmf_offset + shift)
            for block, shift in zip(blocks, shifts.tolist(), strict=True)
        ]
        return cls(
            np.concatenate([block.component for block in blocks]),
            np.concatenate([block.partition for block in blocks]),
            np.concatenate([block.lower for block in blocks]),
            np.concatenate([block.upper for block in blocks]),
            np.concatenate([block.event for block in blocks]),
            np.concatenate(offsets),
            np.concatenate([block.pmf for block in blocks]),
            AttributeValues(
                np.concatenate([block.values.ints for block in blocks], axis=1),
                np.concatenate([block.values.floats for block in blocks], axis=1),
                np.concatenate([block.values.nulls for block in blocks], axis=1),
            ),
            np.concatenate([block.group for block in blocks]),
        )

    def by_lower(self) -> Arrivals:
        """Return the rows in order of their lower bounds."""
        if len(self) < 2 or bool((self.lower[1:] >= self.lower[:-1]).all()):
            return self
        return self[np.argsort(self.lower, kind="stable")]


class WaitingEvents:
    """The rows that no step of the expansion has reached yet.

    Attributes
    ----------
    count : int
        How many.
    """

    __slots__ = ("_blocks", "count")

    def __init__(self) -> None:
        self._blocks = SortedKeyList(key=_first)
        self.count = 0

    def add(self, arrivals: Arrivals) -> None:
        """Let rows wait, of which there are some. O(k log k), O(log n) if they are in order."""
        self._blocks.add(arrivals.by_lower())
        self.count += len(arrivals)

    def due(self, stop: int) -> list[Arrivals]:
        """Return the rows that begin before a tick, in blocks; they wait no longer. O(log n) a block."""
        found: list[Arrivals] = []
        while self._blocks and self._blocks[0].first < stop:
            block: Arrivals = self._blocks.pop(0)
            ready = int(np.searchsorted(block.lower, stop))
            if ready < len(block):
                self._blocks.add(block[ready:])
                block = block[:ready]
            found.append(block)
            self.count -= ready
        return found


def _first(arrivals: Arrivals) -> int:
    return arrivals.first
