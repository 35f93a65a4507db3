"""Events that must stay out of the gaps of matches.

One condition a gap (Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 2; negation as in SASE+, Agrawal et al.,
SIGMOD 2008): under skip till next match no event that could have been taken there, under contiguity no event
at all, for a negated component no event that matches it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import plain_checkpoint
from confidence.chain.distribution import DOUBTFUL
from confidence.chain.uniform import tight_bounds
from confidence.flat_lists import taken
from confidence.gaps import chains
from confidence.kernel import kernel
from confidence.predicates.conditions import Conditions, Scratch, accumulate, all_hold
from confidence.shared.held import OwnTimes
from eventbased.galloping import first_above

__all__ = [
    "NOT_HELD",
    "NO_BOXES",
    "NO_OFFSETS",
    "ForbiddenEvents",
    "GapEvents",
    "GapRules",
    "Gathered",
    "HeldOffsets",
    "MatchEvents",
    "Placed",
    "by_counts",
    "collect",
    "contiguity_limits",
    "forbidden_in",
    "intervals_given",
    "part_of",
    "some_of",
    "take_match",
    "unmark",
]

UNLIMITED: Final = 2**63 - 1

NOT_HELD: Final = 2**62
"""Stands for the offset of a clock that is not held."""

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

NO_BOXES: Final[Int64] = np.empty((2, 0), dtype=np.int64)


class MatchEvents(NamedTuple):
    """The events of some matches, one match behind the other.

    Attributes
    ----------
    start : (k + 1,) int64
        Where the events of each match begin.
    place, component : (m,) int64
        The candidate, and the component that it is taken for.
    boxes : (2, m) int64, or (2, 0)
        First and last tick that is asked of each event: confidence and range are those of the worlds where
        it is; without any, of all. Of events that last (4, m): of their begins, and of their ends.
    """

    start: Int64
    place: Int64
    component: Int64
    boxes: Int64 = NO_BOXES


def some_of(matches: MatchEvents, which: Int64) -> MatchEvents:
    """Return some matches, in this order; the same one may come several times."""
    event, start = taken(matches.start, which)
    boxes = matches.boxes[:, event] if matches.boxes.shape[1] else matches.boxes
    return MatchEvents(start, matches.place[event], matches.component[event], np.ascontiguousarray(boxes))


def part_of(matches: MatchEvents, begin: int, stop: int) -> MatchEvents:
    """Return the matches from one to before another."""
    if begin == 0 and stop == len(matches.start) - 1:
        return matches
    start = matches.start[begin : stop + 1]
    events = slice(int(start[0]), int(start[-1]))
    boxes = np.ascontiguousarray(matches.boxes[:, events])
    return MatchEvents(start - start[0], matches.place[events], matches.component[events], boxes)


def by_counts(matches: MatchEvents, components: int) -> Iterator[tuple[tuple[int, ...], Int64]]:
    """Yield numbers of events of each component, and the matches that have so many, (k,) int64 ascending."""
    match_count = len(matches.start) - 1
    if not match_count:
        return
    match = np.repeat(np.arange(match_count), np.diff(matches.start))
    counts = np.bincount(match * components + matches.component, minlength=match_count * components)
    counts = counts.reshape(match_count, components)
    number = np.zeros(match_count, dtype=np.int64)
    for column in counts.T:
        # Dense again, so that the numbers stay small.
        number = np.unique(number * (int(column.max()) + 1) + column, return_inverse=True)[1]
    order = np.argsort(number, kind="stable")
    for chosen in np.split(order, np.cumsum(np.bincount(number))[:-1]):
        yield tuple(counts[chosen[0]].tolist()), chosen


class Placed(NamedTuple):
    """Candidates on the common time line, all (n,) int64.

    Attributes
    ----------
    lower, upper
        Ticks, inclusive.
    base
        The shift to take off again.
    row
        The event.
    """

    lower: Int64
    upper: Int64
    base: Int64
    row: Int64


class HeldOffsets(NamedTuple):
    """Offsets of shared clocks that are held: given them, times are independent.

    Attributes
    ----------
    own : OwnTimes
        Of all events.
    start : (k + 1,) int64, or (0,)
        Where the held clocks of each match begin; empty if none is.
    clock, value : (m,) int64
        Clock and offset, ticks.
    now : (c,) int64
        The offset of each clock in the match at hand; NOT_HELD between two matches.
    """

    own: OwnTimes
    start: Int64
    clock: Int64
    value: Int64
    now: Int64


_NOTHING: Final[Int64] = np.empty(0, dtype=np.int64)

NO_OFFSETS: Final = HeldOffsets(OwnTimes(*[_NOTHING] * 4), *[_NOTHING] * 4)


class Gathered(NamedTuple):
    """The forbidden events of one match.

    Attributes
    ----------
    mark : (rows,) int64
        For each event its place among them, -1 if it is none, or the number of rows if the match holds it.
        All -1 between two matches.
    offset : (rows,) int64
        Where the probabilities of an event of a match start; -1 for uniform.
    forbidden : confidence.gaps.chains.Forbidden
        Room for them.
    held : HeldOffsets
        What laws are given.
    """

    mark: Int64
    offset: Int64
    forbidden: chains.Forbidden
    held: HeldOffsets = NO_OFFSETS


class ForbiddenEvents(NamedTuple):
    """Pools of events that may be forbidden; within a group of a pool by ascending ``lower``.

    Attributes
    ----------
    lower, upper : (n,) int64
        Ticks, inclusive.
    highest : (n,) int64
        Running maxima of ``upper`` within a group.
    row : (n,) int64
        The event.
    place : (n,) int64
        What stands for it in conditions.
    offset : (n,) int64
        As of :class:`confidence.chain.distribution.Intervals`.
    group_start : (g + 1,) int64
        Where each group starts.
    pool_start : (p + 1,) int64
        The first group of each pool.
    group_of : (p, n_0) int64
        For each pool the group, counted from the pool's first, of matches that begin with a candidate of the
        first component; -1: none.
    """

    lower: Int64
    upper: Int64
    highest: Int64
    row: Int64
    place: Int64
    offset: Int64
    group_start: Int64
    pool_start: Int64
    group_of: Int64


class GapRules(NamedTuple):
    """The pools that are forbidden in each gap.

    Attributes
    ----------
    taking : (l,) int64
        The pool of what could have been taken instead of an event of each component; -1: none.
    between : int
        The pool forbidden between any two neighbours; -1: none.
    negated : (n,) int64
        The pool of each negated component.
    after : (n,) int64
        How many positive components stand before it.
    """

    taking: Int64
    between: int
    negated: Int64
    after: Int64


@kernel(allocates=True)
def contiguity_limits(upper, group, lower_in_pool, upper_in_pool, group_start, out):
    """Write the latest start of an event that can be the direct neighbour of each candidate. O(n log n).

    An event that starts after the candidate ends, and ends before the neighbour starts, is between the two in
    every world, and so no other event of the match.

    Parameters
    ----------
    upper : (n,) int64
        Of the candidates, ticks.
    group : (n,) int64
        Their groups; -1: none.
    lower_in_pool, upper_in_pool, group_start
        See :class:`ForbiddenEvents`.
    out : (n,) int64
        Overwritten.
    """
    count = lower_in_pool.shape[0]
    smallest = np.empty(count + 1, np.int64)
    smallest[count] = UNLIMITED
    for g in range(group_start.shape[0] - 1):
        best = UNLIMITED
        for x in range(group_start[g + 1] - 1, group_start[g] - 1, -1):
            best = min(best, upper_in_pool[x])
            smallest[x] = best
    for i in range(upper.shape[0]):
        out[i] = UNLIMITED
        g = group[i]
        if g >= 0:
            start, stop = group_start[g], group_start[g + 1]
            x = first_above(lower_in_pool, start, stop, upper[i], start)
            if x < stop:
                out[i] = smallest[x]


class GapEvents(NamedTuple):
    """The inputs of a search for the events that gaps forbid: the same for all matches of a call.

    Attributes
    ----------
    candidates : Placed
        What matches are chosen from.
    pools : ForbiddenEvents
        What their gaps may forbid.
    conditions : Conditions
        What a forbidden event has to meet.
    scratch : Scratch
        Overwritten.
    gathered : Gathered
        Overwritten: the forbidden events of one match.
    """

    candidates: Placed
    pools: ForbiddenEvents
    conditions: Conditions
    scratch: Scratch
    gathered: Gathered


@kernel
def _pool_range(events, pool, first, above, until):
    """Return the events of a pool that may end after ``above`` and start before ``until``."""
    group = events.group_of[pool, first]
    if group < 0:
        return 0, 0
    g = events.pool_start[pool] + group
    start, stop = events.group_start[g], events.group_start[g + 1]
    begin = first_above(events.highest, start, stop, above, start)
    return begin, first_above(events.lower, begin, stop, until - 1, begin)


@kernel
def _given(held, row, low, high, offset):
    """Return bounds and law of an event's time, given the offsets held."""
    clock = held.own.clock[row]
    if clock < 0 or held.now[clock] == NOT_HELD:
        return low, high, offset
    move = held.now[clock]
    return held.own.lower[row] + move, held.own.upper[row] + move, held.own.offset[row]


@kernel
def take_match(matches, n, events, match):
    """Put match n where conditions and confidences read it, and mark its events. O(l).

    Parameters
    ----------
    matches : MatchEvents
    n : int64
    events : GapEvents
        In its scratch: the match's events, where each component's begin and end, and the accumulators.
    match : Intervals
        Overwritten, cut to the boxes of the events.

    Returns
    -------
    float64
        The share of uniform intervals that lies in the boxes; 0 if one does not reach into its own.
    """
    candidates, _, conditions, scratch, gathered = events
    own = gathered.mark.shape[0]
    begin = matches.start[n]
    held = gathered.held
    if held.start.shape[0]:
        for i in range(held.start[n], held.start[n + 1]):
            held.now[held.clock[i]] = held.value[i]
    share = 1.0
    for k in range(match.lower.shape[0]):
        i = matches.place[begin + k]
        part = matches.component[begin + k]
        row = candidates.row[i]
        low, high = candidates.lower[i] - candidates.base[i], candidates.upper[i] - candidates.base[i]
        offset = gathered.offset[row]
        if held.start.shape[0]:
            low, high, offset = _given(held, row, low, high, offset)
        if matches.boxes.shape[1]:
            size = high - low + 1
            cut = max(matches.boxes[0, begin + k] - low, 0)
            low += cut
            high = min(high, matches.boxes[1, begin + k])
            if low > high:
                share = 0.0
            elif offset >= 0:
                offset += cut
            else:
                share *= float(high - low + 1) / float(size)
        match.lower[k], match.upper[k], match.offset[k] = low, high, offset
        gathered.mark[row] = own
        scratch.element[k] = i
        if k == 0 or part != matches.component[begin + k - 1]:
            scratch.start[part] = k
        scratch.stop[part] = k + 1
        accumulate(conditions, scratch, part, k)
    return share


@kernel
def unmark(matches, n, events, listed):
    """Take off the marks of a match and of the events listed for it; -1: of all there is room for."""
    candidates, _, _, _, gathered = events
    held = gathered.held
    if held.start.shape[0]:
        for i in range(held.start[n], held.start[n + 1]):
            held.now[held.clock[i]] = NOT_HELD
    for k in range(matches.start[n], matches.start[n + 1]):
        gathered.mark[candidates.row[matches.place[k]]] = -1
    forbidden = gathered.forbidden.event
    for x in range(forbidden.shape[0] if listed < 0 else listed):
        gathered.mark[forbidden[x]] = -1


@kernel
def collect(events, pool, first, above, until, gap, question, listed):
    """Add the events of a pool that are forbidden in a gap to those listed; return their number, or -1.

    Parameters
    ----------
    events : GapEvents
    pool : int64
    first : int64
        The first candidate of the match.
    above, until : int64
        Only events that end after the one and start before the other, ticks.
    gap : int64
    question : tuple of 4 int64
        The place in ``scratch.element`` of the event asked about, -1 if nothing is asked, and what
        :func:`confidence.predicates.conditions.all_hold` takes: begin, end, newest.
    listed : int64
    """
    _, pools, conditions, scratch, gathered = events
    slot, begin, end, newest = question
    mark, forbidden, held = gathered.mark, gathered.forbidden, gathered.held
    x, stop = _pool_range(pools, pool, first, above, until)
    kept = scratch.element[max(slot, 0)]
    while x < stop:
        scratch.steps[0] += 1
        if x & 1023 == 0:
            plain_checkpoint()
        row = pools.row[x]
        at = mark[row]
        low, high, offset = pools.lower[x], pools.upper[x], pools.offset[x]
        if held.start.shape[0]:
            low, high, law = _given(held, row, low, high, offset)
            # Of what may not have happened the law by its clock comes next to that of its time.
            offset = offset - 2 if offset <= DOUBTFUL and law > DOUBTFUL else law
        if high > above and low < until and at != mark.shape[0]:
            free = True
            if slot >= 0 and begin < end:
                scratch.element[slot] = pools.place[x]
                free = all_hold(conditions, scratch, begin, end, newest)
            if free:
                if at < 0:
                    if listed == forbidden.lower.shape[0]:
                        scratch.element[max(slot, 0)] = kept
                        return -1
                    at = listed
                    mark[row] = at
                    forbidden.lower[at], forbidden.upper[at] = low, high
                    forbidden.offset[at], forbidden.event[at] = offset, row
                    forbidden.gaps[at] = False
                    listed += 1
                forbidden.gaps[at, gap] = True
        x += 1
    scratch.element[max(slot, 0)] = kept
    return listed


@kernel
def forbidden_in(events, rules, matches, n, match, bounds, window):
    """List the events that are forbidden in the gaps of a match.

    Parameters
    ----------
    events : GapEvents
    rules : GapRules
    matches : MatchEvents
    n : int64
        A match that :func:`take_match` has taken.
    match : Intervals
        Its times.
    bounds : (4, l) int64
        Overwritten: the last two rows are its tight bounds, ticks.
    window : int64

    Returns
    -------
    feasible : bool
        Whether the match can be; nothing is listed if not.
    listed : int64
        The number of events; -1 without room.
    """
    conditions, scratch = events.conditions, events.scratch
    count = match.lower.shape[0]
    for k in range(count):
        bounds[0, k] = match.lower[k] - k
        bounds[1, k] = match.upper[k] - k
    a, b = bounds[2], bounds[3]
    if not tight_bounds(bounds[0], bounds[1], window - count, a, b):
        return False, 0
    for k in range(count):
        a[k] += k
        b[k] += k
    length = rules.taking.shape[0]
    first = matches.place[matches.start[n]]
    listed = 0
    for d in range(1, count):
        plain_checkpoint()
        j = matches.component[matches.start[n] + d]
        pool = rules.taking[j]
        question = (-1, 0, 0, -1)
        stop = scratch.stop[j]
        if pool >= 0:
            begin = conditions.stages[j, 0 if d == scratch.start[j] else 1]
            question = (d, begin, conditions.stages[j, 2], j)
            scratch.stop[j] = d + 1
        elif rules.between >= 0:
            pool = rules.between
        else:
            continue
        listed = collect(events, pool, first, a[d - 1], b[d], d, question, listed)
        scratch.stop[j] = stop
        if listed < 0:
            return True, listed
    for k in range(rules.negated.shape[0]):
        after = rules.after[k]
        if after == 0:
            above, until, gap = a[count - 1] - window, b[0], 0
        elif after == length:
            above, until, gap = a[count - 1], b[0] + window, count
        else:
            gap = scratch.start[after]
            above, until = a[gap - 1], b[gap]
        question = (scratch.start[length + k], conditions.negated[k], conditions.negated[k + 1], -1)
        listed = collect(events, rules.negated[k], first, above, until, gap, question, listed)
        if listed < 0:
            return True, listed
    return True, listed


def intervals_given(
    held: HeldOffsets, n: int, rows: Int64, lower: Int64, upper: Int64, law: Int64
) -> tuple[Int64, Int64, Int64]:
    """Return bounds of the events of match n, and where their probabilities start, given the offsets held.

    ``lower``, ``upper`` and ``law``, (l,) int64, are those of independent times.
    """
    if len(held.start):
        times_by_clock = held.own
        for i in range(held.start[n], held.start[n + 1]):
            by_clock = times_by_clock.clock[rows] == held.clock[i]
            lower = np.where(by_clock, times_by_clock.lower[rows] + held.value[i], lower)
            upper = np.where(by_clock, times_by_clock.upper[rows] + held.value[i], upper)
            law = np.where(by_clock, times_by_clock.offset[rows], law)
    return lower, upper, law
