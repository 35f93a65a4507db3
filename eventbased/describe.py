"""From runs of matches to their ids, tight time ranges and exact confidences."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from confidence.pmf import chain_confidence_pmf, support_range
from confidence.uniform import chain_confidence, confidence_of_three, confidence_of_two

NOTHING: Final = -(2**63) + 1

__all__ = ["describe_matches", "describe_uncertain", "places_of"]


@njit(cache=True, nogil=True, error_model="numpy")
def describe_matches(
    runs,
    count,
    w,
    lower,
    upper,
    base,
    payload,
    with_confidence,
    out_ids,
    out_lower,
    out_upper,
    out_confidence,
):
    """Fill the output columns of ``count`` runs of matches, as if all intervals were uniform.

    Parameters
    ----------
    runs : (k, l + 2) int64
        What :func:`eventbased.query_order.join` wrote.
    count : int64
        Rows of ``runs`` in use.
    w : int64
        ``W - l``.
    lower, upper, base, payload : (n,) int64
        Of the candidates: bounds minus position on the common time line, the shift to take off again, and
        what to write as the event's id.
    with_confidence : bool
    out_ids : (l, m) int64; out_lower, out_upper : (m,) int64; out_confidence : (m,) float64
        Overwritten, m being the number of matches. A confidence of NaN asks for exact arithmetic
        (:func:`confidence.uniform.exact_chain_confidence`).
    """
    length = runs.shape[1] - 2
    depth = length - 1
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    a = np.empty(length, np.int64)
    b = np.empty(length, np.int64)
    bounds = np.empty((4, length), np.int64)
    floats = np.empty((2, length + 1), np.float64)
    n = 0
    for r in range(count):
        size = runs[r, length]
        j = runs[r, length + 1]
        start = runs[r, j]
        stop = n + size
        if length == 3 and j == 2:
            # Short runs want no loop a column: this is the usual case, written out.
            a0, b0 = lower[runs[r, 0]], upper[runs[r, 0]]
            a1, b1 = lower[runs[r, 1]], upper[runs[r, 1]]
            id0, id1, shift = payload[runs[r, 0]], payload[runs[r, 1]], base[start]
            highest = max(a0, a1)
            lowest = min(b0, b1)
            ticks = float(b0 - a0 + 1) * float(b1 - a1 + 1)
            for m in range(n, stop):
                i = start + m - n
                out_ids[0, m] = id0
                out_ids[1, m] = id1
                out_ids[2, m] = payload[i]
                out_lower[m] = max(a0, max(highest, lower[i]) - w) - shift
                out_upper[m] = min(upper[i], lowest + w) + 2 - shift
            if with_confidence:
                for m in range(n, stop):
                    i = start + m - n
                    out_confidence[m] = confidence_of_three(
                        a0, b0, a1, b1, lower[i], upper[i], w, ticks * float(upper[i] - lower[i] + 1)
                    )
            n = stop
            continue
        # The running component is the first or the last one.
        highest = NOTHING
        lowest = -NOTHING
        ticks = 1.0
        for k in range(length):
            i = runs[r, k]
            low[k] = lower[i]
            high[k] = upper[i]
            if k != j:
                highest = max(highest, low[k])
                lowest = min(lowest, high[k])
                ticks *= float(high[k] - low[k] + 1)
                value = payload[i]
                for m in range(n, stop):
                    out_ids[k, m] = value
        shift = base[start]
        if j == depth:
            for m in range(size):
                i = start + m
                out_ids[depth, n + m] = payload[i]
                out_lower[n + m] = max(low[0], max(highest, lower[i]) - w) - shift
                out_upper[n + m] = min(upper[i], lowest + w) + depth - shift
        else:
            for m in range(size):
                i = start + m
                out_ids[j, n + m] = payload[i]
                out_lower[n + m] = max(lower[i], highest - w) - shift
                out_upper[n + m] = min(high[depth], min(lowest, upper[i]) + w) + depth - shift
        if with_confidence:
            for m in range(size):
                low[j] = lower[start + m]
                high[j] = upper[start + m]
                sizes = ticks * float(high[j] - low[j] + 1)
                if length == 3:
                    out_confidence[n + m] = confidence_of_three(
                        low[0], high[0], low[1], high[1], low[2], high[2], w, sizes
                    )
                elif length == 2:
                    out_confidence[n + m] = confidence_of_two(low[0], high[0], low[1], high[1], w, sizes)
                else:
                    out_confidence[n + m] = chain_confidence(low, high, sizes, w, a, b, bounds, floats)
        n = stop


@njit(cache=True, nogil=True, error_model="numpy")
def places_of(runs, count, match, out):
    """Write the places of the candidates of one match of ``count`` runs to ``out``, (l,) int64. O(count)."""
    length = out.shape[0]
    n = 0
    for r in range(count):
        size = runs[r, length]
        if match < n + size:
            for k in range(length):
                out[k] = runs[r, k]
            out[runs[r, length + 1]] += match - n
            return
        n += size


@njit(cache=True, nogil=True, error_model="numpy")
def describe_uncertain(
    runs,
    count,
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
    runs, count, w, lower, upper, base, with_confidence, out_lower, out_upper, out_confidence
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
    length = runs.shape[1] - 2
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    offset = np.empty(length, np.int64)
    n = 0
    for r in range(count):
        j = runs[r, length + 1]
        for m in range(runs[r, length]):
            explicit = False
            for k in range(length):
                i = runs[r, k] + (m if k == j else 0)
                offset[k] = pmf_offset[i]
                explicit = explicit or offset[k] >= 0
                low[k] = lower[i] + k
                high[k] = upper[i] + k
            if explicit:
                first, last = support_range(low, high, offset, pmf, w + length)
                shift = base[runs[r, j]]
                out_lower[n] = first - shift
                out_upper[n] = last - shift
                if with_confidence and first <= last:
                    if last - first > longest:
                        return n
                    out_confidence[n] = chain_confidence_pmf(low, high, offset, pmf, w + length, first, last)
            n += 1
    return -1
