"""How likely each of two events is the earlier one, given that both happened.

Uniform times of independent events, or of one clock, have closed forms of terms that are never negative:
for x in [a, b] and y in [c, d], each tick of x below c is before all of y, and each x in c..d-1 is before
``d - x`` ticks, an arithmetic series. All other laws are left to the engine: each pair is a partition of two
events, and the probabilities are the confidences of sequences of two.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.executor import execute
from uncertain_cep.happened_before.interval_orders import Pairs
from uncertain_cep.happened_before.ordered_events import OrderedEvents
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.query import parse

__all__ = ["PairProbabilities", "pair_probabilities", "uniform_pairs"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_AT_ONCE: Final = 100_000
"""Pairs that the engine is asked about at a time."""


class PairProbabilities(NamedTuple):
    """The probabilities of the orders of k pairs (x, y), each (k,) float64; they sum to 1."""

    before: Float64
    """x is before y."""
    after: Float64
    """y is before x."""
    neither: Float64
    """Both are at one tick, and no sequence tells them apart."""


def uniform_pairs(a: Int64, b: Int64, c: Int64, d: Int64) -> PairProbabilities:
    """Return the probabilities for independent uniform times in [a, b] and in [c, d], each (k,) int64. O(k).

    >>> bounds = [np.array([tick]) for tick in (0, 2, 2, 4)]
    >>> [float(p[0]) for p in uniform_pairs(*bounds)]
    [0.8888888888888888, 0.0, 0.1111111111111111]
    """
    common = _count(np.maximum(a, c), np.minimum(b, d))
    neither = common / _count(a, b) / _count(c, d)
    return PairProbabilities(_earlier(a, b, c, d), _earlier(c, d, a, b), neither)


def _count(first: Int64, last: Int64) -> Float64:
    """Return how many ticks there are from first to last."""
    ticks: Float64 = np.maximum(last - first + 1, 0).astype(np.float64)
    return ticks


def _earlier(a: Int64, b: Int64, c: Int64, d: Int64) -> Float64:
    """Return P(x < y) for uniform x in [a, b] and y in [c, d]."""
    below = _count(a, np.minimum(b, c - 1))
    first, last = np.maximum(a, c), np.minimum(b, d - 1)
    mean = ((d - first).astype(np.float64) + (d - last).astype(np.float64)) / 2
    within = _count(first, last) * np.where(first <= last, mean, 0.0)
    return below / _count(a, b) + within / _count(a, b) / _count(c, d)


def pair_probabilities(events: OrderedEvents, pairs: Pairs, threads: int) -> PairProbabilities:
    """Return the probabilities of the orders of pairs of events, (k,) int64 rows each."""
    x, y = pairs
    order = events.order
    before, after, neither = answer = PairProbabilities(*np.zeros((3, len(x))))
    forwards, backwards, shared = order.is_before(x, y), order.is_before(y, x), order.share_clock(x, y)
    before[forwards], after[backwards] = 1.0, 1.0
    is_open = ~forwards & ~backwards
    has_law = np.where(
        shared, events.has_own_law[x] | events.has_own_law[y], events.has_law[x] | events.has_law[y]
    )
    for which, lower, upper in (
        (is_open & ~has_law & shared, order.own_lower, order.own_upper),
        (is_open & ~has_law & ~shared, order.lower, order.upper),
    ):
        first, second = x[which], y[which]
        _put(answer, which, uniform_pairs(lower[first], upper[first], lower[second], upper[second]))
    left = np.flatnonzero(is_open & has_law)
    for begin in range(0, len(left), _AT_ONCE):
        checkpoint()
        part = left[begin : begin + _AT_ONCE]
        _put(answer, part, _by_engine(events, x[part], y[part], threads))
    # A sequence breaks the ties that closed forms have left.
    ranked = is_open & shared & (order.rank[x] >= 0) & (order.rank[y] >= 0)
    for which, earlier in (
        (ranked & ~has_law & (order.rank[x] < order.rank[y]), before),
        (ranked & ~has_law & (order.rank[y] < order.rank[x]), after),
    ):
        earlier[which] += neither[which]
    neither[ranked & (order.rank[x] != order.rank[y])] = 0.0
    return answer


def _put(answer: PairProbabilities, which: Int64 | Mask, part: PairProbabilities) -> None:
    for column, values in zip(answer, part, strict=True):
        column[which] = values


def _by_engine(events: OrderedEvents, x: Int64, y: Int64, threads: int) -> PairProbabilities:
    """Return the probabilities for times of any laws, each pair a partition of its own."""
    rows = np.concatenate((x, y))
    count = len(x)
    columns = {
        "type": pa.array(np.repeat(["x", "y"], count)),
        "id": pa.array(np.arange(2 * count)),
        "pair": pa.array(np.tile(np.arange(count), 2)),
        **{name: column.take(pa.array(rows)) for name, column in events.events.in_ticks.items()},
    }
    table = pa.table(columns)
    within = events.events.window(rows)
    probabilities = np.zeros((3, count))
    for number, pattern in enumerate(_PATTERNS):
        options = MatchOptions()
        plan = make_plan(parse(f"PATTERN {pattern} WITHIN {within}"), table.schema, options)
        for batch in execute(plan, table, threads=threads):
            probabilities[number, batch.column("a").to_numpy()] = batch.column("confidence").to_numpy()
    return PairProbabilities(*probabilities)


_PATTERNS: Final = (
    "SEQ(x a, y b) WHERE [pair]",
    "SEQ(y b, x a) WHERE [pair]",
    "AND(x a, y b) WHERE [pair] AND TIME(a) = TIME(b)",
)
"""Of the columns of `PairProbabilities`, in their order."""
