"""Matches found event by event, over candidates sorted by bounds: Kleene components, any strategy, sets.

A depth-first search over the components in pattern order. After an event of a Kleene component it takes
another of the same component, or proceeds to the next one (SASE+, Agrawal et al., SIGMOD 2008), so that no
component is written out k times. A Kleene component in AND takes its events by ascending index: a set comes
out once. What order and window leave is named in :mod:`eventbased.search.sequences` and
:mod:`eventbased.search.partial_orders`. Branches also end early where

* something certainly came in between (NELT, Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 3.2): under skip
  till next match, of the candidates that pass the conditions and start after the last event ends, none that
  starts after another of them has ended; under contiguity the same of all events that forbid;
* an event that a negation forbids is in its gap for certain (:mod:`eventbased.search.negation_pruning`);
* the events so far are too unlikely to reach the confidence that is wanted.

Where the events of some components are chosen beforehand, the search is confined to them, one choice after
the other, and what is left to take lies between or beside them.

The state lives in arrays, so that the search goes on where it stopped, in memory bounded by the longest match
and the output.
"""

from __future__ import annotations

from typing import Final

from confidence.config import EVER
from confidence.kernel import kernel
from confidence.predicates.conditions import accumulate, all_hold
from eventbased.galloping import first_above
from eventbased.search.negation_pruning import is_excluded
from eventbased.search.partial_orders import limits_in_order, order_can_reach, smallest_latest
from eventbased.search.sequences import chain_can_reach, last_start, limits_in_sequence
from eventbased.search.state import CLASS, COMPONENT, FAR, FRESH, INDEX, LIMIT, LOW, PHASE, TOP
from eventbased.thresholds import needed

__all__ = ["DEEPER", "EXHAUSTED", "FULL", "PAUSED", "TOO_LONG", "promising", "search"]

EXHAUSTED: Final = 0
FULL: Final = 1
DEEPER: Final = 2
TOO_LONG: Final = 3
PAUSED: Final = 4

TAKE: Final = 0
PROCEED: Final = 1
EMIT: Final = 2
END: Final = 3

NO_MORE: Final = -1
SPENT: Final = -2

_SEARCH_STEPS: Final = 16
"""Steps that a search by bisection among the candidates counts for."""


@kernel(inline=True)
def _limits_of_differences(candidates, pattern, state, work, c, d):
    """Return the tick that event ``d``, of component ``c``, can end by at least, and begin by at most."""
    ends_by, begins_by = -FAR, FAR
    if pattern.apart.shape[0] > 0:
        for x in range(d):
            taken, other = work.element[x], state.frames[COMPONENT, x + 1]
            ends_by = max(ends_by, candidates.lower[taken] + pattern.apart[other, c])
            begins_by = min(begins_by, candidates.end[taken] - pattern.apart[c, other])
    return ends_by, begins_by


@kernel(inline=True)
def _next_candidate(candidates, pattern, chain, before, conditions, state, work, choices, c, d, most_steps):
    """Return the next candidate that component ``c`` takes as event ``d`` of the match, NO_MORE, or SPENT.

    With one, ``state`` has the bounds of the match that it makes.
    """
    frames, bounds = state.frames, state.bounds
    lower, upper = candidates.lower, candidates.upper
    run = choices[c, state.choice[0]]
    remaining = choices.shape[0] - 1 - c
    after, lowest, until, last_upper = -FAR, -FAR, FAR, EVER
    if chain is not None:
        after, until = limits_in_sequence(candidates, chain, pattern, state, work, choices, c, d)
        lowest = after
        if d > 0:
            last_upper = upper[work.element[d - 1]]
    if before is not None:
        after, lowest, until = limits_in_order(candidates, pattern, before, state, choices, c, d)
    ends_by, begins_by = _limits_of_differences(candidates, pattern, state, work, c, d)
    until = min(until, begins_by)
    is_first = d == work.start[c]
    above = work.element[d - 1] if pattern.is_set[c] and not is_first else -1
    begin = conditions.stages[c, 0] if is_first else conditions.stages[c, 1]
    end = conditions.stages[c, 2]
    tried = False
    while frames[CLASS, d] < candidates.first_class[c + 1]:
        if frames[CLASS, d] == FRESH:
            frames[CLASS, d] = candidates.first_class[c]
        k = frames[CLASS, d]
        stop = candidates.class_stop[k] if run < 0 else run + 1
        if frames[INDEX, d] == FRESH:
            start = candidates.class_start[k] if run < 0 else run
            if run < 0 and d > 0:
                work.steps[0] += _SEARCH_STEPS
                begins_behind = max(lowest - 1, -FAR) - candidates.class_longest[k]
                begins_behind = max(begins_behind, max(ends_by - 1, -FAR) - candidates.class_span[k])
                start = first_above(lower, start, stop, begins_behind, start)
            frames[INDEX, d] = start
        following = frames[INDEX, d]
        while following < stop and lower[following] <= min(until, frames[LIMIT, d]):
            if tried and work.steps[0] >= most_steps:
                frames[INDEX, d] = following
                return SPENT
            tried = True
            work.steps[0] += 1
            i = following
            following += 1
            if i <= above or upper[i] < lowest or candidates.end[i] < ends_by:
                continue
            if state.used[candidates.row[i]]:
                continue
            time = max(lower[i], after)
            top, low, fits, excludes = -FAR, FAR, False, False
            if chain is not None:
                top = max(bounds[TOP, d], lower[i] - d)
                low = min(bounds[LOW, d], upper[i] - d)
                spread = max(top - low, 0) + d + remaining
                fits = chain.latest[i] >= time and spread < pattern.window
                excludes = pattern.skips_to_next and chain.begin[i] > last_upper
            if before is not None:
                work.steps[0] += d * d
                top = max(bounds[TOP, d], time)
                low = smallest_latest(candidates, pattern, before, state, work, c, i, d)
                fits = top - low < pattern.window
            if not (fits or excludes):
                continue
            work.element[d] = i
            if begin < end and not all_hold(conditions, work, begin, end, c):
                continue
            # Nested, not joined by "and": so it is not compiled without a chain.
            if chain is not None:  # noqa: SIM102
                if excludes:
                    frames[LIMIT, d] = min(frames[LIMIT, d], chain.over[i])
            if not fits:
                continue
            if chain is not None:  # noqa: SIM102
                if remaining > 0:
                    classes_ahead = candidates.first_class[c + 2] - candidates.first_class[c + 1]
                    work.steps[0] += _SEARCH_STEPS * classes_ahead
                    until_next = pattern.window - 1 + low - (remaining - 1)
                    starts_by = last_start(
                        candidates.first_class, candidates.class_start, candidates.class_stop, lower,
                        chain.reach, c + 1, until_next,
                    )  # fmt: skip
                    if starts_by <= time:
                        continue
            state.earliest[d] = time
            bounds[TOP, d + 1] = top
            bounds[LOW, d + 1] = low
            frames[INDEX, d] = following
            return i
        frames[CLASS, d] = k + 1 if run < 0 else candidates.first_class[c + 1]
        frames[INDEX, d] = FRESH
    return NO_MORE


@kernel(inline=True)
def _can_reach(candidates, pattern, chain, before, wanted, state, work, c, i, d, need):
    """Return whether a match with candidate ``i`` as event ``d``, of component ``c``, can be as likely."""
    reached = False
    if chain is not None:
        reached = chain_can_reach(candidates, pattern, wanted, state, work, i, d, need)
    if before is not None:
        reached = order_can_reach(candidates, pattern, before, wanted, state, work, c, i, d, need)
    return reached


@kernel
def promising(candidates, pattern, chain, before, wanted, state, work, chosen, out):
    """Set which matches of single events can reach the confidence that is wanted.

    Parameters
    ----------
    candidates, pattern, chain, before, wanted, state, work
        As for :func:`search`; of ``state`` and ``work`` only what is overwritten is used.
    chosen : (l, m) int64
        The candidates of each match.
    out : (m,) bool
        Overwritten. O(l m) pairs of events in a sequence, else O(l^2 m).
    """
    length, count = chosen.shape
    need = needed(wanted.least)
    for c in range(length):
        state.frames[COMPONENT, c + 1] = c
    for n in range(count):
        out[n] = wanted.rank.shape[0] == 0 or wanted.rank[chosen[0, n]] <= wanted.last_rank
        c = 0
        while c < length and out[n]:
            out[n] = _can_reach(
                candidates, pattern, chain, before, wanted, state, work, c, chosen[c, n], c, need
            )
            work.element[c] = chosen[c, n]
            c += 1


@kernel(inline=True)
def _enter(state, d, phase):
    """Begin a phase of the frame with ``d`` events taken."""
    state.frames[PHASE, d] = phase
    state.frames[CLASS, d] = FRESH
    state.frames[INDEX, d] = FRESH
    state.frames[LIMIT, d] = EVER


@kernel
def search(
    candidates, pattern, chain, before, conditions, pruning, wanted, state, work, choices, most_steps, most,
    out,
):  # fmt: skip
    """Find matches and go on from there at the next call.

    Parameters
    ----------
    candidates : eventbased.search.state.SearchCandidates
    pattern : eventbased.search.state.SearchPattern
    chain : eventbased.search.state.SequenceLimits or None
        None for partially ordered components.
    before : (l,) int64 or None
        None for a sequence; else the bits of the components all of whose events come before those of each,
        lower numbers only. What is asked of what is None is not compiled.
    conditions : confidence.predicates.conditions.Conditions
    pruning : eventbased.search.negation_pruning.NegationPruning
    wanted : eventbased.search.state.Wanted
    state : eventbased.search.state.SearchState
    work : confidence.predicates.conditions.Scratch
        For as many events as ``state``.
    choices : (l, m) int64
        For each choice made beforehand, all different, the candidate of each component; -1 for one that takes
        any. A single choice of -1 leaves everything to the search.
    most_steps : int64
        Steps after which to pause, at least 1; see :func:`confidence.budget.steps_per_call`.
    most : int64
        Most matches to find.
    out : eventbased.search.state.FoundMatches
        Overwritten; ``start`` is (most + 1,).

    Returns
    -------
    status : int64
        EXHAUSTED; FULL; DEEPER if ``state`` and ``work`` have no room for another event; TOO_LONG if the
        output has none for a single match; PAUSED if it took ``most_steps``.
    matched : int64
        Matches found by this call.
    """
    length = pattern.kleene.shape[0]
    frames, start, stop, upper = state.frames, work.start, work.stop, candidates.upper
    need = needed(wanted.least)
    # A call with all these arrays costs as much as a candidate.
    negated = pruning.stages.shape[0] > 0
    matched = 0
    filled = 0
    out.start[0] = 0
    work.steps[0] = 0
    while True:
        if work.steps[0] >= most_steps:
            return PAUSED, matched
        work.steps[0] += _SEARCH_STEPS
        if state.depth[0] < 0:
            if state.choice[0] + 1 >= choices.shape[1]:
                return EXHAUSTED, matched
            state.choice[0] += 1
            state.depth[0] = 0
            _enter(state, 0, PROCEED)
        d = state.depth[0]
        phase = frames[PHASE, d]
        own_component = frames[COMPONENT, d]
        if phase == END:
            state.depth[0] = d - 1
            if d > 0:
                state.used[candidates.row[work.element[d - 1]]] = False
            continue
        if phase == EMIT:
            room = filled + d <= out.candidate.shape[0]
            if matched == most or not room:
                return (FULL if matched > 0 or room else TOO_LONG), matched
            for k in range(d):
                out.candidate[filled + k] = work.element[k]
                out.component[filled + k] = frames[COMPONENT, k + 1]
            filled += d
            matched += 1
            out.start[matched] = filled
            frames[PHASE, d] = END
            continue
        if phase == PROCEED and own_component >= 0 and frames[CLASS, d] == FRESH:
            stop[own_component] = d
            done, other = conditions.stages[own_component, 2], conditions.stages[own_component, 3]
            if done < other and not all_hold(conditions, work, done, other, -1):
                frames[PHASE, d] = END
                continue
            if own_component == length - 1:
                frames[PHASE, d] = EMIT
                continue
        if d == frames.shape[1] - 1:
            return DEEPER, matched
        c = own_component if phase == TAKE else own_component + 1
        if phase == PROCEED:
            start[c] = d
        stop[c] = d + 1
        i = _next_candidate(
            candidates, pattern, chain, before, conditions, state, work, choices, c, d, most_steps
        )
        if i == SPENT:
            return PAUSED, matched
        if i == NO_MORE:
            if phase == TAKE:
                _enter(state, d, PROCEED)
            else:
                frames[PHASE, d] = END
            continue
        if d == 0 and wanted.rank.shape[0] > 0 and wanted.rank[i] > wanted.last_rank:
            continue
        if need > 0.0 and not _can_reach(
            candidates, pattern, chain, before, wanted, state, work, c, i, d, need
        ):
            continue
        work.element[d] = i
        if (
            negated
            and phase == PROCEED
            and is_excluded(pruning, conditions, work, c, pattern.is_set, state.earliest, upper)
        ):
            continue
        state.used[candidates.row[i]] = True
        state.taken[c] += 1
        accumulate(conditions, work, c, d)
        frames[COMPONENT, d + 1] = c
        _enter(state, d + 1, TAKE if pattern.kleene[c] else PROCEED)
        state.depth[0] = d + 1
