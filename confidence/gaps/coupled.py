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

from confidence.chain.distribution import exactly
from confidence.chain.pmf import chain_confidence_pmf, support_range
from confidence.chain.tick_pairs import with_pairs
from confidence.chain.uniform import chain_confidence, tight_bounds
from confidence.config import STEPS_TO_HOLD
from confidence.gaps.forbidden import COUPLED, DONE, IMPOSSIBLE, NO_SPACE, TOO_DEAR, chain
from confidence.gaps.places import group_places, list_places, weigh_group
from confidence.kernel import kernel

__all__ = ["INEXACT", "gap_confidence"]

INEXACT: Final = 5


@kernel
def _sum(bounds, window, edge_start, node, edge, front):
    """Return what :func:`confidence.gaps.forbidden.chain` does, for one event too."""
    if node.shape[0] > 1:
        return chain(bounds, window, edge_start, node, edge, front)
    a, b = bounds[0], bounds[1]
    total = 0.0
    first = b[0] + 1
    last = a[0] - 1
    for t in range(a[0], b[0] + 1):
        weight = node[0, t - a[0]]
        if weight > 0.0:
            total += weight
            first = min(first, t)
            last = t
    return total, first, last


@kernel
def _lay_out(bounds, length, window):
    """Set where the edges of each gap start; return their number, the most ticks and a chain's passes."""
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    edges = 0
    ticks = 0
    for j in range(length):
        edge_start[j] = edges
        ticks = max(ticks, b[j] - a[j] + 1)
        if j > 0:
            edges = with_pairs(edges, b[j - 1] - a[j - 1] + 1, b[j] - a[j] + 1)
    passes = 1.0
    if length > 3:
        passes += float(min(max(0, b[length - 1] - window + 1 - a[0]), b[0] - a[0] + 1))
    return edges, ticks, passes


@kernel
def _weigh_all(
    lower, upper, offset, pmf, head, tail, window, found, x_low, x_high, x_offset, x_gap, work, room, t
):
    """Fill the weights of the chain within the bounds; return the number of events that couple it.

    -1 if some event has no place at all. The rows of ``kind``, ``at`` and ``group`` up to that number belong
    to the coupling events.
    """
    bounds, edge, _, node, _, _, coupled, kind, at, places, _ = work
    held, group, spot, groups, marks, side = room
    length = lower.shape[0]
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    edges = _lay_out(bounds, length, window)[0]
    for j in range(length):
        held[j] = a[j] == b[j]
        t[j] = a[j]
        for s in range(a[j], b[j] + 1):
            node[j, s - a[j]] = exactly(lower[j], upper[j], offset[j], pmf, s)
    for e in range(edges):
        edge[e] = 1.0
    count = 0
    for x in range(found):
        low, high = x_low[x], x_high[x]
        many = list_places(x_gap, x, low, high, a[:length], b[:length], window, kind[count], at[count])
        if many < 0:
            continue
        if many == 0:
            return -1
        groups[count] = group_places(kind[count], at[count], many, held, group[count], spot[count], marks)
        if groups[count] == 0:
            spot[count, 0] = -1
        if groups[count] <= 1:
            weigh_group(
                0, spot[count, 0], kind[count], at[count], many, group[count], held, low, high, x_offset[x],
                pmf, head, tail, window, bounds, edge_start, node, edge, t, side,
            )  # fmt: skip
        else:
            coupled[count] = x
            places[0, count] = many
            count += 1
    return count


@kernel
def _solve(
    lower, upper, offset, pmf, head, tail, window, found, x_low, x_high, x_offset, x_gap, work, room, t
):
    """Return the weight, first and last time of the match within the bounds, held times included."""
    bounds, edge, work_edge, node, work_node, front, coupled, kind, at, places, _ = work
    held, group, spot, groups, _, side = room
    length = lower.shape[0]
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    count = _weigh_all(
        lower, upper, offset, pmf, head, tail, window, found, x_low, x_high, x_offset, x_gap, work, room, t
    )
    if count < 0:
        return 0.0, b[0] + 1, a[length - 1] - 1
    if count == 0:
        return _sum(bounds, window, edge_start, node[:length], edge, front)
    edges = _lay_out(bounds, length, window)[0]
    digit = places[1]
    for k in range(count):
        digit[k] = 0
    total = 0.0
    first_time = b[0] + 1
    last_time = a[length - 1] - 1
    while True:
        for j in range(length):
            for s in range(b[j] - a[j] + 1):
                work_node[j, s] = node[j, s]
        for e in range(edges):
            work_edge[e] = edge[e]
        for k in range(count):
            x = coupled[k]
            weigh_group(
                digit[k], spot[k, digit[k]], kind[k], at[k], places[0, k], group[k], held, x_low[x],
                x_high[x], x_offset[x], pmf, head, tail, window, bounds, edge_start, work_node, work_edge,
                t, side,
            )  # fmt: skip
        weight, first, last = _sum(bounds, window, edge_start, work_node[:length], work_edge, front)
        if weight > 0.0:
            total += weight
            first_time = min(first_time, first)
            last_time = max(last_time, last)
        k = 0
        while k < count:
            digit[k] += 1
            if digit[k] < groups[k]:
                break
            digit[k] = 0
            k += 1
        if k == count:
            return total, first_time, last_time


@kernel
def _steps(chosen, bounds, window, active, kind, at, places, group, spot, marks, held):
    """Return about how many steps it takes to hold the chosen times and sum over the others. O(l active)."""
    a, b = bounds[0], bounds[1]
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
        groups = group_places(kind[k], at[k], places[k], held, group, spot, marks)
        if groups > 1:
            choices *= float(groups)
            coupling += 1.0
    one = edges * (float(active) + choices * (passes + coupling))
    return times * (one + STEPS_TO_HOLD * float(length + active)), choices


@kernel
def _choose(bounds, window, active, work, room, chosen, trial):
    """Choose the times to hold; return the steps, whether events couple gaps, and whether any time is held.

    One time after the other, always the one that helps most, down to all: the cheapest choice on the way.
    """
    _, _, _, _, _, _, _, kind, at, places, _ = work
    held, group, spot, _, marks, _ = room
    length = trial.shape[0]
    for j in range(length):
        chosen[j] = trial[j] = False
    holding = False
    best, choices = _steps(trial, bounds, window, active, kind, at, places[0], group[0], spot[0], marks, held)
    coupled = choices > 1.0
    while choices > 1.0:
        least = np.inf
        found = -1
        for j in range(length):
            if trial[j] or bounds[0, j] == bounds[1, j]:
                continue
            trial[j] = True
            steps, _ = _steps(
                trial, bounds, window, active, kind, at, places[0], group[0], spot[0], marks, held
            )
            trial[j] = False
            if steps < least:
                least = steps
                found = j
        if found < 0:
            break
        trial[found] = True
        _, choices = _steps(
            trial, bounds, window, active, kind, at, places[0], group[0], spot[0], marks, held
        )
        if least < best:
            best = least
            holding = True
            for j in range(length):
                chosen[j] = trial[j]
    return best, coupled, holding


@kernel
def _by_held_times(
    lower, upper, offset, pmf, head, tail, window, found, x_low, x_high, x_offset, x_gap, work, room,
    chosen, t,
):  # fmt: skip
    """Return what :func:`_solve` returns, summed over the times to hold, the bounds tightened by each."""
    bounds = work[0]
    length = lower.shape[0]
    order = np.empty(length, np.int64)
    depth = 0
    for j in range(length):
        if chosen[j]:
            order[depth] = j
            depth += 1
    low = np.empty((depth + 1, length), np.int64)
    high = np.empty((depth + 1, length), np.int64)
    now = np.empty(depth, np.int64)
    for j in range(length):
        low[0, j] = bounds[0, j] - j
        high[0, j] = bounds[1, j] - j
    total = 0.0
    first_time = bounds[1, 0] + 1
    last_time = bounds[0, length - 1] - 1
    d = 0
    now[0] = low[0, order[0]] - 1
    while d >= 0:
        j = order[d]
        now[d] += 1
        if now[d] > high[d, j]:
            d -= 1
            continue
        if not exactly(lower[j], upper[j], offset[j], pmf, now[d] + j) > 0.0:
            continue
        a, b = bounds[3, :length], bounds[4, :length]
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
        weight, first, last = _solve(
            lower,
            upper,
            offset,
            pmf,
            head,
            tail,
            window,
            found,
            x_low,
            x_high,
            x_offset,
            x_gap,
            work,
            room,
            t,
        )
        if weight > 0.0:
            total += weight
            first_time = min(first_time, first)
            last_time = max(last_time, last)
    return total, first_time, last_time


@kernel
def _of_nothing_forbidden(lower, upper, offset, pmf, window, bounds, most_steps):
    """Return the confidence of a match that no event can spoil, and its range; NaN if float64 cancels.

    Minus the number of steps in place of the confidence if they are more than ``most_steps``: an explicit
    pmf has every tick from the first to the last time gone through.
    """
    length = lower.shape[0]
    uniform = True
    for j in range(length):
        uniform = uniform and offset[j] < 0
    if not uniform:
        first, last = support_range(lower, upper, offset, pmf, window)
        if first > last:
            return 0.0, first, last
        steps = float(last - first + 1) * float(length)
        if steps > most_steps:
            return -steps, first, last
        return chain_confidence_pmf(lower, upper, offset, pmf, window, first, last), first, last
    first = bounds[0, 0]
    last = bounds[1, length - 1]
    shifted = np.empty((6, length), np.int64)
    for j in range(length):
        shifted[4, j] = lower[j] - j
        shifted[5, j] = upper[j] - j
    value = chain_confidence(
        shifted[4], shifted[5], window - length, bounds[3, :length], bounds[4, :length], shifted[:4],
        np.empty((4, 2 * length + 1)),
    )  # fmt: skip
    return value, first, last


@kernel
def gap_confidence(
    lower, upper, offset, pmf, head, tail, window, found, x_low, x_high, x_offset, x_gap, most_steps, work
):
    """Return the confidence of a match whose gaps must stay free of some events, and its tight time range.

    Parameters
    ----------
    lower, upper : (l,) int64
        Intervals of the match's events in their order, ticks, inclusive; l >= 1.
    offset : (l,) int64
        Where their probabilities start in ``pmf``; -1 for uniform.
    pmf, head, tail : (m,) float64
        Explicit probabilities, and their :func:`confidence.running_sums`.
    window : int64
        W, ticks.
    found : int64
        Number of other events, all distinct.
    x_low, x_high, x_offset : (k,) int64
        Theirs; k >= found.
    x_gap : (k, l + 1) bool
        Whether it is forbidden in each gap: 0 ``[t_{l-1} - W + 1, t_0)``, g ``(t_{g-1}, t_g)``, l
        ``(t_{l-1}, t_0 + W - 1]``. More columns than l + 1 are ignored.
    most_steps : float64
        Most multiplications to spend.
    work : tuple
        From :func:`confidence.workspace`, for at least l events and ``found`` others.

    Returns
    -------
    status : int64
        DONE; IMPOSSIBLE if the confidence is 0; TOO_DEAR if it would take more than ``most_steps``, COUPLED
        if that is because of events that couple gaps, whose sum
        :func:`confidence.gaps.monte_carlo.sampled_confidence` can estimate; NO_SPACE if the work arrays are
        too small; INEXACT if float64 cannot give it and :func:`confidence.exact_chain_confidence` has to
        (only where no event can be in a gap).
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
    bounds, edge, _, node, _, _, _, kind, at, places, spent = work
    length = lower.shape[0]
    a, b = bounds[0, :length], bounds[1, :length]
    for j in range(length):
        bounds[3, j] = lower[j] - j
        bounds[4, j] = upper[j] - j
    if not tight_bounds(bounds[3, :length], bounds[4, :length], window - length, a, b):
        return IMPOSSIBLE, 0.0, 0, -1
    for j in range(length):
        a[j] += j
        b[j] += j
    active = 0
    for x in range(found):
        many = list_places(x_gap, x, x_low[x], x_high[x], a, b, window, kind[active], at[active])
        if many == 0:
            return IMPOSSIBLE, 0.0, 0, -1
        if many > 0:
            places[0, active] = many
            active += 1
    if active == 0:
        # What explicit probabilities cost; of uniform ones it is less than of finding what is forbidden.
        spent[0] += float(length) * (float(b[length - 1] - a[0] + 1) if offset.max() >= 0 else float(length))
        value, first, last = _of_nothing_forbidden(lower, upper, offset, pmf, window, bounds, most_steps)
        if value == 0.0:
            return IMPOSSIBLE, 0.0, 0, -1
        if value < 0.0:
            return TOO_DEAR, -value, 0, -1
        if not np.isnan(value):
            return DONE, min(value, 1.0), first, last
    edges, ticks, passes = _lay_out(bounds, length, window)
    steps = float(max(edges, ticks)) * (passes + float(active))
    if steps > most_steps:
        if active == 0:
            return INEXACT, 0.0, a[0], b[length - 1]
        return TOO_DEAR, steps, 0, -1
    if edges > edge.shape[0] or ticks > node.shape[1]:
        return NO_SPACE, 0.0, edges, ticks
    spent[0] += steps
    rows = max(active, 1)
    room = (
        np.empty(length, np.bool_),
        np.empty((rows, 2 * length + 4), np.int64),
        np.empty((rows, 2 * length + 4), np.int64),
        np.empty(rows, np.int64),
        np.empty((2, length), np.int64),
        np.empty((2, ticks)),
    )
    chosen = np.empty(length, np.bool_)
    t = np.empty(length, np.int64)
    steps, may_couple, holding = _choose(
        bounds, window, active, work, room, chosen, np.empty(length, np.bool_)
    )
    if may_couple and steps > most_steps:
        count = _weigh_all(
            lower,
            upper,
            offset,
            pmf,
            head,
            tail,
            window,
            found,
            x_low,
            x_high,
            x_offset,
            x_gap,
            work,
            room,
            t,
        )
        return COUPLED, steps, count, -1
    spent[0] += steps
    if holding:
        total, first, last = _by_held_times(
            lower, upper, offset, pmf, head, tail, window, found, x_low, x_high, x_offset, x_gap, work, room,
            chosen, t,
        )  # fmt: skip
    else:
        total, first, last = _solve(
            lower,
            upper,
            offset,
            pmf,
            head,
            tail,
            window,
            found,
            x_low,
            x_high,
            x_offset,
            x_gap,
            work,
            room,
            t,
        )
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(total, 1.0), first, last
