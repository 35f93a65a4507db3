"""The cost of putting partial matches together, in one unit for all plans.

The cost functions of Kolchinsky and Schuster (PVLDB 2018): the partial matches of all nodes (sections 4.1 and
4.2) and latency (section 6.1), with negations where what they depend on is bound (section 5.3). Numbers are
multiplied by prices, what a join takes for each, so that plans can be compared with the join without a tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.config.tolerances import LARGEST_ESTIMATE
from uncertain_cep.config.tuning import TREE_PRICES, Prices
from uncertain_cep.optimizer.cardinality import Cardinalities, mask_of
from uncertain_cep.optimizer.statistics import Statistics
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.trees import Tree, joins_of
from uncertain_cep.plan.trees import components_of as leaves_of
from uncertain_cep.query.typed import variables_of

__all__ = ["Check", "CostModel"]

Float = NDArray[np.float64]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Check:
    """A negation, checked once all that it depends on is bound (section 5.3)."""

    needs: int
    """The positive components that it depends on, as bits."""
    candidates: float
    """Events of the negated component that can happen within a window."""


class CostModel(Cardinalities):
    """Costs of plans for one OR-free pattern on data with given statistics.

    Parameters are those of :class:`Cardinalities`, ``checks``, and ``alpha``, the weight of latency (section
    6.1): what a partial match that waits for the event of the last component costs beside the work of the
    plan, as a multiple of looking at one. Costs are linear in ``prices``.
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
        prices: Prices = TREE_PRICES,
    ) -> None:
        super().__init__(statistics, window, kleene=kleene, next_to=next_to)
        self.alpha, self.checks, self.prices = alpha, tuple(checks), prices
        self._asked = {mask for mask, part in self.predicates if not part.equates}

    @classmethod
    def of(cls, plan: EvaluationPlan, statistics: Statistics, prices: Prices = TREE_PRICES) -> CostModel:
        """Return the model of an OR-free plan, with its weight of latency."""
        number = {component.variable: j for j, component in enumerate(plan.components)}
        checks = []
        for negation, part in zip(plan.negations, statistics.negated, strict=True):
            # A negation at an end looks from one end of the window to the other.
            inner = 0 < negation.after < len(plan.components)
            gap = (negation.after - 1, negation.after) if inner else (0, len(plan.components) - 1)
            named = {
                number[variable]
                for predicate in plan.joined
                if negation.component.variable in variables_of(predicate)
                for variable in variables_of(predicate)
                if variable in number
            }
            # A longer interval is in reach of more windows.
            reached = part.rate * (plan.window + part.lengths.mean)
            checks.append(Check(mask_of([*{*gap, *named}]), reached))
        return cls(
            statistics,
            plan.window,
            kleene=[component.kleene for component in plan.components],
            next_to=_next_to(plan, number),
            checks=checks,
            alpha=plan.latency_weight,
            prices=prices,
        )

    def join_costs(self, left: Int64, right: Int64) -> tuple[Float, Float]:
        """Return the costs of joins of disjoint sets of components, without making their inputs.

        Sets are (m,) int64, as bits.

        Returns
        -------
        joining : (m,) float64
            ns, with alpha times the latency of what the last component of the pattern waits for.
        sorting : (m,) float64
            What it takes besides to have the right side sorted, ns; 0 for single components.
        """
        _, equal_left, left_matches = self.numbers(left)
        _, equal_right, right_matches = self.numbers(right)
        _, equal, matches = self.numbers(left | right)
        # An index finds the pairs that meet the equalities; no other pair is looked at.
        with np.errstate(over="ignore"):
            # Where almost none are equal, the quotient overflows: then all pairs meet.
            meet = np.minimum(1.0, equal / equal_left / equal_right)
        pairs = left_matches * meet * right_matches
        tests_needed = np.zeros(len(left), dtype=np.bool_)
        for needs in self._asked:
            tests_needed |= _first_bound(left, right, needs)
        costs = (
            self.prices.search * left_matches + (self.prices.probe + self.prices.ask * tests_needed) * pairs
        )
        costs += np.where(left | right == self.whole, self.prices.match, self.prices.partial) * matches
        for check in self.checks:
            step = self.prices.probe * (1.0 + check.candidates)
            costs += np.where(_first_bound(left, right, check.needs), step * matches, 0.0)
        if self.alpha:
            costs += self.alpha * self.prices.probe * self._waiting(left, right, left_matches, right_matches)
        sorting = np.where(right & (right - 1), self.prices.sort * right_matches, 0.0)
        return np.minimum(costs, LARGEST_ESTIMATE), np.minimum(sorting, LARGEST_ESTIMATE)

    def costs_behind(self, first: int, left: Int64, right: Int64) -> Float:
        """Return the costs of joins in a tree whose first leaf is this component, ns.

        Right subtrees are evaluated near that leaf's candidates alone, see :meth:`looked_at`. Parameters
        ``left`` and ``right`` are those of :meth:`join_costs`.
        """
        joining, sorting = self.join_costs(left, right)
        return self.looked_at(first, left | right) * joining + self.looked_at(first, right) * sorting

    def _waiting(self, left: Int64, right: Int64, left_matches: Float, right_matches: Float) -> Float:
        """Return how many partial matches joins bring together with those of the last component."""
        last = np.int64(1 << (self.length - 1))
        return np.where(left & last, right_matches, np.where(right & last, left_matches, 0.0))

    def latency(self, tree: Tree) -> float:
        """Return how many partial matches the events of the last component wait for, ``Cost_lat``.

        These are the partial matches of the siblings of all nodes from the last component's leaf to the root.
        """
        left, right = _sides(tree)
        waiting = self._waiting(left, right, self.numbers(left)[2], self.numbers(right)[2])
        return float((self.looked_at(leaves_of(tree)[0], left | right) * waiting).sum())

    def cost(self, tree: Tree) -> float:
        """Return the cost of a tree, ns: ``Cost_ord`` or ``Cost_tree``, with prices."""
        left, right = _sides(tree)
        joins = self.costs_behind(leaves_of(tree)[0], left, right)
        return self.prices.candidate * self.candidates + float(joins.sum())

    def order_costs(self, orders: Int64) -> Float:
        """Return the costs of orders without their leaves, ns; ``orders`` is (m, l) int64."""
        bits = self.singles[orders]
        bound = np.cumsum(bits, axis=1)
        if self.length == 1:
            return np.zeros(len(orders))
        costs, _ = self.join_costs(bound[:, :-1].reshape(-1), bits[:, 1:].reshape(-1))
        return np.asarray(costs.reshape(len(orders), -1).sum(axis=1))


def _sides(tree: Tree) -> tuple[Int64, Int64]:
    """Return the components that each join of a tree has on its left and on its right, as bits."""
    joins = list(joins_of(tree))
    left = np.array([mask_of(leaves_of(join.left)) for join in joins], dtype=np.int64)
    right = np.array([mask_of(leaves_of(join.right)) for join in joins], dtype=np.int64)
    return left, right


def _first_bound(left: Int64, right: Int64, needs: int) -> NDArray[np.bool_]:
    """Return where a join is the first to have all of some components."""
    earlier = ((left & needs) == needs) | ((right & needs) == needs)
    return np.asarray((((left | right) & needs) == needs) & ~earlier)


def _next_to(plan: EvaluationPlan, number: Mapping[str, int]) -> list[int]:
    """Return the components whose event must be able to come next after the one before it."""
    if plan.query.strategy == "skip_till_any_match":
        return []
    bound_last = {
        max((number[variable] for variable in variables_of(predicate) if variable in number), default=0)
        for predicate in plan.joined
    }
    return [j for j in range(1, len(number)) if j not in bound_last]
