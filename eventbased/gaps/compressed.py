"""Events that may stand for a Kleene component between those of others, without writing out subsets."""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.chain.distribution import Intervals
from confidence.chain.tick_pairs import MOST_EDGES
from confidence.gaps.between import events_between
from confidence.gaps.chains import BUDGET, DONE, NO_SPACE, SPENT, TOO_DEAR
from confidence.gaps.describing import ALL, COSTLY, PAUSED, SPACE
from confidence.kernel import kernel
from eventbased.gaps.gap_events import forbidden_in, take_match, unmark

__all__ = ["LISTS", "compressed_matches"]

LISTS: Final = 4
"""The output has no room for the events of another match."""


@kernel(allocates=True)
def compressed_matches(matches, first_match, window, gap, events, rules, pmfs, most_steps, work, out):
    """Find the events that may be in one gap of matches of the other components, and sum up over them.

    Parameters
    ----------
    matches, first_match, window, pmfs, work
        See :func:`eventbased.gaps.gap_confidences.gap_confidences`; the matches are those of the other
        components.
    gap : int64
        See :func:`confidence.gaps.between.events_between`.
    events, rules
        With the Kleene component as the only negated one.
    most_steps : float64
        Most multiplications to spend on one match.
    out : tuple
        Overwritten: range, (k,) int64 twice, empty where no event can be in the gap; (4, k) float64, the sums
        of :func:`confidence.gaps.between.events_between` and the expected number of events; the events that
        can be in the gap by their lower bounds, where each match's begin, (k + 1,) int64, and (s,) int64.

    Returns
    -------
    done, reason, need
        As :func:`eventbased.gaps.gap_confidences.gap_confidences`; LISTS if there is no room for the events.
    """
    out_lower, out_upper, out_sums, list_start, list_rows = out
    scratch, forbidden = events.scratch, events.gathered.forbidden
    count = matches.start.shape[0] - 1
    sums = np.zeros(3)
    chance = np.empty(forbidden.event.shape[0])
    scratch.steps[0] = 0
    for n in range(first_match, count):
        if work.progress[SPENT] + float(scratch.steps[0]) >= work.progress[BUDGET]:
            return n, PAUSED, (0, 0, 0, 0)
        work.progress[SPENT] += 1.0
        size = matches.start[n + 1] - matches.start[n]
        if size >= forbidden.gaps.shape[1]:
            return n, SPACE, (size, 0, 0, 0)
        match = Intervals(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))
        bounds = np.empty((4, size), np.int64)
        take_match(matches, n, events, match)
        _, listed = forbidden_in(events, rules, matches, n, match, bounds, window)
        unmark(matches, n, events, listed)
        if listed < 0:
            return n, SPACE, (size, 0, 0, forbidden.event.shape[0] + 1)
        status, steps, first, last = events_between(
            match, pmfs, window, gap, listed, forbidden, most_steps, work, sums, chance
        )
        if status == NO_SPACE:
            return n, SPACE, (size, first, last, 0)
        if status == TOO_DEAR:
            return n, COSTLY, (int(min(steps, float(MOST_EDGES))), 0, 0, 0)
        filled = list_start[n]
        list_start[n + 1] = filled
        out_sums[0, n], out_sums[1, n], out_sums[2, n], out_sums[3, n] = sums[0], sums[1], sums[2], 0.0
        if status != DONE:
            out_lower[n] = 0
            out_upper[n] = -1
            continue
        if filled + listed > list_rows.shape[0]:
            return n, LISTS, (0, 0, 0, filled + listed)
        elements = 0.0
        for x in range(listed):
            if chance[x] > 0.0:
                list_rows[filled] = forbidden.event[x]
                filled += 1
                elements += chance[x]
        list_start[n + 1] = filled
        out_lower[n] = first
        out_upper[n] = last
        out_sums[3, n] = elements
    return count, ALL, (0, 0, 0, 0)
