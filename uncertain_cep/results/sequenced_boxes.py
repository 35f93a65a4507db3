"""P(match, and one of its events in a box), for matches some of whose events sequences put in order.

With records of ordered sources, or where the order of all is known, the law of an event's time in its match
is summed over: weighers of independent times do not know it. All other matches are those of moved events that
know no sequences: posteriors of three events take x0.12 (1,000 ticks) to x0.72 (10 ticks) of the time that
weighers with broken ties take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.operators.sequenced_matches import SequenceWeigher
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.box_parts import Boxes, Confidences, Events

__all__ = ["MovedMatches", "OrderedChains", "SpoilersInOrder"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_LAWS_KEPT: Final = 4096
"""Laws of events in matches with records that are kept while quantiles are looked for."""


class OrderedChains(Confidences):
    """Matches with records of ordered sources, or of events whose order is known throughout.

    Each is one with the probability ``unspoiled``, (k,) float64, where it is in time.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        events: Events,
        sequences: SequencedEvents,
        weigher: SequenceWeigher,
        unspoiled: Float64,
    ) -> None:
        self._events, self._sequences, self._weigher = events, sequences, weigher
        self._unspoiled, self._plan = unspoiled, plan
        self._law = lru_cache(_LAWS_KEPT)(self._summed)

    def _summed(self, match: int, event: int) -> tuple[int, Float64, Float64]:
        """Return the law of an event's time with its match from a first tick on, and its sums."""
        begin, end = self._events.start[match : match + 2].tolist()
        rows, by = self._events.row[begin:end], event - begin
        if self._sequences.is_total and not self._plan.bound.times:
            order = self._sequences.in_order(rows[:, None])[:, 0]
            place = int(np.flatnonzero(order == by)[0])
            chosen = np.unique([0, place, len(rows) - 1])
            rows, by = rows[order[chosen]], int(np.searchsorted(chosen, place))
        counts = np.bincount(self._events.component[begin:end], minlength=len(self._plan.components))
        first, law = self._weigher.law(rows, by, tuple(counts.tolist()))
        law = law * self._unspoiled[match]
        return first, law, np.concatenate(([0.0], np.cumsum(law)))

    def of(self, boxes: Boxes) -> Float64:
        """Return P(match, and one of its events in a box) for each box, (n,) float64."""
        found = np.empty(len(boxes.event))
        events, which = np.unique(boxes.event, return_inverse=True)
        order = np.argsort(which, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(which[order])) + 1)
        for event, mine in zip(events.tolist(), parts, strict=True):
            first, law, sums = self._law(int(boxes.match[mine[0]]), event)
            low, high = boxes.first[mine] - first, boxes.last[mine] - first
            inside = sums[np.clip(high + 1, 0, len(law))] - sums[np.clip(low, 0, len(law))]
            is_tick = (low == high) & (low >= 0) & (low < len(law))
            found[mine] = np.where(is_tick, law[np.clip(low, 0, len(law) - 1)], inside)
        return found

    def centres(self, match: Int64, event: Int64) -> Float64:
        """Return P(match) times an event's mean time given the match, less its first tick, (n,) float64."""
        found = np.empty(len(match))
        for n, (one, own) in enumerate(zip(match.tolist(), event.tolist(), strict=True)):
            first, law, _ = self._law(one, own)
            found[n] = (law * (np.arange(len(law)) + (first - int(self._events.lower[own])))).sum()
        return found


class SpoilersInOrder:
    """Events that could spoil matches in a known order, by their times.

    Parameters
    ----------
    groups : callable
        Yields matches with confidences that know which events spoil them.
    """

    def __init__(self, groups: Callable[[], Iterator[tuple[Int64, Confidences]]]) -> None:
        self._groups = groups

    @cached_property
    def _known(self) -> list[tuple[Int64, Confidences]]:
        return list(self._groups())

    def in_between(self, match: Int64) -> tuple[Int64, Int64]:
        """Return the events that could spoil matches: the matches, and the rows, both (k,)."""
        parts = [(match[:0], match[:0])]
        parts += [confidences.in_between(match[np.isin(match, group)]) for group, confidences in self._known]
        spoiled, row = (np.concatenate(column) for column in zip(*parts, strict=True))
        return spoiled, row

    def beside(self, confidences: Confidences) -> Confidences:
        """Return confidences of matches that know these events."""
        return _KnownSpoilers(confidences, self)


class _KnownSpoilers(Confidences):
    """Confidences of matches, and events that could spoil them."""

    def __init__(self, confidences: Confidences, spoilers: SpoilersInOrder) -> None:
        self._confidences, self._spoilers = confidences, spoilers

    def of(self, boxes: Boxes) -> Float64:
        return self._confidences.of(boxes)

    def centres(self, match: Int64, event: Int64) -> Float64:
        return self._confidences.centres(match, event)

    def in_between(self, match: Int64) -> tuple[Int64, Int64]:
        return self._spoilers.in_between(match)


class MovedMatches:
    """Matches of as many events, with as many that may share a tick with the one ahead, as if apart."""

    def __init__(
        self, events: Events, sequences: SequencedEvents, weigher: SequenceWeigher, some: Int64, size: int
    ) -> None:
        place = events.start[some] + np.arange(size)[:, None]
        rows = events.row[place]
        self.rows = rows.ravel()
        """(n,) int64. The row of each event, which is moved by itself."""
        self.clocks, shift = weigher.moved(rows)
        self.lower = (sequences.lower + sequences.low)[self.rows] + shift.ravel()
        self.upper = (sequences.upper + sequences.high)[self.rows] + shift.ravel()
        """Each (n,) int64. The times of these, ticks."""
        own, turned = np.arange(rows.size).reshape(rows.shape).T.ravel(), place.T.ravel()
        self.events = Events(
            np.arange(len(some) + 1) * size, events.component[turned], own, self.lower[own], self.upper[own],
            events.offset[turned],
        )  # fmt: skip
        self._some, self._size, self._start, self._shift = some, size, events.start, shift.T.ravel()

    def selection(self, components: int) -> Selection:
        """Return the events as candidates of so many components, those of each match a partition."""
        mine = [np.flatnonzero(self.events.component == j) for j in range(components)]
        return Selection(
            tuple(self.events.row[own] for own in mine),
            tuple(self.events.lower[own] for own in mine),
            tuple(self.events.upper[own] for own in mine),
            tuple(own // self._size for own in mine),
            len(self._some),
        )

    def back(self, confidences: Confidences) -> Confidences:
        """Return confidences of matches by those of the matches moved."""
        return _Unshifted(confidences, self)

    def moved(self, match: Int64, event: Int64) -> tuple[Int64, Int64, Int64]:
        """Return matches and events by their numbers here, and by how much the events are moved."""
        here = np.searchsorted(self._some, match)
        own = here * self._size + event - self._start[match]
        return here, own, self._shift[own]


class _Unshifted(Confidences):
    """Confidences of matches whose events were moved."""

    def __init__(self, confidences: Confidences, moved: MovedMatches) -> None:
        self._confidences, self._moved = confidences, moved

    def of(self, boxes: Boxes) -> Float64:
        match, event, shift = self._moved.moved(boxes.match, boxes.event)
        return self._confidences.of(Boxes(match, event, boxes.first + shift, boxes.last + shift))

    def centres(self, match: Int64, event: Int64) -> Float64:
        return self._confidences.centres(*self._moved.moved(match, event)[:2])
