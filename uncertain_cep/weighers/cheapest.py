"""The choice of a weigher: the cheapest one, match by match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence import CostlyMatchError
from confidence.budget import checkpoint
from eventbased.gaps.fewer_offsets import Clocks
from uncertain_cep.config.tuning import WEIGHER_PRICES
from uncertain_cep.weighers.bounded_chains import BoundedChains
from uncertain_cep.weighers.elimination import Elimination
from uncertain_cep.weighers.exclusive_sums import weigh_by_lengths, weigh_by_sides
from uncertain_cep.weighers.explicit import TooManySpoilersError
from uncertain_cep.weighers.first_members import FirstMembers
from uncertain_cep.weighers.gap_chains import GapChains
from uncertain_cep.weighers.held_ends import HeldChains
from uncertain_cep.weighers.held_offsets import Offsets
from uncertain_cep.weighers.held_times import HeldTimes
from uncertain_cep.weighers.log import WeighingLog
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.order_ideals import Ideals
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.sampled_times import Sampling
from uncertain_cep.weighers.two_times import TwoTimes
from uncertain_cep.weighers.weigher import CANNOT, Declined, Weigher

__all__ = ["WEIGHERS", "Weighing", "weighers_of"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

WEIGHERS: Final[tuple[Callable[[MatchPattern], Weigher | None], ...]] = (
    GapChains.of,
    Ideals.of,
    BoundedChains.of,
    TwoTimes.of,
    HeldChains.of,
    HeldTimes.of,
    Elimination.of,
    Sampling.of,
)
"""All weighers: each returns None for a pattern none of whose matches it can take."""


def weighers_of(pattern: MatchPattern) -> list[Weigher]:
    """Return the weighers that may take matches of a pattern, those that are cheap to price first."""
    if (alone := FirstMembers.of(pattern)) is not None:
        # All others take each forbidden event for itself.
        return [alone]
    built = (build(pattern) for build in WEIGHERS)
    return sorted(
        (weigher for weigher in built if weigher is not None), key=lambda weigher: weigher.priced_above
    )


class Weighing:
    """The answers of the matches of a pattern, each by the weigher of the lowest price.

    Parameters
    ----------
    pattern : MatchPattern
    clocks : Clocks or None
        The clocks that events share: their offsets are held first.
    log : WeighingLog or None
        What each weigher takes is added here.
    """

    def __init__(
        self, pattern: MatchPattern, clocks: Clocks | None = None, log: WeighingLog | None = None
    ) -> None:
        self.weighers: Sequence[Weigher] = weighers_of(pattern)
        self._log = log
        self.offsets = None if clocks is None else Offsets(pattern, clocks, self._given)

    def weigh(self, model: MatchModel, out: Columns) -> None:
        """Fill ranges, confidences and standard errors of all matches of a model.

        Raises
        ------
        CostlyMatchError
            If a match is too dear for all weighers, with the steps of the cheapest.
        """
        if model.pattern.apart and model.count:
            weigh_by_sides(model, out, self._by_lengths)
        else:
            self._by_lengths(model, out)
        spans = model.pattern.spans
        if spans is not None and model.count:
            matches = model.matches
            lasting = np.isin(matches.component, spans.lasting)
            weight = spans.times.weight(model.candidates.row[matches.place], lasting, matches.start)
            out.confidence[:] = np.minimum(out.confidence * weight, 1.0)
            out.std_error[:] *= weight

    def _by_lengths(self, model: MatchModel, out: Columns) -> None:
        """Fill the answers of matches whose events are on certain sides of each other."""
        spans = model.pattern.spans
        if spans is not None and spans.times.length_laws is not None and model.count:
            weigh_by_lengths(model, out, self._by_offsets)
        else:
            self._by_offsets(model, out)

    def _by_offsets(self, model: MatchModel, out: Columns) -> None:
        """Fill the answers of matches whose lengths have no explicit probabilities, or are held."""
        if self.offsets is None:
            self._given(model, out)
        else:
            self.offsets.weigh(model, out)

    def _given(self, model: MatchModel, out: Columns) -> None:
        """Fill the answers of matches of independent times."""
        try:
            self._weigh(model, out)
        except TooManySpoilersError:
            for half in np.array_split(np.arange(model.count), 2):
                self._part(model, half, out, self._given)

    def _weigh(self, model: MatchModel, out: Columns) -> None:
        left = np.arange(model.count)
        prices = _Prices(self.weighers, model.count, self._log is not None)
        while len(left):
            checkpoint()
            some = model.some(left)
            chosen = prices.cheapest(some, left)
            again = []
            for number, weigher in enumerate(self.weighers):
                which = left[chosen == number]
                if not len(which):
                    continue
                declined = self._taken(weigher, model, which, out)
                for n, (steps, limit) in declined.items():
                    prices.decline(number, n, steps, limit)
                again += list(declined)
                if self._log is not None:
                    taken = np.setdiff1d(which, list(declined))
                    self._log.add(self.weighers, number, prices.of(taken))
            left = np.array(sorted(again), dtype=np.int64)

    def _taken(self, weigher: Weigher, model: MatchModel, which: Int64, out: Columns) -> Declined:
        """Let a weigher fill the answers of some matches; return those that it declines."""
        if len(which) == model.count:
            return weigher.weigh(model, out)
        found: Declined = {}

        def weigh(some: MatchModel, answers: Columns) -> None:
            found.update({int(which[n]): price for n, price in weigher.weigh(some, answers).items()})

        self._part(model, which, out, weigh)
        return found

    def _part(
        self, model: MatchModel, which: Int64, out: Columns, weigh: Callable[[MatchModel, Columns], None]
    ) -> None:
        """Fill the answers of some matches in a way that fills those of a model."""
        answers = Columns.empty(len(which))
        try:
            weigh(model.some(which), answers)
        except CostlyMatchError as error:
            match = int(which[error.match])
            raise CostlyMatchError(match, error.steps, error.events, error.limit) from None
        out.put(which, answers)


class _Prices:
    """Estimated cost of matches by weigher, in ns, computed as far as it can decide."""

    def __init__(self, weighers: Sequence[Weigher], count: int, is_logged: bool) -> None:
        self._weighers, self._count, self._is_logged = weighers, count, is_logged
        self._price: dict[int, Float64] = {}
        self._refused: dict[int, tuple[float, float]] = {}

    def cheapest(self, model: MatchModel, numbers: Int64) -> Int64:
        """Return the cheapest weigher of each match of a model, (k,) int64; ``numbers`` are theirs.

        Raises
        ------
        CostlyMatchError
            If no weigher takes a match.
        """
        best = np.full(model.count, CANNOT)
        chosen = np.full(model.count, -1)
        for k, weigher in enumerate(self._weighers):
            dear = best > weigher.priced_above
            if not dear.any():
                continue
            is_last = weigher.takes_all and k == len(self._weighers) - 1
            if is_last and k not in self._price and not self._is_logged and np.isinf(best[dear]).all():
                chosen = np.where(dear, k, chosen)
                break
            price = self._prices_of(k, model, numbers)
            better = dear & (price < best)
            best, chosen = np.where(better, price, best), np.where(better, k, chosen)
        if (chosen < 0).any():
            n = int(np.argmax(chosen < 0))
            steps, limit = self._refused.get(int(numbers[n]), (CANNOT, 0.0))
            raise CostlyMatchError(n, int(min(steps, 2.0**62)), limit=limit)
        return chosen

    def _prices_of(self, k: int, model: MatchModel, numbers: Int64) -> Float64:
        """Return the cost of matches by a weigher, (m,) float64 ns, computed once."""
        known = self._price.get(k)
        if known is None or np.isnan(known[numbers]).any():
            a_match, a_step = WEIGHER_PRICES.get(self._weighers[k].name, (0.0, 1.0))
            price = a_match + a_step * self._weighers[k].price(model)
            if model.count == self._count:
                self._price[k] = price
                return price
            if known is None:
                known = self._price[k] = np.full(self._count, np.nan)
            known[numbers] = np.where(np.isnan(known[numbers]), price, known[numbers])
        return known[numbers]

    def of(self, numbers: Int64) -> Float64:
        """Return the prices of some matches, (weighers, m); NaN where they did not decide."""
        nothing = np.full(self._count, np.nan)
        return np.stack([self._price.get(k, nothing)[numbers] for k in range(len(self._weighers))])

    def decline(self, k: int, match: int, steps: float, limit: float) -> None:
        """Note that a weigher gives a match back, as it takes so many steps, more than a limit."""
        if k not in self._price:
            self._price[k] = np.full(self._count, np.nan)
        self._price[k][match] = CANNOT
        if steps < self._refused.get(match, (CANNOT, 0.0))[0]:
            self._refused[match] = steps, limit
