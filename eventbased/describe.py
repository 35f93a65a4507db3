"""From partial matches and the candidates that complete them to ids, tight time ranges and confidences."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.chain.pmf import chain_confidence_pmf, support_range
from confidence.chain.side_by_side import CHAINS, LENGTHS, Chains, fill_confidences
from confidence.chain.uniform import chain_confidence
from confidence.kernel import kernel
from eventbased import spans_written_out
from eventbased.config import SPARE
from eventbased.joins.join_state import (
    BEGIN,
    CANDIDATE,
    FIRST,
    PARENT,
    PARENT_ROW,
    PIVOT,
    SIZE,
    TOP,
    JoinState,
    trace_back,
)
from eventbased.joins.pivot_join import POSITIVE
from eventbased.layout import Candidates

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

__all__ = [
    "confidences_of_matches",
    "confidences_of_spans",
    "describe_matches",
    "describe_uncertain",
    "matches_of_spans",
]

_CONFIDENCES: Final[dict[int, Any]] = {
    length: getattr(spans_written_out, f"confidences_of_{length}") for length in LENGTHS
}


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


@kernel
def _chains_of_matches(chosen, begin, lower, upper, chains):
    """Write the bounds of matches from ``begin`` on side by side; return of how many."""
    bounds, place = chains.bounds, chains.place
    length, count = chosen.shape
    size = min(count - begin, CHAINS)
    for n in range(size):
        base = lower[chosen[0, begin + n]]
        for j in range(length):
            i = chosen[j, begin + n]
            bounds[2 * j, n] = float(lower[i] - base)
            bounds[2 * j + 1, n] = float(upper[i] - base)
        place[n] = begin + n
    return size


@kernel(allocates=True)
def _confidences_one_by_one(chosen, w, lower, upper, out):
    """Fill the confidences of matches that are not written side by side."""
    length, count = chosen.shape
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    bounds = np.empty((6, length), np.int64)
    floats = np.empty((4, 2 * length + 1), np.float64)
    for n in range(count):
        for j in range(length):
            low[j] = lower[chosen[j, n]]
            high[j] = upper[chosen[j, n]]
        out[n] = chain_confidence(low, high, w, bounds[4], bounds[5], bounds[:4], floats)


def confidences_of_matches(
    chosen: Int64, w: int, lower: Int64, upper: Int64, chains: Chains | None, out: Float64
) -> None:
    """Fill the confidences of matches as if all intervals were uniform.

    Parameters
    ----------
    chosen : (l, m) int64
        The candidates of each match.
    w : int
        ``W - l``.
    lower, upper : (n,) int64
        Bounds minus position of the candidates, ticks.
    chains : Chains or None
        See :func:`confidence.chain.side_by_side.new_chains`.
    out : (m,) float64
        Overwritten. A confidence of NaN asks for exact arithmetic.
    """
    if chains is None:
        out[:] = np.nan
    else:
        for begin in range(0, chosen.shape[1], CHAINS):
            fill_confidences(chains, _chains_of_matches(chosen, begin, lower, upper, chains), w, out)
    again = np.flatnonzero(np.isnan(out))
    if len(again):
        values = np.empty(len(again))
        _confidences_one_by_one(np.ascontiguousarray(chosen[:, again]), w, lower, upper, values)
        out[again] = values


def describe_matches(
    ordered: Int64, search: JoinState, spans: Int64, count: int, w: int, candidates: Candidates,
    payload: Int64, longest: Int64, with_confidence: bool, chains: Chains | None, done: int,
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
    chains : Chains or None
        See :func:`confidence.chain.side_by_side.new_chains`.
    done : int
        How many matches the output holds already.
    out : tuple
        Events, (l, m) int64, lower and upper bounds, (m,) int64, ticks, and confidences, (m,) float64:
        overwritten, and SPARE places behind the matches as well. A confidence of NaN asks for
        :func:`confidences_of_matches`, and then for exact arithmetic.

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
    if chains is None:
        found[:] = np.nan
        return True
    return confidences_of_spans(ordered, search, spans, count, w, candidates, longest, chains, found)


def confidences_of_spans(
    ordered: Int64, search: JoinState, spans: Int64, count: int, w: int, candidates: Candidates,
    longest: Int64, chains: Chains, out: Float64,
) -> bool:  # fmt: skip
    """Fill the confidences of the matches of some spans as if all were uniform; return whether any is NaN.

    For ``out``, (m,) float64, see :func:`confidence.chain.side_by_side.fill_confidences`, for the other
    parameters :func:`describe_matches`.
    """
    length = ordered.shape[0]
    cursor, chosen, own = np.zeros(3, np.int64), np.empty((2, length), np.int64), np.empty(2 * length)
    # One call for all: between two of them a thread waits for the interpreter.
    lost = _CONFIDENCES[length](
        ordered, search.blocks, spans, count, cursor, candidates.lower, candidates.upper,
        longest[ordered[length - 1]], chosen, own, chains, float(w), out,
    )  # fmt: skip
    return bool(lost)


@kernel(allocates=True)
def matches_of_spans(ordered, blocks, spans, which, out):
    """Write the candidates of some matches of spans to ``out``, (l, m) int64. O(l m + spans).

    ``which`` are their numbers, (m,) int64, ascending.
    """
    length = ordered.shape[0]
    chosen = np.empty(length, np.int64)
    k = -1
    begin = stop = 0
    for n in range(which.shape[0]):
        if which[n] >= stop:
            while which[n] >= stop:
                k += 1
                begin = stop
                stop += spans[SIZE, k]
            trace_back(ordered, blocks, length - 2, spans[PARENT, k], chosen)
        chosen[ordered[length - 1]] = spans[BEGIN, k] + which[n] - begin
        for s in range(length):
            out[s, n] = chosen[s]


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
