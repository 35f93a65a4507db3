"""The matches of a join that can still reach a confidence, by upper bounds that cost a fraction of it.

For independent times, whatever their distributions,

    P(t_0 < ... < t_d, t_d - t_0 < W)  <=  P(t_d - t_0 < W) prod_j P(t_j < t_{j+1}).

1. Given all times but the first and the last, ``t_0 < t_1`` and ``t_{d-1} < t_d`` hold the rather the
   smaller t_0 and the larger t_d is, the window the rather the larger t_0 and the smaller t_d is; with d = 1
   the same is true of ``t_0 < t_1`` itself. Of one time, a rising function times a falling one has a mean of
   at most the product of their means (Chebyshev's inequality): so for t_0, and then for t_d, order and window
   together are at most as likely as the product.
2. The window does not depend on the times between, so that P(chain, window) <= P(chain) P(window).
3. P(t_0 < ... < t_d) is the mean over t_{d-1} of a rising function, P(t_0 < ... < t_{d-1} | t_{d-1}), times
   a falling one, P(t_d > t_{d-1}): at most the product of their means, for the same reason; and so on.

The window has to have its sign: ``abs(t_d - t_0) < W`` may be likelier where the two are in order, and is no
valid factor. What is forbidden, or asked of a match besides, only takes away from its confidence. An estimate
(:mod:`confidence.gaps.monte_carlo`) is the confidence without what is forbidden, times an average of at most
1. What stands on both sides of a compressed Kleene component is in order, too. All of this needs times that
are independent of each other.

Events of one clock are not. But those of distinct clocks are, wherever they stand side by side in a match,
and a match is no more likely than that any such part of it is in order.
"""

from __future__ import annotations

import numpy as np

from confidence.chain.uniform import tight_bounds
from confidence.kernel import kernel
from eventbased.config import ROUNDING
from eventbased.joins.join_state import BEGIN, PARENT, SIZE, trace_back
from eventbased.thresholds import needed

__all__ = ["bounds_by_clocks", "describe_chosen", "filter_matches", "filter_spans"]


@kernel(inline=True)
def _pairs_out_of_order(lower0, upper0, lower1, upper1):
    """Return the number of pairs u_0 > u_1 of two intervals, or a little less; not all are such pairs. O(1).

    A triangle, cut off by the other ends of the two intervals. Its three terms lose at most 13 * 2^-53 of the
    largest, which ``ROUNDING`` exceeds.
    """
    side = max(float(upper0 - lower1), 0.0)
    beyond0 = max(float(lower0 - lower1) - 1.0, 0.0)
    beyond1 = max(float(upper0 - upper1) - 1.0, 0.0)
    pairs = side * (side + 1.0) * (1.0 - ROUNDING)
    return 0.5 * (pairs - beyond0 * (beyond0 + 1.0) - beyond1 * (beyond1 + 1.0))


@kernel(inline=True)
def _up_to(low0, high0, low1, high1):
    """Return a bound on P(u_0 <= u_1) for two independent uniform times."""
    if low0 > high1:
        return 0.0
    size = float(high0 - low0 + 1) * float(high1 - low1 + 1)
    return min(1.0 - _pairs_out_of_order(low0, high0, low1, high1) / size + ROUNDING, 1.0)


@kernel(inline=True)
def _in_order(x, y, shift, lower, upper, offset):
    """Return a bound on P(u_x <= u_y + shift): 1 if one of the two candidates has a pmf of its own."""
    if offset.shape[0] and (offset[x] >= 0 or offset[y] >= 0):
        return 1.0
    return _up_to(lower[x], upper[x], lower[y] + shift, upper[y] + shift)


@kernel(inline=True)
def _reaches(x, y, shift, lower, upper, most):
    """Return whether at most so many pairs of the times of two candidates break u_x <= u_y + shift."""
    low1, high1 = lower[y] + shift, upper[y] + shift
    return lower[x] <= high1 and _pairs_out_of_order(lower[x], upper[x], low1, high1) <= most


@kernel
def _narrowed(begin, stop, first, last, shifts, most_apart, lower, upper):
    """Return the part of a span that keeps two conditions, the first of which ascends and the other descends.

    Parameters
    ----------
    begin, stop : int64
        The span; its intervals are equally long.
    first, last : (2,) int64
        For each condition the candidates on its two sides; -1 for that of the span.
    shifts : (2,) int64
    most_apart : (2,) float64
        How many pairs of times may break a condition.
    """
    for side in range(2):
        low, high = begin, stop
        while low < high:
            middle = (low + high) >> 1
            x = middle if first[side] < 0 else first[side]
            y = middle if last[side] < 0 else last[side]
            if _reaches(x, y, shifts[side], lower, upper, most_apart[side]) == (side == 0):
                high = middle
            else:
                low = middle + 1
        if side == 0:
            begin = low
        else:
            stop = low
    return begin, stop


@kernel(allocates=True)
def filter_spans(
    ordered, blocks, spans, w, lower, upper, offset, even, least, rank, last_rank, out
):  # fmt: skip
    """Write the matches of some spans that can reach a confidence; return how many there are.

    Parameters
    ----------
    ordered : (l,) int64
        The components in the order in which they were bound.
    blocks : (l - 1, 7, k + SPARE) int64
        See :class:`eventbased.JoinState`.
    spans : (3, k) int64
        What a call of :func:`eventbased.join` found.
    w : int64
        ``W - l``.
    lower, upper : (n + SPARE,) int64
        Bounds minus position of the candidates.
    offset : (n,) int64, or (0,)
        Where the pmf of a candidate starts, -1 for uniform; empty: all are.
    even : (l,) bool
        Whether the candidates of each class of a component have intervals of one length, and none a pmf.
    least : float64
        The confidence to reach.
    rank : (n,) int64, or (0,) to look at none; last_rank : int64
        Matches whose first event has a rank above ``last_rank`` are left out.
    out : (l, m) int64
        Overwritten: the candidates of each match.

    Notes
    -----
    O(l) for a row of the last block, O(1) for a match that is kept, and where intervals are equally long
    O(log m) for the others of a span.
    """
    length = ordered.shape[0]
    running = ordered[length - 1]
    chosen = np.empty(length, np.int64)
    first = np.empty(2, np.int64)
    last = np.empty(2, np.int64)
    shifts = np.empty(2, np.int64)
    most_apart = np.empty(2, np.float64)
    need = needed(least)
    ranked = rank.shape[0] > 0
    # The order with the neighbour, and the window: from one candidate to the next, one becomes more likely
    # and the other less.
    order = 1 if running == 0 else 0
    window = 1 - order
    shifts[order], shifts[window] = 0, w
    kept = 0
    row = -1
    of_row = 1.0
    for k in range(spans.shape[1]):
        if spans[PARENT, k] != row:
            row = spans[PARENT, k]
            trace_back(ordered, blocks, length - 2, row, chosen)
            of_row = 1.0
            for j in range(length - 1):
                if running != j and running != j + 1:
                    of_row *= _in_order(chosen[j], chosen[j + 1], 0, lower, upper, offset)
            if running != 0 and ranked and rank[chosen[0]] > last_rank:
                of_row = -1.0
        if of_row < need:
            continue
        begin = spans[BEGIN, k]
        stop = begin + spans[SIZE, k]
        chosen[running] = -1
        first[order], last[order] = (
            chosen[0 if running == 0 else length - 2],
            chosen[1 if running == 0 else running],
        )
        first[window], last[window] = chosen[length - 1], chosen[0]
        if even[running]:
            spare = 1.0 + ROUNDING - need / of_row
            ticks = float(upper[begin] - lower[begin] + 1)
            for side in range(2):
                other = max(first[side], last[side])
                most_apart[side] = spare * ticks * float(upper[other] - lower[other] + 1)
            begin, stop = _narrowed(begin, stop, first, last, shifts, most_apart, lower, upper)
        for i in range(begin, stop):
            if ranked and running == 0 and rank[i] > last_rank:
                continue
            chosen[running] = i
            j = 0 if running == 0 else length - 2
            bound = of_row * _in_order(chosen[j], chosen[j + 1], 0, lower, upper, offset)
            if bound * _in_order(chosen[length - 1], chosen[0], w, lower, upper, offset) < need:
                continue
            for j in range(length):
                out[j, kept] = chosen[j]
            kept += 1
    return kept


@kernel
def filter_matches(chosen, w, lower, upper, offset, least, rank, last_rank, out):
    """Set which of some matches can reach a confidence.

    Parameters
    ----------
    chosen : (l, m) int64
        The candidates of each match.
    w, lower, upper, offset, least, rank, last_rank
        As for :func:`filter_spans`.
    out : (m,) bool
        Overwritten. O(l m).
    """
    length, count = chosen.shape
    need = needed(least)
    for n in range(count):
        out[n] = False
        if rank.shape[0] and rank[chosen[0, n]] > last_rank:
            continue
        bound = _in_order(chosen[length - 1, n], chosen[0, n], w, lower, upper, offset)
        for j in range(length - 1):
            bound *= _in_order(chosen[j, n], chosen[j + 1, n], 0, lower, upper, offset)
        out[n] = bound >= need


@kernel
def bounds_by_clocks(start, row, clock, lower, upper, slack, window, out):
    """Fill upper bounds of the confidences of sequences some of whose events share clocks.

    Parameters
    ----------
    start : (k + 1,) int64
        Where the events of each match begin.
    row : (m,) int64
        These events.
    clock : (n,) int64
        That of each row; -1: none that it shares.
    lower, upper : (n,) int64
        Bounds of its time, ticks, without positions subtracted.
    slack : (n,) int64
        It is a uniform time over as many ticks less, and something between 0 and so much.
    window : int64
        WITHIN, ticks.
    out : (k,) float64
        Overwritten. O(l^3) for a match of l events.
    """
    for n in range(start.shape[0] - 1):
        begin, last = start[n], start[n + 1] - 1
        x, y = row[last], row[begin]
        spread = 1.0
        if begin < last and (clock[x] < 0 or clock[x] != clock[y]):
            spread = _up_to(
                lower[x], upper[x] - slack[x], lower[y] + slack[y] + window - 1, upper[y] + window - 1
            )
        out[n] = spread
        for first in range(begin, last):
            likely = 1.0
            j = first
            while j < last:
                x, y = row[j], row[j + 1]
                is_new = True
                for k in range(first, j + 1):
                    is_new = is_new and (clock[y] < 0 or clock[row[k]] != clock[y])
                if not is_new:
                    break
                likely *= _up_to(lower[x], upper[x] - slack[x], lower[y] + slack[y] - 1, upper[y] - 1)
                j += 1
            if j == last and first == begin:
                likely *= spread
            out[n] = min(out[n], likely)


@kernel(allocates=True)
def describe_chosen(chosen, w, lower, upper, base, out_lower, out_upper):
    """Fill the time ranges of single matches, as if all intervals were uniform.

    Parameters
    ----------
    chosen : (l, m) int64
        The candidates of each match.
    w, lower, upper, base, out_lower, out_upper
        As for :func:`eventbased.span_columns.write_ranges`, whose very values these are.
    """
    length = chosen.shape[0]
    bounds = np.empty((4, length), np.int64)
    low, high, a, b = bounds[0], bounds[1], bounds[2], bounds[3]
    for n in range(chosen.shape[1]):
        for j in range(length):
            low[j] = lower[chosen[j, n]]
            high[j] = upper[chosen[j, n]]
        tight_bounds(low, high, w, a, b)
        shift = base[chosen[0, n]]
        out_lower[n] = a[0] - shift
        out_upper[n] = b[length - 1] + length - 1 - shift
