"""The meaning of a query and its evaluation, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

import numpy as np

from uncertain_cep.explanation.facts import ChosenPlan, PlanFacts
from uncertain_cep.explanation.weigher_facts import weigher_rows
from uncertain_cep.operators.counters import GroupCounts
from uncertain_cep.operators.table import operator_of
from uncertain_cep.optimizer.choice import time_text
from uncertain_cep.optimizer.statistics import ComponentStatistics
from uncertain_cep.plan.clock_columns import ClockNames
from uncertain_cep.plan.components import PlannedComponent
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.known_until import shown_tick
from uncertain_cep.plan.trees import format_tree
from uncertain_cep.plurals import counted
from uncertain_cep.query import Query, format_expression
from uncertain_cep.query.syntax import Duration, ExpectedCount, Probability
from uncertain_cep.query.time_conditions import texts_of
from uncertain_cep.query.typed import variables_of
from uncertain_cep.query.walks import components_of
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.timeline.durations import format_duration

__all__ = ["Explanation", "explain_plan", "explain_query"]

Row = tuple[str, str]

_METHODS: Final[Mapping[str, str]] = {
    "query_order": "query order: candidates sorted by their bounds, joined without dead ends",
    "any_state": "any state: runs that begin at any component, over events as they arrive",
    "selectivity": "selectivity order: events wait for the rarest component, then any state",
    "point": "point: expand the events into points, match those, collapse by signature",
}

_TREE: Final = "tree: partial matches of some components joined with those of others"

_BACKTRACKING: Final = "backtracking search: events taken one by one from candidates sorted by their bounds"

_PARTIAL_ORDER: Final = (
    "partial-order search: events chosen component by component, as far as order and window allow"
)


_SEARCHES: Final[Mapping[str, str]] = {
    "partial-order search": _PARTIAL_ORDER,
    "compressed search": _BACKTRACKING,
    "backtracking search": _BACKTRACKING,
}
"""The method of operators that search."""


class Explanation(str):
    """Text that a notebook or a shell shows as the lines that it has, where it is a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the lines for a notebook."""
        return f"<pre>{escape(self)}</pre>"


def _aligned(rows: Iterable[Row]) -> str:
    pairs = list(rows)
    width = max(len(label) for label, _ in pairs)
    return "\n".join(f"{label.ljust(width)}  {text}" for label, text in pairs)


def _output(query: Query) -> list[Row]:
    rows = []
    if query.having is not None:
        rows.append(("having", query.having.text))
    elif query.min_confidence is not None:
        rows.append(("having", f"confidence >= {query.min_confidence:g}"))
    if query.non_overlapping:
        rows.append(("output", "in each partition, matches whose ranges do not overlap, best first"))
    if query.order_by_confidence:
        rows.append(("order", "by falling confidence, ties by signature"))
    if query.order_by:
        keys = ", ".join(
            f"{item.text} {'descending' if item.descending else 'ascending'}" for item in query.order_by
        )
        rows.append(("order", f"by {keys}, nulls last, ties by falling confidence and signature"))
    if query.limit is not None:
        rows.append(("limit", counted(query.limit, "match", "matches")))
    if query.expected_count is not None:
        rows.append(("returns", _counts(query.expected_count)))
    if query.probability is not None:
        rows.append(("returns", _probability(query.probability)))
        if query.probability.reads_any:
            rows.append(("", "skip till next match has the same one as skip till any match, and costs more"))
        if query.probability.reads_fewer:
            rows.append(("", "repeated and optional events add nothing: as few as may be are looked for"))
    return rows


def _counts(clause: ExpectedCount) -> str:
    groups = f" by {', '.join(clause.by)}" if clause.by else ""
    if clause.every is None:
        return f"expected number of matches{groups}"
    return (
        f"expected number of matches{groups}, for every {_duration(clause.every)} of the first event's time"
    )


def _probability(clause: Probability) -> str:
    groups = f" by {', '.join(name.text for name in clause.by)}" if clause.by else ""
    several = "one match" if clause.at_least == 1 else f"{clause.at_least:,} matches"
    if clause.counted is not None:
        place = "behind" if clause.counted.is_behind else "before"
        counted_events = clause.counted
        several = (
            f"{counted_events.least:,} events {counted_events.variable} {place} {counted_events.anchor}, "
            "counted by pairs"
        )
    text = f"probability of at least {several}{groups}"
    if clause.every is None:
        return text
    return f"{text}, for every {_duration(clause.every)} of the first event's time"


def _groups(counts: GroupCounts) -> str:
    """Return how groups were weighed, and which was the largest."""
    parts = [
        f"{number:,} {what}"
        for number, what in (
            (counts.single, "of one match"),
            (counts.certain, "certain"),
            (counts.exact, "exact"),
            (counts.estimated, "estimated"),
            (counts.undecided, "undecided"),
        )
        if number
    ]
    if not parts:
        return "none"
    named = f" ({counts.named})" if counts.named else ""
    matches = counted(counts.largest, "match", "matches")
    return f"{counts.count:,}: {', '.join(parts)}; the largest has {matches}{named}"


def _duration(duration: Duration) -> str:
    amount = f"{duration.amount:g}"
    return counted(1, "tick", shown=amount) if duration.unit is None else f"{amount} {duration.unit}"


def explain_query(query: Query) -> str:
    """Explain a query that is not bound to a trace."""
    rows: list[Row] = [("strategy", query.strategy)]
    for number, component in enumerate(components_of(query.pattern), 1):
        types = " | ".join(component.types) or "any type"
        times = f", {component.times}" if component.times else ""
        absent = "none of " if component.negated else ""
        rows.append((f"component {number}", f"{component.variable}: {absent}{types}{times}"))
    rows += [("gap", strategy.text) for strategy in query.gap_strategies]
    if query.window is not None:
        rows.append(("window", _duration(query.window)))
    rows.append(("bound to", "nothing yet: name a trace to see keys, predicates and candidates"))
    return Explanation(_aligned(rows + _output(query)))


def explain_plan(facts: Sequence[PlanFacts], spark: str | None = None, no_match: str = "") -> str:
    """Explain a plan; with a table, say how many candidates each component has and how they are joined.

    ``spark`` says how Spark reads the events, if it does; ``no_match`` what leaves none.
    """
    last_rows = [] if spark is None else [("on Spark", spark)]
    last_rows += [("no match", no_match)] if no_match else []
    if len(facts) == 1:
        return Explanation(_aligned(_rows(facts[0]) + last_rows))
    parts = [
        f"branch {number} of {len(facts)}\n{_aligned(_rows(part))}" for number, part in enumerate(facts, 1)
    ]
    return Explanation("\n\n".join(parts + ([_aligned(last_rows)] if last_rows else [])))


def _rows(facts: PlanFacts) -> list[Row]:
    plan, selection, chosen = facts.plan, facts.selection, facts.chosen
    counts, partitions = [""] * len(plan.components), ""
    if selection is not None and facts.kept is not None:
        counts = [
            f"  [{_counted(size, in_windows)}{_lengths(lower, upper)}]"
            for size, in_windows, lower, upper in zip(
                selection.sizes, facts.kept.sizes, selection.lower, selection.upper, strict=True
            )
        ]
        partitions = f"  [{counted(selection.partitions, 'partition')}]"
    rows: list[Row] = [("strategy", plan.query.strategy)]
    if facts.readings is None:
        how = "one for each time that the events let the groups stand; this is one of the longer ones"
        rows.append(("readings", f"repeated groups: {how}"))
    elif facts.readings > 1:
        how = "each is planned where the events make it possible; this is the longest"
        rows.append(("readings", f"{facts.readings:,} by what is left out: {how}"))
    for number, (component, count) in enumerate(zip(plan.components, counts, strict=True), 1):
        rows += _negations(plan, number - 1)
        times = ", one or more" if component.kleene else ""
        rows.append((f"component {number}", f"{_taken(component)}{times}{count}"))
    rows += _negations(plan, len(plan.components))
    rows += [("readings", _readings(plan))] if plan.terms else []
    keys = ", ".join(key.name or " = ".join(key.columns) for key in plan.keys) or "none: one partition"
    rows.append(("partition by", f"{keys}{partitions}"))
    rows += [("join predicate", format_expression(part)) for part in plan.joined]
    rows += [("condition", format_expression(part)) for part in plan.constant]
    domain = plan.domain
    rows += [("time condition", text) for text in texts_of(plan.bound.times, domain)]
    rows.append(("tick", _tick(domain)))
    ticks = counted(plan.window, "tick")
    if domain.tick_nanoseconds is not None:
        ticks = f"{format_duration(plan.window * domain.tick_nanoseconds)}: {ticks} of {domain.describe()}"
    rows.append(("window", ticks))
    if plan.known_until is not None:
        shown = shown_tick(plan.known_until, domain)
        rows.append(("known until", f"{shown}: matches with a gap that can end behind it are left out"))
    rows += _clock_rows(plan.clock_names, facts)
    operator = operator_of(plan)
    rows.append(("operator", f"{operator.name}: {operator.why}"))
    rows.append(("method", _method(plan, chosen is not None and chosen.choice.tree is not None)))
    rows += weigher_rows(plan, None if chosen is None else chosen.weighed)
    rows += [] if chosen is None else _choice_rows(chosen)
    rows += _output(plan.query)
    rows += [] if facts.groups is None else [("groups", _groups(facts.groups))]
    rows.append(("result", ", ".join(f"{field.name} {field.type}" for field in plan.output_schema)))
    return rows


def _tick(domain: TimeDomain) -> str:
    """Return how long a tick is, and who says so."""
    if domain.tick_nanoseconds is None:
        return "of no named length: times are whole numbers"
    return domain.describe() + ("" if domain.named else ", the default")


def _clock_rows(names: ClockNames, facts: PlanFacts) -> list[Row]:
    """Return lines about clocks."""
    if names.source is None:
        return []
    rows = [("clocks", f"events of one {names.source} move together")]
    if names.sequence is not None:
        rows.append(("", f"those at one tick are in the order of {names.sequence}"))
    if facts.clocks is not None and (facts.clocks.sharing or names.sequence is None):
        rows.append(("", facts.clocks.text))
    return rows


def _method(plan: EvaluationPlan, along_tree: bool) -> str:
    search = _SEARCHES.get(operator_of(plan).name)
    if search is None:
        return _TREE if along_tree else _METHODS[plan.evaluation]
    return f"{_TREE}, then {search}" if along_tree else search


def _negations(plan: EvaluationPlan, after: int) -> list[Row]:
    """Return the negated components that stand behind ``after`` positive ones."""
    here = [negation for negation in plan.negations if negation.after == after]
    rows: list[Row] = []
    for name in dict.fromkeys(negation.joint or negation.component.variable for negation in here):
        group = [one.component for one in here if name in (one.joint, one.component.variable)]
        rows += [("negated", " and then ".join(map(_taken, group)))]
    return rows


def _readings(plan: EvaluationPlan) -> str:
    names = [negation.component.variable for negation in plan.negations]
    readings = [
        " and ".join(name for name in names if name in term.negated) for term in plan.terms if term.is_reading
    ]
    how = f"a match is one of any of them, its confidence a sum of {len(plan.terms)} terms"
    return f"without {', or without '.join(readings)}: {how}"


def _taken(component: PlannedComponent) -> str:
    types = " | ".join(component.types) or "any type"
    tests = "".join(f" and {format_expression(part)}" for part in component.local)
    return f"{component.variable}: {types}{tests}"


def _counted(candidates: int, kept: int) -> str:
    return counted(candidates, "candidate") + ("" if kept == candidates else f", {kept:,} in match windows")


def _lengths(lower: np.ndarray, upper: np.ndarray) -> str:
    if not len(lower):
        return ""
    lengths = upper - lower + 1
    shortest, longest = int(lengths.min()), int(lengths.max())
    range_ = "" if shortest == longest else f"{shortest:,} to "
    return f", intervals of {range_}{counted(longest, 'tick')}"


def _choice_rows(chosen: ChosenPlan) -> list[Row]:
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
        result = "" if chosen.matches is None else f"{counted(chosen.matches, 'match', 'matches')} in "
        rows.append(("run", f"{result}{time_text(1e9 * chosen.seconds)}"))
    return rows + _statistics(chosen)


def _lines(node: dict[str, Any], depth: int) -> list[str]:
    """Return a line for a node of a tree and for each below it."""
    estimated, actual = node["estimated"], node.get("actual")
    parts = [] if estimated is None else [f"{_rounded(estimated)} estimated"]
    parts += [] if actual is None else [f"{actual:,} actual"]
    lines = [f"{'  ' * depth}{' '.join(node['components'])}: {', '.join(parts) or 'not estimated'}"]
    return lines + [line for child in node.get("children", ()) for line in _lines(child, depth + 1)]


def _pass_line(counts: dict[str, Any]) -> str:
    """Return the numbers of a pivot as text; nothing if it is not to be expected, and there was none."""
    nodes = counts["nodes"]
    if nodes[0]["estimated"] < 0.5 and not nodes[0].get("actual"):
        return ""
    numbers = ", ".join(_rounded(node["estimated"]) for node in nodes)
    text = f"  {' '.join(counts['order'])}: {numbers} estimated"
    if "actual" in nodes[0]:
        text += f"; {', '.join(format(node['actual'], ',') for node in nodes)} actual"
    return text


def _latency(chosen: ChosenPlan) -> str:
    weight, waiting = f"{chosen.plan.latency_weight:g}", chosen.waiting
    if waiting is None:
        return f"weight {weight}"
    shown = _rounded(waiting)
    waiting_for = f"{counted(1, 'partial match', 'partial matches', shown=shown)} wait{'s' * (shown == '1')}"
    return (
        f"{waiting_for} to be put together with the event of {chosen.variables[-1]}; in what is expected "
        f"each counts {weight} times"
    )


def _statistics(chosen: ChosenPlan) -> list[Row]:
    plan, statistics, variables = chosen.plan, chosen.choice.statistics, chosen.variables
    if statistics is None:
        return []
    components = [*plan.components, *(negation.component for negation in plan.negations)]
    rows = [
        (f"statistics of {part.variable}", _component(part, [*map(format_expression, component.local)]))
        for part, component in zip((*statistics.components, *statistics.negated), components, strict=True)
    ]
    # Events of a set are in no order. What is not between neighbours is left to JSON: it is much.
    for pair in statistics.pairs if plan.event_order.is_chain else ():
        if pair.second == pair.first + 1:
            first, second = variables[pair.first], variables[pair.second]
            shown = (
                f"{_percent(pair.in_time)} of the pairs can be, within the window and in one partition, "
                f"and {_percent(pair.first_met)} of {first} and {_percent(pair.second_met)} of {second} are "
                "in one"
            )
            rows.append((f"{first} before {second}", shown))
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
    line = f"{_rounded(part.rate)} a tick, type: {_percent(part.type_share)} of the events{tests}"
    if not part.candidates:
        return line
    ticks = [
        _rounded(length + 1.0) for length in (lengths.mean, lengths.median, lengths.most, lengths.longest)
    ]
    return (
        f"{line}; intervals of {counted(1, 'tick', shown=ticks[0])} on average, half up to {ticks[1]}, nine "
        f"in ten to {ticks[2]}, all to {ticks[3]}"
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 100.0 else f"{number:.3g}"
