"""Candidates in parts that share no match, each to be evaluated by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.tuning import (
    EVEN_PARTS_PER_THREAD,
    LEAST_PART,
    MOST_IN_FEW_PARTS,
    MOST_REPEATED,
    PARTS_PER_THREAD,
    UNEVEN_PARTS,
)
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.running.threads import equal_ranges

__all__ = ["parts_of"]

Int64 = NDArray[np.int64]


def parts_of(plan: EvaluationPlan, selection: Selection, threads: int) -> list[Callable[[], Selection]]:
    """Return functions that each return a part of the candidates, so that every match is in just one part.

    A part has some events of the plan's owner, neighbours in time, and of the other components all events
    that can be in a match with one of them: any two times of a match are within the window. Where that
    repeats too many events, a part is some partitions with all their events. Where there are too few
    partitions for that, the owner's events are shared out and the others' are in every part.

    Parameters
    ----------
    plan : EvaluationPlan
        Without OR.
    selection : Selection
        Not empty.
    threads : int
        At least 1. How many parts there are depends on it and on the number of candidates.

    Notes
    -----
    O(n) where the candidates of each component come sorted by lower bound, else O(n log n).
    """
    total = sum(selection.sizes)
    count = min(PARTS_PER_THREAD * threads, total // LEAST_PART)
    if threads < 2 or count < 2:
        return [lambda: selection]
    # The events of a Kleene component that come first are among those that come later.
    by_owner = not plan.components[plan.owner].kleene
    in_time = _InTime.of(selection, plan) if by_owner else None
    if in_time is not None:
        cuts = in_time.cuts(count)
        fewer = min(EVEN_PARTS_PER_THREAD * threads, count)
        if len(cuts) == count > fewer and total < MOST_IN_FEW_PARTS and in_time.are_even(cuts):
            cuts = _merged(cuts, fewer)
        if len(cuts) and int((cuts[:, 1] - cuts[:, 0]).sum()) <= MOST_REPEATED * total:
            return in_time.parts(cuts)
    if selection.partitions >= PARTS_PER_THREAD * threads:
        return _partition_ranges(selection, count)
    if in_time is None:
        return [lambda: selection]
    return in_time.parts(in_time.cuts(threads))


@dataclass(frozen=True, slots=True)
class _InTime:
    """Candidates sorted by their lower bounds, and how they are cut."""

    selection: Selection
    owner: int
    window: int

    @classmethod
    def of(cls, selection: Selection, plan: EvaluationPlan) -> _InTime:
        """Sort some candidates."""
        if not all(spread.ascends for spread in selection.spreads):
            selection = selection.take([np.argsort(part, kind="stable") for part in selection.lower])
        return cls(selection, plan.owner, plan.window)

    def cuts(self, count: int) -> Int64:
        """Return about equally many events of the owner in each part, and what is in reach of them.

        Returns
        -------
        (parts, 2, l) int64
            The first candidate of each component, and the one behind the last. Parts without candidates of
            some component are left out.
        """
        selection, owner = self.selection, self.owner
        lower = selection.lower
        ranges = equal_ranges(len(lower[owner]), min(count, len(lower[owner])))
        edges = np.array([0, *(part.stop for part in ranges)], dtype=np.int64)
        earliest, latest = selection.extremes
        reach = min(self.window, latest - earliest)
        first = lower[owner][edges[:-1]] - reach
        last = np.maximum.reduceat(selection.upper[owner], edges[:-1]) + reach
        cuts = np.empty((len(first), 2, len(lower)), dtype=np.int64)
        for j, (part, spread) in enumerate(zip(lower, selection.spreads, strict=True)):
            cuts[:, 0, j] = np.searchsorted(part, first - spread.longest, "left")
            cuts[:, 1, j] = np.searchsorted(part, last, "right")
        cuts[:, 0, owner], cuts[:, 1, owner] = edges[:-1], edges[1:]
        return cuts[(cuts[:, 0] < cuts[:, 1]).all(axis=1)]

    def are_even(self, cuts: Int64) -> bool:
        """Return whether parts in which the owner has equally many events take about as long.

        An event of it has as many matches as the others have events in a window, multiplied.
        """
        matches = np.ones(len(cuts))
        for j, lower in enumerate(self.selection.lower):
            if j != self.owner:
                begin, end = cuts[:, 0, j], cuts[:, 1, j]
                matches *= (end - begin) / (lower[end - 1] - lower[begin] + float(self.window))
        return bool(matches.max() < UNEVEN_PARTS * matches.mean())

    def parts(self, cuts: Int64) -> list[Callable[[], Selection]]:
        """Return a function for each part, which returns it."""
        return [
            partial(self.selection.stretch, [slice(*ends) for ends in zip(*cut, strict=True)])
            for cut in cuts.tolist()
        ]


def _merged(cuts: Int64, count: int) -> Int64:
    """Return so many parts, each of about as many neighbours among some, as :meth:`_InTime.cuts` does."""
    first = [part.start for part in equal_ranges(len(cuts), count)]
    begin, end = np.minimum.reduceat(cuts[:, 0], first), np.maximum.reduceat(cuts[:, 1], first)
    return np.stack((begin, end), axis=1)


def _partition_ranges(selection: Selection, count: int) -> list[Callable[[], Selection]]:
    """Return some partitions in each part, with about equally many candidates."""
    assert selection.partition is not None
    held = sum(np.bincount(numbers, minlength=selection.partitions) for numbers in selection.partition)
    before = np.cumsum(held)
    edges = np.unique(np.searchsorted(before, np.linspace(0, before[-1], count + 1)[1:-1]) + 1)
    bounds = [0, *edges.tolist(), selection.partitions]
    return [
        lambda begin=begin, end=end: selection.of_partitions(begin, end)  # type: ignore[misc]
        for begin, end in pairwise(bounds)
        if begin < end
    ]
