"""How many partial matches any set of components has, and what putting them together costs.

The model of Kolchinsky and Schuster (PVLDB 2018, sections 4 to 6) for events whose times are intervals. There
events of a window of W ticks meet with probability 1; here what meets is a matter of the intervals too. With
positions subtracted, ``A_j = lower_j - j`` and ``B_j = upper_j - j``, k events can be in order within the
window iff ``A_i <= B_j`` for all i < j and ``max A <= min B + w``. With ``u_j = B_j - A_j``, the number of
placements of that kind on a line of ticks, those that are shifts of each other counted once, is exactly

    V(u) = sum over r = 0..k-1 of  e_{k-1-r}(u) * C(w + r, r),

``e`` the elementary symmetric polynomials: ``C(w + k - 1, k - 1)`` orders within the window for certain
times, overlaps of intervals for long ones. It is linear in each ``u_j``: mean lengths are all that matters.

Real events come in bursts and in partitions. How many times more often than on such a line two components
meet, g, is measured; k components then meet ``prod over i < k of (1 + i (g - 1))`` times more often, as they
do if the rate of all of them varies together like a gamma distribution, and if g is not the same for every
two, ``i (g - 1)`` is the sum over those before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.plan.plan import EvaluationPlan
from uncertain_cep.plan.statistics import Statistics
from uncertain_cep.plan.trees import Leaf, Tree, joins_of
from uncertain_cep.plan.trees import components_of as leaves_of
from uncertain_cep.query.typed import variables_of

__all__ = ["MOST_TABLED", "PIVOTED", "TREE", "Check", "CostModel", "Prices", "mask_of"]

Float = NDArray[np.float64]
Int64 = NDArray[np.int64]

MOST_TABLED: Final = 14
"""Components up to which numbers of all sets of components are computed at once."""

_LARGEST: Final = 1e300
"""What numbers are kept below, so that sums of products of them stay finite where it matters."""

_MOST_LOG: Final = float(np.log(_LARGEST))


@dataclass(frozen=True, slots=True)
class Prices:
    """What the steps of an evaluation take, ns; measured on one machine, of which only ratios matter.

    Attributes
    ----------
    candidate : float
        To lay a candidate out.
    search : float
        To find where the partners of a partial match begin and end.
    probe : float
        To look at two partial matches that order, window and equalities let go together.
    ask : float
        To ask what predicates say of them.
    partial : float
        To keep a partial match.
    sort : float
        To sort a partial match of several components before it is joined with others.
    match : float
        To describe a match.
    """

    candidate: float
    search: float
    probe: float
    ask: float
    partial: float
    sort: float
    match: float


TREE: Final = Prices(candidate=100.0, search=45.0, probe=3.0, ask=130.0, partial=5.0, sort=120.0, match=160.0)
"""Of the joins of a tree: fitted to 341 runs over 69 patterns of 3 to 5 components on skewed traces."""

PIVOTED: Final = Prices(candidate=100.0, search=0.0, probe=5.0, ask=57.0, partial=52.0, sort=0.0, match=45.0)
"""Of the join without a tree: likewise."""


@dataclass(frozen=True, slots=True)
class Check:
    """A negation, checked where all that it depends on is bound (section 5.3).

    Attributes
    ----------
    needs : int
        Those positive components, as bits.
    candidates : float
        Events of the negated component in a window.
    """

    needs: int
    candidates: float


def mask_of(components: Sequence[int]) -> int:
    """Return a set of components as bits."""
    mask = 0
    for component in components:
        mask |= 1 << component
    return mask


class CostModel:
    """Numbers of partial matches and costs for one OR-free pattern on data with given statistics.

    Parameters
    ----------
    statistics : Statistics
    window : int
        WITHIN, ticks.
    kleene : sequence of bool, optional
        Which components take one or more events.
    next_to : sequence of int, optional
        The components whose event has to be one that can come next after that of the component before, since
        the strategy is skip till next match and no predicate ties them to others.
    checks : sequence of Check
    alpha : float
        Weight of latency (section 6.1).

    Attributes
    ----------
    length : int
        Components.
    whole : int
        All of them, as bits.
    candidates : float
        Of all components together.
    window : float
        The ticks w of the condition ``max A <= min B + w``.
    lengths : (l,) float64
        Mean of ``upper - lower``, ticks.
    """

    def __init__(
        self,
        statistics: Statistics,
        window: int,
        *,
        kleene: Sequence[bool] = (),
        next_to: Sequence[int] = (),
        checks: Sequence[Check] = (),
        alpha: float = 0.0,
    ) -> None:
        self.statistics, self.alpha = statistics, alpha
        self.length = length = len(statistics.components)
        self.whole = (1 << length) - 1
        self._next, self._checks = tuple(next_to), tuple(checks)
        self.window = float(max(0, min(window - length, statistics.ticks + length)))
        self._ticks = max(1.0, statistics.ticks)
        self.lengths = np.array([max(0.0, part.lengths.mean) for part in statistics.components])
        self._shares = np.array(statistics.keys.shares).reshape(-1, length)
        one = np.array([part.candidates for part in statistics.components])
        self.candidates = float(one.sum())
        self._log_one = np.log(np.maximum(one, 1e-9))
        for j, many in enumerate(kleene):
            if many:
                self._log_one[j] = self._log_sets(j, one[j])
        self._ties = self._measured_ties()
        self._predicates = self._selectivities()
        self._equal = self._equalities()
        self._asked = {mask_of(part.components) for part in statistics.predicates if not part.equates}
        self._known: dict[int, tuple[float, float, float]] = {}

    @classmethod
    def of(cls, plan: EvaluationPlan, statistics: Statistics, *, alpha: float = 0.0) -> CostModel:
        """Return the model of an OR-free plan."""
        number = {component.variable: j for j, component in enumerate(plan.components)}
        checks = []
        for found, part in zip(plan.negations, statistics.negated, strict=True):
            # A negation at an end looks from one end of the window to the other.
            inner = 0 < found.after < len(plan.components)
            gap = (found.after - 1, found.after) if inner else (0, len(plan.components) - 1)
            named = {
                number[variable]
                for predicate in plan.joined
                if found.component.variable in variables_of(predicate)
                for variable in variables_of(predicate)
                if variable in number
            }
            checks.append(Check(mask_of([*{*gap, *named}]), part.rate * plan.window))
        return cls(
            statistics,
            plan.window,
            kleene=[component.kleene for component in plan.components],
            next_to=_next_to(plan, number),
            checks=checks,
            alpha=alpha,
        )

    def _log_sets(self, j: int, candidates: float) -> float:
        """Return the logarithm of ``T 2^(r W) / W``, r the rate in a partition (section 5.2)."""
        window = max(1.0, self.window)
        alike = float((self._shares[:, j] ** 2).sum()) if len(self._shares) else 1.0
        together = candidates * alike * min(1.0, window / self._ticks)
        return min(_MOST_LOG, float(np.log(self._ticks / window) + together * np.log(2.0)))

    def _selectivities(self) -> list[tuple[int, float]]:
        """Return sets of components and the logarithm of what their predicates let through together."""
        found = [((1 << pair.first) | (1 << pair.second), pair.joined) for pair in self.statistics.pairs]
        found += [
            (mask_of(part.components), part.selectivity)
            for part in self.statistics.predicates
            if len(part.components) != 2
        ]
        return [(mask, float(np.log(max(share, 1e-300)))) for mask, share in found if share < 1.0]

    def _equalities(self) -> list[Float]:
        """Return for each value log of the share of the pairs of two components that are equal in it.

        (l, l) each; -inf where nothing has to be equal.
        """
        found = self.statistics.equalities
        shares = np.full((1 + max((part.value for part in found), default=-1), *[self.length] * 2), -np.inf)
        for part in found:
            shares[part.value, part.first, part.second] = np.log(max(part.share, 1e-300))
        return list(shares)

    def _measured_ties(self) -> Float:
        """Return how many times more often than on an even line two components meet, (l, l)."""
        ties = np.ones((self.length, self.length))
        pairs = self.statistics.pairs
        masks = np.array([(1 << pair.first) | (1 << pair.second) for pair in pairs], dtype=np.int64)
        expected = self._log_even(masks) if pairs else np.zeros(0)
        for pair, even in zip(pairs, expected, strict=True):
            if pair.in_time > 0.0:
                ties[pair.first, pair.second] = np.exp(np.clip(np.log(pair.in_time) - even, -300.0, 300.0))
        return ties

    def _bits(self, masks: Int64) -> NDArray[np.bool_]:
        return np.asarray((masks[None, :] >> np.arange(self.length)[:, None]) & 1, dtype=np.bool_)

    def _log_even(self, masks: Int64) -> Float:
        """Return log of the share of choices that can be in order within the window on an even line."""
        bits = self._bits(masks)
        size = bits.sum(axis=0)
        # In units of the whole line, so that no product of lengths overflows.
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
        rest = np.maximum(0.0, 1.0 - self._shares.sum(axis=0))
        others = max(1, partitions - len(self._shares))
        each = np.vstack((self._shares, rest / others))
        products = np.ones((len(each), bits.shape[1]))
        for j in range(self.length):
            products *= np.where(bits[j], each[:, j, None], 1.0)
        products[-1] *= others
        return np.asarray(np.log(np.maximum(products.sum(axis=0), 1e-300)))

    def _computed(self, masks: Int64) -> tuple[Float, Float, Float]:
        """Return the three numbers of :meth:`numbers`."""
        bits = self._bits(masks)
        all_choices = self._log_one @ bits
        numbers = all_choices + self._log_even(masks)
        for j in range(1, self.length):
            often = np.maximum(self._ties[:j, j] - 1.0, 0.0) @ bits[:j]
            seldom = np.where(bits[:j], np.minimum(self._ties[:j, j], 1.0)[:, None], 1.0).min(axis=0)
            numbers += np.where(bits[j], np.log1p(often) + np.log(seldom), 0.0)
        numbers = np.minimum(numbers, np.minimum(all_choices, _MOST_LOG))
        for j in self._next:
            numbers += np.where(bits[j - 1] & bits[j], self._log_next(j), 0.0)
        grouped = np.zeros(len(masks))
        for shares in self._equal:
            # Each event is equal to the others if it is to one; where values differ in frequency, that one
            # tells the most which makes it likeliest.
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

        Of certain times one can, of uncertain ones all that overlap the time until the first one has ended
        for certain. Other than in section 6.2 an event can be next to several: matches do not use it up.
        """
        pair = mask_of((j - 1, j))
        together = self._log_one[[j - 1, j]].sum() + float(self._log_even(np.array([pair]))[0])
        found = float(np.exp(min(together - self._log_one[j - 1], 600.0))) * self._ties[j - 1, j]
        before, own = self.lengths[j - 1], self.lengths[j]
        rate = found / (before + own + self.window + 1.0)
        can_be_next = -np.expm1(-found) + rate * (before + 2.0 * own)
        return float(np.log(min(1.0, max(can_be_next, 1e-300) / max(found, 1e-300))))

    @cached_property
    def _table(self) -> tuple[Float, Float, Float]:
        found = self._computed(np.arange(1 << self.length, dtype=np.int64))
        for numbers in found:
            numbers[0] = 1.0
        return found

    def numbers(self, masks: Int64) -> tuple[Float, Float, Float]:
        """Return for sets of components how many choices there are.

        Parameters
        ----------
        masks : (m,) int64
            Sets of components as bits, none empty.

        Returns
        -------
        feasible : (m,) float64
            Choices of one partition that can be in order within the window.
        equal : (m,) float64
            Those of them that are equal in all that equalities ask, by themselves or in chains.
        matches : (m,) float64
            Those of these for which every predicate over them is true: partial matches.
        """
        if self.length <= MOST_TABLED:
            feasible, equal, matches = self._table
            return feasible[masks], equal[masks], matches[masks]
        wanted = masks.tolist()
        fresh = [mask for mask in dict.fromkeys(wanted) if mask not in self._known]
        if fresh:
            found = self._computed(np.array(fresh, dtype=np.int64))
            self._known.update(zip(fresh, zip(*(part.tolist() for part in found), strict=True), strict=True))
        all_three = np.array([self._known[mask] for mask in wanted])
        return all_three[:, 0], all_three[:, 1], all_three[:, 2]

    def partial_matches(self, components: Sequence[int]) -> float:
        """Return the estimated number of partial matches of a set of components over the whole table."""
        return float(self.numbers(np.array([mask_of(components)], dtype=np.int64))[2][0])

    def join_costs(self, left: Int64, right: Int64) -> Float:
        """Return what joins of disjoint sets of components cost, their inputs given.

        Parameters
        ----------
        left, right : (m,) int64
            Sets of components as bits.

        Returns
        -------
        (m,) float64
            ns, with the latency of what the last component of the pattern waits for, times alpha.
        """
        _, equal_left, left_matches = self.numbers(left)
        _, equal_right, right_matches = self.numbers(right)
        _, equal, matches = self.numbers(left | right)
        # What is not equal in what it has to be is not even looked at.
        meet = np.minimum(1.0, equal / equal_left / equal_right)
        pairs = left_matches * meet * right_matches
        asked = np.zeros(len(left), dtype=np.bool_)
        for needs in self._asked:
            asked |= _first_bound(left, right, needs)
        costs = TREE.search * left_matches + np.where(asked, TREE.probe + TREE.ask, TREE.probe) * pairs
        costs += np.where(left | right == self.whole, TREE.match, TREE.partial) * matches
        costs += np.where(right & (right - 1), TREE.sort * right_matches, 0.0)
        for check in self._checks:
            step = TREE.probe * (1.0 + check.candidates)
            costs += np.where(_first_bound(left, right, check.needs), step * matches, 0.0)
        if self.alpha:
            last = np.int64(1 << (self.length - 1))
            waiting = np.where(left & last, right_matches, np.where(right & last, left_matches, 0.0))
            costs += self.alpha * TREE.probe * waiting
        return np.minimum(costs, _LARGEST)

    def cost(self, tree: Tree) -> float:
        """Return what a tree costs, ns: ``Cost_ord`` or ``Cost_tree``, and the steps behind them."""
        joins = list(joins_of(tree))
        leaves = TREE.candidate * self.candidates
        if not joins:
            return leaves
        left = np.array([mask_of(leaves_of(join.left)) for join in joins], dtype=np.int64)
        right = np.array([mask_of(leaves_of(join.right)) for join in joins], dtype=np.int64)
        return leaves + float(self.join_costs(left, right).sum())

    def order_costs(self, orders: Int64) -> Float:
        """Return what orders cost without their leaves, ns; ``orders`` is (m, l) int64."""
        bits = np.left_shift(np.int64(1), orders)
        bound = np.cumsum(bits, axis=1)
        if self.length == 1:
            return np.zeros(len(orders))
        costs = self.join_costs(bound[:, :-1].reshape(-1), bits[:, 1:].reshape(-1))
        return np.asarray(costs.reshape(len(orders), -1).sum(axis=1))

    def nodes(self, tree: Tree) -> dict[tuple[int, ...], float]:
        """Return the estimated number of partial matches of each node, by its leaves from left to right."""
        subtrees: list[Tree] = [Leaf(j) for j in leaves_of(tree)]
        subtrees += joins_of(tree)
        keys = [leaves_of(subtree) for subtree in subtrees]
        masks = np.array([mask_of(key) for key in keys], dtype=np.int64)
        return dict(zip(keys, self.numbers(masks)[2].tolist(), strict=True))


def _first_bound(left: Int64, right: Int64, needs: int) -> NDArray[np.bool_]:
    """Return where a join is the first to have all of some components."""
    earlier = ((left & needs) == needs) | ((right & needs) == needs)
    return np.asarray((((left | right) & needs) == needs) & ~earlier)


def _next_to(plan: EvaluationPlan, number: Mapping[str, int]) -> list[int]:
    """Return the components for whose event the one before limits how late it may begin."""
    if plan.query.strategy == "skip_till_any_match":
        return []
    bound_last = {
        max((number[variable] for variable in variables_of(predicate) if variable in number), default=0)
        for predicate in plan.joined
    }
    return [j for j in range(1, len(number)) if j not in bound_last]
