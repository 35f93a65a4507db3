"""Conditions of a backtracking search on partially ordered components: sets, sequences of sets.

Of the events taken so far the search knows the earliest time of each (the forward bound of Zhang, Diao,
Immerman, PVLDB 3(1), 2010, section 4.1, along every path of the order) and the latest one: order and window
hold for some choice of times iff no earliest time is behind its event's interval and the largest is within a
window of the smallest latest time. So a prefix that cannot happen is left at once, and what is found is
possible as far as intervals go. The confidence of all that extends a prefix is at most

* P(two of its events are in order and within the window), for every two of them, as that is part of it; of
  two without an order, P(abs(t - s) < W);
* the product over chains and pairs that share no event: as their times are independent, so are chains and
  pairs. For a chain it is at most ``prod P(t_i < t_{i+1})`` (:mod:`eventbased.upper_bounds`, step 3), for a
  pair without an order P(abs(t - s) < W). Each event, when it is taken, is linked to the one with which it is
  least likely: behind one that nothing is linked to yet, or beside one that no other is linked with at all.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.kernel import kernel
from eventbased.config import MOST_TICK_STEPS
from eventbased.search.state import COMPONENT, FAR, LEAST, LINKED, LINKING, LOW, PRODUCT, TOP
from eventbased.time_differences import in_order, in_window, near

__all__ = ["MOST_EVENTS", "limits_in_order", "order_can_reach", "smallest_latest"]

MOST_EVENTS: Final = 62
"""Most events of one match: they are the bits of a number."""


@kernel
def _is_before(pattern, before, earlier, later):
    """Return whether an event of one component comes before an event of another taken after it."""
    if earlier == later:
        return pattern.kleene[later] and not pattern.is_set[later]
    return before[later] >> earlier & 1 != 0


@kernel(inline=True)
def limits_in_order(candidates, pattern, before, state, choices, c, d):
    """Return the earliest time of event ``d``, of component ``c``, when its interval ends, and starts by."""
    after = -FAR
    for i in range(d):
        if _is_before(pattern, before, state.frames[COMPONENT, i + 1], c):
            after = max(after, state.earliest[i] + 1)
    lowest = max(after, state.bounds[TOP, d] - pattern.window + 1)
    # In this order: the bound and the window together may be 2^63.
    until = pattern.window - 1 + state.bounds[LOW, d]
    for later in range(c + 1, choices.shape[0]):
        chosen = choices[later, state.choice[0]]
        if chosen >= 0:
            lowest = max(lowest, candidates.lower[chosen] - pattern.window + 1)
            spare = -1 if _is_before(pattern, before, c, later) else pattern.window - 1
            until = min(until, candidates.upper[chosen] + spare)
    return after, lowest, until


@kernel
def smallest_latest(candidates, pattern, before, state, work, c, i, d):
    """Return the smallest of the events' latest times, with candidate ``i`` as event ``d``. O(d^2)."""
    components = state.frames[COMPONENT]
    latest = state.latest
    latest[d] = candidates.upper[i]
    smallest = latest[d]
    for x in range(d - 1, -1, -1):
        latest[x] = candidates.upper[work.element[x]]
        if _is_before(pattern, before, components[x + 1], c):
            latest[x] = min(latest[x], latest[d] - 1)
        for k in range(x + 1, d):
            if _is_before(pattern, before, components[x + 1], components[k + 1]):
                latest[x] = min(latest[x], latest[k] - 1)
        smallest = min(smallest, latest[x])
    return smallest


@kernel
def order_can_reach(candidates, pattern, before, wanted, state, work, c, i, d, need):
    """Return whether a match with candidate ``i`` as event ``d`` can be as likely as needed. O(d) pairs."""
    low, high, offset = candidates.lower[i], candidates.upper[i], candidates.offset[i]
    pmf, head = wanted.pmf, wanted.head
    linked, linking = state.links[LINKED, d], state.links[LINKING, d]
    smallest = state.chance[LEAST, d]
    factor = 1.0
    partner = -1
    paired = False
    for x in range(d):
        e = work.element[x]
        other_low, other_high, other_offset = candidates.lower[e], candidates.upper[e], candidates.offset[e]
        work.steps[0] += 1
        if pmf.shape[0] > 0:
            # Longer uniform intervals are not gone through.
            work.steps[0] += min(high - low, MOST_TICK_STEPS)
            work.steps[0] += min(other_high - other_low, MOST_TICK_STEPS)
        ordered = _is_before(pattern, before, state.frames[COMPONENT, x + 1], c)
        if ordered:
            _, both = in_window(
                other_low, other_high, other_offset, low, high, offset, pattern.window, pmf, head
            )
        else:
            both = near(other_low, other_high, other_offset, low, high, offset, pattern.window, pmf, head)
        smallest = min(smallest, both)
        if smallest < need:
            return False
        if linked >> x & 1 == 1 or (not ordered and linking >> x & 1 == 1):
            continue
        if ordered:
            both = in_order(other_low, other_high, other_offset, low, high, offset, pmf, head)
        if both < factor:
            factor = both
            partner = x
            paired = not ordered
    bit = np.int64(1)
    product = state.chance[PRODUCT, d] * factor
    state.chance[PRODUCT, d + 1] = product
    state.chance[LEAST, d + 1] = smallest
    if partner >= 0:
        linked |= bit << partner
        linking |= bit << d
        if paired:
            # A pair is complete: nothing else may be linked to either of its events.
            linked |= bit << d
    state.links[LINKED, d + 1] = linked
    state.links[LINKING, d + 1] = linking
    return product >= need
