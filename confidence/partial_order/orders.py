"""Exact confidence of a match whose events are partially ordered: sets, and sequences of sets.

The state of a match at a tick is which of its events have happened: a down-set (ideal) of the order. Ticks
are swept in time; at each the events take their chance, those that come later in the order first, so that an
event finds only what happened strictly before it. The mass that reaches the full set is the confidence. The
cost is that of the steps between ideals at every tick, whatever the shape of the order; a set without any
order needs products only. Where the window can bind, or gaps at either end of the match forbid events, the
sweep starts anew for every first time. All terms are non-negative and nothing cancels.

A gap between all the events before it and all those behind it is one ideal: what entered it at b leaves it
at c with the probability that no forbidden event lies in between (Eq. 2-3 of Zhang, Diao, Immerman, PVLDB
3(1), 2010). Gaps beside other events, and events forbidden in several gaps, go through the times one by one.
"""

from __future__ import annotations

import numpy as np

from confidence.arrays import ascending, count_up_to, largest, smallest
from confidence.chain.distribution import at_least, at_most, exactly, inside
from confidence.gaps.chains import BUDGET, DONE, IMPOSSIBLE, PAUSED, SPENT, TOO_DEAR
from confidence.kernel import kernel
from confidence.partial_order.times import (
    AT,
    BEGUN,
    BETWEEN,
    FIRST,
    LAST,
    LEADING,
    TOTAL,
    confidence_by_times,
)

__all__ = ["order_confidence"]


@kernel(allocates=True)
def _of_a_set(match, window, soonest, work):
    """Sum up the confidence of uniform events without any order; return whether it is finished. O(U n).

    The earliest event, of those with one time the first in number, is at s; the others follow in the window.
    """
    lower, upper, progress = match.lower, match.upper, work.progress
    count = lower.shape[0]
    latest = np.empty(count + 1)
    for s in range(work.at[AT], soonest + 1):
        end = s + window - 1
        latest[count] = 1.0
        for j in range(count - 1, -1, -1):
            ticks = min(upper[j], end) - max(lower[j], s) + 1
            latest[j] = latest[j + 1] * max(float(ticks), 0.0) / float(upper[j] - lower[j] + 1)
        earlier = 1.0
        for j in range(count):
            size = float(upper[j] - lower[j] + 1)
            if lower[j] <= s <= upper[j]:
                progress[TOTAL] += earlier * latest[j + 1] / size
            ticks = min(upper[j], end) - max(lower[j], s + 1) + 1
            earlier *= max(float(ticks), 0.0) / size
        progress[SPENT] += float(2 * count)
        if progress[SPENT] >= progress[BUDGET]:
            work.at[AT] = s + 1
            return False
    return True


@kernel(allocates=True)
def _busy(a, b):
    """Return the ticks at which some event can happen, ascending. O(n^2 + sum U)."""
    order = ascending(a, a.shape[0])
    size = 0
    for again in range(2):
        if again == 1:
            busy = np.empty(size, np.int64)
        size = 0
        until = smallest(a) - 1
        for k in range(order.shape[0]):
            e = order[k]
            for t in range(max(a[e], until + 1), b[e] + 1):
                if again == 1:
                    busy[size] = t
                size += 1
            until = max(until, b[e])
    return busy


@kernel
def _sweep(begin, alone, busy, match, pmfs, window, a, b, order, source, gates, entered, free, ends, state):
    """Return the mass of matches whose first event is at a busy tick, or then or later, and its last time.

    ``source`` leads out of a gate from a place behind the ideals, which is filled anew at every tick with
    what entered the gate before.

    Parameters
    ----------
    begin : int64
        The number of the busy tick.
    alone : bool
        Whether the first event is at that tick; else the window has to reach behind the last tick.
    """
    start, target = order.start, order.target
    full = state.shape[0] - gates.shape[0] - 1
    for k in range(state.shape[0]):
        state[k] = 0.0
    state[0] = 1.0
    for k in range(entered.shape[0]):
        for m in range(begin, entered.shape[1]):
            entered[k, m] = 0.0
    total = 0.0
    last = busy[begin] - 1
    n = begin
    while n < busy.shape[0] and busy[n] - busy[begin] < window:
        t = busy[n]
        for k in range(gates.shape[0]):
            out = 0.0
            for m in range(begin, n):
                if entered[k, m] > 0.0:
                    out += entered[k, m] * free[k, n, m]
            state[full + 1 + k] = out
        for e in range(a.shape[0] - 1, -1, -1):
            if a[e] <= t <= b[e]:
                p = exactly(match.lower[e], match.upper[e], match.offset[e], pmfs.values, t)
                if p > 0.0:
                    for k in range(start[e], start[e + 1]):
                        state[target[k]] += p * state[source[k]]
        if alone:
            state[0] = 0.0
        for k in range(gates.shape[0]):
            entered[k, n] = state[gates[k]]
            state[gates[k]] = 0.0
        weight = state[full] * ends[n]
        state[full] = 0.0
        if weight > 0.0:
            total += weight
            last = t
        n += 1
    return total, last


@kernel
def _reaches(place, after, behind, low, high, a, b, window):
    """Return whether an event can lie inside a gap."""
    latest = smallest(a)
    earliest = largest(b)
    if place == BETWEEN:
        for j in range(a.shape[0]):
            if after >> j & 1:
                latest = max(latest, a[j])
            if behind >> j & 1:
                earliest = min(earliest, b[j])
        return high > latest and low < earliest
    if place == LEADING:
        return low < smallest(b) and high > largest(a) - window
    return high > largest(a) and low < smallest(b) + window


@kernel
def _end_weight(s, t, window, ends, low, high, offset, pmfs):
    """Return P(an event lies in none of the gaps at the ends of a match from s to t that forbid it).

    ``ends`` has the bits 1 (leading) and 2 (trailing).
    """
    leading, trailing = ends & 1 > 0, ends & 2 > 0
    free = at_most(low, high, offset, pmfs.head, t - window if leading else t)
    if leading and trailing:
        free += inside(low, high, offset, pmfs.values, s - 1, t + 1)
    return free + at_least(low, high, offset, pmfs.tail, s + window if trailing else s)


@kernel
def _classify(window, a, b, order, found, forbidden, active, role):
    """List the events that a gap can hold; return their number and whether all of them are in one gap only.

    ``role[k]`` is 0 and the gap, or the bits 1 (leading) and 2 (trailing) and -1.
    """
    count = 0
    simple = True
    for x in range(found):
        between = 0
        role[count, 0] = 0
        role[count, 1] = -1
        for g in range(order.gap_place.shape[0]):
            place = order.gap_place[g]
            if not forbidden.gaps[x, g] or not _reaches(
                place, order.gap_after[g], order.gap_before[g], forbidden.lower[x], forbidden.upper[x], a, b,
                window,
            ):  # fmt: skip
                continue
            if place == BETWEEN:
                between += 1
                role[count, 1] = g
                simple = simple and order.gap_cut[g] >= 0
            else:
                role[count, 0] |= 1 if place == LEADING else 2
        if between > 0 or role[count, 0] > 0:
            simple = simple and between + (role[count, 0] > 0) <= 1
            active[count] = x
            count += 1
    return count, simple


@kernel(allocates=True)
def _open_gates(busy, order, count, active, role, forbidden, pmfs):
    """Return the gates that an event may bar, the steps through them, and P(a gate is free from s to t).

    That is ``free[gate, t, s]``, s and t being numbers of busy ticks.
    """
    source, gap_cut = order.source, order.gap_cut
    chosen = np.empty(gap_cut.shape[0], np.int64)
    gates = np.empty(gap_cut.shape[0], np.int64)
    opened = 0
    for g in range(gap_cut.shape[0]):
        used = False
        for k in range(count):
            used = used or role[k, 1] == g
        if used:
            chosen[opened] = g
            gates[opened] = gap_cut[g]
            opened += 1
    gates = gates[:opened]
    size = busy.shape[0] if opened else 0
    free = np.empty((opened, size, size))
    through = np.empty(source.shape[0], np.int64)
    for k in range(source.shape[0]):
        through[k] = source[k]
    for q in range(opened):
        for t in range(size):
            for s in range(t):
                free[q, t, s] = 1.0
        for k in range(source.shape[0]):
            if source[k] == gates[q]:
                through[k] = order.ideals + q
        for k in range(count):
            if role[k, 1] != chosen[q]:
                continue
            x = active[k]
            low, high, offset = forbidden.lower[x], forbidden.upper[x], forbidden.offset[x]
            for t in range(1, size):
                behind = at_least(low, high, offset, pmfs.tail, busy[t])
                for s in range(t):
                    free[q, t, s] *= at_most(low, high, offset, pmfs.head, busy[s]) + behind
    return gates, through, free


@kernel(allocates=True)
def order_confidence(match, pmfs, window, order, a, b, found, forbidden, most_steps, work):
    """Return the confidence of partially ordered events, and their tight time range.

    Parameters
    ----------
    match : Intervals
    pmfs : Pmfs
    window : int64
        W, ticks.
    order : Order
    a, b : (n,) int64
        The bounds of the match, feasible: see :func:`confidence.partial_order.ideals.tight_order_bounds`.
    found : int64
        Number of other events.
    forbidden : confidence.gaps.chains.Forbidden
        Theirs; the gaps are those of the order.
    most_steps : float64
        Most multiplications to spend.
    work : OrderWork

    Returns
    -------
    status : int64
        DONE; IMPOSSIBLE if the confidence is 0; TOO_DEAR if it would take more than ``most_steps``; PAUSED if
        the budget of the call is spent: to be called again.
    confidence : float64
        For TOO_DEAR the number of steps.
    first, last : int64
        The tightest range, ticks.

    Notes
    -----
    With k steps between ideals and R ticks at which some event can happen O(R k), or as much for every first
    time if the window binds; for a uniform set without order O(U n). Each other event in one gap between cuts
    adds O(R^2); any other coupling costs O(U^n).
    """
    active = np.empty(found + 1, np.int64)
    role = np.empty((found + 1, 2), np.int64)
    others, simple = _classify(window, a, b, order, found, forbidden, active, role)
    if not simple:
        return confidence_by_times(
            match, pmfs, window, order, a, b, active[:others], forbidden, most_steps, work
        )
    ticks = 0.0
    for j in range(a.shape[0]):
        ticks += float(b[j] - a[j] + 1)
    if ticks > most_steps:
        return TOO_DEAR, ticks, 0, -1
    progress, at = work.progress, work.at
    soonest, latest = smallest(b), largest(b)
    # All times of a tight bound together have some probability then.
    begins = others == 0 and largest(match.offset) < 0
    if begins and largest(order.before) == 0:
        if at[BEGUN] == 0:
            at[BEGUN], at[AT], progress[TOTAL] = 1, smallest(a), 0.0
        if not _of_a_set(match, window, soonest, work):
            return PAUSED, 0.0, 0, -1
        at[BEGUN] = 0
        return DONE, min(progress[TOTAL], 1.0), smallest(a), latest
    busy = _busy(a, b)
    barred = 0
    for k in range(others):
        barred += 1 if role[k, 1] >= 0 else 0
    binding = 1 + count_up_to(busy, 0, busy.shape[0], min(soonest, latest - window))
    if others > barred:
        binding = count_up_to(busy, 0, busy.shape[0], soonest)
    ticks = float(busy.shape[0])
    reach = min(ticks, float(window))
    table = ticks * ticks * float(barred)
    each = reach * float(order.source.shape[0] + others - barred) + (reach * reach if barred > 0 else 0.0)
    steps = table + float(binding + 1) * each
    if steps > most_steps:
        return TOO_DEAR, steps, 0, -1
    gates, through, free = _open_gates(busy, order, others, active, role, forbidden, pmfs)
    # What is laid out anew after every pause takes half of the time at most.
    progress[SPENT] += table
    budget = max(progress[BUDGET], progress[SPENT] + table)
    entered = np.empty((gates.shape[0], busy.shape[0]))
    ends = np.empty(busy.shape[0])
    for m in range(busy.shape[0]):
        ends[m] = 1.0
    state = np.empty(order.ideals + gates.shape[0])
    if at[BEGUN] == 0:
        at[BEGUN], at[AT], at[FIRST], at[LAST] = 1, 0, latest + 1, smallest(a) - 1
        progress[TOTAL] = 0.0
    for n in range(at[AT], busy.shape[0]):
        s = busy[n]
        if s > soonest:
            break
        # Once the first time is known, those for which the window reaches behind the last tick go together.
        is_known = begins or progress[TOTAL] > 0.0
        alone = others > barred or not is_known or latest - s >= window
        for m in range(n, busy.shape[0] if others > barred else n):
            if busy[m] - s >= window:
                break
            ends[m] = 1.0
            for k in range(others):
                if role[k, 0] > 0:
                    x = active[k]
                    ends[m] *= _end_weight(
                        s, busy[m], window, role[k, 0], forbidden.lower[x], forbidden.upper[x],
                        forbidden.offset[x], pmfs,
                    )  # fmt: skip
        mass, end = _sweep(
            n, alone, busy, match, pmfs, window, a, b, order, through, gates, entered, free, ends, state
        )
        if mass > 0.0:
            progress[TOTAL] += mass
            at[FIRST] = min(at[FIRST], s)
            at[LAST] = max(at[LAST], end)
        if not alone:
            break
        progress[SPENT] += each
        if progress[SPENT] >= budget:
            at[AT] = n + 1
            return PAUSED, 0.0, 0, -1
    at[BEGUN] = 0
    if not progress[TOTAL] > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(progress[TOTAL], 1.0), at[FIRST], at[LAST]
