"""The forbidden events of matches, by what forbids them and where."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from eventbased.gaps.gap_events import collect, take_match, unmark

__all__ = [
    "DONE",
    "NOT_DONE",
    "NO_PLACE",
    "NO_ROOM",
    "FoundEvents",
    "ShapeRules",
    "forbidden_by_rule",
    "forbidden_of_all",
]

DONE: Final = 0
NO_ROOM: Final = -1
NOT_DONE: Final = -2
NO_PLACE: Final = -3
"""Why a kernel comes back."""

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
def forbidden_by_rule(matches, n, events, rule_rows, match, budget, progress):
    """List the events that some rules forbid a match; return their number, NO_ROOM or NOT_DONE.

    Parameters
    ----------
    matches : eventbased.gaps.gap_events.MatchEvents
    n : int64
        The match.
    events : eventbased.gaps.gap_events.GapEvents
        Between two calls for one match nothing else may write to its scratch. The gaps of the events that are
        gathered are the rules.
    rule_rows : (k, 9) int64
        For each rule: the pool; the ticks that events end after and start before; what
        :func:`confidence.predicates.conditions.all_hold` evaluates: the place of the event, begin, end and
        newest; and the component whose events end before a place, or -1, and that place.
    match : confidence.chain.distribution.Intervals
        Overwritten.
    budget : int64
        After how many steps of ``scratch`` to come back, with one rule done at least.
    progress : (2,) int64
        Rules that are done, and events that they forbid: zeros at first, and again at the end. Overwritten.
    """
    scratch = events.scratch
    k, listed = progress[0], progress[1]
    if k == 0:
        take_match(matches, n, events, match)
    begin = k
    first = matches.place[matches.start[n]]
    while k < rule_rows.shape[0] and listed >= 0:
        if k > begin and scratch.steps[0] > budget:
            progress[0], progress[1] = k, listed
            return NOT_DONE
        scratch.steps[0] += 1
        component = rule_rows[k, 7]
        stop = scratch.stop[max(component, 0)]
        if component >= 0:
            scratch.stop[component] = rule_rows[k, 8]
        question = rule_rows[k, 3], rule_rows[k, 4], rule_rows[k, 5], rule_rows[k, 6]
        listed = collect(
            events, rule_rows[k, 0], first, rule_rows[k, 1], rule_rows[k, 2], k, question, listed
        )
        if component >= 0:
            scratch.stop[component] = stop
        k += 1
    progress[0], progress[1] = 0, 0
    unmark(matches, n, events, listed)
    return listed


@kernel
def _limit_rules(rules, first, last):
    """Write the ticks between which the events of each rule are, given those of a match's events."""
    rule_rows = rules.rule_rows
    for k in range(rule_rows.shape[0]):
        rule_rows[k, 1], rule_rows[k, 2] = -(2**63) + 1, 2**63 - 1
        for e in range(rules.end_start[k], rules.end_start[k + 1]):
            event, offset = rules.ends[e, 0], rules.ends[e, 1]
            if rules.ends[e, 2]:
                rule_rows[k, 1] = max(rule_rows[k, 1], first[event] + offset - 1)
            else:
                rule_rows[k, 2] = min(rule_rows[k, 2], last[event] + offset + 1)


@kernel
def _write(forbidden, listed, x, count, may_stop, budget, scratch, out):
    """Write the events of a match from one on behind others; return that which is left, or NO_ROOM."""
    rules = forbidden.gaps.shape[1]
    while x < listed:
        if may_stop and scratch.steps[0] > budget:
            return x
        to = out.rule_start[count]
        if count == out.row.shape[0] or to + rules > out.rule.shape[0]:
            return NO_ROOM
        scratch.steps[0] += rules
        out.row[count], out.offset[count] = forbidden.event[x], forbidden.offset[x]
        out.lower[count], out.upper[count] = forbidden.lower[x], forbidden.upper[x]
        for k in range(rules):
            if forbidden.gaps[x, k]:
                out.rule[to] = k
                to += 1
        count += 1
        out.rule_start[count] = to
        x += 1
    return x


@kernel
def forbidden_of_all(matches, chosen, progress, events, first, last, rules, match, budget, out):
    """List the events that rules forbid some matches, from one on; return why it ends.

    Parameters
    ----------
    matches, events, match
        See :func:`forbidden_by_rule`.
    chosen : (k,) int64
        The matches.
    progress : (4,) int64
        The match to begin with; what :func:`forbidden_by_rule` takes, for that one; and one more than the
        number of its events that are written already, 0 while they are not all listed. Overwritten.
    first, last : (k, l) int64
        The ticks of their events, inclusive; nothing is forbidden a match whose first event has none.
    rules : ShapeRules
    budget : int64
        After how many steps to come back, if need be in the middle of a match.
    out : FoundEvents
        The first match is that to begin with: the matches before that of ``progress`` are complete. What is
        written of that one stays, where it is the first.

    Returns
    -------
    int64
        DONE, NOT_DONE if the budget is spent, NO_ROOM if ``events.gathered`` is too small for a match, or
        NO_PLACE if ``out`` is.
    """
    scratch = events.scratch
    out.start[0] = 0
    out.rule_start[0] = 0
    scratch.steps[0] = 0
    begin = progress[0]
    rule_rows, forbidden = rules.rule_rows, events.gathered.forbidden
    for c in range(begin, chosen.shape[0]):
        progress[0] = c
        if c > begin and scratch.steps[0] > budget:
            return NOT_DONE
        count = out.start[c - begin]
        if first[c, 0] <= last[c, 0]:
            if progress[3] == 0:
                if progress[1] == 0:
                    _limit_rules(rules, first[c], last[c])
                listed = forbidden_by_rule(
                    matches, chosen[c], events, rule_rows, match, budget, progress[1:3]
                )
                if listed < 0:
                    return listed
                progress[2], progress[3] = listed, 1
            listed = progress[2]
            if c > begin and scratch.steps[0] + listed * rule_rows.shape[0] > budget:
                return NOT_DONE
            x = _write(
                forbidden, listed, progress[3] - 1, count + progress[3] - 1, c == begin, budget, scratch, out
            )
            if x < 0:
                progress[3] = 1
                return NO_PLACE
            progress[3] = x + 1
            if x < listed:
                return NOT_DONE
            progress[2], progress[3] = 0, 0
            count += listed
        out.start[c - begin + 1] = count
    progress[0] = chosen.shape[0]
    return DONE
