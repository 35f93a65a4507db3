"""What may stand for a Kleene component between the events of the others, without writing out any subset."""

from __future__ import annotations

import numpy as np

from confidence.chain.between import events_between
from confidence.chain.tick_pairs import MOST_EDGES
from confidence.chain.uniform import tight_bounds
from confidence.gaps.forbidden import DONE, NO_SPACE, SPENT, TOO_DEAR
from confidence.kernel import kernel
from eventbased.gaps.gap_events import ALL, COSTLY, PAUSED, SPACE, forbidden_in

__all__ = ["LISTS", "compressed_matches"]

LISTS = 3
"""The output has no room for the events of another match."""


@kernel
def compressed_matches(
    start, place, component, first_match, count, lower, upper, base, row, offsets, window, gap, events, rules,
    conditions, pmf, most_steps, budget, scratch, mark, work, room, chance, out_lower, out_upper,
    out_sums, list_start, list_rows,
):  # fmt: skip
    """Find the events that may be in one gap of matches of the other components, and sum up over them.

    Parameters
    ----------
    start, place, component, first_match, count, lower, upper, base, row, offsets, window
        See :func:`eventbased.gaps.gap_events.gap_confidences`; the matches are those of the other components.
    gap : int64
        See :func:`confidence.chain.between.events_between`.
    events, rules, conditions
        With the Kleene component as the only negated one.
    pmf, most_steps, work
        See :func:`confidence.chain.between.events_between`.
    budget, scratch, mark, room
        See :func:`eventbased.gaps.gap_events.gap_confidences`.
    chance : (q,) float64
        Work array, as large as the room.
    out_lower, out_upper : (m,) int64
        Overwritten; the range is empty where no event can be in the gap.
    out_sums : (4, m) float64
        Overwritten: the sums of :func:`confidence.chain.between.events_between`, and the expected number of
        events.
    list_start : (m + 1,) int64, list_rows : (s,) int64
        Overwritten: the events that can be in the gap, by their lower bounds.

    Returns
    -------
    done, reason, need
        As :func:`eventbased.gaps.gap_events.gap_confidences`; LISTS if ``list_rows`` is too small.
    """
    own = mark.shape[0]
    sums = np.zeros(3)
    spent = work[SPENT]
    spent[0] = 0.0
    scratch.steps[0] = 0
    for n in range(first_match, count):
        if spent[0] + float(scratch.steps[0]) >= budget:
            return n, PAUSED, (0, 0, 0, 0)
        spent[0] += 1.0
        size = start[n + 1] - start[n]
        if size >= room[4].shape[1]:
            return n, SPACE, (size, 0, 0, 0)
        low = np.empty(size, np.int64)
        high = np.empty(size, np.int64)
        offset = np.empty(size, np.int64)
        bounds = np.empty((4, size), np.int64)
        part = component[start[n] : start[n + 1]]
        for k in range(size):
            i = place[start[n] + k]
            low[k] = lower[i] - base[i]
            high[k] = upper[i] - base[i]
            offset[k] = offsets[row[i]]
            bounds[0, k] = low[k] - k
            bounds[1, k] = high[k] - k
            mark[row[i]] = own
            scratch.element[k] = i
            scratch.start[k] = k
            scratch.stop[k] = k + 1
        tight_bounds(bounds[0], bounds[1], window - size, bounds[2], bounds[3])
        for k in range(size):
            bounds[2, k] += k
            bounds[3, k] += k
        found = forbidden_in(
            events, rules, conditions, part, bounds[2], bounds[3], window, place[start[n]], scratch, own,
            mark, offsets, room,
        )  # fmt: skip
        for k in range(size):
            mark[row[place[start[n] + k]]] = -1
        for x in range(room[0].shape[0] if found < 0 else found):
            mark[room[3][x]] = -1
        if found < 0:
            return n, SPACE, (size, 0, 0, room[0].shape[0] + 1)
        status, steps, first, last = events_between(
            low, high, offset, pmf, window, gap, found, room[0], room[1], room[2], most_steps, work, sums,
            chance,
        )  # fmt: skip
        if status == NO_SPACE:
            return n, SPACE, (size, first, last, 0)
        if status == TOO_DEAR:
            return n, COSTLY, (int(min(steps, float(MOST_EDGES))), 0, 0, 0)
        filled = list_start[n]
        list_start[n + 1] = filled
        if status != DONE:
            out_lower[n] = 0
            out_upper[n] = -1
            continue
        if filled + found > list_rows.shape[0]:
            return n, LISTS, (0, 0, 0, filled + found)
        elements = 0.0
        for x in range(found):
            if chance[x] > 0.0:
                list_rows[filled] = room[3][x]
                filled += 1
                elements += chance[x]
        list_start[n + 1] = filled
        out_lower[n] = first
        out_upper[n] = last
        out_sums[0, n], out_sums[1, n], out_sums[2, n] = sums[0], sums[1], sums[2]
        out_sums[3, n] = elements
    return count, ALL, (0, 0, 0, 0)
