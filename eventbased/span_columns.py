"""From a call of the join to columns of its matches: what stands for their events, and tight time ranges."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from eventbased.config import SPARE
from eventbased.joins.join_state import (
    BEGIN,
    CANDIDATE,
    FIRST,
    LEFT,
    PARENT,
    PARENT_ROW,
    PASS,
    PIVOT,
    SIZE,
    TOP,
)
from eventbased.joins.pivot_join import POSITIVE, join

__all__ = ["MatchColumns", "keep_likely", "matches_unweighed", "next_matches"]


_KEPT_AT_ONCE: Final = 1024
"""Matches whose places are looked up before they are moved."""

_CUBES_A_STEP: Final = 8
"""Matches times the third power of their length that take about as long as a step of a search."""


class MatchColumns(NamedTuple):
    """Room for k matches, and SPARE places behind them that kernels overwrite as well."""

    events: NDArray[np.int64]
    """(l, k + SPARE) int64."""
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    """(k + SPARE,) int64, ticks."""
    confidence: NDArray[np.float64]
    """(k + SPARE,) float64, or (0,) if none are wanted."""
    least: float = 0.0
    """From 0 to 1: matches that are less likely are left out."""


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


@kernel(packed=True)
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
        row = rows[k]
        same = row == last
        total = total * same + sizes[k]
        filled += not same
        rows[filled] = row
        sizes[filled] = total
        last = row
    return filled + 1


@kernel(allocates=True)
def write_ids(ordered, blocks, spans, count, payload, out_ids, done):
    """Fill the columns of events: those bound at step s are the same for all matches of a row of block s."""
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


@kernel(packed=True)
def write_ranges(running, block, minimum, spans, count, w, depth, lower, upper, base, out_lower, out_upper):
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
        earliest = block[TOP, r] - w - shift
        less = shift
        latest = m + depth - shift
        more = depth - shift
        if running == 0:
            more += w
        else:
            earliest = max(earliest, block[FIRST, r] - shift)
            less += w
            latest += w
        while True:
            i &= POSITIVE
            n &= POSITIVE
            # Four at a time: unlike a copy, this takes no vector instructions.
            a0, a1, a2, a3 = lower[i] - less, lower[i + 1] - less, lower[i + 2] - less, lower[i + 3] - less
            b0, b1, b2, b3 = upper[i] + more, upper[i + 1] + more, upper[i + 2] + more, upper[i + 3] + more
            a0, a1, a2, a3 = max(earliest, a0), max(earliest, a1), max(earliest, a2), max(earliest, a3)
            b0, b1, b2, b3 = min(latest, b0), min(latest, b1), min(latest, b2), min(latest, b3)
            out_lower[n], out_lower[n + 1], out_lower[n + 2], out_lower[n + 3] = a0, a1, a2, a3
            out_upper[n], out_upper[n + 1], out_upper[n + 2], out_upper[n + 3] = b0, b1, b2, b3
            n += 4
            i += 4
            if n >= stop:
                break
        n = stop


@kernel(allocates=True)
def next_matches(inputs, search, most_steps, room, spans, payload, columns, filled):
    """Fill events and ranges of the matches of one call of the join; return the numbers of spans and matches.

    For ``payload``, ``columns`` and ``filled`` see :class:`eventbased.describe.MatchFinder`, for everything
    else :func:`eventbased.joins.pivot_join.join`. ``search.state[LEFT]`` becomes the steps that are left.
    """
    count, matched = join(inputs, search, most_steps, room, spans)
    if matched > 0:
        candidates = inputs.candidates
        ordered = inputs.order[search.state[PASS]]
        length = ordered.shape[0]
        write_ids(ordered, search.blocks, spans, count, payload, columns.events, filled)
        write_ranges(
            ordered[length - 1],
            search.blocks[length - 2],
            search.minimum,
            spans,
            count,
            inputs.w,
            length - 1,
            candidates.lower,
            candidates.upper,
            candidates.base,
            columns.lower[filled:],
            columns.upper[filled:],
        )
        search.state[LEFT] -= matched * (length * length * length // _CUBES_A_STEP)
    return count, matched


@kernel
def _move(column, n, first, places, count):
    """Write the values at some places behind ``first``, ascending, from ``n`` on, which is not behind it."""
    to, source = column[n : n + count], column[first:]
    for k in range(count):
        to[k] = source[places[k] & POSITIVE]


@kernel(allocates=True)
def keep_likely(columns, begin, end):
    """Leave out matches from ``begin`` on that are not likely enough; return where the rest ends.

    O(end - begin) for each column, block by block, as what was just written is in the processor's cache.
    """
    confidence, least = columns.confidence, columns.least
    places = np.empty(_KEPT_AT_ONCE, np.int64)
    n = begin
    for first in range(begin, end, _KEPT_AT_ONCE):
        size = min(_KEPT_AT_ONCE, end - first)
        confidences = confidence[first : first + size]
        count = 0
        for i in range(size):
            places[count & POSITIVE] = i
            count += confidences[i] >= least
        if n + count < first + size:
            for j in range(columns.events.shape[0]):
                _move(columns.events[j], n, first, places, count)
            _move(columns.lower, n, first, places, count)
            _move(columns.upper, n, first, places, count)
            _move(confidence, n, first, places, count)
        n += count
    return n


@kernel(allocates=True)
def matches_unweighed(inputs, search, most_steps, spans, payload, once, columns, filled):
    """Find matches and fill all but their confidences; return as the kernels of ``spans_written_out`` do.

    ``once`` says that the join is called no more than once.
    """
    steps_left = most_steps
    places = columns.lower.shape[0] - SPARE
    while True:
        begun = filled
        count, matched = next_matches(
            inputs, search, steps_left, places - filled, spans, payload, columns, filled
        )
        filled += matched
        steps_left = search.state[LEFT]
        if matched == 0 or once or filled == places or steps_left <= 0:
            return begun, filled, count, 0
