"""From partial matches and the candidates that complete them to ids, tight time ranges and confidences."""

from __future__ import annotations

import math
from typing import NamedTuple

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
    CANDIDATE,
    FIRST,
    PARENT,
    PARENT_ROW,
    PIVOT,
    POSITIVE,
    SIZE,
    TOP,
    JoinState,
    trace_back,
)
from eventbased.layout import Candidates

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

__all__ = [
    "SpanScratch",
    "confidences_of_span",
    "describe_matches",
    "describe_uncertain",
    "matches_of_spans",
    "span_scratch",
]


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
def _copy_spans(values, spans, count, out):
    """Write the values of the candidates that complete the matches."""
    n = 0
    for k in range(count):
        i = spans[BEGIN, k]
        stop = n + spans[SIZE, k]
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
def _gather_by_row(rows, sizes, count):
    """Add up the sizes of equal neighbours, in place; return how many are left."""
    filled = -1
    last = -1
    total = 0
    for k in range(count):
        found = rows[k]
        same = found == last
        total = total * same + sizes[k]
        filled += not same
        rows[filled] = found
        sizes[filled] = total
        last = found
    return filled + 1


@kernel(allocates=True)
def _write_ids(ordered, blocks, spans, count, payload, out_ids, done):
    """Fill the columns of ids: what was bound at step s is the same for all matches of a row of block s."""
    last = blocks.shape[0] - 1
    _copy_spans(payload, spans, count, out_ids[ordered[last + 1], done:])
    row = np.empty(count, np.int64)
    sizes = np.empty(count, np.int64)
    values = np.empty(count, np.int64)
    for k in range(count):
        row[k] = spans[PARENT, k]
        sizes[k] = spans[SIZE, k]
    rows = count
    for level in range(last, -1, -1):
        bound = blocks[level, CANDIDATE]
        for r in range(rows):
            values[r] = payload[bound[row[r] & POSITIVE] & POSITIVE]
        _repeat(values, sizes[:rows], out_ids[ordered[level], done:])
        if level > 0:
            parent = blocks[level, PARENT_ROW]
            for r in range(rows):
                row[r] = parent[row[r] & POSITIVE]
            rows = _gather_by_row(row, sizes, rows)


@kernel
def _write_ranges(running, block, minimum, spans, count, w, depth, lower, upper, base, out_lower, out_upper):
    """Fill the tight time ranges: the extremes of A and B say it all (the paper, section 4.1)."""
    n = 0
    for k in range(count):
        r = spans[PARENT, k]
        i = spans[BEGIN, k]
        stop = n + spans[SIZE, k]
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


class SpanScratch(NamedTuple):
    """Work arrays for the confidences of matches of l events."""

    low: Int64
    high: Int64
    """(l,) int64. A and B of the events of a match."""
    ring_low: Int64
    ring_high: Int64
    """(l + 1,) int64. Those of the events around the cycle of inequalities."""
    a: Int64
    b: Int64
    bounds: Int64
    floats: Float64
    """Twice (l,) int64, (4, l) int64, (4, 2 l + 1) float64. See
    :func:`confidence.chain.uniform.chain_confidence`."""


@kernel(allocates=True)
def span_scratch(length):
    """Return work arrays for matches of ``length`` events."""
    return SpanScratch(
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.empty(length + 1, np.int64),
        np.empty(length + 1, np.int64),
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.empty((4, length), np.int64),
        np.empty((4, 2 * length + 1), np.float64),
    )


@kernel
def confidences_of_span(running, begin, stop, w, lower, upper, scratch, n, out):
    """Fill the confidences of a span's matches from match n on, from what they have in common.

    Around the cycle of inequalities (:mod:`confidence.chain.uniform`) that event stands between the last and
    the first of the others. All that no inequality it could violate connects with it is computed once.
    ``scratch`` holds A and B of the others.
    """
    low, high, ring_low, ring_high = scratch.low, scratch.high, scratch.ring_low, scratch.ring_high
    a, b, bounds, floats = scratch.a, scratch.b, scratch.bounds, scratch.floats
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
            origin, size, rest = 0, head, of_tail
            if early:
                ring_low[0] = low_i - w
                ring_high[0] = high_i - w
            else:
                ring_low[others + 1] = low_i
                ring_high[others + 1] = high_i
                origin, size, rest = tail, others + 2 - tail, of_head if tail > 1 else 1.0
            out[n] = between * rest * path_confidence(ring_low, ring_high, origin, size, floats)
        else:
            out[n] = between * of_head * of_tail
        n += 1


@kernel(allocates=True)
def _write_short_confidences(ordered, blocks, spans, count, w, lower, upper, longest, out):
    """Fill the confidences of matches of two or three events, as if all intervals were uniform."""
    length = ordered.shape[0]
    running = ordered[length - 1]
    chosen = np.empty(length, np.int64)
    low = np.empty(3, np.int64)
    high = np.empty(3, np.int64)
    n = 0
    for k in range(count):
        begin = spans[BEGIN, k]
        stop = begin + spans[SIZE, k]
        trace_back(ordered, blocks, length - 2, spans[PARENT, k], chosen)
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


@kernel(allocates=True)
def _write_long_confidences(ordered, blocks, spans, count, w, lower, upper, longest, out):
    """Fill the confidences of matches of four events or more, as if all intervals were uniform."""
    length = ordered.shape[0]
    running = ordered[length - 1]
    chosen = np.empty(length, np.int64)
    work = span_scratch(length)
    n = 0
    for k in range(count):
        begin = spans[BEGIN, k]
        stop = begin + spans[SIZE, k]
        trace_back(ordered, blocks, length - 2, spans[PARENT, k], chosen)
        certain = longest == 0
        for s in range(length - 1):
            j = ordered[s]
            work.low[j] = lower[chosen[j]]
            work.high[j] = upper[chosen[j]]
            certain = certain and work.low[j] == work.high[j]
        if certain:
            for i in range(stop - begin):
                out[n + i] = 1.0
        else:
            confidences_of_span(running, begin, stop, w, lower, upper, work, n, out)
        n += stop - begin


def describe_matches(
    ordered: Int64, search: JoinState, spans: Int64, count: int, w: int, candidates: Candidates,
    payload: Int64, longest: Int64, with_confidence: bool, done: int,
    out: tuple[Int64, Int64, Int64, Float64],
) -> bool:  # fmt: skip
    """Fill the output columns of the matches that a call of the join found, as if all were uniform.

    Parameters
    ----------
    ordered : (l,) int64
        The components in the order in which they were bound; the last one is the first or the last of the
        pattern.
    search : JoinState
    spans : (3, m) int64, count : int64
        What :func:`eventbased.joins.pivot_join.join` wrote, and how many columns of it are in use, at least
        1.
    w : int64
        ``W - l``.
    candidates : Candidates
        With positions taken off.
    payload : (n + SPARE,) int64
        What to write as each candidate's event.
    longest : (l,) int64
        Largest ``upper - lower`` of a candidate of each component.
    with_confidence : bool
    done : int
        How many matches the output holds already.
    out : tuple
        Events, (l, m) int64, lower and upper bounds, (m,) int64, ticks, and confidences, (m,) float64:
        overwritten, and SPARE places behind the matches as well. A confidence of NaN asks for
        :func:`eventbased.describe_chosen`, and then for exact arithmetic.

    Returns
    -------
    bool
        Whether any confidence is NaN.

    Notes
    -----
    O(matches); for each span and column a few whole vectors are written, without a branch.
    """
    length = ordered.shape[0]
    events, out_lower, out_upper, confidence = out
    blocks, lower, upper = search.blocks, candidates.lower, candidates.upper
    # Several kernels, not one: what a kernel calls is compiled once more within it.
    _write_ids(ordered, blocks, spans, count, payload, events, done)
    _write_ranges(
        ordered[length - 1], blocks[length - 2], search.minimum, spans, count, w, length - 1, lower, upper,
        candidates.base, out_lower[done:], out_upper[done:],
    )  # fmt: skip
    if not with_confidence:
        return False
    found = confidence[done : done + int(spans[SIZE, :count].sum())]
    if not longest.any():
        # All times are certain, and the join has looked at them.
        found[:] = 1.0
        return False
    write = _write_short_confidences if length <= 3 else _write_long_confidences
    write(ordered, blocks, spans, count, w, lower, upper, longest[ordered[length - 1]], found)
    # A sum is NaN if anything in it is, and much cheaper to look at.
    return bool(np.isnan(found.sum()))


@kernel(allocates=True)
def matches_of_spans(ordered, blocks, spans, count, out):
    """Write the candidates of every match of ``count`` spans to ``out``, (l, m) int64. O(l m)."""
    length = ordered.shape[0]
    chosen = np.empty(length, np.int64)
    n = 0
    for k in range(count):
        trace_back(ordered, blocks, length - 2, spans[PARENT, k], chosen)
        for x in range(spans[SIZE, k]):
            chosen[ordered[length - 1]] = spans[BEGIN, k] + x
            for s in range(length):
                out[s, n] = chosen[s]
            n += 1


@kernel(allocates=True)
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
        Window, bounds and bases of the layout, and the output as it was filled as if all intervals were
        uniform. A match that the probabilities exclude gets an empty range.
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
