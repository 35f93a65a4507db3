"""The cost of the backtracking search, where the strategy leaves few events that can be next.

Under skip till next match, consider the events that meet a component's conditions and certainly follow. The
search looks at none that begins after the first of them has ended. Under contiguity the same holds for all
events. So a partial match has about as many continuations as there are events that overlap the time in which
the next one can be. A Kleene component takes the events of a window one after the other, and the search goes
on from each prefix: that is what joining the single components first can save.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.tolerances import LARGEST_ESTIMATE
from uncertain_cep.config.tuning import BACKTRACKING_PRICES, UNKNOWN_SELECTIVITY
from uncertain_cep.optimizer.cardinality import mask_of
from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.query.typed import variables_of

__all__ = ["SearchCost", "SearchStep"]

_MOST_TAKEN: Final = 1000.0
"""Events that a Kleene component is expected to take one after the other at most."""


@dataclass(frozen=True, slots=True)
class SearchStep:
    """A component in pattern order."""

    single: int
    """Its number among the single components; -1 for a Kleene one."""
    candidates: int
    predicates: int
    """Predicates across components that can be evaluated once it is bound."""


@dataclass(frozen=True, slots=True)
class SearchCost:
    """The backtracking search of a sequence, as the alternative to joining its single components first."""

    steps: tuple[SearchStep, ...]
    adjacent: bool
    """Whether the strategy is a contiguity: any event keeps those behind it from being next."""
    by_partition: bool
    """Whether only events of the same partition do."""

    @classmethod
    def of(cls, plan: EvaluationPlan, selection: Selection) -> SearchCost:
        """Return the steps of the search for the matches of a plan."""
        number = {component.variable: j for j, component in enumerate(plan.components)}
        last = [
            max((number[variable] for variable in variables_of(predicate) if variable in number), default=0)
            for predicate in plan.joined
        ]
        steps = tuple(
            SearchStep(
                -1 if component.kleene else plan.singles.index(j), len(selection.rows[j]), last.count(j)
            )
            for j, component in enumerate(plan.components)
        )
        strategy = plan.query.strategy
        return cls(steps, strategy.endswith("contiguity"), strategy == "partition_contiguity")

    def cost(self, model: CostModel) -> float:
        """Return the expected cost of the whole search, ns.

        ``model`` is that of the sequence of the single components, under skip till any match.
        """
        cost, matches = self._searched(model)
        return min(cost + BACKTRACKING_PRICES.match * matches, LARGEST_ESTIMATE)

    def after_joining(self, model: CostModel, joined: float) -> float:
        """Return the cost of the further steps, ns, behind a join of the single components."""
        chains = [self._chain(model, step) for step in self.steps if step.single < 0]
        if not chains:
            return min(BACKTRACKING_PRICES.match * joined, LARGEST_ESTIMATE)
        cost, matches = BACKTRACKING_PRICES.partial * joined, joined
        for links, looks in chains:
            cost += matches * links * (looks + BACKTRACKING_PRICES.partial)
            matches *= links
        return min(
            cost + BACKTRACKING_PRICES.match * min(matches, self._searched(model)[1]), LARGEST_ESTIMATE
        )

    def _searched(self, model: CostModel) -> tuple[float, float]:
        """Return the cost of adding events one by one, ns, and the number of matches."""
        bound: list[int] = []
        matches, cost = 1.0, 0.0
        for place, step in enumerate(self.steps):
            if place == 0:
                matches = float(step.candidates)
                cost = BACKTRACKING_PRICES.probe * matches
            elif step.single >= 0:
                seen, passing = self._continuations(model, bound, step)
                seen, taken = self._limited(model, step, seen, passing / max(seen, 1e-300))
                cost += matches * seen * _look(step)
                matches *= taken
            if step.single >= 0:
                bound.append(step.single)
            else:
                # The search goes on from each prefix.
                links, looks = self._chain(model, step)
                cost += matches * links * looks
                matches *= links
            cost += BACKTRACKING_PRICES.partial * matches
        return cost, matches

    def _chain(self, model: CostModel, step: SearchStep) -> tuple[float, float]:
        """Return how many prefixes a Kleene component has, and what finding the next event costs, ns."""
        nearby = self._nearby(model, step)
        seen, taken = self._limited(model, step, nearby, UNKNOWN_SELECTIVITY**step.predicates)
        longest = min(max(nearby, taken), _MOST_TAKEN)
        links = max(taken, min(taken / (1.0 - taken), longest)) if taken < 1.0 else max(1.0, longest)
        return links, seen * _look(step)

    def _continuations(self, model: CostModel, bound: list[int], step: SearchStep) -> tuple[float, float]:
        """Return how many events of a single component order and window allow, and of these predicates."""
        if not bound:
            return float(step.candidates), float(step.candidates)
        masks = np.array([mask_of(bound), mask_of([*bound, step.single])], dtype=np.int64)
        feasible, _, matches = model.numbers(masks)
        seen = float(feasible[1] / max(feasible[0], 1e-300))
        return seen, min(seen, float(matches[1] / max(matches[0], 1e-300)))

    def _nearby(self, model: CostModel, step: SearchStep) -> float:
        """Return how many events of a component lie in half a window of one partition, about."""
        span = min(1.0, 0.5 * (model.window + 1.0) / max(1.0, model.statistics.ticks))
        return step.candidates * span / max(1.0, model.statistics.keys.effective)

    def _limited(self, model: CostModel, step: SearchStep, seen: float, share: float) -> tuple[float, float]:
        """Return how many events are looked at for a partial match, and taken, before none can be next.

        ``seen`` events are in reach; for ``share`` of them the predicates are true.
        """
        statistics = model.statistics
        length = float(model.lengths.mean())
        parts = max(1.0, statistics.keys.effective)
        rate = step.candidates / max(1.0, statistics.ticks) / parts
        if self.adjacent:
            every = statistics.events / max(1.0, statistics.ticks) / (parts if self.by_partition else 1.0)
            seen = min(seen, rate * (2.0 * length + 1.0 / max(every, 1e-12)))
            return seen, seen * share
        looked = min(seen, 1.0 / max(share, 1e-12) + 3.0 * rate * length)
        return looked, min(seen * share, -math.expm1(-seen * share) + 3.0 * rate * length * share)


def _look(step: SearchStep) -> float:
    """Return the cost of looking at a candidate, ns."""
    return BACKTRACKING_PRICES.probe + (BACKTRACKING_PRICES.ask if step.predicates else 0.0)
