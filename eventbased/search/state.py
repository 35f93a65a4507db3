"""The input, the state and the output of a backtracking search."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CLASS",
    "COMPONENT",
    "FAR",
    "FRESH",
    "INDEX",
    "LEAST",
    "LIMIT",
    "LINKED",
    "LINKING",
    "LOW",
    "PHASE",
    "PRODUCT",
    "TOP",
    "FoundMatches",
    "SearchCandidates",
    "SearchPattern",
    "SearchState",
    "SequenceLimits",
    "Wanted",
    "start_search",
]

PHASE: Final = 0
CLASS: Final = 1
INDEX: Final = 2
LIMIT: Final = 3
COMPONENT: Final = 4

TOP: Final = 0
LOW: Final = 1

PRODUCT: Final = 0
LEAST: Final = 1

LINKED: Final = 0
LINKING: Final = 1

FRESH: Final = -1

FAR: Final = 2**62
"""Beyond any time on the line of the candidates, and so is its negative."""

Int64 = NDArray[np.int64]


class SearchCandidates(NamedTuple):
    """Candidates of the components on one time line, positions not subtracted."""

    first_class: Int64
    class_start: Int64
    class_stop: Int64
    class_longest: Int64
    """(l + 1,) int64 and three times (c,) int64. See :class:`eventbased.layout.Candidates`."""
    lower: Int64
    upper: Int64
    """(n,) int64. Interval bounds, ticks, inclusive; ascending ``lower`` within a class."""
    row: Int64
    """(n,) int64. The event, the same wherever it is a candidate."""
    offset: Int64
    """(n,) int64. Where its probabilities start; -1 for uniform."""
    end: Int64
    """(n,) int64. The latest tick at which it can end: ``upper``, unless it lasts."""
    class_span: Int64
    """(c,) int64. The largest ``end - lower`` of a class."""


class SequenceLimits(NamedTuple):
    """Limits that follow from the candidates of later components of a sequence, ticks."""

    latest: Int64
    """(n,) int64. The latest time at which a candidate can happen and the components behind its own still be
    filled."""
    reach: Int64
    """(n,) int64. Its running maxima within a class."""
    limit: Int64
    """(n,) int64. The latest start of an event that can follow directly; empty if the strategy sets none."""
    begin: Int64
    over: Int64
    """(n,) int64. Bounds by which a candidate is between two others for certain: its interval, or whole ticks
    where sequences break ties within them."""


class SearchPattern(NamedTuple):
    """The shape of a match besides the conditions and the order of components."""

    kleene: NDArray[np.bool_]
    """(l,) bool. Whether a component takes one event or more."""
    is_set: NDArray[np.bool_]
    """(l,) bool. Whether the events of a Kleene component have no order."""
    apart: Int64
    """(l, l) int64, or (0, 0) for no such bounds. By how many ticks an event of the second component ends
    behind the begin of one of the first at least; negative if it may end before."""
    window: int
    """W, ticks."""
    skips_to_next: bool
    """Whether the strategy is skip till next match."""


class Wanted(NamedTuple):
    """The matches that are wanted."""

    least: float
    """Those of a smaller confidence need not be."""
    rank: Int64
    """(n,) int64, or (0,) to look at none. That of each candidate of the first component."""
    last_rank: int
    """Nor need matches be found whose first event has a rank above it."""
    pmf: NDArray[np.float64]
    head: NDArray[np.float64]
    """(m,) float64. Explicit probabilities and their :func:`confidence.running_sums`."""


class FoundMatches(NamedTuple):
    """Matches event by event."""

    start: Int64
    """(m + 1,) int64. The events of match n, in order, are at ``start[n] .. start[n + 1] - 1``."""
    candidate: Int64
    component: Int64
    """(s,) int64. The candidate that each event is, and its component."""


class SearchState(NamedTuple):
    """Where a search stands; arrays for matches of at most d events."""

    depth: Int64
    """(1,) int64. Number of events taken; -1 when there are no more matches of a choice."""
    choice: Int64
    """(1,) int64. Which of the choices given beforehand the search is confined to."""
    frames: Int64
    """(5, d + 1) int64. With so many events taken: phase, class and candidate to go on with, latest start
    allowed, component of the event taken last."""
    earliest: Int64
    """(d,) int64. The earliest time of each event taken, ticks."""
    bounds: Int64
    """(2, d + 1) int64. Of a sequence ``max(lower_i - i)`` and ``min(upper_i - i)``; of a partial order the
    largest earliest and the smallest latest time; ticks."""
    chance: NDArray[np.float64]
    """(2, d + 1) float64. Bounds on the confidence: the product over chains and pairs, and, of a partial
    order, the smallest of two events."""
    links: Int64
    """(2, d + 1) int64. Of a partial order, the bits of the events that another one is linked to, and of
    those that are linked to another one."""
    latest: Int64
    """(d,) int64. Work array."""
    used: NDArray[np.bool_]
    """(rows,) bool. Whether an event is part of the match."""
    taken: Int64
    """(l,) int64. How many partial matches there were whose last event each component has taken."""

    def deeper(self, depth: int) -> SearchState:
        """Return the same state with arrays for matches of up to ``depth`` events, which are more."""
        more = depth - len(self.earliest)

        def wider(array: NDArray[Any], value: float = 0) -> NDArray[Any]:
            return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)], constant_values=value)

        return self._replace(
            frames=wider(self.frames),
            earliest=wider(self.earliest),
            bounds=wider(self.bounds),
            chance=wider(self.chance, 1.0),
            links=wider(self.links),
            latest=wider(self.latest),
        )


def start_search(depth: int, rows: int, length: int) -> SearchState:
    """Return a search that stands before the first match.

    Parameters
    ----------
    depth : int
        Events of a match that there is room for.
    rows : int
        Number of events.
    length : int
        Number of components.
    """
    frames = np.zeros((5, depth + 1), dtype=np.int64)
    frames[COMPONENT, 0] = -1
    bounds = np.zeros((2, depth + 1), dtype=np.int64)
    bounds[:, 0] = -FAR, FAR
    return SearchState(
        depth=np.full(1, -1),
        choice=np.full(1, -1),
        frames=frames,
        earliest=np.zeros(depth, dtype=np.int64),
        bounds=bounds,
        chance=np.ones((2, depth + 1)),
        links=np.zeros((2, depth + 1), dtype=np.int64),
        latest=np.zeros(depth, dtype=np.int64),
        used=np.zeros(rows, dtype=np.bool_),
        taken=np.zeros(length, dtype=np.int64),
    )
