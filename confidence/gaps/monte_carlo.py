"""Sampled confidence of a match whose gaps are coupled by more events than exact arithmetic can follow.

The times of the match are drawn from the Markov chain that the order, the window and the events forbidden in
one gap alone make of them (backward sampling, which is exact), and the probability that no coupled event
lies in a gap that forbids it is averaged over the draws. A value in [0, 1] times the weight Z of the chain: n
draws have a standard error of at most Z / (2 sqrt(n)).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from confidence.config import FEWEST_DRAWS, WARM_UP
from confidence.gaps.forbidden import DONE, IMPOSSIBLE, TOO_DEAR, chain, forward, free_of
from confidence.kernel import kernel

__all__ = ["sampled_confidence"]

LOW_63: Final = 2**63 - 1


@kernel
def _uniform(state):
    """Return the next number in [0, 1) of xorshift64 (Marsaglia, J. Stat. Software 8(14), 2003)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return float(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _stir(state, number):
    """Mix a number into the state of the generator, which is never 0."""
    state[0] ^= np.uint64(number & LOW_63)
    if state[0] == np.uint64(0):
        state[0] = np.uint64(LOW_63)
    for _ in range(WARM_UP):
        _uniform(state)


@kernel
def _draw(bounds, edge_start, edge, front, state, t):
    """Draw the times of a chain whose forward weights are ``front``. O(l U)."""
    a, b = bounds[0], bounds[1]
    for j in range(t.shape[0] - 1, -1, -1):
        width = b[j] - a[j] + 1
        if j < t.shape[0] - 1:
            column = edge_start[j + 1] + t[j + 1] - a[j + 1]
            next_width = b[j + 1] - a[j + 1] + 1
        total = 0.0
        for s in range(width):
            weight = front[j, s]
            if j < t.shape[0] - 1:
                weight = weight * edge[column + s * next_width] if a[j] + s < t[j + 1] else 0.0
            total += weight
        target = _uniform(state) * total
        chosen = -1
        for s in range(width):
            weight = front[j, s]
            if j < t.shape[0] - 1:
                weight = weight * edge[column + s * next_width] if a[j] + s < t[j + 1] else 0.0
            if weight > 0.0:
                chosen = s
                target -= weight
                if target < 0.0:
                    break
        t[j] = a[j] + chosen


@kernel
def sampled_confidence(
    lower, upper, window, x_low, x_high, x_offset, pmf, head, tail, count, std_error, seed, most_steps, work,
):  # fmt: skip
    """Return an estimate of the confidence for which exact arithmetic takes too long.

    Parameters
    ----------
    lower, upper, window, x_low, x_high, x_offset, pmf, head, tail, most_steps, work
        As given to :func:`confidence.gaps.forbidden.forbidden_confidence` or
        :func:`confidence.gaps.coupled.gap_confidence`, which has just returned COUPLED.
    count : int64
        Number of coupling events that it returned.
    std_error : float64
        The standard error to reach.
    seed : int64
        The same match gets the same draws wherever it is evaluated.

    Returns
    -------
    status : int64
        DONE, IMPOSSIBLE, or TOO_DEAR if the draws would take more than ``most_steps``.
    confidence, std_error : float64
        For TOO_DEAR the number of steps first.
    first, last : int64
        A range that holds the tightest one: what coupled events exclude is not taken off.
    """
    bounds, edge, _, node, _, front, coupled, kind, at, places, spent = work
    length = lower.shape[0]
    a, b, edge_start = bounds[0], bounds[1], bounds[2]
    total, first, last = chain(bounds, window, edge_start, node[:length], edge, front)
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0.0, 0, -1
    draws = max(FEWEST_DRAWS, math.ceil((0.5 * total / std_error) ** 2))
    ticks = 0
    for j in range(length):
        ticks += b[j] - a[j] + 1
    steps = float(draws) * float(2 * ticks + count * length)
    if steps > most_steps:
        return TOO_DEAR, steps, 0.0, 0, -1
    spent[0] += steps
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(1)
    _stir(state, seed)
    for j in range(length):
        _stir(state, lower[j])
        _stir(state, upper[j])
    binding = b[length - 1] - a[0] > window - 1
    starts = b[0] - a[0] + 1 if binding else 1
    weight = np.empty(starts)
    for k in range(starts):
        stop = a[0] + k if binding else b[0]
        latest = a[0] + k + window - 1 if binding else b[length - 1]
        forward(bounds, edge_start, node[:length], edge, front, a[0] + k, stop, latest)
        weight[k] = 0.0
        for s in range(b[length - 1] - a[length - 1] + 1):
            weight[k] += front[length - 1, s]
    drawn = np.empty(starts, np.int64)
    for k in range(starts):
        drawn[k] = 0
    for _ in range(draws):
        target = _uniform(state) * total
        chosen = 0
        for k in range(starts):
            if weight[k] > 0.0:
                chosen = k
                target -= weight[k]
                if target < 0.0:
                    break
        drawn[chosen] += 1
    t = np.empty(length, np.int64)
    mean = 0.0
    squares = 0.0
    done = 0
    for k in range(starts):
        if drawn[k] == 0:
            continue
        stop = a[0] + k if binding else b[0]
        latest = a[0] + k + window - 1 if binding else b[length - 1]
        forward(bounds, edge_start, node[:length], edge, front, a[0] + k, stop, latest)
        for _ in range(drawn[k]):
            _draw(bounds, edge_start, edge, front, state, t)
            value = free_of(
                coupled, count, x_low, x_high, x_offset, pmf, head, tail, window, kind, at, places[0], t
            )
            done += 1
            distance = value - mean
            mean += distance / done
            squares += distance * (value - mean)
    # One draw more at either end: a sample without spread is no proof of certainty.
    variance = squares / draws + 1.0 / draws
    return DONE, total * mean, total * math.sqrt(variance / draws), first, last
