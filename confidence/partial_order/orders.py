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
from confidence.gaps.forbidden import DONE, IMPOSSIBLE, TOO_DEAR
from confidence.kernel import kernel
from confidence.partial_order.ideals import tight_order_bounds
from confidence.partial_order.times import BETWEEN, LEADING, confidence_by_times

__all__ = ["order_confidence"]


@kernel
def _of_a_set(lower, upper, window, a, b):
    """Return the confidence of uniform events without any order. O(U n).

    The earliest event, of those with one time the first in number, is at s; the others follow in the window.
    """
    count = lower.shape[0]
    total = 0.0
    latest = np.empty(count + 1)
    for s in range(smallest(a), smallest(b) + 1):
        end = s + window - 1
        latest[count] = 1.0
        for j in range(count - 1, -1, -1):
            ticks = min(upper[j], end) - max(lower[j], s) + 1
            latest[j] = latest[j + 1] * max(float(ticks), 0.0) / float(upper[j] - lower[j] + 1)
        earlier = 1.0
        for j in range(count):
            size = float(upper[j] - lower[j] + 1)
            if lower[j] <= s <= upper[j]:
                total += earlier * latest[j + 1] / size
            ticks = min(upper[j], end) - max(lower[j], s + 1) + 1
            earlier *= max(float(ticks), 0.0) / size
    return total


@kernel
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
def _sweep(
    begin, alone, busy, lower, upper, offset, pmf, window, a, b, start, source, target, gates, entered, free,
    ends, state,
):  # fmt: skip
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
                    out += entered[k, m] * free[k, m, n]
            state[full + 1 + k] = out
        for e in range(a.shape[0] - 1, -1, -1):
            if a[e] <= t <= b[e]:
                p = exactly(lower[e], upper[e], offset[e], pmf, t)
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
def _end_weight(s, t, window, leading, trailing, low, high, offset, pmf, head, tail):
    """Return P(an event lies in none of the gaps at the ends of a match from s to t that forbid it)."""
    free = at_most(low, high, offset, head, t - window if leading else t)
    if leading and trailing:
        free += inside(low, high, offset, pmf, s - 1, t + 1)
    return free + at_least(low, high, offset, tail, s + window if trailing else s)


@kernel
def _classify(
    window, a, b, gap_place, gap_after, gap_before, gap_cut, found, x_low, x_high, x_gap, active, role
):
    """List the events that a gap can hold; return their number and whether all of them are in one gap only.

    ``role[k]`` is 0 and the gap, or the bits 1 (leading) and 2 (trailing) and -1.
    """
    count = 0
    simple = True
    for x in range(found):
        between = 0
        role[count, 0] = 0
        role[count, 1] = -1
        for g in range(gap_place.shape[0]):
            if not x_gap[x, g] or not _reaches(
                gap_place[g], gap_after[g], gap_before[g], x_low[x], x_high[x], a, b, window
            ):
                continue
            if gap_place[g] == BETWEEN:
                between += 1
                role[count, 1] = g
                simple = simple and gap_cut[g] >= 0
            else:
                role[count, 0] |= 1 if gap_place[g] == LEADING else 2
        if between > 0 or role[count, 0] > 0:
            simple = simple and between + (role[count, 0] > 0) <= 1
            active[count] = x
            count += 1
    return count, simple


@kernel
def _open_gates(busy, source, ideals, gap_cut, count, active, role, x_low, x_high, x_offset, head, tail):
    """Return the gates that an event may bar, the steps through them, and P(a gate is free from s to t)."""
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
        for s in range(size):
            for t in range(size):
                free[q, s, t] = 1.0
        for k in range(source.shape[0]):
            if source[k] == gates[q]:
                through[k] = ideals + q
        for k in range(count):
            if role[k, 1] != chosen[q]:
                continue
            x = active[k]
            for s in range(size):
                before = at_most(x_low[x], x_high[x], x_offset[x], head, busy[s])
                for t in range(s + 1, size):
                    free[q, s, t] *= before + at_least(x_low[x], x_high[x], x_offset[x], tail, busy[t])
    return gates, through, free


@kernel
def order_confidence(
    lower, upper, offset, pmf, head, tail, window, before, start, source, target, ideals, gap_place,
    gap_after, gap_before, gap_cut, found, x_low, x_high, x_offset, x_gap, most_steps, spent,
):  # fmt: skip
    """Return the confidence of partially ordered events, and their tight time range.

    Parameters
    ----------
    lower, upper : (n,) int64
        Intervals, ticks, inclusive.
    offset : (n,) int64
        Where their probabilities start in ``pmf``; -1 for uniform.
    pmf, head, tail : (m,) float64
        Explicit probabilities, and their :func:`confidence.running_sums`.
    window : int64
        W, ticks.
    before, start, source, target, ideals, gap_place, gap_after, gap_before, gap_cut
        The arrays of an :class:`Order`.
    found : int64
        Number of other events, all distinct.
    x_low, x_high, x_offset : (k,) int64
        Theirs; k >= found.
    x_gap : (k, g) bool
        Whether each is forbidden in each gap.
    most_steps : float64
        Most multiplications to spend.
    spent : (1,) float64
        Those that were spent are added.

    Returns
    -------
    status : int64
        DONE; IMPOSSIBLE if the confidence is 0; TOO_DEAR if it would take more than ``most_steps``.
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
    count = lower.shape[0]
    a = np.empty(count, np.int64)
    b = np.empty(count, np.int64)
    if not tight_order_bounds(lower, upper, before, window, a, b):
        return IMPOSSIBLE, 0.0, 0, -1
    active = np.empty(found + 1, np.int64)
    role = np.empty((found + 1, 2), np.int64)
    others, simple = _classify(
        window, a, b, gap_place, gap_after, gap_before, gap_cut, found, x_low, x_high, x_gap, active, role,
    )  # fmt: skip
    if not simple:
        return confidence_by_times(
            lower, upper, offset, pmf, head, tail, window, before, a, b, gap_place, gap_after, gap_before,
            active[:others], x_low, x_high, x_offset, x_gap, most_steps, spent,
        )  # fmt: skip
    ticks = 0.0
    for j in range(count):
        ticks += float(b[j] - a[j] + 1)
    if ticks > most_steps:
        return TOO_DEAR, ticks, 0, -1
    spent[0] += ticks * float(count)
    if others == 0 and largest(offset) < 0 and largest(before) == 0:
        return DONE, min(_of_a_set(lower, upper, window, a, b), 1.0), smallest(a), largest(b)
    busy = _busy(a, b)
    barred = 0
    for k in range(others):
        barred += 1 if role[k, 1] >= 0 else 0
    soonest, latest = smallest(b), largest(b)
    binding = 1 + count_up_to(busy, 0, busy.shape[0], min(soonest, latest - window))
    if others > barred:
        binding = count_up_to(busy, 0, busy.shape[0], soonest)
    ticks = float(busy.shape[0])
    reach = min(ticks, float(window))
    steps = float(binding + 1) * reach * float(source.shape[0] + others - barred)
    if barred > 0:
        steps += ticks * ticks * float(barred) + float(binding + 1) * reach * reach
    if steps > most_steps:
        return TOO_DEAR, steps, 0, -1
    spent[0] += steps
    gates, through, free = _open_gates(
        busy, source, ideals, gap_cut, others, active, role, x_low, x_high, x_offset, head, tail
    )
    entered = np.empty((gates.shape[0], busy.shape[0]))
    ends = np.empty(busy.shape[0])
    for m in range(busy.shape[0]):
        ends[m] = 1.0
    state = np.empty(ideals + gates.shape[0])
    total = 0.0
    first = latest + 1
    last = smallest(a) - 1
    n = 0
    while n < busy.shape[0] and busy[n] <= soonest:
        s = busy[n]
        # Once the first time is known, those for which the window reaches behind the last tick go together.
        alone = others > barred or total == 0.0 or latest - s >= window
        for m in range(n, busy.shape[0] if others > barred else n):
            if busy[m] - s >= window:
                break
            ends[m] = 1.0
            for k in range(others):
                if role[k, 0] > 0:
                    x = active[k]
                    ends[m] *= _end_weight(
                        s, busy[m], window, role[k, 0] & 1 > 0, role[k, 0] & 2 > 0, x_low[x], x_high[x],
                        x_offset[x], pmf, head, tail,
                    )  # fmt: skip
        mass, end = _sweep(
            n, alone, busy, lower, upper, offset, pmf, window, a, b, start, through, target, gates, entered,
            free, ends, state,
        )  # fmt: skip
        if mass > 0.0:
            total += mass
            first = min(first, s)
            last = max(last, end)
        if not alone:
            break
        n += 1
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(total, 1.0), first, last
