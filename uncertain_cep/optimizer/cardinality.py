"""How many partial matches any set of components has, by statistics of the data.

The model of Kolchinsky and Schuster (PVLDB 2018, sections 4 to 6) for events whose times are intervals. There
all events of a window of W ticks meet; here that depends on the intervals too. With
positions subtracted, ``A_j = lower_j - j`` and ``B_j = upper_j - j``, k events can be in order within the
window iff ``A_i <= B_j`` for all i < j and ``max A <= min B + w``. With ``u_j = B_j - A_j``, the number of
placements of that kind on a line of ticks, those that are shifts of each other counted once, is exactly

    V(u) = sum over r = 0..k-1 of  e_{k-1-r}(u) * C(w + r, r),

``e`` the elementary symmetric polynomials: ``C(w + k - 1, k - 1)`` orders within the window for certain
times, overlaps of intervals for long ones. It is linear in each ``u_j``, so mean lengths are enough.

Real events come in bursts and in partitions, so two components meet g times more often than on such a line; g
is measured. A further component meets k others ``g + s (k - 1) (g - 1)`` times more often. Where g differs
between the others, the first g is the largest one, and the second term sums over the rest. s = 0 is right
where all are together or not at all, s = 1 where the rate of all varies like a gamma distribution. Counts of
some triples measure s.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.config.tolerances import LARGEST_ESTIMATE
from uncertain_cep.optimizer.statistics import Statistics

__all__ = ["Cardinalities", "mask_of"]

Float = NDArray[np.float64]
Int64 = NDArray[np.int64]

_MOST_LOG: Final = float(np.log(LARGEST_ESTIMATE))

MOST_TABLED: Final = 14
"""Components up to which numbers of all sets of components are computed at once."""


def mask_of(components: Sequence[int]) -> int:
    """Return a set of components as bits."""
    mask = 0
    for component in components:
        mask |= 1 << component
    return mask


class Cardinalities:
    """Estimated numbers of partial matches for one OR-free pattern on data with given statistics.

    Parameters
    ----------
    window : int
        WITHIN, ticks.
    kleene : sequence of bool, optional
        Which components take one or more events.
    next_to : sequence of int, optional
        The components whose event must be able to come next after that of the component before: the strategy
        is skip till next match, and no predicate ties them to others.

    Attributes
    ----------
    length, whole : int
        The number of components, and all of them as bits.
    singles : (l,) int64
        Each component as a bit.
    candidates : float
        Of all components together.
    window : float
        The ticks w of the condition ``max A <= min B + w``.
    lengths : (l,) float64
        Mean of ``upper - lower``, ticks.
    predicates : list of tuple
        The components that each predicate mentions, as bits, and its statistics.
    met : (l, l) float64
        ``met[i, j]`` is the share of the candidates of component j that are in reach of some of component i.
    """

    def __init__(
        self,
        statistics: Statistics,
        window: int,
        *,
        kleene: Sequence[bool] = (),
        next_to: Sequence[int] = (),
    ) -> None:
        self.statistics = statistics
        self.length = length = len(statistics.components)
        self.whole = (1 << length) - 1
        self.singles: Int64 = np.left_shift(np.int64(1), np.arange(length))
        self._next = tuple(next_to)
        self.window = float(max(0, min(window - length, statistics.ticks + length)))
        self._ticks = max(1.0, statistics.ticks)
        self.lengths = np.array([max(0.0, part.lengths.mean) for part in statistics.components])
        self._shares = np.array(statistics.keys.shares).reshape(-1, length)
        one = np.array([part.candidates for part in statistics.components])
        self.candidates = float(one.sum())
        self._log_one = np.log(np.maximum(one, 1e-9))
        for j, repeated in enumerate(kleene):
            if repeated:
                self._log_one[j] = self._log_sets(j, one[j])
        self.predicates = [(mask_of(part.components), part) for part in statistics.predicates]
        self.met = np.ones((length, length))
        for pair in statistics.pairs:
            self.met[pair.second, pair.first] = pair.first_met
            self.met[pair.first, pair.second] = pair.second_met
        self._ties = self._measured_ties()
        self._spread = self._measured_spread()
        self._predicates = self._selectivities()
        self._equal = self._equalities()
        self._known: dict[int, tuple[float, float, float]] = {}

    def _log_sets(self, j: int, candidates: float) -> float:
        """Return the logarithm of ``T 2^(r W) / W``, r the rate in a partition (section 5.2)."""
        window = max(1.0, self.window)
        alike = float((self._shares[:, j] ** 2).sum()) if len(self._shares) else 1.0
        together = candidates * alike * min(1.0, window / self._ticks)
        return min(_MOST_LOG, float(np.log(self._ticks / window) + together * np.log(2.0)))

    def _selectivities(self) -> list[tuple[int, float]]:
        """Return sets of components, and log of the share for which all their predicates are true."""
        selectivities = [
            ((1 << pair.first) | (1 << pair.second), pair.joined) for pair in self.statistics.pairs
        ]
        selectivities += [
            (mask, part.selectivity) for mask, part in self.predicates if len(part.components) != 2
        ]
        return [(mask, float(np.log(max(share, 1e-300)))) for mask, share in selectivities if share < 1.0]

    def _equalities(self) -> list[Float]:
        """Return for each value log of the share of the pairs of two components that are equal in it.

        (l, l) each; -inf where nothing has to be equal.
        """
        equalities = self.statistics.equalities
        shares = np.full(
            (1 + max((part.value for part in equalities), default=-1), *[self.length] * 2), -np.inf
        )
        for part in equalities:
            shares[part.value, part.first, part.second] = np.log(max(part.share, 1e-300))
        return list(shares)

    def _measured_ties(self) -> Float:
        """Return how many times more often than on an even line two components meet, (l, l)."""
        ties = np.ones((self.length, self.length))
        pairs = self.statistics.pairs
        masks = np.array([(1 << pair.first) | (1 << pair.second) for pair in pairs], dtype=np.int64)
        expected = self._log_even(masks) if pairs else np.zeros(0)
        measured = np.array([pair.in_time for pair in pairs])
        places = [pair.first for pair in pairs], [pair.second for pair in pairs]
        ratios = np.exp(np.clip(np.log(np.maximum(measured, 1e-300)) - expected, -300.0, 300.0))
        ties[places] = np.where(measured > 0.0, ratios, 1.0)
        return ties

    def _log_ties(self, bits: NDArray[np.bool_], spread: float) -> Float:
        """Return log of how many times more often than on an even line components meet."""
        numbers = np.zeros(bits.shape[1])
        for j in range(1, self.length):
            ties = np.where(bits[:j], self._ties[:j, j, None], 1.0)
            more = np.maximum(ties - 1.0, 0.0)
            strongest = more.max(axis=0)
            often = strongest + spread * (more.sum(axis=0) - strongest)
            numbers += np.where(bits[j], np.log1p(often) + np.log(ties.min(axis=0, initial=1.0)), 0.0)
        return numbers

    def _measured_spread(self) -> float:
        """Return s, the weight of all ties of a component but its strongest one, from 0 to 2."""
        triples = self.statistics.triples
        if not triples:
            return 1.0
        masks = np.array([mask_of(part.components) for part in triples], dtype=np.int64)
        bits, even = self._bits(masks), self._log_even(masks)
        tried = np.array([part.tried for part in triples])
        met = tried * np.array([part.in_time for part in triples])
        none, all_of = (
            tried * np.exp(np.minimum(even + self._log_ties(bits, spread), 0.0)) for spread in (0.0, 1.0)
        )
        more = float((all_of - none).sum())
        return float(np.clip((met - none).sum() / more, 0.0, 2.0)) if more > 0.0 else 1.0

    def _bits(self, masks: Int64) -> NDArray[np.bool_]:
        return np.asarray((masks[None, :] >> np.arange(self.length)[:, None]) & 1, dtype=np.bool_)

    def _log_even(self, masks: Int64) -> Float:
        """Return log of the share of choices that can be in order within the window on an even line."""
        bits = self._bits(masks)
        size = bits.sum(axis=0)
        # Lengths are in units of the whole line, so that no product overflows.
        lengths, w = self.lengths / self._ticks, self.window
        symmetric = np.zeros((self.length + 1, len(masks)))
        symmetric[0] = 1.0
        for j in range(self.length):
            symmetric[1 : j + 2] += (lengths[j] * bits[j]) * symmetric[: j + 1]
        # Near the ends of the trace there is no room for the whole window.
        lost = min(1.0, w / self._ticks)
        volume, placements = np.zeros(len(masks)), 1.0
        for r in range(self.length):
            here = np.flatnonzero(size > r)
            term = placements * (1.0 - r / (r + 1.0) * lost)
            volume[here] += symmetric[size[here] - 1 - r, here] * term
            placements *= (w + r + 1.0) / (r + 1.0) / self._ticks
        return np.asarray(np.log(np.clip(volume, 1e-300, 1.0)) + self._log_alike(bits))

    def _log_alike(self, bits: NDArray[np.bool_]) -> Float:
        """Return log of the share of choices that are of one partition."""
        partitions = self.statistics.keys.partitions
        if partitions <= 1 or not len(self._shares):
            return np.zeros(bits.shape[1])
        remainder = np.maximum(0.0, 1.0 - self._shares.sum(axis=0))
        unlisted = max(1, partitions - len(self._shares))
        each = np.vstack((self._shares, remainder / unlisted))
        products = np.ones((len(each), bits.shape[1]))
        for j in range(self.length):
            products *= np.where(bits[j], each[:, j, None], 1.0)
        products[-1] *= unlisted
        return np.asarray(np.log(np.maximum(products.sum(axis=0), 1e-300)))

    def _computed(self, masks: Int64) -> tuple[Float, Float, Float]:
        """Return the three numbers of :meth:`numbers`."""
        bits = self._bits(masks)
        all_choices = self._log_one @ bits
        numbers = all_choices + self._log_even(masks)
        numbers += self._log_ties(bits, self._spread)
        numbers = np.minimum(numbers, np.minimum(all_choices, _MOST_LOG))
        for j in self._next:
            numbers += np.where(bits[j - 1] & bits[j], self._log_next(j), 0.0)
        grouped = np.zeros(len(masks))
        for shares in self._equal:
            # An event that equals one of the others equals all of them. Where values differ in frequency, the
            # largest share of a pair tells the most.
            for j in range(1, self.length):
                likeliest = np.where(bits[:j], shares[:j, j, None], -np.inf).max(axis=0)
                grouped += np.where(bits[j] & (likeliest > -np.inf), likeliest, 0.0)
        let_through = np.zeros(len(masks))
        for mask, share in self._predicates:
            let_through[(masks & mask) == mask] += share
        feasible, equal = np.exp(numbers), np.exp(np.maximum(numbers + grouped, -_MOST_LOG))
        return feasible, equal, np.exp(np.maximum(numbers + grouped + let_through, -_MOST_LOG))

    def _log_next(self, j: int) -> float:
        """Return log of the share of the pairs of two neighbours in which the second can come next.

        Of certain times one event can; of uncertain ones, all that overlap the time until the first has
        certainly ended. Unlike in section 6.2, an event can be next to several, as matches do not consume it.
        """
        pair = mask_of((j - 1, j))
        together = self._log_one[[j - 1, j]].sum() + float(self._log_even(np.array([pair]))[0])
        pairs_met = float(np.exp(min(together - self._log_one[j - 1], 600.0))) * self._ties[j - 1, j]
        before, length = self.lengths[j - 1], self.lengths[j]
        rate = pairs_met / (before + length + self.window + 1.0)
        can_be_next = -np.expm1(-pairs_met) + rate * (before + 2.0 * length)
        return float(np.log(min(1.0, max(can_be_next, 1e-300) / max(pairs_met, 1e-300))))

    def looked_at(self, first: int, masks: Int64) -> Float:
        """Return the share of the partial matches of sets of components that a tree makes, (m,) float64.

        ``first`` is the component of the tree's first leaf; sets are (m,) int64, as bits. All partial matches
        that hold ``first`` are made, and all candidates of single components are looked at. Right subtrees
        make the others near the candidates of the first leaf alone: their share is the mean share of their
        components' candidates that lie there.
        """
        bits = self._bits(masks)
        near = self.met[first] @ bits / np.bitwise_count(masks)
        return np.where(bits[first] | (masks & (masks - 1) == 0), 1.0, near)

    @cached_property
    def _table(self) -> tuple[Float, Float, Float]:
        tables = self._computed(np.arange(1 << self.length, dtype=np.int64))
        for numbers in tables:
            numbers[0] = 1.0
        return tables

    def numbers(self, masks: Int64) -> tuple[Float, Float, Float]:
        """Return how many choices there are for sets of components, each (m,) float64.

        Sets are (m,) int64, as bits, none empty.

        Returns
        -------
        feasible
            Choices of one partition that can be in order within the window.
        equal
            Those of them that are equal in all that equalities ask, by themselves or in chains.
        matches
            Those of the equal ones for which every predicate over them is true: partial matches.
        """
        if self.length <= MOST_TABLED:
            feasible, equal, matches = self._table
            return feasible[masks], equal[masks], matches[masks]
        mask_list = masks.tolist()
        fresh = [mask for mask in dict.fromkeys(mask_list) if mask not in self._known]
        if fresh:
            computed = self._computed(np.array(fresh, dtype=np.int64))
            self._known.update(
                zip(fresh, zip(*(part.tolist() for part in computed), strict=True), strict=True)
            )
        all_three = np.array([self._known[mask] for mask in mask_list])
        return all_three[:, 0], all_three[:, 1], all_three[:, 2]

    def partial_matches(self, components: Sequence[int]) -> float:
        """Return the estimated number of partial matches of a set of components over the whole table."""
        return float(self.numbers(np.array([mask_of(components)], dtype=np.int64))[2][0])
