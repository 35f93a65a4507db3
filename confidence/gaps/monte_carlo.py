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

from confidence.arrays import count_up_to
from confidence.config import FEWEST_DRAWS
from confidence.gaps.chains import (
    BUDGET,
    COUPLED,
    COUPLING,
    DONE,
    DRAWN,
    IMPOSSIBLE,
    MEAN,
    PAUSED,
    SPENT,
    SQUARES,
    TOO_DEAR,
    TOTAL,
    Chain,
    chain_weight,
    forward,
)
from confidence.gaps.coupled import gap_confidence
from confidence.gaps.places import free_of
from confidence.kernel import kernel

__all__ = ["sampled_confidence", "weighed_gaps"]

LOW_63: Final = 2**63 - 1

FIRST: Final = 0
LAST: Final = 1
STARTS: Final = 2

WARM_UP: Final = 20
"""Random numbers that are dropped after seeding."""


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
def _draw(chain, random, t):
    """Draw the times of a chain whose forward weights are in ``front``. O(l U)."""
    bounds, _, edge, front = chain
    a, b = bounds[0], bounds[1]
    end = chain.node.shape[0] - 1
    for j in range(end, -1, -1):
        width = b[j] - a[j] + 1
        if j < end:
            column = bounds[2, j + 1] + t[j + 1] - a[j + 1]
            next_width = b[j + 1] - a[j + 1] + 1
        total = 0.0
        for s in range(width):
            weight = front[j, s]
            if j < end:
                weight = weight * edge[column + s * next_width] if a[j] + s < t[j + 1] else 0.0
            total += weight
        target = _uniform(random) * total
        chosen = -1
        for s in range(width):
            weight = front[j, s]
            if j < end:
                weight = weight * edge[column + s * next_width] if a[j] + s < t[j + 1] else 0.0
            if weight > 0.0:
                chosen = s
                target -= weight
                if target < 0.0:
                    break
        t[j] = a[j] + chosen


@kernel
def _forward_from(k, starts, chain, window):
    """Fill the forward weights for the k-th first time, or for all of them if the window cannot bind."""
    a, b = chain.bounds[0], chain.bounds[1]
    end = chain.node.shape[0] - 1
    if starts > 1:
        forward(chain, a[0] + k, a[0] + k, min(a[0] + k + window - 1, b[end]))
    else:
        forward(chain, a[0], b[0], b[end])


@kernel(allocates=True)
def _share_out(draws, starts, match, window, seed, chain, work):
    """Draw the first time, or whichever, of each draw. O(starts l U^2 + draws log starts)."""
    a, b = chain.bounds[0], chain.bounds[1]
    end = chain.node.shape[0] - 1
    random, left = work.random, work.left
    random[0] = np.uint64(1)
    _stir(random, seed)
    for j in range(end + 1):
        _stir(random, match.lower[j])
        _stir(random, match.upper[j])
    up_to = np.empty(starts)
    reached = 0.0
    latest = 0
    for k in range(starts):
        left[STARTS + k] = 0
        _forward_from(k, starts, chain, window)
        weight = 0.0
        for s in range(b[end] - a[end] + 1):
            weight += chain.front[end, s]
        if weight > 0.0:
            latest = k
        reached += weight
        up_to[k] = reached
    for _ in range(draws):
        target = _uniform(random) * work.progress[TOTAL]
        left[STARTS + min(count_up_to(up_to, 0, starts, target), latest)] += 1


@kernel(allocates=True)
def sampled_confidence(match, pmfs, window, count, forbidden, limits, work):
    """Return an estimate of the confidence for which exact arithmetic takes too long.

    Parameters
    ----------
    match, pmfs, window, forbidden, work
        As given to :func:`confidence.gaps.forbidden.forbidden_confidence` or
        :func:`confidence.gaps.coupled.gap_confidence`, which has just returned COUPLED.
    count : int64
        Number of coupling events that it returned.
    limits : Limits

    Returns
    -------
    status : int64
        DONE, IMPOSSIBLE, TOO_DEAR if the draws would take more than ``most_steps``, or PAUSED if the budget
        of the call is spent: to be called again.
    confidence, std_error : float64
        For TOO_DEAR the number of steps first.
    first, last : int64
        A range that holds the tightest one: what coupled events exclude is not taken off.
    """
    length = match.lower.shape[0]
    chain = Chain(work.bounds, work.node[:length], work.edge, work.front)
    a, b, progress, left = work.bounds[0], work.bounds[1], work.progress, work.left
    begun = progress[COUPLING] > 0.0
    if not begun:
        progress[TOTAL], left[FIRST], left[LAST] = chain_weight(chain, window)
    total = progress[TOTAL]
    if not total > 0.0:
        return IMPOSSIBLE, 0.0, 0.0, 0, -1
    draws = max(FEWEST_DRAWS, math.ceil((0.5 * total / limits.std_error) ** 2))
    each = count * length
    for j in range(length):
        each += 2 * (b[j] - a[j] + 1)
    steps = float(draws) * float(each)
    if steps > limits.most_steps:
        return TOO_DEAR, steps, 0.0, 0, -1
    starts = b[0] - a[0] + 1 if b[length - 1] - a[0] > window - 1 else 1
    if not begun:
        _share_out(draws, starts, match, window, limits.seed, chain, work)
        progress[COUPLING] = float(count)
        progress[DRAWN] = progress[MEAN] = progress[SQUARES] = 0.0
    for k in range(starts):
        if left[STARTS + k] == 0:
            continue
        _forward_from(k, starts, chain, window)
        while left[STARTS + k] > 0:
            progress[SPENT] += float(each)
            left[STARTS + k] -= 1
            _draw(chain, work.random, work.times)
            value = free_of(count, forbidden, pmfs, window, work)
            progress[DRAWN] += 1.0
            distance = value - progress[MEAN]
            progress[MEAN] += distance / progress[DRAWN]
            progress[SQUARES] += distance * (value - progress[MEAN])
            if progress[SPENT] >= progress[BUDGET] and progress[DRAWN] < draws:
                return PAUSED, 0.0, 0.0, 0, -1
    progress[COUPLING] = 0.0
    # One draw more at either end: a sample without spread is no proof of certainty.
    variance = progress[SQUARES] / draws + 1.0 / draws
    return DONE, total * progress[MEAN], total * math.sqrt(variance / draws), left[FIRST], left[LAST]


@kernel(allocates=True)
def weighed_gaps(match, pmfs, window, listed, forbidden, limits, work):
    """Return the confidence of a match whose gaps must stay free, or an estimate if that is allowed.

    Parameters
    ----------
    match, pmfs, window, found, forbidden, work
        See :func:`confidence.gaps.coupled.gap_confidence`.
    limits : Limits

    Returns
    -------
    status, confidence, std_error, first, last
        DONE, IMPOSSIBLE, NO_SPACE, INEXACT and PAUSED as there and in :func:`sampled_confidence`; TOO_DEAR
        where neither is possible.
    """
    status, value, first, last = COUPLED, 0.0, int(work.progress[COUPLING]), -1
    if first == 0:
        status, value, first, last = gap_confidence(
            match, pmfs, window, listed, forbidden, limits.most_steps, work
        )
    if status != COUPLED:
        return status, value, 0.0, first, last
    if not limits.std_error > 0.0:
        return TOO_DEAR, value, 0.0, first, last
    return sampled_confidence(match, pmfs, window, first, forbidden, limits, work)
