"""Facts about a plan on some data: gathered once, for text and for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import pyarrow as pa

from confidence.kernel import plain_for
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.candidates.distances import moved
from uncertain_cep.candidates.existence import as_evaluated, existence
from uncertain_cep.candidates.match_windows import feasible
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.executor import candidates, execute
from uncertain_cep.explanation.clock_facts import ClockFacts, clock_facts
from uncertain_cep.operators.counters import Counters, GroupCounts, Node
from uncertain_cep.operators.join_prefix import choice_of_singles
from uncertain_cep.operators.table import kernels_of
from uncertain_cep.optimizer.choice import Choice, choose, estimated
from uncertain_cep.optimizer.pivot_cost import pivot_passes
from uncertain_cep.plan import plan_of_reading
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.grouping import ROW_FIELD
from uncertain_cep.plan.trees import Leaf, Tree, components_of
from uncertain_cep.running.compiling import plain_seconds
from uncertain_cep.weighers.log import WeighingLog

__all__ = ["ChosenPlan", "PlanFacts", "plan_facts"]


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """How the events of an OR-free pattern are put together: what was estimated, and what a run counted."""

    plan: EvaluationPlan
    choice: Choice
    actual: Mapping[Node, int] | None = None
    """For each node, see :data:`uncertain_cep.operators.counters.Node`, how many partial matches it had."""
    matches: int | None = None
    """That the run found: those that pass HAVING, and with LIMIT no more than it asks for."""
    seconds: float | None = None
    """That the run took."""
    weighed: WeighingLog | None = None
    """What weighed the matches of the run."""

    @property
    def variables(self) -> list[str]:
        """The variables of the components, in pattern order."""
        return [component.variable for component in self.plan.components]

    @property
    def estimated_matches(self) -> float | None:
        """How many matches are expected."""
        model = self.choice.model
        return None if model is None else model.partial_matches(range(model.length))

    @property
    def waiting(self) -> float | None:
        """How many partial matches the events of the last component are expected to wait for."""
        model, tree = self.choice.model, self.choice.tree
        if model is None or not self.plan.is_join:
            return None
        return float(pivot_passes(model).waiting.sum()) if tree is None else model.latency(tree)

    def node(self, tree: Tree) -> dict[str, Any]:
        """Return a node of a tree: its components, estimated and actual partial matches, and children."""
        model, components = self.choice.model, components_of(tree)
        node = self._counted(components, None if model is None else model.partial_matches(components))
        if not isinstance(tree, Leaf):
            node["children"] = [self.node(tree.left), self.node(tree.right)]
        return node

    def passes(self) -> list[dict[str, Any]]:
        """Return the partial matches of the join in pattern order, for each pivot by the components bound.

        Nothing if another method is used.
        """
        plan, model = self.plan, self.choice.model
        if model is None or not plan.is_join:
            return []
        if plan.evaluation != "query_order" or self.choice.tree is not None:
            return []
        expected = pivot_passes(model)
        return [
            {
                "order": [self.variables[j] for j in order],
                "nodes": [
                    self._counted(tuple(order[:bound]), number) for bound, number in enumerate(numbers, 1)
                ],
            }
            for order, numbers in zip(
                expected.orders.tolist(), expected.partial_matches.tolist(), strict=True
            )
        ]

    def _counted(self, components: Node, number: float | None) -> dict[str, Any]:
        node = {"components": [self.variables[j] for j in sorted(components)], "estimated": number}
        return {**node, "actual": self.actual.get(components, 0)} if self.actual else node


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """An OR-free plan, and what a table tells of it if there is one."""

    plan: EvaluationPlan
    selection: Selection | None = None
    kept: Selection | None = None
    """The candidates that lie in match windows."""
    chosen: ChosenPlan | None = None
    clocks: ClockFacts | None = None
    readings: int | None = 1
    """How many readings there are of which this is the longest, if they are not planned beforehand; None: as
    many as events make possible."""
    groups: GroupCounts | None = None
    """With RETURN PROBABILITY, how a run weighed the groups of all branches; of the last branch."""


def plan_facts(
    plan: EvaluationPlan, table: pa.Table | None, diagnostics: Diagnostics, *, analyze: bool = False
) -> list[PlanFacts]:
    """Return the facts of each branch of a plan, or of the plan itself.

    Of one with readings that are not planned beforehand they are those of the longest, and a run is of all.
    On a table candidates are counted and the choice is made, with estimates even if nothing was to choose;
    with ``analyze`` the plan runs, and the partial matches of each node are counted.

    Raises
    ------
    TraceError
        If the table is not one of events.
    """
    diagnostics.about(plan)
    executed, grouped, events = plan, plan, table
    if plan.by_row is not None:
        # What is explained is how the matches of groups are found.
        executed, plan = plan.by_row, replace(plan, by_row=None, having=None, sort_keys=())
        if table is not None:
            table = table.append_column(ROW_FIELD, pa.array(range(table.num_rows), ROW_FIELD.type))
    with plain_for(0.0 if table is None else plain_seconds(table.num_rows, kernels_of(plan))):
        if (readings := plan.open_readings) is not None:
            longest = plan_of_reading(plan, readings.longest)
            facts = [_facts(longest, table, diagnostics, executed if analyze else None)]
            facts[0] = replace(facts[0], readings=readings.count)
        else:
            parts = zip(plan.or_free, executed.or_free, strict=True)
            facts = [_facts(part, table, diagnostics, run if analyze else None) for part, run in parts]
        if analyze and grouped.by_row is not None and events is not None:
            counters = Counters()
            for _ in execute(grouped, events, counters=counters):
                pass
            facts[-1] = replace(facts[-1], groups=counters.groups)
        return facts


def _facts(
    plan: EvaluationPlan, table: pa.Table | None, diagnostics: Diagnostics, run: EvaluationPlan | None
) -> PlanFacts:
    """Return the facts of an OR-free plan; with what a run told, if one is to be made."""
    if table is None:
        return PlanFacts(plan)
    selection = candidates(plan, table, diagnostics)
    plan = as_evaluated(plan, existence(table, plan.names.probability))
    kept = feasible(plan, selection)
    joined, candidates_, _ = moved(plan, kept)
    if joined.is_plain or len(plan.components) < 2:
        choice = choose(joined, table, candidates_)
    else:
        choice = choice_of_singles(plan, table, kept)
    choice = estimated(joined, table, candidates_, choice)
    clocks = clock_facts(plan, table, kept)
    if run is None:
        return PlanFacts(plan, selection, kept, ChosenPlan(joined, choice), clocks)
    counters = Counters()
    begin = perf_counter()
    rows = sum(batch.num_rows for batch in execute(run, table, counters=counters))
    seconds = perf_counter() - begin
    matches = None if plan.counts else rows
    chosen = ChosenPlan(joined, choice, counters.nodes, matches, seconds, counters.weighed)
    return PlanFacts(plan, selection, kept, chosen, clocks)
