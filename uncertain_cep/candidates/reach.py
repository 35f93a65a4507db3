"""Candidates of a sample that can be in order within the window, counted and drawn by sorting.

With positions subtracted an event can be before another within the window iff it begins before the other
ends, and the other begins within the window of its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Lifted",
    "Sample",
    "count_pairs",
    "count_third",
    "draw_more",
    "draw_pairs",
    "lift",
    "met_by_any",
]

Int64 = NDArray[np.int64]

_LONGEST_SAMPLED_LINE: Final = 2**60
"""Longest line of ticks that the partitions of a sample are laid out on."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Some candidates of one component."""

    rows: Int64
    """(m,) int64. Rows of the table, ascending."""
    low: Int64
    high: Int64
    """Each (m,) int64. The intervals, ticks, the component's position subtracted."""
    group: Int64
    """(m,) int64. Candidates of different groups are out of each other's reach."""


@dataclass(frozen=True, slots=True)
class Lifted:
    """The candidates of a sample on one line, where no window reaches from one group to the next."""

    rows: Int64
    low: Int64
    high: Int64
    """Each (m,) int64. Of every candidate of the sample."""
    by_low: Int64
    """(k,) int64. The places of those that take part, by their low."""
    sorted_low: Int64
    sorted_high: Int64
    """Each (k,) int64."""
    longest: int
    """Largest ``high - low``."""
    window: int
    """How far behind a high a low may be."""


def lift(
    sample: Sample, groups: int, span: tuple[int, int], window: int, among: NDArray[np.bool_] | None = None
) -> Lifted:
    """Return a sample of groups 0..groups-1 on one line; ``among``, (m,) bool, says who takes part.

    ``span`` is the first low and the last high of all samples that are looked at together.
    """
    length, scale = span[1] - span[0] + window + 2, 1
    # What does not fit on one line is looked at through a coarser clock.
    while (length // scale + 2) * groups > _LONGEST_SAMPLED_LINE:
        scale *= 2
    base = sample.group * (length // scale + 2)
    low = (sample.low - span[0]) // scale + base
    high = (sample.high - span[0]) // scale + base
    places = np.argsort(low, kind="stable")
    if among is not None:
        places = places[among[places]]
    longest = int((high - low).max()) if len(low) else 0
    return Lifted(
        sample.rows, low, high, places, low[places], np.sort(high[places]), longest, window // scale
    )


def count_pairs(first: Lifted, second: Lifted, *, shared: bool, anyhow: bool = False) -> int:
    """Return how many pairs can be in this order within the window; with ``anyhow`` in any order. O(m log m).

    With ``shared`` one event may be a candidate of both; it makes no pair with itself.
    """
    back = first.window if anyhow else 0
    begins = np.searchsorted(second.sorted_low, first.sorted_high + first.window, side="right").sum()
    # Who ends before the other begins also begins before that.
    ends = np.searchsorted(second.sorted_high, first.sorted_low - back, side="left").sum()
    count = int(begins - ends)
    if shared:
        _, left, right = np.intersect1d(
            first.rows[first.by_low], second.rows[second.by_low], assume_unique=True, return_indices=True
        )
        count -= int((first.sorted_low[left] - back <= second.high[second.by_low[right]]).sum())
    return count


def met_by_any(
    lower: Int64, reach: Int64, low: Int64, high: Int64, ahead: int, behind: int
) -> NDArray[np.bool_]:
    """Return a mask of the intervals in reach of at least one of some others, (n,) bool. O(n log m).

    Parameters
    ----------
    lower : (m,) int64
        Where the others begin, ascending; m > 0.
    reach : (m,) int64
        The latest end of each of them and those before it.
    low, high : (n,) int64
        The intervals; in reach are those with ``lower + ahead <= high`` and ``low + behind <= upper``.
    """
    # Of those that are not too late for an interval, one must not be too early.
    ranks = np.searchsorted(lower, high - ahead, side="right")
    return np.asarray((ranks > 0) & (reach[np.maximum(ranks, 1) - 1] >= low + behind))


def _ranges(first: Lifted, places: Int64, second: Lifted) -> tuple[Int64, Int64]:
    """Return between which places of ``second.by_low`` some of ``first`` find those in their reach."""
    start = np.searchsorted(second.sorted_low, first.low[places] - second.longest, side="left")
    stop = np.searchsorted(second.sorted_low, first.high[places] + first.window, side="right")
    return start, np.maximum(start, stop)


def draw_pairs(first: Lifted, second: Lifted, limit: int, rng: np.random.Generator) -> tuple[Int64, Int64]:
    """Return pairs that can be in this order within the window, all if they are few.

    Of ``limit`` pairs that a search by the longest interval finds, the ones in reach are returned: their
    places in the samples, each (p,) int64. Every pair is as likely to be drawn.
    """
    start, stop = _ranges(first, first.by_low, second)
    ends = np.cumsum(stop - start)
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return first.by_low[:0], first.by_low[:0]
    # Ascending, so that one search goes on from the other.
    drawn = np.arange(total) if total <= limit else np.sort(rng.integers(0, total, limit))
    owner = np.searchsorted(ends, drawn, side="right")
    place = drawn - (ends[owner] - (stop - start)[owner]) + start[owner]
    left, right = first.by_low[owner], second.by_low[place]
    fits = (second.high[right] >= first.low[left]) & (first.rows[left] != second.rows[right])
    return left[fits], right[fits]


def count_third(chosen: tuple[Int64, Int64], parts: tuple[Lifted, Lifted, Lifted]) -> int:
    """Return how many candidates of a third component can follow pairs of the first two, summed.

    ``chosen`` are the places of the pairs in the samples, each (p,) int64.
    """
    first, second, third = parts
    left, right = chosen
    latest = np.minimum(first.high[left], second.high[right]) + first.window
    earliest = np.maximum(first.low[left], second.low[right])
    begins = np.searchsorted(third.sorted_low, latest, side="right").sum()
    return int(begins - np.searchsorted(third.sorted_high, earliest, side="left").sum())


def draw_more(
    chosen: dict[int, Int64], lifted: Sequence[Lifted], j: int, rng: np.random.Generator
) -> dict[int, Int64]:
    """Return choices of candidates with one more each, where one is drawn that is in reach of all.

    ``chosen`` has the places, (p,) int64, for each component so far, all before ``j``.
    """
    first, second = next(iter(chosen)), lifted[j]
    start, stop = _ranges(lifted[first], chosen[first], second)
    place = start + (rng.random(len(start)) * (stop - start)).astype(np.int64)
    has_partner = stop > start
    taken = second.by_low[place[has_partner]]
    chosen = {component: places[has_partner] for component, places in chosen.items()}
    fits = np.ones(len(taken), dtype=np.bool_)
    for i, places in chosen.items():
        other = lifted[i]
        fits &= (other.low[places] <= second.high[taken]) & (other.rows[places] != second.rows[taken])
        fits &= second.low[taken] <= other.high[places] + other.window
    return {component: places[fits] for component, places in {**chosen, j: taken}.items()}
