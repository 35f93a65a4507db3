"""Exact confidence of a match whose gaps stay free, those before its first and behind its last event too.

For a match with times ``t_0 < ... < t_{l-1}`` within W and other events x, independent of it,

    confidence = sum over t of  prod_j p_j(t_j) * prod_x (1 - sum_{g in G(x)} P(x inside gap g)),

with the gaps ``[t_{l-1} - W + 1, t_0)`` (0, leading), ``(t_{g-1}, t_g)`` and ``(t_{l-1}, t_0 + W - 1]`` (l,
trailing): Eq. 2-4 of Zhang, Diao, Immerman, PVLDB 3(1), 2010, with negations at either end. An x whose places
(:mod:`confidence.gaps.places`) a single node or edge can carry weighs a Markov chain. Any other couples it:
either the sum splits into one chain for each choice of a group of its places, or some of the times are held
one by one, so that the places depend on fewer of them (under contiguity, the first and the last). What takes
fewer steps is done; all terms are non-negative and nothing cancels.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from confidence.arrays import largest
from confidence.budget import plain_checkpoint
from confidence.chain.distribution import exactly
from confidence.chain.pmf import chain_confidence_pmf, pmf_steps, support_range
from confidence.chain.uniform import chain_confidence, tight_bounds
from confidence.gaps.chains import (
    COUPLED,
    DONE,
    IMPOSSIBLE,
    INEXACT,
    NO_SPACE,
    SPENT,
    TOO_DEAR,
    Chain,
    fill,
    lay_out,
)
from confidence.gaps.places import (
    AT,
    GROUPS,
    INSIDE,
    KIND,
    PLACES,
    group_places,
    list_places,
    sum_over_groups,
    weigh_group,
)
from confidence.kernel import kernel

__all__ = ["gap_confidence"]

_STEPS_TO_HOLD: Final = 20.0
"""Steps counted for each choice of held times and each event: tightening bounds and filling nodes."""


@kernel
def _weigh_all(match, pmfs, window, listed, forbidden, edges, work):
    """Fill the weights of the chain within the bounds; return the number of events that couple it.

    -1 if some event has no place at all. Those that couple it are listed in ``work``.
    """
    length = match.lower.shape[0]
    chain = Chain(work.bounds, work.node[:length], work.edge, work.front)
    for j in range(length):
        work.held[j] = work.bounds[0, j] == work.bounds[1, j]
        work.times[j] = work.bounds[0, j]
    fill(match, pmfs, chain)
    for e in range(edges):
        work.edge[e] = 1.0
    count = 0
    for x in range(listed):
        plain_checkpoint()
        places = work.places[count]
        place_count = list_places(forbidden, x, work.bounds, length, window, places)
        if place_count < 0:
            continue
        if place_count == 0:
            return -1
        work.coupled[count] = x
        work.counts[PLACES, count] = place_count
        work.counts[GROUPS, count] = group_places(places, place_count, length, work.held, work.marks)
        if work.counts[GROUPS, count] <= 1:
            weigh_group(count, 0, forbidden, pmfs, window, chain, work)
        else:
            count += 1
    return count


@kernel
def _steps(chosen, window, active, work):
    """Return about how many steps it takes to hold the chosen times and sum over the others. O(l active)."""
    a, b, held = work.bounds[0], work.bounds[1], work.held
    length = chosen.shape[0]
    times = 1.0
    edges = 1.0
    for j in range(length):
        held[j] = chosen[j] or a[j] == b[j]
        if chosen[j]:
            times *= float(b[j] - a[j] + 1)
        if j > 0:
            width = 1.0 if held[j] else float(b[j] - a[j] + 1)
            edges += width if held[j - 1] else width * float(b[j - 1] - a[j - 1] + 1)
    passes = 1.0
    if length > 3 and not held[0]:
        passes += float(min(max(0, b[length - 1] - window + 1 - a[0]), b[0] - a[0] + 1))
    choices = 1.0
    coupling = 0.0
    for k in range(active):
        groups = group_places(work.places[k], work.counts[PLACES, k], length, held, work.marks)
        if groups > 1:
            choices *= float(groups)
            coupling += 1.0
    one = edges * (float(active) + choices * (passes + coupling))
    return times * (one + _STEPS_TO_HOLD * float(length + active)), choices


@kernel
def _choose(window, active, most_steps, work, chosen, trial):
    """Choose the times to hold; return the steps, and whether events couple gaps.

    One time after the other, always the one that helps most, down to all: the cheapest choice on the way.
    Only times next to places are held, as no other helps, and the first, on which the window depends. The
    search ends when it has taken as long as the cheapest choice so far, or ``most_steps``.
    """
    length = trial.shape[0]
    helps = work.marks[2]
    for j in range(length):
        chosen[j] = trial[j] = False
        helps[j] = j == 0
    each = float(length)
    for k in range(active):
        for r in range(work.counts[PLACES, k]):
            helps[work.places[k, AT, r]] = 1
            if work.places[k, KIND, r] == INSIDE:
                helps[work.places[k, AT, r] - 1] = 1
        each += 4.0 * float(work.counts[PLACES, k])
    best, choices = _steps(trial, window, active, work)
    coupled = choices > 1.0
    spent = 0.0
    while choices > 1.0 and spent <= min(best, most_steps):
        fewest_steps = np.inf
        found = -1
        for j in range(length):
            if trial[j] or not helps[j] or work.bounds[0, j] == work.bounds[1, j]:
                continue
            if spent > min(best, most_steps):
                break
            plain_checkpoint()
            trial[j] = True
            steps, _ = _steps(trial, window, active, work)
            trial[j] = False
            spent += each
            if steps < fewest_steps:
                fewest_steps = steps
                found = j
        if found < 0:
            break
        trial[found] = True
        _, choices = _steps(trial, window, active, work)
        if fewest_steps < best:
            best = fewest_steps
            for j in range(length):
                chosen[j] = trial[j]
    work.progress[SPENT] += spent
    return best, coupled


@kernel(allocates=True)
def _sum(match, pmfs, window, listed, forbidden, work, chosen):
    """Return the weight, first and last time of a match, summed over the choices of held times."""
    bounds = work.bounds
    length = chosen.shape[0]
    order = np.empty(length + 1, np.int64)
    depth = 0
    for j in range(length):
        if chosen[j]:
            order[depth] = j
            depth += 1
    low = np.empty((depth + 1, length), np.int64)
    high = np.empty((depth + 1, length), np.int64)
    now = np.empty(depth + 1, np.int64)
    a = np.empty(length, np.int64)
    b = np.empty(length, np.int64)
    for j in range(length):
        low[0, j] = bounds[0, j] - j
        high[0, j] = bounds[1, j] - j
    total = 0.0
    first_time = bounds[1, 0] + 1
    last_time = bounds[0, length - 1] - 1
    d = 0
    if depth > 0:
        now[0] = low[0, order[0]] - 1
    while d >= 0:
        if depth > 0:
            j = order[d]
            now[d] += 1
            if now[d] > high[d, j]:
                d -= 1
                continue
            if not exactly(match.lower[j], match.upper[j], match.offset[j], pmfs.values, now[d] + j) > 0.0:
                continue
            for i in range(length):
                a[i] = low[d, i]
                b[i] = high[d, i]
            a[j] = b[j] = now[d]
            if not tight_bounds(a, b, window - length, low[d + 1], high[d + 1]):
                continue
            if d + 1 < depth:
                d += 1
                now[d] = low[d, order[d]] - 1
                continue
            for i in range(length):
                bounds[0, i] = low[depth, i] + i
                bounds[1, i] = high[depth, i] + i
        edges = lay_out(bounds, length, window)[0]
        count = _weigh_all(match, pmfs, window, listed, forbidden, edges, work)
        if count >= 0:
            weight, first, last = sum_over_groups(count, forbidden, pmfs, window, length, edges, work)
            if weight > 0.0:
                total += weight
                first_time = min(first_time, first)
                last_time = max(last_time, last)
        if depth == 0:
            break
    return total, first_time, last_time


@kernel(allocates=True)
def _of_nothing_forbidden(match, pmfs, window, shifted, first, last, most_steps):
    """Return the confidence of a match that no event can spoil, and its range; NaN if float64 cancels.

    Minus the number of steps in place of the confidence if they are more than ``most_steps``: an explicit
    pmf has every tick from the first to the last time gone through.
    """
    length = match.lower.shape[0]
    if largest(match.offset) < 0:
        value = chain_confidence(
            shifted[4], shifted[5], window - length, np.empty(length, np.int64), np.empty(length, np.int64),
            shifted[:4], np.empty((4, 2 * length + 1)),
        )  # fmt: skip
        return value, first, last
    first, last = support_range(match.lower, match.upper, match.offset, pmfs.values, window)
    if first > last:
        return 0.0, first, last
    steps = pmf_steps(match.lower, match.upper, window, first, last)
    if steps > most_steps:
        return -steps, first, last
    value = chain_confidence_pmf(match.lower, match.upper, match.offset, pmfs.values, window, first, last)
    return value, first, last


@kernel(allocates=True)
def gap_confidence(match, pmfs, window, listed, forbidden, most_steps, work):
    """Return the confidence of a match whose gaps must stay free of some events, and its tight time range.

    Parameters
    ----------
    match : Intervals
        The events in their order, at least one.
    pmfs : Pmfs
    window : int64
        W, ticks.
    listed : int64
        Number of other events.
    forbidden : confidence.gaps.chains.Forbidden
        Theirs.
    most_steps : float64
        Most multiplications to spend.
    work : Workspace
        For at least l events and ``listed`` others.

    Returns
    -------
    status : int64
        DONE; IMPOSSIBLE if the confidence is 0; TOO_DEAR if it would take more than ``most_steps``, COUPLED
        if that is because of events that couple gaps: :mod:`confidence.gaps.monte_carlo` can estimate it;
        NO_SPACE if the work arrays are too small; INEXACT if float64 cannot give it and
        :mod:`confidence.chain.exact` has to (only where no event can be in a gap).
    confidence : float64
        For TOO_DEAR and COUPLED the number of steps.
    first, last : int64
        The tightest range, ticks; for NO_SPACE the edges and ticks needed, for COUPLED the coupling events.

    Notes
    -----
    Where no event can be in a gap that forbids it, what :mod:`confidence.chain.uniform` or
    :mod:`confidence.chain.pmf` costs. Else O(l U^2) and as much for each other event, for each first time if
    the window binds, for each choice of places of the events that couple gaps, or for each choice of the
    times held instead.
    """
    bounds = work.bounds
    length = match.lower.shape[0]
    a, b = bounds[0, :length], bounds[1, :length]
    shifted = np.empty((6, length), np.int64)
    for j in range(length):
        shifted[4, j] = match.lower[j] - j
        shifted[5, j] = match.upper[j] - j
    if not tight_bounds(shifted[4], shifted[5], window - length, a, b):
        return IMPOSSIBLE, 0.0, 0, -1
    for j in range(length):
        a[j] += j
        b[j] += j
    active = 0
    for x in range(listed):
        plain_checkpoint()
        place_count = list_places(forbidden, x, bounds, length, window, work.places[active])
        if place_count == 0:
            return IMPOSSIBLE, 0.0, 0, -1
        if place_count > 0:
            work.counts[PLACES, active] = place_count
            active += 1
    if active == 0:
        # What explicit probabilities cost; of uniform ones it is less than of finding what is forbidden.
        ticks = b[length - 1] - a[0] + 1 if largest(match.offset) >= 0 else length
        work.progress[SPENT] += float(length) * float(ticks)
        value, first, last = _of_nothing_forbidden(
            match, pmfs, window, shifted, a[0], b[length - 1], most_steps
        )
        if value == 0.0:
            return IMPOSSIBLE, 0.0, 0, -1
        if value < 0.0:
            return TOO_DEAR, -value, 0, -1
        if not np.isnan(value):
            return DONE, min(value, 1.0), first, last
    edges, ticks, passes = lay_out(bounds, length, window)
    steps = float(max(edges, ticks)) * (passes + float(active))
    if steps > most_steps:
        if active == 0:
            return INEXACT, 0.0, a[0], b[length - 1]
        return TOO_DEAR, steps, 0, -1
    if edges > work.edge.shape[0] or ticks > work.node.shape[1]:
        return NO_SPACE, 0.0, edges, ticks
    work.progress[SPENT] += steps
    chosen = np.empty(length, np.bool_)
    steps, may_couple = _choose(window, active, most_steps, work, chosen, np.empty(length, np.bool_))
    if may_couple and steps > most_steps:
        return COUPLED, steps, _weigh_all(match, pmfs, window, listed, forbidden, edges, work), -1
    work.progress[SPENT] += steps
    total, first, last = _sum(match, pmfs, window, listed, forbidden, work, chosen)
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(total, 1.0), first, last
