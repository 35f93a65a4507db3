"""From partial matches and the candidates that complete them to ids, tight time ranges and confidences."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from confidence.chain.pmf import chain_confidence_pmf, support_range
from confidence.chain.uniform import (
    chain_confidence,
    pair_confidence,
    path_confidence,
    sum_of_three,
    sum_of_two,
)
from confidence.kernel import kernel
from eventbased.config import SPARE
from eventbased.joins.pivot_join import (
    BEGIN,
    FIRST,
    PARENT,
    PARENT_ROW,
    PIVOT,
    PLACE,
    POSITIVE,
    SIZE,
    TOP,
    choose,
)

Int64 = NDArray[np.int64]

__all__ = ["confidences_of_run", "describe_matches", "describe_uncertain", "matches_of_runs"]


@kernel
def _repeat(values, sizes, out):
    """Write each value as often as its size says; ``out`` has SPARE places more than the sizes add up to."""
    n = 0
    for r in range(sizes.shape[0]):
        value = values[r]
        stop = n + sizes[r]
        # Eight at a time and never fewer: a loop of unknown length costs more than the writes.
        while True:
            n &= POSITIVE
            out[n], out[n + 1], out[n + 2], out[n + 3] = value, value, value, value
            out[n + 4], out[n + 5], out[n + 6], out[n + 7] = value, value, value, value
            n += SPARE
            if n >= stop:
                break
        n = stop


@kernel
def _copy_runs(values, runs, count, out):
    """Write the values of the candidates that complete the matches."""
    n = 0
    for k in range(count):
        i = runs[BEGIN, k]
        stop = n + runs[SIZE, k]
        while True:
            # All loads before all stores, and no sign: so the compiler sees two vectors.
            i &= POSITIVE
            n &= POSITIVE
            v0, v1, v2, v3 = values[i], values[i + 1], values[i + 2], values[i + 3]
            v4, v5, v6, v7 = values[i + 4], values[i + 5], values[i + 6], values[i + 7]
            out[n], out[n + 1], out[n + 2], out[n + 3] = v0, v1, v2, v3
            out[n + 4], out[n + 5], out[n + 6], out[n + 7] = v4, v5, v6, v7
            n += SPARE
            i += SPARE
            if n >= stop:
                break
        n = stop


@kernel
def _gather_by_row(given, given_sizes, count, row, sizes):
    """Add up the sizes of equal neighbours; return how many are left. The output may be the input."""
    filled = -1
    last = -1
    total = 0
    for k in range(count):
        found = given[k]
        same = found == last
        total = total * same + given_sizes[k]
        filled += not same
        row[filled] = found
        sizes[filled] = total
        last = found
    return filled + 1


@kernel
def _write_ids(ordered, blocks, runs, count, payload, out_ids, done):
    """Fill the columns of ids: what was bound at step s is the same for all matches of a row of block s."""
    last = blocks.shape[0] - 1
    _copy_runs(payload, runs, count, out_ids[ordered[last + 1], done:])
    row = np.empty(count, np.int64)
    sizes = np.empty(count, np.int64)
    values = np.empty(count, np.int64)
    for k in range(count):
        row[k] = runs[PARENT, k]
        sizes[k] = runs[SIZE, k]
    rows = count
    for level in range(last, -1, -1):
        place = blocks[level, PLACE]
        for r in range(rows):
            values[r] = payload[place[row[r] & POSITIVE] & POSITIVE]
        _repeat(values, sizes[:rows], out_ids[ordered[level], done:])
        if level > 0:
            parent = blocks[level, PARENT_ROW]
            for r in range(rows):
                row[r] = parent[row[r] & POSITIVE]
            rows = _gather_by_row(row, sizes, rows, row, sizes)


@kernel
def _write_ranges(running, block, minimum, runs, count, w, depth, lower, upper, base, out_lower, out_upper):
    """Fill the tight time ranges: the extremes of A and B say it all (the paper, section 4.1)."""
    n = 0
    for k in range(count):
        r = runs[PARENT, k]
        i = runs[BEGIN, k]
        stop = n + runs[SIZE, k]
        shift = base[i]
        m = minimum[block[PIVOT, r]]
        # A of the first event and B of the last one count without the window. One of them belongs to the
        # component that completes the match; if it is the first one, the last one's B is the pivot's, m.
        least = block[TOP, r] - w - shift
        less = shift
        most = m + depth - shift
        more = depth - shift
        if running == 0:
            more += w
        else:
            least = max(least, block[FIRST, r] - shift)
            less += w
            most += w
        while True:
            i &= POSITIVE
            n &= POSITIVE
            # Four at a time: unlike a copy, this takes no vector instructions.
            a0, a1, a2, a3 = lower[i] - less, lower[i + 1] - less, lower[i + 2] - less, lower[i + 3] - less
            b0, b1, b2, b3 = upper[i] + more, upper[i + 1] + more, upper[i + 2] + more, upper[i + 3] + more
            a0, a1, a2, a3 = max(least, a0), max(least, a1), max(least, a2), max(least, a3)
            b0, b1, b2, b3 = min(most, b0), min(most, b1), min(most, b2), min(most, b3)
            out_lower[n], out_lower[n + 1], out_lower[n + 2], out_lower[n + 3] = a0, a1, a2, a3
            out_upper[n], out_upper[n + 1], out_upper[n + 2], out_upper[n + 3] = b0, b1, b2, b3
            n += 4
            i += 4
            if n >= stop:
                break
        n = stop


@kernel
def confidences_of_run(
    running, begin, stop, w, lower, upper, low, high, ring_low, ring_high, a, b, bounds, floats, n, out
):  # fmt: skip
    """Fill the confidences of a run's matches from match n on, from what they have in common.

    Around the cycle of inequalities (:mod:`confidence.chain.uniform`) that event stands between the last and
    the first of the others. All that no inequality it could violate connects with it is computed once.
    """
    others = low.shape[0] - 1
    # The others are positions 1..l-1 of the cycle, the running one is before them and behind them.
    for k in range(others):
        j = k if running == others else k + 1
        ring_low[k + 1] = low[j]
        ring_high[k + 1] = high[j]
    head = others + 1
    tail = 1
    of_head = of_tail = between = 1.0
    for k in range(2, others + 2):
        if k > others or ring_high[k - 1] <= ring_low[k]:
            piece = path_confidence(ring_low, ring_high, tail, k - tail, floats)
            if tail == 1:
                of_head = piece
                head = k
            elif k > others:
                of_tail = piece
            else:
                between *= piece
            if k <= others:
                tail = k
    first, last = ring_low[1], ring_high[others]
    shift = 0 if running == others else w
    for i in range(begin, stop):
        low_i = lower[i] + shift
        high_i = upper[i] + shift
        late = last > low_i
        early = high_i > first + w
        if late and early:
            low[running] = lower[i]
            high[running] = upper[i]
            out[n] = chain_confidence(low, high, w, a, b, bounds, floats)
        elif early or late:
            place, size, rest = 0, head, of_tail
            if early:
                ring_low[0] = low_i - w
                ring_high[0] = high_i - w
            else:
                ring_low[others + 1] = low_i
                ring_high[others + 1] = high_i
                place, size, rest = tail, others + 2 - tail, of_head if tail > 1 else 1.0
            out[n] = between * rest * path_confidence(ring_low, ring_high, place, size, floats)
        else:
            out[n] = between * of_head * of_tail
        n += 1


@kernel
def _write_short_confidences(ordered, blocks, runs, count, w, lower, upper, longest, out):
    """Fill the confidences of matches of two or three events, as if all intervals were uniform."""
    length = ordered.shape[0]
    running = ordered[length - 1]
    chosen = np.empty(length, np.int64)
    low = np.empty(3, np.int64)
    high = np.empty(3, np.int64)
    n = 0
    for k in range(count):
        begin = runs[BEGIN, k]
        stop = begin + runs[SIZE, k]
        choose(ordered, blocks, length - 2, runs[PARENT, k], chosen)
        sizes = 1.0
        for s in range(length - 1):
            j = ordered[s]
            low[j] = lower[chosen[j]]
            high[j] = upper[chosen[j]]
            sizes *= float(high[j] - low[j] + 1)
        if sizes == 1.0 and longest == 0:
            # All times are certain, and the join has looked at them.
            for _ in range(begin, stop):
                out[n] = 1.0
                n += 1
            continue
        pair = np.nan
        if length == 3 and running == 2:
            pair = pair_confidence(low[0], high[0], low[1], high[1])
        for i in range(begin, stop):
            if not math.isnan(pair) and high[1] <= lower[i] and upper[i] - low[0] <= w:
                out[n] = pair
                n += 1
                continue
            low[running] = lower[i]
            high[running] = upper[i]
            ticks = sizes * float(upper[i] - lower[i] + 1)
            if length == 2:
                out[n] = sum_of_two(low[0], high[0], low[1], high[1], w, ticks)
            else:
                out[n] = sum_of_three(low[0], high[0], low[1], high[1], low[2], high[2], w, ticks)
            n += 1


@kernel
def _rewrite_short_confidences(ordered, blocks, runs, count, w, lower, upper, out):
    """Replace the confidences of matches of two or three events whose written-out sums cancel (NaN)."""
    length = ordered.shape[0]
    chosen = np.empty(length, np.int64)
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    a = np.empty(length, np.int64)
    b = np.empty(length, np.int64)
    bounds = np.empty((4, length), np.int64)
    floats = np.empty((4, 2 * length + 1), np.float64)
    n = 0
    for k in range(count):
        choose(ordered, blocks, length - 2, runs[PARENT, k], chosen)
        for i in range(runs[BEGIN, k], runs[BEGIN, k] + runs[SIZE, k]):
            if math.isnan(out[n]):
                chosen[ordered[length - 1]] = i
                for j in range(length):
                    low[j] = lower[chosen[j]]
                    high[j] = upper[chosen[j]]
                out[n] = chain_confidence(low, high, w, a, b, bounds, floats)
            n += 1


@kernel
def _write_long_confidences(ordered, blocks, runs, count, w, lower, upper, longest, out):
    """Fill the confidences of matches of four events or more, as if all intervals were uniform."""
    length = ordered.shape[0]
    running = ordered[length - 1]
    chosen = np.empty(length, np.int64)
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    ring_low = np.empty(length + 1, np.int64)
    ring_high = np.empty(length + 1, np.int64)
    a = np.empty(length, np.int64)
    b = np.empty(length, np.int64)
    bounds = np.empty((4, length), np.int64)
    floats = np.empty((4, 2 * length + 1), np.float64)
    n = 0
    for k in range(count):
        begin = runs[BEGIN, k]
        stop = begin + runs[SIZE, k]
        choose(ordered, blocks, length - 2, runs[PARENT, k], chosen)
        certain = longest == 0
        for s in range(length - 1):
            j = ordered[s]
            low[j] = lower[chosen[j]]
            high[j] = upper[chosen[j]]
            certain = certain and low[j] == high[j]
        if certain:
            for i in range(stop - begin):
                out[n + i] = 1.0
        else:
            confidences_of_run(
                running, begin, stop, w, lower, upper, low, high, ring_low, ring_high, a, b, bounds, floats,
                n, out,
            )  # fmt: skip
        n += stop - begin


def describe_matches(
    ordered: Int64, blocks: Int64, minimum: Int64, runs: Int64, count: int, w: int, lower: Int64,
    upper: Int64, base: Int64, payload: Int64, longest: Int64, with_confidence: bool, done: int,
    out_ids: Int64, out_lower: Int64, out_upper: Int64, out_confidence: NDArray[np.float64],
) -> bool:  # fmt: skip
    """Fill the output columns of the matches that a call of the join found, as if all were uniform.

    Parameters
    ----------
    ordered : (l,) int64
        The components in the order in which they were bound; the last one is the first or the last of the
        pattern.
    blocks, minimum
        Of :class:`eventbased.joins.pivot_join.Search`.
    runs : (3, m) int64, count : int64
        What :func:`eventbased.joins.pivot_join.join` wrote, and how many columns of it are in use, at least
        1.
    w : int64
        ``W - l``.
    lower, upper, base, payload : (n + SPARE,) int64
        Of the candidates: bounds minus position on the common time line, the shift to take off again, and
        what to write as the event's id.
    longest : (l,) int64
        Largest ``upper - lower`` of a candidate of each component.
    with_confidence : bool
    done : int
        How many matches the output holds already.
    out_ids : (l, m) int64; out_lower, out_upper : (m,) int64; out_confidence : (m,) float64
        Overwritten, and SPARE places behind the matches as well. A confidence of NaN asks for exact
        arithmetic (:func:`confidence.chain.uniform.exact_chain_confidence`).

    Returns
    -------
    bool
        Whether any confidence is NaN.

    Notes
    -----
    O(matches); for each run and column a few whole vectors are written, without a branch.
    """
    length = ordered.shape[0]
    rest = slice(done, None)
    # Several kernels, not one: what a kernel calls is compiled once more within it.
    _write_ids(ordered, blocks, runs, count, payload, out_ids, done)
    _write_ranges(
        ordered[length - 1], blocks[length - 2], minimum, runs, count, w, length - 1, lower, upper, base,
        out_lower[rest], out_upper[rest],
    )  # fmt: skip
    if not with_confidence:
        return False
    found = out_confidence[done : done + int(runs[SIZE, :count].sum())]
    if not longest.any():
        # All times are certain, and the join has looked at them.
        found[:] = 1.0
        return False
    write = _write_short_confidences if length <= 3 else _write_long_confidences
    write(ordered, blocks, runs, count, w, lower, upper, longest[ordered[length - 1]], found)
    # A sum is NaN if anything in it is, and much cheaper to look at.
    cancelled = bool(np.isnan(found.sum()))
    if cancelled and length <= 3:
        # What is rarely needed, and dear to compile, is a kernel of its own.
        _rewrite_short_confidences(ordered, blocks, runs, count, w, lower, upper, found)
        cancelled = bool(np.isnan(found.sum()))
    return cancelled


@kernel
def matches_of_runs(ordered, blocks, runs, count, out):
    """Write the candidates of every match of ``count`` runs to ``out``, (l, m) int64. O(l m)."""
    length = ordered.shape[0]
    chosen = np.empty(length, np.int64)
    n = 0
    for k in range(count):
        choose(ordered, blocks, length - 2, runs[PARENT, k], chosen)
        for x in range(runs[SIZE, k]):
            chosen[ordered[length - 1]] = runs[BEGIN, k] + x
            for s in range(length):
                out[s, n] = chosen[s]
            n += 1


@kernel
def describe_uncertain(
    chosen,
    w,
    lower,
    upper,
    base,
    pmf_offset,
    pmf,
    longest,
    with_confidence,
    out_lower,
    out_upper,
    out_confidence,
):
    """Correct range and confidence of the matches with explicit probabilities.

    Parameters
    ----------
    chosen : (l, m) int64
        The candidates of each match.
    w, lower, upper, base, with_confidence, out_lower, out_upper, out_confidence
        As for :func:`describe_matches`, which filled the output as if all intervals were uniform. A
        match that the probabilities exclude gets an empty range.
    pmf_offset : (n,) int64
        Where the probabilities of a candidate start in ``pmf``; -1 for uniform.
    pmf : (m,) float64
    longest : int64
        Most ticks between the earliest and the latest time of a match that are worth a pass.

    Returns
    -------
    int64
        The first match that reaches over more than ``longest`` ticks, or -1.
    """
    length = chosen.shape[0]
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    offset = np.empty(length, np.int64)
    for n in range(chosen.shape[1]):
        explicit = False
        for k in range(length):
            i = chosen[k, n]
            offset[k] = pmf_offset[i]
            explicit = explicit or offset[k] >= 0
            low[k] = lower[i] + k
            high[k] = upper[i] + k
        if explicit:
            first, last = support_range(low, high, offset, pmf, w + length)
            shift = base[chosen[0, n]]
            out_lower[n] = first - shift
            out_upper[n] = last - shift
            if with_confidence and first <= last:
                if last - first > longest:
                    return n
                out_confidence[n] = chain_confidence_pmf(low, high, offset, pmf, w + length, first, last)
    return -1
