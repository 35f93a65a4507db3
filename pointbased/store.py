"""The candidates that wait for their points, or stand in a prefix, with what the formulas read of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pointbased.automaton import Automaton
from pointbased.config import LEAST_ROWS
from pointbased.match_buffer import (
    CANDIDATE_COLUMNS,
    COMPONENT,
    EVENT,
    EVER,
    LIMIT,
    LOWER,
    NONE,
    PARTITION,
    PMF,
    ROOT,
    SHARED,
    UNSEEN,
    UPPER,
    Candidates,
    longer,
)
from pointbased.waiting import Arrivals

__all__ = ["CandidateStore"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class CandidateStore:
    """Candidates and witnesses in arrays that grow by doubling.

    Parameters
    ----------
    automaton : Automaton

    Attributes
    ----------
    candidates : Candidates
        The first ``count`` rows are in use.
    count : int
    conditions : Conditions
        The formulas with the attribute values of the candidates.
    version : int
        Another one whenever rows came, went or moved.
    """

    __slots__ = (
        "_automaton", "_floats", "_ints", "_nulls", "_pmf_count", "candidates", "conditions", "count",
        "version",
    )  # fmt: skip

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self.count = self.version = 0
        self._pmf_count = 0
        self._ints, self._floats = np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0))
        self._nulls = np.zeros((0, 0), dtype=np.bool_)
        none = np.zeros(0)
        self.candidates = Candidates(
            np.empty((0, CANDIDATE_COLUMNS), dtype=np.int64),
            np.empty((0, automaton.pools), dtype=np.int64),
            none,
            none,
            none,
        )
        self._set_room(LEAST_ROWS)

    def _set_room(self, room: int) -> None:
        """Lay the arrays out for so many candidates, keeping those in use."""
        used = slice(0, self.count)
        old_row, old_group = self.candidates.row, self.candidates.group
        self.candidates = self.candidates._replace(
            row=longer(old_row, self.count, room), group=longer(old_group, self.count, room)
        )
        formulas = self._automaton.formulas
        given, real = formulas.conditions, int(formulas.real.sum())
        self.conditions = formulas.conditions_for(room)
        columns = (
            self.conditions.ints[len(given.ints) :].reshape(len(formulas.real) - real, room),
            self.conditions.floats[len(given.floats) :].reshape(real, room),
            self.conditions.nulls[len(given.nulls) :].reshape(len(formulas.real), room),
        )
        if self.count:
            for new, old in zip(columns, (self._ints, self._floats, self._nulls), strict=True):
                new[:, used] = old[:, used]
        self._ints, self._floats, self._nulls = columns

    def add(self, arrivals: Arrivals) -> None:
        """Append candidates, all those of an event at once."""
        stop = self.count + len(arrivals)
        if stop > len(self.candidates.row):
            self._set_room(max(2 * len(self.candidates.row), stop))
        row = self.candidates.row[self.count : stop]
        row[:, COMPONENT], row[:, PARTITION], row[:, EVENT] = (
            arrivals.component, arrivals.partition, arrivals.event
        )  # fmt: skip
        row[:, LOWER], row[:, UPPER], row[:, LIMIT] = arrivals.lower, arrivals.upper, EVER
        row[:, ROOT] = row[:, PMF] = NONE
        taken = arrivals.component < self._automaton.components
        row[:, SHARED] = False
        row[taken, SHARED] = _repeated(arrivals.event[taken])
        # A witness has no points to match.
        row[:, UNSEEN] = np.where(taken, arrivals.lower, arrivals.upper + 1)
        self.candidates.group[self.count : stop] = arrivals.group
        if len(arrivals.pmf):
            self._add_pmfs(row, arrivals.pmf_offset, arrivals.pmf)
        values = arrivals.values
        self._ints[:, self.count : stop] = values.ints
        self._floats[:, self.count : stop] = values.floats
        self._nulls[:, self.count : stop] = values.nulls
        self.count = stop
        self.version += 1

    def _add_pmfs(self, row: Int64, pmf_offset: Int64, pmf: Float64) -> None:
        explicit = np.flatnonzero(pmf_offset >= 0)
        if not len(explicit):
            return
        sizes = row[explicit, UPPER] - row[explicit, LOWER] + 1
        starts, places = _ranges(pmf_offset[explicit], sizes)
        row[explicit, PMF] = self._pmf_count + starts
        chosen = pmf[places]
        stop = self._pmf_count + len(chosen)
        if stop > len(self.candidates.pmf):
            room = max(2 * len(self.candidates.pmf), stop)
            self.candidates = self.candidates._replace(
                pmf=longer(self.candidates.pmf, self._pmf_count, room),
                below=longer(self.candidates.below, self._pmf_count, room),
                above=longer(self.candidates.above, self._pmf_count, room),
            )
        self.candidates.pmf[self._pmf_count : stop] = chosen
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            one = chosen[start : start + size]
            here = slice(self._pmf_count + start, self._pmf_count + start + size)
            self.candidates.below[here] = np.cumsum(one)
            self.candidates.above[here] = np.cumsum(one[::-1])[::-1]
        self._pmf_count = stop

    def keep(self, number: Int64) -> None:
        """Close the ranks after :func:`pointbased.compaction.compact` moved the rows.

        Parameters
        ----------
        number : (count,) int64
            New row of each candidate, or -1.
        """
        kept = np.flatnonzero(number >= 0)
        self.count = len(kept)
        self.version += 1
        self.candidates.group[: self.count] = self.candidates.group[kept]
        for columns in (self._ints, self._floats, self._nulls):
            columns[:, : self.count] = columns[:, kept]
        row = self.candidates.row[: self.count]
        explicit = np.flatnonzero(row[:, PMF] >= 0)
        sizes = row[explicit, UPPER] - row[explicit, LOWER] + 1
        starts, places = _ranges(row[explicit, PMF], sizes)
        row[explicit, PMF] = starts
        self._pmf_count = len(places)
        for array in (self.candidates.pmf, self.candidates.below, self.candidates.above):
            array[: self._pmf_count] = array[places]


def _repeated(event: Int64) -> NDArray[np.bool_]:
    """Return which serial numbers stand there more than once."""
    order = np.argsort(event, kind="stable")
    same = event[order[1:]] == event[order[:-1]]
    found = np.zeros(len(event), dtype=np.bool_)
    found[order[1:][same]] = True
    found[order[:-1][same]] = True
    return found


def _ranges(first: Int64, sizes: Int64) -> tuple[Int64, Int64]:
    """Return where each range starts when they are put one behind the other, and their members."""
    starts = np.cumsum(sizes) - sizes
    members = np.arange(int(sizes.sum()), dtype=np.int64) + np.repeat(first - starts, sizes)
    return starts, members
