"""Estimates of confidences whose exact sums take too many cells, from times drawn one after the other.

With the bounds of all differences as tight as they imply each other, a time within its bounds from those
drawn before it leaves some time to every one that follows (Dechter, Meiri and Pearl, Artificial Intelligence
49, 1991; the bounds are whole numbers, and so are the times). So no draw is in vain: it weighs what each
time's bounds hold of its probabilities, times the probability that what must stay out of the gaps does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.config import FEWEST_DRAWS
from confidence.timed.bounds import UNBOUND, Bounds
from confidence.timed.counted_pairs import counted_pairs
from confidence.timed.factors import Cells
from confidence.timed.forbidden_spans import Span

__all__ = ["Drawn", "DrawnPairs", "Forbidden", "sampled"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_MOST_DRAWN_AT_ONCE: Final = 1 << 14
"""Most draws whose times are held at a time."""


class Drawn(NamedTuple):
    """The ticks of an event, inclusive, and their probabilities; each is 1 / ``size`` if None."""

    lower: int
    upper: int
    size: float
    pmf: Float64 | None

    def heads(self) -> Float64:
        """Return the probability of the ticks before each, and before the end."""
        assert self.pmf is not None
        return np.concatenate((np.zeros(1), np.cumsum(self.pmf)))

    def mass(self, low: Int64, high: Int64) -> Float64:
        """Return the probability of ``low .. high`` within the interval; 0 where that is empty."""
        count = np.maximum(high - low + 1, 0)
        if self.pmf is None:
            found: Float64 = count / self.size
            return found
        heads = self.heads()
        start = np.clip(low - self.lower, 0, len(self.pmf))
        return np.where(count > 0, heads[np.minimum(start + count, len(self.pmf))] - heads[start], 0.0)

    def draw(self, low: Int64, high: Int64, share: Float64) -> Int64:
        """Return ticks of ``low .. high``, of which some share of the probability is below."""
        if self.pmf is None:
            return np.minimum(low + (share * (high - low + 1)).astype(np.int64), high)
        heads = self.heads()
        start, stop = heads[low - self.lower], heads[high + 1 - self.lower]
        found = np.searchsorted(heads, start + share * (stop - start), side="right") - 1 + self.lower
        return np.clip(found, low, high)

    def mass_inside(self, spans: Sequence[Span], times: Int64) -> Float64:
        """Return the probability that it is in some of its spans, for each draw of times."""
        ends = np.empty((2, len(spans), times.shape[1]), dtype=np.int64)
        for n, span in enumerate(spans):
            ends[0, n], ends[1, n] = _ends(span, (self.lower, self.upper), times)
        order = np.argsort(ends[0], axis=0)
        ends = np.take_along_axis(ends, order[None], axis=1)
        total = np.zeros(times.shape[1])
        reached = np.full(times.shape[1], self.lower - 1)
        for low, high in zip(*ends, strict=True):
            total += self.mass(np.maximum(low, reached + 1), high)
            reached = np.maximum(reached, high)
        return total


class DrawnPairs(NamedTuple):
    """An event that lasts: first and last begin and end, bounds of its length, all inclusive.

    Its spans are of its begin and of its end in turns, for each rule that forbids it lengths from the least
    to the largest of ``lengths``. ``weights`` are those of its pairs, (w, h) for w begins and h ends; None:
    all that are possible are alike likely.
    """

    begin: tuple[int, int]
    end: tuple[int, int]
    length: tuple[int, int]
    happened: float
    lengths: Sequence[tuple[int, int]]
    weights: Float64 | None = None

    def mass_inside(self, spans: Sequence[Span], times: Int64) -> Float64:
        """Return the probability that it happened and some rule forbids its begin and end, for each draw."""
        ends = [
            _ends(span, self.end if number % 2 else self.begin, times) for number, span in enumerate(spans)
        ]
        if self.weights is not None:
            return self.happened * self._weight_inside(ends, self.weights)
        count = np.zeros(times.shape[1], dtype=np.int64)
        for sign, chosen in _signed_choices(len(self.lengths)):
            begins, stops = [ends[2 * rule] for rule in chosen], [ends[2 * rule + 1] for rule in chosen]
            lengths = [self.length, *(self.lengths[rule] for rule in chosen)]
            length = max(low for low, _ in lengths), min(high for _, high in lengths)
            if length[0] <= length[1]:
                count += sign * counted_pairs(_common(begins), _common(stops), length)
        share: Float64 = self.happened * (count / int(counted_pairs(self.begin, self.end, self.length)))
        return share

    def _weight_inside(self, ends: Sequence[tuple[Int64, Int64]], weights: Float64) -> Float64:
        """Return the probability that some rule forbids the begin and end, for each draw."""
        total = np.zeros(len(ends[0][0]))
        end = np.arange(self.end[0], self.end[1] + 1)
        for begin, row in enumerate(weights, start=self.begin[0]):
            is_forbidden = np.zeros((len(total), len(end)), dtype=np.bool_)
            for rule, (shortest, longest) in enumerate(self.lengths):
                (low, high), (first, last) = ends[2 * rule], ends[2 * rule + 1]
                is_in = (shortest <= end - begin) & (end - begin <= longest)
                is_in = is_in & (first[:, None] <= end) & (end <= last[:, None])
                is_forbidden |= is_in & ((low <= begin) & (begin <= high))[:, None]
            total += is_forbidden @ row
        return total


Forbidden = tuple[Drawn | DrawnPairs, Sequence[Span]]


def _signed_choices(count: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the choices of some of so many rules, and how each counts for what any rule forbids."""
    for size in range(1, count + 1):
        yield from ((1 if size % 2 else -1, chosen) for chosen in combinations(range(count), size))


def _common(ends: Sequence[tuple[Int64, Int64]]) -> tuple[Int64, Int64]:
    """Return first and last tick of what several spans have in common."""
    low, high = zip(*ends, strict=True)
    return np.max(low, axis=0), np.min(high, axis=0)


def sampled(
    own: Sequence[Drawn],
    bounds: Bounds,
    forbidden: Sequence[Forbidden],
    std_error: float,
    seed: int,
    cells: Cells,
) -> tuple[float, float]:
    """Return an estimate of the confidence of a match, and its standard error.

    Parameters
    ----------
    own : sequence of Drawn
        Its events, within the tight bounds of their times.
    bounds : Bounds
        Those of differences; others are in ``own``.
    forbidden : sequence of (Drawn or DrawnPairs, sequence of Span)
    std_error : float
        The standard error to reach, above 0.
    seed : int
        With the intervals it decides what is drawn.
    cells : Cells

    Raises
    ------
    TooManyCellsError
        If that takes too many draws.
    """
    least = _closure(own, bounds)
    # No draw weighs more.
    most = math.prod(float(event.mass(np.array(event.lower), np.array(event.upper))) for event in own)
    draws = max(FEWEST_DRAWS, math.ceil((0.5 * most / std_error) ** 2))
    cells.take([draws, len(own) ** 2 + sum(len(spans) for _, spans in forbidden)])
    key = [seed, *(tick % 2**63 for event in own for tick in (event.lower, event.upper))]
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
    total = squares = 0.0
    for start in range(0, draws, _MOST_DRAWN_AT_ONCE):
        weight = _weights(own, least, forbidden, random, min(_MOST_DRAWN_AT_ONCE, draws - start))
        total += float(weight.sum())
        squares += float((weight * weight).sum())
    mean = total / draws
    # One draw more at either end: a sample without spread is no proof of certainty.
    variance = max(squares / draws - mean * mean, 0.0) + most * most / draws
    return mean, math.sqrt(variance / draws)


def _closure(own: Sequence[Drawn], bounds: Bounds) -> Int64:
    """Return by how much each time is behind each other one at least: the longest paths. O(l^3)."""
    count = len(own)
    lower = np.array([event.lower for event in own])
    upper = np.array([event.upper for event in own])
    # What their intervals say is a bound too, so that no path is without one.
    least: Int64 = lower[None, :] - upper[:, None]
    np.fill_diagonal(least, 0)
    for (i, j), (low, high) in bounds.items():
        if i != j >= 0:
            least[j, i] = max(least[j, i], low) if low > -UNBOUND else least[j, i]
            least[i, j] = max(least[i, j], -high) if high < UNBOUND else least[i, j]
    for k in range(count):
        np.maximum(least, least[:, k, None] + least[None, k, :], out=least)
    return least


def _weights(
    own: Sequence[Drawn],
    least: Int64,
    forbidden: Sequence[Forbidden],
    random: np.random.Generator,
    draws: int,
) -> Float64:
    """Draw times, and return what each draw weighs."""
    times = np.empty((len(own), draws), dtype=np.int64)
    weight = np.ones(draws)
    for k, event in enumerate(own):
        low, high = np.full(draws, event.lower), np.full(draws, event.upper)
        for i in range(k):
            low, high = np.maximum(low, times[i] + least[i, k]), np.minimum(high, times[i] - least[k, i])
        weight *= event.mass(low, high)
        times[k] = event.draw(low, high, random.random(draws))
    for other, spans in forbidden:
        weight *= np.maximum(1.0 - other.mass_inside(spans, times), 0.0)
    return weight


def _ends(span: Span, within: tuple[int, int], times: Int64) -> tuple[Int64, Int64]:
    """Return first and last tick of a span within an interval, for each draw of times; turned: none."""
    low, high = (np.full(times.shape[1], bound) for bound in within)
    for time, offset in span.lowers:
        low = np.maximum(low, offset + (times[time] if time >= 0 else 0))
    for time, offset in span.uppers:
        high = np.minimum(high, offset + (times[time] if time >= 0 else 0))
    for (i, j), (least, most) in span.guards.items():
        apart = times[i] - (times[j] if j >= 0 else 0)
        high = np.where((apart >= least) & (apart <= most), high, low - 1)
    return low, high
