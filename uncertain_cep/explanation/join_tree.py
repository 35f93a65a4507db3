"""How the events of a pattern are put together on given data, as rows of text and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import pyarrow as pa

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.operators.counters import Counters, Node
from uncertain_cep.optimizer.choice import Choice, choose, estimated, time_text
from uncertain_cep.optimizer.pivot_cost import pivot_passes
from uncertain_cep.optimizer.statistics import ComponentStatistics, PairStatistics
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.trees import Leaf, Tree, components_of, format_tree
from uncertain_cep.query import format_expression
from uncertain_cep.query.typed import variables_of
from uncertain_cep.wording import counted

__all__ = ["ChosenPlan", "chosen_plan"]

Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """A choice with what was estimated, and what a run counted."""

    plan: EvaluationPlan
    choice: Choice
    actual: Mapping[Node, int] | None = None
    """For each node, see :data:`uncertain_cep.operators.counters.Node`, how many partial matches it had."""
    matches: int | None = None
    """That the run found: those that pass HAVING, and with LIMIT no more than it asks for."""
    seconds: float | None = None
    """That the run took."""

    def rows(self) -> list[Row]:
        """Return labelled lines: the plan with numbers for each node, why, and the statistics behind it."""
        rows: list[Row] = []
        tree, model = self.choice.tree, self.choice.model
        if tree is None and self.plan.is_plain and model is not None:
            rows.append(("matches", f"{_rounded(model.partial_matches(range(model.length)))} estimated"))
        if tree is not None:
            rows.append(("plan", format_tree(tree, self._variables)))
            rows += [("", line) for line in self._lines(tree, 1)]
        if passes := self._passes():
            rows.append(("plan", "in pattern order, from the event that ends first on; one, two, ... bound"))
            rows += [("", line) for line in map(_pass_line, passes) if line]
        rows.append(("why", self.choice.why))
        if self.choice.costs:
            costs = ", ".join(f"{name} {time_text(cost)}" for name, cost in self.choice.costs.items())
            rows.append(("expected", costs))
        if self.plan.latency_weight:
            rows.append(("latency", self._latency()))
        if self.seconds is not None:
            found = "" if self.matches is None else f"{counted(self.matches, 'match', 'matches')} in "
            rows.append(("run", f"{found}{time_text(1e9 * self.seconds)}"))
        return rows + self._statistics()

    def to_dict(self) -> dict[str, Any]:
        """Return the same as dicts, lists, strings and numbers."""
        choice, every = self.choice, range(len(self._variables))
        found: dict[str, Any] = {
            "planner": self.plan.planner,
            "join": "pivot" if choice.tree is None else "tree",
            "tree": None if choice.tree is None else self._node(choice.tree),
            "passes": self._passes() or None,
            "matches": None if choice.model is None else choice.model.partial_matches(every),
            "why": choice.why,
            "expected_ns": dict(choice.costs),
            "latency": {"weight": self.plan.latency_weight, "waiting": self._waiting()},
            "statistics": None if choice.statistics is None else choice.statistics.to_dict(),
        }
        if self.seconds is not None:
            found["run"] = {"matches": self.matches, "seconds": self.seconds}
        return found

    @property
    def _variables(self) -> list[str]:
        return [component.variable for component in self.plan.components]

    def _count(self, components: Node) -> dict[str, Any]:
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

    def _numbers(self, components: Node) -> str:
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

    def _passes(self) -> list[dict[str, Any]]:
        """Return the partial matches of the join in pattern order, for each pivot by the components bound.

        Nothing if another method is used.
        """
        plan, model = self.plan, self.choice.model
        if not plan.is_plain or plan.evaluation != "query_order" or self.choice.tree is not None:
            return []
        if model is None or model.length < 2:
            return []
        expected = pivot_passes(model)
        passes = []
        for order, found in zip(expected.orders.tolist(), expected.found.tolist(), strict=True):
            nodes = []
            for bound, number in enumerate(found, 1):
                names = [self._variables[j] for j in sorted(order[:bound])]
                node: dict[str, Any] = {"components": names, "estimated": number}
                if self.actual:
                    node["actual"] = self.actual.get(tuple(order[:bound]), 0)
                nodes.append(node)
            passes.append({"order": [self._variables[j] for j in order], "nodes": nodes})
        return passes

    def _waiting(self) -> float | None:
        """Return how many partial matches the events of the last component are expected to wait for."""
        model, tree = self.choice.model, self.choice.tree
        if model is None or not self.plan.is_plain or len(self._variables) < 2:
            return None
        return float(pivot_passes(model).waiting.sum()) if tree is None else model.latency(tree)

    def _latency(self) -> str:
        waiting = self._waiting()
        if waiting is None:
            return f"weight {self.plan.latency_weight:g}"
        last, many = self._variables[-1], _rounded(waiting)
        waiting_for = (
            f"{counted(1, 'partial match', 'partial matches', shown=many)} wait{'s' * (many == '1')}"
        )
        return (
            f"{waiting_for} to be put together with the event of {last}; in what "
            f"is expected each counts {self.plan.latency_weight:g} times"
        )

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
            rows += [self._pair(pair) for pair in statistics.pairs if pair.second == pair.first + 1]
        rows += [
            ("selectivity", f"{format_expression(predicate)}: {_percent(part.selectivity)}")
            for predicate, part in zip(self.plan.joined, statistics.predicates, strict=True)
            if len(part.components) > 1 and variables_of(predicate) <= {*self._variables}
        ]
        keys = statistics.keys
        if keys.partitions > 1:
            skew = f"as good as {keys.effective:,.1f} of one size; the largest has {_percent(keys.largest)}"
            rows.append(("key skew", f"{counted(keys.partitions, 'partition')}, {skew}"))
        return rows

    def _pair(self, pair: PairStatistics) -> Row:
        first, second = self._variables[pair.first], self._variables[pair.second]
        return (
            f"{first} before {second}",
            f"{_percent(pair.in_time)} of the pairs can be, within the window and in one partition, and "
            f"{_percent(pair.first_met)} of {first} and {_percent(pair.second_met)} of {second} are in one",
        )


def _pass_line(found: dict[str, Any]) -> str:
    """Return the numbers of a pivot as text; nothing if it is not to be expected, and there was none."""
    nodes = found["nodes"]
    if nodes[0]["estimated"] < 0.5 and not nodes[0].get("actual"):
        return ""
    text = (
        f"  {' '.join(found['order'])}: {', '.join(_rounded(node['estimated']) for node in nodes)} estimated"
    )
    if "actual" in nodes[0]:
        text += f"; {', '.join(format(node['actual'], ',') for node in nodes)} actual"
    return text


def chosen_plan(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, *, analyze: bool = False
) -> ChosenPlan:
    """Return the choice for an OR-free pattern on given data, with estimates even if nothing was to choose.

    Parameters
    ----------
    selection : Selection
        The candidates in it that lie in match windows.
    analyze : bool
        Whether to run the plan and count.
    """
    if plan.is_plain or len(plan.components) < 2:
        choice = choose(plan, table, selection)
    else:
        from uncertain_cep.operators.join_prefix import choice_of_singles

        choice = choice_of_singles(plan, table, selection)
    choice = estimated(plan, table, selection, choice)
    if not analyze:
        return ChosenPlan(plan, choice)
    from uncertain_cep.executor import execute

    counters = Counters()
    begin = perf_counter()
    rows = sum(batch.num_rows for batch in execute(plan, table, counters=counters))
    seconds = perf_counter() - begin
    return ChosenPlan(plan, choice, counters.nodes, None if plan.counts else rows, seconds)


def _component(part: ComponentStatistics, local: list[str]) -> str:
    lengths = part.lengths
    tests = "".join(f", {text}: {_percent(share)}" for text, share in zip(local, part.local, strict=True))
    found = f"{_rounded(part.rate)} a tick, type: {_percent(part.type_share)} of the events{tests}"
    if not part.candidates:
        return found
    ticks = [
        _rounded(length + 1.0) for length in (lengths.mean, lengths.median, lengths.most, lengths.longest)
    ]
    return (
        f"{found}; intervals of {counted(1, 'tick', shown=ticks[0])} on average, half up to {ticks[1]}, nine "
        f"in ten to {ticks[2]}, all to {ticks[3]}"
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 100.0 else f"{number:.3g}"
