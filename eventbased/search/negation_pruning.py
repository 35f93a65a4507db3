"""Events that are in a gap of a partial match in every world: what is negated there makes it impossible.

A negation is looked at as soon as all that it speaks of is bound (as negation is in the plans of Kolchinsky
and Schuster, PVLDB 11(11), 2018): the events on both sides of its gap, and those that its conditions
mention. An event that is behind the latest time of the ones and before the earliest time of the others is in
the gap whatever comes later, so that nothing that extends the partial match has a probability.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.config import EVER, NEVER
from confidence.kernel import kernel
from confidence.predicates.conditions import all_hold
from eventbased.galloping import first_above
from eventbased.gaps.gap_events import ForbiddenEvents

__all__ = ["NegationPruning", "is_excluded", "soonest_ends"]

Int64 = NDArray[np.int64]


class NegationPruning(NamedTuple):
    """Events that negations forbid between two components, or sets of them."""

    events: ForbiddenEvents
    soonest: Int64
    """(n,) int64. From :func:`soonest_ends`."""
    pools: Int64
    """(k,) int64. The pool of each negated component."""
    stages: Int64
    """(k,) int64. The component with whose first event all is bound that a negation speaks of; the number of
    components if that is so only when the match is complete, or if the gap is not between two components."""
    behind: Int64
    ahead: Int64
    """(k,) int64. Bits of the components whose events come before the gap, and after it."""
    base: Int64
    """(m,) int64. The shift to take off the bounds of each candidate."""


@kernel
def soonest_ends(upper, group_start, out):
    """Write for each event of a pool the smallest ``upper`` of its group from it on. O(n).

    Parameters
    ----------
    upper, group_start
        See :class:`eventbased.gaps.gap_events.ForbiddenEvents`.
    out : (n,) int64
        Overwritten.
    """
    for g in range(group_start.shape[0] - 1):
        best = EVER
        for x in range(group_start[g + 1] - 1, group_start[g] - 1, -1):
            best = min(best, upper[x])
            out[x] = best


@kernel
def is_excluded(pruning, conditions, work, component, is_set, earliest, upper):
    """Return whether what a negation forbids is in its gap for certain.

    Parameters
    ----------
    pruning : NegationPruning
    conditions : Conditions
    work : Scratch
        Of a partial match that has just taken its first event of ``component``.
    component : int64
    is_set : (l,) bool
        Whether the events of a component have no order among themselves.
    earliest : (d,) int64
        The earliest time of each event of the partial match, ticks.
    upper : (m,) int64
        Of the candidates, ticks.

    Notes
    -----
    O(log n) for each negation that all is known of, and its conditions for each event that is in the gap for
    certain.
    """
    length = conditions.stages.shape[0]
    events = pruning.events
    first = work.element[0]
    shift = pruning.base[first]
    for n in range(pruning.stages.shape[0]):
        if pruning.stages[n] != component:
            continue
        pool = pruning.pools[n]
        if events.group_of[pool, first] < 0:
            continue
        above = NEVER
        until = EVER
        for j in range(component + 1):
            start, stop = work.start[j], work.stop[j]
            if pruning.behind[n] >> j & 1:
                for k in range(start if is_set[j] else stop - 1, stop):
                    above = max(above, upper[work.element[k]] - shift)
            if pruning.ahead[n] >> j & 1:
                for k in range(start, stop if is_set[j] else start + 1):
                    until = min(until, earliest[k] - shift)
        g = events.pool_start[pool] + events.group_of[pool, first]
        stop = events.group_start[g + 1]
        x = first_above(events.lower, events.group_start[g], stop, above, events.group_start[g])
        if x == stop or pruning.soonest[x] >= until:
            continue
        begin, end = conditions.negated[n], conditions.negated[n + 1]
        if begin == end:
            return True
        slot = work.start[length + n]
        while x < stop and events.lower[x] < until:
            work.steps[0] += 1
            if events.upper[x] < until:
                work.element[slot] = events.place[x]
                if all_hold(conditions, work, begin, end, -1):
                    return True
            x += 1
    return False
