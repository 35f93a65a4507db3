"""Ranges and confidences of many matches of uniform times with bounds on the differences of neighbours."""

from __future__ import annotations

import math
from typing import Final

from confidence.chain.uniform import chain_confidence
from confidence.config import WORST_EXCLUSION
from confidence.kernel import kernel
from confidence.timed.bounds import UNBOUND
from confidence.timed.cycles import bounded_probability, tighten

__all__ = ["describe_bounded"]

_MOST_EXCLUDED: Final = 5
"""Most differences bound from above that a signed sum is tried for: one more doubles its terms."""


@kernel
def _shifted(lower, upper, size, g, window, integers, floats):
    """Return the probability where nothing bounds a difference from above.

    With the least differences taken off, the times are in weakly ascending order: the chain of a pattern
    without conditions on times, whose positions are such differences. The bounds are tight.
    """
    length = lower.shape[0]
    behind = 0
    for j in range(1, length):
        behind += g[j]
        # At once: more of them could leave int64.
        if behind >= window:
            return 0.0
    behind = 0
    share = 1.0
    for j in range(length):
        behind += g[j] if j > 0 else 0
        integers[6, j] = lower[j] - behind
        integers[7, j] = upper[j] - behind
        share *= float(upper[j] - lower[j] + 1) / size[j]
    chance = chain_confidence(
        integers[6], integers[7], window - 1 - behind, integers[4], integers[5], integers[:4], floats
    )
    return chance * share


@kernel
def _by_exclusion(lower, upper, size, g, h, window, binding, integers, floats):
    """Return the probability as a signed sum; NaN where that cancels.

    Over the sets of differences that are above their bounds: those are bound from below by one more, the
    others as before. ``binding`` of them, in ``integers[8]``, can be above. O(2^binding) chains.
    """
    total = 0.0
    magnitude = 0.0
    length = lower.shape[0]
    for chosen in range(1 << binding):
        for j in range(length):
            integers[9, j] = g[j]
        sign = 1.0
        for n in range(binding):
            if chosen >> n & 1:
                j = integers[8, n]
                integers[9, j] = h[j] + 1
                sign = -sign
        chance = _shifted(lower, upper, size, integers[9], window, integers, floats)
        if math.isnan(chance):
            return math.nan
        total += sign * chance
        magnitude += chance
    # Each term has a relative error of its own, which the sum must not raise beyond what is promised.
    return total if total * WORST_EXCLUSION >= magnitude else math.nan


@kernel
def describe_bounded(lower, upper, size, g, h, window, with_confidence, integers, floats, work, out):
    """Fill range and confidence of matches of l events each.

    Parameters
    ----------
    lower, upper : (k, l) int64
        The ticks that their events may happen at, inclusive.
    size : (k, l) float64
        How many ticks each event has, of which these are a part.
    g, h : (k, l) or (1, l) int64
        Least and largest difference from the event before; h of UNBOUND bounds nothing, and the first
        column is not looked at. One row is of all matches.
    window : (k,) or (1,) int64
        W, ticks.
    with_confidence : bool
        Whether confidences are.
    integers : (10, l) int64, floats : (4, 2 l + 1) float64
        Work arrays.
    work : confidence.timed.cycles.CycleWork
    out : tuple of (k,) int64 twice and (k,) float64
        Overwritten; the range is empty where no world has the match, and the confidence NaN where it takes
        too many pieces.
    """
    out_lower, out_upper, out_confidence = out
    length = lower.shape[1]
    a, b = work.bounds[0], work.bounds[1]
    for n in range(lower.shape[0]):
        # Bounds that are the same for all matches have one row.
        m = min(n, window.shape[0] - 1)
        feasible = tighten(lower[n], upper[n], g[m], h[m], window[m], a, b)
        out_lower[n] = a[0] if feasible else 0
        out_upper[n] = b[length - 1] if feasible else -1
        out_confidence[n] = 0.0
        if not feasible or not with_confidence:
            continue
        binding = 0
        share = 1.0
        for j in range(1, length):
            if h[m, j] < UNBOUND and b[j] - a[j - 1] > h[m, j]:
                integers[8, binding] = j
                binding += 1
                share *= float(h[m, j] - g[m, j] + 1) / float(b[j] - a[j - 1] - g[m, j] + 1)
        chance = math.nan
        # Where bounds leave little of the differences, the sum cancels. Where the window binds as well, one
        # time would have to be held, and a sum that cancels has cost little beside that.
        worth_trying = b[length - 1] - a[0] >= window[m] or share * WORST_EXCLUSION >= 1.0
        if binding <= _MOST_EXCLUDED and worth_trying:
            chance = _by_exclusion(a, b, size[n], g[m], h[m], window[m], binding, integers, floats)
        if math.isnan(chance):
            chance = bounded_probability(lower[n], upper[n], size[n], g[m], h[m], window[m], work)
        out_confidence[n] = chance
