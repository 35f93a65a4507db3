"""Matches grown event by event: Kleene components, and any strategy, over candidates sorted by their bounds.

A depth-first search. The events taken so far leave four numbers behind: the earliest time E of the last one
(the paper's forward bound, section 4.1), ``max(lower_i - i)``, ``min(upper_i - i)``, and how many they are.
With them, order and window are decided for the whole match and are necessary for every prefix. After an event
of a Kleene component the search takes another of the same component, or proceeds to the next one (SASE+,
Agrawal et al., SIGMOD 2008), so that no component is written out k times.

Branches end early where

* nothing that follows can be late enough: running maxima of the latest time up to which the components that
  are left can still be completed;
* something certainly came in between (NELT, Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 3.2): under skip
  till next match, of the candidates that pass the conditions and start after the last event ends, none that
  starts after another of them has ended; under contiguity the same of all events that forbid;
* an event that a negation forbids is in its gap for certain (:mod:`eventbased.search.negation_pruning`);
* the events so far are too unlikely to reach the confidence that is wanted. A match that extends them has
  them in order and within the window, so that its confidence is at most P(t_0 < ... < t_d, t_d - t_0 < W).
  That is at most ``P(t_d - t_0 < W) prod P(t_i < t_{i+1})``, see :mod:`eventbased.upper_bounds` for a proof,
  and at most ``P(0 < t_d - t_0 < W)``, as it is part of it.

Where the events of some components are chosen beforehand, the search is confined to them, one choice after
the other, and what is left to take lies between.

The state lives in arrays, so that the search goes on where it stopped, in memory bounded by the longest match
and the buffer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.predicates.conditions import accumulate, all_hold
from eventbased.config import SEARCH_STEPS
from eventbased.joins.pivot_join import first_above
from eventbased.search.negation_pruning import is_barred
from eventbased.thresholds import needed
from eventbased.time_differences import in_order, in_window

__all__ = [
    "DEEPER",
    "EXHAUSTED",
    "FULL",
    "PAUSED",
    "TOO_LONG",
    "Growing",
    "Pattern",
    "SortedCandidates",
    "Wanted",
    "completions",
    "grow",
    "promising_choices",
    "start_growing",
]

EXHAUSTED: Final = 0
FULL: Final = 1
DEEPER: Final = 2
TOO_LONG: Final = 3
PAUSED: Final = 4

TAKE: Final = 0
PROCEED: Final = 1
EMIT: Final = 2
END: Final = 3

FRESH: Final = -1

UNLIMITED: Final = 2**63 - 1
NEVER: Final = -(2**63)

NO_MORE: Final = -1
SPENT: Final = -2

Int64 = NDArray[np.int64]


class SortedCandidates(NamedTuple):
    """Candidates of the components on one time line.

    Attributes
    ----------
    first_class : (l + 1,) int64, class_start, class_stop, class_longest : (c,) int64
        See :class:`eventbased.layout.Candidates`.
    lower, upper : (n,) int64
        Interval bounds, ticks, inclusive; ascending ``lower`` within a class.
    latest : (n,) int64
        The latest time at which a candidate can happen and the components behind its own still be filled.
    reach : (n,) int64
        Running maxima of ``latest`` within a class.
    row : (n,) int64
        The event, the same wherever it is a candidate.
    limit : (n,) int64
        The latest start of an event that can follow directly; empty if the strategy sets none.
    offset : (n,) int64
        Where its probabilities start; -1 for uniform.
    """

    first_class: Int64
    class_start: Int64
    class_stop: Int64
    class_longest: Int64
    lower: Int64
    upper: Int64
    latest: Int64
    reach: Int64
    row: Int64
    limit: Int64
    offset: Int64


class Pattern(NamedTuple):
    """What the search asks of a match besides the conditions.

    Attributes
    ----------
    kleene : (l,) bool
    window : int
        W, ticks.
    skips_to_next : bool
        Whether the strategy is skip till next match.
    """

    kleene: NDArray[np.bool_]
    window: int
    skips_to_next: bool


class Wanted(NamedTuple):
    """Which matches need to be found.

    Attributes
    ----------
    least : float
        Those of a smaller confidence need not be.
    rank : (n,) int64, or (0,) to look at none; last_rank : int64
        Nor those whose first event, a candidate of the first component, has a rank above ``last_rank``.
    pmf, head : (m,) float64
        Explicit probabilities and their :func:`confidence.running_sums`.
    """

    least: float
    rank: Int64
    last_rank: int
    pmf: NDArray[np.float64]
    head: NDArray[np.float64]


class Growing(NamedTuple):
    """Where a search stands; arrays for matches of at most d events.

    Attributes
    ----------
    depth : (1,) int64
        Number of events taken; -1 when there are no more matches of a choice.
    choice : (1,) int64
        Which of the choices given beforehand the search is confined to.
    frames : (5, d + 1) int64
        With so many events taken: phase, class and candidate to go on with, latest start allowed, component
        of the event taken last.
    bounds : (3, d + 1) int64
        Earliest time of the last event, ``max(lower_i - i)``, ``min(upper_i - i)``.
    chance : (d + 1,) float64
        The product of ``P(t_i < t_{i+1})``.
    used : (rows,) bool
        Whether an event is part of the match.
    taken : (l,) int64
        How many partial matches there were whose last event each component has taken.
    """

    depth: Int64
    choice: Int64
    frames: Int64
    bounds: Int64
    chance: NDArray[np.float64]
    used: NDArray[np.bool_]
    taken: Int64

    def deeper(self, depth: int) -> Growing:
        """Return the same state with arrays for matches of up to ``depth`` events."""
        frames = np.zeros((5, depth + 1), dtype=np.int64)
        bounds = np.zeros((3, depth + 1), dtype=np.int64)
        chance = np.ones(depth + 1)
        size = self.frames.shape[1]
        frames[:, :size], bounds[:, :size], chance[:size] = self.frames, self.bounds, self.chance
        return Growing(self.depth, self.choice, frames, bounds, chance, self.used, self.taken)


PHASE: Final = 0
CLASS: Final = 1
INDEX: Final = 2
LIMIT: Final = 3
COMPONENT: Final = 4

EARLIEST: Final = 0
TOP: Final = 1
LOW: Final = 2


def start_growing(depth: int, rows: int, length: int) -> Growing:
    """Return a search for matches of ``length`` components that stands before the first match."""
    frames = np.zeros((5, depth + 1), dtype=np.int64)
    frames[COMPONENT, 0] = -1
    bounds = np.zeros((3, depth + 1), dtype=np.int64)
    bounds[EARLIEST, 0] = NEVER
    bounds[TOP, 0] = NEVER
    bounds[LOW, 0] = UNLIMITED
    return Growing(
        np.full(1, -1, dtype=np.int64),
        np.full(1, -1, dtype=np.int64),
        frames,
        bounds,
        np.ones(depth + 1),
        np.zeros(rows, dtype=np.bool_),
        np.zeros(length, dtype=np.int64),
    )


@kernel
def _reach(first_class, class_start, class_stop, lower, reach, component, until):
    """Return the largest ``reach`` of a component's candidates that start by ``until``. O(c log n)."""
    best = NEVER
    for k in range(first_class[component], first_class[component + 1]):
        i = first_above(lower, class_start[k], class_stop[k], until, class_start[k])
        if i > class_start[k]:
            best = max(best, reach[i - 1])
    return best


@kernel
def completions(first_class, class_start, class_stop, lower, upper, window, latest, reach):
    """Fill ``latest`` and ``reach`` of :class:`SortedCandidates`. O(n c log n).

    The event of component j + 1 comes before ``l - 2 - j`` others, or more, and the last of them at most
    W - 1 ticks behind that of component j: so it starts by ``until``. That of component j is before it.
    """
    length = first_class.shape[0] - 1
    for j in range(length - 1, -1, -1):
        for k in range(first_class[j], first_class[j + 1]):
            best = NEVER
            for i in range(class_start[k], class_stop[k]):
                latest[i] = upper[i]
                if j < length - 1:
                    until = upper[i] + window - 1 - (length - 2 - j)
                    after = _reach(first_class, class_start, class_stop, lower, reach, j + 1, until)
                    latest[i] = min(upper[i], max(after, NEVER + 1) - 1)
                best = max(best, latest[i])
                reach[i] = best


@kernel
def _next_candidate(c, d, given, pattern, conditions, state, work, fixed, remaining, most_steps):
    """Return the next candidate that component ``c`` takes as event ``d`` of the match, NO_MORE, or SPENT."""
    frames, bounds = state.frames, state.bounds
    earliest = bounds[EARLIEST, d]
    until = UNLIMITED
    last_upper = UNLIMITED
    if d > 0:
        until = pattern.window - 1 + bounds[LOW, d] - remaining
        last = work.element[d - 1]
        last_upper = given.upper[last]
        if given.limit.shape[0] > 0:
            until = min(until, given.limit[last])
    choice = state.choice[0]
    own = fixed[c, choice]
    for ahead in range(1, remaining + 1):
        chosen = fixed[c + ahead, choice]
        if chosen >= 0:
            until = min(until, given.upper[chosen] - ahead)
            break
    number = d - work.start[c]
    begin = conditions.stages[c, 0] if number == 0 else conditions.stages[c, 1]
    end = conditions.stages[c, 2]
    classes_ahead = given.first_class[c + 2] - given.first_class[c + 1] if remaining > 0 else 0
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
                above = earliest - given.class_longest[k]
                start = first_above(given.lower, start, given.class_stop[k], above, start)
            frames[INDEX, d] = start
        i = frames[INDEX, d]
        stop = given.class_stop[k] if own < 0 else own + 1
        while i < stop and given.lower[i] <= until and given.lower[i] <= frames[LIMIT, d]:
            if tried and work.steps[0] >= most_steps:
                frames[INDEX, d] = i
                return SPENT
            tried = True
            work.steps[0] += 1
            at = i
            i += 1
            if given.upper[at] <= earliest or state.used[given.row[at]]:
                continue
            time = max(given.lower[at], earliest + 1) if d > 0 else given.lower[at]
            top = max(bounds[TOP, d], given.lower[at] - d)
            low = min(bounds[LOW, d], given.upper[at] - d)
            spread = max(top - low, 0) + d + remaining
            fits = given.latest[at] >= time and spread < pattern.window
            excludes = pattern.skips_to_next and given.lower[at] > last_upper
            if not (fits or excludes):
                continue
            work.element[d] = at
            if begin < end and not all_hold(conditions, work, begin, end, c):
                continue
            if excludes:
                frames[LIMIT, d] = min(frames[LIMIT, d], given.upper[at])
            if not fits:
                continue
            if remaining > 0:
                work.steps[0] += SEARCH_STEPS * classes_ahead
                until_next = pattern.window - 1 + low - (remaining - 1)
                after = _reach(
                    given.first_class, given.class_start, given.class_stop, given.lower, given.reach, c + 1,
                    until_next,
                )  # fmt: skip
                if after <= time:
                    continue
            frames[INDEX, d] = i
            return at
        frames[CLASS, d] = k + 1 if own < 0 else given.first_class[c + 1]
        frames[INDEX, d] = FRESH
    return NO_MORE


@kernel
def _enter(d, phase, limit, state):
    """Begin a phase of the frame with ``d`` events taken."""
    state.frames[PHASE, d] = phase
    state.frames[CLASS, d] = FRESH
    state.frames[INDEX, d] = FRESH
    state.frames[LIMIT, d] = limit


@kernel
def _in_order(given, wanted, i, k):
    """Return a bound on P(t_i < t_k) for two candidates."""
    return in_order(
        given.lower[i], given.upper[i], given.offset[i], given.lower[k], given.upper[k], given.offset[k],
        wanted.pmf, wanted.head,
    )  # fmt: skip


@kernel
def _bound(given, wanted, first, last, window, chance):
    """Return a bound on the confidence of all that begins with some events, two or more.

    Parameters
    ----------
    first, last : int64
        The candidates of the first and the last of them.
    chance : float64
        The product of ``P(t_i < t_{i+1})`` over all of them.
    """
    inside, ordered = in_window(
        given.lower[first], given.upper[first], given.offset[first],
        given.lower[last], given.upper[last], given.offset[last],
        window, wanted.pmf, wanted.head,
    )  # fmt: skip
    return min(chance * inside, ordered)


@kernel
def promising_choices(given, wanted, window, chosen, out):
    """Set which matches of single events can reach the confidence that is wanted. O(l m).

    Parameters
    ----------
    given : SortedCandidates
    wanted : Wanted
    window : int64
        W, ticks.
    chosen : (l, m) int64
        The candidates of each match.
    out : (m,) bool
        Overwritten.
    """
    length, count = chosen.shape
    need = needed(wanted.least)
    for n in range(count):
        first = chosen[0, n]
        if wanted.rank.shape[0] > 0 and wanted.rank[first] > wanted.last_rank:
            out[n] = False
            continue
        bound = 1.0
        for j in range(1, length):
            bound *= _in_order(given, wanted, chosen[j - 1, n], chosen[j, n])
        if length > 1:
            bound = _bound(given, wanted, first, chosen[length - 1, n], window, bound)
        out[n] = bound >= need


@kernel
def grow(
    given, pattern, conditions, barriers, wanted, state, work, fixed, most_steps, most, out_start, out_place,
    out_component,
):  # fmt: skip
    """Find matches and go on from there at the next call.

    Parameters
    ----------
    given : SortedCandidates
    pattern : Pattern
    conditions : Conditions
    barriers : eventbased.search.negation_pruning.Barriers
    wanted : Wanted
    state : Growing
    work : Scratch
        For as many events as ``state``.
    fixed : (l, m) int64
        For each choice made beforehand, all different, the candidate of each component; -1 for one that takes
        any. A single choice of -1 leaves everything to the search.
    most_steps : int64
        Steps after which to pause, at least 1; see :func:`confidence.budget.steps_per_call`.
    most : int64
        Most matches to find.
    out_start : (most + 1,) int64; out_place, out_component : (s,) int64
        Overwritten: the events of match n, in order, are at ``out_start[n] .. out_start[n + 1] - 1``.

    Returns
    -------
    status : int64
        EXHAUSTED; FULL; DEEPER if ``state`` and ``work`` have no room for another event; TOO_LONG if the
        output has none for a single match; PAUSED if it took ``most_steps``.
    found : int64
        Matches found by this call.
    """
    length = pattern.kleene.shape[0]
    frames, bounds, start, stop = state.frames, state.bounds, work.start, work.stop
    need = needed(wanted.least)
    ranked = wanted.rank.shape[0] > 0
    unordered = np.zeros(length, np.bool_)
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
            _enter(0, PROCEED, UNLIMITED, state)
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
                return (TOO_LONG if found == 0 and filled + d > out_place.shape[0] else FULL), found
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
        if d == frames.shape[1] - 1:
            return DEEPER, found
        c = own if phase == TAKE else own + 1
        if phase == PROCEED:
            start[c] = d
        stop[c] = d + 1
        at = _next_candidate(c, d, given, pattern, conditions, state, work, fixed, length - 1 - c, most_steps)
        if at == SPENT:
            return PAUSED, found
        if at == NO_MORE:
            if phase == TAKE:
                _enter(d, PROCEED, UNLIMITED, state)
            else:
                frames[PHASE, d] = END
            continue
        chance = state.chance[d]
        if d == 0:
            if ranked and wanted.rank[at] > wanted.last_rank:
                continue
        elif need > 0.0:
            if wanted.pmf.shape[0] > 0:
                for other in (work.element[0], work.element[d - 1], at):
                    work.steps[0] += min(given.upper[other] - given.lower[other], most_steps)
            chance *= _in_order(given, wanted, work.element[d - 1], at)
            if chance < need or _bound(given, wanted, work.element[0], at, pattern.window, chance) < need:
                continue
        work.element[d] = at
        bounds[EARLIEST, d + 1] = max(given.lower[at], bounds[EARLIEST, d] + 1) if d > 0 else given.lower[at]
        if phase == PROCEED and is_barred(
            barriers, conditions, work, c, unordered, bounds[EARLIEST, 1:], given.upper
        ):
            continue
        state.used[given.row[at]] = True
        state.taken[c] += 1
        state.chance[d + 1] = chance
        bounds[TOP, d + 1] = max(bounds[TOP, d], given.lower[at] - d)
        bounds[LOW, d + 1] = min(bounds[LOW, d], given.upper[at] - d)
        accumulate(conditions, work, c, d)
        frames[COMPONENT, d + 1] = c
        _enter(d + 1, TAKE if pattern.kleene[c] else PROCEED, UNLIMITED, state)
        state.depth[0] = d + 1
