"""How the events of a pattern are put together on given data, in words."""

from __future__ import annotations

from typing import Any

from uncertain_cep.explanation.facts import ChosenPlan
from uncertain_cep.optimizer.choice import time_text
from uncertain_cep.optimizer.statistics import ComponentStatistics
from uncertain_cep.plan.trees import format_tree
from uncertain_cep.query import format_expression
from uncertain_cep.query.typed import variables_of
from uncertain_cep.wording import counted

__all__ = ["Row", "choice_rows"]

Row = tuple[str, str]


def choice_rows(chosen: ChosenPlan) -> list[Row]:
    """Return labelled lines: the plan with numbers for each node, why, and the statistics behind it."""
    rows: list[Row] = []
    plan, choice, matches = chosen.plan, chosen.choice, chosen.estimated_matches
    if choice.tree is None and plan.is_plain and matches is not None:
        rows.append(("matches", f"{_rounded(matches)} estimated"))
    if choice.tree is not None:
        rows.append(("plan", format_tree(choice.tree, chosen.variables)))
        rows += [("", line) for line in _lines(chosen.node(choice.tree), 1)]
    if passes := chosen.passes():
        rows.append(("plan", "in pattern order, from the event that ends first on; one, two, ... bound"))
        rows += [("", line) for line in map(_pass_line, passes) if line]
    rows.append(("why", choice.why))
    if choice.costs:
        rows.append(
            ("expected", ", ".join(f"{name} {time_text(cost)}" for name, cost in choice.costs.items()))
        )
    if plan.latency_weight:
        rows.append(("latency", _latency(chosen)))
    if chosen.seconds is not None:
        found = "" if chosen.matches is None else f"{counted(chosen.matches, 'match', 'matches')} in "
        rows.append(("run", f"{found}{time_text(1e9 * chosen.seconds)}"))
    return rows + _statistics(chosen)


def _lines(node: dict[str, Any], depth: int) -> list[str]:
    """Return a line for a node of a tree and for each below it."""
    estimated, actual = node["estimated"], node.get("actual")
    parts = [] if estimated is None else [f"{_rounded(estimated)} estimated"]
    parts += [] if actual is None else [f"{actual:,} actual"]
    lines = [f"{'  ' * depth}{' '.join(node['components'])}: {', '.join(parts) or 'not estimated'}"]
    return lines + [line for child in node.get("children", ()) for line in _lines(child, depth + 1)]


def _pass_line(found: dict[str, Any]) -> str:
    """Return the numbers of a pivot as text; nothing if it is not to be expected, and there was none."""
    nodes = found["nodes"]
    if nodes[0]["estimated"] < 0.5 and not nodes[0].get("actual"):
        return ""
    numbers = ", ".join(_rounded(node["estimated"]) for node in nodes)
    text = f"  {' '.join(found['order'])}: {numbers} estimated"
    if "actual" in nodes[0]:
        text += f"; {', '.join(format(node['actual'], ',') for node in nodes)} actual"
    return text


def _latency(chosen: ChosenPlan) -> str:
    weight, waiting = f"{chosen.plan.latency_weight:g}", chosen.waiting
    if waiting is None:
        return f"weight {weight}"
    many = _rounded(waiting)
    waiting_for = f"{counted(1, 'partial match', 'partial matches', shown=many)} wait{'s' * (many == '1')}"
    return (
        f"{waiting_for} to be put together with the event of {chosen.variables[-1]}; in what is expected "
        f"each counts {weight} times"
    )


def _statistics(chosen: ChosenPlan) -> list[Row]:
    plan, statistics, variables = chosen.plan, chosen.choice.statistics, chosen.variables
    if statistics is None:
        return []
    components = [*plan.components, *(found.component for found in plan.negations)]
    rows = [
        (f"statistics of {part.variable}", _component(part, [*map(format_expression, component.local)]))
        for part, component in zip((*statistics.components, *statistics.negated), components, strict=True)
    ]
    # Events of a set are in no order. What is not between neighbours is left to JSON: it is much.
    for pair in statistics.pairs if plan.order is None else ():
        if pair.second == pair.first + 1:
            first, second = variables[pair.first], variables[pair.second]
            found = (
                f"{_percent(pair.in_time)} of the pairs can be, within the window and in one partition, "
                f"and {_percent(pair.first_met)} of {first} and {_percent(pair.second_met)} of {second} are "
                "in one"
            )
            rows.append((f"{first} before {second}", found))
    rows += [
        ("selectivity", f"{format_expression(predicate)}: {_percent(part.selectivity)}")
        for predicate, part in zip(plan.joined, statistics.predicates, strict=True)
        if len(part.components) > 1 and variables_of(predicate) <= {*variables}
    ]
    keys = statistics.keys
    if keys.partitions > 1:
        skew = f"as good as {keys.effective:,.1f} of one size; the largest has {_percent(keys.largest)}"
        rows.append(("key skew", f"{counted(keys.partitions, 'partition')}, {skew}"))
    return rows


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
