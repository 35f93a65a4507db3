"""Events that last and must not stand in a relation to a match, whose ends or lengths have probabilities.

A pair of a begin and an end weighs the product of the probabilities of its begin, its end and its length. A
rule forbids those of a rectangle, see :mod:`confidence.timed.counted_pairs`. The pairs that are left are
summed one by one: no term is negative, so that what is impossible is exactly 0.

A rule that bounds the begin from above and the end from below forbids an overlap. What it leaves are the
pairs that end too early, and those that begin too late. No pair does both, so that the laws of both ends are
enough, whatever ties them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import plain_checkpoint
from confidence.chain.distribution import DOUBTFUL, Pmfs, at_least, at_most
from confidence.kernel import kernel
from confidence.timed.counted_pairs import law_of_pairs, record_of

__all__ = ["LAW_FIELDS", "PAIRS", "free_of_weighed", "marginals_of_pairs", "pair_weights", "weights_of_pairs"]

LAW_FIELDS: Final = 7
"""What the record of a law has: where the probabilities of begins, ends and lengths start, -1 where all are
alike; where the laws of the begin alone and of the end alone start; by what a pair's weight is multiplied;
and how many pairs there are."""

PAIRS: Final = 6
"""The place of the number of pairs."""

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@kernel
def _weight(values, law, b, e, length):
    """Return the weight of a pair: of the places of its begin, end and length, each from the first on."""
    weight = values[law + 5]
    if values[law] >= 0.0:
        weight *= values[int(values[law]) + b]
    if values[law + 1] >= 0.0:
        weight *= values[int(values[law + 1]) + e]
    if values[law + 2] >= 0.0:
        weight *= values[int(values[law + 2]) + length]
    return weight


@kernel
def _has(ends, row, inner, tick):
    """Return whether a span of a rule holds a tick."""
    return max(ends[row, 2], inner + ends[row, 4]) <= tick <= min(ends[row, 3], inner + ends[row, 5])


@kernel
def _is_there(ends, r, inner):
    """Return whether both spans of a rule are there where the inner time is at a tick."""
    return ends[2 * r, 6] <= inner <= ends[2 * r, 7] and ends[2 * r + 1, 6] <= inner <= ends[2 * r + 1, 7]


@kernel
def free_of_weighed(low, high, offset, pmfs, ends, rules, inner):
    """Return P(an event did not happen, or is in none of the rectangles of some rules).

    Parameters
    ----------
    low, high, offset, ends, rules, inner
        As of :func:`confidence.timed.counted_pairs.free_of_rules`.
    pmfs : confidence.chain.distribution.Pmfs

    Notes
    -----
    O(1) for an overlap, else O(rules * pairs).
    """
    values = pmfs.values
    happened = values[DOUBTFUL - offset]
    place, law = record_of(offset, values), law_of_pairs(offset, values)
    first_end, last_end = low + int(values[place]), low + int(values[place + 1])
    shortest, longest = int(values[place + 2]), int(values[place + 3])
    of_begin, of_end = int(values[law + 3]), int(values[law + 4])
    count = 0
    for r in range(rules):
        count += _is_there(ends, r, inner)
    if count == 0:
        return 1.0
    if rules == 1 and ends[0, 8] <= shortest and longest <= ends[0, 9]:
        last_begin, end = min(ends[0, 3], inner + ends[0, 5]), max(ends[1, 2], inner + ends[1, 4])
        is_half = max(ends[0, 2], inner + ends[0, 4]) <= low
        is_half = is_half and min(ends[1, 3], inner + ends[1, 5]) >= last_end
        if is_half and (end <= first_end or last_begin >= high or end <= last_begin + 1 + shortest):
            free = at_most(first_end, last_end, of_end, pmfs.head, end - 1)
            free += at_least(low, high, of_begin, pmfs.tail, last_begin + 1)
            return 1.0 - happened + happened * free
    free = 0.0
    for b in range(low, high + 1):
        plain_checkpoint()
        is_bound = False
        for r in range(rules):
            is_bound = is_bound or (_is_there(ends, r, inner) and _has(ends, 2 * r, inner, b))
        if not is_bound:
            free += values[of_begin + b - low]
            continue
        for e in range(max(first_end, b + shortest), min(last_end, b + longest) + 1):
            is_forbidden = False
            for r in range(rules):
                is_forbidden = is_forbidden or (
                    _is_there(ends, r, inner)
                    and ends[2 * r, 8] <= e - b <= ends[2 * r, 9]
                    and _has(ends, 2 * r, inner, b)
                    and _has(ends, 2 * r + 1, inner, e)
                )
            if not is_forbidden:
                free += _weight(values, law, b - low, e - first_end, e - b - shortest)
    return 1.0 - happened + happened * free


@kernel
def pair_weights(begin, end, length, first, of_begin, of_end):
    """Add the weights of all pairs with each begin, and with each end; return how many there are.

    Parameters
    ----------
    begin, end, length : (w,), (h,) and (d,) float64
        Probabilities of the begins, the ends, and of the lengths.
    first : int64
        The first end, less the first begin and the least length.
    of_begin, of_end : (w,) and (h,) float64
        Written.
    """
    count = 0
    for b in range(begin.shape[0]):
        plain_checkpoint()
        for e in range(max(b - first, 0), min(b - first + length.shape[0], end.shape[0])):
            weight = begin[b] * end[e] * length[e + first - b]
            of_begin[b] += weight
            of_end[e] += weight
            count += 1
    return count


def marginals_of_pairs(begin: Float64, end: Float64, length: Float64, first: int) -> tuple[Pmfs, float, int]:
    """Return the law of the begin alone, and behind it that of the end; what scales weights; how many pairs.

    Parameters are those of :func:`pair_weights`. O(pairs).
    """
    size = len(begin)
    sums = np.zeros(size + len(end))
    add_weights: Any = pair_weights
    pairs = int(add_weights(begin, end, length, first, sums[:size], sums[size:]))
    scale = 1.0 / float(sums[:size].sum())
    start, last = np.array([0, size]), np.array([size - 1, len(end) - 1])
    return Pmfs.of(sums * scale, np.zeros_like(start), last, start), scale, pairs


def weights_of_pairs(
    values: Float64, law: int, begin: tuple[int, int], end: tuple[int, int], length: tuple[int, int]
) -> Float64:
    """Return the probability of each pair, (w, h) for w begins and h ends, by the record of their law."""
    lengths = np.arange(end[0], end[1] + 1) - np.arange(begin[0], begin[1] + 1)[:, None]
    sizes = (len(lengths), lengths.shape[1], length[1] - length[0] + 1)
    of_begin, of_end, of_length = (
        np.ones(size) if place < 0 else values[place : place + size]
        for place, size in zip(values[law : law + 3].astype(np.int64).tolist(), sizes, strict=True)
    )
    is_possible = (length[0] <= lengths) & (lengths <= length[1])
    weights = of_begin[:, None] * of_end * of_length[np.clip(lengths - length[0], 0, sizes[2] - 1)]
    probability: Float64 = np.where(is_possible, weights * values[law + 5], 0.0)
    return probability
