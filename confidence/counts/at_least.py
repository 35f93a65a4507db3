"""The probability that at least n of many independent events are within a window next to another event.

Given the tick of that other event, the anchor, each event is in the window independently of the others: their
number has a Poisson-binomial distribution, whose tail is summed event by event (all terms are positive). The
probability of one event is linear in the tick between few points, so the tail is a polynomial between these,
whose sum few ticks tell: no cost depends on lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.spread_nodes import nodes_needed, spread_nodes

__all__ = ["Laws", "TooManyTermsError", "probability_of_at_least"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_AT_ONCE: Final = 1 << 20
"""Numbers that are held at once."""

_HIGHEST_DEGREE: Final = 255
"""Of polynomials whose sums few ticks tell; beyond, each tick counts."""


class TooManyTermsError(Exception):
    """A sum takes more terms than it may."""


@dataclass(frozen=True, slots=True)
class Laws:
    """The times of some events and how likely each happened.

    Attributes
    ----------
    lower, upper : (m,) int64
        Ticks, inclusive.
    happened : (m,) float64
    law : (m,) int64
        Where the probabilities of the ticks start in ``values``; -1: all have the same.
    values : (p,) float64
    """

    lower: Int64
    upper: Int64
    happened: Float64
    law: Int64
    values: Float64

    def some(self, which: Int64) -> Laws:
        """Return the laws of some events."""
        lower, upper, happened = self.lower[which], self.upper[which], self.happened[which]
        return Laws(lower, upper, happened, self.law[which], self.values)

    def masses(self, low: Int64, high: Int64) -> Float64:
        """Return how likely each event is within each of some spans of ticks, (m, k), spans (k,) int64."""
        first = np.maximum(low, self.lower[:, None])
        last = np.minimum(high, self.upper[:, None])
        inside = np.maximum(last - first + 1, 0)
        masses = inside / (self.upper - self.lower + 1)[:, None]
        for x in np.flatnonzero(self.law >= 0).tolist():
            begin, size = self.law[x], self.upper[x] - self.lower[x] + 1
            heads = np.append(0.0, np.cumsum(self.values[begin : begin + size]))
            place = np.clip(first[x] - self.lower[x], 0, size)
            masses[x] = heads[np.minimum(place + inside[x], size)] - heads[place]
        likely: Float64 = np.minimum(masses, 1.0) * self.happened[:, None]
        return likely


def probability_of_at_least(
    anchor: Laws, events: Laws, count: int, window: int, is_behind: bool, most_terms: int
) -> float:
    """Return how likely the anchor happened with at least ``count`` events in the window next to it.

    Parameters
    ----------
    anchor : Laws
        Of one event.
    events : Laws
    count : int
        n, at least 1.
    window : int
        Ticks: an event is in it if it is 1 to ``window`` - 1 ticks from the anchor.
    is_behind : bool
        Whether events are behind the anchor, and not before it.
    most_terms : int
        How many terms to sum at most.

    Raises
    ------
    TooManyTermsError
        If there are more: about the number of ticks looked at, times the number of events, times the smaller
        one of n and the number of events that may be missing.
    """
    if count > len(events.lower) or window < 2:
        return 0.0
    tick, weight = _looked_at(anchor, events, window, is_behind)
    terms = len(tick) * len(events.lower) * min(count, len(events.lower) - count + 1)
    if terms > most_terms:
        raise TooManyTermsError
    total = 0.0
    at_once = max(_AT_ONCE // (len(events.lower) + 1), 1)
    for begin in range(0, len(tick), at_once):
        part = tick[begin : begin + at_once]
        spans = (part + 1, part + window - 1) if is_behind else (part - window + 1, part - 1)
        tails = _tails(events.masses(*spans), count)
        total += float(weight[begin : begin + at_once] @ tails)
    return float(anchor.happened[0]) * total


def _looked_at(anchor: Laws, events: Laws, window: int, is_behind: bool) -> tuple[Int64, Float64]:
    """Return ticks of the anchor, and weights that sum what polynomials are at all its ticks."""
    lower, upper = int(anchor.lower[0]), int(anchor.upper[0])
    size = upper - lower + 1
    if anchor.law[0] >= 0 or (events.law >= 0).any():
        weight = np.full(size, 1.0 / size)
        if anchor.law[0] >= 0:
            weight = anchor.values[anchor.law[0] : anchor.law[0] + size]
        chosen = np.flatnonzero(weight > 0.0)
        return lower + chosen, weight[chosen]
    # Where the number of an event's ticks within the window begins and ends to rise and to fall.
    shift = np.array([0, 1 - window]) if is_behind else np.array([1, window])
    low, high = events.lower[:, None] + shift - 1, events.upper[:, None] + shift
    points = np.unique(np.concatenate((low.ravel(), high.ravel(), [lower])))
    points = np.append(points[(points >= lower) & (points <= upper)], upper + 1)
    ticks, weights = [], []
    for first, behind in zip(points[:-1].tolist(), points[1:].tolist(), strict=True):
        degree = int(((low < behind - 1) & (high > first)).any(axis=1).sum())
        tick, weight = _piece(first, behind - first, degree)
        ticks.append(tick)
        weights.append(weight)
    return np.concatenate(ticks), np.concatenate(weights) / size


def _piece(first: int, size: int, degree: int) -> tuple[Int64, Float64]:
    """Return ticks of a piece, and weights that sum a polynomial of a degree over all its ticks."""
    if degree == 0:
        return np.array([first]), np.array([float(size)])
    if size <= max(nodes_needed(degree), degree + 1) or degree > _HIGHEST_DEGREE:
        return np.arange(first, first + size), np.ones(size)
    if degree == 1:
        return np.array([first, first + size - 1]), np.full(2, size / 2.0)
    points = np.zeros(degree + 1, dtype=np.int64)
    matrix = np.zeros((degree + 1, degree + 2))
    spread_nodes(size, degree, points, matrix)
    return first + points, matrix[:, degree + 1].copy()


def _tails(masses: Float64, count: int) -> Float64:
    """Return P(at least ``count`` events), (k,) float64; ``masses``, (m, k), are of independent ones."""
    tails: Float64
    missing = len(masses) - count + 1
    if missing < count:
        # Fewer than so many are missing.
        tails = _distributions(1.0 - masses, missing)[:-1].sum(axis=0)
        return tails
    tails = _distributions(masses, count)[-1]
    return tails


def _distributions(masses: Float64, count: int) -> Float64:
    """Return P(n events), n < ``count``, and P(``count`` or more), (count + 1, k) float64. O(m count k)."""
    numbers = np.zeros((count + 1, masses.shape[1]))
    numbers[0] = 1.0
    for n, mass in enumerate(masses):
        if n % 64 == 0:
            checkpoint()
        top = min(n + 1, count)
        more = numbers[:top] * mass
        numbers[:top] *= 1.0 - mass
        numbers[1 : top + 1] += more
    return numbers
