"""How likely each of two events is the earlier one, given that both happened.

Uniform times of independent events, or of one clock, have closed forms of terms that are never negative:
for x in [a, b] and y in [c, d], each tick of x below c is before all of y, and each x in c..d-1 is before
``d - x`` ticks, an arithmetic series. So have events that last, whose ends are uniform, where only one of
them can be before the other. All other laws are left to the engine: each pair is a partition of two
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
    """Both have a tick in common, and no sequence tells them apart."""


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
    lasts = events.lasts[x] | events.lasts[y]
    for by_clock in (True, False):
        here = is_open & ~has_law & (shared if by_clock else ~shared)
        moments = here & ~lasts
        first, second = (events.begin.bounds(rows[moments], by_clock=by_clock) for rows in (x, y))
        _put(answer, moments, uniform_pairs(*first, *second))
        spans = np.flatnonzero(here & lasts)
        closed, is_closed = _uniform_spans(events, x[spans], y[spans], by_clock=by_clock)
        _put(answer, spans, closed)
        has_law[spans[~is_closed]] = True
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


def _uniform_spans(
    events: OrderedEvents, x: Int64, y: Int64, *, by_clock: bool
) -> tuple[PairProbabilities, Mask]:
    """Return the probabilities for events whose ends are uniform, and where they are right, (k,) bool.

    That is where one order alone is possible: what it leaves is that one event begins before, or as, the
    other one ends.
    """
    x_begin, y_begin = (events.begin.bounds(rows, by_clock=by_clock) for rows in (x, y))
    x_end, y_end = (events.end.bounds(rows, by_clock=by_clock) for rows in (x, y))
    x_first, y_first = x_end[0] < y_begin[1], y_end[0] < x_begin[1]
    neither = np.where(
        y_first,
        _earlier(*x_begin, y_end[0] + 1, y_end[1] + 1),
        _earlier(*y_begin, x_end[0] + 1, x_end[1] + 1),
    )
    before, after = _earlier(*x_end, *y_begin), _earlier(*y_end, *x_begin)
    return PairProbabilities(before, after, neither), ~(x_first & y_first)


def _put(answer: PairProbabilities, which: Int64 | Mask, part: PairProbabilities) -> None:
    for column, values in zip(answer, part, strict=True):
        column[which] = values


def _by_engine(events: OrderedEvents, x: Int64, y: Int64, threads: int) -> PairProbabilities:
    """Return the probabilities for times of any laws, each pair a partition of its own."""
    rows = np.concatenate((x, y))
    count = len(x)
    in_ticks = events.events.in_ticks | events.columns
    columns = {
        "type": pa.array(np.repeat(["x", "y"], count)),
        "id": pa.array(np.arange(2 * count)),
        "pair": pa.array(np.tile(np.arange(count), 2)),
        **{name: column.take(pa.array(rows)) for name, column in in_ticks.items()},
    }
    table = pa.table(columns)
    within = events.events.window(rows)
    probabilities = np.zeros((3, count))
    # That two spans overlap is a condition on all four ends.
    together = "a OVERLAPS b" if events.columns else "TIME(a) = TIME(b)"
    options = MatchOptions(takes_spans=True)
    for number, pattern in enumerate((*_PATTERNS, f"AND(x a, y b) WHERE [pair] AND {together}")):
        plan = make_plan(parse(f"PATTERN {pattern} WITHIN {within}"), table.schema, options)
        for batch in execute(plan, table, threads=threads):
            probabilities[number, batch.column("a").to_numpy()] = batch.column("confidence").to_numpy()
    return PairProbabilities(*probabilities)


_PATTERNS: Final = ("SEQ(x a, y b) WHERE [pair]", "SEQ(y b, x a) WHERE [pair]")
"""Of the first columns of `PairProbabilities`, in their order."""
