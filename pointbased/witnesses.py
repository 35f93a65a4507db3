"""Events that take part in no match and may be forbidden in its gaps: those of negation and of contiguity."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

import pointbased.columns as col
from confidence.config import EVER, NEVER
from confidence.flat_lists import starts_of
from confidence.kernel import kernel
from pointbased.match_buffer import StoredCandidates

__all__ = ["Witnesses", "index_witnesses", "set_limits", "span_of", "without"]


class Witnesses(NamedTuple):
    """Witnesses by pool and group, those of a group by ``lower``.

    Attributes
    ----------
    row : (w,) int64
        Rows of the candidates.
    lower : (w,) int64
        Ticks.
    highest : (w,) int64
        The largest ``upper`` of a group up to each, ticks.
    smallest : (w,) int64
        The smallest ``upper`` of a group from each on, ticks.
    start : (pools * groups + 1,) int64
        Where each group starts.
    groups : int
    """

    row: Any
    lower: Any
    highest: Any
    smallest: Any
    start: Any
    groups: int


def index_witnesses(candidates: StoredCandidates, count: int, components: int, pools: int) -> Witnesses:
    """Return the witnesses among the first ``count`` candidates; those of pool 0 are of ``components``."""
    row = candidates.row[:count]
    rows = np.flatnonzero(row[:, col.COMPONENT] >= components)
    group = row[rows, col.PARTITION]
    groups = int(group.max(initial=-1)) + 1
    key = (row[rows, col.COMPONENT] - components) * groups + group
    order = np.lexsort((row[rows, col.LOWER], key))
    rows = rows[order]
    start = np.searchsorted(key[order], np.arange(pools * groups + 1)).astype(np.int64)
    upper = row[rows, col.UPPER]
    highest, smallest = np.empty_like(upper), np.empty_like(upper)
    _extremes(upper, start, highest, smallest)
    return Witnesses(rows, row[rows, col.LOWER], highest, smallest, start, groups)


def without(witnesses: Witnesses, pools: Collection[int]) -> Witnesses:
    """Return the witnesses that are in none of some pools. O(n)."""
    sizes = np.diff(witnesses.start)
    left_out = np.isin(np.arange(len(sizes)) // max(witnesses.groups, 1), list(pools))
    kept = ~np.repeat(left_out, sizes)
    start = starts_of(np.where(left_out, 0, sizes))
    row, lower, highest, smallest = (column[kept] for column in witnesses[:4])
    return Witnesses(row, lower, highest, smallest, start, witnesses.groups)


@kernel
def _extremes(upper, start, highest, smallest):
    for g in range(start.shape[0] - 1):
        best = NEVER
        for x in range(start[g], start[g + 1]):
            best = max(best, upper[x])
            highest[x] = best
        best = EVER
        for x in range(start[g + 1] - 1, start[g] - 1, -1):
            best = min(best, upper[x])
            smallest[x] = best


@kernel
def span_of(witnesses, pool, group, above, until):
    """Return the span, begin and end, of the witnesses that may end after a tick and begin before another.

    Parameters
    ----------
    witnesses : Witnesses
    pool, group : int64
    above, until : int64
        The two ticks.
    """
    if group < 0 or group >= witnesses.groups:
        return 0, 0
    start = witnesses.start[pool * witnesses.groups + group]
    stop = witnesses.start[pool * witnesses.groups + group + 1]
    begin = start + np.searchsorted(witnesses.highest[start:stop], above, side="right")
    return begin, max(begin, start + np.searchsorted(witnesses.lower[start:stop], until))


@kernel
def set_limits(candidates, count, components, witnesses, pool):
    """Set for each candidate the last tick of an event that can follow directly.

    Of the witnesses that begin after it ends, the first that is over: an event behind that has it in between.

    Parameters
    ----------
    candidates : StoredCandidates
    count, components : int64
        Candidates in use, and components of the pattern.
    witnesses : Witnesses
    pool : int64
        That of contiguity.
    """
    row = candidates.row
    for c in range(count):
        if row[c, col.COMPONENT] >= components:
            continue
        row[c, col.LIMIT] = EVER
        group = candidates.group[c, pool]
        if 0 <= group < witnesses.groups:
            start = witnesses.start[pool * witnesses.groups + group]
            stop = witnesses.start[pool * witnesses.groups + group + 1]
            x = start + np.searchsorted(witnesses.lower[start:stop], row[c, col.UPPER], side="right")
            if x < stop:
                row[c, col.LIMIT] = witnesses.smallest[x]
