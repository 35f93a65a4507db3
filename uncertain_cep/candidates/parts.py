"""Candidates in parts that share no match, each to be evaluated by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config import (
    EVEN_PARTS_PER_THREAD,
    LEAST_PART,
    MOST_IN_FEW_PARTS,
    MOST_REPEATED,
    PARTS_PER_THREAD,
    UNEVEN_PARTS,
)
from uncertain_cep.plan import EvaluationPlan

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
    in_time = _InTime.of(selection) if by_owner else None
    ranges = [] if in_time is None else in_time.ranges(plan, count)
    fewer = min(EVEN_PARTS_PER_THREAD * threads, count)
    if (
        in_time is not None
        and len(ranges) == count > fewer
        and total < MOST_IN_FEW_PARTS
        and _even(ranges, plan)
    ):
        ranges = in_time.ranges(plan, fewer)
    if ranges and sum(sum(part.sizes) for part in ranges) <= MOST_REPEATED * total:
        return [lambda part=part: part for part in ranges]  # type: ignore[misc]
    if selection.partitions >= PARTS_PER_THREAD * threads:
        return _partition_ranges(selection, count)
    if in_time is None:
        return [lambda: selection]
    return [lambda part=part: part for part in in_time.ranges(plan, threads)]  # type: ignore[misc]


def _even(ranges: list[Selection], plan: EvaluationPlan) -> bool:
    """Return whether parts in which the owner has equally many events take about as long.

    An event of it has as many matches as the others have events in a window, multiplied.
    """
    others = [j for j in range(len(plan.components)) if j != plan.owner]
    matches = np.array(
        [
            math.prod(
                len(part.lower[j]) / float(part.lower[j][-1] - part.lower[j][0] + plan.window) for j in others
            )
            for part in ranges
        ]
    )
    return bool(matches.max() < UNEVEN_PARTS * matches.mean())


@dataclass(frozen=True, slots=True)
class _InTime:
    """Candidates sorted by their lower bounds."""

    selection: Selection
    longest: tuple[int, ...]
    """The largest ``upper - lower`` of each component, ticks."""

    @classmethod
    def of(cls, selection: Selection) -> _InTime:
        """Sort some candidates."""
        if not all(spread.ascends for spread in selection.spreads):
            selection = selection.take([np.argsort(part, kind="stable") for part in selection.lower])
        return cls(selection, tuple(spread.longest for spread in selection.spreads))

    def ranges(self, plan: EvaluationPlan, count: int) -> list[Selection]:
        """Return about equally many events of the owner in each part, and what is in reach of them."""
        selection, owner = self.selection, plan.owner
        lower = selection.lower
        edges = np.unique(np.linspace(0, len(lower[owner]), count + 1).astype(np.int64))
        earliest, latest = selection.extremes
        reach = min(plan.window, latest - earliest)
        parts = []
        for begin, end in pairwise(edges.tolist()):
            first = int(lower[owner][begin]) - reach
            last = int(selection.upper[owner][begin:end].max()) + reach
            chosen = [
                slice(
                    int(np.searchsorted(part, first - longest, "left")),
                    int(np.searchsorted(part, last, "right")),
                )
                for part, longest in zip(lower, self.longest, strict=True)
            ]
            chosen[owner] = slice(begin, end)
            part = selection.take(chosen)
            if not part.empty:
                parts.append(part)
        return parts


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
