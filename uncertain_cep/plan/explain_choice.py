"""How the events of a pattern are put together on given data, as rows of text and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import pyarrow as pa

from uncertain_cep.plan.choosing import Choice, choose, estimated, time_text
from uncertain_cep.plan.plan import EvaluationPlan
from uncertain_cep.plan.statistics import ComponentStatistics, PairStatistics
from uncertain_cep.plan.trees import Leaf, Tree, components_of, format_tree
from uncertain_cep.query import format_expression
from uncertain_cep.query.typed import variables_of
from uncertain_cep.selection import Selection

__all__ = ["ChosenPlan", "chosen_plan"]

Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """A choice with what was estimated, and what a run counted.

    Attributes
    ----------
    plan : EvaluationPlan
    choice : Choice
    actual : mapping or None
        For each node, by its leaves from left to right, how many partial matches it had.
    matches : int or None
        That the run found: those that pass HAVING, and with LIMIT no more than it asks for.
    seconds : float or None
        That the run took.
    """

    plan: EvaluationPlan
    choice: Choice
    actual: Mapping[tuple[int, ...], int] | None = None
    matches: int | None = None
    seconds: float | None = None

    def rows(self) -> list[Row]:
        """Return labelled lines: the plan with numbers for each node, why, and the statistics behind it."""
        rows: list[Row] = []
        tree = self.choice.tree
        if tree is None and self.plan.is_plain and self.choice.model is not None:
            whole = self.choice.model.partial_matches(range(len(self._variables)))
            rows.append(("matches", f"{_rounded(whole)} estimated"))
        if tree is not None:
            rows.append(("plan", format_tree(tree, self._variables)))
            rows += [("", line) for line in self._lines(tree, 1)]
        rows.append(("why", self.choice.why))
        if self.choice.costs:
            costs = ", ".join(f"{name} {time_text(cost)}" for name, cost in self.choice.costs.items())
            rows.append(("expected", costs))
        if self.seconds is not None:
            found = "" if self.matches is None else f"{self.matches:,} matches in "
            rows.append(("run", f"{found}{time_text(1e9 * self.seconds)}"))
        return rows + self._statistics()

    def to_dict(self) -> dict[str, Any]:
        """Return the same as dicts, lists, strings and numbers."""
        choice, every = self.choice, range(len(self._variables))
        found: dict[str, Any] = {
            "planner": self.plan.planner,
            "join": "pivot" if choice.tree is None else "tree",
            "tree": None if choice.tree is None else self._node(choice.tree),
            "matches": None if choice.model is None else choice.model.partial_matches(every),
            "why": choice.why,
            "expected_ns": dict(choice.costs),
            "statistics": None if choice.statistics is None else choice.statistics.to_dict(),
        }
        if self.seconds is not None:
            found["run"] = {"matches": self.matches, "seconds": self.seconds}
        return found

    @property
    def _variables(self) -> list[str]:
        return [component.variable for component in self.plan.components]

    def _count(self, components: tuple[int, ...]) -> dict[str, Any]:
        """Return the estimated and the actual number of partial matches of a node."""
        model = self.choice.model
        found: dict[str, Any] = {"estimated": None if model is None else model.partial_matches(components)}
        if self.actual:
            found["actual"] = self.actual.get(components, 0)
        return found

    def _node(self, tree: Tree) -> dict[str, Any]:
        components = components_of(tree)
        node: dict[str, Any] = {"components": [self._variables[j] for j in sorted(components)]}
        node |= self._count(components)
        if not isinstance(tree, Leaf):
            node["children"] = [self._node(tree.left), self._node(tree.right)]
        return node

    def _numbers(self, components: tuple[int, ...]) -> str:
        found = self._count(components)
        estimated, actual = found["estimated"], found.get("actual")
        parts = [] if estimated is None else [f"{_rounded(estimated)} estimated"]
        parts += [] if actual is None else [f"{actual:,} actual"]
        return ", ".join(parts) or "not estimated"

    def _lines(self, tree: Tree, depth: int) -> list[str]:
        components = components_of(tree)
        what = " ".join(self._variables[j] for j in sorted(components))
        lines = [f"{'  ' * depth}{what}: {self._numbers(components)}"]
        if not isinstance(tree, Leaf):
            lines += self._lines(tree.left, depth + 1) + self._lines(tree.right, depth + 1)
        return lines

    def _statistics(self) -> list[Row]:
        statistics = self.choice.statistics
        if statistics is None:
            return []
        rows = [
            (f"statistics of {part.variable}", _component(part, [*map(format_expression, local)]))
            for part, local in zip(
                (*statistics.components, *statistics.negated),
                [c.local for c in self.plan.components] + [n.component.local for n in self.plan.negations],
                strict=True,
            )
        ]
        # Events of a set are in no order. What is not between neighbours is left to JSON: it is much.
        if self.plan.order is None:
            rows += [
                (f"{self._variables[pair.first]} before {self._variables[pair.second]}", _pair(pair))
                for pair in statistics.pairs
                if pair.second == pair.first + 1
            ]
        rows += [
            ("selectivity", f"{format_expression(predicate)}: {_percent(part.selectivity)}")
            for predicate, part in zip(self.plan.joined, statistics.predicates, strict=True)
            if len(part.components) > 1 and variables_of(predicate) <= {*self._variables}
        ]
        keys = statistics.keys
        if keys.partitions > 1:
            skew = f"as good as {keys.effective:,.1f} of one size; the largest has {_percent(keys.largest)}"
            rows.append(("key skew", f"{keys.partitions:,} partitions, {skew}"))
        return rows


def chosen_plan(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, *, analyze: bool = False
) -> ChosenPlan:
    """Return the choice for an OR-free pattern on given data, with estimates even if nothing was to choose.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    selection : Selection
        The candidates in it that lie in match windows.
    analyze : bool
        Whether to run the plan and count.
    """
    from uncertain_cep.joined_first import tree_of_singles

    choice = choose(plan, table, selection)
    if not plan.is_plain and plan.order is None and len(plan.components) > 1:
        tree = tree_of_singles(plan, table, selection)
        order = (
            "in pattern order"
            if tree is None
            else "from those that the single components, joined first, leave"
        )
        choice = replace(choice, tree=tree, why=f"the events of a match are added one by one, {order}")
    choice = estimated(plan, table, selection, choice)
    if not analyze:
        return ChosenPlan(plan, choice)
    from uncertain_cep.engine import run

    counters: dict[tuple[int, ...], int] = {}
    begin = perf_counter()
    rows = sum(batch.num_rows for batch in run(plan, table, counters=counters))
    seconds = perf_counter() - begin
    return ChosenPlan(plan, choice, counters, None if plan.counts else rows, seconds)


def _component(part: ComponentStatistics, local: list[str]) -> str:
    lengths = part.lengths
    tests = "".join(f", {text}: {_percent(share)}" for text, share in zip(local, part.local, strict=True))
    ticks = [
        _rounded(length + 1.0) for length in (lengths.mean, lengths.median, lengths.most, lengths.longest)
    ]
    return (
        f"{_rounded(part.rate)} a tick, type: {_percent(part.type_share)} of the events{tests}; intervals of "
        f"{ticks[0]} ticks on average, half up to {ticks[1]}, nine in ten to {ticks[2]}, all to {ticks[3]}"
    )


def _pair(pair: PairStatistics) -> str:
    return f"{_percent(pair.in_time)} of the pairs can be, within the window and in one partition"


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 100.0 else f"{number:.3g}"
