"""P(match, and one of its events in a box), for sequences some of whose events share a clock.

An event that is certain but for its clock's offset is in a box where the offset is in one, so the confidence
of the match with these offsets alone, times their share, is what is asked. Beside weighers that hold offsets
posteriors of three events take a third of the time at 10 ticks, 1/300 at 100 and 1/6000 at 2,000.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence.shared.rigid import conditions
from confidence.shared.weighing import RigidEvents, RigidMatches, share_a_clock
from uncertain_cep.candidates.own_times import SharedClocks
from uncertain_cep.operators.shared_clocks import too_many_offsets
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.box_parts import Boxes, Confidences, Events, pieces_of
from uncertain_cep.results.piecewise import weighted_sums

__all__ = ["ClockedChains", "shared_and_held"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


def shared_and_held(clocks: SharedClocks, rows: Int64) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks, (n,) bool: several certain events of a clock, and offsets to be held.

    Held are those of events that are uncertain by their clocks, too, or that clocks tie to events with
    probabilities. ``rows``, (l, n), are the events of the matches.
    """
    tied = share_a_clock(clocks.own.clock[rows])
    uneven = clocks.has_law[rows]
    held = (uneven & (clocks.own.clock[rows] >= 0)).any(axis=0) | (tied & uneven.any(axis=0))
    return tied & ~held, held


class ClockedChains(Confidences):
    """Matches of as many events, some of which share a clock."""

    def __init__(self, plan: EvaluationPlan, events: Events, size: int, clocks: SharedClocks) -> None:
        self._events, self._size, self._window, self._clocks = events, size, plan.window, clocks.rigid()
        self._shared = clocks

    def of(self, boxes: Boxes) -> Float64:
        """Return P(match, and one of its events in a box) for each box, (n,) float64."""
        return np.concatenate([self._some(boxes.part(part)) for part in pieces_of(np.ones_like(boxes.match))])

    def _some(self, boxes: Boxes) -> Float64:
        clocks, each = self._clocks, len(boxes.match)
        chosen = self._events.start[boxes.match] + np.arange(self._size)[:, None]
        rows, own = self._events.row[chosen], self._events.row[boxes.event]
        moved = (clocks.clock[rows] == clocks.clock[own]) & (clocks.clock[rows] >= 0)
        moved[boxes.event - self._events.start[boxes.match], np.arange(each)] = True
        begin = clocks.lower[rows]
        low = begin + np.where(moved, boxes.first - clocks.lower[own], 0)
        high = np.where(moved, begin + boxes.last - clocks.lower[own], clocks.upper[rows])
        found = np.empty(each, np.int64), np.empty(each, np.int64), np.zeros(each)
        events = RigidEvents(clocks.clock[rows].ravel(), low.ravel(), high.ravel())
        chosen = np.arange(rows.size).reshape(rows.shape)
        RigidMatches(chosen, self._window, events, *found).weigh((0, each), True)
        if np.isnan(found[2]).any():
            several = clocks.clock[rows[:, np.argmax(np.isnan(found[2]))]]
            raise too_many_offsets(self._shared, np.unique(several[several >= 0]))
        share: Float64 = (boxes.last - boxes.first + 1) / (clocks.upper[own] - clocks.lower[own] + 1)
        return found[2] * share

    def centres(self, match: Int64, event: Int64) -> Float64:
        """Return P(match) times an event's mean time given the match, less its first tick, (n,) float64."""
        found = [self._ends_and_breaks(*pair) for pair in zip(match.tolist(), event.tolist(), strict=True)]
        most = max((len(breaks) for _, _, breaks, _ in found), default=0)
        breaks = np.array([[*breaks, *[begin] * (most - len(breaks))] for begin, _, breaks, _ in found])
        begin, end = (np.array([one[side] for one in found], np.int64) for side in (0, 1))
        length = max((clocks for *_, clocks in found), default=1)

        def law(pair: Int64, tick: Int64) -> Float64:
            return self.of(Boxes(match[pair], event[pair], tick, tick))

        first = self._events.lower[event]
        return weighted_sums(first, begin, end, breaks.reshape(-1, most).T.astype(np.int64), length, law)

    def _ends_and_breaks(self, match: int, event: int) -> tuple[int, int, list[int], int]:
        """Return the first and last tick of an event in its match, breaks of its law, and how many clocks.

        A corner of what is feasible has conditions that hold with equality along a path from the origin to
        each offset: where those are for the event's offset, another polynomial begins.
        """
        clocks = self._clocks
        rows = self._events.row[self._events.start[match] : self._events.start[match] + self._size]
        names = np.where(clocks.clock[rows] >= 0, clocks.clock[rows], -1 - np.arange(self._size))
        _, first, source = np.unique(names, return_index=True, return_inverse=True)
        # As if a clock's first event were its zero.
        reading = clocks.lower[rows]
        high = clocks.upper[rows[first]] - reading[first]
        low = np.zeros_like(high)
        step = np.ones(self._size, np.int64)
        step[0] = 0
        least = np.empty((len(first) + 1, len(first) + 1), np.int64)
        conditions(reading, source, step, self._window, low, high, least)
        own = event - int(self._events.start[match])
        at, here = int(source[own]), int(reading[own])
        asked: dict[tuple[int, int], int] = {}
        ends = zip([*source[:-1], source[-1]], [*source[1:], source[0]], strict=True)
        gaps = [*(reading[:-1] - reading[1:] + 1), reading[-1] - reading[0] - self._window + 1]
        for (a, b), gap in zip(ends, gaps, strict=True):
            if a != b:
                asked[int(a), int(b)] = max(int(gap), asked.get((int(a), int(b)), int(gap)))
        breaks: set[int] = set()
        paths = [(at, here, frozenset([at]))]
        while paths:
            node, behind, seen = paths.pop()
            breaks |= {int(low[node]) + behind, int(high[node]) + behind}
            for (a, b), gap in asked.items():
                if b == node and a not in seen:
                    paths.append((a, behind + gap, seen | {a}))
                if a == node and b not in seen:
                    paths.append((b, behind - gap, seen | {b}))
        begin, end = int(least[-1, at]) + here, here - int(least[at, -1])
        return begin, end, sorted(breaks), len(first)
