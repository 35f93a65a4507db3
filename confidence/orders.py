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
from numba import njit

from confidence.distribution import at_least, at_most, exactly, inside
from confidence.forbidden import DONE, IMPOSSIBLE, TOO_DEAR
from confidence.ideals import tight_order_bounds
from confidence.times import BETWEEN, LEADING, confidence_by_times

__all__ = ["order_confidence"]


@njit(cache=True, nogil=True, error_model="numpy")
def _of_a_set(lower, upper, window, a, b):
    """Return the confidence of uniform events without any order. O(U n).

    The earliest event, of those with one time the first in number, is at s; the others follow in the window.
    """
    count = lower.shape[0]
    total = 0.0
    latest = np.empty(count + 1)
    for s in range(a.min(), b.min() + 1):
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


@njit(cache=True, nogil=True, error_model="numpy")
def _tick(t, lower, upper, offset, pmf, a, b, start, source, target, state):
    """Let every event take its chance at tick t, those that come later in the order first."""
    for e in range(a.shape[0] - 1, -1, -1):
        if a[e] <= t <= b[e]:
            p = exactly(lower[e], upper[e], offset[e], pmf, t)
            if p > 0.0:
                for k in range(start[e], start[e + 1]):
                    state[target[k]] += p * state[source[k]]


@njit(cache=True, nogil=True, error_model="numpy")
def _from_one_time(
    s, lower, upper, offset, pmf, window, a, b, start, source, target, gates, entered, free, ends, state,
):  # fmt: skip
    """Return the mass of the matches whose first event is at s, and the last time of any of them.

    ``source`` leads out of a gate from a place behind the ideals, which is filled anew at every tick with
    what entered the gate before.
    """
    full = state.shape[0] - gates.shape[0] - 1
    low = a.min()
    state[:] = 0.0
    state[0] = 1.0
    total = 0.0
    last = s - 1
    entered[:] = 0.0
    for t in range(s, min(s + window - 1, b.max()) + 1):
        for k in range(gates.shape[0]):
            out = 0.0
            for u in range(s, t):
                if entered[k, u - low] > 0.0:
                    out += entered[k, u - low] * free[k, u - low, t - low]
            state[full + 1 + k] = out
        _tick(t, lower, upper, offset, pmf, a, b, start, source, target, state)
        if t == s:
            state[0] = 0.0
        for k in range(gates.shape[0]):
            entered[k, t - low] = state[gates[k]]
            state[gates[k]] = 0.0
        weight = state[full] * ends[t - low]
        state[full] = 0.0
        if weight > 0.0:
            total += weight
            last = t
    return total, last


@njit(cache=True, nogil=True, error_model="numpy")
def _from_then_on(s, lower, upper, offset, pmf, a, b, start, source, target, state, uniform):
    """Return the mass of the matches whose first event is at s or later, their first and last time."""
    full = state.shape[0] - 1
    state[:] = 0.0
    state[full] = 1.0
    total = 0.0
    first = b.max() + 1
    for t in range(b.max(), s - 1, -1):
        for e in range(a.shape[0]):
            if a[e] <= t <= b[e]:
                p = exactly(lower[e], upper[e], offset[e], pmf, t)
                if p > 0.0:
                    for k in range(start[e], start[e + 1]):
                        state[source[k]] += p * state[target[k]]
        if state[0] > 0.0:
            total += state[0]
            state[0] = 0.0
            first = t
    last = b.max()
    if not uniform and total > 0.0:
        state[:] = 0.0
        state[0] = 1.0
        for t in range(s, b.max() + 1):
            _tick(t, lower, upper, offset, pmf, a, b, start, source, target, state)
            if state[full] > 0.0:
                last = t
                state[full] = 0.0
    return total, first, last


@njit(cache=True, nogil=True, error_model="numpy")
def _reaches(place, after, behind, low, high, a, b, window):
    """Return whether an event can lie inside a gap."""
    latest = a.min()
    earliest = b.max()
    if place == BETWEEN:
        for j in range(a.shape[0]):
            if after >> j & 1:
                latest = max(latest, a[j])
            if behind >> j & 1:
                earliest = min(earliest, b[j])
        return high > latest and low < earliest
    if place == LEADING:
        return low < b.min() and high > a.max() - window
    return high > a.max() and low < b.min() + window


@njit(cache=True, nogil=True, error_model="numpy")
def _end_weight(s, t, window, leading, trailing, low, high, offset, pmf, head, tail):
    """Return P(an event lies in none of the gaps at the ends of a match from s to t that forbid it)."""
    free = at_most(low, high, offset, head, t - window if leading else t)
    if leading and trailing:
        free += inside(low, high, offset, pmf, s - 1, t + 1)
    return free + at_least(low, high, offset, tail, s + window if trailing else s)


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _open_gates(a, b, source, ideals, gap_cut, count, active, role, x_low, x_high, x_offset, head, tail):
    """Return the gates that an event may bar, the steps through them, and P(a gate is free from s to t)."""
    used = np.zeros(gap_cut.shape[0], np.bool_)
    for k in range(count):
        if role[k, 1] >= 0:
            used[role[k, 1]] = True
    chosen = np.flatnonzero(used)
    gates = gap_cut[chosen]
    low = a.min()
    size = b.max() - low + 1 if gates.shape[0] else 0
    free = np.ones((gates.shape[0], size, size))
    through = source.copy()
    for q in range(gates.shape[0]):
        for k in range(source.shape[0]):
            if source[k] == gates[q]:
                through[k] = ideals + q
        for k in range(count):
            if role[k, 1] != chosen[q]:
                continue
            x = active[k]
            for s in range(size):
                before = at_most(x_low[x], x_high[x], x_offset[x], head, low + s)
                for t in range(s + 1, size):
                    free[q, s, t] *= before + at_least(x_low[x], x_high[x], x_offset[x], tail, low + t)
    return gates, through, free


@njit(cache=True, nogil=True, error_model="numpy")
def order_confidence(
    lower, upper, offset, pmf, head, tail, window, before, start, source, target, ideals, gap_place,
    gap_after, gap_before, gap_cut, found, x_low, x_high, x_offset, x_gap, most_steps,
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
    k steps between ideals, R ticks: O(R k), or O(U W k) if the window binds; for a uniform set without order
    O(U n). Each other event in one gap between cuts adds O(R^2); any other coupling costs O(U^n).
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
    low = a.min()
    ticks = float(b.max() - low + 1)
    starts = float(b.min() - low + 1)
    uniform = offset.max() < 0
    if not simple:
        return confidence_by_times(
            lower, upper, offset, pmf, head, tail, window, before, a, b, gap_place, gap_after, gap_before,
            active[:others], x_low, x_high, x_offset, x_gap, most_steps,
        )  # fmt: skip
    if others == 0 and uniform and before.max() == 0:
        if starts * float(count) > most_steps:
            return TOO_DEAR, starts * float(count), 0, -1
        return DONE, min(_of_a_set(lower, upper, window, a, b), 1.0), low, b.max()
    gated = 0.0
    for k in range(others):
        gated += 1.0 if role[k, 1] >= 0 else 0.0
    together = b.min() + 1 if others else max(low, b.max() - window + 1)
    alone = float(min(together, b.min() + 1) - low)
    steps = float(source.shape[0]) * (alone * min(float(window), ticks) + ticks)
    if others:
        steps += alone * min(float(window), ticks) * float(others)
    if gated > 0.0:
        steps += ticks * ticks * (gated + alone)
    if steps > most_steps:
        return TOO_DEAR, steps, 0, -1
    gates, through, free = _open_gates(
        a, b, source, ideals, gap_cut, others, active, role, x_low, x_high, x_offset, head, tail
    )
    entered = np.empty((gates.shape[0], b.max() - low + 1))
    ends = np.ones(b.max() - low + 1)
    state = np.empty(ideals + gates.shape[0])
    total = 0.0
    first = b.max() + 1
    last = low - 1
    for s in range(low, min(together, b.min() + 1)):
        for t in range(s, min(s + window - 1, b.max()) + 1):
            ends[t - low] = 1.0
            for k in range(others):
                if role[k, 0] > 0:
                    x = active[k]
                    ends[t - low] *= _end_weight(
                        s, t, window, role[k, 0] & 1 > 0, role[k, 0] & 2 > 0, x_low[x], x_high[x],
                        x_offset[x], pmf, head, tail,
                    )  # fmt: skip
        mass, end = _from_one_time(
            s, lower, upper, offset, pmf, window, a, b, start, through, target, gates, entered, free, ends,
            state,
        )  # fmt: skip
        if mass > 0.0:
            total += mass
            first = min(first, s)
            last = max(last, end)
    if together <= b.min():
        mass, begin, end = _from_then_on(
            together, lower, upper, offset, pmf, a, b, start, source, target, state, uniform
        )
        if mass > 0.0:
            total += mass
            first = min(first, begin)
            last = max(last, end)
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0, -1
    return DONE, min(total, 1.0), first, last
