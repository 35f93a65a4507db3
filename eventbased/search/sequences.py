"""Conditions of a backtracking search on a sequence: each event comes behind the one before.

The events taken so far leave four numbers behind: the earliest time of the last one (the paper's forward
bound, section 4.1), ``max(lower_i - i)``, ``min(upper_i - i)``, and how many they are. With them, order and
window are decided for the whole match and are necessary for every prefix. Nor does a branch go on where
nothing that follows can be late enough: :func:`completions`.

A match that extends some events has them in order and within the window, so that its confidence is at most
P(t_0 < ... < t_d, t_d - t_0 < W). That is at most ``P(t_d - t_0 < W) prod P(t_i < t_{i+1})``, see
:mod:`eventbased.upper_bounds` for a proof, and at most ``P(0 < t_d - t_0 < W)``, as it is part of it.
"""

from __future__ import annotations

from confidence.config import NEVER
from confidence.kernel import kernel
from eventbased.config import MOST_TICK_STEPS
from eventbased.galloping import first_above
from eventbased.search.state import FAR, LOW, PRODUCT
from eventbased.time_differences import in_order, in_window

__all__ = ["chain_can_reach", "completions", "last_start", "limits_in_sequence"]


@kernel
def last_start(first_class, class_start, class_stop, lower, reach, component, until):
    """Return the largest ``reach`` of a component's candidates that start by ``until``. O(c log n)."""
    best = NEVER
    for k in range(first_class[component], first_class[component + 1]):
        i = first_above(lower, class_start[k], class_stop[k], until, class_start[k])
        if i > class_start[k]:
            best = max(best, reach[i - 1])
    return best


@kernel
def completions(candidates, chain, window):
    """Fill ``latest`` and ``reach`` of a sequence. O(n c log n).

    The event of component j + 1 comes before ``l - 2 - j`` others, or more, and the last of them at most
    W - 1 ticks behind that of component j: so it starts by ``until``. That of component j is before it.

    Parameters
    ----------
    candidates : eventbased.search.state.SearchCandidates
    chain : eventbased.search.state.SequenceLimits
    window : int64
        W, ticks.
    """
    first_class, lower, upper = candidates.first_class, candidates.lower, candidates.upper
    class_start, class_stop = candidates.class_start, candidates.class_stop
    latest, reach = chain.latest, chain.reach
    length = first_class.shape[0] - 1
    for j in range(length - 1, -1, -1):
        for k in range(first_class[j], first_class[j + 1]):
            best = NEVER
            for i in range(class_start[k], class_stop[k]):
                latest[i] = upper[i]
                if j < length - 1:
                    until = upper[i] + window - 1 - (length - 2 - j)
                    after = last_start(first_class, class_start, class_stop, lower, reach, j + 1, until)
                    latest[i] = min(upper[i], max(after, NEVER + 1) - 1)
                best = max(best, latest[i])
                reach[i] = best


@kernel(inline=True)
def limits_in_sequence(candidates, chain, pattern, state, work, choices, c, d):
    """Return the earliest time of event ``d``, of component ``c``, and by when its interval starts, ticks."""
    after = -FAR
    until = FAR
    remaining = choices.shape[0] - 1 - c
    if d > 0:
        after = state.earliest[d - 1] + 1
        until = pattern.window - 1 + state.bounds[LOW, d] - remaining
        if chain.limit.shape[0] > 0:
            until = min(until, chain.limit[work.element[d - 1]])
    for ahead in range(1, remaining + 1):
        chosen = choices[c + ahead, state.choice[0]]
        if chosen >= 0:
            return after, min(until, candidates.upper[chosen] - ahead)
    return after, until


@kernel
def chain_can_reach(candidates, pattern, wanted, state, work, i, d, need):
    """Return whether a match with candidate ``i`` as event ``d`` can be as likely as needed."""
    state.chance[PRODUCT, d + 1] = 1.0
    if d == 0:
        return True
    lower, upper, offset = candidates.lower, candidates.upper, candidates.offset
    first, last = work.element[0], work.element[d - 1]
    if wanted.pmf.shape[0] > 0:
        for other in (first, last, i):
            work.steps[0] += min(upper[other] - lower[other], MOST_TICK_STEPS)
    chance = state.chance[PRODUCT, d] * in_order(
        lower[last], upper[last], offset[last], lower[i], upper[i], offset[i], wanted.pmf, wanted.head
    )
    state.chance[PRODUCT, d + 1] = chance
    if chance < need:
        return False
    inside, ordered = in_window(
        lower[first], upper[first], offset[first], lower[i], upper[i], offset[i], pattern.window, wanted.pmf,
        wanted.head,
    )  # fmt: skip
    return min(chance * inside, ordered) >= need
