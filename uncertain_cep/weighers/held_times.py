"""Matches of uniform times, nothing forbidden, whose other times are in few orders once one time is held.

Given the time t that is held, its literals are bounds of the other times. How many worlds are left is the
number of integer points of a polytope of difference constraints, a polynomial of t until one of its vertices
comes or goes (`uncertain_cep.results.piecewise`). At a vertex each time is tied to a bound, or to t, by a
path of literals that hold with equality. So a vertex comes or goes where such a path leads from t to a bound:
``t = bound of x + path from x to t``. The sum over t takes few ticks of each piece, with positive weights: no
cost depends on the number of ticks, and nothing cancels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, pieces
from confidence.chain.piece_sums import most_terms, ticks_of_pieces
from confidence.timed.bounds import UNBOUND
from confidence.timed.summed_matches import SummedTimes
from uncertain_cep.weighers.bounded_chains import EACH_EVENT, Chains, in_orders
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.rigid_spans import Reach, with_one_time_each
from uncertain_cep.weighers.weigher import CANNOT, WRITTEN_OUT, Declined

__all__ = ["HeldTimes", "breaks_of"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_MOST_TIMES: Final = 8
"""Times of a match."""

_MOST_PATHS: Final = 1_000
"""Paths of literals that lead to one time."""

_FAR: Final = UNBOUND // 4
"""No difference of two times is so large, and sums of two are within int64."""

_FEW_TICKS: Final = 40
"""Ticks of each time up to which tables over them are as fast."""


class HeldTimes:
    """Sums over the pieces of one time, of chains of the others."""

    name = "held time"
    why = "takes uniform times that are in few orders once one is held, nothing forbidden: sums over pieces"
    priced_above = WRITTEN_OUT
    takes_all = False

    def __init__(self, most_steps: float) -> None:
        self._most_steps = most_steps
        self._known: tuple[MatchModel, list[_Held]] | None = None

    @classmethod
    def of(cls, pattern: MatchPattern) -> HeldTimes | None:
        """Return the weigher for the matches of a pattern, None where no condition is on times."""
        return cls(pattern.limits.most_steps) if pattern.has_time_literals else None

    def price(self, model: MatchModel) -> Float64:
        """Return about how many multiplications each match takes, (k,) float64."""
        prices = np.full(model.count, CANNOT)
        for held in self._parts(model):
            steps = held.steps
            prices[held.which] = np.where(steps <= self._most_steps, steps, CANNOT)
        return prices

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those that take too many pieces."""
        declined = np.ones(model.count, dtype=np.bool_)
        for held in self._parts(model):
            answers = held.weighed()
            out.put(held.which, answers)
            declined[held.which] = np.isnan(answers.confidence)
        return dict.fromkeys(np.flatnonzero(declined).tolist(), (CANNOT, self._most_steps))

    def _parts(self, model: MatchModel) -> list[_Held]:
        """Return the matches that are taken, by the time that is held, made once."""
        if self._known is None or self._known[0] is not model:
            self._known = model, [held for part in model.explicit for held in _held(part)]
        return self._known[1]


def _held(part: ExplicitMatches) -> Iterator[_Held]:
    """Yield the matches of a batch that a sum over one time is for, by this time and the order of others."""
    takes = (part.spoilers == 0) & (part.times.size > 0.0).all(axis=1)
    takes &= (part.sizes > _FEW_TICKS).any(axis=1)
    for batch, reach in with_one_time_each(part.some(np.flatnonzero(takes))):
        count = batch.times.first.shape[1]
        if not 3 <= count <= _MOST_TIMES or not len(batch.which):
            continue
        if reach is None:
            ends, times = batch.shape.ends, batch.times
            reach = times.first[:, ends[0]].min(axis=1), times.last[:, ends[1]].max(axis=1)
        batch = batch._replace(times=_ordered(batch.times))
        left = np.ones(len(batch.which), dtype=np.bool_)
        for time in np.argsort(batch.sizes.sum(axis=0), kind="stable").tolist():
            breaks = breaks_of(_binding(batch.times), time)
            if breaks is None:
                continue
            for group, chains in in_orders(_without(batch, time)):
                fits = np.logical_and.reduce([one.fits for one in chains])
                places = np.flatnonzero(left[group.which] & fits)
                if len(places):
                    which = group.which[places]
                    left[which] = False
                    yield _Held(
                        batch.some(which), time, breaks[:, which], [one.some(places) for one in chains],
                        (reach[0][which], reach[1][which]),
                    )  # fmt: skip
            if not left.any():
                break


class _Held(NamedTuple):
    """Matches, the time of theirs that is held, and chains of the others.

    Attributes
    ----------
    part : ExplicitMatches
    time : int
    breaks : (b, k) int64
        Where the sum given the time is another polynomial.
    chains : list of Chains
        Of the times but the held one, for each order.
    reach : tuple of (k,) int64
        The tight range.
    """

    part: ExplicitMatches
    time: int
    breaks: Int64
    chains: list[Chains]
    reach: Reach

    @property
    def which(self) -> Int64:
        """The numbers of the matches in the model."""
        return self.part.which

    @property
    def steps(self) -> Float64:
        """About how many multiplications each match takes, (k,) float64."""
        _, size, match = self._pieces()
        degree = len(self.chains[0].order)
        terms = np.bincount(match, np.minimum(size, most_terms(degree)), len(self.which))
        return np.asarray(terms * len(self.chains) * EACH_EVENT * degree, np.float64)

    def _pieces(self) -> tuple[Int64, Int64, Int64]:
        """Return the first tick of each piece of each match, its size, and the match."""
        first, last = (bound[:, self.time] for bound in self.part.times[:2])
        cuts = np.sort(np.clip(np.vstack((first, self.breaks, last + 1)), first, last + 1), axis=0)
        sizes = np.diff(cuts, axis=0)
        match, piece = np.nonzero(sizes.T)
        return cuts[piece, match], sizes[piece, match], match

    def weighed(self) -> Columns:
        """Return the answers; the confidence is NaN where the chains have too many pieces."""
        times, degree = self.part.times, len(self.chains[0].order)
        answers = Columns.empty(len(self.which))
        begin, size, match = self._pieces()
        for chosen in pieces(np.minimum(size, most_terms(degree)) * (len(self.chains) * EACH_EVENT * degree)):
            piece, tick, weight = ticks_of_pieces(begin[chosen], size[chosen], degree)
            of_tick = match[chosen][piece]
            bounds = self._given(of_tick, tick)
            for one in self.chains:
                chains = one.some(of_tick)
                chains = chains._replace(times=chains.times._replace(first=bounds[0], last=bounds[1]))
                part = chains.weighed(self.part, np.arange(len(of_tick)), True)
                np.add.at(answers.confidence, of_tick, weight * part.confidence)
        answers.confidence[:] /= times.size[:, self.time]
        answers.lower[:], answers.upper[:] = self.reach
        nothing = answers.confidence == 0.0
        answers.lower[nothing], answers.upper[nothing] = 0, -1
        return answers

    def _given(self, match: Int64, tick: Int64) -> tuple[Int64, Int64]:
        """Return the first and last ticks, (n, l - 1), of the other times of matches at ticks of the held."""
        times, time = self.part.times, self.time
        first, last = times.first[match], times.last[match]
        for (i, j), low, high in zip(times.sides.tolist(), times.low.T, times.high.T, strict=True):
            if time not in (i, j):
                continue
            other, shortest, longest = (
                (i, low[match], high[match]) if j == time else (j, -high[match], -low[match])
            )
            near = np.clip(shortest, -_FAR, _FAR), np.clip(longest, -_FAR, _FAR)
            first[:, other] = np.maximum(first[:, other], tick + near[0])
            last[:, other] = np.minimum(last[:, other], tick + near[1])
        return np.delete(first, time, axis=1), np.delete(last, time, axis=1)


def _is_implied(times: SummedTimes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the bounds that tight ticks imply, from below and from above, (k, e) each."""
    i, j = times.sides.T
    return (
        times.first[:, i] - times.last[:, j] >= times.low,
        times.last[:, i] - times.first[:, j] <= times.high,
    )


def _binding(times: SummedTimes) -> SummedTimes:
    """Return times with the literals alone that tight ticks do not imply."""
    low, high = _is_implied(times)
    return times._replace(low=np.where(low, -UNBOUND, times.low), high=np.where(high, UNBOUND, times.high))


def _ordered(times: SummedTimes) -> SummedTimes:
    """Return times without the literals that tight ticks imply, but for what these say of the order."""
    low, high = _is_implied(times)
    lower = np.where(times.low >= 0, 0, -UNBOUND)
    upper = np.where(times.high <= 0, 0, UNBOUND)
    return times._replace(low=np.where(low, lower, times.low), high=np.where(high, upper, times.high))


def _without(part: ExplicitMatches, time: int) -> ExplicitMatches:
    """Return matches without one time, numbered by their places; of the others it leaves the order.

    Each literal of the time is a bound of another one, see :meth:`_Held._given`.
    """
    times = part.times
    columns = {
        (i, j): (low, high)
        for (i, j), low, high in zip(times.sides.tolist(), times.low.T, times.high.T, strict=True)
    }
    both = [*columns.items(), *(((j, i), (-high, -low)) for (i, j), (low, high) in columns.items())]
    behind = [(other, bounds[0] >= 0) for (other, one), bounds in both if one == time]
    ahead = [(other, bounds[1] <= 0) for (other, one), bounds in both if one == time]
    kept = [(pair, bounds) for pair, bounds in columns.items() if time not in pair]
    no_bound = np.full(len(part.which), UNBOUND)
    kept += [
        ((later, earlier), (np.where(is_behind & is_ahead, 0, -UNBOUND), no_bound))
        for later, is_behind in behind
        for earlier, is_ahead in ahead
        if later != earlier
    ]
    left = np.delete(np.arange(times.first.shape[1]), time)
    sides = np.array([pair for pair, _ in kept], dtype=np.int64).reshape(-1, 2)
    bounds = np.array([bound for _, bound in kept], dtype=np.int64).reshape(-1, 2, len(part.which))
    low, high = np.ascontiguousarray(bounds.transpose(1, 2, 0))
    without = times._replace(
        first=times.first[:, left], last=times.last[:, left], size=times.size[:, left],
        offset=times.offset[:, left], sides=np.searchsorted(left, sides), low=low, high=high,
        ends=times.ends[:, left],
    )  # fmt: skip
    return part._replace(times=without, which=np.arange(len(part.which)))


def breaks_of(times: SummedTimes, time: int) -> Int64 | None:
    """Return bounds moved by the paths that lead from them to a time, (b, k); None for too many paths."""
    count, matches = times.first.shape[1], len(times.first)
    steps: list[list[tuple[int, Int64]]] = [[] for _ in range(count)]
    for (i, j), *bounds in zip(times.sides.tolist(), times.low.T, times.high.T, strict=True):
        for bound in bounds:
            if (np.abs(bound) < _FAR).any():
                near = np.clip(bound, -_FAR, _FAR)
                steps[i].append((j, near))
                steps[j].append((i, -near))
    bounds_moved: list[Int64] = []
    paths = [(time, np.zeros(1, np.int64), frozenset([time]))]
    while paths:
        checkpoint()
        if len(bounds_moved) > 2 * _MOST_PATHS:
            return None
        here, behind, seen = paths.pop()
        for other, step in steps[here]:
            if other not in seen:
                whole = np.clip(behind + step, -_FAR, _FAR)
                bounds_moved += [times.first[:, other] + whole, times.last[:, other] + whole]
                paths.append((other, whole, seen | {other}))
    return np.array([np.broadcast_to(one, matches) for one in bounds_moved], np.int64).reshape(-1, matches)
