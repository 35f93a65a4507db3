"""Stream expansion (Zhang et al., section 3, step 1): a point event for each tick of every event.

What waits for its time are the intervals, rather than their points: those that have not begun in
:mod:`pointbased.store`, the others each with the first tick not expanded yet. The points of a step are
made, put in order and dropped.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

import pointbased.columns as col
from confidence.kernel import kernel
from pointbased.match_buffer import StoredCandidates
from pointbased.runs import probability

__all__ = ["PointEvents", "expand", "next_step"]

RANKS: Final = 2.0**62
"""More ranks than these are not counted out: points are put in order by one column after the other."""

POINTS_PER_STEP: Final = 1 << 14
"""About as many point events are expanded, matched and dropped before the next ones."""


class PointEvents(NamedTuple):
    """Candidates at exact times, by time, then partition, then component from the last to the first.

    Attributes
    ----------
    time : (m,) int64
        Ticks.
    candidate : (m,) int64
        Row of the candidate.
    """

    time: Any
    candidate: Any


@kernel
def _points_before(candidates, count, stop):
    """Return how many ticks before ``stop`` no candidate was expanded into yet, and the first of them."""
    row = candidates.row
    total = 0
    first = stop
    for c in range(count):
        ticks = min(row[c, col.UPPER] + 1, stop) - row[c, col.UNSEEN]
        if ticks > 0:
            total += ticks
            first = min(first, row[c, col.UNSEEN])
    return total, first


@kernel(allocates=True)
def _points_until(candidates, count, stop, components, partitions):
    """Return times, candidates and ranks of the points before ``stop`` not expanded yet, and expand them.

    By ascending rank they are in order; there are no ranks if they do not fit in int64.
    """
    row = candidates.row
    total, begin = _points_before(candidates, count, stop)
    time = np.empty(total, np.int64)
    candidate = np.empty(total, np.int64)
    ranked = float(stop - begin) * float(partitions) * float(components) < RANKS
    rank = np.empty(total if ranked else 0, np.int64)
    n = 0
    for c in range(count):
        first = row[c, col.UNSEEN]
        last = min(row[c, col.UPPER] + 1, stop)
        for t in range(first, last):
            if row[c, col.PMF] < 0 or probability(candidates, c, t) > 0.0:
                time[n] = t
                candidate[n] = c
                if ranked:
                    # One number to sort by takes a third of the time that three do.
                    group = (t - begin) * partitions + row[c, col.PARTITION]
                    rank[n] = group * components + components - 1 - row[c, col.COMPONENT]
                n += 1
        row[c, col.UNSEEN] = max(first, last)
    return time[:n], candidate[:n], rank[:n]


def expand(
    candidates: StoredCandidates, count: int, stop: int, components: int, partitions: int
) -> PointEvents:
    """Expand candidates into the points before a tick, exclusive, that they were not expanded into before.

    Ticks of probability 0 are left out. O(n + m log m).
    """
    time, candidate, rank = _points_until(candidates, count, stop, components, partitions)
    if len(time) < 2:
        return PointEvents(time, candidate)
    if len(rank):
        order = np.argsort(rank, kind="stable")
    else:
        row = candidates.row[candidate]
        order = np.lexsort((-row[:, col.COMPONENT], row[:, col.PARTITION], time))
    return PointEvents(time[order], candidate[order])


def next_step(candidates: StoredCandidates, count: int, stop: int) -> int | None:
    """Return up to which tick, at most ``stop``, to expand next so that few points are made at once.

    None if there is no point to expand before ``stop``.
    """
    points, first = _points_before(candidates, count, stop)
    if not points:
        return None
    if points <= POINTS_PER_STEP:
        return stop
    low, high = int(first) + 1, max(stop - 1, int(first) + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if _points_before(candidates, count, middle)[0] <= POINTS_PER_STEP:
            low = middle
        else:
            high = middle - 1
    return low
