"""The events that may stand for a compressed Kleene component, under conditions on times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import CostlyMatchError
from confidence.budget import checkpoint
from confidence.timed.factors import Cells, Factor, TooManyCellsError, law_of
from confidence.timed.forbidden_spans import Grid
from confidence.timed.members import Member, members_of
from uncertain_cep.config.limits import MOST_CELLS_IN_TABLE, MOST_CONFIDENCE_STEPS
from uncertain_cep.weighers.explicit import ExplicitMatches, TooManySpoilersError
from uncertain_cep.weighers.forbidden_events import differences, forbidden_events
from uncertain_cep.weighers.match_model import MatchModel

__all__ = ["ListedEvents", "listed_events"]

Float64 = NDArray[np.float64]


class ListedEvents(NamedTuple):
    """The events that can lie in the only gap of a match of the others.

    Attributes
    ----------
    rows : list of int
    lower, upper : int
        The tight range of the worlds where one does, ticks.
    sums : tuple of 4 float
        See :attr:`confidence.timed.members.Members.sums`.
    """

    rows: list[int]
    lower: int
    upper: int
    sums: tuple[float, float, float, float]


_NOTHING = ListedEvents([], 0, -1, (0.0, 0.0, 0.0, 0.0))


def listed_events(model: MatchModel) -> Iterator[tuple[int, ListedEvents]]:
    """Yield the matches of a model, each once, and what can lie in the gap of each.

    Raises
    ------
    CostlyMatchError
        If the tables of a match have too many cells.
    """
    try:
        parts = model.explicit
    except TooManySpoilersError:
        for half in np.array_split(np.arange(model.count), 2):
            yield from ((int(half[n]), answer) for n, answer in listed_events(model.some(half)))
        return
    for part in parts:
        for k, n in enumerate(part.which.tolist()):
            checkpoint()
            try:
                yield n, _of_match(part, k, bool(len(model.held.start)))
            except TooManyCellsError as error:
                raise CostlyMatchError(n, int(min(error.cells, 2.0**62))) from None


def _of_match(part: ExplicitMatches, k: int, is_mean: bool) -> ListedEvents:
    """Return the events that can lie in the gap of one match of a batch.

    Its own probability matters without any, too, where sums are means over offsets.
    """
    first, last = part.times.first[k], part.times.last[k]
    if (first > last).any():
        return _NOTHING
    grid = Grid(first, last)
    events = list(forbidden_events(part, k))
    if not events and not is_mean:
        return _NOTHING
    cells = Cells(MOST_CONFIDENCE_STEPS, MOST_CELLS_IN_TABLE)
    factors = [Factor((event,), _law(part, k, event)) for event in range(part.shape.total)]
    factors += _bound_differences(part, k, grid, cells)
    # All are of one rule: the gap of the only negation.
    axes = sorted(frozenset[int]().union(*(event.spans[0].times for event in events)))
    weight = law_of(axes, grid.sizes, factors, cells)
    members = members_of(
        [Member(event.lower, event.upper, event.pmf, event.spans[0], event.happened) for event in events],
        axes, weight, grid, cells,
    )  # fmt: skip
    if not members.sums[1] > 0.0:
        return _NOTHING._replace(sums=members.sums)
    factors.append(Factor(tuple(axes), members.some))
    is_first, is_last = part.shape.ends
    possible = {
        event: first[event] + np.flatnonzero(law_of([event], grid.sizes, factors, cells) > 0.0)
        for event in np.flatnonzero(is_first | is_last).tolist()
    }
    lower = min(int(possible[event][0]) for event in np.flatnonzero(is_first).tolist())
    upper = max(int(possible[event][-1]) for event in np.flatnonzero(is_last).tolist())
    rows = [event.row for event, is_present in zip(events, members.present, strict=True) if is_present]
    return ListedEvents(rows, min(lower, members.first), max(upper, members.last), members.sums)


def _law(part: ExplicitMatches, k: int, event: int) -> Float64:
    """Return P(t) for the ticks of an event of a match."""
    first, last = int(part.times.first[k, event]), int(part.times.last[k, event])
    size, offset = float(part.times.size[k, event]), int(part.times.offset[k, event])
    if size > 0.0:
        return np.full(last - first + 1, 1.0 / size)
    return part.pmfs.values[offset + first : offset + last + 1]


def _bound_differences(part: ExplicitMatches, k: int, grid: Grid, cells: Cells) -> Iterator[Factor]:
    """Yield where differences are within their bounds, of those that can be without."""
    for (i, j), (low, high) in differences(part, k):
        smallest, largest = int(grid.first[i] - grid.last[j]), int(grid.last[i] - grid.first[j])
        if i != j and (smallest < low or largest > high):
            axes = (i, j) if i < j else (j, i)
            cells.take(grid.shape(axes))
            yield Factor(axes, grid.meets({(i, j): (low, high)}, axes).astype(np.float64))
