"""The forbidden events of one match, by what forbids them and where."""

from __future__ import annotations

from confidence.kernel import kernel
from eventbased.gaps.gap_events import collect, take_match, unmark

__all__ = ["forbidden_by_rule"]


@kernel
def forbidden_by_rule(pools, matches, n, candidates, asks, conditions, scratch, gathered, match):
    """List the events that some rules forbid a match; return their number, -1 without room.

    Parameters
    ----------
    pools : eventbased.gaps.gap_events.ForbiddenEvents
    matches : eventbased.gaps.gap_events.MatchEvents
    n : int64
        The match.
    candidates : eventbased.gaps.gap_events.Placed
    asks : (k, 9) int64
        For each rule: the pool; the ticks that events end after and start before; what
        :func:`confidence.predicates.conditions.all_hold` is asked of: the place of the event, begin, end and
        newest; and the component whose events end before a place, or -1, and that place.
    conditions : confidence.predicates.conditions.Conditions
    scratch : confidence.predicates.conditions.Scratch
    gathered : eventbased.gaps.gap_events.Gathered
        The gaps of its events are the rules.
    match : confidence.chain.distribution.Intervals
        Overwritten.
    """
    take_match(matches, n, candidates, conditions, scratch, gathered, match)
    first = matches.place[matches.start[n]]
    found = 0
    k = 0
    while k < asks.shape[0] and found >= 0:
        component = asks[k, 7]
        stop = scratch.stop[max(component, 0)]
        if component >= 0:
            scratch.stop[component] = asks[k, 8]
        found = collect(
            pools, asks[k, 0], first, asks[k, 1], asks[k, 2], k, conditions, scratch,
            (asks[k, 3], asks[k, 4], asks[k, 5], asks[k, 6]), found, gathered,
        )  # fmt: skip
        if component >= 0:
            scratch.stop[component] = stop
        k += 1
    unmark(matches, n, candidates, found, gathered)
    return found
