"""The forbidden events of matches, by what forbids them and where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from eventbased.gaps.gap_events import collect, take_match, unmark

__all__ = ["FoundEvents", "ShapeRules", "forbidden_by_rule", "forbidden_of_all"]

Int64 = NDArray[np.int64]


class ShapeRules(NamedTuple):
    """Rules that forbid events in gaps of matches with the same numbers of events.

    Attributes
    ----------
    rule_rows : (k, 9) int64
        For each rule what :func:`forbidden_by_rule` takes, whose second and third column are overwritten.
    end_start : (k + 1,) int64, ends : (m, 3) int64
        For each rule what its events are between: a number of an event of the match, what is added to its
        time, and whether they are behind that or before it.
    """

    rule_rows: Int64
    end_start: Int64
    ends: Int64


class FoundEvents(NamedTuple):
    """The forbidden events of some matches, one match's behind the other's.

    Attributes
    ----------
    start : (k + 1,) int64
        Where those of each match begin.
    row, lower, upper, offset : (n,) int64
    rule_start : (n + 1,) int64
        Where the rules of each event begin.
    rule : (r,) int64
    """

    start: Int64
    row: Int64
    lower: Int64
    upper: Int64
    offset: Int64
    rule_start: Int64
    rule: Int64


@kernel
def forbidden_by_rule(pools, matches, n, candidates, rule_rows, conditions, scratch, gathered, match):
    """List the events that some rules forbid a match; return their number, -1 without room.

    Parameters
    ----------
    pools : eventbased.gaps.gap_events.ForbiddenEvents
    matches : eventbased.gaps.gap_events.MatchEvents
    n : int64
        The match.
    candidates : eventbased.gaps.gap_events.Placed
    rule_rows : (k, 9) int64
        For each rule: the pool; the ticks that events end after and start before; what
        :func:`confidence.predicates.conditions.all_hold` evaluates: the place of the event, begin, end and
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
    while k < rule_rows.shape[0] and found >= 0:
        component = rule_rows[k, 7]
        stop = scratch.stop[max(component, 0)]
        if component >= 0:
            scratch.stop[component] = rule_rows[k, 8]
        found = collect(
            pools, rule_rows[k, 0], first, rule_rows[k, 1], rule_rows[k, 2], k, conditions, scratch,
            (rule_rows[k, 3], rule_rows[k, 4], rule_rows[k, 5], rule_rows[k, 6]), found, gathered,
        )  # fmt: skip
        if component >= 0:
            scratch.stop[component] = stop
        k += 1
    unmark(matches, n, candidates, found, gathered)
    return found


@kernel
def forbidden_of_all(
    pools, matches, chosen, begin, candidates, first, last, rules, conditions, scratch, gathered, match,
    budget, out,
):  # fmt: skip
    """List the events that rules forbid some matches, from one on; return the first that is left.

    Parameters
    ----------
    pools, matches, candidates, conditions, scratch, gathered, match
        See :func:`forbidden_by_rule`.
    chosen : (k,) int64
        The matches.
    begin : int64
        Which of them to begin with.
    first, last : (k, l) int64
        The ticks of their events, inclusive; nothing is forbidden a match whose first event has none.
    rules : ShapeRules
    budget : int64
        After how many steps to come back; the match that exceeds them is finished.
    out : FoundEvents
        Overwritten; the first match is that to begin with.

    Returns
    -------
    done : int64
        The match that there was no room for, or no budget, or the number of all.
    room : int64
        How many events that needs, 0 if it is not known.
    """
    out.start[0] = 0
    out.rule_start[0] = 0
    scratch.steps[0] = 0
    rule_rows, forbidden = rules.rule_rows, gathered.forbidden
    for c in range(begin, chosen.shape[0]):
        if scratch.steps[0] > budget:
            return c, 0
        count = out.start[c - begin]
        if first[c, 0] <= last[c, 0]:
            for k in range(rule_rows.shape[0]):
                rule_rows[k, 1], rule_rows[k, 2] = -(2**63) + 1, 2**63 - 1
                for e in range(rules.end_start[k], rules.end_start[k + 1]):
                    event, offset = rules.ends[e, 0], rules.ends[e, 1]
                    if rules.ends[e, 2]:
                        rule_rows[k, 1] = max(rule_rows[k, 1], first[c, event] + offset - 1)
                    else:
                        rule_rows[k, 2] = min(rule_rows[k, 2], last[c, event] + offset + 1)
            found = forbidden_by_rule(
                pools, matches, chosen[c], candidates, rule_rows, conditions, scratch, gathered, match
            )
            if found < 0:
                return c, 0
            marked = 0
            for x in range(found):
                for k in range(rule_rows.shape[0]):
                    marked += forbidden.gaps[x, k]
            if count + found > out.row.shape[0] or out.rule_start[count] + marked > out.rule.shape[0]:
                return c, max(count + found, out.rule_start[count] + marked)
            for x in range(found):
                out.row[count], out.offset[count] = forbidden.event[x], forbidden.offset[x]
                out.lower[count], out.upper[count] = forbidden.lower[x], forbidden.upper[x]
                to = out.rule_start[count]
                for k in range(rule_rows.shape[0]):
                    if forbidden.gaps[x, k]:
                        out.rule[to] = k
                        to += 1
                count += 1
                out.rule_start[count] = to
        out.start[c - begin + 1] = count
    return chosen.shape[0], 0
