"""Skip till next match: which events can be next at all, and the confidence that none came in between.

NELT, the Next Event's Latest Time (Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 3.2): among the events
that component j + 1 can take and that start after event e ends, the smallest upper bound. Nothing that starts
later can follow e in any world, so the join need not enter it. It prunes; the confidence decides.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from confidence.forbidden import DONE, NO_SPACE, TOO_DEAR, forbidden_confidence
from confidence.uniform import tight_bounds
from eventbased.programs import STACK_DEPTH, holds
from eventbased.query_order import first_above

__all__ = ["ALL", "COSTLY", "SPACE", "next_confidences", "next_limits"]

ALL: Final = 0
COSTLY: Final = 1
SPACE: Final = 2

UNLIMITED: Final = 2**63 - 1


@njit(cache=True, nogil=True, error_model="numpy")
def next_limits(first_class, class_start, class_stop, lower, upper, event, twin, prunable, out):
    """Write for each candidate of component j the largest A that a candidate of component j + 1 may have.

    Parameters
    ----------
    first_class, class_start, class_stop, lower, upper, event, twin
        Of the layout, see :func:`eventbased.query_order.join`.
    prunable : (l,) bool
        Whether every candidate of a component is forbidden before it, whatever the match holds so far.
    out : (n,) int64
        Overwritten. O(n log n).
    """
    length = first_class.shape[0] - 1
    out[:] = UNLIMITED
    for j in range(length - 1):
        if not prunable[j + 1]:
            continue
        for c in range(first_class[j + 1], first_class[j + 2]):
            start, stop = class_start[c], class_stop[c]
            smallest = np.empty(stop - start + 1, np.int64)
            smallest[stop - start] = UNLIMITED
            for x in range(stop - 1, start - 1, -1):
                # An event that a later component of the match may hold is not forbidden then.
                later = False
                if event[x] >= 0:
                    for k in range(j + 2, length):
                        later = later or twin[event[x], k] >= 0
                smallest[x - start] = min(smallest[x - start + 1], UNLIMITED if later else upper[x])
            hint = start
            for i in range(class_start[first_class[j]], class_stop[first_class[j + 1] - 1]):
                hint = first_above(lower, start, stop, upper[i] - 1, hint)
                out[i] = min(out[i], smallest[hint - start])


@njit(cache=True, nogil=True, error_model="numpy")
def _is_own(x, j, event, twin, chosen):
    """Return whether candidate x of component j is an event of the match."""
    if event[x] < 0:
        return x == chosen[j]
    own = False
    for k in range(chosen.shape[0]):
        own = own or twin[event[x], k] == chosen[k]
    return own


@njit(cache=True, nogil=True, error_model="numpy")
def next_confidences(
    matches, first_match, w, first_class, class_start, class_stop, class_longest, lower, upper, base,
    event, twin, pmf_offset, pmf, head, tail, program_start, code, ints, floats, nulls, slots, most_steps, work,
    x_low, x_high, x_offset, x_event, x_gap, out_lower, out_upper, out_confidence,
):  # fmt: skip
    """Fill range and confidence of matches whose gaps no event that could have been taken may have come in.

    Parameters
    ----------
    matches : (l, m) int64
        The candidates of each match.
    first_match : int64
        The match to begin with.
    w, first_class, class_start, class_stop, class_longest, lower, upper, event, twin
        Of the layout, see :func:`eventbased.query_order.join`.
    base : (n,) int64
        What was added to the candidates' times.
    pmf_offset : (n,) int64; pmf, head, tail : (k,) float64
        See :func:`confidence.forbidden.forbidden_confidence`.
    program_start : (l + 1,) int64
        The rows of ``code`` that decide whether a candidate of component j goes with components 0..j-1.
    code, ints, floats, nulls, slots
        See :func:`eventbased.programs.holds`.
    most_steps, work
        See :func:`confidence.forbidden.forbidden_confidence`.
    x_low, x_high, x_offset, x_event : (q,) int64, x_gap : (q, l) bool
        Room for the forbidden events of one match.
    out_lower, out_upper : (m,) int64, out_confidence : (m,) float64
        Overwritten; the range is empty where the confidence is 0.

    Returns
    -------
    done : int64
        Matches done; m if all are.
    reason : int64
        ALL, SPACE if the work arrays are too small, COSTLY if match ``done`` takes too many steps.
    need : (3,) float64
        For SPACE the edges, ticks and events needed, for COSTLY the steps.
    """
    length, count = matches.shape
    chosen = np.empty(length, np.int64)
    bounds = np.empty((4, length), np.int64)
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    offset = np.empty(length, np.int64)
    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    for n in range(first_match, count):
        for k in range(length):
            chosen[k] = matches[k, n]
            bounds[0, k] = lower[chosen[k]]
            bounds[1, k] = upper[chosen[k]]
            low[k] = bounds[0, k] + k
            high[k] = bounds[1, k] + k
            offset[k] = pmf_offset[chosen[k]]
        tight_bounds(bounds[0], bounds[1], w, bounds[2], bounds[3])
        found = 0
        for j in range(1, length):
            earliest = bounds[2, j - 1] + j - 1
            latest = bounds[3, j] + j
            row, row_stop = program_start[j], program_start[j + 1]
            own_place = chosen[j]
            for c in range(first_class[j], first_class[j + 1]):
                start, stop = class_start[c], class_stop[c]
                begin = first_above(lower, start, stop, earliest - j - class_longest[c], own_place)
                x = begin
                while x < stop and lower[x] + j < latest:
                    if upper[x] + j > earliest and not _is_own(x, j, event, twin, chosen):
                        free = row == row_stop
                        if not free:
                            chosen[j] = x
                            free = holds(
                                code, row, row_stop, ints, floats, nulls, slots, chosen, whole, real, absent
                            )
                            chosen[j] = own_place
                        if free:
                            at = found
                            if event[x] >= 0:
                                for q in range(found):
                                    if x_event[q] == event[x]:
                                        at = q
                            if at == found:
                                if found == x_low.shape[0]:
                                    return n, SPACE, (0, 0, 2 * found)
                                x_low[at] = lower[x] + j
                                x_high[at] = upper[x] + j
                                x_offset[at] = pmf_offset[x]
                                x_event[at] = event[x]
                                x_gap[at] = False
                                found += 1
                            x_gap[at, j] = True
                    x += 1
        status, value, first, last = forbidden_confidence(
            low, high, offset, pmf, head, tail, w + length, found, x_low, x_high, x_offset, x_gap,
            most_steps, work,
        )  # fmt: skip
        if status == TOO_DEAR:
            return n, COSTLY, (int(value), 0, 0)
        if status == NO_SPACE:
            return n, SPACE, (first, last, 0)
        shift = base[chosen[0]]
        out_confidence[n] = value if status == DONE else 0.0
        out_lower[n] = first - shift if status == DONE else 0
        out_upper[n] = last - shift if status == DONE else -1
    return count, ALL, (0, 0, 0)
