"""The candidates that wait for their points, or stand in a prefix, with what the formulas read of them."""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedKeyList

import pointbased.columns as col
from confidence.config import EVER
from confidence.pools import AttributePool, AttributeValues, PmfPool, grown, repeated
from pointbased.automaton import Automaton
from pointbased.columns import NONE
from pointbased.config import LEAST_ROWS
from pointbased.match_buffer import StoredCandidates

__all__ = ["Arrivals", "CandidateStore", "WaitingEvents"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Arrivals(NamedTuple):
    """Rows that arrived together.

    Attributes
    ----------
    component, partition, lower, upper, event : (k,) int64
        See :meth:`pointbased.PointEvaluation.push`.
    pmf_offset : (k,) int64
        Where the probabilities start in ``pmf``; -1 for uniform.
    group : (k, p) int64
        For each pool of witnesses the group that is forbidden in the matches of a candidate; -1: none.
    values : AttributeValues
    pmf : (m,) float64
    """

    component: Int64
    partition: Int64
    lower: Int64
    upper: Int64
    event: Int64
    pmf_offset: Int64
    group: Int64
    values: AttributeValues
    pmf: Float64

    def of(self, chosen: Int64) -> Arrivals:
        """Return some of the rows, which share the probabilities."""
        rows = (column[chosen] for column in self[:7])
        return Arrivals._make((*rows, self.values.of(chosen), self.pmf))


class WaitingEvents:
    """The rows that no step of the expansion has reached yet (Zhang et al., section 3, step 1).

    No point of an event that begins at ``t_emit`` or later can be matched yet, so until then nothing is done
    for it. Rows wait in the blocks that they were pushed in, the block with the earliest row first.

    Attributes
    ----------
    count : int
        How many rows wait.
    """

    def __init__(self) -> None:
        self._blocks = SortedKeyList(key=itemgetter(0))
        self.count = 0

    def add(self, arrivals: Arrivals) -> None:
        """Let rows wait, of which there are some. O(k + log n)."""
        self._blocks.add((int(arrivals.lower.min()), arrivals))
        self.count += len(arrivals.lower)

    def due(self, stop: int) -> list[Arrivals]:
        """Return the rows that begin before a tick; they wait no longer. O(k + log n) a block of them."""
        due: list[Arrivals] = []
        later_blocks: list[Arrivals] = []
        while self._blocks and self._blocks[0][0] < stop:
            block: Arrivals = self._blocks.pop(0)[1]
            ready = block.lower < stop
            if not ready.all():
                later_blocks.append(block.of(np.flatnonzero(~ready)))
                block = block.of(np.flatnonzero(ready))
            due.append(block)
        self.count -= sum(len(block.lower) for block in (*due, *later_blocks))
        for block in later_blocks:
            self.add(block)
        return due


class CandidateStore:
    """Candidates and witnesses in arrays that grow by doubling.

    Parameters
    ----------
    automaton : Automaton

    Attributes
    ----------
    candidates : StoredCandidates
        The first ``count`` rows are in use.
    count : int
    conditions : Conditions
        The formulas with the attribute values of the candidates.
    values : AttributePool
        These values.
    version : int
        Another one whenever rows came, went or moved.
    """

    def __init__(self, automaton: Automaton) -> None:
        self._components, self._formulas = automaton.components, automaton.formulas
        self.count = self.version = 0
        self._pmfs = PmfPool()
        self.values = AttributePool(automaton.formulas.real)
        self.candidates = StoredCandidates(
            np.zeros((0, col.CANDIDATE_COLUMNS), dtype=np.int64),
            np.zeros((0, automaton.pools), dtype=np.int64),
            *np.zeros((3, 0)),
        )
        self._make_room(LEAST_ROWS)

    def _make_room(self, room: int) -> None:
        row = grown(self.candidates.row, room, axis=0)
        group = grown(self.candidates.group, room, axis=0)
        self.candidates = self.candidates._replace(row=row, group=group)
        fixed = self._formulas.conditions
        self.values.lay_out((fixed.ints, fixed.floats, fixed.nulls), len(row))
        self.conditions = self._formulas.conditions_for(self.values)

    def _set_pmfs(self, row: Int64, start: Int64) -> None:
        row[:, col.PMF] = start
        pool = self._pmfs
        self.candidates = self.candidates._replace(pmf=pool.pmf, head=pool.head, tail=pool.tail)

    def add(self, arrivals: Arrivals) -> None:
        """Append candidates, all those of an event at once."""
        first, self.count = self.count, self.count + len(arrivals.lower)
        self.version += 1
        if self.count > len(self.candidates.row):
            self._make_room(self.count)
        row = self.candidates.row[first : self.count]
        row[:, : col.PMF] = np.stack(arrivals[:5], axis=1)
        row[:, col.ROOT], row[:, col.LIMIT] = NONE, EVER
        taken = arrivals.component < self._components
        row[:, col.SHARED] = False
        row[taken, col.SHARED] = repeated(arrivals.event[taken])
        # A witness has no points to match.
        row[:, col.UNSEEN] = np.where(taken, arrivals.lower, arrivals.upper + 1)
        self._set_pmfs(row, self._pmfs.add(arrivals.lower, arrivals.upper, arrivals.pmf_offset, arrivals.pmf))
        self.candidates.group[first : self.count] = arrivals.group
        self.values.write(first, arrivals.values)

    def keep(self, number: Int64) -> None:
        """Close the ranks after :func:`pointbased.compaction.compact` moved the rows to these numbers."""
        kept = np.flatnonzero(number >= 0)
        self.count = len(kept)
        self.version += 1
        row = self.candidates.row[: self.count]
        self._set_pmfs(row, self._pmfs.keep(row[:, col.LOWER], row[:, col.UPPER], row[:, col.PMF]))
        self.candidates.group[: self.count] = self.candidates.group[kept]
        self.values.keep(kept)
