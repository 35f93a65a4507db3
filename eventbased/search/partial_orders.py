"""Matches of partially ordered components: sets and sequences of sets, over candidates sorted by bounds.

A depth-first search over the components in pattern order, which extends the order that the pattern asks for.
Of the events taken so far it knows the earliest time of each (the forward bound of Zhang, Diao, Immerman,
PVLDB 3(1), 2010, section 4.1, along every path of the order) and the latest one: order and window hold for
some choice of times iff no earliest time is behind its event's interval and the largest is within a window of
the smallest latest time. So a prefix that cannot happen is left at once, and what is emitted is possible as
far as intervals go. A Kleene component in AND takes its events by ascending place: a set comes out once. So
is a prefix in whose gaps a negated event is for certain (:mod:`eventbased.search.negation_pruning`), and one
that is too unlikely to reach the confidence that is wanted. That of all that extends it is at most

* P(two of its events are in order and within the window), for every two of them, as that is part of it; of
  two without an order, P(abs(t - s) < W);
* the product over chains and pairs that share no event: as their times are independent, so are chains and
  pairs. For a chain it is at most ``prod P(t_i < t_{i+1})`` (:mod:`eventbased.upper_bounds`, step 3), for a
  pair without an order P(abs(t - s) < W). Each event, when it is taken, is linked to the one with which it is
  least likely: behind one that nothing is linked to yet, or beside one that no other is linked with at all.

Where the events of some components are chosen beforehand, the search is confined to them, one choice after
the other.

The state lives in arrays, so that the search goes on where it stopped, in memory bounded by the longest match
and the buffer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.predicates.conditions import accumulate, all_hold
from eventbased.config import MOST_TICK_STEPS, SEARCH_STEPS
from eventbased.joins.pivot_join import first_above
from eventbased.search.negation_pruning import is_barred
from eventbased.thresholds import needed
from eventbased.time_differences import in_order, in_window, near

__all__ = [
    "EXHAUSTED",
    "FULL",
    "MOST_EVENTS",
    "PAUSED",
    "TOO_LONG",
    "Choosing",
    "SetCandidates",
    "SetPattern",
    "choose",
    "promising_sets",
    "start_choosing",
]

EXHAUSTED: Final = 0
FULL: Final = 1
TOO_LONG: Final = 2
PAUSED: Final = 3

TAKE: Final = 0
PROCEED: Final = 1
EMIT: Final = 2
END: Final = 3

FRESH: Final = -1

MOST_EVENTS: Final = 62
"""Most events of one match: they are the bits of a number."""

FAR: Final = 2**62

NO_MORE: Final = -1
SPENT: Final = -2

Int64 = NDArray[np.int64]


class SetCandidates(NamedTuple):
    """Candidates of the components on one time line.

    Attributes
    ----------
    first_class : (l + 1,) int64, class_start, class_stop, class_longest : (c,) int64
        See :class:`eventbased.layout.Candidates`.
    lower, upper : (n,) int64
        Interval bounds, ticks, inclusive; ascending ``lower`` within a class.
    row : (n,) int64
        The event, the same wherever it is a candidate.
    offset : (n,) int64
        Where its probabilities start; -1 for uniform.
    """

    first_class: Int64
    class_start: Int64
    class_stop: Int64
    class_longest: Int64
    lower: Int64
    upper: Int64
    row: Int64
    offset: Int64


class SetPattern(NamedTuple):
    """What the search asks of a match besides the conditions.

    Attributes
    ----------
    kleene : (l,) bool
    is_set : (l,) bool
        Whether the events of a Kleene component have no order.
    before : (l,) int64
        Bits of the components all of whose events come before those of each; lower numbers only.
    window : int
        W, ticks.
    """

    kleene: NDArray[np.bool_]
    is_set: NDArray[np.bool_]
    before: Int64
    window: int


class Choosing(NamedTuple):
    """Where a search stands.

    Attributes
    ----------
    depth : (1,) int64
        Number of events taken; -1 when there are no more matches of a choice.
    choice : (1,) int64
        Which of the choices given beforehand the search is confined to.
    frames : (4, d + 1) int64
        With so many events taken: phase, class and candidate to go on with, component of the last event.
    earliest : (d,) int64
        The earliest time of each event taken.
    bounds : (2, d + 1) int64
        Largest earliest and smallest latest time.
    used : (rows,) bool
        Whether an event is part of the match.
    latest : (d,) int64
        Work array.
    chance : (2, d + 1) float64
        Bounds on the confidence: the product over chains and pairs, and the smallest of two events.
    links : (2, d + 1) int64
        Bits of the events that another one is linked to, and of those that are linked to another one.
    taken : (l,) int64
        How many partial matches there were whose last event each component has taken.
    """

    depth: Int64
    choice: Int64
    frames: Int64
    earliest: Int64
    bounds: Int64
    used: NDArray[np.bool_]
    latest: Int64
    chance: NDArray[np.float64]
    links: Int64
    taken: Int64


PHASE: Final = 0
CLASS: Final = 1
INDEX: Final = 2
COMPONENT: Final = 3

TOP: Final = 0
LOW: Final = 1

PRODUCT: Final = 0
LEAST: Final = 1

LINKED: Final = 0
LINKING: Final = 1


def start_choosing(rows: int, length: int) -> Choosing:
    """Return a search for matches of ``length`` components that stands before the first match."""
    frames = np.zeros((4, MOST_EVENTS + 1), dtype=np.int64)
    frames[COMPONENT, 0] = -1
    bounds = np.zeros((2, MOST_EVENTS + 1), dtype=np.int64)
    bounds[TOP, 0] = -FAR
    bounds[LOW, 0] = FAR
    return Choosing(
        np.full(1, -1, dtype=np.int64),
        np.full(1, -1, dtype=np.int64),
        frames,
        np.zeros(MOST_EVENTS, dtype=np.int64),
        bounds,
        np.zeros(rows, dtype=np.bool_),
        np.zeros(MOST_EVENTS, dtype=np.int64),
        np.ones((2, MOST_EVENTS + 1)),
        np.zeros((2, MOST_EVENTS + 1), dtype=np.int64),
        np.zeros(length, dtype=np.int64),
    )


@kernel
def _is_before(pattern, earlier, later):
    """Return whether an event of one component comes before an event of another taken after it."""
    if earlier == later:
        return pattern.kleene[later] and not pattern.is_set[later]
    return pattern.before[later] >> earlier & 1 != 0


@kernel
def _smallest_latest(given, pattern, state, work, c, at, d):
    """Return the smallest of the events' latest times, with candidate ``at`` as event d. O(d^2)."""
    components = state.frames[COMPONENT]
    latest = state.latest
    latest[d] = given.upper[at]
    smallest = latest[d]
    for i in range(d - 1, -1, -1):
        latest[i] = given.upper[work.element[i]]
        if _is_before(pattern, components[i + 1], c):
            latest[i] = min(latest[i], latest[d] - 1)
        for k in range(i + 1, d):
            if _is_before(pattern, components[i + 1], components[k + 1]):
                latest[i] = min(latest[i], latest[k] - 1)
        smallest = min(smallest, latest[i])
    return smallest


@kernel
def _next_candidate(c, d, given, pattern, conditions, state, work, fixed, most_steps):
    """Return the next candidate that component ``c`` takes as event ``d`` of the match, NO_MORE, or SPENT."""
    frames, bounds = state.frames, state.bounds
    after = -FAR
    for i in range(d):
        if _is_before(pattern, frames[COMPONENT, i + 1], c):
            after = max(after, state.earliest[i] + 1)
    number = d - work.start[c]
    above = work.element[d - 1] if pattern.is_set[c] and number > 0 else -1
    needed = max(after, bounds[TOP, d] - pattern.window + 1)
    # In this order: the bound and the window together may be 2^63.
    until = pattern.window - 1 + bounds[LOW, d]
    begin = conditions.stages[c, 0] if number == 0 else conditions.stages[c, 1]
    end = conditions.stages[c, 2]
    choice = state.choice[0]
    own = fixed[c, choice]
    for later in range(c + 1, fixed.shape[0]):
        chosen = fixed[later, choice]
        if chosen >= 0:
            needed = max(needed, given.lower[chosen] - pattern.window + 1)
            spare = -1 if _is_before(pattern, c, later) else pattern.window - 1
            until = min(until, given.upper[chosen] + spare)
    tried = False
    while frames[CLASS, d] < given.first_class[c + 1]:
        k = frames[CLASS, d]
        if k == FRESH or frames[INDEX, d] == FRESH:
            if k == FRESH:
                k = given.first_class[c]
                frames[CLASS, d] = k
            start = given.class_start[k]
            if own >= 0:
                start = own
            elif d > 0:
                work.steps[0] += SEARCH_STEPS
                least = max(needed - 1, -FAR) - given.class_longest[k]
                start = first_above(given.lower, start, given.class_stop[k], least, start)
            frames[INDEX, d] = start
        at = frames[INDEX, d]
        stop = given.class_stop[k] if own < 0 else own + 1
        while at < stop and given.lower[at] <= until:
            if tried and work.steps[0] >= most_steps:
                return SPENT
            tried = True
            work.steps[0] += 1
            frames[INDEX, d] = at + 1
            time = max(given.lower[at], after)
            top = max(bounds[TOP, d], time)
            if at > above and given.upper[at] >= max(needed, time) and not state.used[given.row[at]]:
                work.steps[0] += d * d
                low = _smallest_latest(given, pattern, state, work, c, at, d)
                work.element[d] = at
                if top - low < pattern.window and (begin == end or all_hold(conditions, work, begin, end, c)):
                    state.earliest[d] = time
                    bounds[TOP, d + 1] = top
                    bounds[LOW, d + 1] = low
                    return at
            at += 1
        frames[CLASS, d] = k + 1 if own < 0 else given.first_class[c + 1]
        frames[INDEX, d] = FRESH
    return NO_MORE


@kernel
def _enter(d, phase, state):
    """Begin a phase of the frame with ``d`` events taken."""
    state.frames[PHASE, d] = phase
    state.frames[CLASS, d] = FRESH
    state.frames[INDEX, d] = FRESH


@kernel
def _can_reach(given, pattern, wanted, state, work, c, at, d, need):
    """Return whether a match with candidate ``at`` as event d can be as likely as needed. O(d) pairs."""
    low, high, offset = given.lower[at], given.upper[at], given.offset[at]
    linked, linking = state.links[LINKED, d], state.links[LINKING, d]
    least = state.chance[LEAST, d]
    factor = 1.0
    partner = -1
    paired = False
    explicit = wanted.pmf.shape[0] > 0
    for i in range(d):
        e = work.element[i]
        work.steps[0] += 1
        if explicit:
            # Longer uniform intervals are not gone through.
            work.steps[0] += min(high - low, MOST_TICK_STEPS) + min(
                given.upper[e] - given.lower[e], MOST_TICK_STEPS
            )
        before = _is_before(pattern, state.frames[COMPONENT, i + 1], c)
        if before:
            _, both = in_window(
                given.lower[e], given.upper[e], given.offset[e], low, high, offset, pattern.window,
                wanted.pmf, wanted.head,
            )  # fmt: skip
        else:
            both = near(
                given.lower[e], given.upper[e], given.offset[e], low, high, offset, pattern.window,
                wanted.pmf, wanted.head,
            )  # fmt: skip
        least = min(least, both)
        if least < need:
            return False
        if linked >> i & 1 == 1 or (not before and linking >> i & 1 == 1):
            continue
        if before:
            both = in_order(
                given.lower[e], given.upper[e], given.offset[e], low, high, offset, wanted.pmf, wanted.head
            )
        if both < factor:
            factor = both
            partner = i
            paired = not before
    bit = np.int64(1)
    product = state.chance[PRODUCT, d] * factor
    state.chance[PRODUCT, d + 1] = product
    state.chance[LEAST, d + 1] = least
    if partner >= 0:
        linked |= bit << partner
        linking |= bit << d
        if paired:
            # A pair is complete: nothing else may be linked to either of its events.
            linked |= bit << d
    state.links[LINKED, d + 1] = linked
    state.links[LINKING, d + 1] = linking
    return product >= need


@kernel
def promising_sets(given, pattern, wanted, state, work, chosen, out):
    """Set which matches of single events can reach the confidence that is wanted. O(l^2 m).

    Parameters
    ----------
    given : SetCandidates
    pattern : SetPattern
    wanted : eventbased.search.backtracking.Wanted
    state : Choosing
    work : confidence.predicates.conditions.Scratch
    chosen : (l, m) int64
        The candidates of each match.
    out : (m,) bool
        Overwritten.
    """
    length, count = chosen.shape
    need = needed(wanted.least)
    for c in range(length):
        state.frames[COMPONENT, c + 1] = c
    for n in range(count):
        out[n] = wanted.rank.shape[0] == 0 or wanted.rank[chosen[0, n]] <= wanted.last_rank
        c = 0
        while c < length and out[n]:
            out[n] = _can_reach(given, pattern, wanted, state, work, c, chosen[c, n], c, need)
            work.element[c] = chosen[c, n]
            c += 1


@kernel
def choose(
    given, pattern, conditions, barriers, wanted, state, work, fixed, most_steps, most, out_start, out_place,
    out_component,
):  # fmt: skip
    """Find matches and go on from there at the next call.

    Parameters
    ----------
    given : SetCandidates
    pattern : SetPattern
    conditions : confidence.predicates.conditions.Conditions
    barriers : eventbased.search.negation_pruning.Barriers
    wanted : eventbased.search.backtracking.Wanted
    state : Choosing
    work : confidence.predicates.conditions.Scratch
        For ``MOST_EVENTS`` events.
    fixed : (l, m) int64
        For each choice made beforehand, all different, the candidate of each component; -1 for one that takes
        any. A single choice of -1 leaves everything to the search.
    most_steps : int64
        Steps after which to pause, at least 1; see :func:`confidence.budget.steps_per_call`.
    most : int64
        Most matches to find.
    out_start : (most + 1,) int64; out_place, out_component : (s,) int64
        Overwritten: the events of match n, in order, are at ``out_start[n] .. out_start[n + 1] - 1``; s is at
        least ``MOST_EVENTS``.

    Returns
    -------
    status : int64
        EXHAUSTED; FULL; TOO_LONG if a match has more than ``MOST_EVENTS`` events; PAUSED if it took
        ``most_steps``.
    found : int64
        Matches found by this call.
    """
    length = pattern.kleene.shape[0]
    frames, start, stop = state.frames, work.start, work.stop
    need = needed(wanted.least)
    ranked = wanted.rank.shape[0] > 0
    found = 0
    filled = 0
    out_start[0] = 0
    work.steps[0] = 0
    while True:
        if work.steps[0] >= most_steps:
            return PAUSED, found
        work.steps[0] += SEARCH_STEPS
        if state.depth[0] < 0:
            if state.choice[0] + 1 >= fixed.shape[1]:
                return EXHAUSTED, found
            state.choice[0] += 1
            state.depth[0] = 0
            _enter(0, PROCEED, state)
        d = state.depth[0]
        phase = frames[PHASE, d]
        own = frames[COMPONENT, d]
        if phase == END:
            state.depth[0] = d - 1
            if d > 0:
                state.used[given.row[work.element[d - 1]]] = False
            continue
        if phase == EMIT:
            if found == most or filled + d > out_place.shape[0]:
                return FULL, found
            for k in range(d):
                out_place[filled + k] = work.element[k]
                out_component[filled + k] = frames[COMPONENT, k + 1]
            filled += d
            found += 1
            out_start[found] = filled
            frames[PHASE, d] = END
            continue
        if phase == PROCEED and own >= 0 and frames[CLASS, d] == FRESH:
            stop[own] = d
            done, other = conditions.stages[own, 2], conditions.stages[own, 3]
            if done < other and not all_hold(conditions, work, done, other, -1):
                frames[PHASE, d] = END
                continue
            if own == length - 1:
                frames[PHASE, d] = EMIT
                continue
        c = own if phase == TAKE else own + 1
        if d == MOST_EVENTS:
            return TOO_LONG, found
        if phase == PROCEED:
            start[c] = d
        stop[c] = d + 1
        at = _next_candidate(c, d, given, pattern, conditions, state, work, fixed, most_steps)
        if at == SPENT:
            return PAUSED, found
        if at == NO_MORE:
            if phase == TAKE:
                _enter(d, PROCEED, state)
            else:
                frames[PHASE, d] = END
            continue
        if d == 0 and ranked and wanted.rank[at] > wanted.last_rank:
            continue
        if need > 0.0 and not _can_reach(given, pattern, wanted, state, work, c, at, d, need):
            continue
        work.element[d] = at
        if phase == PROCEED and is_barred(
            barriers, conditions, work, c, pattern.is_set, state.earliest, given.upper
        ):
            continue
        state.used[given.row[at]] = True
        state.taken[c] += 1
        accumulate(conditions, work, c, d)
        frames[COMPONENT, d + 1] = c
        _enter(d + 1, TAKE if pattern.kleene[c] else PROCEED, state)
        state.depth[0] = d + 1
