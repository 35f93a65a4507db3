"""From the chosen candidates of a batch of matches to ids, tight time ranges and exact confidences."""

from __future__ import annotations

import numpy as np
from numba import njit

from confidence.pmf import chain_confidence_pmf, support_range
from confidence.uniform import chain_confidence, confidence_of_three, confidence_of_two

__all__ = ["describe_matches", "describe_uncertain"]


@njit(cache=True, nogil=True, error_model="numpy")
def describe_matches(
    places,
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
    """Fill the output columns of ``count`` matches of uniform intervals.

    Parameters
    ----------
    places : (k, l) int64
        What :func:`eventbased.query_order.join` wrote.
    count : int64
        Rows of ``places`` in use.
    w : int64
        ``W - l``.
    lower, upper, base, payload : (n,) int64
        Of the candidates: bounds minus position on the common time line, the shift to take off again, and
        what to write as the event's id.
    with_confidence : bool
    out_ids : (l, k) int64; out_lower, out_upper : (k,) int64; out_confidence : (k,) float64
        Overwritten in rows 0..count-1. A confidence of NaN asks for exact arithmetic
        (:func:`confidence.uniform.exact_chain_confidence`).
    """
    length = places.shape[1]
    depth = length - 1
    for n in range(count):
        i = places[n, 0]
        first = lower[i]
        highest = first
        lowest = upper[i]
        out_ids[0, n] = payload[i]
        for k in range(1, length):
            i = places[n, k]
            highest = max(highest, lower[i])
            lowest = min(lowest, upper[i])
            out_ids[k, n] = payload[i]
        shift = base[i]
        out_lower[n] = max(first, highest - w) - shift
        out_upper[n] = min(upper[i], lowest + w) + depth - shift
    if not with_confidence:
        return
    if length == 3:
        for n in range(count):
            i = places[n, 0]
            j = places[n, 1]
            k = places[n, 2]
            sizes = (
                float(upper[i] - lower[i] + 1)
                * float(upper[j] - lower[j] + 1)
                * float(upper[k] - lower[k] + 1)
            )
            out_confidence[n] = confidence_of_three(
                lower[i], upper[i], lower[j], upper[j], lower[k], upper[k], w, sizes
            )
        return
    if length == 2:
        for n in range(count):
            i = places[n, 0]
            j = places[n, 1]
            sizes = float(upper[i] - lower[i] + 1) * float(upper[j] - lower[j] + 1)
            out_confidence[n] = confidence_of_two(lower[i], upper[i], lower[j], upper[j], w, sizes)
        return
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    a = np.empty(length, np.int64)
    b = np.empty(length, np.int64)
    bounds = np.empty((4, length), np.int64)
    floats = np.empty((2, length + 1), np.float64)
    for n in range(count):
        sizes = 1.0
        for k in range(length):
            i = places[n, k]
            low[k] = lower[i]
            high[k] = upper[i]
            sizes *= float(high[k] - low[k] + 1)
        out_confidence[n] = chain_confidence(low, high, sizes, w, a, b, bounds, floats)


@njit(cache=True, nogil=True, error_model="numpy")
def describe_uncertain(
    places, count, w, lower, upper, base, pmf_offset, pmf, longest, with_confidence, out_lower, out_upper,
    out_confidence,
):  # fmt: skip
    """Correct range and confidence of the matches with explicit probabilities among ``count``.

    Parameters
    ----------
    places, count, w, lower, upper, base, with_confidence, out_lower, out_upper, out_confidence
        As for :func:`describe_matches`, which filled the output as if all intervals were uniform.
        A match that the probabilities exclude gets an empty range and the confidence 0.
    pmf_offset : (n,) int64
        Where the probabilities of a candidate start in ``pmf``; -1 for uniform.
    pmf : (m,) float64
    longest : int64
        Ticks between the earliest and the latest time of a match that are worth a pass.

    Returns
    -------
    int64
        The first row that spans more than ``longest`` ticks, or -1.
    """
    length = places.shape[1]
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    offset = np.empty(length, np.int64)
    for n in range(count):
        explicit = False
        for k in range(length):
            i = places[n, k]
            offset[k] = pmf_offset[i]
            explicit = explicit or offset[k] >= 0
            low[k] = lower[i] + k
            high[k] = upper[i] + k
        if not explicit:
            continue
        first, last = support_range(low, high, offset, pmf, w + length)
        shift = base[places[n, 0]]
        out_lower[n] = first - shift
        out_upper[n] = last - shift
        out_confidence[n] = 0.0
        if first > last:
            out_lower[n] = 0
            out_upper[n] = -1
        elif with_confidence:
            if last - first > longest:
                return n
            out_confidence[n] = chain_confidence_pmf(low, high, offset, pmf, w + length, first, last)
    return -1
