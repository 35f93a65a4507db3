"""The events that decide on matches: their own, and those that may lie in their gaps; and their clocks."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.arrays import largest, smallest
from confidence.budget import checkpoint, steps_per_call
from confidence.chain.distribution import Intervals
from confidence.gaps.chains import room_for
from confidence.kernel import kernel
from confidence.predicates.conditions import Conditions, Scratch
from confidence.shared.held import OwnTimes
from eventbased.gaps.gap_events import (
    ForbiddenEvents,
    GapEvents,
    GapRules,
    Gathered,
    MatchEvents,
    Placed,
    collect,
    forbidden_in,
    take_match,
    unmark,
)

__all__ = ["SEVERAL", "GapCandidates", "InReach", "in_reach"]

Int64 = NDArray[np.int64]


SEVERAL: Final = -1
"""Stands for the gap of an event that may lie in several gaps."""


class GapCandidates(NamedTuple):
    """The events that may lie in the gaps of a match, all (n,) int64.

    Attributes
    ----------
    row
    gap
        The only gap that each may lie in, as of :class:`confidence.gaps.chains.Forbidden`, or SEVERAL.
    lower, upper, offset
        Bounds of the time whatever the offsets, ticks, and where its probabilities start.
    """

    row: Int64
    gap: Int64
    lower: Int64
    upper: Int64
    offset: Int64


class InReach(NamedTuple):
    """The deciding events of some matches: their own, and those that may lie in their gaps."""

    start: Int64
    """(k + 1,) int64. Where the clocks of each match begin."""
    clocks: Int64
    """(m,) int64. Those that several of these events name."""
    together: NDArray[np.bool_]
    """(k,) bool. Whether all these events are of such clocks."""
    begin: Int64
    listed: Int64
    """(k + 1,) and (5, e) int64. Where the events of each match begin, and their rows; behind the match's
    own, what :class:`GapCandidates` says."""

    @property
    def events(self) -> Int64:
        """(e,) int64. The rows of the events."""
        rows: Int64 = self.listed[0]
        return rows


@kernel
def _only_gap(gaps, event, size, is_set):
    """Return the only gap of a match of so many events that forbids an event, or SEVERAL."""
    only = SEVERAL
    for gap in range(size + 1):
        if gaps[event, gap]:
            if is_set or only != SEVERAL:
                return SEVERAL
            only = gap
    return only


@kernel(allocates=True)
def _list_in_reach(matches, first_match, window, events, rules, is_set, own, counts, most, budget, reach):
    """List the events that decide on each match, and the clocks that several of them name.

    Parameters
    ----------
    matches, window, events, rules
        As for :func:`eventbased.gaps.gap_confidences.gap_confidences`; no offsets are held.
    first_match : int64
        The match to begin with.
    is_set : bool
        Whether components are partially ordered: then whatever may lie within the window of an event counts.
    own : OwnTimes
    counts : (c,) int64
        All 0, and so again at the end.
    most : int64
        So many events of all are enough.
    budget : int64
        After how many steps to come back; the match that exceeds them is finished.
    reach : InReach
        Overwritten. There is room for as many clocks as events.

    Returns
    -------
    done : int64
        Matches done.
    events, listed : int64
        How many forbidden events of a match, and events of all, there has to be room for to go on; 0 if
        nothing is missing.
    """
    count = matches.start.shape[0] - 1
    candidates, conditions, scratch = events.candidates, events.conditions, events.scratch
    forbidden = events.gathered.forbidden
    scratch.steps[0] = 0
    for n in range(first_match, count):
        if reach.begin[n] >= most or scratch.steps[0] > budget:
            return n, 0, 0
        size = matches.start[n + 1] - matches.start[n]
        if size + 2 > forbidden.gaps.shape[1]:
            return n, size + 2, 0
        match = Intervals(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))
        bounds = np.empty((4, size), np.int64)
        take_match(matches, n, events, match)
        forbidden_count = 0
        if is_set:
            above, until = smallest(match.lower) - window, largest(match.upper) + window
            length = rules.taking.shape[0]
            for k in range(rules.negated.shape[0]):
                question = (scratch.start[length + k], conditions.negated[k], conditions.negated[k + 1], -1)
                if forbidden_count >= 0:
                    first = matches.place[matches.start[n]]
                    forbidden_count = collect(
                        events, rules.negated[k], first, above, until, 0, question, forbidden_count
                    )
        else:
            _, forbidden_count = forbidden_in(events, rules, matches, n, match, bounds, window)
        unmark(matches, n, events, forbidden_count)
        if forbidden_count < 0:
            return n, forbidden.event.shape[0] + 1, 0
        begin = reach.begin[n]
        if begin + size + forbidden_count > reach.listed.shape[1]:
            return n, 0, begin + size + forbidden_count
        scratch.steps[0] += 4 * (size + forbidden_count)
        at = reach.start[n]
        reach.together[n] = True
        for again in range(3):
            for k in range(size + forbidden_count):
                if k < size:
                    row = candidates.row[matches.place[matches.start[n] + k]]
                else:
                    row = forbidden.event[k - size]
                    reach.listed[1, begin + k] = _only_gap(forbidden.gaps, k - size, size, is_set)
                    reach.listed[2, begin + k] = forbidden.lower[k - size]
                    reach.listed[3, begin + k] = forbidden.upper[k - size]
                    reach.listed[4, begin + k] = forbidden.offset[k - size]
                reach.listed[0, begin + k] = row
                clock = own.clock[row]
                if clock < 0:
                    reach.together[n] = False
                elif again == 0:
                    counts[clock] += 1
                elif again == 1 and counts[clock] == 1:
                    reach.together[n] = False
                elif again == 1 and counts[clock] > 1:
                    reach.clocks[at] = clock
                    at += 1
                    counts[clock] = -1
                elif again == 2:
                    counts[clock] = 0
        reach.start[n + 1] = at
        reach.begin[n + 1] = begin + size + forbidden_count
    return count, 0, 0


def in_reach(
    matches: MatchEvents,
    candidates: Placed,
    window: int,
    offsets: Int64,
    pools: ForbiddenEvents,
    rules: GapRules,
    is_set: bool,
    conditions: Conditions,
    scratch: Scratch,
    own: OwnTimes,
    clocks: int,
    most: int,
) -> InReach:
    """Return the events that decide on each match, and the clocks that several of them name.

    They are those of the first matches only, if these come to ``most`` events.

    Parameters
    ----------
    offsets : (rows,) int64
        Where the probabilities of each event start; -1 for uniform.
    is_set : bool
        Whether components are partially ordered.
    own : OwnTimes
        Of all events.
    clocks : int
        How many clocks there are.
    most : int
        At least 1.
    """
    found = len(matches.start) - 1
    mark = np.full(len(own.clock), -1, dtype=np.int64)
    counts = np.zeros(clocks, dtype=np.int64)
    start, begin = np.zeros((2, found + 1), dtype=np.int64)
    several, listed = np.empty(4 * found + 64, dtype=np.int64), np.empty((5, 4 * found + 64), dtype=np.int64)
    reach = InReach(start, several, np.empty(found, dtype=np.bool_), begin, listed)
    events = 64
    # Numba types a kernel at its calls.
    list_in_reach: Any = _list_in_reach
    done = 0
    gaps = int(np.diff(matches.start).max(initial=0)) + 4
    gathered = Gathered(mark, offsets, room_for(events, gaps))
    while done < found and begin[done] < most:
        done, more_events, more_listed = list_in_reach(
            matches, done, window, GapEvents(candidates, pools, conditions, scratch, gathered), rules, is_set,
            own, counts, most, steps_per_call(), reach,
        )  # fmt: skip
        checkpoint()
        if more_events:
            events = 2 * more_events
            checkpoint(events * (32 + gaps))
            gathered = gathered._replace(forbidden=room_for(events, gaps))
        if more_listed:
            reach = _with_room(reach, more_listed)
    return reach._replace(start=start[: done + 1], together=reach.together[:done], begin=begin[: done + 1])


def _with_room(reach: InReach, more: int) -> InReach:
    """Return the same with room for so many more events."""
    room = len(reach.clocks) + more
    checkpoint(6 * 8 * room)
    clocks, listed = np.empty(room, dtype=np.int64), np.empty((5, room), dtype=np.int64)
    clocks[: len(reach.clocks)] = reach.clocks
    listed[:, : len(reach.clocks)] = reach.listed
    return reach._replace(clocks=clocks, listed=listed)
